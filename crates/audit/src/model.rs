//! The probes of the audit in virtual time: what the spec implies where no closed form does.
//!
//! ```text
//!  hosts of the lab ── echoes, datagrams ──▶ engine ──▶ observed
//!        │ times of sending
//!        ▼
//!  16 networks of the same spec, each with its own seed ──▶ implied, with its scatter
//! ```
//!
//! The networks run through the whole audit in the time of the engine. So a queue average, a bucket
//! of tokens and a trace are as far as in the lab. What programs of the kernel decide (TCP, kernel
//! routers, controllers) is not modelled. Read first: [`PathModel::run`].

use super::Subject;
use fastpath_lab::Lab;
use fastpath_net::{Delivery, EdgeId, HostPath, Network, Options, Routes};
use fastpath_spec::{NodeId, Topology};
use fastpath_units::Time;
use fastpath_wire::build::Ip;
use fastpath_wire::checksum::{ChecksumStatus, check_transport};
use fastpath_wire::{Headers, MacAddr, NetworkLayer, protocol};
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

/// Number of networks. `judge.rs` has the quantile of Student's t that belongs to it.
pub(crate) const REPLICAS: usize = 16;
/// Seed of the first network.
const SEED: u64 = 0x61_7564_6974;
/// Maximum time from the sending of a probe to its entry into the network. The networks divide it
/// evenly, so that a result that depends on such times has a scatter.
const ENTRY_MAX: Duration = Duration::from_micros(1500);
/// Maximum number of probes of one measurement that are modelled.
const PROBES_MAX: usize = 1 << 21;
/// UDP ports of the datagrams. Queues tell flows apart by them.
const PORTS: (u16, u16) = (40_000, 40_001);
/// UDP or ICMP header, bytes.
const HEADER: usize = 8;

/// The networks, and how probes of each subject enter and leave them.
#[derive(Debug)]
pub(crate) struct PathModel {
    /// When the engine started, on the wall clock.
    zero: Duration,
    networks: Vec<Network>,
    lanes: Vec<Option<Lane>>,
    /// The host and hardware address of each edge.
    edges: Vec<(NodeId, Option<MacAddr>)>,
    /// The number of the next probe.
    next: u64,
}

/// How probes of one subject enter the network, and their replies.
#[derive(Clone, Copy, Debug)]
struct Lane {
    hosts: [NodeId; 2],
    enter: [EdgeId; 2],
    there: HostPath,
    back: HostPath,
}

/// A packet that the audit has sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Probe {
    /// The index of its subject.
    pub(crate) subject: usize,
    /// When it was sent, on the wall clock.
    pub(crate) at: Duration,
    /// Bytes behind its UDP or ICMP header, at least 8.
    pub(crate) payload: usize,
    pub(crate) kind: ProbeKind,
}

/// What is sent, and when it has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbeKind {
    /// An echo request. It has arrived when its reply is back.
    Echo,
    /// A datagram.
    Datagram,
}

/// The results of one measurement in one network: when each probe arrived, on the wall clock of
/// that network's hosts.
pub(crate) type ProbeArrivals = Vec<Option<Duration>>;

impl PathModel {
    /// Creates the networks of a running lab. `None` if the engine has ended.
    pub(crate) fn new(lab: &Lab, routes: &Routes, subjects: &[Subject<'_>]) -> Option<PathModel> {
        let uptime = Duration::from_secs_f64(lab.report()?.uptime_s);
        let zero = super::echo::wall_clock().saturating_sub(uptime);
        Some(PathModel::of(lab.topology(), zero, |network| {
            subjects.iter().map(|subject| lane(network, routes, subject.ends(), subject.address)).collect()
        }))
    }

    fn of(
        topology: &Topology,
        zero: Duration,
        lanes: impl FnOnce(&Network) -> Vec<Option<Lane>>,
    ) -> PathModel {
        let network = |seed| Network::new(topology.clone(), Options::with_seed(seed));
        let networks: Vec<Network> = (SEED..).take(REPLICAS).map(network).collect();
        let hardware = |node: NodeId, interface: usize| topology.node(node).interfaces[interface].mac;
        let edges = networks[0].edges().map(|edge| (edge.node, hardware(edge.node, edge.interface)));
        let (edges, lanes) = (edges.collect(), lanes(&networks[0]));
        PathModel { zero, networks, lanes, edges, next: 0 }
    }

    /// Returns whether packets of a subject can be made as the kernel of its host makes them.
    pub(crate) fn covers(&self, subject: usize) -> bool {
        self.lanes[subject].is_some()
    }

    /// Sends the probes through all networks, in order of time, and waits until `until`. Returns
    /// the probes in that order and, for each network, their arrivals. `None` if there are more
    /// than are modelled.
    pub(crate) fn run(
        &mut self,
        mut probes: Vec<Probe>,
        until: Duration,
    ) -> Option<(Vec<Probe>, Vec<ProbeArrivals>)> {
        if probes.len() > PROBES_MAX {
            return None;
        }
        probes.retain(|probe| self.lanes[probe.subject].is_some());
        probes.sort_by_key(|probe| probe.at);
        let first = self.next;
        self.next += probes.len() as u64;
        let (zero, lanes, edges) = (self.zero, &self.lanes, &self.edges);
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let share = REPLICAS.div_ceil(workers.min(REPLICAS));
        let probes_ref = &probes;
        let arrivals = thread::scope(|scope| {
            let running: Vec<_> = (self.networks.chunks_mut(share).zip((0..).step_by(share)))
                .map(|(networks, start)| {
                    scope.spawn(move || {
                        let run = |(network, index): (&mut Network, u32)| {
                            let entry = ENTRY_MAX * index / REPLICAS as u32;
                            let zero = zero.saturating_sub(entry);
                            let arrivals = vec![None; probes_ref.len()];
                            ModelRun { network, lanes, edges, probes: probes_ref, first, zero, arrivals }
                                .finish(until)
                        };
                        networks.iter_mut().zip(start..).map(run).collect::<Vec<ProbeArrivals>>()
                    })
                })
                .collect();
            let joined = running
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.flatten().collect()
        });
        Some((probes, arrivals))
    }
}

/// Finds how packets of a pair enter the network. `None` if an interface has no hardware address
/// yet, or the kernel would choose another address.
fn lane(network: &Network, routes: &Routes, hosts: [NodeId; 2], address: IpAddr) -> Option<Lane> {
    let [from, to] = hosts;
    let topology = network.topology();
    let there = HostPath::find(topology, routes, from, to).filter(|path| path.to.1 == address)?;
    let back = HostPath::find(topology, routes, to, from)?;
    let enter = [network.edge_of(from, there.interface)?, network.edge_of(to, back.interface)?];
    Some(Lane { hosts, enter, there, back })
}

/// One measurement in one network.
struct ModelRun<'m> {
    network: &'m mut Network,
    lanes: &'m [Option<Lane>],
    edges: &'m [(NodeId, Option<MacAddr>)],
    probes: &'m [Probe],
    /// The number of the first probe.
    first: u64,
    /// When this network started, on the wall clock.
    zero: Duration,
    arrivals: ProbeArrivals,
}

impl ModelRun<'_> {
    fn finish(mut self, until: Duration) -> ProbeArrivals {
        for (number, &probe) in (self.first..).zip(self.probes) {
            let at = self.time(probe.at);
            self.deliver_until(at);
            let Some(lane) = self.lanes[probe.subject] else { continue };
            let mut payload = vec![0; probe.payload.max(HEADER)];
            payload[..8].copy_from_slice(&number.to_be_bytes());
            let ip = Ip::between(lane.there.from, lane.there.to);
            let frame = match probe.kind {
                ProbeKind::Echo => ip.echo_request(probe.subject as u16, number as u16, &payload),
                ProbeKind::Datagram => ip.udp(PORTS.0, PORTS.1, &payload),
            };
            self.push(at, lane.enter[0], &frame);
        }
        self.deliver_until(self.time(until));
        self.arrivals
    }

    fn time(&self, wall: Duration) -> Time {
        let nanoseconds = u64::try_from(wall.saturating_sub(self.zero).as_nanos()).unwrap_or(u64::MAX);
        Time::from_ps(nanoseconds.saturating_mul(1000))
    }

    /// A frame for which there is no memory is lost, as in the engine.
    fn push(&mut self, at: Time, edge: EdgeId, frame: &[u8]) {
        if let Some(frame) = self.network.pool_mut().insert(frame) {
            self.network.push(at, edge, frame);
        }
    }

    fn deliver_until(&mut self, until: Time) {
        while let Some(now) = self.network.next_at().filter(|&at| at <= until) {
            while let Some(delivery) = self.network.pop(now) {
                self.deliver(delivery);
            }
        }
    }

    fn deliver(&mut self, Delivery { at, edge, frame }: Delivery) {
        let bytes = self.network.pool().bytes(&frame);
        let headers = Headers::parse(bytes);
        let received = self.received(edge, bytes, &headers);
        let reply = match received {
            Some(ReceivedProbes::Request { lane, number }) => {
                // As the kernel of the host answers: by its own route.
                let (own, to) = headers.addresses().map(|(src, dst)| (dst, src)).expect("a request has them");
                let ip = Ip::between((lane.back.from.0, own), (lane.back.to.0, to));
                let message = headers.packet_end().zip(message_start(&headers));
                let word = message.map_or(&[0; 4][..], |(_, start)| &bytes[start + 4..start + 8]);
                let body = message.map_or(&[][..], |(end, start)| &bytes[start + HEADER..end]);
                let [id, seq] = [0, 2].map(|at| u16::from_be_bytes([word[at], word[at + 1]]));
                debug_assert!(body.starts_with(&number.to_be_bytes()));
                Some((lane.enter[1], ip.echo_reply(id, seq, body)))
            }
            _ => None,
        };
        self.network.pool_mut().free(frame);
        if let Some((edge, reply)) = reply {
            self.push(at, edge, &reply);
        }
        if let Some(ReceivedProbes::Arrival { index }) = received {
            let wall = self.zero + Duration::from_nanos(at.as_ps() / 1000);
            self.arrivals[index].get_or_insert(wall);
        }
    }

    /// What a frame is to the host that it reached. The host discards frames for other stations,
    /// and those whose checksums are wrong.
    fn received(&self, edge: EdgeId, bytes: &[u8], headers: &Headers) -> Option<ReceivedProbes> {
        let (host, hardware) = self.edges[edge.0 as usize];
        let is_intact = hardware.is_none_or(|own| own == headers.dst)
            && headers.ipv4_checksum_ok(bytes) != Some(false)
            && check_transport(bytes, headers) == ChecksumStatus::Good;
        let start = message_start(headers).filter(|_| is_intact)?;
        let number = bytes.get(start + HEADER..start + HEADER + 8)?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let probe = self.probes.get(index)?;
        let lane = self.lanes[probe.subject]?;
        let is_reply = matches!(bytes[start], 0 | 129);
        match probe.kind {
            ProbeKind::Datagram if host == lane.hosts[1] => Some(ReceivedProbes::Arrival { index }),
            ProbeKind::Echo if host == lane.hosts[1] && !is_reply => {
                Some(ReceivedProbes::Request { lane, number })
            }
            ProbeKind::Echo if host == lane.hosts[0] && is_reply => Some(ReceivedProbes::Arrival { index }),
            _ => None,
        }
    }
}

/// What a host does with a frame.
enum ReceivedProbes {
    Request { lane: Lane, number: u64 },
    Arrival { index: usize },
}

/// Returns the offset of a UDP, ICMP or ICMPv6 header.
fn message_start(headers: &Headers) -> Option<usize> {
    let (carried, start) = match headers.network {
        NetworkLayer::Ipv4(ip) => (ip.protocol, ip.payload_offset()),
        NetworkLayer::Ipv6(ip) => (ip.protocol, ip.payload_offset),
        _ => return None,
    };
    [protocol::UDP, protocol::ICMP, protocol::ICMPV6].contains(&carried).then_some(start)
}

/// What the networks give for one subject: a value for each network.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Modelled {
    /// Quartiles of the round-trip times, milliseconds. A network without a reply has none.
    pub(crate) rtts_ms: Vec<[f64; 3]>,
    /// Packets lost.
    pub(crate) lost: Vec<f64>,
    /// Datagrams per second of a saturation.
    pub(crate) rates: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{between, pipe};
    use fastpath_link::{Chance, CorruptSpec, Limit, LossSpec, PipeSpec, PolicerSpec, QueueSpec};
    use fastpath_units::{Bytes, Probability};

    fn model(pipe: PipeSpec) -> PathModel {
        let mut topology = between(pipe);
        for (number, node) in (1..).zip(&mut topology.nodes) {
            node.interfaces[0].mac = Some(MacAddr::from_index(number));
        }
        let routes = Routes::compute(&topology);
        let [a, b] = ["a", "b"].map(|name| topology.node_named(name).unwrap());
        let address = topology.node(b).interfaces[0].addresses[0].addr();
        PathModel::of(&topology, Duration::from_secs(100), |network| {
            vec![lane(network, &routes, [a, b], address)]
        })
    }

    fn probes(kind: ProbeKind, count: u32, gap_us: u64, payload: usize) -> Vec<Probe> {
        let at = |i| Duration::from_secs(101) + Duration::from_micros(gap_us) * i;
        (0..count).map(|i| Probe { subject: 0, at: at(i), payload, kind }).collect()
    }

    #[test]
    fn echoes_return_after_two_crossings_and_corrupted_ones_never() {
        let mut plain = model(pipe("1Mbit", "5ms", "0%"));
        let (sent, arrivals) =
            plain.run(probes(ProbeKind::Echo, 5, 20_000, 56), Duration::from_secs(102)).unwrap();
        // 98 bytes at 1 Mbit/s and 5 ms, twice; the first network has no time of entry.
        let rtt = arrivals[0][4].unwrap() - sent[4].at;
        assert_eq!(rtt, Duration::from_nanos(2 * 5_784_000));
        assert!(arrivals.iter().flatten().all(Option::is_some) && arrivals.len() == REPLICAS);
        let corrupt = Some(CorruptSpec::Packets(Probability::ALWAYS.into()));
        let mut broken = model(PipeSpec { corrupt, ..pipe("1Mbit", "5ms", "0%") });
        let (_, arrivals) =
            broken.run(probes(ProbeKind::Datagram, 50, 2000, 64), Duration::from_secs(102)).unwrap();
        // A flipped bit of the source's hardware address is not noticed.
        assert!(arrivals.iter().flatten().flatten().count() <= 50 * REPLICAS / 8);
    }

    #[test]
    fn a_policer_passes_its_rate_and_a_second_measurement_finds_its_bucket_as_the_first_left_it() {
        let policer = PolicerSpec {
            rate: "1Mbit".parse().unwrap(),
            burst: Bytes(10 * 1042),
            limit: Limit::Packets(50),
        };
        let mut model =
            model(PipeSpec { rate: None, queue: QueueSpec::Policer(policer), ..pipe("1Mbit", "0ms", "0%") });
        // 1042-byte frames at 2 Mbit/s for a second: half of 240, and a full bucket of 10.
        let passed = |arrivals: &[ProbeArrivals]| arrivals[0].iter().flatten().count();
        let (_, arrivals) =
            model.run(probes(ProbeKind::Datagram, 240, 4168, 1000), Duration::from_secs(102)).unwrap();
        assert!((129..=131).contains(&passed(&arrivals)), "{}", passed(&arrivals));
        let later = |probe: Probe| Probe { at: probe.at + Duration::from_secs(1), ..probe };
        let again = probes(ProbeKind::Datagram, 240, 4168, 1000).into_iter().map(later).collect();
        let (_, arrivals) = model.run(again, Duration::from_secs(103)).unwrap();
        assert!((119..=122).contains(&passed(&arrivals)), "{}", passed(&arrivals));
    }

    #[test]
    fn correlated_losses_are_those_of_netem() {
        let chance = |p: &str| p.parse::<Probability>().unwrap();
        let loss = Chance { probability: chance("10%"), correlation: chance("25%") };
        let mut model = model(PipeSpec { loss: LossSpec::Correlated(loss), ..pipe("100Mbit", "0ms", "0%") });
        let (sent, arrivals) =
            model.run(probes(ProbeKind::Datagram, 5000, 50, 64), Duration::from_secs(102)).unwrap();
        let lost = arrivals.iter().flatten().filter(|arrival| arrival.is_none()).count() as f64;
        let share = lost / (sent.len() * REPLICAS) as f64;
        assert!((share - loss.share()).abs() < 0.002, "{share}, implied {}", loss.share());
    }
}
