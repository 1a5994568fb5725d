//! Where each link of a network runs: in the kernel ([`fastpath_bpf`]) or in the engine.
//!
//! ```text
//!  WorkerGroup ─┬─▶ workers: all pipes and switches; those of kernel links have no frames
//!               └─▶ DataPaths: what the kernel has counted is added to snapshots and samples;
//!                   what it cannot do moves an island to the engine while frames flow
//! ```
//!
//! The engine has the whole network, so a link that moves only begins to have frames there: its
//! parameters, and those of its switches, are there already. Nothing moves back.

use crate::Notice;
use crate::snapshot::{EdgeState, Snapshot};
use fastpath_bpf::{KernelPath, PathLog, PipeCounts};
use fastpath_link::instant::InstantSpec;
use fastpath_link::{Change, Counters, DropReason, PipeSpec};
use fastpath_net::sample::PipeSample;
use fastpath_net::{LinkChange, Reason};
use fastpath_spec::mistake::several;
use fastpath_spec::{Direction, LinkId, NodeId, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the links of a lab run.
#[derive(Debug)]
pub struct DataPaths {
    kernel: Option<KernelLinks>,
    state: Mutex<PathsState>,
    /// The records of the per-packet log, until a thread takes them.
    log: Mutex<Option<PathLog>>,
    notice: Notice,
}

#[derive(Debug, Default)]
struct PathsState {
    /// By link that runs in the engine: why.
    reasons: BTreeMap<String, String>,
    /// By link of the kernel, as it was at the start: its pipes as they are now.
    pipes: BTreeMap<String, [PipeSpec; 2]>,
    /// By interface of the path: why it carries nothing.
    failures: BTreeMap<u32, String>,
    /// Links that the lab has no longer. Another one of the name has counters of its own.
    ended: BTreeSet<String>,
}

/// The links and switches of a path.
#[derive(Debug)]
pub struct KernelLinks {
    /// The path, attached.
    pub path: KernelPath,
    /// Its links, by name.
    pub links: BTreeMap<String, KernelLink>,
    /// Its switches: the number of each by its name.
    pub switches: BTreeMap<String, u32>,
}

/// A link of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelLink {
    /// The numbers of its pipes: forward, backward.
    pub pipes: [u32; 2],
    /// The island: what moves together.
    pub island: usize,
    /// By end: the index of the interface in the path's namespace.
    pub interfaces: [u32; 2],
    /// By end: whether it is a host's.
    pub is_edge: [bool; 2],
}

impl DataPaths {
    /// The paths of the links of `topology`. `reasons` has those of the engine.
    ///
    /// # Errors
    /// The records of the path's log cannot be mapped.
    pub fn new(
        topology: &Topology,
        mut kernel: Option<KernelLinks>,
        reasons: BTreeMap<String, String>,
        notice: Notice,
    ) -> io::Result<DataPaths> {
        let log = kernel.as_mut().map(|kernel| kernel.path.take_log()).transpose()?.flatten();
        let is_kernel = |name: &str| kernel.as_ref().is_some_and(|kernel| kernel.links.contains_key(name));
        let own = topology.links.iter().filter(|link| is_kernel(&link.name));
        let pipes = own.map(|link| (link.name.clone(), link.pipes.clone())).collect();
        let state = Mutex::new(PathsState { reasons, pipes, ..PathsState::default() });
        Ok(DataPaths { kernel, state, log: Mutex::new(log), notice })
    }

    /// Returns the path; `None` if all links run in the engine.
    pub fn path(&self) -> Option<&KernelPath> {
        self.kernel.as_ref().map(|kernel| &kernel.path)
    }

    /// Returns why a link runs in the engine; `None` if it runs in the kernel.
    pub fn reason(&self, link: &str) -> Option<String> {
        let state = self.state();
        let is_own = |kernel: &KernelLinks| kernel.links.contains_key(link) && !state.ended.contains(link);
        let is_kernel = self.kernel.as_ref().is_some_and(is_own);
        let unknown = || (!is_kernel).then(|| "it was added while the lab ran".to_owned());
        state.reasons.get(link).filter(|_| !state.ended.contains(link)).cloned().or_else(unknown)
    }

    /// Returns by link of `topology` that runs in the engine: why.
    pub(crate) fn reasons(&self, topology: &Topology) -> BTreeMap<String, String> {
        let reason = |link: &fastpath_spec::Link| Some((link.name.clone(), self.reason(&link.name)?));
        topology.links.iter().filter_map(reason).collect()
    }

    fn state(&self) -> MutexGuard<'_, PathsState> {
        // What a panic left is whole: the state is changed one entry at a time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves links to the engine, with those of their islands.
    pub fn move_to_user<'n>(&self, links: impl Iterator<Item = &'n str>, why: &str) {
        let Some(kernel) = &self.kernel else { return };
        let islands: Vec<usize> = links.filter_map(|name| Some(kernel.links.get(name)?.island)).collect();
        let mut state = self.state();
        let of_islands = kernel.links.iter().filter(|(_, link)| islands.contains(&link.island));
        let moving: Vec<(&String, &KernelLink)> =
            of_islands.filter(|(name, _)| !state.reasons.contains_key(*name)).collect();
        if moving.is_empty() {
            return;
        }
        let interfaces = moving.iter().flat_map(|(_, link)| link.interfaces);
        if let Err(error) = kernel.path.move_to_user(interfaces) {
            self.notice.send(&format!("moving links to user space: {error}"));
            return;
        }
        let names: Vec<String> = moving.iter().map(|(name, _)| (*name).clone()).collect();
        state.reasons.extend(names.iter().map(|name| (name.clone(), why.to_owned())));
        let still = names.iter().filter(|name| !state.ended.contains(*name)).map(String::as_str);
        let still: Vec<&str> = still.collect();
        if !still.is_empty() {
            let said = several(still.into_iter());
            self.notice.send(&format!("now in user space: {said}: {why}"));
        }
    }

    /// Notes why an interface of a link of the path carries nothing any more. Returns whether that
    /// is new, and of a link that the lab still has.
    pub fn set_failure(&self, (interface, link): (u32, &str), failure: String) -> bool {
        let mut state = self.state();
        !state.ended.contains(link) && state.failures.insert(interface, failure).is_none()
    }

    /// Returns how many frames came to each switch of the path from addresses that it did not
    /// learn, because its table was full.
    pub fn not_learned(&self) -> Vec<(&str, u64)> {
        let Some(kernel) = &self.kernel else { return Vec::new() };
        let counted = kernel.switches.iter();
        let counted = counted.map(|(name, number)| (&**name, kernel.path.switch_counts(*number).not_learned));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Moves links to the engine on which a law took super-packets for single frames: a program of
    /// a host has turned the offloads of its interface on again.
    pub fn find_super_packets(&self) {
        let Some(kernel) = self.kernel.as_ref().filter(|kernel| kernel.path.has_laws()) else { return };
        for (name, counts) in kernel.counts() {
            let count: u64 = counts.iter().map(|counts| counts.whole).sum();
            if count > 0 {
                let why = format!("{count} super-packets came to link {name}, which acts on single segments");
                self.move_to_user(std::iter::once(name.as_str()), &why);
            }
        }
    }

    /// Follows changes that the engine has made, now or (`is_later`) at a time to come: the program
    /// gets other laws, or the links move.
    pub(crate) fn follow(&self, topology: &Topology, changes: &[LinkChange], is_later: bool) {
        let Some(kernel) = &self.kernel else { return };
        for (link, direction, change) in changes {
            let name = &topology.link(*link).name;
            let Some(own) = kernel.links.get(name) else { continue };
            let pipes = {
                let mut state = self.state();
                let Some(pipes) = state.pipes.get_mut(name) else { continue };
                Direction::pipes(*direction).for_each(|pipe| change.apply_to(&mut pipes[pipe]));
                pipes.clone()
            };
            if self.reason(name).is_some() {
                continue;
            }
            let change = || -> Result<(), String> {
                if is_later {
                    return Err("it changes at a time to come".to_owned());
                }
                for (pipe, number) in pipes.iter().zip(own.pipes) {
                    let law = InstantSpec::of(pipe).map_err(|what| format!("it has {what}"))?;
                    if law.is_down && !kernel.path.has_laws() {
                        return Err("it is down".to_owned());
                    }
                    if !law.is_clear() && !kernel.path.has_laws() {
                        let what = "its losses, copies or flipped bits are those of single segments";
                        return Err(what.to_owned());
                    }
                    kernel.path.change(number, &law).map_err(|error| error.to_string())?;
                }
                Ok(())
            };
            if let Err(why) = change() {
                let beside = kernel.links.values().filter(|link| link.island == own.island).count() > 1;
                let why = if beside { format!("link {name}: {why}") } else { why };
                self.move_to_user(std::iter::once(name.as_str()), &why);
            }
        }
    }

    /// Moves what a change of the topology touches, except that only parameters of links change:
    /// then as [`DataPaths::follow`].
    pub(crate) fn follow_topology(&self, old: &Topology, new: &Topology) {
        let Some(kernel) = &self.kernel else { return };
        let neighbours = |topology: &Topology, name: &str| {
            let link = topology.link(topology.link_named(name)?);
            let of_end = |(node, _): (NodeId, usize)| {
                let node = topology.node(node);
                // The links of a switch; of a host only this one matters.
                let links =
                    node.interfaces.iter().map(|interface| topology.link(interface.link).name.clone());
                (node.name.clone(), if node.kind.is_switch() { links.collect() } else { Vec::new() })
            };
            Some(link.ends.map(of_end))
        };
        let gone = kernel.links.keys().filter(|name| new.link_named(name).is_none());
        self.state().ended.extend(gone.cloned());
        let touched = kernel.links.keys().filter(|name| neighbours(old, name) != neighbours(new, name));
        self.move_to_user(touched.map(String::as_str), "the network of the lab changed there");
        let changes =
            kernel.links.keys().filter_map(|name| Some((old.link_named(name)?, new.link_named(name)?)));
        let changes = changes.flat_map(|(before, after)| {
            [(0, Direction::Forward), (1, Direction::Backward)].map(|(pipe, direction)| {
                let [from, to] = [old.link(before), new.link(after)].map(|link| &link.pipes[pipe]);
                (after, direction, Change::between(from, to))
            })
        });
        let changes: Vec<LinkChange> = changes.filter(|(.., change)| *change != Change::default()).collect();
        self.follow(new, &changes, false);
    }

    /// Adds what the kernel has counted.
    pub(crate) fn add_to(&self, topology: &Topology, snapshot: &mut Snapshot) {
        let Some(kernel) = &self.kernel else { return };
        let counts = kernel.counts();
        let ended = self.state().ended.clone();
        for (name, [forward, backward]) in &counts {
            if let Some(LinkId(number)) = topology.link_named(name).filter(|_| !ended.contains(name)) {
                let pipes = &mut snapshot.pipes[2 * number as usize..][..2];
                pipes[0].counters += forward.counters;
                pipes[1].counters += backward.counters;
            }
        }
        let state = self.state();
        let interfaces = topology.hosts().flat_map(|(_, host)| &host.interfaces);
        for (interface, edge) in interfaces.zip(&mut snapshot.edges) {
            let name = &topology.link(interface.link).name;
            if ended.contains(name) {
                continue;
            }
            if let (Some(counts), Some(link)) = (counts.get(name), kernel.links.get(name)) {
                add_to_edge(edge, counts, interface.end);
                let failure = state.failures.get(&link.interfaces[interface.end]);
                edge.failure = edge.failure.take().or_else(|| failure.cloned());
            }
        }
        kernel.account(&counts, snapshot);
    }

    /// Adds what the kernel has counted to samples, in the order of the pipes of `topology`.
    pub(crate) fn add_to_samples(&self, topology: &Topology, pipes: &mut [PipeSample]) {
        let Some(kernel) = &self.kernel else { return };
        let ended = self.state().ended.clone();
        for (name, [forward, backward]) in kernel.counts() {
            if let Some(LinkId(number)) = topology.link_named(&name).filter(|_| !ended.contains(&name)) {
                let pipes = &mut pipes[2 * number as usize..][..2];
                pipes[0].counters += forward.counters;
                pipes[1].counters += backward.counters;
            }
        }
    }

    /// Takes the records of the per-packet log; `None` if there are none.
    pub(crate) fn take_log(&self) -> Option<PathLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the names of the path's links and switches, by their numbers.
    pub(crate) fn names(&self) -> (BTreeMap<u32, (String, usize)>, BTreeMap<u32, String>) {
        let Some(kernel) = &self.kernel else { return Default::default() };
        let pipes = kernel
            .links
            .iter()
            .flat_map(|(name, link)| [0, 1].map(|index| (link.pipes[index], (name.clone(), index))));
        (pipes.collect(), kernel.switches.iter().map(|(name, number)| (*number, name.clone())).collect())
    }
}

impl KernelLinks {
    /// What was counted of each link.
    fn counts(&self) -> BTreeMap<String, [PipeCounts; 2]> {
        let of_link = |(name, link): (&String, &KernelLink)| {
            (name.clone(), link.pipes.map(|pipe| self.path.counts(pipe)))
        };
        self.links.iter().map(of_link).collect()
    }

    /// Adds the frames of the path to the accounting of the network. They are counted on several
    /// CPUs while they move, so what was made inside follows from the rest: nothing is held.
    fn account(&self, counts: &BTreeMap<String, [PipeCounts; 2]>, snapshot: &mut Snapshot) {
        let (mut entered, mut delivered, mut lost) = (0, 0, 0);
        let mut dropped: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut drop = |reason: Reason, count: u64| {
            if count > 0 {
                *dropped.entry(reason.name()).or_default() += count;
            }
        };
        for (name, pipes) in counts {
            for (index, counts) in pipes.iter().enumerate() {
                let PipeCounts { counters, port_down, port_refused, .. } = counts;
                let Some(link) = self.links.get(name) else { continue };
                // The forward pipe leads from end 0.
                if link.is_edge[index] {
                    entered += counters.pushed.packets;
                }
                if link.is_edge[1 - index] {
                    delivered += counters.delivered.packets + counters.duplicated;
                } else {
                    // Of a link between switches: the kernel had no room for them.
                    lost += port_down.packets + port_refused.packets;
                }
                for reason in DropReason::ALL {
                    drop(Reason::Link(reason), counters.dropped_for(reason));
                }
            }
        }
        for number in self.switches.values() {
            let counts = self.path.switch_counts(*number);
            drop(Reason::Filtered, counts.filtered);
            drop(Reason::Malformed, counts.malformed);
        }
        if lost > 0 {
            *dropped.entry("port-refused").or_default() += lost;
        }
        let gone: u64 = delivered + dropped.values().sum::<u64>();
        let accounting = &mut snapshot.accounting;
        // A frame may have been counted at its entrance and not yet behind it.
        accounting.entered += entered.min(gone);
        accounting.generated += gone.saturating_sub(entered);
        accounting.delivered += delivered;
        for (reason, count) in dropped {
            *accounting.dropped.entry(reason).or_default() += count;
        }
    }
}

/// Adds what the kernel has carried to and from an interface of a host.
fn add_to_edge(edge: &mut EdgeState, counts: &[PipeCounts; 2], end: usize) {
    // The pipe that leads from end 0 is the first of the two.
    let (from, to) = (&counts[end], &counts[1 - end]);
    let counters = &mut edge.counters;
    let Counters { pushed, .. } = from.counters;
    counters.rx_frames += pushed.packets;
    counters.rx_bytes += pushed.bytes;
    let sent = to.counters.delivered + to.duplicated;
    let lost = to.port_down + to.port_refused;
    counters.tx_frames += sent.packets.saturating_sub(lost.packets);
    counters.tx_bytes += sent.bytes.saturating_sub(lost.bytes);
    counters.tx_down += to.port_down.packets;
    counters.tx_refused += to.port_refused.packets;
}
