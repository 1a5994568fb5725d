//! Connections of TCP or QUIC between two hosts that no kernel sends: a transfer, and the ways of
//! its hosts.

use crate::host_path::HostPath;
use crate::route::{Fib, Routes};
use fastpath_quic::QuicTransfer;
use fastpath_spec::{NodeId, Topology, TransferTraffic};
use fastpath_traffic::{FrameWay, TcpTransfer, TransferEnds, TransferProtocol, TransferReport, TransferSide};
use fastpath_units::Time;
use fastpath_wire::build::Ip;
use std::net::IpAddr;
use std::time::Instant;

/// A transfer of a topology in the time of the caller.
#[derive(Debug)]
pub struct HostTransfer {
    traffic: TransferTraffic,
    connections: Connections,
    /// The routes of the second host.
    fib: Fib,
}

/// What carries its bytes.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each transfer of a run")]
enum Connections {
    Tcp(TcpTransfer),
    Quic(QuicTransfer),
}

/// How a transfer runs.
#[derive(Clone, Copy, Debug)]
pub struct TransferTerms {
    /// The seed of the run.
    pub seed: u64,
    /// From when on nothing is sent, if it has not ended before.
    pub stop: Option<Time>,
    /// Stands for time 0: QUIC counts in instants. No result depends on it.
    pub anchor: Instant,
}

/// The number of the place where frames of an interface of a host enter.
pub type DoorOf<'d> = &'d dyn Fn(NodeId, usize) -> u32;

impl HostTransfer {
    /// Prepares a transfer over the path from its first host.
    pub fn new(
        (topology, routes): (&Topology, &Routes),
        traffic: &TransferTraffic,
        path: &HostPath,
        TransferTerms { seed, stop, anchor }: TransferTerms,
        door: DoorOf,
    ) -> HostTransfer {
        let nodes = [traffic.from, traffic.to].map(|id| topology.node(id));
        let mtu = nodes.iter().flat_map(|node| &node.interfaces).map(|interface| interface.mtu).min();
        let way = way((traffic.from, door), path, traffic.dscp);
        let times = (traffic.start, stop.unwrap_or(Time::MAX));
        let mut rng = traffic.rng(seed);
        let (model, ways) = (&traffic.model, (way, traffic.port, mtu.unwrap_or(1500)));
        let connections = match model.protocol {
            TransferProtocol::Tcp => Connections::Tcp(TcpTransfer::new(model, ways, times, &mut rng)),
            TransferProtocol::Quic => {
                Connections::Quic(QuicTransfer::new(model, ways, times, &mut rng, anchor))
            }
        };
        HostTransfer { traffic: traffic.clone(), connections, fib: Fib::new(routes.of(traffic.to)) }
    }

    /// The host that opens the connections, and the other one.
    pub fn ends(&self) -> [NodeId; 2] {
        [self.traffic.from, self.traffic.to]
    }

    /// Whether nothing more happens: all has arrived, or the stop has passed.
    pub fn is_over(&self, now: Time) -> bool {
        match &self.connections {
            Connections::Tcp(tcp) => tcp.is_over(now),
            Connections::Quic(quic) => quic.is_over(now),
        }
    }

    /// When it does something next, if nothing arrives; [`Time::ZERO`] for at once.
    pub fn next_at(&self) -> Option<Time> {
        match &self.connections {
            Connections::Tcp(tcp) => tcp.next_at(),
            Connections::Quic(quic) => quic.next_at(),
        }
    }

    /// Does what is due by `now`.
    pub fn advance(&mut self, now: Time) {
        match &mut self.connections {
            Connections::Tcp(tcp) => tcp.advance(now),
            Connections::Quic(quic) => quic.advance(now),
        }
    }

    /// Returns the next frame that is sent now, and the number of the place where it enters.
    pub fn transmit(&mut self, now: Time) -> Option<(u32, &[u8])> {
        let (door, len) = match &mut self.connections {
            Connections::Tcp(tcp) => tcp.transmit(now)?,
            Connections::Quic(quic) => quic.transmit(now)?,
        };
        Some((door, self.written(len)))
    }

    /// Returns the frame of the last [`HostTransfer::transmit`], which had this many bytes.
    ///
    /// # Panics
    /// Nothing was sent.
    pub fn written(&self, len: usize) -> &[u8] {
        match &self.connections {
            Connections::Tcp(tcp) => tcp.written(len),
            Connections::Quic(quic) => quic.written(len),
        }
    }

    /// Takes a frame that has arrived at one of the hosts intact: a host discards others by their
    /// checksum. `false`: it is not of this transfer.
    pub fn deliver(
        &mut self,
        topology: &Topology,
        (now, side): (Time, TransferSide),
        frame: &[u8],
        door: DoorOf,
    ) -> bool {
        let HostTransfer { traffic, connections, fib, .. } = self;
        let mut answering = |own: IpAddr, to: IpAddr| {
            let mut path = HostPath::to_address(topology, fib, traffic.to, to).ok()?;
            path.from.1 = own;
            Some(way((traffic.to, door), &path, traffic.dscp))
        };
        match connections {
            Connections::Tcp(tcp) => tcp.deliver(now, side, frame, &mut answering),
            Connections::Quic(quic) => quic.deliver(now, side, frame, &mut answering),
        }
    }

    /// The results.
    pub fn report(&self, topology: &Topology, now: Time) -> TransferReport {
        let TransferTraffic { name, from, to, model, .. } = &self.traffic;
        let [from, to] = [*from, *to].map(|host| topology.node(host).name.as_str());
        let ends = TransferEnds { name, from, to };
        match &self.connections {
            Connections::Tcp(tcp) => tcp.report(model, ends, now),
            Connections::Quic(quic) => quic.report(model, ends, now),
        }
    }
}

/// Where the frames of a path enter, and their addresses.
fn way((node, door): (NodeId, DoorOf), path: &HostPath, dscp: u8) -> FrameWay {
    let ip = Ip { traffic_class: dscp << 2, ..Ip::between(path.from, path.to) };
    FrameWay { ip, door: door(node, path.interface) }
}
