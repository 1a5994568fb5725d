//! The dashboard in a browser: Chromium, driven by Playwright (`dashboard.py`).
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

/// A network that runs until this is dropped.
struct Running {
    child: Child,
    state: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended = Command::new(PROGRAM)
            .args(["lab", "down", "dashboard"])
            .env("FASTPATH_STATE_DIR", &self.state)
            .stdout(Stdio::null())
            .status();
        if !ended.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

impl Running {
    /// What `fastpath ctl` says of it, as JSON.
    fn ask(&self, what: &str) -> Value {
        let said = Command::new(PROGRAM)
            .args(["ctl", what, "--json", "--lab", "dashboard"])
            .env("FASTPATH_STATE_DIR", &self.state)
            .output()
            .unwrap();
        serde_json::from_slice(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// The values and traces of all directions of links.
    fn links(&self) -> Vec<(Value, Value)> {
        let report = self.ask("report");
        let links = report["links"].as_array().unwrap().iter();
        let directions = links.flat_map(|link| link["directions"].as_array().unwrap());
        directions.map(|pipe| (pipe["values"].clone(), pipe["traces"].clone())).collect()
    }

    fn uptime_s(&self) -> f64 {
        self.ask("report")["uptime_s"].as_f64().unwrap()
    }
}

/// A spec in a directory of its own, which is removed with this.
struct Scratch {
    file: PathBuf,
}

impl Scratch {
    fn new(test: &str, name: &str, text: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("fastpath-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join(name);
        std::fs::write(&file, text).unwrap();
        Scratch { file }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.file.parent().expect("it is in a directory"));
    }
}

/// Brings a lab up. Returns the address of its dashboard; `None` where labs are not permitted.
fn up(spec: &Path, test: &str) -> Option<(Running, String)> {
    let state = std::env::temp_dir().join(format!("fp-{:.9}-{}", test, std::process::id()));
    let mut child = Command::new(PROGRAM)
        .args(["lab", "up"])
        .arg(spec)
        .args(["--name", "dashboard", "--dashboard"])
        .env("FASTPATH_STATE_DIR", &state)
        .env_remove("FASTPATH_LAB")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running { child, state };
    let address =
        lines.by_ref().find_map(|line| Some(line.ok()?.split_once("dashboard at ")?.1.to_owned()))?;
    // The rest is read, so that the network never waits for it.
    std::thread::spawn(move || lines.for_each(drop));
    Some((running, address))
}

/// Returns a Python that has Playwright: that of `cargo xtask test`, or of the system.
fn python() -> Option<PathBuf> {
    let target = Path::new(PROGRAM).ancestors().find(|path| path.join("playwright/bin/python3").exists());
    let own = target.map(|target| target.join("playwright/bin/python3"));
    own.into_iter().chain(["python3".into()]).find(|python| {
        let check = Command::new(python).args(["-c", "import playwright.sync_api"]).output();
        check.is_ok_and(|check| check.status.success())
    })
}

/// The browser, if it is there, with the script that drives it.
fn browser() -> Option<Command> {
    let chromium = Path::new("/usr/bin/chromium");
    let mut browser = Command::new(python().filter(|_| chromium.exists())?);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard.py");
    browser.arg(script);
    Some(browser)
}

/// Drives the dashboard of `spec` by a scenario of the script.
fn drive(test: &str, spec: &Path, scenario: &str, arguments: &[String]) -> Option<Running> {
    let Some(mut browser) = browser() else {
        skip(test, "needs Chromium, and Playwright for Python");
        return None;
    };
    let Some((running, address)) = up(spec, test) else {
        skip(test, "cannot bring a lab up");
        return None;
    };
    let said = browser.args([&address, "/usr/bin/chromium", scenario]).args(arguments).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(running)
}

#[test]
fn the_dashboard_shows_and_changes_the_network_of_emulabs_figure() {
    let test = "the_dashboard_shows_and_changes_the_network_of_emulabs_figure";
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/emulab-fig2-1.ns");
    let topology = fastpath::load(&spec).unwrap().spec.topology;
    let nodes: Vec<String> = topology.nodes.iter().map(|node| node.name.clone()).collect();
    drive(test, &spec, "figure", &nodes);
}

/// Values of links: at least two of each key, and one of each kind of queue, loss and jitter.
const VALUES: [&str; 44] = [
    "rate = '1.000001Mbit'",
    "rate = '10Gbit'\ndelay = '1.5ms'",
    "delay = '20s'",
    "overhead = 'ethernet'",
    "overhead = -14",
    "overhead = { bytes = 8, cell = 48, cell_overhead = 5 }",
    "loss = '0.0001%'",
    "loss = { probability = 0.123456789, at = 'egress' }",
    "loss = { probability = '1%', ecn = true }",
    "loss = { kind = 'uniform', probability = '1%', correlation = '25%' }",
    "loss = { kind = 'gilbert-elliott', to_bad = '1%', to_good = '30%', loss_in_bad = '90%' }",
    "loss = { kind = 'four-state', p13 = '1%', p31 = '30%', p32 = '2%', p23 = '40%', p14 = '0.1%' }",
    "loss = { kind = 'runs', passed = [99, 7], lost = [1, 2] }",
    "loss = { kind = 'outage', start = '1s', for = '200ms', every = '5s' }",
    "loss = [{ kind = 'packets', numbers = [1] }, { kind = 'bytes', offsets = [2], at = 'egress' }]",
    "queue = '50p'",
    "queue = '64KiB'",
    "queue = '20ms'",
    "queue = { kind = 'drop-head', limit = '9p' }",
    "queue = { kind = 'red', limit = '50p', min = '5p', max = '15p', ecn = true }",
    "queue = { kind = 'ared', limit = '50p', min = '5p', max = '15p' }",
    "queue = { kind = 'codel', target = '1ms', ecn = true }",
    "queue = { kind = 'fq-codel', flows = 16 }",
    "queue = { kind = 'pie', alpha = 0.1, ecn = true }",
    "queue = { kind = 'dualpi2', classic_share = 10 }",
    "queue = { kind = 'token-bucket', rate = '1Mbit', burst = '10KiB', limit = '100p' }",
    "queue = { kind = 'prio', bands = [{ dscp = ['EF'], limit = '10p' }, { limit = '100p' }] }",
    "queue = { kind = 'drr', classes = [{ dscp = [46, 8], quantum = '3KiB', limit = '10p' }, { quantum = '1KiB', limit = '20p' }] }",
    "delay = '5ms'\njitter = { law = 'uniform', half_width = '1ms', reorder = 'allow' }",
    "delay = '5ms'\njitter = { law = 'normal', sd = '1ms', half_life = '50ms' }",
    "delay = '5ms'\njitter = { law = 'lognormal', mean = '1ms', sd = '3ms', correlation = '25%', reorder = 'drop' }",
    "delay = '5ms'\njitter = { law = 'pareto', mean = '2ms', shape = 3.0 }",
    "delay = '5ms'\njitter = { law = 'exponential', mean = '2ms' }",
    "delay = '5ms'\njitter = { law = 'table', values = ['1ms', '2.5ms'] }",
    "reorder = '25%'",
    "reorder = { probability = '25%', correlation = '50%', gap = 5 }",
    "duplicate = '1%'",
    "duplicate = { probability = '1%', later = '5ms' }",
    "corrupt = '0.1%'",
    "corrupt = { bits = 1e-6 }",
    "slots = '2ms'",
    "slots = { mean = '2ms', law = { law = 'exponential', mean = '1ms' } }",
    "state = 'down'",
    "a_to_b = { rate = '1Mbit' }\nb_to_a = { rate = '2Mbit', queue = { kind = 'codel' } }",
];

#[test]
fn every_field_of_the_dashboard_accepts_what_it_shows() {
    let test = "every_field_of_the_dashboard_accepts_what_it_shows";
    // A chain of switches, so that only two hosts are namespaces.
    let mut text = "[host.a]\n[host.z]\n".to_owned();
    let node = |number: usize| match number {
        0 => "a".to_owned(),
        number if number == VALUES.len() => "z".to_owned(),
        number => format!("s{number}"),
    };
    for number in 1..VALUES.len() {
        text += &format!("[switch.s{number}]\n");
    }
    for (number, values) in VALUES.iter().enumerate() {
        let (a, b) = (node(number), node(number + 1));
        let values =
            values.replace("a_to_b", &format!("{a}_to_{b}")).replace("b_to_a", &format!("{b}_to_{a}"));
        text += &format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nname = \"link-{number}\"\n{values}\n");
    }
    let spec = Scratch::new(test, "values.toml", &text);
    let links: Vec<String> = (0..VALUES.len()).map(|number| format!("link-{number}")).collect();
    drive(test, &spec.file, "values", &links);
}

/// A group with traces that start on command, commands of a host, and an OpenFlow switch.
const SESSION: &str = "[host.a]\nexec = [\"echo hello from a\", \"sleep 1000 &\"]\n[host.b]\n[host.c]\n[host.d]\n[switch.s]\n\
    [openflow.o]\nrules = \"priority=1,actions=NORMAL\"\n[group.cell]\nstart = \"command\"\n\
    [[link]]\nbetween = [\"a\", \"s\"]\n[[link]]\nbetween = [\"b\", \"s\"]\ngroup = \"cell\"\ntrace = \"t.csv\"\n\
    [[link]]\nbetween = [\"c\", \"s\"]\n[[link]]\nbetween = [\"d\", \"o\"]\n[[link]]\nbetween = [\"s\", \"o\"]\n";

#[test]
fn an_exported_session_leads_to_the_same_values_traces_included() {
    let test = "an_exported_session_leads_to_the_same_values_traces_included";
    let spec = Scratch::new(test, "session.toml", SESSION);
    std::fs::write(spec.file.with_file_name("t.csv"), "duration_s,rate_mbps\n1000,3\n1000,4\n").unwrap();
    let events = spec.file.with_file_name("events.toml");
    let Some(running) = drive(test, &spec.file, "session", &[events.display().to_string()]) else { return };
    let asked = running.links();
    drop(running);
    let exported = std::fs::read_to_string(&events).unwrap();
    assert!(exported.contains("traces = \"start\"") && exported.contains("traces = \"stop\""), "{exported}");
    std::fs::write(&spec.file, format!("{SESSION}{exported}")).unwrap();
    let (running, _) = up(&spec.file, test).expect("it was up before");
    let last =
        exported.lines().filter_map(|line| line.strip_prefix("at = \"")?.strip_suffix('"')).next_back();
    let last: fastpath_units::Duration = last.unwrap().parse().unwrap();
    while running.uptime_s() <= last.as_secs_f64() {
        std::thread::yield_now();
    }
    assert_eq!(running.links(), asked, "{exported}");
}

/// A link of which traffic takes a fifth.
const FIFTH: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\n\
    [[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'constant'\nrate = '2Mbit'\nsize = 1000\n";

#[test]
fn the_dashboard_the_metrics_and_ctl_top_show_one_headroom() {
    let test = "the_dashboard_the_metrics_and_ctl_top_show_one_headroom";
    let spec = Scratch::new(test, "headroom.toml", FIFTH);
    let Some(running) = drive(test, &spec.file, "headroom", &[]) else { return };
    let top = running.ask("top");
    let worker = top["workers"][0].as_f64().unwrap();
    for link in top["links"].as_array().unwrap() {
        let [load, headroom] = ["load", "headroom"].map(|key| link[key].as_f64().unwrap());
        assert!((headroom - (1.0 - load.max(worker)).max(0.0)).abs() < 1e-9, "{top}");
    }
    assert_eq!(top["warnings"], serde_json::json!([]));
}

/// Switches between two hosts: a worker does not carry through them what one host sends.
const SWITCHES: usize = 60;

fn too_much() -> String {
    let mut text = "engine = { tolerance = '2s' }\n[host.a]\n[host.b]\n".to_owned();
    let node = |number: usize| match number {
        0 => "a".to_owned(),
        number if number > SWITCHES => "b".to_owned(),
        number => format!("s{number}"),
    };
    (1..=SWITCHES).for_each(|number| text += &format!("[switch.s{number}]\n"));
    for number in 0..=SWITCHES {
        let (from, to) = (node(number), node(number + 1));
        text += &format!(
            "[[link]]\nbetween = ['{from}', '{to}']\ndelay = '1us'\nqueue = {{ kind = 'codel', limit = '9p' }}\n"
        );
    }
    text + "[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'constant'\nrate = '2Gbit'\nsize = 100\n"
}

/// How long a worker may take until it is warned of, in seconds of the run.
const WARNED_BY_S: f64 = 30.0;

/// Waits until the worker is warned of. Returns false where its core is taken from it, so that it
/// is not busy for long enough.
fn is_warned(running: &Running) -> bool {
    loop {
        let report = running.ask("report");
        let worker = &report["workers"][0];
        if worker["warning"].is_string() {
            return true;
        }
        let uptime_s = report["uptime_s"].as_f64().unwrap();
        if uptime_s > WARNED_BY_S {
            let lost_ms = |what: &str| worker[what]["total_ms"].as_f64().unwrap();
            let lost_s = (lost_ms("stalled") + lost_ms("preempted")) / 1e3;
            assert!(lost_s > 0.1 * uptime_s, "{worker}");
            return false;
        }
    }
}

#[test]
fn a_warning_appears_before_the_tolerance_breaks() {
    let test = "a_warning_appears_before_the_tolerance_breaks";
    let spec = Scratch::new(test, "warning.toml", &too_much());
    let Some(mut browser) = browser() else {
        return skip(test, "needs Chromium, and Playwright for Python");
    };
    let Some((running, address)) = up(&spec.file, test) else { return skip(test, "cannot bring a lab up") };
    if !is_warned(&running) {
        return skip(test, "other programs take the core of the worker");
    }
    let said = browser.args([&address, "/usr/bin/chromium", "warning"]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let report = running.ask("report");
    assert!(report["workers"][0]["warning"].as_str().unwrap().contains("is busy"), "{report}");
    assert_eq!(report["lateness"]["late"], 0, "{}", report["lateness"]);
    assert!(!running.ask("top")["warnings"].as_array().unwrap().is_empty());
}
