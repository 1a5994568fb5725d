//! Cycle budgets of threads on engines (Joglekar 2004, §4.1): a packet costs T_c compute cycles and
//! T_m cycles of memory and I/O. The other threads hide the share u of the latter.
//!
//! The thesis gives two formulas that contradict each other. Its text says that a thread holds a
//! packet for T_t = 4·T_c + (1−u)·T_m, and that the four threads together take one packet every
//! T_a = T_c + (1−u)·T_m. But four threads that each hold a packet for T_t take one every
//! T_t/4 = T_c + (1−u)·T_m/4. [`Formula`] offers both. Every result names the formula used and
//! shows the value by the other.

use crate::Estimate;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Microengine clock of the thesis' board, Hz.
pub const IXP1200_HZ: f64 = 232e6;

/// The cycles that one packet costs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PacketCycles {
    /// Compute cycles T_c; an interval where only bounds are known.
    pub compute: Estimate,
    /// Memory and I/O cycles T_m.
    pub memory: f64,
}

/// How the time between packets follows from the cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Formula {
    /// T_a = T_c + (1−u)·T_m: memory cycles that are not hidden stall the whole engine. With u =
    /// 0.62 it gives the measured 83 % of line rate at 64 B.
    #[default]
    PerPacket,
    /// T_t/threads = T_c + (1−u)·T_m/threads: memory cycles that are not hidden stall one thread
    /// only. No u gives the 83 %.
    PerThread,
}

/// How the work is distributed over engines.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each engine does one stage; the slowest stage decides.
    Pipelined(Vec<PacketCycles>),
    /// Every engine does all the work for its share of the packets.
    Parallel {
        /// The work per packet.
        work: PacketCycles,
        /// Number of engines.
        engines: u32,
    },
}

/// The work, the engines and the offered load of a budget.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BudgetQuery {
    /// The work and where it runs.
    pub layout: Layout,
    /// Threads per engine; 4 on the IXP1200.
    pub threads: u32,
    /// Share u of the memory cycles that is hidden, 0 … 1. If unknown, the result is the range over
    /// all u, with the ideal schedule as value.
    pub hidden: Option<f64>,
    /// Engine clock, Hz.
    pub clock_hz: f64,
    /// Offered load in packets/s, all ports together, if it is to be compared.
    pub offered_pps: Option<f64>,
    /// Which formula decides.
    pub formula: Formula,
}

/// The rate that threads and engines sustain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Budget {
    /// The formula used.
    pub formula: Formula,
    /// Time between packets that is sustained, cycles.
    pub arrival_cycles: Estimate,
    /// Packets/s that are sustained.
    pub packets_per_s: Estimate,
    /// How long a thread of the slowest engine holds a packet, cycles.
    pub thread_cycles: Estimate,
    /// `arrival_cycles` by the other formula.
    pub other_formula_arrival_cycles: Estimate,
    /// Cycles between offered packets.
    pub offered_cycles: Option<f64>,
    /// Sustained over offered rate, at most 1.
    pub share_of_offered: Option<Estimate>,
    /// The least u that sustains the offered rate; none when no u does, or no load is given.
    pub hidden_needed: Option<f64>,
    /// Reasons to doubt the result.
    pub warnings: Vec<String>,
}

/// Why there is no result.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// A number out of range.
    #[error("{what} = {value}: must be {range}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        range: &'static str,
    },
    /// There is no engine.
    #[error("no engine: give at least one stage or one engine")]
    NoEngine,
    /// No u between 0 and 1 gives the measured rate.
    #[error(
        "no hidden share gives {arrival_cycles:.1} cycles per packet: the formula spans {low:.1} (all hidden) to {high:.1} (none)"
    )]
    NoHiddenShare {
        /// The measured cycles between packets.
        arrival_cycles: f64,
        /// The formula at u = 1.
        low: f64,
        /// The formula at u = 0.
        high: f64,
    },
}

impl PacketCycles {
    /// PacketCycles of exactly known cycles.
    pub fn new(compute: f64, memory: f64) -> PacketCycles {
        PacketCycles { compute: Estimate::exact(compute), memory }
    }

    fn scaled(self, by: f64) -> PacketCycles {
        PacketCycles { compute: self.compute.map(|c| c * by), memory: self.memory * by }
    }
}

impl Layout {
    /// Returns the work divided into equal stages, one per engine.
    pub fn even_pipeline(work: PacketCycles, engines: u32) -> Layout {
        Layout::Pipelined((0..engines).map(|_| work.scaled(1.0 / f64::from(engines))).collect())
    }

    /// Returns the work that each engine does per packet of the whole processor.
    fn stages(&self) -> Vec<PacketCycles> {
        match self {
            Layout::Pipelined(stages) => stages.clone(),
            // Each of n engines takes every n-th packet: 1/n of the work per packet.
            Layout::Parallel { work, engines } => {
                (0..*engines).map(|_| work.scaled(1.0 / f64::from(*engines))).collect()
            }
        }
    }

    /// Returns how many packets of the whole processor pass while one engine handles one.
    fn replicas(&self) -> f64 {
        match self {
            Layout::Pipelined(_) => 1.0,
            Layout::Parallel { engines, .. } => f64::from(*engines),
        }
    }
}

impl Formula {
    /// Returns the cycles between packets of one engine.
    pub fn arrival(self, compute: f64, memory: f64, hidden: f64, threads: u32) -> f64 {
        match self {
            Formula::PerPacket => compute + (1.0 - hidden) * memory,
            Formula::PerThread => compute + (1.0 - hidden) * memory / f64::from(threads),
        }
    }

    /// Returns the u at which one engine takes a packet every `arrival_cycles`.
    ///
    /// # Errors
    /// [`BudgetError::NoHiddenShare`] when no u from 0 to 1 does.
    pub fn hidden(self, work: PacketCycles, threads: u32, arrival_cycles: f64) -> Result<f64, BudgetError> {
        let at = |u| self.arrival(work.compute.value, work.memory, u, threads);
        let (low, high) = (at(1.0), at(0.0));
        let u = (high - arrival_cycles) / (high - low);
        if (0.0..=1.0).contains(&u) {
            Ok(u)
        } else {
            Err(BudgetError::NoHiddenShare { arrival_cycles, low, high })
        }
    }

    fn other(self) -> Formula {
        match self {
            Formula::PerPacket => Formula::PerThread,
            Formula::PerThread => Formula::PerPacket,
        }
    }
}

/// Computes the budget of `query`.
///
/// # Errors
/// [`BudgetError`] for numbers out of range.
pub fn budget(query: &BudgetQuery) -> Result<Budget, BudgetError> {
    check(query)?;
    let stages = query.layout.stages();
    let by = |formula: Formula| slowest(stages.iter().map(|s| arrival(s, query, formula)));
    let arrival_cycles = by(query.formula);
    let threads = f64::from(query.threads);
    let thread_cycles =
        slowest(stages.iter().map(|s| {
            hidden_range(s, query, Formula::PerThread).map(|t| t * threads * query.layout.replicas())
        }));
    let packets_per_s = arrival_cycles.map(|c| query.clock_hz / c);
    let offered_cycles = query.offered_pps.map(|pps| query.clock_hz / pps);
    let hidden_needed = offered_cycles.and_then(|offered| {
        let needed = stages.iter().map(|s| {
            let at = |u| query.formula.arrival(s.compute.value, s.memory, u, query.threads);
            if at(0.0) <= offered { Some(0.0) } else { query.formula.hidden(*s, query.threads, offered).ok() }
        });
        needed.collect::<Option<Vec<f64>>>().map(|all| all.into_iter().fold(0.0, f64::max))
    });
    let mut warnings = vec![format!(
        "the two formulas of Joglekar 2004 contradict each other; {} is used",
        match query.formula {
            Formula::PerPacket => "T_a = T_c + (1-u) T_m",
            Formula::PerThread => "T_t/threads = T_c + (1-u) T_m/threads",
        }
    )];
    if query.hidden.is_none() {
        warnings
            .push("u is not given: the value is the ideal schedule, the interval spans u = 1 … 0".to_owned());
    }
    if offered_cycles.is_some() && hidden_needed.is_none() {
        warnings
            .push("the compute cycles alone exceed the offered packets' time: no u sustains them".to_owned());
    }
    Ok(Budget {
        formula: query.formula,
        arrival_cycles,
        packets_per_s,
        thread_cycles,
        other_formula_arrival_cycles: by(query.formula.other()),
        offered_cycles,
        share_of_offered: query.offered_pps.map(|offered| packets_per_s.map(|p| (p / offered).min(1.0))),
        hidden_needed,
        warnings,
    })
}

/// Returns one engine's time between packets, at the given u, or over all u with the ideal schedule
/// as value.
fn arrival(work: &PacketCycles, query: &BudgetQuery, formula: Formula) -> Estimate {
    let range = hidden_range(work, query, formula);
    match query.hidden {
        Some(_) => range,
        None => {
            // n threads keep the engine busy if n·T_c covers one round of T_c + T_m.
            let ideal = work.compute.value.max((work.compute.value + work.memory) / f64::from(query.threads));
            Estimate { value: ideal, ..range }
        }
    }
}

fn hidden_range(work: &PacketCycles, query: &BudgetQuery, formula: Formula) -> Estimate {
    let at = |compute: f64, u: f64| formula.arrival(compute, work.memory, u, query.threads);
    Estimate {
        value: at(work.compute.value, query.hidden.unwrap_or(1.0)),
        low: at(work.compute.low, query.hidden.unwrap_or(1.0)),
        high: at(work.compute.high, query.hidden.unwrap_or(0.0)),
    }
}

fn slowest(stages: impl Iterator<Item = Estimate>) -> Estimate {
    stages
        .reduce(|a, b| Estimate {
            value: a.value.max(b.value),
            low: a.low.max(b.low),
            high: a.high.max(b.high),
        })
        .expect("the number of stages was checked")
}

fn check(query: &BudgetQuery) -> Result<(), BudgetError> {
    let stages = query.layout.stages();
    if stages.is_empty() {
        return Err(BudgetError::NoEngine);
    }
    let positive = |what, value: f64| {
        if value.is_finite() && value > 0.0 {
            Ok(())
        } else {
            Err(BudgetError::Range { what, value, range: "above 0" })
        }
    };
    positive("threads", f64::from(query.threads))?;
    positive("clock", query.clock_hz)?;
    positive("offered rate", query.offered_pps.unwrap_or(1.0))?;
    for stage in &stages {
        positive("compute cycles", stage.compute.low)?;
        if !(stage.memory.is_finite() && stage.memory >= 0.0) {
            return Err(BudgetError::Range {
                what: "memory cycles",
                value: stage.memory,
                range: "0 or more",
            });
        }
    }
    match query.hidden {
        Some(u) if !(0.0..=1.0).contains(&u) => {
            Err(BudgetError::Range { what: "hidden share", value: u, range: "0 to 1" })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publications::linkem::{OFFERED_PPS, group_1, group_2};

    fn query(layout: Layout, hidden: Option<f64>, formula: Formula) -> BudgetQuery {
        BudgetQuery {
            layout,
            threads: 4,
            hidden,
            clock_hz: IXP1200_HZ,
            offered_pps: Some(OFFERED_PPS),
            formula,
        }
    }

    #[test]
    fn the_measured_83_percent_needs_u_of_0_62_by_one_formula_and_no_u_by_the_other() {
        let measured = IXP1200_HZ / 496e3;
        let u = Formula::PerPacket.hidden(group_1(), 4, measured).expect("within 0 … 1");
        assert!((u - 0.62).abs() < 0.005, "{u}");
        let error = Formula::PerThread.hidden(group_1(), 4, measured).unwrap_err().to_string();
        assert!(error.contains("spans 290.0 (all hidden) to 407.5 (none)"), "{error}");
        let none_hidden = query(Layout::Pipelined(vec![group_1()]), Some(0.0), Formula::PerThread);
        let share = budget(&none_hidden).expect("in range").share_of_offered.expect("offered");
        assert!((share.value - 0.956).abs() < 0.0006, "{share:?}");
    }

    #[test]
    fn the_time_a_thread_holds_a_packet_is_that_of_joglekar_2004() {
        let all_hidden = budget(&query(Layout::Pipelined(vec![group_1()]), Some(1.0), Formula::PerPacket))
            .expect("in range");
        assert_eq!(all_hidden.thread_cycles.value, 1160.0);
        let none = budget(&query(Layout::Pipelined(vec![group_1()]), Some(0.0), Formula::PerPacket))
            .expect("in range");
        assert_eq!(none.thread_cycles.value, 1160.0 + 470.0);
        // §4.1.2, parallel on three: 3·4·T_ci + 3·(1−u)·T_mi with T_ci a third of T_c.
        let parallel = Layout::Parallel { work: PacketCycles::new(300.0, 600.0), engines: 3 };
        let answer = budget(&query(parallel, Some(0.5), Formula::PerPacket)).expect("in range");
        assert_eq!(answer.thread_cycles.value, 3.0 * 4.0 * 100.0 + 3.0 * 0.5 * 200.0);
        assert_eq!(answer.arrival_cycles.value, 100.0 + 0.5 * 200.0);
    }

    #[test]
    fn even_pipelines_and_replicas_take_packets_equally_fast() {
        for hidden in [None, Some(0.0), Some(0.4), Some(1.0)] {
            let work = PacketCycles::new(455.0, 985.0);
            let a =
                budget(&query(Layout::even_pipeline(work, 3), hidden, Formula::PerPacket)).expect("in range");
            let b = budget(&query(Layout::Parallel { work, engines: 3 }, hidden, Formula::PerPacket))
                .expect("in range");
            assert_eq!(a.arrival_cycles, b.arrival_cycles);
        }
    }

    #[test]
    fn the_slowest_stage_decides_and_unknown_u_gives_the_range() {
        let two = Layout::Pipelined(vec![group_1(), group_2()]);
        let answer = budget(&query(two, None, Formula::PerPacket)).expect("in range");
        assert_eq!(answer.arrival_cycles, Estimate { value: 290.0, low: 290.0, high: 760.0 });
        // 290 + (1−u)·470 = 389.76 needs u = 0.788.
        assert!((answer.hidden_needed.expect("some u") - 0.788).abs() < 5e-4);
        assert_eq!(answer.other_formula_arrival_cycles.high, 407.5);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let wrong = |q: BudgetQuery| budget(&q).unwrap_err().to_string();
        let base = query(Layout::Pipelined(vec![group_1()]), None, Formula::PerPacket);
        assert_eq!(
            wrong(BudgetQuery { hidden: Some(1.5), ..base.clone() }),
            "hidden share = 1.5: must be 0 to 1"
        );
        assert_eq!(wrong(BudgetQuery { threads: 0, ..base.clone() }), "threads = 0: must be above 0");
        assert_eq!(wrong(BudgetQuery { clock_hz: f64::NAN, ..base.clone() }), "clock = NaN: must be above 0");
        let none = BudgetQuery { layout: Layout::Pipelined(vec![]), ..base };
        assert_eq!(wrong(none), "no engine: give at least one stage or one engine");
    }
}
