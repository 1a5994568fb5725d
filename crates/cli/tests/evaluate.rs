//! Tests `fastpath evaluate emulator` and `prediction` as scripts use them.
#![cfg(target_os = "linux")]

mod common;

use common::{skip, without_namespaces};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

/// Returns a directory for one test.
fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("evaluate").join(test);
    drop(fs::remove_dir_all(&directory));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn evaluate(before: &[&str], at: &Path, words: &str) -> Output {
    let all = [before, &[PROGRAM, "evaluate", "emulator"]].concat();
    Command::new(all[0]).args(&all[1..]).args(words.split_whitespace()).current_dir(at).output().unwrap()
}

fn object(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn every_result_has_the_fields_that_scripts_rely_on() {
    let at = directory("fields");
    let output =
        evaluate(&[], &at, "--quick --json --figures table-5.1/512/virtual,table-5.6/3/virtual,overload");
    let found = object(&output);
    assert_eq!(ids(&found["results"]), ["table-5.1/512/virtual", "table-5.6/3/virtual", "overload/150%"]);
    for result in found["results"].as_array().unwrap() {
        for field in ["original", "ours", "control", "peers", "unit", "tolerance", "pass", "rule", "n"] {
            assert!(result.get(field).is_some(), "{field} in {result}");
        }
        assert!(result["ours"].is_number() && result["peers"].is_object() && result["pass"].is_boolean());
    }
    assert_eq!(found["results"][0]["pass"], true, "virtual time is exact: {found}");
    assert_eq!(found["results"][1]["original"], 3.089);
    let overload = found["results"][2]["note"].as_str().unwrap();
    assert!(overload.contains("frame accounting balances"), "{overload}");
    let all_pass = found["passed"] == found["total"];
    assert_eq!(output.status.code(), Some(if all_pass { 0 } else { 1 }));
    assert!(found["provenance"]["machine"]["kernel"].is_string());
}

/// Measures through TAPs and namespaces, and writes all three formats of the report.
#[test]
fn losses_are_measured_between_namespaces_and_the_report_is_written() {
    let test = "evaluate emulator in namespaces";
    let at = directory("namespaces");
    let found = object(&evaluate(&[], &at, "--quick --json --figures table-5.6/10 -o report"));
    if let Some(skipped) = found["skipped"].as_array().unwrap().first() {
        return skip(test, skipped["reason"].as_str().unwrap());
    }
    assert_eq!(ids(&found["results"]), ["table-5.6/10/virtual", "table-5.6/10"]);
    let real = &found["results"][1];
    // One frame in ten of thousands is lost. Host load may add losses; some frames arrive and some
    // do not.
    assert!(real["n"].as_u64().unwrap() > 1000 && real["control"].is_number(), "{real}");
    let ours = real["ours"].as_f64().unwrap();
    assert!(ours > 5.0 && ours < 100.0, "{real}");
    let file = |name: &str| fs::read_to_string(at.join("report").join(name)).unwrap();
    let page = file("report.html");
    assert!(page.contains("Table 5.6") && page.contains("<svg") && page.trim_end().ends_with("</html>"));
    assert!(file("report.md").contains("| table-5.6/10 |"));
    assert_eq!(serde_json::from_str::<Value>(&file("report.json")).unwrap()["total"], 2);
    let again = Command::new(PROGRAM)
        .args(["report", "report/report.json", "-o", "again.html"])
        .current_dir(&at)
        .status()
        .unwrap();
    assert!(again.success());
    assert_eq!(fs::read_to_string(at.join("again.html")).unwrap(), page);
}

#[test]
fn without_namespaces_the_other_figures_are_measured_and_the_skipped_ones_are_named() {
    let Some(prison) = without_namespaces() else {
        return skip("evaluate emulator without namespaces", "no user namespaces here");
    };
    let at = directory("prison");
    let output = evaluate(&prison, &at, "--quick --json --figures table-5.1/64,table-5.3");
    let found = object(&output);
    assert_eq!(ids(&found["results"]), ["table-5.1/64/virtual"]);
    let skipped = ids(&found["skipped"]);
    assert!(skipped.contains(&"table-5.1/64") && skipped.contains(&"table-5.3/1518") && skipped.len() == 7);
    assert!(found["skipped"][0]["reason"].as_str().unwrap().contains("not permitted"));
    assert_eq!(output.status.code(), Some(0), "all measured figures pass");
}

#[test]
fn invalid_arguments_are_refused_before_any_measurement() {
    let at = directory("refused");
    for (words, says) in [("--figures table-9", "table-5.1"), ("--figures overload -o report.pdf", "*.html")]
    {
        let output = evaluate(&[], &at, words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.lines().last().unwrap().contains(says), "{said}");
    }
}

#[test]
fn a_signal_ends_the_evaluation_early_and_leaves_nothing_behind() {
    let at = directory("signal");
    let words = ["evaluate", "emulator", "--figures", "figure-5.8/128,lateness"];
    let mut child =
        Command::new(PROGRAM).args(words).current_dir(&at).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.next().unwrap().contains("this takes about"));
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(said.any(|line| line.contains("interrupted")));
}

/// Writes records as `evaluate prediction -o` does. Their machine is `slower` times slower than
/// another, and its record declares the factor `declared`.
fn kept(directory: &Path, name: &str, slower: f64, declared: f64) {
    for round in 1..=3 {
        let [score, copy] = [30e3, 100e9].map(|fast| fast / declared);
        let platform =
            serde_json::json!({"name": "x", "score": score, "score_kind": "own", "copy_bits_per_s": copy});
        let host = serde_json::json!({"kind": "host", "platform": platform}).to_string();
        fs::write(directory.join(format!("{name}-host-{round}.jsonl")), host).unwrap();
        let mut costs = String::new();
        for p in [64, 128, 256, 512, 1024, 1514] {
            for h in [0, 10, 20, 50] {
                // A ripple of 0.2 %, so that intervals have a width.
                let ripple = 1.0 + 0.001 * f64::from((p / 64 + h) % 5 - 2);
                let t = slower * ripple * (38.6 + 0.101 * f64::from(p) + 4.07 * f64::from(h));
                let record = serde_json::json!({
                    "kind": "pipeline",
                    "parameters": {"p": p, "h": h},
                    "results": {"T_ns": t, "spread_pct": 0.3},
                });
                costs += &format!("{record}\n");
            }
        }
        fs::write(directory.join(format!("{name}-costs-{round}.jsonl")), costs).unwrap();
    }
}

#[test]
fn saved_records_of_platforms_are_evaluated_again() {
    let at = directory("prediction");
    kept(&at, "here", 1.0, 1.0);
    kept(&at, "slower", 1.6, 1.6);
    let run = |words: &[&str]| {
        let output = Command::new(PROGRAM)
            .args(["evaluate", "prediction"])
            .args(words)
            .current_dir(&at)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, out, err) = run(&["--input", ".", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    let all = ids(&found["results"]);
    let (measured, families) = all.split_at(3);
    assert_eq!(measured, ["half-grid-median-pct", "half-grid-p95-pct", "slower-covered"]);
    // Eight families of costs, each with three sizes of sample.
    assert!(families.len() == 24 && families.iter().all(|id| id.starts_with("family/")), "{families:?}");
    assert_eq!(
        (&found["results"][2]["ours"], &found["results"][2]["noisy"]),
        (&Value::from(1.0), &Value::from(false))
    );
    // A record that declares a machine as fast as this one.
    kept(&at, "slower", 1.6, 1.0);
    let (code, out, _) = run(&["--input", "."]);
    assert!(code == Some(1) && out.contains("MISS") && out.contains("26 of 27 figures pass"), "{out}");
    let (code, _, err) = run(&["--input", "..", "--quick"]);
    assert!(code == Some(2) && err.contains("--quick"), "{err}");
    let (code, _, err) = run(&["--input", ".."]);
    assert!(code == Some(2) && err.contains("no here-costs-1.jsonl in it"), "{err}");
}

#[test]
fn registered_predictions_are_compared_measured_and_refused() {
    let at = directory("registered");
    let run = |words: &str| {
        let words = ["evaluate", "registered"].into_iter().chain(words.split_whitespace());
        Command::new(PROGRAM).args(words).current_dir(&at).output().unwrap()
    };
    let own = object(&run("--json"));
    assert!(own["total"].as_u64().unwrap() >= 5, "{own}");
    assert!(own["results"][0]["prediction"]["model"].is_string());
    let prediction = "[[prediction]]\nid = 'a'\ndate = '2026-01-02'\nmodel = 'a guess'\nquantity = 'cost'\nunit = 'ns'\n\
        command = 'fastpath measure pipeline --size 64 --h 0 --packets 20000'\ncolumn = 'T_ns'\nat = { h = 0 }\n\
        value = 100\nlow = 0.001\nhigh = 1e9\n";
    fs::write(at.join("mine.toml"), prediction).unwrap();
    let before = object(&run("mine.toml --json"));
    assert_eq!((&before["measured"], &before["results"][0]["verdict"]), (&0.into(), &"not-measured".into()));
    let output = run("mine.toml --results results.toml --measure --rounds 2 --json");
    let after = object(&output);
    assert_eq!((&after["inside"], &after["measured"]), (&1.into(), &1.into()));
    assert_eq!((after["results"][0]["result"]["n"].as_u64(), output.status.code()), (Some(2), Some(0)));
    // What is measured stays: it is not measured again.
    let kept = fs::read_to_string(at.join("results.toml")).unwrap();
    run("mine.toml --results results.toml --measure");
    assert_eq!(fs::read_to_string(at.join("results.toml")).unwrap(), kept);
    fs::write(at.join("wrong.toml"), prediction.replace("value = 100", "value = -1")).unwrap();
    let output = run("wrong.toml");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("wrong.toml: 10:9: -1 is not between low = 0.001 and high = "), "{said}");
    fs::write(
        at.join("narrow.toml"),
        prediction
            .replace("value = 100\nlow = 0.001\nhigh = 1e9", "value = 0.002\nlow = 0.001\nhigh = 0.003"),
    )
    .unwrap();
    assert_eq!(run("narrow.toml --results results.toml").status.code(), Some(1));
}
