//! The audit of a small lab: its results agree with what the spec implies.
#![cfg(target_os = "linux")]

#[path = "../../lab/tests/common/mod.rs"]
mod common;

use fastpath_audit::{Audit, AuditError, ImpliedBy, Judgement, Options, audit};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const LOSSY: &str = r#"
    [host.a]
    [host.b]
    [[link]]
    between = ["a", "b"]
    rate    = "20Mbit"
    delay   = "20ms"
    loss    = "2%"
    queue   = "1000p"
"#;

fn short() -> Options {
    Options {
        echoes: 20,
        loss_duration: Duration::from_secs(1),
        rate_window: Duration::from_millis(700),
        tcp_settle: Duration::from_millis(200),
        tcp_window: Duration::from_millis(800),
        ..Options::default()
    }
}

#[test]
fn what_is_observed_agrees_with_what_is_implied() {
    let Some(lab) = common::up("audit", LOSSY) else { return };
    let found = audit(&lab, short(), &AtomicBool::new(false), &|_| {}).unwrap();
    let [pair] = &found.pairs[..] else { panic!("{} pairs", found.pairs.len()) };
    assert_eq!((pair.from.as_str(), pair.to.as_str()), ("a", "b"));
    // The machine's load does not change these: round trips are never shorter, losses are as drawn.
    // Frames that waited during a host stall arrive at once, but the queue limits their number.
    let rtt = &pair.rtt_ms;
    assert!((rtt.configured - 40.0784).abs() < 1e-9, "{rtt:?}");
    assert!(rtt.median.unwrap() >= rtt.configured - 0.01, "{rtt:?}");
    assert!((pair.udp_mbit.expected.unwrap() - 20.0 * 1472.0 / 1514.0).abs() < 1e-9);
    assert!(pair.udp_mbit.observed.unwrap() < pair.udp_mbit.expected.unwrap() * 3.0, "{:?}", pair.udp_mbit);
    assert!([Judgement::Pass, Judgement::Disturbed].contains(&pair.loss.judgement), "{:?}", pair.loss);
    assert_eq!(pair.loss.configured, 0.02);
    assert!((0.0..60.0).contains(&pair.tcp_mbit.observed.unwrap()), "{:?}", pair.tcp_mbit);
    assert!(found.accounting.balances(), "{:?}", found.accounting);
    has_what_scripts_rely_on(&found);
}

fn has_what_scripts_rely_on(found: &Audit) {
    let json = serde_json::to_value(found).unwrap();
    for (path, numbers) in [
        ("rtt_ms", ["configured", "median", "p99"].as_slice()),
        ("udp_mbit", &["expected", "observed"]),
        ("tcp_mbit", &["expected", "observed"]),
        ("loss", &["configured", "observed"]),
    ] {
        for number in numbers {
            assert!(json["pairs"][0][path][number].is_number(), "{path}.{number} in {json}");
        }
    }
    let accounting = &json["conservation"];
    let count = |name: &str| accounting[name].as_u64().unwrap();
    let dropped: u64 = accounting["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(count("in"), count("delivered") + dropped + count("held"));
    assert!(["pass", "fail", "disturbed"].contains(&json["verdict"].as_str().unwrap()));
    let table = found.to_string();
    assert!(table.contains("a → b") && table.contains("verdict:"), "{table}");
}

/// Links for which there is no closed form, each between hosts of its own.
const UNUSUAL: &str = r#"
    [host.a]
    [host.b]
    [host.c]
    [host.d]
    [host.e]
    [host.f]
    [host.g]
    [host.h]
    [[link]]
    between = ["a", "b"]
    delay   = "5ms"
    queue   = { kind = "policer", rate = "4Mbit", burst = "15KiB" }
    [[link]]
    between = ["c", "d"]
    delay   = "5ms"
    queue   = { kind = "token-bucket", rate = "4Mbit", burst = "15KiB", limit = "20ms" }
    [[link]]
    between = ["e", "f"]
    rate    = "8Mbit"
    overhead = { bytes = 8, cell = 48, cell_overhead = 5 }
    loss    = { probability = "10%", correlation = "25%" }
    [[link]]
    between = ["g", "h"]
    rate    = "8Mbit"
    corrupt = "5%"
    slots   = { min = "1ms", max = "2ms", bytes = "8KiB" }
"#;

#[test]
fn figures_without_a_closed_form_are_those_of_the_same_packets_in_virtual_time() {
    let Some(lab) = common::up("audit by the model", UNUSUAL) else { return };
    let found = audit(&lab, short(), &AtomicBool::new(false), &|_| {}).unwrap();
    assert_eq!(found.pairs.len(), 4);
    for pair in &found.pairs {
        let judgements = [pair.rtt_ms.judgement, pair.udp_mbit.judgement, pair.loss.judgement];
        let is_good = |judgement: &Judgement| matches!(judgement, Judgement::Pass | Judgement::Disturbed);
        assert!(judgements.iter().all(is_good), "{found}");
        assert_eq!(pair.udp_mbit.implied_by, ImpliedBy::VirtualTime);
    }
    let [policed, shaped, cells, slots] = &found.pairs[..] else { unreachable!("four") };
    // 4 Mbit/s of 1514-byte frames with 1472 bytes each.
    for pair in [policed, shaped] {
        let expected = pair.udp_mbit.expected.unwrap();
        assert!((expected / (4.0 * 1472.0 / 1514.0) - 1.0).abs() < 0.03, "{expected}");
    }
    assert!((cells.loss.configured - 0.0175).abs() < 0.001, "{:?}", cells.loss);
    assert!((0.03..0.07).contains(&slots.loss.configured), "{:?}", slots.loss);
}

#[test]
fn an_audit_stops_at_once_when_the_flag_is_set() {
    let Some(lab) = common::up("audit that stops", LOSSY) else { return };
    let answer = audit(&lab, short(), &AtomicBool::new(true), &|_| {});
    assert!(matches!(answer, Err(AuditError::Interrupted)), "{answer:?}");
}

#[test]
fn hosts_that_cannot_reach_each_other_are_noted_and_not_measured() {
    const APART: &str = r#"
        [host.a]
        [host.b]
        [host.c]
        [host.d]
        [[link]]
        between = ["a", "b"]
        [[link]]
        between = ["c", "d"]
    "#;
    let Some(lab) = common::up("audit of two islands", APART) else { return };
    let brief = Options { loss_duration: Duration::from_millis(200), echoes: 3, ..short() };
    let found = audit(&lab, brief, &AtomicBool::new(false), &|_| {}).unwrap();
    let names: Vec<String> = found.pairs.iter().map(|pair| format!("{}{}", pair.from, pair.to)).collect();
    assert_eq!(names, ["ab", "cd"]);
    assert_eq!(
        found.notes.iter().filter(|note| note.contains("cannot reach")).count(),
        4,
        "{:?}",
        found.notes
    );
    assert!(found.pairs.iter().all(|pair| pair.udp_mbit.expected.is_none()));
}
