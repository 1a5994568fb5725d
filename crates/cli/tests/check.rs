//! `fastpath check` and `fastpath draw` as a user runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn check(name: &str, content: &str, arguments: &[&str]) -> Output {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(name), content).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
    command.arg("check").arg(name).args(arguments).current_dir(&directory).output().unwrap()
}

#[test]
fn a_valid_spec_is_summarised() {
    let output = check("good.toml", "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\n", &[]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("good.toml: ok: 2 hosts, 0 routers and switches, 1 link, 0 scheduled changes"),
        "{said}"
    );
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_positions() {
    let text =
        "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"c\"]\nrate = \"10 parsecs\"\ndealy = \"5ms\"\n";
    let output = check("bad.toml", text, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    for line in ["bad.toml:4:", "bad.toml:5:", "bad.toml:6:"] {
        assert!(said.lines().any(|said| said.starts_with(line)), "{line} in {said}");
    }
    assert!(said.contains("delay"), "{said}");
}

#[test]
fn json_output_carries_the_same_mistakes() {
    let output = check("bad-json.toml", "[host.a]\nmut = 3\n", &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with('{') && said.contains("\"ok\":false") && said.contains("\"line\":2"), "{said}");
}

#[test]
fn warnings_are_returned_with_mistakes_too() {
    let answer = |name: &str, content: &str| {
        let output = check(name, content, &["--json"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["topology"], serde_json::Value::Null);
        let lines = |of: &str| -> Vec<u64> {
            answer[of].as_array().unwrap().iter().map(|remark| remark["line"].as_u64().unwrap()).collect()
        };
        (lines("mistakes"), lines("warnings"))
    };
    let toml = "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit\"\n\
        [[link]]\nbetween = [\"b\", \"a\"]\ndealy = \"5ms\"\nrate = \"1Mbit\"\n";
    // Nothing is said of the queue of a link that has a mistake.
    assert_eq!(answer("both.toml", toml), (vec![8], vec![3]));
    let ns = "set ns [new Simulator]\nset n0 [$ns node]\nset n1 [$ns node]\ntb-set-hardware $n0 pc850\n\
        $ns duplex-link $n0 $n1 10Mb 25parsecs DropTail\n$ns run\n";
    assert_eq!(answer("both.ns", ns), (vec![5], vec![4]));
}

#[test]
fn control_characters_of_a_description_do_not_reach_the_terminal() {
    let odd = "\\u001b[31m";
    let toml = format!(
        "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nname = \"{odd}\"\nrate = \"1{odd}Mbit\"\n\
         \"k{odd}\" = 1\npreset = \"{odd}\"\nqueue = {{ kind = \"{odd}\" }}\ntrace = \"{odd}.csv\"\nloss = \"{odd}\"\n"
    );
    let ns = "set ns [new Simulator]\nputs \"\u{1b}c\"\nset a [$ns node]\n$ns \u{1b}c\u{7}\n";
    for (name, text) in [("odd.toml", toml.as_str()), ("odd.ns", ns)] {
        let checked = check(name, text, &[]);
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check").join(name);
        let mut replay = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        let replayed = replay.arg("replay").arg(file).args(["--in", "a=none.pcap"]).output().unwrap();
        for said in [checked.stdout, replayed.stderr] {
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains("\\u{1b}") && !said.contains(['\u{1b}', '\u{7}']), "{said:?}");
        }
    }
}

#[test]
fn an_unreadable_file_is_an_error() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_fastpath")).args(["check", "nowhere.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("fastpath: nowhere.toml: No such file"));
}

#[test]
fn the_resolved_topology_is_a_complete_spec() {
    let text = "seed = 3\n[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit\"\n";
    let topology = |output: Output| {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["mistakes"], serde_json::json!([]));
        answer["topology"].clone()
    };
    let resolved = topology(check("resolved.toml", text, &["--json"]));
    assert_eq!(resolved["links"][0]["name"], "a-b");
    assert_eq!(resolved["links"][0]["forward"]["queue"], "50p");
    assert_eq!(resolved["nodes"][1]["addresses"]["a-b"][0], "10.1.1.3/24");
    assert_eq!(topology(check("resolved.json", &resolved.to_string(), &["--json"])), resolved);
    let wrong = check("wrong.json", "{\"nodes\": [{\"name\": \"a\", \"kind\": \"hots\"}]}", &["--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&wrong.stdout).unwrap();
    assert_eq!(
        (&answer["topology"], &answer["mistakes"][0]["column"]),
        (&serde_json::Value::Null, &34.into())
    );
}

#[test]
fn the_schema_is_printed() {
    let output = Command::new(env!("CARGO_BIN_EXE_fastpath")).args(["check", "--schema"]).output().unwrap();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/topology.json");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), fs::read_to_string(committed).unwrap());
}

#[test]
fn a_network_is_drawn_in_every_format() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("draw");
    fs::create_dir_all(&directory).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/switched-sites.toml");
    let draw = |file: &str| -> (Output, Vec<u8>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        let output = command.arg("draw").arg(&example).args(["-o", file]).current_dir(&directory).output();
        (output.unwrap(), fs::read(directory.join(file)).unwrap_or_default())
    };
    let nodes = ["pc1", "pc2", "pc3", "office", "gate", "branch-gate", "branch"];
    for (file, begins) in
        [("x.svg", "<svg "), ("x.mmd", "---\ntitle:"), ("x.dot", "graph "), ("x.drawio", "<mxfile ")]
    {
        let (output, bytes) = draw(file);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with(begins), "{text}");
        assert!(nodes.iter().all(|node| text.contains(node)) && text.contains("2Mbit 15ms"), "{text}");
        assert_eq!(draw(file).1, text.as_bytes(), "drawn again, it is the same");
    }
    let (output, png) = draw("x.png");
    // Without a font, or in a build without PNG, it is refused with what to do.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        png.starts_with(b"\x89PNG") || said.contains("font") || said.contains("--features png"),
        "{output:?}"
    );
    let (output, _) = draw("x.gif");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("*.mmd (Mermaid)"), "{output:?}");
}

#[test]
fn what_cannot_run_is_drawn_and_positions_are_kept() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("draw-any");
    fs::create_dir_all(&directory).unwrap();
    let draw = |file: &str, text: &str, options: &[&str]| -> (Option<i32>, String, String) {
        fs::write(directory.join(file), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        let output = command.arg("draw").arg(file).args(options).current_dir(&directory).output().unwrap();
        let [out, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), out, said)
    };
    let routers = "[router.r1]\n[router.r2]\n[[link]]\nbetween = ['r1', 'r2']\n";
    let (code, svg, said) = draw("routers.toml", routers, &[]);
    assert!(code == Some(0) && svg.contains(">r1</text>") && said.is_empty(), "{said}");
    assert_eq!(check("routers.toml", routers, &[]).status.code(), Some(1), "it does not run");
    let lab = "name: l\ntopology:\n  nodes:\n    s: {kind: nokia_srlinux}\n    t: {kind: cisco_xrd}\n  links:\n    \
        - endpoints: ['s:e1-1', 't:e1-1']\n";
    for options in [&[][..], &["--only", "linux"]] {
        let (code, svg, said) = draw("l.clab.yml", lab, options);
        assert!(code == Some(0) && svg.contains(">nokia_srlinux</text>"), "{said}");
    }
    let (code, _, said) = draw("routers.toml", routers, &["--layout", "given"]);
    assert!(code == Some(2) && said.contains("write position = [x, y]"), "{said}");
    let placed = "[router.r1]\nposition = [10, 20]\n[router.r2]\nposition = [310, 220.5]\n[[link]]\nbetween = ['r1', 'r2']\n";
    let (_, svg, said) = draw("placed.toml", placed, &[]);
    let places: Vec<f64> = svg
        .lines()
        .filter(|line| line.contains("class=\"node router\" x=") && line.starts_with("<g>"))
        .flat_map(|line| {
            [" x=\"", " y=\""]
                .map(|key| line.split(key).nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap())
        })
        .collect();
    assert_eq!([places[2] - places[0], places[3] - places[1]], [300.0, 200.5], "{svg} {said}");
    let (code, _, said) = draw("wrong.toml", "[router.r1]\nposition = [10]\n", &[]);
    assert!(code != Some(0) && said.contains("wrong.toml:2:"), "{said}");
}

#[test]
fn strict_makes_warnings_mistakes_in_every_command_that_reads_a_description() {
    // A rate without a queue gets one, with a warning.
    let text = "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit\"\n";
    assert_eq!(check("strict.toml", text, &[]).status.code(), Some(0));
    let output = check("strict.toml", text, &["--strict"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("strict.toml:3:") && said.contains("--strict"), "{said}");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check");
    for command in [&["draw"][..], &["replay"], &["run"], &["lab", "run"]] {
        let mut fastpath = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        let output = fastpath.args(command).args(["strict.toml", "--strict"]).current_dir(&directory);
        let output = output.output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{command:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("strict.toml:3:"), "{command:?}: {said}");
    }
}

#[test]
fn json_output_has_codes_of_warnings_and_the_settings_of_the_engine() {
    let text = "[host.a]\n[host.b]\n[engine]\ntolerance = \"2ms\"\n[group.lone]\nstart = \"1s\"\n\
        [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit\"\n";
    let output = check("codes.toml", text, &["--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let warnings = answer["warnings"].as_array().unwrap();
    let codes: Vec<&str> = warnings.iter().map(|warning| warning["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["unused", "default"], "{answer}");
    assert_eq!(answer["topology"]["engine"]["tolerance"], "2ms");
    let misspelled = text.replace("rate = ", "group = \"lonne\"\nrate = ");
    let output = check("codes.toml", &misspelled, &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("there is no group 'lonne'; write \"lone\""), "{said}");
}

#[test]
fn workers_show_the_parts_the_lookahead_of_each_cut_and_why_others_are_none() {
    let text = "[host.a]\n[router.r]\n[router.q]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n\
        [[link]]\nbetween = ['r', 'q']\ndelay = '5ms'\n[[event]]\nat = '1s'\nlink = 'r-q'\ndelay = '2ms'\n\
        [[link]]\nbetween = ['q', 'b']\ndelay = '1ms'\nreorder = '1%'\n";
    let said = String::from_utf8(check("parts.toml", text, &["--workers", "2"]).stdout).unwrap();
    for line in [
        "2 parts, expected speed-up 1.83 with a core for each",
        "  part 0: 2 nodes, 50 % of the work: a, r",
        "  cut r-q: r (part 0) to q (part 1), known 2ms before",
        "  not cut at link a-r: its delay can be 0",
        "  not cut at link q-b: `reorder` lets packets skip its delay",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} in {said}");
    }
    let output = check("parts.toml", text, &["--workers", "auto", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["parallel"]["parts"][0]["share"].as_f64().is_some(), "{answer}");
    let output = check("parts.toml", text, &["--workers", "8", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        answer["parallel"]["cuts"][0]["lookahead_ps"],
        serde_json::json!([2_000_000_000_u64, 2_000_000_000_u64])
    );
    assert_eq!(answer["parallel"]["real_time_parts"], 2);
    let short = text.replace("'2ms'", "'20us'");
    let said = String::from_utf8(check("short.toml", &short, &["--workers", "2"]).stdout).unwrap();
    assert!(said.contains("\n  in real time 1 part: links below 100us are not cut\n"), "{said}");
}

#[test]
fn each_link_says_where_it_runs_and_why_not_in_the_kernel() {
    let text = "[host.a]\n[host.b]\n[host.c]\n[switch.s]\n[[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['b', 's']\n\
        [[link]]\nbetween = ['b', 'c']\ndelay = '1ms'\n";
    let output = check("paths.toml", text, &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("2 links in the kernel, in a lab of root's: a-s, b-s"), "{said}");
    assert!(said.contains("1 link in user space (it has a delay): b-c"), "{said}");
    let output = check("paths.toml", text, &["--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let paths: Vec<&str> = value["data_path"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link["data_path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["kernel", "kernel", "user"]);
    assert_eq!(value["data_path"][2]["data_path_reason"], "it has a delay");
    // What a lab refuses, check refuses.
    let slow = text.replace("['b', 's']\n", "['b', 's']\nrate = '1Mbit'\n");
    assert_eq!(check("paths.toml", &slow, &["--data-path", "kernel"]).status.code(), Some(1));
    assert_eq!(check("paths.toml", &slow, &["--data-path", "auto"]).status.code(), Some(0));
}
