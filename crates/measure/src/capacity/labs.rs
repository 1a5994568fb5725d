//! What labs cost: two hosts with TAP ports, their UDP and TCP, and the start of hosts.

use super::run::spread;
use fastpath_engine::{DataPathChoice, Notice, Options, Report, WorkerReport};
use fastpath_lab::Lab;
use fastpath_model::Estimate;
use fastpath_model::capacity::TcpCosts;
use std::fmt::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The length of the frames of datagrams, bytes without FCS.
const BYTES: usize = 1042;
/// A run before it is measured, and the parts of it that are.
const WARM_UP: Duration = Duration::from_millis(80);
const WINDOWS: usize = 5;
const WINDOW: Duration = Duration::from_millis(50);
/// Hosts of the larger lab, whose start is compared with that of two.
const HOSTS: usize = 6;

/// What was measured in labs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LabCosts {
    /// Length of the frames.
    pub(super) bytes: f64,
    /// Nanoseconds of a worker for a packet between two hosts over one link.
    pub(super) packet_ns: Estimate,
    /// A bulk connection.
    pub(super) tcp: TcpCosts,
    /// Seconds to start a host.
    pub(super) host_s: Estimate,
}

/// Measures small labs.
///
/// # Errors
/// Why there can be no lab here.
pub(super) fn measure_labs() -> Result<LabCosts, String> {
    // More than a machine sends: what the hosts cannot send is not needed.
    let udp = "kind = 'constant'\nrate = '4Gbit'\nsize = 1000";
    let datagrams = LabRun::of(1, 2, udp)?;
    let of_bits = |pipes| LabRun::of(pipes, 2, "kind = 'tcp'");
    let (short, long) = (of_bits(1)?, of_bits(3)?);
    let larger = LabRun::of(1, HOSTS, udp)?.start_s;
    let small = [&datagrams, &short, &long].map(|run| run.start_s).into_iter().fold(f64::INFINITY, f64::min);
    let host_s = ((larger - small) / (HOSTS - 2) as f64).max(1e-4);
    let bit_ns = spread(&short.bit_ns);
    let further: Vec<f64> =
        long.bit_ns.iter().map(|ns| ((ns - bit_ns.value) / 2.0).max(0.01 * bit_ns.value)).collect();
    Ok(LabCosts {
        bytes: BYTES as f64,
        packet_ns: spread(&datagrams.packet_ns),
        tcp: TcpCosts { bit_ns, pipe_bit_ns: spread(&further) },
        host_s: Estimate { value: host_s, low: host_s / 2.0, high: 2.0 * host_s },
    })
}

/// A lab that ran.
struct LabRun {
    start_s: f64,
    /// Nanoseconds of the worker per packet, by window.
    packet_ns: Vec<f64>,
    /// Nanoseconds per bit of a connection, by window.
    bit_ns: Vec<f64>,
}

impl LabRun {
    /// Runs hosts in a row of links with this traffic between the first two; others are
    /// beside them.
    fn of(pipes: usize, hosts: usize, traffic: &str) -> Result<LabRun, String> {
        let (topology, _) =
            fastpath_spec::parse(&text(pipes, hosts, traffic)).map_err(|wrong| format!("{wrong:?}"))?;
        let options = Options {
            notice: Notice::none(),
            data_path: DataPathChoice::User,
            ..Options::new(fastpath_net::Options::with_seed(1))
        };
        let began = Instant::now();
        let name = format!("capacity-{}", std::process::id());
        let lab = Lab::up(topology, &name, options).map_err(|error| error.to_string())?;
        let start_s = began.elapsed().as_secs_f64();
        sleep(WARM_UP);
        let (mut packet_ns, mut bit_ns) = (Vec::new(), Vec::new());
        let report = || lab.report().map(|report| (report, Instant::now())).ok_or("a worker has ended");
        let (mut before, mut from) = report()?;
        for _ in 0..WINDOWS {
            sleep(WINDOW);
            let (after, to) = report()?;
            packet_ns.push(worker_ns(&before, &after));
            bit_ns.push(ns_per_bit(&before, &after, (to - from).as_secs_f64()));
            (before, from) = (after, to);
        }
        lab.down().map_err(|error| error.to_string())?;
        Ok(LabRun { start_s, packet_ns, bit_ns })
    }
}

/// Nanoseconds of the workers per delivered packet. They may poll while they have nothing to
/// do, and
/// may lose their core while they have something: the smaller of both times is what they worked.
fn worker_ns(before: &Report, after: &Report) -> f64 {
    let sum = |report: &Report, of: fn(&WorkerReport) -> f64| report.workers.iter().map(of).sum::<f64>();
    let grown = |of: fn(&WorkerReport) -> f64| sum(after, of) - sum(before, of);
    let delivered = (after.accounting.delivered - before.accounting.delivered).max(1) as f64;
    1e9 * grown(|worker| worker.cpu_s).min(grown(|worker| worker.busy_s)) / delivered
}

/// Nanoseconds per bit that a connection received.
fn ns_per_bit(before: &Report, after: &Report, seconds: f64) -> f64 {
    let bytes =
        |report: &Report| report.transfers.iter().map(|transfer| transfer.received_bytes).sum::<u64>();
    1e9 * seconds / (8 * bytes(after).saturating_sub(bytes(before)).max(1)) as f64
}

/// The description of a lab.
fn text(pipes: usize, hosts: usize, traffic: &str) -> String {
    let mut text = "family = 'v4'\n".to_owned();
    (0..hosts).for_each(|host| _ = writeln!(text, "[host.h{host}]"));
    (1..pipes).for_each(|router| _ = writeln!(text, "[router.r{router}]"));
    let place = |place: usize| match place {
        0 => "h0".to_owned(),
        end if end == pipes => "h1".to_owned(),
        router => format!("r{router}"),
    };
    let mut link = |a: &str, b: &str| {
        _ = writeln!(text, "[[link]]\nbetween = ['{a}', '{b}']\ndelay = '100us'\nqueue = '10000p'");
    };
    (0..pipes).for_each(|from| link(&place(from), &place(from + 1)));
    (2..hosts).step_by(2).for_each(|host| link(&format!("h{host}"), &format!("h{}", host + 1)));
    _ = writeln!(text, "[[traffic]]\nfrom = 'h0'\nto = 'h1'\n{traffic}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labs_have_their_hosts_and_links() {
        for (pipes, hosts, links) in [(1, 2, 1), (3, 2, 3), (1, 6, 3)] {
            let (topology, _) = fastpath_spec::parse(&text(pipes, hosts, "kind = 'tcp'")).unwrap();
            assert_eq!((topology.hosts().count(), topology.links.len()), (hosts, links));
        }
    }
}
