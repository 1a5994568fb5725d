//! Every word of a network that carries traffic changes the times of its packets, or is named: the
//! results of a replay are compared after one word was changed, misspelled or removed.

use fastpath::Replay;
use fastpath_spec::{Topology, Warning, parse};
use fastpath_text::mutation::lexical::{Mutation, mutation};
use fastpath_units::{Duration, Rng};
use std::path::Path;

/// Every link carries traffic, every queue overflows, and every effect meets packets.
const TEXT: &str = r#"
[host.a]
[host.b]
[host.c]
[router.r]
[[link]]
between = ["a", "r"]
rate = "9Mbit"
delay = "20ms"
jitter = { law = "uniform", half_width = "3ms" }
queue = "7p"
overhead = 38
[[link]]
between = ["r", "b"]
rate = "2Mbit"
delay = "5ms"
loss = { probability = "4%", correlation = "20%" }
cross = { rate = "300kbit", law = "constant", packet = 700 }
queue = { kind = "red", limit = "12p", min = "2p", max = "6p", probability = "30%", weight = "5%" }
[[link]]
between = ["r", "c"]
rate = "3Mbit"
delay = "9ms"
duplicate = "3%"
reorder = { probability = "15%", gap = 2 }
queue = "6p"
[[event]]
at = "0.5s"
link = "r-b"
rate = "1.4Mbit"
[[event]]
at = "0.7s"
link = "r-c"
direction = "r_to_c"
delay = "12ms"
[[traffic]]
from = "a"
to = "b"
rate = "4Mbit"
size = 1200
start = "0.1s"
stop = "1.2s"
[[traffic]]
from = "a"
to = "c"
kind = "poisson"
rate = "5Mbit"
size = 800
stop = "0.9s"
"#;

/// What was said, without its place: a line that goes moves the others.
fn what(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(|warning| warning.what.clone()).collect()
}

/// The times of the packets, and what became of all: a copy has no row of its own.
fn times(topology: Topology, file: &Path) -> Vec<u8> {
    let replay = Replay::through(topology).seed(7).until(Duration::from_ms(1500)).times(file);
    let summary = replay.run().expect("a run");
    let mut bytes = std::fs::read(file).expect("the times");
    bytes.extend(format!("{:?}", summary.accounting).into_bytes());
    bytes
}

/// What changes no packet of this network, and why.
fn is_without_packets(mutation: &Mutation) -> bool {
    // RED drops before its limit is reached, and nothing goes from c to r.
    mutation.was == "12p" || mutation.was.starts_with("direction")
}

#[test]
fn every_word_changes_the_bytes_of_a_replay_or_is_named() {
    let count = std::env::var("FASTPATH_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(1000);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every-word.csv");
    let (topology, warnings) = parse(TEXT).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let before = times(topology, &file);
    let mut random = Rng::new(33);
    let (mut differ, mut silent) = (0, Vec::new());
    while differ < count && silent.len() < 20 {
        let mutation = mutation(TEXT, &mut random).expect("there are words");
        match parse(&mutation.text) {
            Err(_) => {}
            Ok((_, said)) if what(&said) != what(&warnings) => {}
            Ok((topology, _)) if times(topology.clone(), &file) != before => differ += 1,
            Ok(_) if is_without_packets(&mutation) => {}
            Ok(_) => silent.push(mutation.to_string()),
        }
    }
    assert!(silent.is_empty(), "{differ} differ; these change nothing:\n{}", silent.join("\n"));
}
