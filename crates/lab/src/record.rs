//! Records: what a measurement found, with what it takes to judge it. One JSON object per line.
//!
//! ```text
//!  { "kind": "pipeline", "provenance": { machine, tool, command line, seed, n, disturbance },
//!    "parameters": { "p": 64, "h": 10 }, "results": { "T_ns": 91.2 }, "platform": { … } }
//! ```
//!
//! A report is made of records alone; a model is fitted to the numbers in `parameters` and
//! `results`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Above this share of its time taken by the hypervisor a run counts as disturbed.
const STOLEN_MAX: f64 = 0.01;
/// Above this share of all cores busy with other programs a run counts as disturbed.
const OTHERS_MAX: f64 = 0.10;
/// The last second of the year 9999.
const UNIX_S_MAX: u64 = 253_402_300_799;
/// Ticks per second of /proc/stat: USER_HZ, 100 on every architecture Linux still has.
const USER_HZ: f64 = 100.0;

/// One measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// What was measured: `host`, `pipeline`, `latency`, `operations`.
    pub kind: String,
    /// Where, when, with what.
    pub provenance: Provenance,
    /// What was set, by name with the unit last.
    pub parameters: Map<String, Value>,
    /// What was found, by name with the unit last.
    pub results: Map<String, Value>,
    /// What a model needs to know of the machine, in records of kind `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<fastpath_model::platform::Platform>,
}

/// Where, when and with what a record was made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// The machine.
    pub machine: Machine,
    /// The program.
    pub tool: Tool,
    /// Its words.
    pub command_line: Vec<String>,
    /// The seed of every random choice.
    pub seed: u64,
    /// How often the thing was done.
    pub n: u64,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took.
    pub elapsed_s: f64,
    /// Who else was at work on the machine meanwhile.
    pub disturbance: Disturbance,
}

/// The machine, as its kernel describes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its name in the network.
    pub name: String,
    /// Model of its first processor.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Version of the kernel.
    pub kernel: String,
}

/// The program that measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tool {
    /// Its version.
    pub version: String,
    /// The commit it was built from, if that was known.
    pub commit: Option<String>,
    /// Whether the compiler optimised fully: numbers of other builds say nothing about the code.
    pub optimised: Optimised,
}

/// How the program was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimised {
    /// For speed.
    Release,
    /// For testing.
    Development,
}

/// Who else was at work on the machine during a measurement.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Disturbance {
    /// Share of the machine's time the hypervisor took for others, 0 … 1.
    pub stolen_share: f64,
    /// Share of the machine's time spent on other programs, 0 … 1.
    pub others_share: f64,
    /// Whether that was too much to trust the numbers to a few percent.
    pub disturbed: bool,
}

impl Provenance {
    /// When it began, in UTC: `Mon, 23 Nov 2026 02:30:00 GMT` (RFC 9110, §5.6.7).
    pub fn started(&self) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(self.started_unix_s.min(UNIX_S_MAX)))
    }

    /// The day of that: `23 Nov 2026`.
    pub fn day(&self) -> String {
        self.started().split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ")
    }
}

impl Machine {
    /// This machine.
    pub fn here() -> Machine {
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
}

impl Tool {
    /// This program, built from `commit`.
    pub fn new(version: &str, commit: Option<&str>) -> Tool {
        let optimised = if cfg!(debug_assertions) { Optimised::Development } else { Optimised::Release };
        Tool { version: version.to_owned(), commit: commit.map(str::to_owned), optimised }
    }
}

/// Watches the machine from its start to the record.
pub struct Watch {
    started: Instant,
    started_unix_s: u64,
    ticks: Option<Ticks>,
}

/// Ticks of all cores together since boot, and of this process.
#[derive(Clone, Copy)]
struct Ticks {
    all: f64,
    busy: f64,
    stolen: f64,
    ours: f64,
}

impl Ticks {
    /// `None` where /proc does not tell.
    fn now() -> Option<Ticks> {
        Ticks::read(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// From /proc/stat and /proc/self/stat, as proc(5) has them.
    fn read(stat: &str, own: &str) -> Option<Ticks> {
        let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> = cpu.split_whitespace().filter_map(|t| t.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guests are in user and nice already.
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks.get(..8)? else { return None };
        // The second field is the program's name in brackets, and may hold anything.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let ours = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        let busy = user + nice + system + irq + softirq;
        Some(Ticks { all: busy + idle + iowait + steal, busy, stolen: steal, ours })
    }

    /// What happened between `earlier` and now.
    fn since(&self, earlier: &Ticks) -> Disturbance {
        let all = self.all - earlier.all;
        // Less than a tenth of a second: ticks are too coarse to tell.
        if all < 0.1 * USER_HZ {
            return Disturbance::default();
        }
        let stolen_share = ((self.stolen - earlier.stolen) / all).clamp(0.0, 1.0);
        let others = (self.busy - earlier.busy) - (self.ours - earlier.ours);
        let others_share = (others / all).clamp(0.0, 1.0);
        let disturbed = stolen_share > STOLEN_MAX || others_share > OTHERS_MAX;
        Disturbance { stolen_share, others_share, disturbed }
    }
}

impl Watch {
    /// Begins to watch.
    pub fn start() -> Watch {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Watch { started: Instant::now(), started_unix_s: unix.as_secs(), ticks: Ticks::now() }
    }

    /// Who else was at work since the start.
    pub fn disturbance(&self) -> Disturbance {
        self.ticks.and_then(|start| Some(Ticks::now()?.since(&start))).unwrap_or_default()
    }

    /// The provenance of what was done `n` times since the start.
    pub fn provenance(&self, tool: &Tool, seed: u64, n: u64) -> Provenance {
        Provenance {
            machine: Machine::here(),
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

/// The fields of a struct, for [`Record::parameters`] and [`Record::results`]. Panics if it is no
/// struct.
pub fn fields(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(fields)) => fields,
        other => panic!("a struct has fields, and {other:?} has none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "42 (a b) c) R 1 1 1 0 -1 0 1 0 0 0 100 20 0 0 20 0 1";

    #[test]
    fn steal_and_other_programs_are_told_apart_from_our_own_work() {
        let before = Ticks::read("cpu  1000 0 0 5000 0 0 0 10 0 0\ncpu0 1\n", OWN).unwrap();
        let own = OWN.replace(" 100 20 ", " 150 20 ");
        let quiet = Ticks::read("cpu  1050 0 0 5150 0 0 0 10 0 0\n", &own).unwrap().since(&before);
        assert_eq!(quiet, Disturbance { stolen_share: 0.0, others_share: 0.0, disturbed: false });
        let busy = Ticks::read("cpu  1100 0 0 5090 0 0 0 20 0 0\n", &own).unwrap().since(&before);
        assert_eq!(busy, Disturbance { stolen_share: 0.05, others_share: 0.25, disturbed: true });
    }

    #[test]
    fn a_record_tells_its_day_whatever_its_file_says() {
        let mut provenance = Watch::start().provenance(&Tool::new("1.0", None), 1, 1);
        provenance.started_unix_s = 1_795_400_000;
        assert_eq!(provenance.started(), "Mon, 23 Nov 2026 02:13:20 GMT");
        assert_eq!(provenance.day(), "23 Nov 2026");
        provenance.started_unix_s = u64::MAX;
        assert_eq!(provenance.day(), "31 Dec 9999");
    }

    #[test]
    fn a_run_of_less_than_a_tick_is_not_judged() {
        let before = Ticks::read("cpu  1000 0 0 5000 0 0 0 10 0 0\n", OWN).unwrap();
        let after = Ticks::read("cpu  1001 0 0 5000 0 0 0 11 0 0\n", OWN).unwrap();
        assert_eq!(after.since(&before), Disturbance::default());
    }

    #[test]
    fn a_record_survives_its_line() {
        let watch = Watch::start();
        let record = Record {
            kind: "pipeline".to_owned(),
            provenance: watch.provenance(&Tool::new("1.0", Some("abc")), 7, 3),
            parameters: fields(&watch.disturbance()),
            results: Map::new(),
            platform: None,
        };
        let line = serde_json::to_string(&record).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        assert!(record.provenance.machine.cores >= 1 && !record.provenance.machine.kernel.is_empty());
    }
}
