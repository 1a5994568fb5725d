//! Describes this machine and detects other load that disturbed a measurement.

use fastpath_record::{Disturbance, Machine, Provenance, Tool};
use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A run counts as disturbed if the hypervisor stole more than this share of its time.
const STOLEN_MAX: f64 = 0.01;
/// A run counts as disturbed if other programs used more than this share of all cores.
const OTHERS_MAX: f64 = 0.10;
/// Ticks per second in /proc/stat: USER_HZ, 100 on every architecture that Linux supports.
const USER_HZ: f64 = 100.0;

/// Describes this machine from `/proc`.
pub fn this_machine() -> Machine {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpu = line("/proc/cpuinfo");
    let model = cpu.lines().find_map(|l| l.strip_prefix("model name")).and_then(|l| l.split_once(':'));
    Machine {
        name: line("/proc/sys/kernel/hostname"),
        cpu: model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: line("/proc/sys/kernel/osrelease"),
    }
}

/// How often a measurement is made that other work disturbs.
const ATTEMPTS: usize = 3;

/// Measures, and again while other work disturbs the machine, at most three times. Returns the last
/// result, and what watched that attempt.
///
/// # Errors
/// That of an attempt.
pub fn undisturbed<T, E>(measure: impl FnMut() -> Result<T, E>) -> Result<(T, Watch), E> {
    until_quiet(measure, |watch| watch.disturbance().disturbed)
}

fn until_quiet<T, E>(
    mut measure: impl FnMut() -> Result<T, E>,
    mut is_disturbed: impl FnMut(&Watch) -> bool,
) -> Result<(T, Watch), E> {
    let mut attempt = 1;
    loop {
        let watch = Watch::start();
        let found = measure()?;
        if attempt == ATTEMPTS || !is_disturbed(&watch) {
            return Ok((found, watch));
        }
        attempt += 1;
    }
}

/// Observes the load of the machine from [`Watch::start`] on.
pub struct Watch {
    started: Instant,
    started_unix_s: u64,
    ticks: Option<Ticks>,
}

/// CPU time since boot: ticks of all cores together, and of this process.
#[derive(Clone, Copy)]
struct Ticks {
    all: f64,
    busy: f64,
    stolen: f64,
    this_process: f64,
}

impl Ticks {
    /// Reads the current ticks. Returns `None` if /proc does not provide them.
    fn now() -> Option<Ticks> {
        Ticks::read(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Parses the contents of /proc/stat and /proc/self/stat (proc(5)).
    fn read(stat: &str, own: &str) -> Option<Ticks> {
        let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> = cpu.split_whitespace().filter_map(|t| t.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; user and nice include guest time.
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks.get(..8)? else { return None };
        // The second field is the program's name in brackets. It can contain spaces and brackets.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let this_process = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        let busy = user + nice + system + irq + softirq;
        Some(Ticks { all: busy + idle + iowait + steal, busy, stolen: steal, this_process })
    }

    /// Returns the disturbance between `earlier` and `self`.
    fn since(&self, earlier: &Ticks) -> Disturbance {
        let all = self.all - earlier.all;
        // Ticks are too coarse for less than a tenth of a second.
        if all < 0.1 * USER_HZ {
            return Disturbance::default();
        }
        let stolen_share = ((self.stolen - earlier.stolen) / all).clamp(0.0, 1.0);
        let others = (self.busy - earlier.busy) - (self.this_process - earlier.this_process);
        let others_share = (others / all).clamp(0.0, 1.0);
        let disturbed = stolen_share > STOLEN_MAX || others_share > OTHERS_MAX;
        Disturbance { stolen_share, others_share, disturbed }
    }
}

impl Watch {
    /// Starts observing.
    pub fn start() -> Watch {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Watch { started: Instant::now(), started_unix_s: unix.as_secs(), ticks: Ticks::now() }
    }

    /// Returns the stolen time and the load of other programs since the start, as shares.
    pub fn disturbance(&self) -> Disturbance {
        self.ticks.and_then(|start| Some(Ticks::now()?.since(&start))).unwrap_or_default()
    }

    /// Returns the provenance of a measurement that was repeated `n` times since the start.
    pub fn provenance(&self, tool: &Tool, seed: u64, n: u64) -> Provenance {
        Provenance {
            machine: this_machine(),
            tool: tool.clone(),
            command_line: std::env::args().collect(),
            seed,
            n,
            started_unix_s: self.started_unix_s,
            elapsed_s: self.started.elapsed().as_secs_f64(),
            disturbance: self.disturbance(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "42 (a b) c) R 1 1 1 0 -1 0 1 0 0 0 100 20 0 0 20 0 1";

    #[test]
    fn steal_and_other_programs_are_distinguished_from_this_process() {
        let before = Ticks::read("cpu  1000 0 0 5000 0 0 0 10 0 0\ncpu0 1\n", OWN).unwrap();
        let own = OWN.replace(" 100 20 ", " 150 20 ");
        let quiet = Ticks::read("cpu  1050 0 0 5150 0 0 0 10 0 0\n", &own).unwrap().since(&before);
        assert_eq!(quiet, Disturbance { stolen_share: 0.0, others_share: 0.0, disturbed: false });
        let busy = Ticks::read("cpu  1100 0 0 5090 0 0 0 20 0 0\n", &own).unwrap().since(&before);
        assert_eq!(busy, Disturbance { stolen_share: 0.05, others_share: 0.25, disturbed: true });
    }

    #[test]
    fn a_disturbed_measurement_is_repeated_up_to_a_bound() {
        for (disturbed, attempts) in [(0, 1), (1, 2), (9, 3)] {
            let (mut measured, mut left) = (0, disturbed);
            let measure = || {
                measured += 1;
                Ok::<i32, ()>(measured)
            };
            let is_disturbed = |_: &Watch| {
                left -= 1;
                left >= 0
            };
            let (found, _) = until_quiet(measure, is_disturbed).unwrap();
            assert_eq!(found, attempts, "{disturbed} disturbed");
        }
        assert_eq!(until_quiet(|| Err::<(), &str>("no"), |_| false).err(), Some("no"));
    }

    #[test]
    fn a_run_shorter_than_a_tick_counts_as_undisturbed() {
        let before = Ticks::read("cpu  1000 0 0 5000 0 0 0 10 0 0\n", OWN).unwrap();
        let after = Ticks::read("cpu  1001 0 0 5000 0 0 0 11 0 0\n", OWN).unwrap();
        assert_eq!(after.since(&before), Disturbance::default());
    }

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let machine = this_machine();
        assert!(machine.cores >= 1 && !machine.kernel.is_empty());
    }
}
