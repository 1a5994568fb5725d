//! Measures the emulator's time per packet. Between the two sides of a memory port, each packet is
//! classified to its link by source address and passes loss, queue, rate and delay. The ceiling is
//! a forwarder without emulation on the same port and core, with the same burst. On memory ports
//! the rounds of emulator and forwarder alternate, so that a host stall affects both.

use super::pipeline::{Cost, Device, End, Meter, Source, Stage, on_cores, rounds, send};
use super::rate::{self, Hunt};
use super::search::{Found, SearchError};
use super::{DutPort, Progress};
use fastpath_engine::Clock;
use fastpath_engine::port::{BURST, Burst, Memory, MemoryEnd, Port};
use fastpath_link::{Limit, PipeSpec, QueueSpec};
use fastpath_net::{Delivery, EdgeId, Frame, FramePool, Network, Options};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::{Duration, Probability, Rate, Time};
use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hint::black_box;

/// Fewest bytes of each ring of the port.
const RING: usize = 1 << 20;
/// Total rate of all links, bits per second.
const TOTAL_BPS: u64 = 200_000_000_000;
/// Delay of a link.
const DELAY: Duration = Duration::from_us(10);
/// Loss probability of a full link.
const LOSS: f64 = 0.001;
/// Queue limit of a link, packets.
const QUEUE_PACKETS: u32 = 1000;
/// Fewest links in a memory measurement. Fewer do not stand out from the page granularity.
const WEIGHED_LINKS: usize = 50_000;
/// Destination address of every frame.
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Position of the source address in a frame.
const SOURCE: std::ops::Range<usize> = 6..12;

/// Parameters of an emulation measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EmulationQuestion {
    /// Frame size, bytes, at least 14.
    pub size: usize,
    /// Number of links. Each has two hosts.
    pub links: usize,
    /// Frames per arriving burst.
    pub burst: usize,
    /// Packets timed on each core. At least two per link of the core are timed.
    pub packets: u64,
    /// Seed of the random losses.
    pub seed: u64,
    /// Impairments of the links.
    pub link: LinkKind,
    /// Number of cores. Each has its own port and a share of the links. There must be at least as
    /// many links as cores.
    pub cores: usize,
}

/// The impairments of the links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// Rate, queue, delay and loss.
    #[default]
    Full,
    /// Rate, queue and delay.
    Lossless,
    /// No impairment: unlimited rate, no delay, no loss.
    Ideal,
}

/// The result of an emulation measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Emulation {
    /// Packets per second through the emulator, total of all cores.
    pub packets_per_second: f64,
    /// Packets per second through the forwarder without emulation, total of the same cores.
    pub ceiling_packets_per_second: f64,
    /// `packets_per_second` divided by `ceiling_packets_per_second`.
    pub share_of_ceiling: f64,
    /// Median time per packet, ns.
    #[serde(rename = "T_ns")]
    pub t_ns: f64,
    /// Memory of the running network per idle link (two pipes), bytes.
    pub bytes_per_link: f64,
    /// Memory of the topology description (names, addresses) per link, bytes.
    pub description_bytes_per_link: f64,
    /// Time per packet by stage.
    pub stages: Vec<Stage>,
    /// Sum of the stages minus the total time, % of the total time.
    pub stages_minus_whole_pct: f64,
    /// Number of timed bursts.
    pub rounds: usize,
    /// Packets that entered the network.
    pub entered: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets still in the network at the end.
    pub held: u64,
}

/// Memory per idle link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkWeight {
    /// Memory of the running network (two pipes), bytes.
    pub running: f64,
    /// Memory of the topology description (names, addresses), bytes.
    pub description: f64,
}

/// Measures the emulator on the first cores. Each core has its own port and a share of the links.
/// The result contains `weight` unchanged.
pub fn emulate(question: &EmulationQuestion, weight: LinkWeight, progress: Progress<'_>) -> Emulation {
    let cores = on_cores(question.cores, progress, |core, ready, progress| {
        let links = question.links_of(core);
        let ((mut emulator, end), (mut forwarder, ceiling_end)) =
            (Emulator::new(question, links), Forwarder::new(question));
        let (mut source, mut ceiling_source) =
            (Stations::new(question, links), Stations::new(question, links));
        let rounds = rounds(question.packets.max(2 * links as u64), question.burst);
        let (mut emulated, mut ceiling) =
            (Meter::new(Emulator::STAGES.len()), Meter::new(Forwarder::STAGES.len()));
        ready();
        for round in 0..rounds {
            if round % 1024 == 0 {
                progress("emulation", round, rounds);
            }
            emulated.round(&mut emulator, &mut source, &end);
            ceiling.round(&mut forwarder, &mut ceiling_source, &ceiling_end);
        }
        let costs = [emulated.cost(Emulator::STAGES), ceiling.cost(Forwarder::STAGES)];
        Emulation::of(costs, &emulator.network, weight)
    });
    Emulation::of_all(cores)
}

/// Measures the emulator on one core with its port on a real interface, like
/// [`netcope_over`](super::netcope_over): first without emulation, then with it. The throughput
/// search uses links without random loss.
///
/// # Errors
/// Returns the errors of [`emulate_throughput`].
pub fn emulate_over(
    question: &EmulationQuestion,
    weight: LinkWeight,
    dut_port: DutPort,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<(Emulation, Vec<Found>), SearchError> {
    let question = EmulationQuestion { cores: 1, ..*question };
    let links = question.links;
    let (port, tester) = dut_port.into_parts();
    let (mut source, packets) = (Stations::new(&question, links), question.packets.max(2 * links as u64));
    let mut forwarder = Forwarder::on(port);
    let (ceiling, tester) = rate::cost_over(&mut forwarder, &mut source, tester, packets, progress);
    let mut emulator = Emulator::on(forwarder.port, &question, links);
    let (cost, tester) = rate::cost_over(&mut emulator, &mut source, tester, packets, progress);
    let found = Emulation::of([cost, ceiling], &emulator.network, weight);
    if hunt.goals.is_empty() {
        return Ok((found, Vec::new()));
    }
    let mut emulator = Emulator::on(emulator.port, &question.lossless(), links);
    let rates = rate::search_over(&mut emulator, &mut source, tester, found.t_ns, hunt, progress)?;
    Ok((found, rates))
}

/// Searches the highest rate of one core within each goal, like
/// [`netcope_throughput`](super::netcope_throughput). The links have no random loss. `t_ns` is the
/// usual time per packet.
///
/// # Errors
/// Returns [`SearchError`] if the peak rate is not a valid load.
pub fn emulate_throughput(
    question: &EmulationQuestion,
    t_ns: f64,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<Vec<Found>, SearchError> {
    if hunt.goals.is_empty() {
        return Ok(Vec::new());
    }
    let (question, links) = (question.lossless(), question.links_of(0));
    let (mut emulator, end) = Emulator::new(&question, links);
    rate::in_own_time(&mut emulator, &mut Stations::new(&question, links), end, t_ns, hunt, progress)
}

impl EmulationQuestion {
    /// Returns the number of links of a core.
    fn links_of(&self, core: usize) -> usize {
        self.links / self.cores + usize::from(core < self.links % self.cores)
    }

    /// Returns the rate of each link, bits per second.
    fn link_bps(&self) -> u64 {
        (TOTAL_BPS / self.links as u64).max(100_000)
    }

    /// Returns the same question with links that have no random loss.
    fn lossless(&self) -> EmulationQuestion {
        let link = if self.link == LinkKind::Full { LinkKind::Lossless } else { self.link };
        EmulationQuestion { link, ..*self }
    }
}

impl Emulation {
    fn of([cost, ceiling]: [Cost; 2], network: &Network, weight: LinkWeight) -> Emulation {
        let accounting = network.accounting();
        let (packets_per_second, ceiling_packets_per_second) =
            (1e9 / cost.median_ns, 1e9 / ceiling.median_ns);
        Emulation {
            packets_per_second,
            ceiling_packets_per_second,
            share_of_ceiling: packets_per_second / ceiling_packets_per_second,
            t_ns: cost.median_ns,
            bytes_per_link: weight.running,
            description_bytes_per_link: weight.description,
            stages: cost.stages,
            stages_minus_whole_pct: cost.stages_minus_whole_pct,
            rounds: cost.rounds,
            entered: accounting.entered,
            delivered: accounting.delivered,
            dropped: accounting.dropped.values().sum(),
            held: accounting.held,
        }
    }

    /// Combines the results of concurrent cores: the mean of their times, the sums of their rates
    /// and packets, and the stages of the first core.
    fn of_all(mut cores: Vec<Emulation>) -> Emulation {
        let sum = |of: fn(&Emulation) -> f64| cores.iter().map(of).sum::<f64>();
        let count = |of: fn(&Emulation) -> u64| cores.iter().map(of).sum::<u64>();
        let packets_per_second = sum(|e| e.packets_per_second);
        let ceiling_packets_per_second = sum(|e| e.ceiling_packets_per_second);
        let t_ns = sum(|e| e.t_ns) / cores.len() as f64;
        let [entered, delivered] = [count(|e| e.entered), count(|e| e.delivered)];
        let [dropped, held] = [count(|e| e.dropped), count(|e| e.held)];
        Emulation {
            packets_per_second,
            ceiling_packets_per_second,
            share_of_ceiling: packets_per_second / ceiling_packets_per_second,
            t_ns,
            entered,
            delivered,
            dropped,
            held,
            ..cores.swap_remove(0)
        }
    }
}

/// Builds a topology of `links` identical links, each between its own pair of hosts.
fn topology(links: usize, kind: LinkKind, bps: u64) -> Topology {
    let pipe = match kind {
        LinkKind::Ideal => PipeSpec::default(),
        LinkKind::Full | LinkKind::Lossless => PipeSpec {
            rate: Rate::from_bps(bps),
            delay: DELAY,
            loss: Probability::new(if kind == LinkKind::Full { LOSS } else { 0.0 })
                .expect("a probability")
                .into(),
            queue: QueueSpec::DropTail(Limit::Packets(QUEUE_PACKETS)),
            ..PipeSpec::default()
        },
    };
    let mut topology = Topology::default();
    for i in 0..links {
        let [a, b] = ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::host()));
        topology.connect(format!("l{i}"), a, b, [pipe.clone(), pipe.clone()]);
    }
    topology
}

/// Measures the memory of an idle link from the growth of this process's resident memory. The
/// process creates `links` links, at least 50,000. Call this once, before anything large
/// is freed: reused memory does not make the process grow.
pub fn weigh(links: usize, seed: u64) -> LinkWeight {
    let links = links.max(WEIGHED_LINKS);
    let empty = resident();
    let topology = topology(links, LinkKind::Full, 100_000);
    let described = resident();
    let network = Network::new(topology, Options::with_seed(seed));
    let running = resident();
    drop(black_box(network));
    let per_link = |more: f64, less: f64| (more - less).max(0.0) / links as f64;
    LinkWeight { running: per_link(running, described), description: per_link(described, empty) }
}

/// Returns the resident anonymous memory of this process, bytes. The kernel counts it page by page
/// for /proc/self/smaps_rollup. /proc/self/statm is accurate only to some hundred kilobytes:
/// mm/memory.c counts per core and sums up occasionally.
pub(crate) fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib * 1024.0)
}

/// An emulator behind one port.
struct Emulator {
    port: Box<dyn Port>,
    clock: Clock,
    network: Network,
    stations: StationTable,
    burst: Burst,
    arrived: Vec<(EdgeId, Frame)>,
    due: Vec<Delivery>,
    out: VecDeque<Frame>,
}

impl Emulator {
    fn new(question: &EmulationQuestion, links: usize) -> (Emulator, MemoryEnd) {
        let (port, end) = memory(question);
        (Emulator::on(Box::new(port), question, links), end)
    }

    fn on(port: Box<dyn Port>, question: &EmulationQuestion, links: usize) -> Emulator {
        let options = Options::with_seed(question.seed);
        let mut stations = StationTable::new(links);
        // The first host of each link sends. Its edge has the even number.
        (0..links).for_each(|link| stations.insert(mac(link), EdgeId(2 * link as u32)));
        Emulator {
            port,
            clock: Clock::start(),
            network: Network::new(topology(links, question.link, question.link_bps()), options),
            stations,
            burst: Burst::new(),
            arrived: Vec::with_capacity(Burst::MAX),
            due: Vec::with_capacity(4 * BURST),
            out: VecDeque::with_capacity(4 * BURST),
        }
    }
}

impl Device for Emulator {
    const STAGES: &'static [&'static str] = &["receive", "classify", "leave links", "enter links", "send"];

    /// Sends due frames even if no frame arrived.
    fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize {
        let now = self.clock.now();
        // A failed receive or send shows as loss.
        let _ = self.port.rx_burst(now, self.network.pool_mut(), &mut self.burst);
        let frames = self.burst.len();
        mark(0);
        if self.stations.slots.len() > StationTable::FEW {
            for frame in self.burst.frames() {
                self.stations.prefetch(&self.network.pool().bytes(frame)[SOURCE]);
            }
        }
        for frame in self.burst.drain() {
            match self.stations.get(&self.network.pool().bytes(&frame)[SOURCE]) {
                Some(edge) => self.arrived.push((edge, frame)),
                None => self.network.pool_mut().free(frame),
            }
        }
        mark(1);
        self.network.pop_burst(now, 4 * BURST, &mut self.due);
        self.out.extend(self.due.drain(..).map(|delivery| delivery.frame));
        mark(2);
        self.network.push_burst(now, &mut self.arrived);
        mark(3);
        send(&mut *self.port, now, self.network.pool_mut(), &mut self.out);
        mark(4);
        frames
    }

    fn holds(&self) -> bool {
        !self.network.is_quiescent()
    }
}

/// A forwarder without emulation: the ceiling.
struct Forwarder {
    port: Box<dyn Port>,
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
}

impl Forwarder {
    fn new(question: &EmulationQuestion) -> (Forwarder, MemoryEnd) {
        let (port, end) = memory(question);
        (Forwarder::on(Box::new(port)), end)
    }

    fn on(port: Box<dyn Port>) -> Forwarder {
        let out = VecDeque::with_capacity(4 * BURST);
        Forwarder { port, pool: FramePool::default(), burst: Burst::new(), out }
    }
}

impl Device for Forwarder {
    const STAGES: &'static [&'static str] = &["receive", "send"];

    fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize {
        let _ = self.port.rx_burst(Time::ZERO, &mut self.pool, &mut self.burst);
        let frames = self.burst.len();
        if frames == 0 {
            return 0;
        }
        self.out.extend(self.burst.drain());
        mark(0);
        send(&mut *self.port, Time::ZERO, &mut self.pool, &mut self.out);
        mark(1);
        frames
    }
}

/// Creates a memory port for the question's bursts.
fn memory(question: &EmulationQuestion) -> (Memory, MemoryEnd) {
    Memory::new("memory", RING.max(4 * question.burst * (question.size + 64)))
}

/// Returns the address of the host that sends into a link.
fn mac(link: usize) -> [u8; 6] {
    let [.., b, c, d, e] = (link as u64).to_be_bytes();
    [0x02, 0x01, b, c, d, e]
}

/// Maps station addresses to edges: exact match, open addressing, at most half full.
pub(super) struct StationTable {
    /// Address and edge. Address 0 marks an empty slot.
    slots: Vec<(u64, EdgeId)>,
    shift: u32,
}

impl StationTable {
    /// Largest table that stays in the cache without prefetching, slots: one megabyte.
    const FEW: usize = 1 << 16;

    pub(super) fn new(stations: usize) -> StationTable {
        let len = (2 * stations).next_power_of_two().max(2);
        StationTable { slots: vec![(0, EdgeId(0)); len], shift: 64 - len.trailing_zeros() }
    }

    /// Converts an address to an integer.
    fn key(address: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(address);
        u64::from_le_bytes(bytes)
    }

    /// Returns the first slot of a key by Fibonacci hashing (Knuth, TAOCP 3, §6.4).
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    pub(super) fn insert(&mut self, address: [u8; 6], edge: EdgeId) {
        let key = StationTable::key(&address);
        let mut at = self.home(key);
        while self.slots[at].0 != 0 {
            at = (at + 1) % self.slots.len();
        }
        self.slots[at] = (key, edge);
    }

    /// Prefetches the slot that `get` reads first.
    fn prefetch(&self, address: &[u8]) {
        prefetch_index(&self.slots, self.home(StationTable::key(address)));
    }

    pub(super) fn get(&self, address: &[u8]) -> Option<EdgeId> {
        let key = StationTable::key(address);
        let mut at = self.home(key);
        loop {
            match self.slots[at] {
                (0, _) => return None,
                (found, edge) if found == key => return Some(edge),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }
}

/// A source that sends one frame for each link in turn, in an order without locality.
struct Stations {
    links: u64,
    frames: Vec<Vec<u8>>,
    next: u64,
}

impl Stations {
    fn new(question: &EmulationQuestion, links: usize) -> Stations {
        let mut frame = vec![0; question.size];
        frame[..SOURCE.start].copy_from_slice(&DESTINATION);
        Stations { links: links as u64, frames: vec![frame; question.burst], next: 0 }
    }
}

impl<E: End> Source<E> for Stations {
    fn burst(&self) -> usize {
        self.frames.len()
    }

    fn give(&mut self, packets: usize, end: &E) -> usize {
        let (mut left, mut given) = (packets, 0);
        while left > 0 {
            let count = left.min(self.frames.len());
            for frame in &mut self.frames[..count] {
                // A prime step visits every link before it repeats one.
                let link = (self.next * 1_000_003 % self.links) as usize;
                frame[SOURCE].copy_from_slice(&mac(link));
                self.next += 1;
            }
            given += end.give(self.frames[..count].iter().map(Vec::as_slice));
            left -= count;
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::super::dut_port::tests::open_or_skip;
    use super::*;
    use crate::{DutAttachment, Goal};

    #[test]
    fn only_inserted_stations_are_found() {
        let mut table = StationTable::new(1000);
        (0..1000).for_each(|link| table.insert(mac(link), EdgeId(link as u32)));
        assert!((0..1000).all(|link| table.get(&mac(link)) == Some(EdgeId(link as u32))));
        assert!((1000..2000).all(|link| table.get(&mac(link)).is_none()));
    }

    #[test]
    fn frame_accounting_of_emulated_packets_balances() {
        let question = EmulationQuestion {
            size: 64,
            links: 100,
            burst: 64,
            packets: 20_000,
            seed: 3,
            link: LinkKind::Full,
            cores: 1,
        };
        let found = emulate(&question, weigh(question.links, 1), &|_, _, _| {});
        assert_eq!(found.entered, found.delivered + found.dropped + found.held);
        assert!(found.entered >= 20_000 && found.delivered > 15_000, "{found:?}");
        // Loss 0.1 %: 20 of 20 000, within 6 standard deviations.
        assert!((1..=50).contains(&found.dropped), "{found:?}");
        assert!(
            found.packets_per_second > 0.0 && found.ceiling_packets_per_second > found.packets_per_second
        );
        assert!(found.bytes_per_link > 0.0);
    }

    fn question(cores: usize) -> EmulationQuestion {
        let (links, link) = (101, LinkKind::Full);
        EmulationQuestion { size: 64, links, burst: 64, packets: 10_000, seed: 3, link, cores }
    }

    #[test]
    fn cores_share_the_links_and_their_rates_add_up() {
        let shares: Vec<usize> = (0..3).map(|core| question(3).links_of(core)).collect();
        assert_eq!(shares, [34, 34, 33]);
        let found = emulate(&question(2), LinkWeight { running: 0.0, description: 0.0 }, &|_, _, _| {});
        assert_eq!(found.entered, found.delivered + found.dropped + found.held);
        assert!(found.entered >= 20_000, "total of two cores: {found:?}");
        assert!(found.ceiling_packets_per_second > found.packets_per_second, "{found:?}");
    }

    #[test]
    fn links_without_loss_have_a_rate_without_loss() {
        let goals = [Goal { loss_ratio: 0.0 }];
        let hunt =
            Hunt { goals: &goals, duration: std::time::Duration::from_millis(2), width: 0.1, queue: 4096 };
        let found = emulate_throughput(&question(1), 1000.0, hunt, &|_, _, _| {}).expect("a rate");
        assert!(found[0].lower_pps >= Some(1000.0), "{found:?}");
    }

    #[test]
    fn links_work_behind_a_dut_port() {
        let Some(dut_port) = open_or_skip(&DutAttachment::Veth, "links_work_behind_a_dut_port") else {
            return;
        };
        // Other load on the core can delay the kernel's part of the path. Then some frames arrive
        // too late.
        let goals = [Goal { loss_ratio: 0.9 }];
        let hunt =
            Hunt { goals: &goals, duration: std::time::Duration::from_millis(2), width: 0.1, queue: 4096 };
        let weight = LinkWeight { running: 0.0, description: 0.0 };
        let (found, rates) =
            emulate_over(&question(1), weight, dut_port, hunt, &|_, _, _| {}).expect("a rate");
        assert_eq!(found.entered, found.delivered + found.dropped + found.held);
        assert!(found.entered >= 10_000 && found.ceiling_packets_per_second > 0.0, "{found:?}");
        assert!(rates[0].lower_pps.is_some(), "frames are forwarded: {rates:?}");
    }
}
