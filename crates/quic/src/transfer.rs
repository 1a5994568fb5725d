//! A transfer: all its connections, between an endpoint at each host. See the head of `lib.rs`.

use crate::clock::VirtualClock;
use crate::flow::QuicFlow;
use crate::frame::{ArrivedDatagram, datagram};
use crate::settings::Settings;
use bytes::BytesMut;
use fastpath_traffic::{
    FIRST_PORT, FlowCalls, FrameWay, QUIC_DATAGRAM_MIN, TransferEnds, TransferModel, TransferReport,
    TransferSide, TransportCounts,
};
use fastpath_units::{Distribution, Rng, Time};
use quinn_proto::{
    ConnectionHandle, ConnectionId, DatagramEvent, EcnCodepoint, Endpoint, Incoming, Transmit,
};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// The name that clients ask for; no certificate is looked at.
const SERVER_NAME: &str = "fastpath";
/// Bytes of the first destination id of a connection: the most there can be, as quinn has it.
const FIRST_ID: usize = 20;
/// Bytes of UDP.
const UDP: u32 = 8;
/// Answers of endpoints without a connection that may wait; more are dropped.
const ANSWERS_MAX: usize = 64;
/// Ways of the server that are remembered: clients behind NATs have few addresses.
const WAYS_MAX: usize = 1024;

/// Connections of QUIC between two hosts, as frames in the time of the caller.
pub struct QuicTransfer {
    clock: VirtualClock,
    settings: Settings,
    ecn: bool,
    flows: Vec<QuicFlow>,
    /// The first destination ids of the connections. They begin with the number of the flow.
    first_ids: Vec<[u8; FIRST_ID]>,
    endpoints: [Endpoint; 2],
    /// By side: the flows of the connections of its endpoint.
    owners: [BTreeMap<usize, usize>; 2],
    /// From the first host to the second.
    way: FrameWay,
    /// From the second host, from its own address to another.
    ways: BTreeMap<(IpAddr, IpAddr), FrameWay>,
    port: u16,
    start: Time,
    stop: Time,
    calls: FlowCalls,
    /// Flows that may have something to send now.
    ready: Vec<usize>,
    /// Frames of endpoints, not of connections: stateless resets and refusals.
    waiting: VecDeque<(u32, Vec<u8>)>,
    /// The last datagram, and its frame.
    datagram: Vec<u8>,
    frame: Vec<u8>,
    answers: Distribution,
}

impl QuicTransfer {
    /// A transfer from `start` on; from `stop` on nothing is sent. `way`: from the first host to
    /// the second. `mtu`: of their interfaces, bytes. `anchor`: stands for time 0; no result
    /// depends on it.
    ///
    /// # Panics
    /// There are more flows than ports.
    pub fn new(
        model: &TransferModel,
        (way, port, mtu): (FrameWay, u16, u32),
        (start, stop): (Time, Time),
        rng: &mut Rng,
        anchor: Instant,
    ) -> QuicTransfer {
        assert!(model.flows <= u32::from(u16::MAX - FIRST_PORT), "a port for each flow");
        let ip_header = way.ip.header_len() as u32;
        let settings = Settings::new(model.congestion, mtu.saturating_sub(ip_header + UDP));
        let endpoints = [Settings::client(rng), settings.server(rng)];
        let (mut flows, mut first_ids) = (Vec::new(), Vec::new());
        for flow in 0..model.flows {
            flows.push(QuicFlow::new(&model.workload, (start, stop), Rng::new(rng.next_u64())));
            let mut id = [0; FIRST_ID];
            id[..4].copy_from_slice(&flow.to_be_bytes());
            id[4..].chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&rng.next_u64().to_be_bytes()));
            first_ids.push(id);
        }
        QuicTransfer {
            clock: VirtualClock::new(anchor),
            settings,
            ecn: model.ecn,
            flows,
            first_ids,
            endpoints,
            owners: [BTreeMap::new(), BTreeMap::new()],
            way,
            ways: BTreeMap::new(),
            port,
            start,
            stop,
            calls: FlowCalls::at_start(model.flows, start),
            ready: Vec::new(),
            waiting: VecDeque::new(),
            datagram: Vec::with_capacity(2 * QUIC_DATAGRAM_MIN as usize),
            frame: Vec::new(),
            answers: Distribution::growing(),
        }
    }

    /// Returns when it wants to be called next, [`Time::ZERO`] for at once; `None` if it waits for
    /// frames, or for nothing.
    pub fn next_at(&self) -> Option<Time> {
        if !self.ready.is_empty() || !self.waiting.is_empty() {
            return Some(Time::ZERO);
        }
        self.calls.next_at().filter(|next| *next < self.stop)
    }

    /// Does what is due by `now`.
    pub fn advance(&mut self, now: Time) {
        while let Some(flow) = self.calls.due(now) {
            let next = self.flows[flow].next_at(self.clock);
            if next.is_some_and(|next| next > now) {
                self.calls.call(flow, next);
            } else if now < self.stop {
                if self.flows[flow].is_due(now) {
                    self.connect(now, flow);
                }
                self.flows[flow].advance(self.clock, now);
                self.settle(now, flow);
                self.ready.push(flow);
            }
        }
    }

    fn connect(&mut self, now: Time, flow: usize) {
        let config = self.settings.connection(ConnectionId::new(&self.first_ids[flow]));
        let remote = SocketAddr::new(self.way.ip.destination(), self.port);
        let now = self.clock.instant(now);
        // It fails for ports and addresses of zero, and when connection ids run out: of 2⁶⁴.
        let (handle, connection) = self.endpoints[0]
            .connect(now, config, remote, SERVER_NAME)
            .expect("a host has an address, traffic a port");
        self.owners[0].insert(handle.0, flow);
        self.flows[flow].open(TransferSide::From, handle, connection);
    }

    /// Lets a flow do what it can.
    fn settle(&mut self, now: Time, flow: usize) {
        let endpoints = self.endpoints.each_mut();
        let gone = self.flows[flow].settle(self.clock, now, endpoints, &mut self.answers);
        for (owners, handle) in self.owners.iter_mut().zip(gone) {
            if let Some(ConnectionHandle(handle)) = handle {
                owners.remove(&handle);
            }
        }
    }

    /// Writes the next frame that is sent now. Returns by which door, and how many bytes of
    /// [`QuicTransfer::written`] it has.
    pub fn transmit(&mut self, now: Time) -> Option<(u32, usize)> {
        if now >= self.stop {
            self.ready.clear();
            self.waiting.clear();
        }
        if let Some((door, frame)) = self.waiting.pop_front() {
            self.frame = frame;
            return Some((door, self.frame.len()));
        }
        while let Some(&flow) = self.ready.last() {
            let sent = self.flows[flow].transmit(self.clock, now, &mut self.datagram);
            let Some((side, transmit)) = sent else {
                self.ready.pop();
                // It may have given up.
                self.settle(now, flow);
                let next = self.flows[flow].next_at(self.clock);
                self.calls.call(flow, next);
                continue;
            };
            if let Some((door, frame)) = self.framed(side, FIRST_PORT + flow as u16, &transmit) {
                self.frame = frame;
                return Some((door, self.frame.len()));
            }
        }
        None
    }

    /// The frame of the last datagram, and its door; `None` if there is no way to its destination.
    /// `port`: of the client, if the client sends it.
    fn framed(&self, side: TransferSide, port: u16, transmit: &Transmit) -> Option<(u32, Vec<u8>)> {
        let to = transmit.destination;
        let (way, ports) = match side {
            TransferSide::From => (&self.way, [port, to.port()]),
            TransferSide::To => (self.ways.get(&(transmit.src_ip?, to.ip()))?, [self.port, to.port()]),
        };
        // An end whose marks are not reported stops marking by itself (RFC 9000 §13.4.2).
        let ecn = transmit.ecn.filter(|_| self.ecn).map_or(0, |ecn| ecn as u8);
        Some((way.door, datagram(way.ip, ports, ecn, &self.datagram[..transmit.size])))
    }

    /// Returns the frame of the last [`QuicTransfer::transmit`], which had this many bytes.
    pub fn written(&self, len: usize) -> &[u8] {
        &self.frame[..len]
    }

    /// Takes a frame that has arrived at one of the hosts. `way`: from the second host, from its
    /// own address to another; `None` if there is none. `false`: the frame is not of this transfer.
    pub fn deliver(
        &mut self,
        now: Time,
        side: TransferSide,
        frame: &[u8],
        way: &mut dyn FnMut(IpAddr, IpAddr) -> Option<FrameWay>,
    ) -> bool {
        let Some(arrived) = ArrivedDatagram::parse(frame) else { return false };
        let ArrivedDatagram { from, to, ecn, payload } = arrived;
        let is_ours = match side {
            TransferSide::From => {
                let ports = FIRST_PORT..FIRST_PORT + self.flows.len() as u16;
                from == SocketAddr::new(self.way.ip.destination(), self.port) && ports.contains(&to.port())
            }
            TransferSide::To => to.port() == self.port,
        };
        if !is_ours {
            return false;
        }
        if side == TransferSide::To {
            self.remember_way((to.ip(), from.ip()), way);
        }
        let local = (side == TransferSide::To).then_some(to.ip());
        let ecn = EcnCodepoint::from_bits(ecn).filter(|_| self.ecn);
        let (instant, data) = (self.clock.instant(now), BytesMut::from(payload));
        self.datagram.clear();
        let endpoint = &mut self.endpoints[side as usize];
        match endpoint.handle(instant, from, local, ecn, data, &mut self.datagram) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(&flow) = self.owners[side as usize].get(&handle.0) {
                    self.flows[flow].handle(side, event);
                    self.settle(now, flow);
                    self.ready.push(flow);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(transmit)) => self.answer(side, to.port(), &transmit),
            None => {}
        }
        true
    }

    /// Keeps how the second host sends from one of its addresses to another.
    fn remember_way(
        &mut self,
        (own, to): (IpAddr, IpAddr),
        way: &mut dyn FnMut(IpAddr, IpAddr) -> Option<FrameWay>,
    ) {
        if self.ways.contains_key(&(own, to)) {
            return;
        }
        if self.ways.len() >= WAYS_MAX {
            self.ways.clear();
        }
        if let Some(way) = way(own, to) {
            self.ways.insert((own, to), way);
        }
    }

    /// Accepts the connection of a flow that has none yet at the second host.
    fn accept(&mut self, now: Time, incoming: Incoming) {
        let flow = incoming.orig_dst_cid().first_chunk().map(|number| u32::from_be_bytes(*number) as usize);
        let flow = flow.filter(|flow| self.flows.get(*flow).is_some_and(QuicFlow::is_awaited));
        let Some(flow) = flow else {
            self.endpoints[1].ignore(incoming);
            return;
        };
        self.datagram.clear();
        match self.endpoints[1].accept(incoming, self.clock.instant(now), &mut self.datagram, None) {
            Ok((handle, connection)) => {
                self.owners[1].insert(handle.0, flow);
                self.flows[flow].open(TransferSide::To, handle, connection);
                self.settle(now, flow);
                self.ready.push(flow);
            }
            Err(error) => {
                if let Some(response) = error.response {
                    self.answer(TransferSide::To, self.port, &response);
                }
            }
        }
    }

    /// Sends what an endpoint answers without a connection.
    fn answer(&mut self, side: TransferSide, port: u16, transmit: &Transmit) {
        if self.waiting.len() < ANSWERS_MAX {
            self.waiting.extend(self.framed(side, port, transmit));
        }
    }

    /// Whether nothing more happens: all has arrived, or the stop has passed.
    pub fn is_over(&self, now: Time) -> bool {
        now >= self.stop || self.flows.iter().all(QuicFlow::is_over)
    }

    /// Returns the results.
    pub fn report(&self, model: &TransferModel, ends: TransferEnds, now: Time) -> TransferReport {
        let counts: Vec<_> = self.flows.iter().map(QuicFlow::counts).collect();
        let transport = TransportCounts {
            segments: counts.iter().flatten().map(|end| end.segments).sum(),
            retransmitted: counts.iter().map(|[sender, _]| sender.lost).sum(),
            timeouts: None,
            marked: Some(counts.iter().flatten().map(|end| end.marked).sum()),
            rtt_min: counts.iter().flatten().filter_map(|end| end.rtt_min).min(),
        };
        let times = (self.start, self.stop.min(now));
        let programs = self.flows.iter().map(QuicFlow::program);
        TransferReport::new((model, ends), times, programs, transport, &self.answers)
    }

    /// Connections that the endpoints of both hosts have.
    pub fn open_connections(&self) -> [usize; 2] {
        self.endpoints.each_ref().map(Endpoint::open_connections)
    }
}

impl fmt::Debug for QuicTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuicTransfer { flows, way, port, start, stop, .. } = self;
        f.debug_struct("QuicTransfer")
            .field("flows", &flows.len())
            .field("way", way)
            .field("port", port)
            .field("start", start)
            .field("stop", stop)
            .finish_non_exhaustive()
    }
}
