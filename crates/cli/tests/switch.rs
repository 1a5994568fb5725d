//! Tests `fastpath switch` as a user runs it: rule files on captures, and `explain`. Controllers:
//! `controllers.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns an empty directory for one test.
fn bench(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("switch").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn switch(directory: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
    command.arg("switch").args(arguments.split_whitespace()).current_dir(directory).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns a TCP packet to a port, with all checksums set to zero.
fn tcp(dst_port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([4, 0]);
    frame.extend(dst_port.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
    frame
}

/// Returns a pcap with microsecond timestamps.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (second, frame) in frames.iter().enumerate() {
        for word in [1_700_000_000 + second as u32, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Returns the frames of a pcap.
fn frames(file: &[u8]) -> Vec<Vec<u8>> {
    let (mut at, mut found) = (24, Vec::new());
    while at < file.len() {
        let len = u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
        found.push(file[at + 16..at + 16 + len].to_vec());
        at += 16 + len;
    }
    found
}

#[test]
fn captures_pass_a_rule_file_and_frame_accounting_balances() {
    let bench = bench("offline");
    fs::write(bench.join("in.pcap"), capture(&[tcp(80), tcp(23), tcp(443), tcp(80)])).unwrap();
    let rules = "\
        table=0,priority=20,tcp,tp_dst=23,actions=drop\n\
        table=0,priority=10,in_port=p1,tcp,actions=set_field:00:00:00:00:00:09->eth_dst,goto_table:1\n\
        table=1,tcp,tp_dst=443,idle_timeout=1,actions=output:p3\n\
        table=1,priority=1,actions=output:p2,output:p3\n";
    fs::write(bench.join("rules"), rules).unwrap();
    let output = switch(&bench, "--rules rules --in p1=in.pcap --out p2=two.pcap --out p3=three.pcap --json");
    assert!(output.status.success(), "{}", text(&output));
    let mut expected = tcp(80);
    expected[..6].copy_from_slice(&[0, 0, 0, 0, 0, 9]);
    assert_eq!(
        frames(&fs::read(bench.join("two.pcap")).unwrap()).len(),
        3,
        "443 too: its flow has expired by then"
    );
    assert_eq!(frames(&fs::read(bench.join("three.pcap")).unwrap())[0], expected);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let books = &report["books"];
    assert_eq!((&books["received"], &books["sent"], &books["balance"]), (&4.into(), &6.into(), &true.into()));
    assert_eq!(books["dropped"]["no-output"], 1);
}

#[test]
fn all_mistakes_in_rules_are_reported_with_their_lines() {
    let bench = bench("mistakes");
    fs::write(bench.join("rules"), "tcp,actions=output:1\ntp_dst=80,actions=drop\nip,actions=goto_table:0\n")
        .unwrap();
    let output = switch(&bench, "explain --rules rules");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("rules:2: "), "{}", text(&output));
}

#[test]
fn explain_shows_table_shapes_and_the_path_of_a_packet() {
    let bench = bench("explain");
    let rules = "table=0,ip,nw_dst=10.0.0.0/8,actions=dec_ttl,goto_table:1\ntable=1,tcp,tp_dst=80,actions=group:1\n\
                 group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3\n";
    fs::write(bench.join("rules"), rules).unwrap();
    let output = switch(&bench, "explain --rules rules --packet in_port=4,tcp,nw_dst=10.9.9.9,tp_dst=80");
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for part in
        ["table 0: 1 rules", "table 1: priority=32768,tcp,tp_dst=80", "output to port 2", "output to port 3"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let output =
        switch(&bench, "explain --rules rules --json --packet in_port=4,tcp,nw_dst=10.9.9.9,tp_dst=80");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let table = &said["tables"][1];
    assert_eq!((&table["rules"], &table["parts"][0]["shape"]), (&1.into(), &"chain".into()), "{said}");
    assert_eq!(said["code"]["tables"], serde_json::json!([0, 1]));
    let trace = &said["trace"];
    assert_eq!(trace["lookups"][1]["match"], "tcp,tp_dst=80");
    assert_eq!([0, 1].map(|n| trace["outcomes"][n]["output"].as_u64()), [Some(2), Some(3)]);
    fs::write(bench.join("named"), "in_port=lan,tcp,actions=output:wan\n").unwrap();
    let output = switch(
        &bench,
        "explain --rules named --port wan --port lan=tap:tap0 --packet in_port=lan,tcp,tp_src=7",
    );
    let said = text(&output);
    for part in ["bytes on port 2; assumed: dl_src=", ",tp_dst=80\n", "output to port 1: "] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn explain_floods_to_the_declared_ports() {
    let bench = bench("explain-floods");
    let packet = "--packet in_port=1,tcp,nw_dst=10.9.9.9";
    for word in ["NORMAL", "FLOOD", "ALL"] {
        fs::write(bench.join("rules"), format!("actions={word}\n")).unwrap();
        let said =
            text(&switch(&bench, &format!("explain --rules rules --port p1 --port p2 --port lan {packet}")));
        assert!(said.contains("output to p2: ") && said.contains("output to port 3: "), "{word}: {said}");
        assert!(said.contains("\nport 3 is lan\n") && !said.contains("dropped"), "{word}: {said}");
        // Without ports the answer says what is missing.
        let said = text(&switch(&bench, &format!("explain --rules rules {packet}")));
        let part = format!("forwarded to every other port ({word}): none is declared; write --port p1");
        assert!(said.contains(&part) && !said.contains("dropped"), "{word}: {said}");
        let output = switch(&bench, &format!("explain --rules rules --json --port p1 --port p2 {packet}"));
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["trace"]["outcomes"][0]["name"], "p2", "{word}: {said}");
    }
    fs::write(bench.join("rules"), "actions=NORMAL\npriority=1,tcp,tp_dst=9,actions=output:4\n").unwrap();
    let said = text(&switch(&bench, &format!("explain --rules rules {packet}")));
    assert!(said.contains("output to port 4: "), "{said}");
    assert!(
        said.contains("NORMAL: only the ports that the rules mention; declare the others by --port"),
        "{said}"
    );
}

#[test]
fn normal_learns_the_ports_of_stations_and_local_is_an_ordinary_port() {
    let bench = bench("normal");
    fs::write(bench.join("rules"), "actions=NORMAL\npriority=40000,in_port=3,actions=LOCAL\n").unwrap();
    let mut answer = tcp(80);
    answer[..12].rotate_left(6);
    for (name, frame) in [("one", tcp(80)), ("two", answer.clone()), ("three", tcp(1))] {
        fs::write(bench.join(name), capture(&[frame])).unwrap();
    }
    // At equal times, captures are processed in this order.
    let ins = "--in p1=one --in p2=two --in p3=three";
    let outs = "--out p1=to1 --out p2=to2 --out p3=to3 --out LOCAL=local";
    let output = switch(&bench, &format!("--rules rules {ins} {outs}"));
    assert!(output.status.success(), "{}", text(&output));
    let read = |name: &str| frames(&fs::read(bench.join(name)).unwrap());
    assert_eq!((read("to1"), read("to2"), read("to3")), (vec![answer], vec![tcp(80)], vec![tcp(80)]));
    assert_eq!(read("local"), [tcp(80), tcp(1)]);
}

#[test]
fn nodes_of_a_network_execute_the_same_tables() {
    let bench = bench("node");
    let rules = "table=0,in_port=a,tcp,actions=push_vlan:0x8100,set_field:5->vlan_vid,goto_table:1\n\
                 table=1,dl_vlan=5,tcp,tp_dst=80,actions=dec_ttl,output:b\n";
    fs::write(bench.join("rules"), rules).unwrap();
    let spec = "[host.a]\n[host.b]\n[openflow.s]\nfile = \"rules\"\n\
                [[link]]\nbetween = [\"a\", \"s\"]\ndelay = \"1ms\"\n[[link]]\nbetween = [\"s\", \"b\"]\n";
    fs::write(bench.join("net.toml"), spec).unwrap();
    fs::write(bench.join("in"), capture(&[tcp(80), tcp(81)])).unwrap();
    let replay = "replay net.toml --in a=in --out b=out";
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
    let output = command.args(replay.split_whitespace()).current_dir(&bench).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let through = frames(&fs::read(bench.join("out")).unwrap());
    assert_eq!(through.len(), 1);
    assert_eq!((&through[0][12..16], through[0][26]), (&[0x81, 0, 0, 5][..], 63));
}
