//! What is left of a run, or of a part of one, when nothing can happen any more, and the outcome
//! that it makes.

use crate::outcome::{Deadlock, Latency, LatencyInterval, Outcome};
use crate::route::{Leg, Route};
use crate::stats::{Confidence, Series};
use crate::unit::Unit;
use fastpath_units::{Distribution, Time};
use std::collections::BTreeMap;

/// A unit loses a considerable part of all lost frames if it loses at least one in this many.
const FAIR_PART: u64 = 100;

/// A run, or a part of one, at its end.
pub(crate) struct Ended<'a> {
    pub(crate) route: &'a Route,
    /// See [`Outcome::is_precise`].
    pub(crate) is_precise: Option<bool>,
    /// The time of the last event.
    pub(crate) end: Time,
    /// Events handled.
    pub(crate) events: u64,
    /// Copies that links have made.
    pub(crate) copies: u64,
    pub(crate) trace_hash: u64,
    pub(crate) names: Vec<String>,
    pub(crate) units: Vec<Unit>,
    pub(crate) flows: Vec<FlowCount>,
    pub(crate) counts: Counts,
    /// Sentences about the packets that wait for room, by the unit that they wait for.
    pub(crate) wait_for_room: Vec<Vec<String>>,
    /// Sentences about the threads that wait for locks.
    pub(crate) wait_for_locks: Vec<String>,
}

/// The frames of one flow.
#[derive(Clone, Copy, Default)]
pub(crate) struct FlowCount {
    pub(crate) arrived: u64,
    pub(crate) left: u64,
    /// One more than the highest number that has left.
    pub(crate) next: u64,
}

/// The frames of a run.
pub(crate) struct Counts {
    pub(crate) offered: u64,
    pub(crate) forwarded: u64,
    /// By unit and reason.
    pub(crate) dropped: BTreeMap<(usize, &'static str), u64>,
    /// Counted between the end of the warm-up and the end of the workload.
    pub(crate) window: (Time, Time),
    pub(crate) offered_in_window: u64,
    pub(crate) forwarded_in_window: u64,
    pub(crate) latency: Distribution,
    /// By traffic class; empty if there is one class.
    pub(crate) classes: Vec<Distribution>,
    /// Latencies of the frames in the order of departure, µs.
    pub(crate) latencies_us: Series,
    pub(crate) order_violations: u64,
}

impl Counts {
    pub(crate) fn new(window: (Time, Time), classes: u32) -> Counts {
        let classes = if classes > 1 { classes as usize } else { 0 };
        Counts {
            offered: 0,
            forwarded: 0,
            dropped: BTreeMap::new(),
            window,
            offered_in_window: 0,
            forwarded_in_window: 0,
            latency: Distribution::growing(),
            classes: vec![Distribution::growing(); classes],
            latencies_us: Series::default(),
            order_violations: 0,
        }
    }

    pub(crate) fn is_counted(&self, at: Time) -> bool {
        (self.window.0..=self.window.1).contains(&at)
    }
}

impl<'a> Ended<'a> {
    /// Joins the end of this part and that of the part downstream, where all packets leave.
    /// `is_downstream` says which part simulated a unit.
    pub(crate) fn join(self, mut downstream: Ended<'a>, is_downstream: &[bool]) -> Ended<'a> {
        fn pick<T>(upstream: Vec<T>, downstream: Vec<T>, is_downstream: &[bool]) -> Vec<T> {
            let both = upstream.into_iter().zip(downstream).zip(is_downstream);
            both.map(|((up, down), is_downstream)| if *is_downstream { down } else { up }).collect()
        }
        let counts = &mut downstream.counts;
        counts.offered += self.counts.offered;
        counts.offered_in_window += self.counts.offered_in_window;
        counts.dropped.extend(self.counts.dropped);
        for (down, up) in downstream.flows.iter_mut().zip(&self.flows) {
            down.arrived += up.arrived;
        }
        downstream.units = pick(self.units, downstream.units, is_downstream);
        downstream.wait_for_room = pick(self.wait_for_room, downstream.wait_for_room, is_downstream);
        downstream.wait_for_locks.extend(self.wait_for_locks);
        downstream.copies += self.copies;
        downstream.events += self.events;
        downstream.end = downstream.end.max(self.end);
        downstream
    }

    /// The outcome.
    pub(crate) fn outcome(self) -> Outcome {
        let (counts, end) = (&self.counts, self.end);
        let lost: u64 = counts.dropped.values().sum();
        let held = counts.offered + self.copies - counts.forwarded - lost;
        let window = (counts.window.1 - counts.window.0).as_secs_f64().max(1e-12);
        let name = |(unit, why): (usize, &str)| format!("{} {why}", self.names[unit]);
        Outcome {
            offered: counts.offered,
            forwarded: counts.forwarded,
            dropped: counts.dropped.iter().map(|(&key, &n)| (name(key), n)).collect(),
            copied: self.copies,
            held,
            offered_pps: counts.offered_in_window as f64 / window,
            forwarded_pps: counts.forwarded_in_window as f64 / window,
            latency_us: Latency::of(&counts.latency),
            latency_by_class_us: counts.classes.iter().map(Latency::of).collect(),
            latency_interval_us: counts.latencies_us.estimate(Confidence::P95).map(|found| LatencyInterval {
                mean: found.mean,
                low: found.mean - found.half,
                high: found.mean + found.half,
                warm_up_frames: counts.latencies_us.warm_up(),
                is_long_enough: counts.latencies_us.is_long_enough(),
            }),
            is_precise: self.is_precise,
            units: self.names.iter().cloned().zip(self.units.iter().map(|u| u.usage(end))).collect(),
            bottleneck: self.bottleneck(),
            worst_flow_share: self.worst_flow_share(),
            order_violations: counts.order_violations,
            deadlock: (held > 0).then(|| self.deadlock()),
            events: self.events,
            seconds: end.as_secs_f64(),
            trace_hash: self.trace_hash,
        }
    }

    fn worst_flow_share(&self) -> f64 {
        let shares = self.flows.iter().filter(|f| f.arrived > 0).map(|f| f.left as f64 / f.arrived as f64);
        shares.fold(1.0, f64::min)
    }

    /// A guess of the bottleneck without a trial: the last unit on the way that loses a
    /// considerable part of the lost frames, or else the busiest unit on the way. See
    /// `bottleneck.rs` for the answer.
    fn bottleneck(&self) -> String {
        let lost: u64 = self.counts.dropped.values().sum();
        let lost_at = |unit| self.counts.dropped.iter().filter(move |((u, _), _)| *u == unit).map(|(_, n)| n);
        let loses = |leg: &&Leg| lost_at(leg.unit).sum::<u64>() >= (lost / FAIR_PART).max(1);
        let loser = self.route.legs.iter().rev().find(loses).map(|leg| leg.unit);
        let busiest = || {
            let used = self.route.legs.iter().map(|leg| leg.unit);
            let busy = |unit: usize| self.units[unit].usage(self.end).busy;
            used.max_by(|&a, &b| busy(a).total_cmp(&busy(b)))
        };
        loser.or_else(busiest).map_or(String::new(), |unit| self.names[unit].clone())
    }

    /// Describes which server waits for which unit, when nothing can happen any more and packets
    /// are inside.
    fn deadlock(&self) -> Deadlock {
        let mut waits: Vec<String> = self.wait_for_room.iter().flatten().cloned().collect();
        waits.extend(self.wait_for_locks.iter().cloned());
        for (unit, name) in self.units.iter().zip(&self.names) {
            waits.extend(unit.stranded(name));
        }
        Deadlock { waits }
    }
}
