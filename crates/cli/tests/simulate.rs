//! Tests `fastpath sim`, `sweep`, `evaluate simulator` and `measure events` as scripts use them.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns a directory for one test.
fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simulate").join(test);
    drop(fs::remove_dir_all(&directory));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn fastpath(at: &Path, words: &str) -> Output {
    let words = words.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_fastpath")).args(words).current_dir(at).output().unwrap()
}

fn text(at: &Path, words: &str) -> String {
    let output = fastpath(at, words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(at: &Path, words: &str) -> Value {
    serde_json::from_str(&text(at, words)).expect("one JSON object")
}

/// Runs a command that must be refused; returns its single line of output.
fn refusal(at: &Path, words: &str) -> String {
    let output = fastpath(at, words);
    assert_eq!(output.status.code(), Some(2), "{words}");
    String::from_utf8(output.stderr).unwrap()
}

const IXP: &str = "sim ixp1200 --program linkem --workload line-rate,size=64,ports=4,duration=5ms";

#[test]
fn a_run_prints_the_keys_that_scripts_rely_on_and_is_reproducible() {
    let at = directory("run");
    let found = json(&at, &format!("{IXP} --json"));
    let count = |key: &str| found[key].as_u64().unwrap();
    let dropped: u64 = found["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(count("offered"), count("forwarded") + dropped + count("held"));
    assert!(dropped > 0);
    for key in ["mean", "p50", "p99", "max"] {
        assert!(found["latency_us"][key].as_f64().unwrap() > 0.0, "{key}");
    }
    for unit in ["me1", "me2", "me3", "egress"] {
        let busy = found["utilisation"][unit].as_f64().unwrap();
        assert!(busy > 0.0 && busy <= 1.0, "{unit} {busy}");
    }
    assert!(found["bottleneck"].is_string() && found["events_per_second"].as_f64().unwrap() > 0.0);
    assert!(count("events") > count("offered"));
    let hash = found["trace_hash"].as_str().unwrap();
    assert_eq!(hash.len(), 16);
    assert_eq!(json(&at, &format!("{IXP} --json"))["trace_hash"], hash);
    assert_ne!(json(&at, &format!("{IXP} --seed 2 --json"))["trace_hash"], hash);
}

#[test]
fn text_output_names_the_bottleneck_and_the_change_that_would_move_it() {
    let at = directory("people");
    let told = text(&at, IXP);
    assert!(told.contains("bottleneck    me1") && told.contains("me1: 1 → 2"), "{told}");
    let list = text(&at, "sim --list");
    for name in ["cn6880", "ixp1200-egress2", "xeon-e5-2687wv4", "linkem", "netcope", "dummynet"] {
        assert!(list.contains(name), "{name}: {list}");
    }
}

#[test]
fn a_trace_is_a_json_array_of_visits_and_does_not_change_the_run() {
    let at = directory("trace");
    let words = "sim xeon-e5-2687wv4 --program netcope --workload constant,rate=1Mpps,duration=50us --json";
    let plain = json(&at, words);
    let traced = json(&at, &format!("{words} --timeline run.json"));
    assert_eq!(plain["trace_hash"], traced["trace_hash"]);
    let bars: Vec<Value> = serde_json::from_str(&fs::read_to_string(at.join("run.json")).unwrap()).unwrap();
    let visits = bars.iter().filter(|bar| bar["ph"] == "X").count() as u64;
    // Each frame visits a core and the wire.
    assert_eq!(visits, 2 * traced["forwarded"].as_u64().unwrap());
}

#[test]
fn two_egress_engines_beat_one_in_a_comparison() {
    let at = directory("compare");
    let words =
        "sim compare ixp1200 ixp1200-egress2 --program linkem --workload line-rate,size=1518,duration=20ms";
    let found = json(&at, &format!("{words} --json"));
    let share = |i: usize| found["results"][i]["forwarded_pps"].as_f64().unwrap();
    assert!(share(1) > 1.01 * share(0), "{found}");
    assert!(text(&at, words).contains("ixp1200-egress2"));
}

#[test]
fn user_files_are_read_and_their_mistakes_are_reported_with_file_and_line() {
    let at = directory("files");
    let machine = "name = \"m\"\nsource = \"s\"\nports = { count = 1, rate = \"1Gbit\" }\n[[cores]]\nname = \"cpu\"\ncores = 1\nclock = \"1GHz\"\n";
    let program = "name = \"p\"\nsource = \"s\"\n[[stage]]\nname = \"work\"\non = \"cpu\"\nsteps = [{ compute = 1000 }]\n";
    fs::write(at.join("m.toml"), machine).unwrap();
    fs::write(at.join("p.toml"), program).unwrap();
    fs::write(at.join("unit.toml"), program.replace("on = \"cpu\"", "on = \"gpu\"")).unwrap();
    fs::write(at.join("clock.toml"), machine.replace("1GHz", "0Hz")).unwrap();
    let found = json(&at, "sim m.toml --program p.toml --workload constant,rate=1kpps,duration=10ms --json");
    // 1000 cycles at 1 GHz.
    assert!((found["latency_us"]["p50"].as_f64().unwrap() - 1.0).abs() < 0.01, "{found}");
    let faster = "sim m.toml --program p.toml --workload constant,rate=1kpps,duration=10ms --json --set machine.cpu.clock=2GHz";
    assert!((json(&at, faster)["latency_us"]["p50"].as_f64().unwrap() - 0.5).abs() < 0.01);
    for (words, says) in [
        ("sim m.toml --program unit.toml", "unit.toml:5:6: there is no unit 'gpu'; write cpu"),
        ("sim clock.toml --program p.toml", "clock.toml:7:"),
        ("sim z80 --program p.toml", "cn6880-pair"),
        ("sim m.toml --program doom", "linkem"),
        ("sim m.toml", "--program"),
        ("sim m.toml --program p.toml --workload fast", "line-rate"),
        ("sim m.toml --program p.toml --workload line-rate,ports=2", "port 1"),
        ("sim m.toml --program p.toml --set machine.cpu.core=2", "cores"),
        ("sim m.toml --program p.toml --workload pcap=none.pcap", "none.pcap"),
        (
            "sim m.toml --program p.toml --set machine.cpu.cores=-10",
            "--set machine.cpu.cores=-10: m.toml:6:9: cores = -10 is out of range; write a number from 0 to 4294967295",
        ),
    ] {
        let said = refusal(&at, words);
        assert!(said.contains(says) && said.lines().count() == 1, "{words}: {said}");
    }
}

#[test]
fn a_capture_is_a_workload() {
    let at = directory("capture");
    let file = fs::File::create(at.join("in.pcap")).unwrap();
    let mut writer = fastpath_wire::pcap::Writer::new(file, 1).unwrap();
    for i in 0..100_u64 {
        writer.write_packet(1_000_000_000 + 10_000 * i, 500, &[0; 60]).unwrap();
    }
    writer.finish().unwrap();
    let words = "sim xeon-e5-2687wv4 --program netcope --workload pcap=in.pcap,flows=1 --json";
    let found = json(&at, words);
    assert_eq!((found["offered"].as_u64(), found["forwarded"].as_u64()), (Some(100), Some(100)));
    // 38.6 ns + 504 · 0.101 ns on the core, 524 bytes on the wire at 100 Gbit/s.
    let expected = (38.6 + 504.0 * 0.101 + 524.0 * 0.08) / 1000.0;
    assert!((found["latency_us"]["mean"].as_f64().unwrap() - expected).abs() < 0.003, "{found}");
}

#[test]
fn a_deadlock_exits_with_1_and_reports_the_wait_cycle() {
    let at = directory("deadlock");
    let machine = "name = \"m\"\nsource = \"s\"\nports = { count = 1, rate = \"1Gbit\" }\n\
        [[station]]\nname = \"a\"\nfixed = \"1us\"\nqueue = { limit = 1, full = \"block\" }\n\
        [[station]]\nname = \"b\"\nfixed = \"10us\"\nqueue = { limit = 1, full = \"block\" }\n";
    let stage = |name: &str, on: &str| format!("[[stage]]\nname = \"{name}\"\non = \"{on}\"\n");
    let program = format!(
        "name = \"p\"\nsource = \"s\"\n{}{}{}",
        stage("out", "a"),
        stage("there", "b"),
        stage("back", "a")
    );
    fs::write(at.join("m.toml"), machine).unwrap();
    fs::write(at.join("p.toml"), program).unwrap();
    let output = fastpath(&at, "sim m.toml --program p.toml --workload line-rate");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("DEADLOCK") && told.contains("waits for room in"), "{told}");
}

const SWEEP: &str = "sweep xeon-e5-2687wv4 --program netcope --workload line-rate,size=64,duration=20us \
    --vary machine.cpu.cores=1..4 --vary program.h=0,20 --vary seed=1..3";

#[test]
fn a_sweep_gives_the_same_table_for_any_threads_kills_and_shards() {
    let at = directory("sweep");
    let golden = text(&at, &format!("{SWEEP} --workers 1"));
    assert_eq!(golden.lines().count(), 1 + 4 * 2 * 3);
    assert_eq!(text(&at, &format!("{SWEEP} --workers 3")), golden);
    // A killed sweep: two and a half rows remain.
    let left: Vec<&str> = golden.lines().take(4).collect();
    let left = format!("{}\n{}\n{}\n{}", left[0], left[2], left[1], &left[3][..30]);
    fs::write(at.join("killed.csv"), left).unwrap();
    text(&at, &format!("{SWEEP} -o killed.csv"));
    assert_eq!(fs::read_to_string(at.join("killed.csv")).unwrap(), golden);
    // A second run changes nothing.
    assert!(text(&at, &format!("{SWEEP} -o killed.csv")).contains("24 of 24"));
    assert_eq!(fs::read_to_string(at.join("killed.csv")).unwrap(), golden);
    // Shards, concatenated.
    let mut all = String::new();
    for shard in 1..=3 {
        let file = format!("shard{shard}.csv");
        text(&at, &format!("{SWEEP} --shard {shard}/3 -o {file}"));
        let rows = fs::read_to_string(at.join(file)).unwrap();
        assert_eq!(rows.lines().count(), 1 + 8);
        all += &rows;
    }
    fs::write(at.join("all.csv"), all).unwrap();
    text(&at, &format!("{SWEEP} -o all.csv"));
    assert_eq!(fs::read_to_string(at.join("all.csv")).unwrap(), golden);
    let other = refusal(&at, &format!("{SWEEP} --vary workload.flows=8 -o all.csv"));
    assert!(other.contains("name another file"), "{other}");
}

#[test]
fn an_altered_row_of_a_sweep_is_refused_with_its_line_and_point() {
    let at = directory("altered");
    text(&at, &format!("{SWEEP} -o t.csv"));
    let whole = fs::read_to_string(at.join("t.csv")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    // Each cell of a row in turn gets another digit or letter, the configuration excepted.
    let cells: Vec<&str> = lines[5].split(',').collect();
    for altered in 1..cells.len() {
        let mut cells: Vec<String> = cells.iter().map(|cell| (*cell).to_owned()).collect();
        let first = cells[altered].chars().next();
        cells[altered] = match first {
            Some(first) => format!("{}{}", if first == '7' { '8' } else { '7' }, &cells[altered][1..]),
            None => "7".to_owned(),
        };
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        lines[5] = cells.join(",");
        let text = lines.join("\n") + "\n";
        fs::write(at.join("t.csv"), &text).unwrap();
        let said = refusal(&at, &format!("{SWEEP} -o t.csv"));
        assert!(said.contains("t.csv: line 6: the row of point"), "cell {altered}: {said}");
        assert_eq!(fs::read_to_string(at.join("t.csv")).unwrap(), text, "a refused file stays as it is");
    }
    let without: Vec<&str> =
        lines.iter().enumerate().filter(|(i, _)| *i != 5).map(|(_, line)| *line).collect();
    fs::write(at.join("t.csv"), without.join("\n") + "\n").unwrap();
    text(&at, &format!("{SWEEP} -o t.csv"));
    assert_eq!(fs::read_to_string(at.join("t.csv")).unwrap(), whole);
}

#[test]
fn the_pareto_view_finds_the_cheapest_machine_that_carries_the_workload() {
    let at = directory("pareto");
    let words = "sweep xeon-e5-2687wv4 --program netcope --workload line-rate,size=1518,duration=200us \
        --vary machine.cpu.cores=1..4 --pareto machine.cpu.cores,forwarded_pps";
    let told = text(&at, words);
    // The formula gives 1.56 cores.
    assert!(told.contains("carries its workload: cost 2\n"), "{told}");
    let found = json(&at, &format!("{words} --json --plot front.html"));
    assert_eq!(found["pareto"][0]["machine.cpu.cores"], 1);
    let page = fs::read_to_string(at.join("front.html")).unwrap();
    for shown in ["<h2>Pareto front</h2>", ">Throughput over cost</text>", ">forwarded, packets/s</text>"] {
        assert!(page.contains(shown), "{shown}");
    }
    let all = json(&at, &format!("{words} --json --pareto-tolerance 0%"));
    let coarse = json(&at, &format!("{words} --json --pareto-tolerance 50%"));
    let rows = |found: &Value| found["pareto"].as_array().unwrap().len();
    assert!(rows(&coarse) < rows(&all), "{coarse}");
    assert_eq!(found["rows"].as_array().unwrap().len(), 4);
}

#[test]
fn impossible_points_are_rows_and_invalid_arguments_are_refused() {
    let at = directory("points");
    let output = fastpath(
        &at,
        "sweep ixp1200 --program linkem --workload line-rate,duration=100us --vary machine.egress.engines=1..3",
    );
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.lines().nth(3).unwrap().contains("ixp1200.toml:"), "{table}");
    for (vary, says) in [
        ("machine.egress.motors=1,2", "engines"),
        ("workload.speed=1,2", "speed"),
        ("machine=z80,cn6880", "z80"),
    ] {
        let said = refusal(&at, &format!("sweep ixp1200 --program linkem --vary {vary} -o t.csv"));
        assert!(said.contains(says), "{vary}: {said}");
    }
    // Files left by a failed run do not prevent the next one.
    text(
        &at,
        "sweep ixp1200 --program linkem --workload line-rate,duration=100us --vary machine.egress.engines=1,2 -o t.csv",
    );
    assert_eq!(fs::read_to_string(at.join("t.csv")).unwrap().lines().count(), 3);
}

#[test]
fn an_evaluation_lists_its_misses_and_exits_with_1_if_there_are_any() {
    let at = directory("evaluate");
    let output = fastpath(&at, "evaluate simulator --quick --json");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let results = found["results"].as_array().unwrap();
    assert!(results.len() > 50);
    for result in results {
        let number = |key: &str| result[key].as_f64().unwrap_or_else(|| panic!("{key} of {result}"));
        let inside = (number("low")..=number("high")).contains(&number("ours"));
        assert_eq!(result["pass"], inside, "{result}");
        for text in ["publication", "place", "quantity"] {
            assert!(result[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {result}");
        }
        assert!(result["id"].is_string() && (result["original"].is_number() || result["original"].is_null()));
        assert!(["calibration", "prediction", "qualitative"].contains(&result["kind"].as_str().unwrap()));
    }
    let all = results.iter().all(|result| result["pass"] == true);
    assert_eq!(output.status.code(), Some(if all { 0 } else { 1 }));
}

#[cfg(target_os = "linux")]
#[test]
fn events_per_second_are_measured() {
    let at = directory("events");
    for model in ["mm1", "pipe32"] {
        let found = json(&at, &format!("measure events --model {model} --customers 2000 --json"));
        assert_eq!(found["model"], model);
        assert!(found["customers"].as_u64().unwrap() >= 2000);
        let rate = |key: &str| found[key].as_f64().unwrap();
        assert!(rate("events_per_second") > rate("customers_per_second"), "{found}");
    }
}

#[test]
fn records_measured_on_this_host_are_simulated() {
    let at = directory("measured");
    let host = r#"{"kind":"host","provenance":{"machine":{"name":"h","cpu":"a \"cpu\""}},"results":{"score_per_core":[1.0,1.0],
        "caches":[{"level":1,"fits_bytes":32768,"ns":1.2},{"level":2,"fits_bytes":1048576,"ns":4.5}],"latency":[{"bytes":128,"ns":1.2},{"bytes":67108864,"ns":90.0}]}}"#;
    let record = |p: u32, h: u32, receive: f64| {
        format!(
            r#"{{"kind":"pipeline","parameters":{{"program":"netcope","p":{p},"h":{h},"cores":1}},"results":{{"stages":[{{"name":"receive","ns":{receive}}},{{"name":"work","ns":50.0}}]}}}}"#
        )
    };
    fs::write(at.join("host.jsonl"), host.replace('\n', " ")).unwrap();
    // The smallest number of steps counts, wherever its record stands.
    let costs = [record(60, 0, 20.0), record(1060, 0, 120.0), record(60, 50, 900.0)].join("\n");
    fs::write(at.join("costs.jsonl"), costs).unwrap();
    let words = "sim this-host=host.jsonl --program pipeline=costs.jsonl --workload line-rate,size=64,duration=1ms --json";
    let found = json(&at, words);
    // Two cores, and 20 + 50 ns per packet: a byte costs a tenth of a nanosecond.
    let pps = found["forwarded_pps"].as_f64().unwrap();
    assert!((pps / (2e9 / 70.0) - 1.0).abs() < 0.02, "{pps}");
    assert_eq!(found["bottleneck"], "cpu");
    for (words, says) in [
        ("sim this-host --program netcope", "fastpath measure host"),
        ("sim this-host=costs.jsonl --program netcope", "no record of `fastpath measure host`"),
        (
            "sim this-host=host.jsonl --program pipeline=host.jsonl",
            "no record of `fastpath measure pipeline`",
        ),
        ("sim this-host=none.jsonl --program netcope", "none.jsonl"),
    ] {
        let said = refusal(&at, words);
        assert!(said.contains(says), "{words}: {said}");
    }
}

#[test]
fn published_experiments_run_by_name_and_are_plotted() {
    let at = directory("experiment");
    assert!(text(&at, "sim setup").contains("sixteen-hosts"));
    let found = json(&at, "sim setup two-units --duration 5ms --json --plot t.svg --append t.jsonl");
    assert_eq!(found["results"].as_array().unwrap().len(), 6);
    assert!(
        fs::read_to_string(at.join("t.svg"))
            .unwrap()
            .contains("Median time of input and output (t_f) over frame size")
    );
    assert_eq!(fs::read_to_string(at.join("t.jsonl")).unwrap().lines().count(), 6);
    let hosts = json(&at, "sim setup sixteen-hosts --duration 2ms --json");
    assert_eq!(hosts["results"].as_array().unwrap().len(), 24);
    assert!(refusal(&at, "sim setup three-units").contains("two-units"));
    let sweep = "sweep xeon-e5-2687wv4 --program netcope --vary machine.cpu.cores=1..4 --workload line-rate,size=64,duration=100us --plot s.html";
    text(&at, sweep);
    assert!(
        fs::read_to_string(at.join("s.html")).unwrap().contains("Forwarding rate over machine.cpu.cores")
    );
    assert!(refusal(&at, &sweep.replace("s.html", "s.gif")).contains(".png"));
}

#[test]
fn a_block_is_described_with_an_example_that_runs_and_a_shipped_file_is_printed() {
    let at = directory("describe");
    assert!(text(&at, "sim --describe").contains("\nnic "));
    let station = json(&at, "sim --describe station --json");
    for (file, key) in [("m.toml", "machine"), ("p.toml", "program")] {
        fs::write(at.join(file), station[key].as_str().unwrap()).unwrap();
    }
    let workload = station["workload"].as_str().unwrap();
    let found = json(&at, &format!("sim m.toml --program p.toml --workload {workload} --json"));
    assert!(found["forwarded"].as_u64().unwrap() > 0);
    assert!(text(&at, "sim --describe pcie").contains("meaning (range)"));
    assert!(refusal(&at, "sim --describe disc").contains("write one of machine, ports"));
    // A shipped machine comes back as it is, and with changes.
    fs::write(at.join("i.toml"), text(&at, "sim --print ixp1200-egress2 --set machine.me1.swap=4")).unwrap();
    fs::write(at.join("b.toml"), text(&at, "sim --print linkem")).unwrap();
    let found = json(&at, "sim i.toml --program b.toml --workload line-rate,duration=1ms --json");
    assert_eq!(found["machine"], "ixp1200");
    assert!(refusal(&at, "sim --print z80").contains("sim --list"));
    assert!(refusal(&at, "sim --print linkem --set machine.cpu.cores=2").contains("changes nothing"));
}
