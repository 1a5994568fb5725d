//! Tests `fastpath measure` as scripts use it: records in JSON, and models fitted to them. It makes
//! no assertion on speed.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("measure").join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn fastpath(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fastpath")).args(words).current_dir(directory).output().unwrap()
}

/// Whether a command has measured. Other load, such as that of other tests, may have disturbed it:
/// then the exit code is 2, and a note says so.
fn has_measured(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.code() == Some(if said.contains("note: disturbed in every attempt") { 2 } else { 0 })
}

fn records(directory: &Path, words: &[&str]) -> Vec<Value> {
    let output = fastpath(directory, words);
    assert!(has_measured(&output), "{} {}", output.status, String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect("a record a line")).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn the_emulator_record_holds_its_rate_its_ceiling_and_its_memory() {
    let words = "measure pipeline --program emulate --size 64 --links 10 --packets 20000 --json";
    let found = records(&directory("emulate"), &words.split(' ').collect::<Vec<_>>());
    let [record] = &found[..] else { panic!("one record: {found:?}") };
    let ceiling = number(&record["ceiling_packets_per_second"]);
    assert!((1.0..ceiling).contains(&number(&record["packets_per_second"])), "{record}");
    assert!(number(&record["bytes_per_link"]) > 0.0);
    assert_eq!(record["results"]["bytes_per_link"], record["bytes_per_link"]);
}

#[test]
fn a_record_holds_its_provenance() {
    let words = "measure pipeline --program forward --packets 5000 --json";
    let found = records(&directory("provenance"), &words.split(' ').collect::<Vec<_>>());
    let provenance = &found[0]["provenance"];
    assert!(provenance["machine"]["cores"].as_u64().unwrap() >= 1);
    assert_eq!(provenance["tool"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(provenance["command_line"].as_array().unwrap().iter().any(|word| word == "--packets"));
    assert_eq!((provenance["n"].as_u64(), provenance["seed"].as_u64()), (Some(5000), Some(1)));
    assert!(provenance["disturbance"]["disturbed"].is_boolean());
}

#[test]
fn a_grid_of_records_is_fitted_without_conversion() {
    let directory = directory("grid");
    let words =
        "measure pipeline --program netcope --size 64,512,1500 --h 0,20 --packets 5000 -o costs.jsonl";
    assert!(has_measured(&fastpath(&directory, &words.split(' ').collect::<Vec<_>>())));
    assert_eq!(fs::read_to_string(directory.join("costs.jsonl")).unwrap().lines().count(), 6);
    let fit = ["model", "fit", "costs.jsonl", "--y", "T_ns", "--terms", "const,p,h", "--json"];
    let found = &records(&directory, &fit)[0];
    assert_eq!(found["n"], 6);
    assert!(number(&found["coefficients"]["h"]["value"]) > 0.0, "{}", found["coefficients"]);
}

#[test]
fn bursts_and_flows_are_varied_like_other_parameters() {
    let directory = directory("bursts");
    let words = "measure pipeline --program forward --burst 16,64 --flows 3,100 --packets 5000 -o r.jsonl";
    let output = fastpath(&directory, &words.split(' ').collect::<Vec<_>>());
    assert!(has_measured(&output), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    for point in [
        "flows = 3, burst = 16",
        "flows = 3, burst = 64",
        "flows = 100, burst = 16",
        "flows = 100, burst = 64",
    ] {
        assert_eq!(table.matches(&format!("{point} ")).count(), 1, "{point}: {table}");
    }
    let emulate = "measure pipeline --program emulate --burst 1,64 --packets 5000 --json";
    let found = records(&directory, &emulate.split(' ').collect::<Vec<_>>());
    let bursts: Vec<&Value> = found.iter().map(|record| &record["parameters"]["burst"]).collect();
    assert_eq!(bursts, [1, 64]);
    let report = fastpath(&directory, &["report", "r.jsonl", "-o", "r.html"]);
    assert_eq!(report.status.code(), Some(0));
    let page = fs::read_to_string(directory.join("r.html")).unwrap();
    assert!(page.contains("100 flows, 64 in a burst"), "each combination has its own line");
}

#[test]
fn links_and_tables_are_measured_on_several_cores() {
    let directory = directory("cores");
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get().min(2));
    for program in ["emulate --links 10", "switch --table cidr:10"] {
        let words = format!("measure pipeline --program {program} --cores {cores} --packets 5000 --json");
        let found = records(&directory, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(found[0]["parameters"]["cores"], cores, "{found:?}");
        assert!(number(&found[0]["packets_per_second"]) > 0.0, "{found:?}");
    }
}

#[test]
fn a_frame_of_sixty_bytes_in_memory_is_sixty_four_on_the_wire_and_eighty_four_of_line_time() {
    let directory = directory("fcs");
    let words = "measure pipeline --program forward --size 60,508,1514 --packets 5000 -o costs.jsonl --json";
    let measured = records(&directory, &words.split(' ').collect::<Vec<_>>());
    assert!(measured.iter().all(|record| record["parameters"]["fcs"] == "without"), "{measured:?}");
    let asked = ["--y", "T_ns", "--terms", "const,p", "--json"];
    let fit = &records(&directory, &[&["model", "fit", "costs.jsonl"][..], &asked].concat())[0];
    assert_eq!(fit["fcs"], "without");
    fs::write(directory.join("fit.json"), fit.to_string()).unwrap();
    let cores = ["model", "cores", "fit.json", "--speeds", "10", "--frames", "64,1518", "--json"];
    let found = &records(&directory, &cores)[0];
    assert_eq!((&found["model_fcs"], &found["model_fcs_assumed"]), (&"without".into(), &false.into()));
    let row = &found["rows"][0];
    let sizes = ["model_frame_bytes", "frame_bytes", "wire_bytes"].map(|name| number(&row[name]));
    assert_eq!(sizes, [60.0, 64.0, 84.0]);
    assert!((number(&row["packets_per_s"]) - 10e9 / 8.0 / 84.0).abs() < 1e-3, "{row}");
    let model = |p: f64| {
        let term = |name: &str| number(&fit["coefficients"][name]["value"]);
        term("const") + term("p") * p
    };
    assert!((number(&row["ns_per_packet"]["value"]) - model(60.0)).abs() < 1e-9, "{row}");
    assert_eq!(found["warnings"].as_array().map(Vec::len), Some(0), "{found}");
    let predict =
        ["model", "predict", "fit.json", "--point", "p=60", "--cores", "1000", "--line", "10Gbit", "--json"];
    let predicted = &records(&directory, &predict)[0]["predictions"][0];
    assert!((number(&predicted["throughput_pps"]["value"]) - 10e9 / 8.0 / 84.0).abs() < 1e-3, "{predicted}");
    let against = fastpath(&directory, &["model", "cores", "fit.json", "--fcs", "with"]);
    assert_eq!(against.status.code(), Some(2));
    let said = String::from_utf8(against.stderr).unwrap();
    assert!(said.contains("recorded without FCS"), "{said}");
}

#[test]
fn latencies_have_a_summary_per_size_and_each_operation_has_a_cost() {
    let words = "measure latency --size 64,1500 --packets 2000 --json";
    let found = records(&directory("latency"), &words.split(' ').collect::<Vec<_>>());
    let of = |kind: &str| found.iter().filter(|r| r["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("latency").len(), 2);
    assert!(number(&of("latency")[0]["results"]["median_ns"]) > 0.0);
    assert_eq!(of("operations").len(), 6);
    for record in of("operations") {
        let cost = &record["results"]["cost_ns"];
        assert!(number(&cost["low"]) <= number(&cost["value"]), "{cost}");
    }
}

#[test]
fn invalid_arguments_are_refused_before_any_measurement() {
    let directory = directory("refused");
    for words in [
        "measure pipeline --program emulate --port veth --cores 2",
        "measure pipeline --program emulate --cores 2",
        "measure pipeline --program forward --h 3",
        "measure pipeline --size 20",
        "measure pipeline --loss-ratio 2",
        "measure pipeline --cores 1024",
        "measure pipeline --burst 0,64",
        "measure pipeline --program emulate --flows 10,100",
        "measure host --coremark=-1",
        "measure host -o no/such/place",
    ] {
        let output = fastpath(&directory, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{words}");
    }
}

#[test]
fn a_report_of_records_is_written_in_every_format() {
    let directory = directory("report");
    let words = "measure pipeline --program forward --packets 2000 -o r.jsonl";
    assert!(has_measured(&fastpath(&directory, &words.split(' ').collect::<Vec<_>>())));
    for (name, start) in [("r.html", "<!doctype html>"), ("r.md", "# fastpath report"), ("r.svg", "<svg")] {
        let output = fastpath(&directory, &["report", "r.jsonl", "-o", name]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::read_to_string(directory.join(name)).unwrap().starts_with(start), "{name}");
    }
    let refused = fastpath(&directory, &["report", "r.jsonl", "-o", "r.doc"]);
    assert_eq!(refused.status.code(), Some(2));
    fs::write(directory.join("bad.jsonl"), "{\"kind\":\"pipeline\"}\n").unwrap();
    let refused = fastpath(&directory, &["report", "bad.jsonl", "-o", "r.html"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("bad.jsonl: line 1: missing field"));
}
