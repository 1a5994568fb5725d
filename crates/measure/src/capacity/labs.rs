//! What labs cost: two hosts with TAP ports, their UDP and TCP, and the start of hosts.

use super::run::spread;
use fastpath_engine::{DataPathChoice, Notice, Options, Report};
use fastpath_lab::Lab;
use fastpath_model::Estimate;
use fastpath_model::capacity::TcpCosts;
use std::fmt::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The length of the frames of datagrams, bytes without FCS.
const BYTES: usize = 1042;
/// A run before it is measured, and while it is.
const WARM_UP: Duration = Duration::from_millis(60);
const MEASURED: Duration = Duration::from_millis(200);
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
    let (mut packets, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let run = Run::of(1, 2, udp)?;
        packets.push(run.worker_ns_per_packet());
        starts.push(run.start_s);
    }
    let goodput = |pipes| Run::of(pipes, 2, "kind = 'tcp'").map(|run| run.goodput_bps.max(1.0));
    let (short, long) = ([goodput(1)?, goodput(1)?], [goodput(3)?, goodput(3)?]);
    let bit_ns = spread(&short.map(|bps| 1e9 / bps));
    let further = long.map(|bps| ((1e9 / bps - bit_ns.value) / 2.0).max(1e-6));
    let larger = Run::of(1, HOSTS, udp)?.start_s;
    let small = starts.iter().copied().fold(f64::INFINITY, f64::min);
    let host_s = ((larger - small) / (HOSTS - 2) as f64).max(1e-4);
    Ok(LabCosts {
        bytes: BYTES as f64,
        packet_ns: spread(&packets),
        tcp: TcpCosts { bit_ns, pipe_bit_ns: spread(&further) },
        host_s: Estimate { value: host_s, low: host_s / 2.0, high: 2.0 * host_s },
    })
}

/// A lab that ran.
struct Run {
    start_s: f64,
    goodput_bps: f64,
    cpu_s: f64,
    delivered: f64,
}

impl Run {
    /// Runs hosts in a row of links with this traffic between the first two; others are beside them.
    fn of(pipes: usize, hosts: usize, traffic: &str) -> Result<Run, String> {
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
        let report = || lab.report().ok_or("a worker has ended");
        sleep(WARM_UP);
        let before = report()?;
        sleep(MEASURED);
        let after = report()?;
        let ended = lab.down().map_err(|error| error.to_string())?;
        let cpu = |report: &Report| report.workers.iter().map(|worker| worker.cpu_s).sum::<f64>();
        Ok(Run {
            start_s,
            goodput_bps: ended.transfers.first().map_or(0.0, |transfer| transfer.goodput_bps),
            cpu_s: cpu(&after) - cpu(&before),
            delivered: (after.accounting.delivered - before.accounting.delivered) as f64,
        })
    }

    fn worker_ns_per_packet(&self) -> f64 {
        1e9 * self.cpu_s / self.delivered.max(1.0)
    }
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
