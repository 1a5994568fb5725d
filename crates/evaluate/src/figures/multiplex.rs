//! Figures 5.6 and 5.8: the largest number of links that all keep their rate. Every link is offered
//! 10 % more than its rate in full-sized frames, so that it is always busy. The TCP flows of the
//! publication load a link no more than that.

use super::{Figure, Measurement, Needs};
use crate::load_generator::{self, FRAME, LoadParams};
use crate::{Effort, MeasurementError, RunContext, SEED};
use fastpath_link::PipeSpec;
use fastpath_net::{EdgeId, Network};
use fastpath_report::{Criterion, EvaluatedFigure, Scale};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::{Bytes, Rate, Time};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Rates of a link, kbit/s: full, and quick.
const RATES: [f64; 6] = [128.0, 256.0, 512.0, 1000.0, 2000.0, 10_000.0];
const QUICK_RATES: [f64; 3] = [128.0, 2000.0, 10_000.0];
/// The goodput of TCP on a port of 100 Mbit/s from which the publication draws its ideal curve,
/// kbit/s.
const IDEAL_KBIT: f64 = 94_000.0;
const OFFERED: f64 = 1.1;
/// The tolerance of the publication, and a twentieth of it.
const TOLERANCES: [f64; 2] = [0.02, 0.001];
/// How often a number of links is tried until it passes. A host stall passes; a property of the
/// emulator stays.
const ATTEMPTS: usize = 2;
/// Where the search begins: frames per second that any machine forwards.
const FIRST_PPS: f64 = 80_000.0;
/// Number of links in virtual time (usual, largest), and frames over each.
const VIRTUAL_LINKS: [usize; 2] = [10_000, 1_000_000];
const VIRTUAL_FRAMES: u64 = 4;

// Published values of Joglekar 2004.
/// Figure 5.6: rate of a link in kbit/s, and the links over four ports that LinkEM and Dummynet
/// carry, where the text prints them.
const FIGURE_5_6: &[(f64, f64, f64)] =
    &[(128.0, 840.0, 480.0), (2000.0, 172.0, 180.0), (10000.0, 36.0, 36.0)];
/// Figure 5.8: the same over two ports.
const FIGURE_5_8: &[(f64, f64, f64)] = &[(128.0, 1320.0, 500.0), (256.0, 680.0, 500.0)];

/// A figure: pairs of ports, and the published numbers of links.
struct LinkCounts {
    name: &'static str,
    pairs: usize,
    published: &'static [(f64, f64, f64)],
}

const LINK_COUNTS: [LinkCounts; 2] = [
    LinkCounts { name: "figure-5.6", pairs: 2, published: FIGURE_5_6 },
    LinkCounts { name: "figure-5.8", pairs: 1, published: FIGURE_5_8 },
];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        id: "figure-5.6",
        title: "Figure 5.6: links multiplexed over four ports",
        original: "LinkEM, Joglekar 2004, Figure 5.6",
        x: Some(("rate of a link, kbit/s", Scale::Log10)),
        y: Some(("number of links", Scale::Log10)),
        note: "",
        variants: &[("0.1%", "all rates within 0.1 %"), ("virtual", "in virtual time")],
    },
    Figure {
        id: "figure-5.8",
        title: "Figure 5.8: links multiplexed over two ports",
        original: "LinkEM, Joglekar 2004, Figure 5.8",
        x: Some(("rate of a link, kbit/s", Scale::Log10)),
        y: Some(("number of links", Scale::Log10)),
        note: "",
        variants: &[("0.1%", "all rates within 0.1 %"), ("virtual", "in virtual time")],
    },
];

pub(super) const MEASUREMENTS: &[Measurement] = &[VIRTUAL, REAL];

const REAL: Measurement = Measurement {
    step: "link multiplexing",
    needs: Needs::Nothing,
    ids: |effort| ids(rates(effort)).flat_map(|id| [id.clone(), format!("{id}/0.1%")]).collect(),
    seconds: [60.0, 900.0],
    rattan_seconds: [0.0; 2],
    run: real,
};

const VIRTUAL: Measurement = Measurement {
    step: "link multiplexing in virtual time",
    needs: Needs::Nothing,
    ids: |effort| ids(rates(effort)).map(|id| format!("{id}/virtual")).collect(),
    seconds: [1.0, 60.0],
    rattan_seconds: [0.0; 2],
    run: in_virtual_time,
};

fn rates(effort: Effort) -> &'static [f64] {
    match effort {
        Effort::Quick => &QUICK_RATES,
        Effort::Full => &RATES,
    }
}

fn ids(rates: &[f64]) -> impl Iterator<Item = String> + '_ {
    LINK_COUNTS.iter().flat_map(move |figure| rates.iter().map(move |kbit| figure.id(*kbit)))
}

impl LinkCounts {
    fn id(&self, kbit: f64) -> String {
        format!("{}/{kbit}", self.name)
    }

    fn published(&self, kbit: f64) -> Option<(f64, f64)> {
        self.published.iter().find(|row| row.0 == kbit).map(|row| (row.1, row.2))
    }

    /// The number of links that fit the ports of the publication.
    fn ideal(&self, kbit: f64) -> f64 {
        (2.0 * self.pairs as f64 * IDEAL_KBIT / kbit).floor()
    }
}

fn real(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let mut results = Vec::new();
    for figure in &LINK_COUNTS {
        let wanted =
            |kbit: &&f64| context.wants(&figure.id(**kbit)) || context.wants(&(figure.id(**kbit) + "/0.1%"));
        let rates: Vec<f64> = rates(context.effort).iter().filter(wanted).copied().collect();
        if rates.is_empty() {
            continue;
        }
        let window = context.either(Duration::from_millis(300), Duration::from_secs(2));
        let bare_pps = load_generator::bare(figure.pairs, window, context)?;
        for kbit in rates {
            let found = search(figure, kbit, context)?;
            results.extend(results_of(figure, kbit, &found, bare_pps));
        }
    }
    Ok(results)
}

/// The result of a search: the largest number of flows within each tolerance.
#[derive(Clone, PartialEq, Debug, Default)]
struct LinkSearch {
    most: [usize; 2],
    /// The smallest number of flows that exceeded each tolerance.
    too_many: [Option<usize>; 2],
    trials: u64,
    /// The worst error of the largest trial within the published tolerance.
    worst: f64,
    packets_per_second: f64,
    /// Whether the source could not offer the load: then the limit is not the engine's.
    source_short: bool,
}

/// Doubles the number of flows until some do not keep their rate, then bisects: first for the
/// published tolerance, then below that result for the narrower one.
fn search(figure: &LinkCounts, kbit: f64, context: &RunContext<'_>) -> Result<LinkSearch, MeasurementError> {
    let rate = (kbit * 1000.0) as u64;
    let frames = kbit * 1000.0 * OFFERED / (8 * FRAME) as f64;
    let window = context.either(Duration::from_millis(800), Duration::from_secs(4));
    let (trials_max, close) = context.either((6, 1.2), (24, 1.05));
    let mut found = LinkSearch::default();
    let mut flows = LoadParams::round((FIRST_PPS / frames) as usize, figure.pairs).max(2 * figure.pairs);
    while found.trials < trials_max {
        let load = LoadParams { pairs: figure.pairs, flows, rate, offered: OFFERED, window };
        let mut trial = load_generator::run(&load, context)?;
        for _ in 1..ATTEMPTS {
            if trial.outside(TOLERANCES[0]) > 0 {
                trial = load_generator::run(&load, context)?;
            }
        }
        found.trials += 1;
        for (i, tolerance) in TOLERANCES.into_iter().enumerate() {
            if trial.outside(tolerance) == 0 {
                found.most[i] = found.most[i].max(flows);
            } else {
                found.too_many[i] = Some(found.too_many[i].map_or(flows, |least| least.min(flows)));
                found.source_short |= i == 0 && trial.offered_share < 0.98;
            }
        }
        if trial.outside(TOLERANCES[0]) == 0 && flows == found.most[0] {
            found.worst = trial.worst();
            found.packets_per_second = trial.received as f64 / window.as_secs_f64();
        }
        match (0..2).find_map(|i| next(found.most[i], found.too_many[i], figure.pairs, close)) {
            Some(more) => flows = more,
            None => break,
        }
    }
    Ok(found)
}

/// Returns the number of flows to try next, or `None` if the bounds are close enough.
fn next(most: usize, too_many: Option<usize>, pairs: usize, close: f64) -> Option<usize> {
    let least = 2 * pairs;
    let next = match too_many {
        None => LoadParams::round(2 * most.max(least), pairs),
        // Bounds may contradict each other by chance; then the smaller one holds.
        Some(many) if most >= many || many as f64 <= close * most as f64 => return None,
        // Nothing has passed yet: go down in larger steps.
        Some(many) if most == 0 => LoadParams::round(many / 4, pairs).max(least),
        Some(many) => LoadParams::round((most + many) / 2, pairs),
    };
    (next > most && too_many.is_none_or(|many| next < many)).then_some(next)
}

fn results_of(figure: &LinkCounts, kbit: f64, found: &LinkSearch, bare_pps: f64) -> Vec<EvaluatedFigure> {
    let published = figure.published(kbit);
    let original = published.map(|(linkem, _)| linkem);
    let ideal = figure.ideal(kbit);
    let control = (bare_pps / (kbit * 1000.0 * OFFERED / (8 * FRAME) as f64)).floor();
    let names = [figure.id(kbit), figure.id(kbit) + "/0.1%"];
    let results = names.into_iter().enumerate().map(|(i, id)| {
        let criterion = match original {
            Some(bound) => Criterion::at_least(bound, 0.0, "the original"),
            None => Criterion::at_least(ideal, 0.0, "the published ideal"),
        };
        let mut result = EvaluatedFigure::new(id, "links", found.most[i] as f64, found.trials, criterion)
            .original(original)
            .control(control)
            .detail("published_ideal_links", ideal)
            .detail("trials", found.trials as f64)
            .detail("tolerance_percent", 100.0 * TOLERANCES[i]);
        if i == 0 {
            result = result
                .detail("worst_error_percent", 100.0 * found.worst)
                .detail("packets_per_second", found.packets_per_second);
        }
        if let Some(many) = found.too_many[i] {
            result = result.detail("too_many_links", many as f64);
        }
        if let Some((_, dummynet)) = published {
            result = result.detail("dummynet_published_links", dummynet);
        }
        let most = if found.most[i] >= LoadParams::most(figure.pairs) { "; larger numbers were not tried" } else { "" };
        let short = if found.source_short { "; the source was the limit" } else { "" };
        result.note(format!("links are counted as in the publication, one for each direction; a number that fails is tried once more; without emulator, source and sink exchange frames over bare copies{most}{short}"))
    });
    results.collect()
}

fn in_virtual_time(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let mut results = Vec::new();
    for figure in &LINK_COUNTS {
        for &kbit in rates(context.effort) {
            let id = figure.id(kbit) + "/virtual";
            if !context.wants(&id) {
                continue;
            }
            context.stop.check()?;
            // The lowest rate on the fewest ports is the case with the most links.
            let largest = figure.pairs == 1 && kbit == RATES[0];
            let links =
                context.either(VIRTUAL_LINKS[0], if largest { VIRTUAL_LINKS[1] } else { VIRTUAL_LINKS[0] });
            let wrong = inexact(links, (kbit * 1000.0) as u64);
            let criterion = Criterion::Within { target: 0.0, tolerance: 0.0 };
            let n = links as u64;
            results.push(
                EvaluatedFigure::new(id, "links not exact", wrong as f64, n, criterion)
                    .detail("links", links as f64),
            );
        }
    }
    Ok(results)
}

/// Counts the links, of `links` saturated ones, with a frame that does not leave at its exact time.
fn inexact(links: usize, bps: u64) -> usize {
    let pipe = PipeSpec { rate: Rate::from_bps(bps), ..PipeSpec::default() };
    let mut topology = Topology::default();
    for i in 0..links {
        let ends = ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::host()));
        topology.connect(format!("l{i}"), ends[0], ends[1], [pipe.clone(), pipe.clone()]);
    }
    let pool_limit = NonZeroUsize::MAX;
    let mut network = Network::new(topology, fastpath_net::Options::new(SEED, pool_limit));
    // The shortest frame: the rate is exact for any length, and many frames fit.
    let frame = [0; 60];
    let bits = u128::from(Bytes(frame.len() as u64).bits());
    let mut left = vec![0u64; links];
    let mut right = vec![true; links];
    for _ in 0..VIRTUAL_FRAMES {
        for link in 0..links {
            let handle = network.pool_mut().insert(&frame).expect("there is no limit");
            network.push(Time::ZERO, EdgeId(2 * link as u32), handle);
        }
    }
    while let Some(now) = network.next_at() {
        while let Some(delivery) = network.pop(now) {
            let link = delivery.edge.0 as usize / 2;
            left[link] += 1;
            let due = bits * u128::from(left[link]) * 1_000_000_000_000 / u128::from(bps);
            right[link] &= u128::from(delivery.at.as_ps()) == due;
            network.pool_mut().free(delivery.frame);
        }
    }
    left.iter().zip(right).filter(|(count, right)| **count != VIRTUAL_FRAMES || !right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_doubles_then_halves_and_ends() {
        let capacity = 13_000;
        let (mut most, mut too_many, mut flows, mut trials) = (0, None, 64, 0);
        loop {
            trials += 1;
            if flows <= capacity {
                most = most.max(flows)
            } else {
                too_many = Some(flows)
            }
            match next(most, too_many, 1, 1.05) {
                Some(more) => flows = more,
                None => break,
            }
        }
        assert!(
            most <= capacity && most as f64 * 1.05 >= too_many.unwrap() as f64 - 64.0,
            "{most} {too_many:?}"
        );
        assert!(trials < 16, "{trials}");
        // Nothing passes; nothing fails.
        assert_eq!(next(0, Some(2), 1, 1.05), None);
        assert_eq!(next(LoadParams::most(1), None, 1, 1.05), None);
        // The first step fails: the search goes down to the minimum.
        assert_eq!(next(0, Some(64), 1, 1.05), Some(16));
        assert_eq!(next(0, Some(4), 1, 1.05), Some(2));
    }

    #[test]
    fn the_ideal_curve_is_the_published_one() {
        assert_eq!([128.0, 256.0, 10_000.0].map(|kbit| LINK_COUNTS[1].ideal(kbit)), [1468.0, 734.0, 18.0]);
    }

    #[test]
    fn a_thousand_links_are_exact_in_virtual_time() {
        assert_eq!(inexact(1000, 128_000), 0);
        assert_eq!(inexact(1000, 7_777_777), 0);
    }
}
