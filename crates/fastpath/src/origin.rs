//! Results of labs that can be reproduced from their file alone: with the version, the seed, the
//! network and the machine; and audits as tests, for continuous integration.

use crate::{DEFAULT_SEED, Loaded};
use fastpath_audit::{Audit, Judgement, Pair};
use fastpath_measure::this_machine;
use fastpath_record::{Origin, TestCase, TestOutcome, TestSuite};
use serde::Serialize;
use serde_json::{Value, json};

/// Returns where the runs of a network come from.
pub fn of(network: &Loaded, seed: Option<u64>) -> Origin {
    let topology = &network.spec.topology;
    Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: seed.or(topology.seed).unwrap_or(DEFAULT_SEED),
        spec: Some(fastpath_spec::describe(topology).to_json()),
        machine: Some(this_machine()),
    }
}

/// Returns where a network comes from that runs on this machine: its seed, and its description in
/// the canonical form.
pub fn of_running(seed: Option<u64>, description: Value) -> Origin {
    Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: seed.unwrap_or(DEFAULT_SEED),
        spec: Some(description),
        machine: Some(this_machine()),
    }
}

/// Returns a result as JSON, with its origin as `run`.
///
/// # Panics
/// If the result is not a JSON object.
pub fn with_origin(result: &impl Serialize, origin: &Origin) -> Value {
    let mut value = serde_json::to_value(result).expect("a result is plain data");
    value.as_object_mut().expect("a result is an object").insert("run".to_owned(), json!(origin));
    value
}

/// Returns an audit as tests: one for each figure of each pair of hosts, and one for the frame
/// accounting. Figures that are not judged are skipped.
pub fn tests(audit: &Audit) -> TestSuite {
    let case =
        |name: String, outcome: TestOutcome, found: String| TestCase { class: "audit", name, outcome, found };
    let mut cases = Vec::new();
    for pair in &audit.pairs {
        for (figure, judgement, reason, found) in figures(pair) {
            let outcome = match judgement {
                Judgement::Pass => TestOutcome::Passed,
                Judgement::Fail => TestOutcome::Failed(found.clone()),
                Judgement::Disturbed => TestOutcome::Skipped(format!("disturbed: {found}")),
                Judgement::Shown => {
                    TestOutcome::Skipped(format!("not judged: {}", reason.unwrap_or_default()))
                }
            };
            cases.push(case(format!("{} → {}: {figure}", pair.from, pair.to), outcome, found));
        }
    }
    let balances = match audit.accounting.balances() {
        true => TestOutcome::Passed,
        false => TestOutcome::Failed("in is not delivered + dropped + held".to_owned()),
    };
    cases.push(case("frame accounting".to_owned(), balances, String::new()));
    TestSuite { name: "fastpath audit".to_owned(), cases }
}

/// The figures of a pair: their names, judgements, why they are not judged, and what was expected
/// and measured.
fn figures(pair: &Pair) -> [(&'static str, Judgement, Option<&str>, String); 4] {
    let number = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| format!("{value:.3}"));
    let Pair { rtt_ms, udp_mbit, tcp_mbit, loss, .. } = pair;
    let rtt = format!(
        "expected {:.3} ms, measured {} ms",
        rtt_ms.configured,
        number(rtt_ms.mean.or(rtt_ms.median))
    );
    let rate = |expected, observed| {
        format!("expected {} Mbit/s, measured {} Mbit/s", number(expected), number(observed))
    };
    let (least, most) = loss.interval;
    let lost = format!("lost {} of {}, expected {least} to {most}", loss.lost, loss.sent);
    [
        ("RTT", rtt_ms.judgement, rtt_ms.reason.as_deref(), rtt),
        ("UDP", udp_mbit.judgement, udp_mbit.reason.as_deref(), rate(udp_mbit.expected, udp_mbit.observed)),
        ("TCP", tcp_mbit.judgement, tcp_mbit.reason.as_deref(), rate(tcp_mbit.expected, tcp_mbit.observed)),
        ("loss", loss.judgement, loss.reason.as_deref(), lost),
    ]
}

#[cfg(test)]
mod test {
    use super::*;
    use fastpath_audit::{AuditVerdict, ImpliedBy, LossFigures, RateFigures, Rtt};
    use fastpath_engine::FrameAccounting;

    #[test]
    fn each_figure_is_a_test() {
        let implied_by = ImpliedBy::ClosedForm;
        let rate = |judgement| RateFigures {
            expected: None,
            observed: None,
            implied_by,
            judgement,
            reason: (judgement == Judgement::Shown).then(|| "TCP is shown".to_owned()),
        };
        let pair = Pair {
            from: "<a>\u{1b}".to_owned(),
            to: "b\"".to_owned(),
            rtt_ms: Rtt {
                configured: 20.0,
                implied_by,
                mean: None,
                median: Some(30.0),
                p99: None,
                sent: 5,
                received: 5,
                judgement: Judgement::Fail,
                reason: None,
            },
            udp_mbit: rate(Judgement::Pass),
            tcp_mbit: rate(Judgement::Shown),
            loss: LossFigures {
                configured: 0.0,
                implied_by,
                observed: 0.0,
                sent: 9,
                lost: 0,
                interval: (0, 0),
                judgement: Judgement::Pass,
                reason: None,
            },
        };
        let accounting = FrameAccounting::default();
        let audit = Audit {
            pairs: vec![pair],
            links: Vec::new(),
            accounting,
            notes: Vec::new(),
            verdict: AuditVerdict::Fail,
        };
        let xml = tests(&audit).xml();
        assert!(xml.contains("tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{xml}");
        assert!(
            xml.contains("name=\"&lt;a&gt;\u{fffd} → b&quot;: RTT\"><failure message=\"expected 20.000 ms"),
            "{xml}"
        );
    }
}
