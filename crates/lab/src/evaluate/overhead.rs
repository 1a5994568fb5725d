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
    ids: |_| vec!["rtt-overhead/10ms".to_owned(), "tcp/tap".to_owned()],
    seconds: [12.0, 60.0],
    run,
};

fn run(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let mut outcomes = Vec::new();
    if context.wants("rtt-overhead/10ms") {
        outcomes.push(round_trip(context)?);
    }
    if context.wants("tcp/tap") {
        outcomes.push(tcp(context)?);
    }
    Ok(outcomes)
}

fn round_trip(context: &Context<'_>) -> Result<Outcome, PartError> {
    let count = context.either(500, 5000);
    let rtts = |between: Between, implied: Duration| -> Result<Vec<f64>, PartError> {
        let field = Field::new(&[between])?;
        let (from, _, address) = field.pair(0);
        let mut echoes = [Echo::new(from, address, 1, (PAYLOAD, implied.to_std()))?];
        urgently(|| echo::run(&mut echoes, count, SLOT, &context.stop))?;
        let [echo] = echoes;
        let mut rtts: Vec<f64> = echo.rtts_ms.iter().map(|ms| 1000.0 * ms).collect();
        rtts.sort_by(f64::total_cmp);
        Ok(rtts)
    };
    let mean = |rtts: &[f64]| rtts.iter().sum::<f64>() / rtts.len() as f64;
    let ours = rtts(Between::Taps(PipeSpec { delay: DELAY, ..PipeSpec::default() }), DELAY * 2)?;
    let control = rtts(Between::Nothing, Duration::ZERO)?;
    let bridge = rtts(Between::Bridge, Duration::ZERO)?;
    let bound = SHARE_OF_RATTAN * RATTAN_PUBLISHED_US;
    let rule = Rule::AtMost { bound, tolerance: 0.0, of: "a quarter of rattan's published 156 µs" };
    let interval = mean_interval(&ours, Quantile::StudentT, 0.95).ok();
    let at = |p| quantile(&ours, p).map_or(f64::NAN, |us| us - RTT_US);
    Ok(Outcome::new("rtt-overhead/10ms".to_owned(), "µs", mean(&ours) - RTT_US, ours.len() as u64, rule)
        .control(mean(&control))
        .peer("kernel bridge", mean(&bridge))
        .interval(interval.map(|mean| [mean.low - RTT_US, mean.high - RTT_US]))
        .detail("p50_us", at(0.5))
        .detail("p99_us", at(0.99))
        .detail("rattan_published_us", RATTAN_PUBLISHED_US)
        .note("round trip less the link's 10 ms; control and bridge have no link, theirs is the whole round trip"))
}

fn tcp(context: &Context<'_>) -> Result<Outcome, PartError> {
    let (settle, window) =
        context.either((time::Duration::from_millis(500), 2.0), (time::Duration::from_secs(2), 8.0));
    let rounds = context.either(1, 3);
    // A connection's rate varies from one to the next: they take turns, and the median counts.
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        let paths = [Between::Taps(PipeSpec::default()), Between::Nothing, Between::Bridge];
        for (rates, between) in rates.iter_mut().zip(paths) {
            // Sender and receiver need the cores; an engine that spins would take one of two.
            let field = Field::with(&[between], Idle::Save)?;
            let (from, to, address) = field.pair(0);
            let times = (settle, settle + time::Duration::from_secs_f64(window));
            let mbit = bulk::run(from, to, address, times, &context.stop)?;
            rates.push(mbit.unwrap_or(0.0) / 1000.0);
        }
    }
    let [ours, control, bridge] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        quantile(&rates, 0.5).unwrap_or(0.0)
    });
    let rule = Rule::AtLeast { bound: bridge, tolerance: TCP_TOLERANCE, of: "the kernel bridge" };
    Ok(Outcome::new("tcp/tap".to_owned(), "Gbit/s", ours, rounds, rule)
        .control(control)
        .peer("kernel bridge", bridge)
        .note("one connection, offloads on everywhere"))
}
