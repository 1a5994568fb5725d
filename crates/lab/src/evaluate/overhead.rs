//! What the emulator adds to a round trip and takes from a TCP connection: a link of 10 ms there and back, and one that
//! does nothing, both over TAPs, whose super-packets the engine cuts and joins.

use super::field::{Between, Field};
use super::{Context, Needs, Outcome, Part, PartError, Rule};
use crate::audit::bulk;
use crate::audit::echo::{self, Echo};
use crate::audit::judge::quantile;
use crate::priority::urgently;
use fastpath_engine::Idle;
use fastpath_link::PipeSpec;
use fastpath_model::fit::Quantile;
use fastpath_model::latency::mean_interval;
use fastpath_units::Duration;
use std::time;

/// One way.
const DELAY: Duration = Duration::from_ms(5);
const RTT_US: f64 = 10_000.0;
/// What ping sends.
const PAYLOAD: usize = 56;
const SLOT: time::Duration = time::Duration::from_millis(2);
/// What rattan 0.1.1 added to such a round trip on a machine of this class, µs: measured once, not in this run.
const RATTAN_PUBLISHED_US: f64 = 156.0;
const SHARE_OF_RATTAN: f64 = 0.25;
/// How much below the bridge a connection may be: its own figure varies by that from run to run.
const TCP_TOLERANCE: f64 = 0.05;

pub(super) const PART: Part = Part {
    step: "overhead and TCP",
    needs: Needs::Namespaces,
    ids: |_| ["rtt-overhead/10ms", "rtt-overhead/10ms/save", "tcp/tap"].map(str::to_owned).to_vec(),
    seconds: [14.0, 70.0],
    run,
};

fn run(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let mut outcomes = Vec::new();
    if context.wants("rtt-overhead/10ms") || context.wants("rtt-overhead/10ms/save") {
        outcomes.extend(round_trips(context)?);
    }
    if context.wants("tcp/tap") {
        outcomes.push(tcp(context)?);
    }
    Ok(outcomes)
}

/// Spinning, and sleeping between deadlines, where waking up for a frame is part of the round trip.
fn round_trips(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let link = || Between::Taps(PipeSpec { delay: DELAY, ..PipeSpec::default() });
    let busy = rtts(link(), Idle::Busy, context)?;
    let save = rtts(link(), Idle::Save, context)?;
    let control = mean(&rtts(Between::Nothing, Idle::Busy, context)?);
    let bridge = mean(&rtts(Between::Bridge, Idle::Busy, context)?);
    let outcome = |id: &str, ours: Vec<f64>, share: f64, of| {
        let rule = Rule::AtMost { bound: share * RATTAN_PUBLISHED_US, tolerance: 0.0, of };
        let interval = mean_interval(&ours, Quantile::StudentT, 0.95).ok();
        let at = |p| quantile(&ours, p).map_or(f64::NAN, |us| us - RTT_US);
        Outcome::new(id.to_owned(), "µs", mean(&ours) - RTT_US, ours.len() as u64, rule)
            .control(control)
            .peer("kernel bridge", bridge)
            .interval(interval.map(|mean| [mean.low - RTT_US, mean.high - RTT_US]))
            .detail("p50_us", at(0.5))
            .detail("p99_us", at(0.99))
            .detail("rattan_published_us", RATTAN_PUBLISHED_US)
            .note("round trip less the link's 10 ms; control and bridge have no link, theirs is the whole round trip")
    };
    Ok(vec![
        outcome("rtt-overhead/10ms", busy, SHARE_OF_RATTAN, "a quarter of rattan's published 156 µs"),
        outcome("rtt-overhead/10ms/save", save, 1.0, "rattan's published 156 µs"),
    ])
}

/// Round trips, µs, in order.
fn rtts(between: Between, idle: Idle, context: &Context<'_>) -> Result<Vec<f64>, PartError> {
    let count = context.either(500, 5000);
    let implied = match &between {
        Between::Taps(_) => DELAY * 2,
        _ => Duration::ZERO,
    };
    let field = Field::with(&[between], idle)?;
    let (from, _, address) = field.pair(0);
    let mut echoes = [Echo::new(from, address, 1, (PAYLOAD, implied.to_std()))?];
    urgently(|| echo::run(&mut echoes, count, SLOT, &context.stop))?;
    let [echo] = echoes;
    let mut rtts: Vec<f64> = echo.rtts_ms.iter().map(|ms| 1000.0 * ms).collect();
    rtts.sort_by(f64::total_cmp);
    Ok(rtts)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn tcp(context: &Context<'_>) -> Result<Outcome, PartError> {
    let (settle, window) =
        context.either((time::Duration::from_millis(300), 1.0), (time::Duration::from_secs(2), 5.0));
    let rounds = context.either(3, 5);
    // A connection's rate varies from one to the next: they take turns, and the median counts.
    let mut rates: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds {
        let ours = Between::Taps(PipeSpec::default());
        let paths = [ours, Between::Nothing, Between::Bridge, Between::Copies];
        for (rates, between) in rates.iter_mut().zip(paths) {
            // Sender and receiver need the cores; an engine that spins would take one of two.
            let field = Field::with(&[between], Idle::Save)?;
            let (from, to, address) = field.pair(0);
            let times = (settle, settle + time::Duration::from_secs_f64(window));
            let mbit = bulk::run(from, to, address, times, &context.stop)?;
            rates.push(mbit.unwrap_or(0.0) / 1000.0);
        }
    }
    let [ours, control, bridge, copies] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        quantile(&rates, 0.5).unwrap_or(0.0)
    });
    let rule = Rule::AtLeast { bound: bridge, tolerance: TCP_TOLERANCE, of: "the kernel bridge" };
    Ok(Outcome::new("tcp/tap".to_owned(), "Gbit/s", ours, rounds, rule)
        .control(control)
        .peer("kernel bridge", bridge)
        .peer("bare copies between the TAPs", copies)
        .detail("rounds", rounds as f64)
        .note(
            "one connection, offloads on everywhere, paced if BBR is the machine's default; medians over the rounds; a \
             bridge passes on what it does not copy, and bare copies are what a thread that only copies carries between TAPs",
        ))
}
