//! What a network asks of a machine: counts per packet on the shortest paths of its traffic.

use fastpath_link::{PipeSpec, QueueSpec};
use fastpath_model::capacity::{ACKS, Demand, PacketShape};
use fastpath_model::scaling::PartLoad;
use fastpath_net::data_path::{DataPath, DataPathNeeds, DataPathPlan};
use fastpath_net::{Partition, previous_hops};
use fastpath_spec::{DataPathChoice, NodeId, Topology, queue};
use fastpath_units::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Frames that all ports of a saturated run make between two looks at what is due.
pub(super) const FRAMES_PER_LOOK: usize = 256;

/// Bytes of the headers of Ethernet, IPv4 and UDP.
const HEADERS: f64 = 42.0;
/// Length of the frames of a network without traffic, and of a bulk TCP connection, bytes.
const FRAME: f64 = 1514.0;

/// How many workers run a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EngineWorkers {
    /// As `fastpath run` and `fastpath lab` choose.
    #[default]
    Auto,
    /// At most this many.
    AtMost(NonZeroUsize),
}

/// How a network is run.
#[derive(Clone, PartialEq, Debug)]
pub struct DemandOptions {
    /// The kind of ports in the costs: `memory`, `tap`.
    pub port: String,
    /// How many workers run it.
    pub workers: EngineWorkers,
    /// Where links run.
    pub data_path: DataPathChoice,
    /// Whether a per-packet log is written.
    pub has_log: bool,
    /// Bytes that frames may take.
    pub memory_limit: f64,
    /// The largest lateness that a run allows, in microseconds; infinite where none is given.
    pub tolerance_us: f64,
    /// Length of frames where the network has no traffic, bytes without FCS.
    pub frame_bytes: Option<f64>,
    /// Cores that this process may use.
    pub cores: usize,
}

/// Why a network has no demand.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemandError {
    /// There are fewer than two hosts.
    #[error("a network with fewer than two hosts carries nothing")]
    NoHosts,
    /// No host reaches another one.
    #[error("no host of the network reaches the one that it sends to")]
    NoPath,
    /// No frame passes the engine.
    #[error(
        "all links that carry traffic run in the kernel: the engine is not a limit; write --data-path user to ask about it"
    )]
    InKernel,
}

/// Packets from one host to another.
#[derive(Clone, Copy, PartialEq, Debug)]
struct OfferedFlow {
    from: NodeId,
    to: NodeId,
    per_s: f64,
    bytes: f64,
}

/// What the flows add up to.
#[derive(Default)]
struct Sums {
    weight: f64,
    shape: PacketShape,
    /// By pipe that carries something: bytes per second.
    pipes: BTreeMap<(u32, usize), f64>,
    senders: std::collections::BTreeSet<u32>,
    tcp: Option<(f64, PacketShape)>,
}

/// Returns what a network asks of a machine. Without traffic in its description each host sends to
/// one at the other side, at no given rate.
///
/// # Errors
/// [`DemandError`] if no packet passes the engine.
pub fn demand(topology: &Topology, options: &DemandOptions) -> Result<Demand, DemandError> {
    let given = given_flows(topology);
    let is_given = !given.is_empty();
    let flows = if is_given { given } else { usual_flows(topology, options.frame_bytes.unwrap_or(FRAME))? };
    let in_kernel = kernel_links(topology, options);
    let sums = Sums::of(topology, &flows, &in_kernel);
    if sums.weight == 0.0 {
        let any = Sums::of(topology, &flows, &[]);
        return Err(if any.weight > 0.0 { DemandError::InKernel } else { DemandError::NoPath });
    }
    let mut packet = sums.mean(options);
    packet.bulk = if is_given { bulk_share(&flows, topology) } else { 0.0 };
    packet.spread = packet.pipes * (sums.pipes.len().max(2) as f64 / 2.0).log2();
    packet.calls = sums.senders.len() as f64 / FRAMES_PER_LOOK as f64;
    let pipe = |&(link, index): &(u32, usize)| &topology.links[link as usize].pipes[index];
    let load = |per_s: f64| if is_given { per_s } else { 0.0 };
    let held = sums.pipes.iter().map(|(at, bytes)| load(*bytes) * pipe(at).delay.as_secs_f64()).sum();
    let queued = sums.pipes.keys().map(|at| queue_bytes(pipe(at), options.memory_limit)).sum::<f64>();
    let tcp = sums.tcp.clone();
    let (tcp_bottleneck_bps, tcp_packet) = tcp.unwrap_or_else(|| (f64::INFINITY, packet.clone()));
    let tcp_packet = PacketShape { port: options.port.clone(), ..tcp_packet };
    Ok(Demand {
        packets_per_second: load(sums.weight),
        packet,
        parts: parts(topology, options),
        cores: options.cores,
        links: topology.links.len(),
        ports: topology.hosts().map(|(_, host)| host.interfaces.len()).sum(),
        held_bytes: held,
        queue_bytes_max: queued.min(options.memory_limit),
        memory_limit: options.memory_limit,
        tolerance_us: options.tolerance_us,
        lab_hosts: lab_hosts(topology, options),
        tcp_bottleneck_bps,
        tcp_packet,
    })
}

/// Hosts that a lab makes. Between ports in memory there are none.
fn lab_hosts(topology: &Topology, options: &DemandOptions) -> usize {
    let is_made = |id: NodeId| topology.node(id).kind.port_name().is_none();
    if options.port == "tap" { topology.hosts().filter(|(id, _)| is_made(*id)).count() } else { 0 }
}

/// The traffic of a description. A bulk connection sends at the rate of its slowest link, which it
/// shares with the other connections of which it is the slowest; without one its rate is not known,
/// and it is left out.
fn given_flows(topology: &Topology) -> Vec<OfferedFlow> {
    let datagrams = topology.traffic.iter().map(|traffic| {
        let size = f64::from(traffic.model.size.max(1));
        let per_s = traffic.model.mean_bps() / 8.0 / size;
        OfferedFlow { from: traffic.from, to: traffic.to, per_s, bytes: size + HEADERS }
    });
    let transfers = given_transfers(topology).into_iter().flatten();
    datagrams.chain(transfers).filter(|flow| flow.per_s > 0.0).collect()
}

/// The data and the acknowledgements of each bulk connection; none per second without a rate on its
/// way.
fn given_transfers(topology: &Topology) -> Vec<[OfferedFlow; 2]> {
    let slowest: Vec<_> =
        topology.transfers.iter().map(|transfer| slowest(topology, transfer.from, transfer.to)).collect();
    let sharing = |pipe: (u32, usize)| slowest.iter().flatten().filter(|(other, _)| *other == pipe).count();
    let transfers = topology.transfers.iter().zip(&slowest).map(|(transfer, slowest)| {
        let per_s = slowest.map_or(0.0, |(pipe, bps)| bps / sharing(pipe) as f64 / 8.0 / FRAME);
        let [from, to] = [transfer.from, transfer.to];
        [
            OfferedFlow { from, to, per_s, bytes: FRAME },
            OfferedFlow { from: to, to: from, per_s: ACKS * per_s, bytes: 66.0 },
        ]
    });
    transfers.collect()
}

/// Which share of the packets of given flows is of bulk connections. Those of datagrams come first.
fn bulk_share(flows: &[OfferedFlow], topology: &Topology) -> f64 {
    let sum = |flows: &[OfferedFlow]| flows.iter().map(|flow| flow.per_s).sum::<f64>();
    let datagrams = topology.traffic.iter().filter(|traffic| traffic.model.mean_bps() > 0.0).count();
    sum(&flows[datagrams.min(flows.len())..]) / sum(flows).max(1e-12)
}

/// Each host sends to the one that is half of all hosts further.
fn usual_flows(topology: &Topology, bytes: f64) -> Result<Vec<OfferedFlow>, DemandError> {
    let hosts: Vec<NodeId> = topology.hosts().map(|(id, _)| id).collect();
    if hosts.len() < 2 {
        return Err(DemandError::NoHosts);
    }
    let flow = |(place, &from): (usize, &NodeId)| {
        let to = hosts[(place + hosts.len() / 2) % hosts.len()];
        OfferedFlow { from, to, per_s: 1.0, bytes }
    };
    Ok(hosts.iter().enumerate().map(flow).collect())
}

/// By link: whether it runs in the kernel, in a lab.
fn kernel_links(topology: &Topology, options: &DemandOptions) -> Vec<bool> {
    if options.port != "tap" {
        return Vec::new();
    }
    let needs = DataPathNeeds { choice: options.data_path, has_flows: false, has_log: options.has_log };
    let plan = DataPathPlan::of(&topology.clone().with_namespaces(), needs);
    plan.links.iter().map(|path| matches!(path, DataPath::Kernel(_))).collect()
}

/// The links on a shortest path, from its end to its start, each with the end at which it is
/// entered; `None` without one.
fn path(
    back: &[Option<(u32, NodeId)>],
    topology: &Topology,
    from: NodeId,
    to: NodeId,
) -> Option<Vec<(u32, usize)>> {
    let (mut at, mut found) = (to, Vec::new());
    while at != from {
        let (link, before) = back[at.0 as usize]?;
        let end = usize::from(topology.links[link as usize].ends[0].0 != before);
        found.push((link, end));
        at = before;
    }
    Some(found)
}

/// The pipe with the lowest rate on the way, and that rate in bits per second; `None` without a
/// rate.
fn slowest(topology: &Topology, from: NodeId, to: NodeId) -> Option<((u32, usize), f64)> {
    let path = path(&previous_hops(topology, from), topology, from, to)?;
    let rate = |pipe: (u32, usize)| {
        let rate = topology.links[pipe.0 as usize].pipes[pipe.1].rate?;
        Some((pipe, rate.as_bps() as f64))
    };
    path.into_iter().filter_map(rate).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The lowest rate on the way, bits per second, and what a full packet passes in the engine.
fn bulk_way(topology: &Topology, [from, to]: [NodeId; 2], in_kernel: &[bool]) -> Option<(f64, PacketShape)> {
    let path = path(&previous_hops(topology, from), topology, from, to)?;
    let rate = |&(link, end): &(u32, usize)| {
        topology.links[link as usize].pipes[end].rate.map_or(f64::INFINITY, |rate| rate.as_bps() as f64)
    };
    let slowest = path.iter().map(rate).fold(f64::INFINITY, f64::min);
    let mut sums = Sums::default();
    sums.add(topology, &OfferedFlow { from, to, per_s: 1.0, bytes: FRAME }, &path, in_kernel);
    let mut shape = sums.shape;
    (shape.bytes, shape.bulk) = (FRAME, 1.0);
    shape.spread = shape.pipes * (sums.pipes.len().max(2) as f64 / 2.0).log2();
    // Data goes one way, acknowledgements the other.
    shape.calls = 2.0 / FRAMES_PER_LOOK as f64;
    Some((slowest, shape))
}

impl Sums {
    fn of(topology: &Topology, flows: &[OfferedFlow], in_kernel: &[bool]) -> Sums {
        let mut sums = Sums::default();
        let mut by_sender: BTreeMap<NodeId, Vec<&OfferedFlow>> = BTreeMap::new();
        flows.iter().for_each(|flow| by_sender.entry(flow.from).or_default().push(flow));
        for (from, flows) in by_sender {
            let back = previous_hops(topology, from);
            for flow in flows {
                if let Some(path) = path(&back, topology, from, flow.to) {
                    sums.add(topology, flow, &path, in_kernel);
                }
            }
        }
        let of_transfer = topology.transfers.iter().map(|transfer| (transfer.from, transfer.to));
        let of_flow = flows.iter().map(|flow| (flow.from, flow.to));
        sums.tcp =
            of_transfer.chain(of_flow).find_map(|(from, to)| bulk_way(topology, [from, to], in_kernel));
        sums
    }

    fn add(&mut self, topology: &Topology, flow: &OfferedFlow, path: &[(u32, usize)], in_kernel: &[bool]) {
        let is_user = |link: u32| !in_kernel.get(link as usize).copied().unwrap_or(false);
        let own: Vec<&(u32, usize)> = path.iter().filter(|(link, _)| is_user(*link)).collect();
        if own.is_empty() {
            return;
        }
        let OfferedFlow { per_s, bytes, from, .. } = *flow;
        self.weight += per_s;
        self.shape.bytes += per_s * bytes;
        self.shape.pipes += per_s * own.len() as f64;
        self.shape.routers += per_s * own.len().saturating_sub(1) as f64;
        self.senders.insert(from.0);
        for &&(link, end) in &own {
            let pipe = &topology.links[link as usize].pipes[end];
            if let Some(kind) = discipline(&pipe.queue) {
                *self.shape.queues.entry(kind).or_default() += per_s;
            }
            *self.pipes.entry((link, end)).or_default() += per_s * bytes;
        }
    }

    /// The counts per packet.
    fn mean(&self, options: &DemandOptions) -> PacketShape {
        let PacketShape { bytes, pipes, routers, queues, .. } = &self.shape;
        let mean = |sum: f64| sum / self.weight;
        let log = if options.has_log { mean(*pipes) } else { 0.0 };
        PacketShape {
            port: options.port.clone(),
            bytes: mean(*bytes),
            pipes: mean(*pipes),
            routers: mean(*routers),
            log,
            queues: queues.iter().map(|(kind, sum)| (kind.clone(), mean(*sum))).collect(),
            ..PacketShape::default()
        }
    }
}

/// The name of a discipline in the costs; `None` for drop-tail.
fn discipline(spec: &QueueSpec) -> Option<String> {
    match spec {
        QueueSpec::DropTail(_) | QueueSpec::DropTailTime(_) => None,
        QueueSpec::Sojourn(_) => Some("sojourn".to_owned()),
        other => Some(queue::write(other).get("kind")?.as_str()?.to_owned()),
    }
}

/// The bytes of the frames that a full queue holds: its limit, or all memory without one.
fn queue_bytes(pipe: &PipeSpec, memory: f64) -> f64 {
    let written = queue::write(&pipe.queue);
    let limit = match &written {
        Value::Object(keys) => {
            keys.get("limit").or_else(|| keys.get("packets")).or_else(|| keys.get("bytes"))
        }
        other => Some(other),
    };
    let Some(limit) = limit else { return memory };
    let text = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
    let packets = text.trim_end_matches('p').parse::<f64>().ok().map(|packets| packets * FRAME);
    let bytes = || text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
    packets.or_else(bytes).unwrap_or(memory).min(memory)
}

/// The load of each worker.
fn parts(topology: &Topology, options: &DemandOptions) -> Vec<PartLoad> {
    let one = vec![PartLoad { work: 1.0, crossings: 0.0 }];
    let (count, is_asked) = match options.workers {
        EngineWorkers::AtMost(count) => (count, true),
        // As the engine: half of the cores, and a lab is cut on request only.
        EngineWorkers::Auto => (NonZeroUsize::new(options.cores / 2).unwrap_or(NonZeroUsize::MIN), false),
    };
    let is_whole = !is_asked && lab_hosts(topology, options) > 0;
    if count.get() == 1 || is_whole {
        return one;
    }
    let cut = Partition::with_lookahead(topology, count, Partition::REAL_TIME_LOOKAHEAD);
    if cut.count() == 1 || !is_asked && cut.expected_speedup() < Partition::PAYS_OFF {
        return one;
    }
    cut.loads().into_iter().map(|[work, crossings]| PartLoad { work, crossings }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(port: &str) -> DemandOptions {
        DemandOptions {
            port: port.to_owned(),
            workers: EngineWorkers::AtMost(NonZeroUsize::MIN),
            data_path: DataPathChoice::Auto,
            has_log: false,
            memory_limit: 1e9,
            tolerance_us: 1000.0,
            frame_bytes: None,
            cores: 2,
        }
    }

    const ROW: &str = "[host.a]\n[host.b]\n[router.r]\n\
        [[link]]\nbetween = ['a', 'r']\nrate = '100Mbit'\ndelay = '10ms'\nqueue = '50p'\n\
        [[link]]\nbetween = ['r', 'b']\nrate = '8Mbit'\ndelay = '5ms'\nqueue = { kind = 'codel', limit = '20p' }\n";

    #[test]
    fn connections_over_one_link_share_its_rate() {
        let one = "[[traffic]]\nkind = 'tcp'\nfrom = 'a'\nto = 'b'\n";
        let at = |count: usize| {
            let topology = fastpath_spec::parse(&format!("{ROW}{}", one.repeat(count))).unwrap().0;
            demand(&topology, &options("memory")).unwrap().packets_per_second
        };
        let full = (1.0 + ACKS) * 8e6 / 8.0 / FRAME;
        assert!((at(1) - full).abs() < 1.0 && (at(50) - full).abs() < 1.0, "{} {}", at(1), at(50));
    }

    #[test]
    fn the_counts_of_a_packet_follow_its_path() {
        let text = format!("{ROW}[[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '4Mbit'\nsize = 958\n");
        let topology = fastpath_spec::parse(&text).unwrap().0;
        let found = demand(&topology, &options("memory")).unwrap();
        let per_s = 4e6 / 8.0 / 958.0;
        assert!((found.packets_per_second - per_s).abs() < 1.0, "{found:?}");
        let PacketShape { bytes, pipes, routers, log, queues, .. } = &found.packet;
        assert_eq!((*bytes, *pipes, *routers, *log), (1000.0, 2.0, 1.0, 0.0));
        assert_eq!(queues, &BTreeMap::from([("codel".to_owned(), 1.0)]));
        assert!((found.held_bytes - per_s * 1000.0 * 0.015).abs() < 1.0, "{found:?}");
        assert_eq!(found.queue_bytes_max, 70.0 * FRAME);
        assert_eq!((found.tcp_bottleneck_bps, found.tcp_packet.pipes), (8e6, 2.0));
        assert_eq!((found.links, found.ports, found.lab_hosts), (2, 2, 0));
        let logged = DemandOptions { has_log: true, ..options("memory") };
        assert_eq!(demand(&topology, &logged).unwrap().packet.log, 2.0);
        assert_eq!(demand(&topology, &options("tap")).unwrap().lab_hosts, 2);
    }

    #[test]
    fn without_traffic_hosts_send_to_the_other_side_at_no_given_rate() {
        let topology = fastpath_spec::parse(ROW).unwrap().0;
        let found = demand(&topology, &options("memory")).unwrap();
        assert_eq!((found.packets_per_second, found.held_bytes), (0.0, 0.0));
        assert_eq!((found.packet.pipes, found.packet.bytes), (2.0, FRAME));
        let alone = fastpath_spec::parse("[host.a]\n").unwrap_or_else(|_| panic!()).0;
        assert_eq!(demand(&alone, &options("memory")), Err(DemandError::NoHosts));
    }

    #[test]
    fn a_transfer_asks_for_the_rate_of_its_slowest_link() {
        let text = format!("{ROW}[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'tcp'\n");
        let found = demand(&fastpath_spec::parse(&text).unwrap().0, &options("memory")).unwrap();
        assert!((found.packets_per_second - 1.5 * 8e6 / 8.0 / FRAME).abs() < 1.0, "{found:?}");
        assert_eq!(found.packet.bulk, 1.0);
    }

    #[test]
    fn links_of_a_lab_that_hold_nothing_ask_nothing_of_the_engine() {
        let text = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";
        let topology = fastpath_spec::parse(text).unwrap().0;
        assert_eq!(demand(&topology, &options("tap")), Err(DemandError::InKernel));
        assert!(
            demand(&topology, &DemandOptions { data_path: DataPathChoice::User, ..options("tap") }).is_ok()
        );
    }
}
