//! quinn on virtual time: its runtime and its sockets. A program that uses quinn's own types runs
//! unchanged; only its endpoints are made here.
//!
//! With the same seed, and certificates and keys that are the same in each run, all packets have the
//! same times and sizes. (The bytes that TLS draws at random are not the same. A certificate made
//! anew shifts a handshake by a byte or two.)

use crate::runtime::VirtualRuntime;
use crate::{SendError, SocketId};
use fastpath_units::Time;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, Endpoint, EndpointConfig, Runtime, ServerConfig, UdpPoller};
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// Most datagrams that quinn hands over at once, as the kernel takes with `UDP_SEGMENT`.
const SEGMENTS_MAX: usize = 10;

impl VirtualRuntime {
    /// Makes an endpoint of quinn on a socket. The `rng_seed` of `config` decides what is random in
    /// it.
    ///
    /// # Errors
    /// None at present; quinn's signature.
    pub fn quinn_endpoint(
        &self,
        socket: SocketId,
        config: EndpointConfig,
        server: Option<ServerConfig>,
    ) -> io::Result<Endpoint> {
        let socket = Arc::new(QuinnSocket { runtime: self.clone(), socket });
        Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(self.clone()))
    }
}

impl Runtime for VirtualRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer { runtime: self.clone(), at: self.time_of(at), key: None })
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        VirtualRuntime::spawn(self, future);
    }

    fn wrap_udp_socket(&self, _: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let instead =
            "a socket of the kernel has no virtual time: make the endpoint by VirtualRuntime::quinn_endpoint";
        Err(io::Error::new(io::ErrorKind::Unsupported, instead))
    }

    fn now(&self) -> Instant {
        self.instant()
    }
}

#[derive(Debug)]
struct Timer {
    runtime: VirtualRuntime,
    at: Time,
    key: Option<u64>,
}

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        let Timer { runtime, at: time, key } = &mut *self;
        runtime.forget(key);
        *time = runtime.time_of(at);
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Timer { runtime, at, key } = &mut *self;
        runtime.poll_until(*at, key, cx)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.runtime.forget(&mut self.key);
    }
}

#[derive(Debug)]
struct QuinnSocket {
    runtime: VirtualRuntime,
    socket: SocketId,
}

impl AsyncUdpSocket for QuinnSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        self.runtime.with_network(|network| {
            for payload in transmit.contents.chunks(size) {
                match network.send_marked(self.socket, transmit.destination, ecn, payload) {
                    // A probe of the path's MTU is lost where it does not fit, as a socket of the
                    // kernel loses it. So are datagrams to nowhere.
                    Ok(()) | Err(SendError::TooLong { .. }) => {}
                    Err(SendError::NoRoute { .. } | SendError::NoNeighbor { .. }) => {}
                    Err(error @ SendError::PoolFull) => return Err(io::Error::other(error)),
                }
            }
            Ok(())
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut count = 0;
        for (buffer, meta) in bufs.iter_mut().zip(meta) {
            let Poll::Ready(datagram) = self.runtime.poll_receive(self.socket, cx) else { break };
            let len = datagram.payload.len().min(buffer.len());
            buffer[..len].copy_from_slice(&datagram.payload[..len]);
            *meta = RecvMeta {
                addr: datagram.from,
                len,
                stride: len,
                ecn: EcnCodepoint::from_bits(datagram.ecn),
                dst_ip: Some(datagram.to.ip()),
            };
            count += 1;
        }
        if count == 0 { Poll::Pending } else { Poll::Ready(Ok(count)) }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.runtime.with_network(|network| network.address(self.socket)))
    }

    fn max_transmit_segments(&self) -> usize {
        SEGMENTS_MAX
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
