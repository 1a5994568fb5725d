//! The time that the emulator adds to a round trip, and the TCP goodput over it: a link of 10 ms
//! both ways, and a link without effects. Both are over TAPs, where the engine segments and
//! coalesces super-packets.

use super::{Figure, Measurement, Needs};
use crate::testbed::rattan::{self, RattanLink};
use crate::testbed::{Between, Testbed};
use crate::{MeasurementError, Round, Rounds, RunContext};
use fastpath_audit::bulk;
use fastpath_audit::echo::{self, Echo};
use fastpath_engine::Idle;
use fastpath_engine::priority::with_high_priority;
use fastpath_link::PipeSpec;
use fastpath_report::{Criterion, EvaluatedFigure};
use fastpath_units::Duration;
use fastpath_units::stats::{median, quantile, sorted};
use std::time;

/// One way.
const DELAY: Duration = Duration::from_ms(5);
const RTT_US: f64 = 10_000.0;
/// The payload of ping, bytes.
const PAYLOAD: usize = 56;
const SLOT: time::Duration = time::Duration::from_millis(2);
/// The overhead of rattan 0.1.1 on such a round trip on a comparable machine, µs: used where rattan
/// is not installed.
const RATTAN_PUBLISHED_US: f64 = 156.0;
const SHARE_OF_RATTAN: f64 = 0.25;
/// How much below the bridge a connection may be: the bridge's goodput varies by that much from run
/// to run.
const TCP_TOLERANCE: f64 = 0.05;

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        id: "rtt-overhead",
        title: "Overhead on a round trip",
        original: "rattan 0.1.1, where it is not installed",
        x: None,
        y: None,
        note: "",
        variants: &[("10ms", "link of 10 ms both ways"), ("save", "the engine sleeps between deadlines")],
    },
    Figure {
        id: "tcp",
        title: "TCP goodput",
        original: "none published",
        x: None,
        y: None,
        note: "",
        variants: &[("tap", "one connection over TAPs")],
    },
];

pub(super) const MEASUREMENTS: &[Measurement] = &[PART];

const PART: Measurement = Measurement {
    step: "overhead and TCP",
    needs: Needs::Namespaces,
    ids: |_| ["rtt-overhead/10ms", "rtt-overhead/10ms/save", "tcp/tap"].map(str::to_owned).to_vec(),
    seconds: [32.0, 210.0],
    rattan_seconds: [10.0, 50.0],
    run,
};

fn run(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let mut results = Vec::new();
    if context.wants("rtt-overhead/10ms") || context.wants("rtt-overhead/10ms/save") {
        results.extend(round_trips(context)?);
    }
    if context.wants("tcp/tap") {
        results.push(tcp(context)?);
    }
    Ok(results)
}

/// Measures the engine busy-polling, and sleeping between deadlines, where the wake-up is part of
/// the round trip. All alternatives are measured in turns; the results are medians of the rounds'
/// means, which a host stall in some rounds does not change.
fn round_trips(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let link = || Between::Taps(PipeSpec { delay: DELAY, ..PipeSpec::default() });
    let [mut busy, mut save, mut control, mut bridge, mut rattan]: [Rounds<Summary>; 5] = Default::default();
    let count = context.either(100, 1000);
    for _ in 0..context.either(3, 5) {
        busy.add(rtts(&link(), Idle::Busy, count, context)?);
        save.add(rtts(&link(), Idle::Save, count, context)?);
        control.add(rtts(&Between::Nothing, Idle::Busy, count, context)?);
        bridge.add(rtts(&Between::Bridge, Idle::Busy, count, context)?);
        let between = Between::Rattan(RattanLink::Delay(DELAY));
        let round = || rtts(&between, Idle::Busy, count, context);
        let found = context.peer(rattan::PROGRAM, round, |round| round.seen.n > 0)?;
        found.into_iter().for_each(|round| rattan.add(round));
    }
    let (rattan, _) = rattan.finish();
    let rattan = (!rattan.is_empty()).then(|| median(rattan.iter().map(|round| round.mean_us)) - RTT_US);
    let mean = |rounds: Rounds<Summary>| median(rounds.finish().0.iter().map(|round| round.mean_us));
    let [control, bridge] = [control, bridge].map(mean);
    let result = |id: &str, ours: Rounds<Summary>, share: f64, of: [&'static str; 2]| {
        let (ours, disturbed) = ours.finish();
        let (bound, of) = rattan.map_or((RATTAN_PUBLISHED_US, of[1]), |rattan| (rattan, of[0]));
        let criterion = Criterion::at_most(share * bound, 0.0, of);
        let added = |of: fn(&Summary) -> f64| median(ours.iter().map(of)) - RTT_US;
        let n = ours.iter().map(|round| round.n).sum();
        EvaluatedFigure::new(id.to_owned(), "µs", added(|round| round.mean_us), n, criterion)
            .control(control)
            .peer("kernel bridge", bridge)
            .peer(rattan::PROGRAM, rattan)
            .detail("p50_us", added(|round| round.p50_us))
            .detail("p99_us", added(|round| round.p99_us))
            .detail("rattan_published_us", RATTAN_PUBLISHED_US)
            .disturbed(disturbed)
            .note(
                "round trip less the link's 10 ms, medians over the rounds; the values without emulator and of the bridge are \
                 whole round trips",
            )
    };
    let busy_of = ["a quarter of rattan's overhead", "a quarter of rattan's published 156 µs"];
    Ok(vec![
        result("rtt-overhead/10ms", busy, SHARE_OF_RATTAN, busy_of),
        result("rtt-overhead/10ms/save", save, 1.0, ["rattan's", "rattan's published 156 µs"]),
    ])
}

/// The round trips of a round.
struct Summary {
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    n: u64,
}

/// Measures round trips between the hosts of a pair.
fn rtts(
    between: &Between,
    idle: Idle,
    count: usize,
    context: &RunContext<'_>,
) -> Result<Round<Summary>, MeasurementError> {
    let implied = match between {
        Between::Taps(_) | Between::Rattan(_) => DELAY * 2,
        _ => Duration::ZERO,
    };
    context.round(|watch| {
        let testbed = Testbed::with(std::slice::from_ref(between), idle)?;
        let (from, _, address) = testbed.pair(0);
        let mut echoes = [Echo::new(from, address, 1, (PAYLOAD, implied.to_std()))?];
        let echo = || echo::run(&mut echoes, count, SLOT, &context.stop);
        with_high_priority(|| watch.of_thread(echo))?;
        let [echo] = echoes;
        let us = sorted(echo.rtts_ms.iter().map(|ms| 1000.0 * ms));
        let at = |p| quantile(&us, p);
        let mean_us = us.iter().sum::<f64>() / us.len() as f64;
        let summary = Summary { mean_us, p50_us: at(0.5), p99_us: at(0.99), n: us.len() as u64 };
        Ok((summary, testbed.report()))
    })
}

fn tcp(context: &RunContext<'_>) -> Result<EvaluatedFigure, MeasurementError> {
    let (settle, window) =
        context.either((time::Duration::from_millis(300), 1.0), (time::Duration::from_secs(2), 5.0));
    let rounds = context.either(3, 5);
    // Goodput varies between connections: alternatives are measured in turns, and the median is the
    // result.
    let carried = |between: Between| {
        context.round(|watch| {
            // Sender and receiver need the cores. A busy-polling engine would take one of two.
            let testbed = Testbed::with(std::slice::from_ref(&between), Idle::Save)?;
            let (from, to, address) = testbed.pair(0);
            let times = (settle, settle + time::Duration::from_secs_f64(window));
            let bulk = watch.of_thread(|| bulk::run(from, to, address, times, &context.stop))?;
            Ok((bulk.unwrap_or(0.0) / 1000.0, testbed.report()))
        })
    };
    let (mut rates, mut rattan): ([Rounds<f64>; 4], Rounds<f64>) = Default::default();
    for _ in 0..rounds {
        let ours = Between::Taps(PipeSpec::default());
        let paths = [ours, Between::Nothing, Between::Bridge, Between::Copies];
        for (rates, between) in rates.iter_mut().zip(paths) {
            rates.add(carried(between)?);
        }
        let between = || Between::Rattan(RattanLink::Delay(Duration::ZERO));
        let found = context.peer(rattan::PROGRAM, || carried(between()), |round| round.seen > 0.0)?;
        found.into_iter().for_each(|round| rattan.add(round));
    }
    let (rattan, _) = rattan.finish();
    let rattan = (!rattan.is_empty()).then(|| median(rattan));
    let [(ours, of_ours), (control, _), (bridge, of_bridge), (copies, _)] = rates.map(Rounds::finish);
    let [ours, control, bridge, copies] = [ours, control, bridge, copies].map(median);
    let criterion = Criterion::at_least(bridge, TCP_TOLERANCE, "the kernel bridge");
    Ok(EvaluatedFigure::new("tcp/tap".to_owned(), "Gbit/s", ours, rounds, criterion)
        .control(control)
        .peer("kernel bridge", bridge)
        .peer("bare copies between the TAPs", copies)
        .peer(rattan::PROGRAM, rattan)
        .detail("rounds", rounds as f64)
        .disturbed(of_ours.or(of_bridge))
        .note(
            "one connection, with offloads except where rattan switches them off, paced if BBR is the machine's default; medians over the rounds; a \
             bridge forwards without a copy, and bare copies are the goodput over a thread that only copies between TAPs",
        ))
}
