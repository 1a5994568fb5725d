//! The lookahead of a pipe: the least delay that it can have in a whole run, so that what leaves it
//! is known that long before it arrives.
//!
//! Everything that is known before the run counts: the description, its events, and the steps of
//! traces. Effects in front of the delay (queue, rate, slots) only add to it. A normal jitter has
//! no least value; it counts with twelve standard deviations, which a run exceeds with a
//! probability below 10⁻³² per packet. A part tells if that happens
//! ([`CutError::Late`](crate::CutError::Late)).

use fastpath_link::{Change, JitterLaw, JitterSpec, PipeSpec};
use fastpath_spec::trace::Timeline;
use fastpath_spec::{Link, Topology};
use fastpath_units::Duration;
use std::fmt;

/// Standard deviations below the mean that a normal variate may have.
const NORMAL_SDS: i128 = 12;

/// Why a network cannot be cut at a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoCut {
    /// The delay of one of its pipes can be 0.
    NoDelay,
    /// Packets can skip the delay of one of its pipes.
    Reorder,
    /// Copies leave one of its pipes later than their packets.
    LateCopies,
    /// The delay of one of its pipes can be below the least that is cut.
    Below(Duration),
}

impl fmt::Display for NoCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCut::NoDelay => f.write_str("its delay can be 0"),
            NoCut::Reorder => f.write_str("`reorder` lets packets skip its delay"),
            NoCut::LateCopies => f.write_str("copies leave later than their packets"),
            NoCut::Below(least) => write!(f, "its delay can be below {least}"),
        }
    }
}

/// What a pipe can become in a run.
struct Extremes {
    delay: Duration,
    /// The least variation of the delay, ps; 0 without jitter.
    jitter_ps: i128,
    reorders: bool,
    copies_later: bool,
    /// Whether it has jitter at any time.
    jitters: bool,
    /// Whether any of its parameters can change.
    changes: bool,
}

/// What is known of the pipes of a link before the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkLookahead {
    /// The least delay of each pipe, or why the network cannot be cut at this link.
    pub(crate) least: Result<[Duration; 2], NoCut>,
    /// By pipe: whether its parameters can change.
    pub(crate) changes: [bool; 2],
    /// By pipe: whether it has jitter at any time.
    pub(crate) jitters: [bool; 2],
}

impl Extremes {
    fn of(spec: &PipeSpec) -> Extremes {
        Extremes {
            delay: spec.delay,
            jitter_ps: spec.jitter.as_deref().map_or(0, least_ps),
            reorders: spec.reorder.is_some(),
            copies_later: !spec.duplicate.is_never() && !spec.duplicate.later.is_zero(),
            jitters: spec.jitter.is_some(),
            changes: false,
        }
    }

    fn add(&mut self, change: &Change) {
        self.changes = true;
        self.delay = change.delay.map_or(self.delay, |delay| delay.min(self.delay));
        if let Some(jitter) = &change.jitter {
            self.jitters |= jitter.is_some();
            self.jitter_ps = self.jitter_ps.min(jitter.as_deref().map_or(0, least_ps));
        }
        self.reorders |= matches!(change.reorder, Some(Some(_)));
        self.copies_later |= change.duplicate.is_some_and(|copies| !copies.later.is_zero());
    }

    fn least(&self) -> Result<Duration, NoCut> {
        if self.reorders {
            return Err(NoCut::Reorder);
        }
        if self.copies_later {
            return Err(NoCut::LateCopies);
        }
        let exact = i128::from(self.delay.as_ps()) + self.jitter_ps;
        // A sum with jitter is computed in floating point and rounded.
        let rounding = if self.jitter_ps == 0 { 0 } else { 1 + (self.delay.as_ps() >> 50) };
        match u64::try_from(exact - i128::from(rounding)) {
            Ok(ps) if ps > 0 => Ok(Duration::from_ps(ps)),
            _ => Err(NoCut::NoDelay),
        }
    }
}

/// Returns the least value of a jitter, ps.
fn least_ps(jitter: &JitterSpec) -> i128 {
    let ps = |span: Duration| i128::from(span.as_ps());
    match &jitter.law {
        JitterLaw::Uniform { half_width } => -ps(*half_width),
        JitterLaw::Normal { sd } => -NORMAL_SDS * ps(*sd),
        JitterLaw::Lognormal { .. } | JitterLaw::Pareto { .. } | JitterLaw::Exponential { .. } => 0,
        JitterLaw::Table(values) => values.first().map_or(0, |least| i128::from(*least)),
        JitterLaw::Trace(values) => values.iter().min().map_or(0, |least| ps(*least)),
    }
}

/// Returns what is known of each link before the run.
pub(crate) fn lookaheads(topology: &Topology) -> Vec<LinkLookahead> {
    let extremes = |link: &Link| [0, 1].map(|pipe| Extremes::of(&link.pipes[pipe]));
    let mut links: Vec<[Extremes; 2]> = topology.links.iter().map(extremes).collect();
    for event in &topology.events {
        let pipes = &mut links[event.link.0 as usize];
        event.direction.pipes().for_each(|pipe| pipes[pipe].add(&event.change));
    }
    for track in &topology.tracks {
        let pipe = &mut links[track.link.0 as usize][track.pipe];
        pipe.changes = true;
        if let Timeline::Steps(steps) = &track.timeline {
            steps.steps().iter().for_each(|step| pipe.add(&step.values.change()));
        }
    }
    let known = |pipes: &[Extremes; 2]| LinkLookahead {
        least: pipes[0].least().and_then(|forward| Ok([forward, pipes[1].least()?])),
        changes: [pipes[0].changes, pipes[1].changes],
        jitters: [pipes[0].jitters, pipes[1].jitters],
    };
    links.iter().map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lookahead of the first link, in both directions.
    fn lookahead(link: &str, rest: &str) -> Result<[String; 2], NoCut> {
        let text = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{link}\n{rest}");
        let (topology, _) = fastpath_spec::parse(&text).expect("a valid spec");
        lookaheads(&topology)[0].least.map(|pipes| pipes.map(|pipe| pipe.to_string()))
    }

    fn both(text: &str) -> Result<[String; 2], NoCut> {
        Ok([text.to_owned(), text.to_owned()])
    }

    #[test]
    fn a_constant_delay_is_the_lookahead_whatever_is_in_front_of_it() {
        assert_eq!(lookahead("delay = '5ms'", ""), both("5ms"));
        assert_eq!(lookahead("delay = '1ns'\nrate = '1Mbit'\nloss = '1%'\nqueue = '3p'", ""), both("1ns"));
        assert_eq!(lookahead("delay = '2ms'\nslots = '3ms'", ""), both("2ms"));
        assert_eq!(lookahead("", ""), Err(NoCut::NoDelay));
        let one_way = "a_to_b = { delay = '1ms' }\nb_to_a = { delay = '3ms' }";
        assert_eq!(lookahead(one_way, ""), Ok(["1ms".to_owned(), "3ms".to_owned()]));
        assert_eq!(lookahead("a_to_b = { delay = '1ms' }", ""), Err(NoCut::NoDelay));
    }

    #[test]
    fn jitter_counts_with_its_least_value() {
        let jitter = |law: &str| lookahead(&format!("delay = '10ms'\njitter = {{ {law} }}"), "");
        assert_eq!(jitter("law = 'exponential', mean = '3ms'"), both("10ms"));
        let normal = jitter("law = 'normal', sd = '100us'").expect("8.8 ms");
        assert_eq!(normal[0], "8799999.999ns");
        assert_eq!(jitter("law = 'normal', sd = '1ms'"), Err(NoCut::NoDelay));
        assert_eq!(jitter("law = 'trace', values = ['3ms', '1ms']").expect("11 ms")[0], "10999999.999ns");
    }

    #[test]
    fn what_skips_the_delay_or_leaves_later_joins_the_ends() {
        assert_eq!(lookahead("delay = '5ms'\nreorder = '1%'", ""), Err(NoCut::Reorder));
        let later = "delay = '5ms'\nduplicate = { probability = '10%', later = '1ms' }";
        assert_eq!(lookahead(later, ""), Err(NoCut::LateCopies));
        assert_eq!(lookahead("delay = '5ms'\nduplicate = '10%'", ""), both("5ms"));
    }

    #[test]
    fn events_and_traces_count_and_presets_are_values_of_links() {
        let event = |key: &str| format!("[[event]]\nat = '1s'\nlink = 'a-b'\n{key}");
        assert_eq!(lookahead("delay = '5ms'", &event("delay = '2ms'")), both("2ms"));
        assert_eq!(lookahead("delay = '5ms'", &event("delay = '9ms'")), both("5ms"));
        assert_eq!(lookahead("delay = '5ms'", &event("delay = '0ms'")), Err(NoCut::NoDelay));
        assert_eq!(lookahead("delay = '5ms'", &event("reorder = '5%'")), Err(NoCut::Reorder));
        assert!(lookahead("preset = 'geo'", "").is_ok());
    }
}
