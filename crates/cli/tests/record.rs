//! `fastpath lab run --record` and reports of records.
#![cfg(target_os = "linux")]

mod common;

use common::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

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
