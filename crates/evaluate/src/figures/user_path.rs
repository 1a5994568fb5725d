//! What it costs to read and write the interfaces of hosts: a bare link of our engine between two
//! TAP interfaces, beside the kernel's bridge and a loop that only copies.
//!
//! ```text
//!   ours      a ═tap═ engine ═tap═ b      a bare link in user space
//!   bridge    a ═veth═ bridge ═veth═ b
//!   copies    a ═tap═ reads and writes ═tap═ b
//! ```

use super::kernel_path::{PAYLOAD, goodput, in_turns, kernel, round_trip};
use super::{Figure, Measurement, Needs};
use crate::testbed::{Between, Testbed};
use crate::{MeasurementError, RunContext};
use fastpath_audit::open_in;
use fastpath_engine::Idle;
use fastpath_link::PipeSpec;
use fastpath_report::{Criterion, EvaluatedFigure};
use fastpath_units::stats::median;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

/// The least share of the bridge's packets, and of its bytes.
const SHARE_OF_BRIDGE: f64 = 0.9;
/// The most that we add to a round trip over the bridge, µs: while polling, and saving power.
const ADDED_BUSY_US: f64 = 5.0;
const ADDED_SAVE_US: f64 = 25.0;
/// The receiver waits for so long for a packet, before it looks at the time.
const PATIENCE: Duration = Duration::from_millis(20);

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "user-path",
    title: "Interfaces of hosts in user space",
    original: "none published",
    x: None,
    y: None,
    note: "",
    variants: &[
        ("udp", "packets of 64 bytes over a bare link"),
        ("tcp", "one connection over a bare link"),
        ("rtt-busy", "round trip over a bare link while polling, less that over the bridge"),
        ("rtt-save", "round trip over a bare link while saving power, less that over the bridge"),
    ],
}];

pub(super) const MEASUREMENTS: &[Measurement] = &[Measurement {
    step: "interfaces of hosts in user space",
    needs: Needs::Namespaces,
    ids: |_| ["udp", "tcp", "rtt-busy", "rtt-save"].map(|variant| format!("user-path/{variant}")).to_vec(),
    seconds: [35.0, 130.0],
    rattan_seconds: [0.0, 0.0],
    run,
}];

fn run(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let mut results = Vec::new();
    if context.wants("user-path/udp") {
        results.push(carried("user-path/udp", "packets/s", datagrams, context)?);
    }
    if context.wants("user-path/tcp") {
        results.push(carried("user-path/tcp", "Gbit/s", goodput, context)?);
    }
    for (id, idle, most) in
        [("user-path/rtt-busy", Idle::Busy, ADDED_BUSY_US), ("user-path/rtt-save", Idle::Save, ADDED_SAVE_US)]
    {
        if context.wants(id) {
            results.push(added(id, idle, most, context)?);
        }
    }
    Ok(results)
}

/// Compares what is carried with what the bridge carries.
fn carried(
    id: &str,
    unit: &'static str,
    measure: fn(&Testbed, &RunContext<'_>) -> Result<f64, MeasurementError>,
    context: &RunContext<'_>,
) -> Result<EvaluatedFigure, MeasurementError> {
    let rounds = context.either(3, 5);
    let paths = [Between::Taps(PipeSpec::default()), Between::Bridge, Between::Copies];
    let (values, disturbed) =
        in_turns(rounds, (paths, Idle::Save), |testbed| measure(testbed, context), context)?;
    let [ours, bridge, copies] = values.map(median);
    let criterion = Criterion::at_least(SHARE_OF_BRIDGE * bridge, 0.0, "0.9 of the kernel bridge");
    Ok(EvaluatedFigure::new(id.to_owned(), unit, ours, rounds as u64, criterion)
        .control(copies)
        .peer("kernel bridge", bridge)
        .disturbed(disturbed)
        .note(
            "medians over the rounds; the control reads and writes the same interfaces and does nothing else",
        ))
}

/// Returns the packets per second that reach a socket, of those that one thread sends as fast as
/// it can.
fn datagrams(testbed: &Testbed, context: &RunContext<'_>) -> Result<f64, MeasurementError> {
    let (from, to, address) = testbed.pair(0);
    let sink = open_in(to, "UDP", || UdpSocket::bind((address, 0)))?;
    let there = sink.local_addr().map_err(kernel("the address of a socket"))?;
    let socket = open_in(from, "UDP", || UdpSocket::bind((from.address().unwrap_or(address), 0)))?;
    socket.connect(there).map_err(kernel("connecting UDP"))?;
    sink.set_read_timeout(Some(PATIENCE)).map_err(kernel("a socket"))?;
    let (settle, window) = context.either((0.2, 1.0), (0.5, 3.0));
    let [settle, window] = [settle, window].map(Duration::from_secs_f64);
    let began = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            while began.elapsed() < settle + window {
                // A full queue of the interface is an error of the call; the next one may fit.
                (0..64).for_each(|_| drop(socket.send(&[0; PAYLOAD])));
            }
        });
        let (mut count, mut buffer) = (0u64, [0; PAYLOAD]);
        while began.elapsed() < settle + window {
            let counts = began.elapsed() >= settle;
            let arrived = (0..64).filter(|_| sink.recv(&mut buffer).is_ok()).count();
            count += if counts { arrived as u64 } else { 0 };
        }
        sender.join().expect("the sender does not panic");
        Ok(count as f64 / window.as_secs_f64())
    })
}

/// Compares a round trip with that over the bridge.
fn added(
    id: &str,
    idle: Idle,
    most: f64,
    context: &RunContext<'_>,
) -> Result<EvaluatedFigure, MeasurementError> {
    let count = context.either(300, 1000);
    let rounds = context.either(3, 5);
    let paths = [Between::Taps(PipeSpec::default()), Between::Bridge, Between::Nothing];
    let (values, disturbed) =
        in_turns(rounds, (paths, idle), |testbed| round_trip(testbed, count, context), context)?;
    let [ours, bridge, veth] = values.map(median);
    let criterion = Criterion::at_most(most, 0.0, format!("{most} µs over the kernel bridge"));
    Ok(EvaluatedFigure::new(id.to_owned(), "µs", ours - bridge, (count * rounds) as u64, criterion)
        .detail("round_trip_us", ours)
        .detail("round_trip_bridge_us", bridge)
        .detail("round_trip_veth_us", veth)
        .disturbed(disturbed)
        .note("10th percentiles of round trips; medians over the rounds"))
}
