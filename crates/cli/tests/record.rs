//! `fastpath lab run --record` and reports of records.
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
const SPEC: &str = "seed = 7\n[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '5ms'\nrate = '10Mbit'\n\
    [[event]]\nat = '1ms'\nlink = 'a-b'\ndelay = '10ms'\n";

fn fastpath(directory: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(directory).env("FASTPATH_STATE_DIR", directory.join("state"));
    let output = command.env_remove("FASTPATH_LAB").output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_run_is_recorded_and_drawn_with_its_events() {
    let test = "a_run_is_recorded_and_drawn_with_its_events";
    let directory = std::env::temp_dir().join(format!("fastpath-record-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("recnet.toml"), SPEC).unwrap();
    let ping = ["--", "ping", "-4", "-c", "3", "-i", "0.2", "-s", "900", "b"];
    for name in ["one", "two"] {
        let words = [&["lab", "run", "recnet.toml", "--record", name, "--on", "a"][..], &ping].concat();
        let (status, said) = fastpath(&directory, &words);
        if said.contains("not permitted") {
            let _ = fs::remove_dir_all(&directory);
            return skip(test, "cannot bring a lab up");
        }
        assert_eq!(status, Some(0), "{said}");
    }
    let run: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.join("one/run.json")).unwrap()).unwrap();
    assert_eq!((run["format"].as_u64(), run["seed"].as_u64()), (Some(1), Some(7)));
    assert!(run["duration_s"].as_f64() > Some(0.4) && run["command"][0] == "ping", "{run}");
    assert!(run["machine"]["kernel"].is_string() && run["spec"]["links"].is_array(), "{run}");
    let record =
        fastpath::record::Run::read(&directory.join("one")).unwrap().series.expect("it was recorded");
    let total = |from: &str, column: &str| {
        let of = |series: &&fastpath::record::LinkSeries| series.from == from;
        record.links.iter().find(of).map_or(0.0, |series| series.total(column))
    };
    // Three requests of 942 bytes, and some ARP.
    for from in ["a", "b"] {
        assert!((2826.0..4000.0).contains(&total(from, "bytes_out")), "{:?}", record.links);
        assert_eq!(total(from, "bytes_in"), total(from, "bytes_out"));
    }
    let flow = record.flows.iter().find(|flow| flow.flow.starts_with("icmp 10.")).expect("a flow");
    assert_eq!(flow.columns["bytes_out"].iter().sum::<f64>(), 2826.0);
    assert_eq!(record.events.len(), 1, "{:?}", record.events);
    assert!(record.events[0].text.contains("delay 10ms"), "{:?}", record.events);

    let (status, said) = fastpath(&directory, &["report", "one", "two", "-o", "runs.html"]);
    assert_eq!(status, Some(0), "{said}");
    let page = fs::read_to_string(directory.join("runs.html")).unwrap();
    for part in
        ["Link a-b from a", "throughput, Mbit/s", "icmp 10.", "delay 10ms", ">one</text>", ">two</text>"]
    {
        assert!(page.contains(part), "{part}");
    }
    fs::write(directory.join("EMPTY.json"), "\n").unwrap();
    for (words, part) in [
        (&["report", "one", "EMPTY.json", "-o", "x.html"][..], "EMPTY.json: no record in it"),
        (&["report", "state", "-o", "x.html"], "not a record (no run.json)"),
        (&["lab", "run", "recnet.toml", "--record", "one", "--", "true"], "there is a record already"),
        (
            &["lab", "run", "recnet.toml", "--record", "z", "--record-interval", "0s", "--", "true"],
            "write at least 1ms",
        ),
    ] {
        let (status, said) = fastpath(&directory, words);
        assert!(status == Some(2) && said.contains(part), "{said}");
    }
    fs::remove_dir_all(&directory).unwrap();
}

/// The whole process is stopped for a second: its sender, its engine and its recorder.
#[test]
fn after_a_stall_packets_leave_paced_and_no_rate_is_above_that_of_the_link() {
    let test = "after_a_stall_packets_leave_paced_and_no_rate_is_above_that_of_the_link";
    let directory = std::env::temp_dir().join(format!("fastpath-stall-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let spec = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\nqueue = '10p'\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '5Mbit'\nsize = 1000\nstop = '6s'\n";
    fs::write(directory.join("stallnet.toml"), spec).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "run", "stallnet.toml", "--record", "run", "--json"]).current_dir(&directory);
    command.env("FASTPATH_STATE_DIR", directory.join("state")).env_remove("FASTPATH_LAB");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (_never, paused) = channel::<()>();
    let (start, links) = (Instant::now(), directory.join("run/links.csv"));
    while !fs::read_to_string(&links).is_ok_and(|text| text.lines().count() > 1) {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is recorded");
        if child.try_wait().unwrap().is_some() {
            let said = String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr).into_owned();
            assert!(said.contains("not permitted"), "{said}");
            let _ = fs::remove_dir_all(&directory);
            return skip(test, "cannot bring a lab up");
        }
        let _ = paused.recv_timeout(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    let _ = paused.recv_timeout(Duration::from_secs(1));
    signal("-CONT");
    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let flow = &report["traffic"][0];
    let count = |name: &str| flow[name].as_u64().unwrap();
    // All 625 packets that were due in the stall would be a burst, which the queue cannot hold.
    assert!(count("lost") * 20 < count("sent") && count("sent") * 10 > count("asked") * 9, "{flow}");
    assert_eq!(count("lost"), count("sent") - count("received"), "{flow}");
    let series = fastpath::record::Run::read(&directory.join("run")).unwrap().series.unwrap();
    let there = series.links.iter().find(|link| link.from == "a").unwrap();
    for (interval, bytes) in there.intervals.iter().zip(&there.columns["bytes_out"]) {
        assert!(*bytes <= 10e6 / 8.0 * interval + 1042.0, "{bytes} bytes in {interval} s");
    }
    assert!(there.intervals.iter().any(|interval| *interval > 0.9), "{:?}", there.intervals);
    let (status, said) = fastpath(&directory, &["report", "run", "-o", "run.html"]);
    assert_eq!(status, Some(0), "{said}");
    let page = fs::read_to_string(directory.join("run.html")).unwrap();
    assert!(page.contains("no sample was taken from "), "the report does not name the stall");
    fs::remove_dir_all(&directory).unwrap();
}
