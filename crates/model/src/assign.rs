//! Assigns a packet's tasks to engines with little code space, and finds the best assignment
//! exactly. Tasks on one engine pass packets in registers. Tasks on different engines need a queue
//! between them. A group of tasks may be replicated; then shared state needs a lock, which
//! serialises its task.
//!
//! ```text
//!   ingress → bridging → classifier → loss → enqueue → schedule       tasks, in the packet's order
//!   [---- group 1 -----]   [------------- group 2 -------------]      a partition (§4.2.2)
//!     engine 1               engine 2                                 replicas per group
//! ```
//!
//! Branch and bound over set partitions (not only contiguous ones), with the best replication of
//! each. Joglekar 2004, §4.2.2 describes one mapping of LinkEM's tasks; this searches all.

use crate::Estimate;
use crate::budget::Formula;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum number of tasks; 12 have 4.2 million partitions before pruning.
pub const TASKS_MAX: usize = 12;
/// Maximum number of engines.
pub const ENGINES_MAX: u32 = 64;

/// Whether engines that run a task at the same time share its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Each engine has its own, or only reads it.
    Private,
    /// All engines update it: replicas take a lock.
    Shared,
}

/// One task of a packet's processing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Compute cycles per packet.
    pub compute: f64,
    /// Memory and I/O cycles per packet.
    pub memory: f64,
    /// Instructions of its code.
    pub code: u32,
    /// Whether replicas share its state.
    pub state: State,
}

/// A network processor: the engines that are free, and what they cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NetworkProcessor {
    /// Engines free for these tasks.
    pub engines: u32,
    /// Threads per engine.
    pub threads: u32,
    /// Instructions that an engine can hold.
    pub code_limit: u32,
    /// Compute cycles to put a packet into a queue between engines, and again to take it out.
    pub hop_compute: f64,
    /// Memory cycles for the same.
    pub hop_memory: f64,
    /// Memory cycles to take and release a lock between engines.
    pub lock_memory: f64,
    /// Share of the memory cycles that is hidden, 0 … 1.
    pub hidden: f64,
    /// The budget formula that decides.
    pub formula: Formula,
    /// Clock in Hz.
    pub clock_hz: f64,
}

/// The tasks of one set of engines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EngineGroup {
    /// The tasks' names, in the packet's order.
    pub tasks: Vec<String>,
    /// Number of engines that run them.
    pub engines: u32,
    /// Instructions on each engine.
    pub code: u32,
    /// Cycles between packets these engines sustain together.
    pub arrival_cycles: f64,
}

/// An assignment and the rate it sustains.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Assignment {
    /// The groups, by their first task.
    pub groups: Vec<EngineGroup>,
    /// Engines used.
    pub engines: u32,
    /// Cycles between packets of the slowest group; the interval spans u = 1 … 0.
    pub arrival_cycles: Estimate,
    /// Packets/s.
    pub packets_per_s: Estimate,
}

/// Why there is no assignment.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum AssignError {
    /// No task, too many tasks or engines, or a number out of range.
    #[error("{what} = {value}: must be {range}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The range in which the value must be.
        range: &'static str,
    },
    /// A task larger than an engine.
    #[error("task `{task}` takes {code} instructions and an engine holds {limit}: split it")]
    TooLarge {
        /// The task.
        task: String,
        /// Its size.
        code: u32,
        /// The limit.
        limit: u32,
    },
    /// The code fits on no allowed number of engines.
    #[error(
        "the tasks' code does not fit {engines} engines of {limit} instructions: add engines or shrink tasks"
    )]
    NoRoom {
        /// Number of engines.
        engines: u32,
        /// Instructions each holds.
        limit: u32,
    },
    /// A given mapping that is not a mapping of all tasks.
    #[error(
        "the mapping must name every task once and use at most {engines} engines, each group at least one"
    )]
    NotAMapping {
        /// Number of engines.
        engines: u32,
    },
}

/// Finds the best assignment: most packets per second, then fewest engines.
///
/// # Errors
/// [`AssignError`] for numbers out of range or code that fits nowhere.
pub fn best(tasks: &[Task], processor: &NetworkProcessor) -> Result<Assignment, AssignError> {
    check(tasks, processor)?;
    let mut search = Search { tasks, processor, group_of: Vec::new(), best: None };
    search.place();
    let found =
        search.best.ok_or(AssignError::NoRoom { engines: processor.engines, limit: processor.code_limit })?;
    Ok(describe(tasks, processor, &found.group_of, &found.engines))
}

/// Evaluates a given mapping: groups of task numbers, each with its number of engines.
///
/// # Errors
/// [`AssignError`] when it is not a mapping of all tasks or does not fit.
pub fn evaluate(
    tasks: &[Task],
    processor: &NetworkProcessor,
    mapping: &[(&[usize], u32)],
) -> Result<Assignment, AssignError> {
    check(tasks, processor)?;
    let not_a_mapping = AssignError::NotAMapping { engines: processor.engines };
    let mut group_of = vec![usize::MAX; tasks.len()];
    for (g, (members, engines)) in mapping.iter().enumerate() {
        for &t in *members {
            if t >= tasks.len() || group_of[t] != usize::MAX {
                return Err(not_a_mapping);
            }
            group_of[t] = g;
        }
        if *engines == 0 || members.is_empty() {
            return Err(not_a_mapping);
        }
    }
    let engines: Vec<u32> = mapping.iter().map(|(_, e)| *e).collect();
    if group_of.contains(&usize::MAX) || engines.iter().sum::<u32>() > processor.engines {
        return Err(not_a_mapping);
    }
    if loads(tasks, processor, &group_of).iter().any(|l| l.code > processor.code_limit) {
        return Err(AssignError::NoRoom { engines: processor.engines, limit: processor.code_limit });
    }
    Ok(describe(tasks, processor, &group_of, &engines))
}

/// The cost of one group per packet.
#[derive(Clone, Copy, Default)]
struct Load {
    compute: f64,
    memory: f64,
    code: u32,
    /// Memory cycles of locks; only replicas need them.
    locks: f64,
    /// The longest serialised task, a lower bound for replicas.
    serial: f64,
}

impl Load {
    /// Returns the cycles between packets on `engines` replicas.
    fn arrival(&self, processor: &NetworkProcessor, engines: u32, hidden: f64) -> f64 {
        let by = |memory: f64| processor.formula.arrival(self.compute, memory, hidden, processor.threads);
        if engines == 1 {
            return by(self.memory);
        }
        (by(self.memory + self.locks) / f64::from(engines)).max(self.serial)
    }

    /// Returns the fewest engines that take a packet every `cycles`, if any number up to the
    /// processor's does.
    fn engines_for(&self, processor: &NetworkProcessor, cycles: f64) -> Option<u32> {
        (1..=processor.engines).find(|&e| self.arrival(processor, e, processor.hidden) <= cycles)
    }
}

/// Returns the loads of the groups of the tasks placed so far.
fn loads(tasks: &[Task], processor: &NetworkProcessor, group_of: &[usize]) -> Vec<Load> {
    let count = group_of.iter().max().map_or(0, |g| g + 1);
    let mut loads = vec![Load::default(); count];
    for (task, &g) in tasks.iter().zip(group_of) {
        let load = &mut loads[g];
        load.compute += task.compute;
        load.memory += task.memory;
        load.code = load.code.saturating_add(task.code);
        if task.state == State::Shared {
            load.locks += processor.lock_memory;
            load.serial = load.serial.max(task.compute + task.memory);
        }
    }
    for pair in group_of.windows(2).filter(|pair| pair[0] != pair[1]) {
        for &g in pair {
            loads[g].compute += processor.hop_compute;
            loads[g].memory += processor.hop_memory;
        }
    }
    loads
}

struct BestSoFar {
    group_of: Vec<usize>,
    engines: Vec<u32>,
    arrival: f64,
}

struct Search<'a> {
    tasks: &'a [Task],
    processor: &'a NetworkProcessor,
    /// EngineGroup of each task placed, numbered by first task: every partition is met once.
    group_of: Vec<usize>,
    best: Option<BestSoFar>,
}

impl Search<'_> {
    fn place(&mut self) {
        let loads = loads(self.tasks, self.processor, &self.group_of);
        if loads.iter().any(|l| l.code > self.processor.code_limit) || self.hopeless(&loads) {
            return;
        }
        if self.group_of.len() == self.tasks.len() {
            self.complete(&loads);
            return;
        }
        // Try the predecessor's group first: good mappings early make the bound sharp.
        let last = self.group_of.last().copied();
        let room = loads.len() < self.processor.engines as usize;
        let others = (0..loads.len() + usize::from(room)).filter(|g| Some(*g) != last);
        for g in last.into_iter().chain(others).collect::<Vec<_>>() {
            self.group_of.push(g);
            self.place();
            self.group_of.pop();
        }
    }

    /// Returns whether no completion can beat the best. Loads only grow as tasks are added.
    fn hopeless(&self, loads: &[Load]) -> bool {
        let Some(best) = &self.best else { return false };
        let needed =
            loads.iter().try_fold(0, |sum, l| Some(sum + l.engines_for(self.processor, best.arrival)?));
        let Some(needed) = needed.filter(|n| *n <= self.processor.engines) else { return true };
        let placed = self.group_of.len();
        let rest = self.tasks[placed..].iter().map(|t| {
            self.processor.formula.arrival(t.compute, t.memory, self.processor.hidden, self.processor.threads)
        });
        let work = rest
            .chain(loads.iter().map(|l| l.arrival(self.processor, 1, self.processor.hidden)))
            .sum::<f64>();
        let fewest = needed.max((work / best.arrival * (1.0 - 1e-12)).ceil() as u32);
        // An equal rate with as many engines is not better.
        let used: u32 = best.engines.iter().sum();
        fewest > self.processor.engines || (fewest >= used && !self.can_be_faster(loads, work, best.arrival))
    }

    fn can_be_faster(&self, loads: &[Load], work: f64, arrival: f64) -> bool {
        let faster = arrival * (1.0 - 1e-12);
        let engines: Option<u32> =
            loads.iter().try_fold(0, |s, l| Some(s + l.engines_for(self.processor, faster)?));
        engines.is_some_and(|e| e <= self.processor.engines)
            && work / f64::from(self.processor.engines) < faster
    }

    fn complete(&mut self, loads: &[Load]) {
        let m = self.processor;
        let mut candidates: Vec<f64> =
            loads.iter().flat_map(|l| (1..=m.engines).map(|e| l.arrival(m, e, m.hidden))).collect();
        candidates.sort_by(f64::total_cmp);
        let engines = |cycles: f64| -> Option<Vec<u32>> {
            let each = loads.iter().map(|l| l.engines_for(m, cycles)).collect::<Option<Vec<u32>>>()?;
            (each.iter().sum::<u32>() <= m.engines).then_some(each)
        };
        let Some((arrival, engines)) = candidates.into_iter().find_map(|c| Some((c, engines(c)?))) else {
            return;
        };
        let key = |arrival: f64, engines: &[u32]| (arrival, engines.iter().sum::<u32>());
        let better = self.best.as_ref().is_none_or(|b| {
            let (a, b) = (key(arrival, &engines), key(b.arrival, &b.engines));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).is_lt()
        });
        if better {
            self.best = Some(BestSoFar { group_of: self.group_of.clone(), engines, arrival });
        }
    }
}

fn describe(tasks: &[Task], processor: &NetworkProcessor, group_of: &[usize], engines: &[u32]) -> Assignment {
    let loads = loads(tasks, processor, group_of);
    let slowest =
        |u: f64| loads.iter().zip(engines).map(|(l, e)| l.arrival(processor, *e, u)).fold(0.0, f64::max);
    let arrival_cycles = Estimate { value: slowest(processor.hidden), low: slowest(1.0), high: slowest(0.0) };
    let names = |g: usize| {
        let members = tasks.iter().zip(group_of).filter(move |(_, group)| **group == g);
        members.map(|(t, _)| t.name.clone()).collect()
    };
    Assignment {
        groups: (0..loads.len())
            .map(|g| EngineGroup {
                tasks: names(g),
                engines: engines[g],
                code: loads[g].code,
                arrival_cycles: loads[g].arrival(processor, engines[g], processor.hidden),
            })
            .collect(),
        engines: engines.iter().sum(),
        arrival_cycles,
        packets_per_s: arrival_cycles.map(|c| processor.clock_hz / c),
    }
}

fn check(tasks: &[Task], processor: &NetworkProcessor) -> Result<(), AssignError> {
    let range = |what, value: f64, good: bool, range| {
        if good { Ok(()) } else { Err(AssignError::Range { what, value, range }) }
    };
    range("tasks", tasks.len() as f64, (1..=TASKS_MAX).contains(&tasks.len()), "1 to 12")?;
    range(
        "engines",
        f64::from(processor.engines),
        (1..=ENGINES_MAX).contains(&processor.engines),
        "1 to 64",
    )?;
    range("threads", f64::from(processor.threads), processor.threads > 0, "above 0")?;
    range("hidden share", processor.hidden, (0.0..=1.0).contains(&processor.hidden), "0 to 1")?;
    range(
        "clock",
        processor.clock_hz,
        processor.clock_hz.is_finite() && processor.clock_hz > 0.0,
        "above 0",
    )?;
    for cycles in [processor.hop_compute, processor.hop_memory, processor.lock_memory] {
        range("hop or lock cycles", cycles, cycles.is_finite() && cycles >= 0.0, "0 or more")?;
    }
    for task in tasks {
        range("compute cycles", task.compute, task.compute.is_finite() && task.compute > 0.0, "above 0")?;
        range("memory cycles", task.memory, task.memory.is_finite() && task.memory >= 0.0, "0 or more")?;
        if task.code > processor.code_limit {
            return Err(AssignError::TooLarge {
                task: task.name.clone(),
                code: task.code,
                limit: processor.code_limit,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publications::linkem;
    use proptest::prelude::*;

    fn processor(engines: u32, code_limit: u32) -> NetworkProcessor {
        NetworkProcessor { engines, code_limit, ..linkem::ixp1200() }
    }

    fn task(compute: f64, memory: f64, code: u32, state: State) -> Task {
        Task { name: format!("{compute}/{memory}"), compute, memory, code, state }
    }

    /// The slow obvious way: every partition, every number of engines per group.
    fn brute_force(tasks: &[Task], processor: &NetworkProcessor) -> Option<(f64, u32)> {
        let mut best: Option<(f64, u32)> = None;
        let n = tasks.len();
        for code in 0..n.pow(n as u32) {
            let group: Vec<usize> = (0..n).map(|i| code / n.pow(i as u32) % n).collect();
            let canonical = (0..n).all(|i| group[i] <= group[..i].iter().max().map_or(0, |m| m + 1));
            if !canonical {
                continue;
            }
            let count = group.iter().max().map_or(0, |m| m + 1);
            let members: Vec<Vec<usize>> =
                (0..count).map(|g| (0..n).filter(|&i| group[i] == g).collect()).collect();
            for choice in 0..processor.engines.pow(count as u32) {
                let engines: Vec<u32> = (0..count)
                    .map(|g| choice / processor.engines.pow(g as u32) % processor.engines + 1)
                    .collect();
                let mapping: Vec<(&[usize], u32)> =
                    members.iter().map(Vec::as_slice).zip(engines.iter().copied()).collect();
                if let Ok(a) = evaluate(tasks, processor, &mapping) {
                    let key = (a.arrival_cycles.value, a.engines);
                    if best.is_none_or(|b| key < b) {
                        best = Some(key);
                    }
                }
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_search_finds_what_trying_everything_finds(
            raw in prop::collection::vec((10u32..300, 0u32..300, 100u32..1500, any::<bool>()), 1..5),
            engines in 1u32..5,
            hidden in 0.0f64..1.0,
        ) {
            let tasks: Vec<Task> = raw.iter().map(|&(c, m, code, shared)| {
                task(f64::from(c), f64::from(m), code, if shared { State::Shared } else { State::Private })
            }).collect();
            let processor = NetworkProcessor { hidden, ..processor(engines, 2048) };
            match (best(&tasks, &processor), brute_force(&tasks, &processor)) {
                (Ok(ours), Some((arrival, used))) => {
                    prop_assert!((ours.arrival_cycles.value - arrival).abs() < 1e-9, "{} {arrival}", ours.arrival_cycles.value);
                    prop_assert_eq!(ours.engines, used);
                }
                (Err(AssignError::NoRoom { .. }), None) => {}
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    #[test]
    fn the_mapping_of_joglekar_2004_gives_the_measured_rate_and_the_best_one_reaches_line_rate() {
        let found = linkem::comparison();
        let share = |a: &Assignment| a.packets_per_s.value / found.offered_pps;
        assert!((share(&found.thesis) - 0.80).abs() < 0.04, "{:?}", found.thesis);
        assert!(share(&found.best) > 1.0, "{:?}", found.best);
        assert!(found.gain.value > 1.5 && found.gain.low > 1.5, "{:?}", found.gain);
        // With the third engine given to egress, two engines are still better than the thesis'
        // mapping.
        assert!(share(&found.best_on_two) > share(&found.thesis));
    }

    #[test]
    fn code_space_forces_tasks_apart() {
        let tasks = vec![task(50.0, 0.0, 1500, State::Private), task(50.0, 0.0, 1500, State::Private)];
        let apart = best(&tasks, &processor(2, 2048)).expect("it fits");
        assert_eq!(apart.groups.len(), 2);
        let together = best(&tasks, &processor(2, 4096)).expect("it fits");
        assert_eq!((together.groups.len(), together.groups[0].engines), (1, 2));
        assert!(matches!(best(&tasks, &processor(1, 2048)), Err(AssignError::NoRoom { .. })));
        assert!(matches!(best(&tasks, &processor(2, 1000)), Err(AssignError::TooLarge { .. })));
    }

    #[test]
    fn twelve_tasks_are_searched_at_once() {
        let tasks: Vec<Task> = (0..12)
            .map(|i| task(f64::from(40 + 13 * i % 70), f64::from(100 + 29 * i % 90), 400, State::Private))
            .collect();
        let found = best(&tasks, &processor(6, 2048)).expect("it fits");
        assert!(found.groups.iter().all(|g| g.code <= 2048) && found.engines <= 6);
    }

    #[test]
    fn a_mapping_that_is_not_one_is_refused() {
        let (tasks, processor) = (linkem::tasks(), linkem::ixp1200());
        let refused = |mapping: &[(&[usize], u32)]| evaluate(&tasks, &processor, mapping).is_err();
        assert!(refused(&[(&[0, 1], 1)]));
        assert!(refused(&[(&[0, 1, 2, 3, 4, 5, 5], 1)]));
        assert!(refused(&[(&[0, 1, 2, 3, 4, 5], 4)]));
        assert!(refused(&[(&[0, 1, 2, 3, 4, 5], 0)]));
    }
}
