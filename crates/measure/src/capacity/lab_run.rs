//! Runs a whole lab with the traffic of its description: hosts as namespaces with TAP ports, which
//! send and receive by sockets.

use super::run::{between, quantile_us};
use fastpath_engine::{DataPathChoice, Notice, Options, Report};
use fastpath_lab::Lab;
use fastpath_spec::Topology;
use fastpath_units::stats::{median, quantile, sorted};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A run before it is measured.
const WARM_UP: Duration = Duration::from_millis(100);
/// Parts of a measured run. Its values are those of the median part, of packets those of this
/// quantile: other work on the machine only makes a part slower.
const WINDOWS: u32 = 8;
const UNDISTURBED: f64 = 0.75;

/// What a lab carried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LabRun {
    /// Delivered packets per second of wall time, in undisturbed parts of the run.
    pub packets_per_second: f64,
    /// The same over the whole run and not its undisturbed parts: what a load is compared with.
    pub mean_packets_per_second: f64,
    /// Payload of connections that was received, bits per second.
    pub tcp_bits_per_second: f64,
    /// Median lateness, in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the lateness.
    pub p99_us: f64,
    /// Seconds until the lab was up.
    pub start_s: f64,
}

/// The state of a lab at an instant.
struct Look {
    report: Report,
    at: Instant,
}

/// Runs a lab for `span` after a warm-up.
///
/// # Errors
/// There can be no lab here, or a worker failed.
pub fn run_lab(topology: Topology, data_path: DataPathChoice, span: Duration) -> Result<LabRun, String> {
    let options =
        Options { notice: Notice::none(), data_path, ..Options::new(fastpath_net::Options::with_seed(1)) };
    let began = Instant::now();
    let name = format!("capacity-{}", std::process::id());
    let lab = Lab::up(topology, &name, options).map_err(|error| error.to_string())?;
    let start_s = began.elapsed().as_secs_f64();
    let look = || {
        let report = lab.report().ok_or("a worker has ended")?;
        Ok::<Look, String>(Look { report, at: Instant::now() })
    };
    sleep(WARM_UP);
    let mut looks = vec![look()?];
    for _ in 0..WINDOWS {
        sleep(span / WINDOWS);
        looks.push(look()?);
    }
    lab.down().map_err(|error| error.to_string())?;
    let parts = |of: fn(&Look, &Look) -> f64| looks.windows(2).map(move |pair| of(&pair[0], &pair[1]));
    let of = |of: fn(&Look, &Look) -> f64| median(parts(of));
    let rate = |before: &Look, after: &Look| delivered(before, after) / seconds(before, after);
    let (first, last) = (&looks[0], &looks[looks.len() - 1]);
    Ok(LabRun {
        packets_per_second: quantile(&sorted(parts(rate)), UNDISTURBED),
        mean_packets_per_second: rate(first, last),
        tcp_bits_per_second: of(|before, after| {
            8.0 * (received(after) - received(before)) / seconds(before, after)
        }),
        p50_us: of(|before, after| late(before, after, 0.5)),
        p99_us: of(|before, after| late(before, after, 0.99)),
        start_s,
    })
}

fn seconds(before: &Look, after: &Look) -> f64 {
    (after.at - before.at).as_secs_f64()
}

fn delivered(before: &Look, after: &Look) -> f64 {
    (after.report.accounting.delivered - before.report.accounting.delivered) as f64
}

fn received(look: &Look) -> f64 {
    look.report.transfers.iter().map(|transfer| transfer.received_bytes).sum::<u64>() as f64
}

fn late(before: &Look, after: &Look, q: f64) -> f64 {
    let (within, frames) = between(&before.report, &after.report);
    quantile_us(&within, frames, q)
}
