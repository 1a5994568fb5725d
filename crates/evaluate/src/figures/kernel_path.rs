//! Links and switches of a lab that run in the kernel, beside the kernel's bridge and a veth pair:
//! the cost of a small packet, TCP goodput, and the time added to a round trip.
//!
//! ```text
//!   ours      a ═veth═ program ═veth═ b      a bare link, and a learning switch
//!   bridge    a ═veth═ bridge ═veth═ b
//!   nothing   a ═══════ veth ═══════ b
//! ```

use super::{Figure, Measurement, Needs};
use crate::testbed::{Between, Testbed};
use crate::{MeasurementError, Round, Rounds, RunContext};
use fastpath_audit::echo::{self, Echo};
use fastpath_audit::{bulk, open_in};
use fastpath_engine::Idle;
use fastpath_engine::priority::with_high_priority;
use fastpath_report::{Criterion, EvaluatedFigure};
use fastpath_units::stats::{median, quantile, sorted};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Bytes of UDP payload in a frame of 64 bytes with its FCS.
pub(super) const PAYLOAD: usize = 18;
/// Packets of a burst, which one thread sends as fast as it can. The kernel carries each to the
/// other host within the call.
const BURST: usize = 64;
/// How much more than the bridge's packets a switch carries, at least.
const SHARE_OF_BRIDGE: f64 = 1.25;
/// How much below the bridge a connection may be: the bridge's goodput varies by that much from run
/// to run.
const TCP_TOLERANCE: f64 = 0.05;
/// The most that the program adds to a round trip over a veth pair, µs.
const ADDED_US: f64 = 0.5;
/// Bytes of ping's payload, and the time between two of them.
const PING: usize = 56;
const SLOT: Duration = Duration::from_millis(2);

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "kernel-path",
    title: "Links and switches in the kernel",
    original: "none published",
    x: None,
    y: None,
    note: "",
    variants: &[
        ("udp", "packets of 64 bytes over a learning switch"),
        ("tcp", "one connection over a learning switch"),
        ("rtt", "round trip over a bare link, less that over a veth pair"),
    ],
}];

pub(super) const MEASUREMENTS: &[Measurement] = &[Measurement {
    step: "links and switches in the kernel",
    needs: Needs::Namespaces,
    ids: |_| ["kernel-path/udp", "kernel-path/tcp", "kernel-path/rtt"].map(str::to_owned).to_vec(),
    seconds: [20.0, 90.0],
    rattan_seconds: [0.0, 0.0],
    run,
}];

fn run(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let mut results = Vec::new();
    if context.wants("kernel-path/udp") {
        results.push(udp(context)?);
    }
    if context.wants("kernel-path/tcp") {
        results.push(tcp(context)?);
    }
    if context.wants("kernel-path/rtt") {
        results.push(rtt(context)?);
    }
    Ok(results)
}

/// Measures alternatives in turns, with our engine's idle mode. Returns the values of the quiet
/// rounds of each, and what disturbed the first.
pub(super) fn in_turns<const N: usize>(
    rounds: usize,
    (paths, idle): ([Between; N], Idle),
    mut measure: impl FnMut(&Testbed) -> Result<f64, MeasurementError>,
    context: &RunContext<'_>,
) -> Result<([Vec<f64>; N], Option<String>), MeasurementError> {
    let mut found: [Rounds<f64>; N] = std::array::from_fn(|_| Rounds::default());
    for _ in 0..rounds {
        for (rounds, between) in found.iter_mut().zip(&paths) {
            let round: Round<f64> = context.round(|watch| {
                let testbed = Testbed::with(std::slice::from_ref(between), idle)?;
                let value = watch.of_thread(|| measure(&testbed))?;
                Ok((value, testbed.report()))
            })?;
            rounds.add(round);
        }
    }
    let mut disturbed = None;
    let values = found.map(|rounds| {
        let (values, reason) = rounds.finish();
        disturbed = disturbed.take().or(reason);
        values
    });
    Ok((values, disturbed))
}

fn udp(context: &RunContext<'_>) -> Result<EvaluatedFigure, MeasurementError> {
    let bursts = context.either(200, 2000);
    let rounds = context.either(3, 5);
    let paths = [Between::KernelSwitch, Between::Bridge, Between::Nothing];
    let (values, disturbed) =
        in_turns(rounds, (paths, Idle::Save), |testbed| cost(testbed, bursts), context)?;
    // The least is what the path itself takes: other programs only add to it.
    let [ours, bridge, control] = values.map(|costs| 1e9 / costs.into_iter().fold(f64::MAX, f64::min));
    let criterion = Criterion::at_least(SHARE_OF_BRIDGE * bridge, 0.0, "1.25 times the kernel bridge");
    let n = (bursts * BURST * rounds) as u64;
    Ok(EvaluatedFigure::new("kernel-path/udp".to_owned(), "packets/s", ours, n, criterion)
        .control(control)
        .peer("kernel bridge", bridge)
        .detail("ns_per_packet", 1e9 / ours)
        .detail("ns_per_packet_bridge", 1e9 / bridge)
        .detail("ns_per_packet_veth", 1e9 / control)
        .disturbed(disturbed)
        .note(
            "what one thread sends and the kernel carries to the other host within the call, from the 10th percentile of bursts of 64; the best of \
             the rounds",
        ))
}

/// Returns the nanoseconds of a small packet from host to host: the 10th percentile of bursts.
fn cost(testbed: &Testbed, bursts: usize) -> Result<f64, MeasurementError> {
    let (from, to, address) = testbed.pair(0);
    // A socket takes the packets, and drops those for which its buffer has no room.
    let sink = open_in(to, "UDP", || UdpSocket::bind((address, 0)))?;
    let there = sink.local_addr().map_err(kernel("the address of a socket"))?;
    let socket = open_in(from, "UDP", || UdpSocket::bind((from.address().unwrap_or(address), 0)))?;
    socket.connect(there).map_err(kernel("connecting UDP"))?;
    sink.set_nonblocking(true).map_err(kernel("a socket"))?;
    let mut times = Vec::with_capacity(bursts);
    let mut buffer = [0; PAYLOAD];
    for burst in 0..bursts + bursts / 10 {
        let began = Instant::now();
        for _ in 0..BURST {
            socket.send(&[0; PAYLOAD]).map_err(kernel("sending UDP"))?;
        }
        let took = began.elapsed().as_nanos() as f64 / BURST as f64;
        while sink.recv(&mut buffer).is_ok() {}
        // The first tenth fills tables and caches.
        if burst >= bursts / 10 {
            times.push(took);
        }
    }
    Ok(quantile(&sorted(times), 0.1))
}

pub(super) fn kernel(what: &'static str) -> impl Fn(std::io::Error) -> MeasurementError {
    move |source| MeasurementError::Kernel { what, source }
}

fn tcp(context: &RunContext<'_>) -> Result<EvaluatedFigure, MeasurementError> {
    let rounds = context.either(3, 5);
    let paths = [Between::KernelSwitch, Between::Bridge, Between::Nothing];
    let (values, disturbed) =
        in_turns(rounds, (paths, Idle::Save), |testbed| goodput(testbed, context), context)?;
    let [ours, bridge, control] = values.map(median);
    let criterion = Criterion::at_least(bridge, TCP_TOLERANCE, "the kernel bridge");
    Ok(EvaluatedFigure::new("kernel-path/tcp".to_owned(), "Gbit/s", ours, rounds as u64, criterion)
        .control(control)
        .peer("kernel bridge", bridge)
        .disturbed(disturbed)
        .note("one connection with offloads; medians over the rounds"))
}

/// Returns what one connection of the kernel carries, Gbit/s.
pub(super) fn goodput(testbed: &Testbed, context: &RunContext<'_>) -> Result<f64, MeasurementError> {
    let (settle, window) = context.either((Duration::from_millis(300), 1.0), (Duration::from_secs(1), 4.0));
    let (from, to, address) = testbed.pair(0);
    let bulk =
        bulk::run(from, to, address, (settle, settle + Duration::from_secs_f64(window)), &context.stop)?;
    Ok(bulk.unwrap_or(0.0) / 1000.0)
}

/// Returns the 10th percentile of round trips, µs.
pub(super) fn round_trip(
    testbed: &Testbed,
    count: usize,
    context: &RunContext<'_>,
) -> Result<f64, MeasurementError> {
    let (from, _, address) = testbed.pair(0);
    let mut echoes = [Echo::new(from, address, 1, (PING, Duration::ZERO))?];
    with_high_priority(|| echo::run(&mut echoes, count, SLOT, &context.stop))?;
    let [echo] = echoes;
    Ok(quantile(&sorted(echo.rtts_ms.iter().map(|ms| 1000.0 * ms)), 0.1))
}

fn rtt(context: &RunContext<'_>) -> Result<EvaluatedFigure, MeasurementError> {
    let count = context.either(300, 1000);
    let rounds = context.either(3, 5);
    let paths = [Between::KernelLink, Between::Nothing, Between::Bridge];
    let (values, disturbed) =
        in_turns(rounds, (paths, Idle::Save), |testbed| round_trip(testbed, count, context), context)?;
    let [ours, veth, bridge] = values.map(median);
    let criterion = Criterion::at_most(ADDED_US, 0.0, "0.5 µs over a veth pair");
    Ok(EvaluatedFigure::new(
        "kernel-path/rtt".to_owned(),
        "µs",
        ours - veth,
        (count * rounds) as u64,
        criterion,
    )
    .peer("kernel bridge", bridge - veth)
    .detail("round_trip_us", ours)
    .detail("round_trip_veth_us", veth)
    .disturbed(disturbed)
    .note("10th percentiles of round trips; medians over the rounds"))
}
