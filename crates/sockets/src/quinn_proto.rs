//! quinn-proto on virtual time, for those who drive its state machines themselves.

use crate::{SendError, SocketId, VirtualNetwork};
use bytes::BytesMut;
use fastpath_units::{Duration, Time};
use quinn_proto::{
    AcceptError, ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint,
    Endpoint, EndpointConfig, Incoming, ServerConfig, Transmit,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Most datagrams of one transmission.
const SEGMENTS_MAX: usize = 10;

/// An endpoint with its connections, on a socket of a network.
pub struct ProtoEndpoint {
    endpoint: Endpoint,
    connections: BTreeMap<usize, Connection>,
    socket: SocketId,
    /// The instant of time 0.
    zero: Instant,
    incoming: VecDeque<Incoming>,
    buffer: Vec<u8>,
}

impl ProtoEndpoint {
    /// Creates an endpoint. Those of one network have the same `zero`, the instant of its time 0.
    pub fn new(
        socket: SocketId,
        config: EndpointConfig,
        server: Option<ServerConfig>,
        zero: Instant,
    ) -> ProtoEndpoint {
        ProtoEndpoint {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), true, None),
            connections: BTreeMap::new(),
            socket,
            zero,
            incoming: VecDeque::new(),
            buffer: Vec::new(),
        }
    }

    /// Starts a connection. Call [`ProtoEndpoint::poll`] afterwards.
    ///
    /// # Errors
    /// Those of quinn-proto.
    pub fn connect(
        &mut self,
        network: &VirtualNetwork,
        config: ClientConfig,
        to: SocketAddr,
        name: &str,
    ) -> Result<ConnectionHandle, ConnectError> {
        let (handle, connection) = self.endpoint.connect(self.instant(network), config, to, name)?;
        self.connections.insert(handle.0, connection);
        Ok(handle)
    }

    /// Accepts the next connection that others have started. `None` if there is none.
    ///
    /// # Errors
    /// Those of quinn-proto; the answer to the other side has been sent.
    pub fn accept(&mut self, network: &mut VirtualNetwork) -> Option<Result<ConnectionHandle, AcceptError>> {
        let incoming = self.incoming.pop_front()?;
        let now = self.instant(network);
        self.buffer.clear();
        let accepted = self.endpoint.accept(incoming, now, &mut self.buffer, None);
        Some(match accepted {
            Ok((handle, connection)) => {
                self.connections.insert(handle.0, connection);
                Ok(handle)
            }
            Err(error) => {
                if let Some(response) = &error.response {
                    self.transmit(network, response);
                }
                Err(error)
            }
        })
    }

    /// Returns a connection, until it is drained.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle.0)
    }

    /// Does what is to be done now: takes what has arrived, runs timers that are due, and sends.
    pub fn poll(&mut self, network: &mut VirtualNetwork) {
        let now = self.instant(network);
        while let Some(datagram) = network.receive(self.socket) {
            self.buffer.clear();
            let (data, ecn) = (BytesMut::from(&datagram.payload[..]), EcnCodepoint::from_bits(datagram.ecn));
            let local = Some(datagram.to.ip());
            match self.endpoint.handle(now, datagram.from, local, ecn, data, &mut self.buffer) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(connection) = self.connections.get_mut(&handle.0) {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => self.incoming.push_back(incoming),
                Some(DatagramEvent::Response(transmit)) => self.transmit(network, &transmit),
                None => {}
            }
        }
        for handle in self.connections.keys().copied().collect::<Vec<usize>>() {
            self.drive(network, now, ConnectionHandle(handle));
        }
        self.connections.retain(|_, connection| !connection.is_drained());
    }

    /// Returns when to poll next for a timer; a datagram may come earlier.
    pub fn next_timeout(&mut self) -> Option<Time> {
        let next = self.connections.values_mut().filter_map(Connection::poll_timeout).min()?;
        let since = next.saturating_duration_since(self.zero);
        Some(Time::ZERO + Duration::from_ns(since.as_nanos() as u64))
    }

    fn drive(&mut self, network: &mut VirtualNetwork, now: Instant, handle: ConnectionHandle) {
        let Some(connection) = self.connections.get_mut(&handle.0) else { return };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        loop {
            self.buffer.clear();
            let Some(connection) = self.connections.get_mut(&handle.0) else { return };
            let transmit = connection.poll_transmit(now, SEGMENTS_MAX, &mut self.buffer);
            let Some(transmit) = transmit else { break };
            self.transmit(network, &transmit);
        }
    }

    /// Sends what is at the front of the buffer.
    fn transmit(&self, network: &mut VirtualNetwork, transmit: &Transmit) {
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        for payload in self.buffer[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size)) {
            // What does not fit, as a probe of the MTU, or goes to nowhere is lost.
            let _: Result<(), SendError> =
                network.send_marked(self.socket, transmit.destination, ecn, payload);
        }
    }

    fn instant(&self, network: &VirtualNetwork) -> Instant {
        self.zero + std::time::Duration::from_nanos(network.now().as_ps() / 1000)
    }
}
