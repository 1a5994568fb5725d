//! Tests `fastpath experiment` as users run it: a matrix in virtual time and in labs.
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An empty directory for one test.
struct Bench(PathBuf);

impl Bench {
    fn new(test: &str) -> Bench {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("experiment").join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Bench(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), content).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        command.arg("experiment").args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (Output, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [&output.stdout[..], &output.stderr].concat();
        (output, String::from_utf8(text).unwrap())
    }
}

/// A capture of 200 frames of 1000 bytes, one every 500 µs: 16 Mbit/s.
fn capture() -> Vec<u8> {
    let mut writer = fastpath_wire::pcap::Writer::new(Vec::new(), 1).unwrap();
    let mut frame = vec![0; 1000];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    for number in 0..200 {
        writer.write_packet(number * 500_000, 1000, &frame).unwrap();
    }
    writer.finish().unwrap()
}

const SPEC: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '8Mbit'\ndelay = '1ms'\n";

/// Three rates, two losses and four seeds.
const VIRTUAL: &str = "
spec  = 'net.toml'
seeds = 4
[matrix]
'link.a-b.rate' = ['8Mbit', '16Mbit', '32Mbit']
'link.a-b.a_to_b.loss' = ['none', '20%']
[replay]
in  = { a = 'in.pcap' }
out = ['b']
[metric.delay]
delay  = true
unit   = 'ms'
reduce = 'max'
[metric.arrived]
frames = 'delivered'
[[expect]]
metric   = 'p50(delay)'
at_least = '2ms'
where    = { 'link.a-b.rate' = '8Mbit' }
[[expect]]
metric  = 'delay'
at_most = '0.0016s'
where   = { 'link.a-b.rate' = '16Mbit' }
";

fn virtual_bench(test: &str) -> Bench {
    let bench = Bench::new(test);
    bench.write("net.toml", SPEC);
    bench.write("in.pcap", capture());
    bench.write("rates.toml", VIRTUAL);
    bench
}

#[test]
fn a_matrix_in_virtual_time_is_complete_and_the_same_however_it_is_done() {
    let bench = virtual_bench("virtual");
    let (output, text) = bench.run(&["rates.toml", "--json"]);
    assert!(output.status.success(), "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((found["finished"].as_u64(), found["of"].as_u64()), (Some(24), Some(24)));
    // Without loss and at 16 Mbit/s no frame waits: 0.5 ms on the wire and 1 ms to the far end.
    let of = |rate: &str, loss: &str, metric: &str| -> Vec<f64> {
        let runs = found["runs"].as_array().unwrap().iter();
        let place = |run: &&Value| {
            run["condition"]["link.a-b.rate"] == rate && run["condition"]["link.a-b.a_to_b.loss"] == loss
        };
        runs.filter(place).map(|run| run["values"][metric].as_f64().unwrap()).collect()
    };
    assert_eq!(of("16Mbit", "none", "delay"), [1.5; 4]);
    assert_eq!(of("32Mbit", "none", "delay"), [1.25; 4]);
    assert_eq!(of("16Mbit", "none", "arrived"), [200.0; 4]);
    // The seeds differ, so the losses do.
    let mut lost = of("32Mbit", "20%", "arrived");
    assert!(lost.iter().all(|arrived| (100.0..195.0).contains(arrived)), "{lost:?}");
    lost.dedup();
    assert!(lost.len() > 1, "{lost:?}");
    // A run is a replay of its own description.
    let replay = Command::new(env!("CARGO_BIN_EXE_fastpath"))
        .args(["replay", "rates.results/runs/0023/spec.json", "--in", "a=in.pcap", "--out", "b=again.pcap"])
        .args(["--seed", "4"])
        .current_dir(&bench.0)
        .output()
        .unwrap();
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stderr));
    let kept = fs::read(bench.0.join("rates.results/runs/0023/b.pcap")).unwrap();
    assert_eq!(fs::read(bench.0.join("again.pcap")).unwrap(), kept);

    let whole = bench.text("rates.results/results.csv");
    assert_eq!(whole.lines().count(), 25);
    assert!(
        whole.starts_with("run,seed,link.a-b.a_to_b.loss,link.a-b.rate,arrived,delay_ms,attempts,"),
        "{whole}"
    );
    let parquet = fs::read(bench.0.join("rates.results/results.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    assert!(bench.text("rates.results/report.html").contains("delay, ms"));

    // Parts in one directory, and a run that is lost: only what is missing is done.
    for part in ["1/2", "2/2"] {
        let (output, text) =
            bench.run(&["rates.toml", "--output", "parts", "--shard", part, "--workers", "1"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    }
    assert_eq!(bench.text("parts/results.csv"), whole);
    let untouched = fs::metadata(bench.0.join("parts/runs/0003/run.json")).unwrap().modified().unwrap();
    fs::remove_file(bench.0.join("parts/runs/0007/run.json")).unwrap();
    assert!(bench.run(&["rates.toml", "--output", "parts"]).0.status.success());
    assert_eq!(bench.text("parts/results.csv"), whole);
    let after = fs::metadata(bench.0.join("parts/runs/0003/run.json")).unwrap().modified().unwrap();
    assert_eq!(after, untouched);

    // Another experiment does not mix with these results.
    bench.write("rates.toml", VIRTUAL.replace("seeds = 4", "seeds = 5"));
    let (output, text) = bench.run(&["rates.toml", "--output", "parts"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("results of another experiment"), "{text}");
}

#[test]
fn runs_are_chosen_by_number_and_the_missing_ones_are_listed_with_their_files() {
    let bench = virtual_bench("only");
    let missing = |directory: &str| -> Value {
        let (output, text) = bench.run(&["rates.toml", "-o", directory, "--missing"]);
        assert!(output.status.success(), "{text}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let all = missing("some");
    assert_eq!((all["runs"].as_array().unwrap().len(), &all["labs"]), (24, &Value::Bool(false)));
    let place = fs::canonicalize(&bench.0).unwrap();
    let files: Vec<String> =
        ["in.pcap", "net.toml", "rates.toml"].map(|name| place.join(name).display().to_string()).to_vec();
    assert_eq!(all["files"], serde_json::json!(files));
    let (output, text) = bench.run(&["rates.toml", "-o", "some", "--only", "3,17", "--only", "5", "--json"]);
    // Expectations of other conditions have no run.
    assert_eq!(output.status.code(), Some(1), "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs: Vec<&Value> = found["runs"].as_array().unwrap().iter().map(|run| &run["run"]).collect();
    assert_eq!(serde_json::json!(runs), serde_json::json!([3, 5, 17]));
    let left = missing("some");
    let left = left["runs"].as_array().unwrap();
    assert!(left.len() == 21 && !left.contains(&Value::from(17)), "{left:?}");
    let (output, text) = bench.run(&["rates.toml", "-o", "some", "--only", "24"]);
    assert!(output.status.code() == Some(2) && text.contains("has 24 runs; write 0 to 23"), "{text}");
}

#[test]
fn a_machine_is_audited_before_a_run_where_that_is_asked_for() {
    let test = "a_machine_is_audited_before_a_run_where_that_is_asked_for";
    let bench = Bench::new("audited");
    // The flow would disturb the audit, and packets of the audit would be in the counters of the
    // run.
    let flow = "[[traffic]]\nname = 'f'\nfrom = 'a'\nto = 'b'\nrate = '80kbit'\nsize = 100\nstop = '300ms'\n";
    bench.write("net.toml", format!("{SPEC}{flow}"));
    let file = "spec = 'net.toml'\nattempts = 1\nlate_share = 1.0\naudit = true\n[[step]]\nwait = '400ms'\n\
                [metric.frames]\nlink = 'a-b'\nfrom = 'a'\nvalue = 'frames_in'\n";
    bench.write("audited.toml", file);
    let (output, text) = bench.run(&["audited.toml"]);
    if text.contains("not permitted") {
        return skip(test, "network namespaces are not permitted");
    }
    let json = |name: &str| -> Value {
        serde_json::from_str(&bench.text(&format!("audited.results/runs/0000/{name}"))).unwrap()
    };
    let (audit, run) = (json("audit.json"), json("run.json"));
    assert_eq!(audit["pairs"][0]["from"], "a");
    assert!(audit["pairs"][0]["rtt_ms"]["sent"].as_u64().unwrap() > 10, "{audit}");
    assert!(audit["links"][0]["directions"][0]["frames_in"].as_u64().unwrap() > 300, "{audit}");
    let starts = |key: &str| run[key].as_str().is_some_and(|why| why.starts_with("audit: "));
    // Other tests may disturb this one.
    match audit["verdict"].as_str().unwrap() {
        "pass" => {
            assert!(output.status.success() || run["disturbed"].is_string(), "{text}");
            let frames = run["values"]["frames"].as_f64().unwrap();
            assert!((30.0..300.0).contains(&frames), "{frames} frames");
        }
        "fail" => assert!(starts("problem") && output.status.code() == Some(1), "{run}"),
        "disturbed" => assert!(starts("disturbed") && output.status.code() == Some(1), "{run}"),
        other => panic!("{other}"),
    }
    // It is an input of the run.
    bench.write("audited.toml", file.replace("audit = true\n", ""));
    let (output, text) = bench.run(&["audited.toml"]);
    assert!(output.status.code() == Some(2) && text.contains("audit is not there any more"), "{text}");
}

#[test]
fn runs_of_what_has_changed_are_refused_or_done_again() {
    let bench = virtual_bench("changed");
    bench.write("lte.csv", "time_s,delay (ms)\n0,1\n60,1\n");
    let traced = SPEC.replace("delay = '1ms'", "trace = 'lte.csv'");
    bench.write("net.toml", &traced);
    let file = VIRTUAL.replace("seeds = 4", "seeds = 1").replace("[[expect]]", "[[expect]] # a bound");
    bench.write("rates.toml", &file);
    let (output, text) = bench.run(&["rates.toml"]);
    assert!(output.status.success(), "{text}");
    let whole = bench.text("rates.results/results.csv");
    let mut longer = capture();
    longer.extend_from_within(longer.len() - 1016..);
    for (name, content, said) in [
        (
            "net.toml",
            traced.replace("'8Mbit'", "'8Mbit'\noverhead = 4").into_bytes(),
            "6 of 6 finished runs are not of this experiment any more:\n  run 0 \
             (link.a-b.a_to_b.loss=none, link.a-b.rate=8Mbit): its network: links.a-b.",
        ),
        (
            "lte.csv",
            b"time_s,delay (ms)\n0,1\n60,2\n".to_vec(),
            "trace lte.csv of link a-b, forward has another content",
        ),
        ("in.pcap", longer, "capture of a has another content"),
        (
            "rates.toml",
            file.replace("out = ['b']", "out = ['b']\nuntil = '9s'").into_bytes(),
            "until was not given, is 9s",
        ),
        (
            "rates.toml",
            file.replace("'32Mbit'", "'64Mbit'").into_bytes(),
            "before its file was changed: [matrix] differs",
        ),
    ] {
        let before = fs::read(bench.0.join(name)).unwrap();
        assert_ne!(before, content, "{name}");
        bench.write(name, &content);
        let (output, text) = bench.run(&["rates.toml"]);
        assert_eq!(output.status.code(), Some(2), "{said}: {text}");
        assert!(text.contains(said) && text.contains("--retry-changed"), "{said}: {text}");
        assert_eq!(bench.text("rates.results/results.csv"), whole, "{said}");
        // Done again, the table is that of a fresh directory.
        let (output, text) = bench.run(&["rates.toml", "--retry-changed"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}: {text}");
        assert!(matches!(bench.run(&["rates.toml", "-o", "fresh"]).0.status.code(), Some(0 | 1)));
        assert_eq!(bench.text("rates.results/results.csv"), bench.text("fresh/results.csv"), "{said}");
        fs::remove_dir_all(bench.0.join("fresh")).unwrap();
        bench.write(name, before);
        assert!(bench.run(&["rates.toml", "--retry-changed"]).0.status.success());
        assert_eq!(bench.text("rates.results/results.csv"), whole, "{said}");
    }
}

#[test]
fn comments_expectations_and_metrics_keep_finished_runs() {
    let bench = virtual_bench("measured-again");
    let file = VIRTUAL.replace("seeds = 4", "seeds = 1");
    bench.write("rates.toml", &file);
    assert!(bench.run(&["rates.toml"]).0.status.success());
    let made = || fs::metadata(bench.0.join("rates.results/runs/0003/b.pcap")).unwrap().modified().unwrap();
    let before = made();
    let more = "[metric.lost]\nframes = 'dropped'\n[[expect]]\nmetric = 'lost'\nat_most = 0\n\
                where = { 'link.a-b.a_to_b.loss' = 'none', 'link.a-b.rate' = '16Mbit' }\n[metric.p90]\ndelay = true\nreduce = 'p90'\n";
    bench.write("rates.toml", format!("# a comment\n{file}{more}"));
    let (output, text) = bench.run(&["rates.toml"]);
    assert!(output.status.success(), "{text}");
    let holds =
        "expected lost at most 0, link.a-b.a_to_b.loss = none, link.a-b.rate = 16Mbit: holds in 1 runs";
    assert!(text.contains(holds), "{text}");
    assert_eq!(made(), before);
    // The table is that of a fresh directory.
    assert!(bench.run(&["rates.toml", "-o", "fresh"]).0.status.success());
    assert_eq!(bench.text("rates.results/results.csv"), bench.text("fresh/results.csv"));
    assert!(!bench.text("fresh/results.csv").contains("-0"));
    // A metric is mended, and what it found nothing in is usable.
    bench.write("rates.toml", file.replace("delay  = true", "frames = 'delivered'"));
    let (output, text) = bench.run(&["rates.toml", "-o", "bare"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    bench.write("rates.toml", &file);
    let (output, text) = bench.run(&["rates.toml", "-o", "bare"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("metric delay cannot be computed: the times of the frames were not kept"),
        "{text}"
    );
    assert!(bench.run(&["rates.toml", "-o", "bare", "--retry-changed"]).0.status.success());
}

#[test]
fn a_step_or_a_program_that_has_changed_is_named() {
    let test = "a_step_or_a_program_that_has_changed_is_named";
    let bench = Bench::new("programs");
    bench.write("net.toml", SPEC);
    bench.write("tool.sh", "echo value=1 | tee -a log.txt\n");
    let file = "spec = 'net.toml'\nattempts = 1\nlate_share = 1.0\n[matrix]\nword = ['x', 'y']\n[[step]]\nname = 'it'\n\
                run = 'sh ./tool.sh {word} log.txt'\non = 'a'\n[metric.value]\nof = 'it'\npattern = 'value=([0-9]+)'\n";
    bench.write("steps.toml", file);
    let (output, text) = bench.run(&["steps.toml"]);
    if text.contains("not permitted") {
        return skip(test, "network namespaces are not permitted");
    }
    assert!(output.status.success(), "{text}");
    // What a run writes itself is a result, also if its command names it.
    let (output, text) = bench.run(&["steps.toml"]);
    assert!(output.status.success(), "{text}");
    let more = format!("{file}[metric.lines]\nof = 'it'\npattern = 'value=([0-9]+)'\nreduce = 'count'\n");
    bench.write("steps.toml", &more);
    let (output, text) = bench.run(&["steps.toml", "--json"]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("\"lines\":1.0"), "{text}");
    bench.write("tool.sh", "echo value=2\n");
    let (output, text) = bench.run(&["steps.toml"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("run 1 (word=y): file ./tool.sh has another content"), "{text}");
    bench.write("steps.toml", more.replace("{word} log", "--fast {word} log"));
    let (output, text) = bench.run(&["steps.toml", "--retry-changed"]);
    assert!(output.status.success(), "{text}");
    bench.write("steps.toml", more.replace("on = 'a'", "on = 'b'"));
    let (_, text) = bench.run(&["steps.toml"]);
    assert!(text.contains("run 0 (word=x): step it was {"), "{text}");
}

#[test]
fn a_report_shows_runs_of_an_experiment_also_of_the_former_format() {
    let bench = virtual_bench("report");
    let (output, text) = bench.run(&["rates.toml"]);
    assert!(output.status.success(), "{text}");
    let report = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        let output = command.arg("report").args(words).current_dir(&bench.0).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (directory, file) = ("rates.results/runs/0000", "rates.results/runs/0001/run.json");
    let shown = || {
        let (status, said) = report(&[directory, file, "-o", "runs.md"]);
        assert_eq!(status, Some(0), "{said}");
        bench.text("runs.md")
    };
    let page = shown();
    for part in ["| 0001 |", "link.a-b.rate=8Mbit", "| run | arrived | delay |"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (status, said) = report(&[directory, "-o", "run.svg"]);
    assert_eq!(status, Some(0), "{said}");

    let mut run: Value = serde_json::from_str(&bench.text(file)).unwrap();
    assert_eq!(
        (run["format"].as_u64(), &run["condition"]["link.a-b.rate"]),
        (Some(1), &Value::from("16Mbit"))
    );
    let keys = run.as_object_mut().unwrap();
    let mut origin = serde_json::Map::new();
    for (former, key) in [("version", "version"), ("machine", "machine")] {
        origin.insert(former.to_owned(), keys.remove(key).unwrap());
    }
    let condition = keys.remove("condition").unwrap();
    keys.extend([("place".to_owned(), condition), ("origin".to_owned(), Value::Object(origin))]);
    keys.remove("format");
    bench.write(file, run.to_string());
    assert_eq!(shown(), page);
    let whole = bench.text("rates.results/results.csv");
    let (output, text) = bench.run(&["rates.toml"]);
    assert!(output.status.success(), "{text}");
    assert_eq!(bench.text("rates.results/results.csv"), whole);

    let (status, said) = report(&["rates.results", "-o", "runs.md"]);
    assert!(
        status == Some(2) && said.contains("name its runs, for example rates.results/runs/0000"),
        "{said}"
    );
}

#[test]
fn the_traffic_of_the_description_is_sent_and_its_results_are_metrics() {
    let bench = Bench::new("traffic");
    let traffic = "[[traffic]]\nname = 'cbr'\nfrom = 'a'\nto = 'b'\nkind = 'constant'\nrate = '4Mbit'\n";
    bench.write("net.toml", format!("{SPEC}{traffic}"));
    bench.write(
        "flows.toml",
        "spec = 'net.toml'\n[matrix]\n'link.a-b.rate' = ['8Mbit', '2Mbit']\n[replay]\nuntil = '2s'\n\
         [metric.lost]\nflow = 'cbr'\nvalue = 'lost'\n[metric.delay]\nflow = 'cbr'\nvalue = 'delay.min_ms'\nunit = 'ms'\n",
    );
    let (output, text) = bench.run(&["flows.toml", "--json"]);
    assert!(output.status.success(), "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |run: usize, metric: &str| found["runs"][run]["values"][metric].as_f64().unwrap();
    assert_eq!(of(0, "lost"), 0.0);
    // Half of what is offered does not fit.
    assert!(of(1, "lost") > 300.0 && of(0, "delay") > 1.0, "{found}");
    bench.write("flows.toml", bench.text("flows.toml").replace("flow = 'cbr'", "flow = 'crb'"));
    assert!(bench.run(&["flows.toml"]).1.contains("there is no flow 'crb'; write cbr"));
}

#[test]
fn the_test_cases_of_rfc_8867_are_an_experiment() {
    let bench = Bench::new("rfc8867");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for case in 1..=8 {
        let name = format!("5.{case}.toml");
        bench.write(&name, fs::read_to_string(examples.join("rfc8867").join(&name)).unwrap());
    }
    let file = fs::read_to_string(examples.join("experiments/rfc8867.toml")).unwrap();
    bench.write("rfc8867.toml", file.replace("../rfc8867/", ""));
    let (output, text) = bench.run(&["rfc8867.toml", "--json"]);
    assert!(output.status.success(), "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |metric: &str| -> Vec<f64> {
        let runs = found["runs"].as_array().unwrap().iter();
        runs.map(|run| run["values"][metric].as_f64().unwrap()).collect()
    };
    // 1 Mbit/s fills the first case, and three times as much fit into the fourth.
    let (carried, dropped) = (of("carried"), of("dropped"));
    assert!(carried.len() == 8 && (90.0..100.0).contains(&carried[0]), "{carried:?}");
    assert!(dropped[0] > 500.0 && dropped[3] == 0.0, "{dropped:?}");
    // The TCP of the sixth takes the rest of 2 Mbit/s, 115 s long.
    assert!(carried[5] > 0.95 * 240.0, "{carried:?}");
}

#[test]
fn a_broken_expectation_is_exit_code_1_and_a_failure_of_junit() {
    let bench = virtual_bench("expect");
    bench.write("rates.toml", VIRTUAL.replace("0.0016s", "1.4ms"));
    let (output, text) = bench.run(&["rates.toml", "--junit", "out.xml"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    // Of the 8 runs at 16 Mbit/s, all have frames that took 1.5 ms.
    assert!(
        text.contains("expected delay at most 1.4 ms, link.a-b.rate = 16Mbit: BROKEN in 8 of 8 runs"),
        "{text}"
    );
    let junit = bench.text("out.xml");
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
}

#[test]
fn all_mistakes_are_named_before_anything_starts() {
    let bench = virtual_bench("mistakes");
    for (from, to, said) in [
        ("seeds = 4", "seeds = 1000000000", "runs; the limit is 1000000"),
        ("'link.a-b.rate'", "'link.a-c.rate'", "there is no such link (have: a-b)"),
        ("'32Mbit'", "'32Mbut'", "32Mbut"),
        ("a_to_b", "b_to_c", "there is no such direction; write a_to_b or b_to_a"),
        ("a = 'in.pcap'", "c = 'in.pcap'", "there is no host 'c'; write"),
        ("in.pcap", "absent.pcap", "rates.toml:8:13: absent.pcap is not a file"),
        ("net.toml", "absent.toml", "absent.toml"),
        ("p50(delay)", "p50(delays)", "there is no metric 'delays'; write delay"),
        ("p50(", "p500(", "'p500' does not make one number of many"),
        ("'2ms'", "'2Mbit'", "is not in ms"),
        ("= '16Mbit' }", "= '17Mbit' }", "is never 17Mbit; write 16Mbit"),
        ("delay  = true", "delay  = true\nframes = 'delivered'", "write exactly one of frames"),
        ("seeds = 4", "seed = 4", "rates.toml:3:1: the experiment has no key 'seed'; write seeds"),
        ("['8Mbit', '16Mbit', '32Mbit']", "[]", "has no value"),
    ] {
        let file = VIRTUAL.replace(from, to);
        assert_ne!(file, VIRTUAL, "{from}");
        bench.write("rates.toml", file);
        let (output, text) = bench.run(&["rates.toml"]);
        assert_eq!(output.status.code(), Some(2), "{to}: {text}");
        assert!(text.contains(said), "{to}: {text}");
        assert!(!bench.0.join("rates.results").exists(), "{to}");
    }
}

#[test]
fn presets_and_traces_are_axes_per_link_and_per_direction() {
    let bench = Bench::new("presets");
    let traffic = "[[traffic]]\nname = 'cbr'\nfrom = 'a'\nto = 'b'\nkind = 'constant'\nrate = '1Mbit'\n";
    bench.write("net.toml", format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{traffic}"));
    bench.write("slow.csv", "time_s,delay (ms)\n0,100\n60,100\n");
    bench.write("fast.csv", "time_s,delay (ms)\n0,10\n60,10\n");
    let file = |axis: &str| {
        format!(
            "spec = 'net.toml'\n[matrix]\n{axis}\n[replay]\nuntil = '2s'\n\
             [metric.delay]\nflow = 'cbr'\nvalue = 'delay.min_ms'\n"
        )
    };
    for (number, (axis, is_slower)) in [
        ("'link.a-b.preset' = ['dsl', 'geo']", true),
        ("'link.a-b.trace' = ['fast.csv', 'slow.csv']", true),
        ("'link.a-b.a_to_b.trace' = ['fast.csv', 'slow.csv']", true),
        ("'link.a-b.b_to_a.trace' = ['fast.csv', 'slow.csv']", false),
    ]
    .into_iter()
    .enumerate()
    {
        bench.write(&format!("x{number}.toml"), file(axis));
        let (output, text) = bench.run(&[&format!("x{number}.toml"), "--json"]);
        assert!(output.status.success(), "{axis}: {text}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |run: usize| found["runs"][run]["values"]["delay"].as_f64().unwrap();
        assert_eq!(of(1) > of(0), is_slower, "{axis}: {} {}", of(0), of(1));
    }
    // The link gives what the preset would.
    let given = "rate = '1Mbit'\ndelay = '1ms'\nqueue = '9p'\nloss = 'none'\njitter = 'none'\n";
    bench.write("net.toml", format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{given}{traffic}"));
    bench.write("same.toml", file("'link.a-b.delay' = ['1ms', '1000us']"));
    let (output, text) = bench.run(&["same.toml", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("same.toml:3:28: link.a-b.delay = \"1000us\" makes the same network as \"1ms\""),
        "{text}"
    );
}

#[test]
fn names_that_the_network_does_not_have_are_mistakes_of_a_dry_run() {
    let bench = Bench::new("names");
    bench.write("net.toml", SPEC);
    for (from, to, said) in [
        (
            "on   = 'a'\n[[step]]\nset",
            "on   = 'aa'\n[[step]]\nset",
            "live.toml:11:8: there is no node 'aa'; write a",
        ),
        ("'a-b.delay' = '40ms'", "'a-c.delay' = '40ms'", "live.toml:13:9: there is no link 'a-c'; write a-b"),
        (
            "'a-b.delay' = '40ms'",
            "'a-b.deqlay' = '40ms'",
            "live.toml:13:9: a link has no value 'deqlay'; write delay",
        ),
        ("'a-b.delay' = '40ms'", "'a-b.delay' = '50mx'", "live.toml:13:23: '50mx' is not a duration"),
        ("set = { 'a-b.delay' = '40ms' }", "start = 'nogroup'", "there is no group 'nogroup'; remove it"),
        ("from  = 'a'", "from  = 'nowhere'", "there is no end of the link a-b 'nowhere'; write one of a, b"),
        ("value = 'frames_in'", "value = 'droped'", "'droped' is not a value of a link; write \"dropped\""),
        ("link  = 'a-b'", "link  = 'nowhere'", "there is no link 'nowhere'; write a-b"),
        ("{count}", "{cuont}", "nothing defines the word {cuont}; write count"),
        ("'20ms'", "'20mz'", "live.toml:6:28: link.a-b.delay = \"20mz\": '20mz' is not a duration"),
    ] {
        assert_eq!(LIVE.matches(from).count(), 1, "{from}");
        bench.write("live.toml", LIVE.replace(from, to));
        let (output, text) = bench.run(&["live.toml", "--dry-run"]);
        assert_eq!(output.status.code(), Some(2), "{to}: {text}");
        assert!(text.contains(said), "{to}: {text}");
    }
    // Mistakes of all kinds at once.
    let all = LIVE
        .replace("{count}", "{cuont}")
        .replace("from  = 'a'", "from  = 'nowhere'")
        .replace("'20ms'", "'20mz'");
    bench.write("live.toml", all);
    let (_, text) = bench.run(&["live.toml", "--dry-run"]);
    assert!(["cuont", "20mz"].iter().all(|said| text.contains(said)), "{text}");
}

const LIVE: &str = "
spec     = 'net.toml'
attempts = 1
late_share = 1.0
[matrix]
'link.a-b.delay' = ['5ms', '20ms']
count = [3]
[[step]]
name = 'ping'
run  = ['ping', '-n', '-i', '0.05', '-c', '{count}', 'b']
on   = 'a'
[[step]]
set = { 'a-b.delay' = '40ms' }
[[step]]
name = 'slow'
run  = 'ping -n -c 1 b | tee said-{seed}.txt >&2; pwd; ping -n -c 1 b'
on   = 'a'
[[step]]
name    = 'hosts'
collect = '/etc/hosts'
on      = 'a'
[metric.rtt]
of      = 'ping'
pattern = 'time=([0-9.]+)'
reduce  = 'min'
unit    = 'ms'
[metric.slow]
of      = 'slow'
pattern = 'time=([0-9.]+)'
unit    = 'ms'
[metric.sent]
link  = 'a-b'
from  = 'a'
value = 'frames_in'
[[expect]]
metric   = 'slow'
at_least = '80ms'
";

#[test]
fn steps_run_on_hosts_and_their_outputs_become_numbers() {
    let test = "steps_run_on_hosts_and_their_outputs_become_numbers";
    let bench = Bench::new("live");
    bench.write("net.toml", SPEC);
    bench.write("live.toml", LIVE);
    let (output, text) = bench.run(&["live.toml", "--json"]);
    if text.contains("not permitted") {
        return skip(test, "network namespaces are not permitted");
    }
    assert!(output.status.success(), "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (run, least) in [(0, 10.0), (1, 40.0)] {
        let values = &found["runs"][run]["values"];
        let (rtt, slow) = (values["rtt"].as_f64().unwrap(), values["slow"].as_f64().unwrap());
        assert!(rtt >= least && slow >= 80.0, "{values}");
        assert!(values["sent"].as_f64().unwrap() >= 5.0, "{values}");
        assert_eq!(found["runs"][run]["samples"]["rtt"].as_array().unwrap().len(), 3);
    }
    assert!(bench.text("live.results/runs/0000/hosts-hosts").contains("b"));
    assert!(!found["runs"][0]["machine"].is_null());
}

#[test]
fn a_command_that_hangs_or_fails_ends_its_run_and_keeps_its_output() {
    let test = "a_command_that_hangs_or_fails_ends_its_run_and_keeps_its_output";
    let bench = Bench::new("hangs");
    bench.write("net.toml", SPEC);
    bench.write(
        "hangs.toml",
        "spec = 'net.toml'\nattempts = 1\nlate_share = 1.0\n[matrix]\ndoes = ['sleep 600', 'exit 3', 'true']\n[[step]]\nname = 'it'\n\
         run = 'echo begun; echo why >&2; {does}'\non = 'b'\nlimit = '300ms'\n",
    );
    let (output, text) = bench.run(&["hangs.toml"]);
    if text.contains("not permitted") {
        return skip(test, "network namespaces are not permitted");
    }
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("run 0 (does=sleep 600, seed 1) is left out: step it: it did not end within 0.3 s"),
        "{text}"
    );
    assert!(
        text.contains("run 1 (does=exit 3, seed 1) is left out: step it: sh: exit status: 3: why"),
        "{text}"
    );
    assert!(!text.contains("run 2"), "{text}");
    // What was left out is done again, and only that.
    let kept = |run: &str| fs::metadata(bench.0.join(format!("hangs.results/runs/{run}/run.json"))).unwrap();
    let before = ["0000", "0002"].map(|run| kept(run).modified().unwrap());
    assert_eq!(bench.run(&["hangs.toml", "--retry"]).0.status.code(), Some(1));
    assert!(kept("0000").modified().unwrap() > before[0] && kept("0002").modified().unwrap() == before[1]);
    for run in ["0000", "0001", "0002"] {
        assert_eq!(bench.text(&format!("hangs.results/runs/{run}/it.out")), "begun\n");
    }
}
