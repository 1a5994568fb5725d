//! What the emulator adds to a round trip and takes from a TCP connection: a link of 10 ms there
//! and back, and one that does nothing, both over TAPs, whose super-packets the engine cuts and
//! joins.

use super::field::{Between, Field};
use super::rattan::{self, Treatment};
use super::{Context, Needs, Outcome, Part, PartError, Rule};
use fastpath_engine::Idle;
use fastpath_engine::priority::with_high_priority;
use fastpath_lab::audit::bulk;
use fastpath_lab::audit::echo::{self, Echo};
use fastpath_lab::audit::judge::quantile;
use fastpath_link::PipeSpec;
use fastpath_model::stats::median;
use fastpath_units::Duration;
use std::time;

/// One way.
const DELAY: Duration = Duration::from_ms(5);
const RTT_US: f64 = 10_000.0;
/// What ping sends.
const PAYLOAD: usize = 56;
const SLOT: time::Duration = time::Duration::from_millis(2);
/// What rattan 0.1.1 added to such a round trip on a machine of this class, µs; for where it is not
/// installed.
const RATTAN_PUBLISHED_US: f64 = 156.0;
const SHARE_OF_RATTAN: f64 = 0.25;
/// How much below the bridge a connection may be: its own figure varies by that from run to run.
const TCP_TOLERANCE: f64 = 0.05;

pub(super) const PART: Part = Part {
    step: "overhead and TCP",
    needs: Needs::Namespaces,
    ids: |_| ["rtt-overhead/10ms", "rtt-overhead/10ms/save", "tcp/tap"].map(str::to_owned).to_vec(),
    seconds: [32.0, 210.0],
    rattan_seconds: [10.0, 50.0],
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
/// All take turns, and the medians of the rounds' means count: the machine may stand still for
/// long, but hardly in most rounds of one and in none of another.
fn round_trips(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let link = || Between::Taps(PipeSpec { delay: DELAY, ..PipeSpec::default() });
    let [mut busy, mut save, mut control, mut bridge, mut rattan]: [Vec<Summary>; 5] = Default::default();
    let count = context.either(100, 1000);
    for _ in 0..context.either(3, 5) {
        busy.push(rtts(link(), Idle::Busy, count, context)?);
        save.push(rtts(link(), Idle::Save, count, context)?);
        control.push(rtts(Between::Nothing, Idle::Busy, count, context)?);
        bridge.push(rtts(Between::Bridge, Idle::Busy, count, context)?);
        let between = Between::Rattan(Treatment::Delay(DELAY));
        let round = || rtts(between, Idle::Busy, count, context);
        rattan.extend(context.peer(rattan::PROGRAM, round, |round| round.n > 0)?);
    }
    let rattan = (!rattan.is_empty()).then(|| median(rattan.iter().map(|round| round.mean_us)) - RTT_US);
    let [control, bridge] = [control, bridge].map(|rounds| median(rounds.iter().map(|round| round.mean_us)));
    let outcome = |id: &str, ours: Vec<Summary>, share: f64, of: [&'static str; 2]| {
        let (bound, of) = rattan.map_or((RATTAN_PUBLISHED_US, of[1]), |rattan| (rattan, of[0]));
        let rule = Rule::AtMost { bound: share * bound, tolerance: 0.0, of };
        let added = |of: fn(&Summary) -> f64| median(ours.iter().map(of)) - RTT_US;
        let n = ours.iter().map(|round| round.n).sum();
        Outcome::new(id.to_owned(), "µs", added(|round| round.mean_us), n, rule)
            .control(control)
            .peer("kernel bridge", bridge)
            .peer(rattan::PROGRAM, rattan)
            .detail("p50_us", added(|round| round.p50_us))
            .detail("p99_us", added(|round| round.p99_us))
            .detail("rattan_published_us", RATTAN_PUBLISHED_US)
            .note(
                "round trip less the link's 10 ms, medians over the rounds; control and bridge have no link, theirs is the \
                 whole round trip",
            )
    };
    let busy_of = ["a quarter of rattan's", "a quarter of rattan's published 156 µs"];
    Ok(vec![
        outcome("rtt-overhead/10ms", busy, SHARE_OF_RATTAN, busy_of),
        outcome("rtt-overhead/10ms/save", save, 1.0, ["rattan's", "rattan's published 156 µs"]),
    ])
}

/// The round trips of a round.
struct Summary {
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    n: u64,
}

/// Round trips between the hosts of a pair.
fn rtts(between: Between, idle: Idle, count: usize, context: &Context<'_>) -> Result<Summary, PartError> {
    let implied = match &between {
        Between::Taps(_) | Between::Rattan(_) => DELAY * 2,
        _ => Duration::ZERO,
    };
    let field = Field::with(&[between], idle)?;
    let (from, _, address) = field.pair(0);
    let mut echoes = [Echo::new(from, address, 1, (PAYLOAD, implied.to_std()))?];
    with_high_priority(|| echo::run(&mut echoes, count, SLOT, &context.stop))?;
    let [echo] = echoes;
    let mut us: Vec<f64> = echo.rtts_ms.iter().map(|ms| 1000.0 * ms).collect();
    us.sort_by(f64::total_cmp);
    let at = |p| quantile(&us, p).unwrap_or(f64::NAN);
    let mean_us = us.iter().sum::<f64>() / us.len() as f64;
    Ok(Summary { mean_us, p50_us: at(0.5), p99_us: at(0.99), n: us.len() as u64 })
}

fn tcp(context: &Context<'_>) -> Result<Outcome, PartError> {
    let (settle, window) =
        context.either((time::Duration::from_millis(300), 1.0), (time::Duration::from_secs(2), 5.0));
    let rounds = context.either(3, 5);
    // A connection's rate varies from one to the next: they take turns, and the median counts.
    let carried = |between| -> Result<f64, PartError> {
        // Sender and receiver need the cores; an engine that spins would take one of two.
        let field = Field::with(&[between], Idle::Save)?;
        let (from, to, address) = field.pair(0);
        let times = (settle, settle + time::Duration::from_secs_f64(window));
        Ok(bulk::run(from, to, address, times, &context.stop)?.unwrap_or(0.0) / 1000.0)
    };
    let (mut rates, mut rattan): ([Vec<f64>; 4], Vec<f64>) = Default::default();
    for _ in 0..rounds {
        let ours = Between::Taps(PipeSpec::default());
        let paths = [ours, Between::Nothing, Between::Bridge, Between::Copies];
        for (rates, between) in rates.iter_mut().zip(paths) {
            rates.push(carried(between)?);
        }
        let between = Between::Rattan(Treatment::Delay(Duration::ZERO));
        rattan.extend(context.peer(rattan::PROGRAM, || carried(between), |gbit| *gbit > 0.0)?);
    }
    let rattan = (!rattan.is_empty()).then(|| median(rattan.into_iter()));
    let [ours, control, bridge, copies] = rates.map(|rates| median(rates.into_iter()));
    let rule = Rule::AtLeast { bound: bridge, tolerance: TCP_TOLERANCE, of: "the kernel bridge" };
    Ok(Outcome::new("tcp/tap".to_owned(), "Gbit/s", ours, rounds, rule)
        .control(control)
        .peer("kernel bridge", bridge)
        .peer("bare copies between the TAPs", copies)
        .peer(rattan::PROGRAM, rattan)
        .detail("rounds", rounds as f64)
        .note(
            "one connection, offloads on everywhere but where rattan switches them off, paced if BBR is the machine's default; medians over the rounds; a \
             bridge passes on what it does not copy, and bare copies are what a thread that only copies carries between TAPs",
        ))
}
