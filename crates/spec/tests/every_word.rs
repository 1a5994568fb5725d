//! Every word of a spec file changes what would run, or is named: one word of a valid file is
//! changed, misspelled or removed, and the network of the file must differ, or a mistake or a
//! warning say why not.
//!
//! `FASTPATH_MUTATIONS=100000 cargo test -p fastpath-spec --test every_word --release` takes more.

use fastpath_spec::{Description, NetworkSpec, Warning, check, check_json, mistake::Checked};
use fastpath_text::mutation::lexical::{Mutation, mutation};
use fastpath_units::Rng;
use std::collections::BTreeSet;

mod random;

/// What stands beside words that could make it vain: a trace, a port, a daemon's configuration, the
/// ports and tables of a switch.
const BESIDE: &str = r#"
[host.a]
port = "eth9"
mac = "02:00:00:00:00:07"
[host.b]
exec = "true"
routes = { "10.9.0.0/16" = "10.1.0.9" }
address = "10.1.0.2/24"
[router.r]
daemon = "frr"
ospf = { hello = "2s", dead = "9s" }
static_routes = true
address = { r-o = "10.1.0.9/24", r-s = "10.3.0.9/24" }
[router.s]
daemon = "frr"
config = "own.conf"
bgp = 65001
[router.t]
daemon = "frr"
bgp = 65002
[openflow.o]
rules = """
in_port=1,actions=output:2
priority=9,in_port=2,actions=goto_table:3
table=3,actions=output:1,output:3
"""
[[link]]
between = ["a", "o"]
trace = { file = "rate.csv", end = "reset" }
rate = "7Mbit"
[[link]]
between = ["b", "o"]
[[link]]
between = ["r", "o"]
[[link]]
between = ["r", "s"]
[[link]]
between = ["s", "t"]
"#;

/// What a reader makes of a text.
type Reader = fn(&str) -> Checked<NetworkSpec>;

fn files(name: &str) -> Result<String, String> {
    match name {
        "rate.csv" => Ok("time_s,rate_mbps\n0,3\n0.5,8\n".to_owned()),
        "own.conf" => Ok("router bgp 65001\n".to_owned()),
        "rules.txt" => Ok("priority=1,actions=flood\n".to_owned()),
        _ => {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
            std::fs::read_to_string(format!("{folder}/{name}")).map_err(|error| error.to_string())
        }
    }
}

fn toml(text: &str) -> Checked<NetworkSpec> {
    check(text, &files)
}

fn json(text: &str) -> Checked<NetworkSpec> {
    check_json(text, &files)
}

/// Valid texts: the examples, and random descriptions as files and in the canonical form.
fn inputs() -> Vec<(String, String, Reader)> {
    let mut inputs: Vec<(String, String, Reader)> = Vec::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("examples").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("text");
            inputs.push((path.file_name().unwrap().to_string_lossy().into_owned(), text, toml));
        }
    }
    assert!(inputs.len() >= 5, "examples in {folder}");
    let beside = toml(BESIDE);
    assert!(beside.value.is_some(), "{:?}", beside.mistakes);
    inputs.push(("beside".to_owned(), BESIDE.to_owned(), toml));
    for seed in 0..1500 {
        let given = random::description(seed).to_string();
        let checked = json(&given);
        if checked.value.is_some() && !has_parts_without_effect(&checked) {
            let description = Description::from_json(&given, &files).expect("it was read");
            inputs.push((format!("{seed} as TOML"), description.to_toml(), toml));
            inputs.push((format!("{seed} as JSON"), format!("{:#}", description.to_json()), json));
        }
    }
    assert!(inputs.len() >= 40, "too few random descriptions resolve");
    inputs
}

/// What was said, without its place: a line that goes moves the others.
fn said(warnings: &[Warning]) -> BTreeSet<&str> {
    warnings.iter().map(|warning| warning.what.as_str()).collect()
}

/// Lines that say what holds without them: without the line the network is the same.
const DEFAULTS: &[&str] = &[
    "state up",
    "direction both",
    "rate unlimited",
    "loss none",
    "slots none",
    "cross none",
    "law poisson",
    "jitter none",
    "reorder none",
    "duplicate none",
    "corrupt none",
    "overhead 0",
    "ecn false",
    "mean_packet 500B",
    // ARED's default of the paper.
    "interval 500ms",
    // RED's and ARED's `maxp`.
    "probability 10%",
    "filtering address-dependent",
    "mapping endpoint-independent",
    "ramp_packets 1",
    "ramp_start 800us",
    "ramp_range 400us",
    // PIE's.
    "cap_adjustment false",
    "target 15ms",
    // That of a trace.
    "end repeat",
    "events []",
    // That of a loss with a probability.
    "kind uniform",
    // That of traffic.
    "kind constant",
    // ARED's.
    "gentle true",
    // A router with keys of a kernel router is one.
    "kind kernel",
];

/// Whether the line that went says only what holds without it, or a number is the same to the
/// precision of its type.
fn is_equal_by_meaning(mutation: &Mutation) -> bool {
    if let (Ok(was), Ok(now)) = (mutation.was.parse::<f64>(), mutation.now.parse::<f64>()) {
        return was == now;
    }
    let words = |text: &str| text.replace(|c: char| "\"',:={}".contains(c), " ");
    // The comment behind a value.
    let line = words(mutation.was.split(" #").next().unwrap_or_default());
    let line: Vec<&str> = line.split_whitespace().collect();
    let inner = if line.len() % 2 == 1 { &line[1..] } else { &line[..] };
    let is_default = |pair: &[&str]| DEFAULTS.contains(&pair.join(" ").as_str());
    mutation.now.is_empty() && !inner.is_empty() && inner.chunks(2).all(is_default)
}

/// Whether a text is named to have parts without effect: what is changed in them is, too.
fn has_parts_without_effect(checked: &Checked<NetworkSpec>) -> bool {
    checked.warnings.iter().any(|warning| warning.what.contains("change nothing"))
}

#[test]
fn every_word_of_a_spec_file_counts() {
    let count = std::env::var("FASTPATH_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(4000);
    let inputs = inputs();
    let mut random = Rng::new(33);
    let (mut differ, mut named, mut silent) = (0, 0, Vec::new());
    let mut kept: Option<(usize, Checked<NetworkSpec>)> = None;
    for turn in 0..count {
        let index = turn % inputs.len();
        let (name, text, reader) = &inputs[index];
        let before = match kept.take() {
            Some((at, before)) if at == index => before,
            _ => reader(text),
        };
        let Some(mutation) = mutation(text, &mut random) else { continue };
        let after = reader(&mutation.text);
        if !after.mistakes.is_empty() || said(&after.warnings) != said(&before.warnings) {
            named += 1;
        } else if same(&before, &after) && !is_equal_by_meaning(&mutation) {
            silent.push(format!("{name}:{mutation}"));
        } else {
            differ += 1;
        }
        kept = Some((index, before));
    }
    assert!(differ > count / 20 && named > count / 20, "{differ} differ, {named} are named");
    assert!(silent.is_empty(), "{} of {count} change nothing:\n{}", silent.len(), silent.join("\n"));
}

/// Whether the same network would run.
fn same(before: &Checked<NetworkSpec>, after: &Checked<NetworkSpec>) -> bool {
    let parts = |checked: &Checked<NetworkSpec>| {
        let spec = checked.value.as_ref().expect("a network");
        (spec.topology.clone(), spec.engine.clone())
    };
    parts(before) == parts(after)
}
