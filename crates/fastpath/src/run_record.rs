//! Results of labs that can be reproduced from their file alone: with the version, the seed, the
//! network and the machine; and audits as JUnit XML, for continuous integration.

use crate::{DEFAULT_SEED, Loaded};
use fastpath_audit::{Audit, Judgement, Pair};
use fastpath_measure::this_machine;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

/// Returns where a result comes from: `version`, `seed`, `spec` (the resolved network in the
/// canonical form, which `fastpath` reads again as `.json`) and `machine`.
pub fn origin(network: &Loaded, seed: Option<u64>) -> Value {
    let topology = &network.spec.topology;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed.or(topology.seed).unwrap_or(DEFAULT_SEED),
        "spec": fastpath_spec::describe(topology).to_json(),
        "machine": this_machine(),
    })
}

/// Returns a result as JSON, with its origin as `run`.
///
/// # Panics
/// If the result is not a JSON object.
pub fn with_origin(result: &impl Serialize, origin: &Value) -> Value {
    let mut value = serde_json::to_value(result).expect("a result is plain data");
    value.as_object_mut().expect("a result is an object").insert("run".to_owned(), origin.clone());
    value
}

/// Returns an audit as JUnit XML: a test case for each figure of each pair of hosts. Figures that
/// are not judged are skipped.
pub fn junit(audit: &Audit) -> String {
    let mut cases = String::new();
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for pair in &audit.pairs {
        for (figure, judgement, text) in figures(pair) {
            tests += 1;
            let name = escaped(&format!("{} → {}: {figure}", pair.from, pair.to));
            let result = match judgement {
                Judgement::Pass => String::new(),
                Judgement::Fail => {
                    failures += 1;
                    format!("<failure message=\"{}\"/>", escaped(&text))
                }
                Judgement::Shown => {
                    skipped += 1;
                    "<skipped message=\"not judged\"/>".to_owned()
                }
            };
            let text = escaped(&text);
            _ = writeln!(
                cases,
                "  <testcase classname=\"audit\" name=\"{name}\">{result}<system-out>{text}</system-out></testcase>"
            );
        }
    }
    tests += 1;
    let balances = match audit.conservation.balances() {
        true => "",
        false => {
            failures += 1;
            "<failure message=\"in is not delivered + dropped + held\"/>"
        }
    };
    _ = writeln!(cases, "  <testcase classname=\"audit\" name=\"frame accounting\">{balances}</testcase>");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"fastpath audit\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n{cases}</testsuite>\n"
    )
}

/// The figures of a pair: their names, judgements, and what was expected and measured.
fn figures(pair: &Pair) -> [(&'static str, Judgement, String); 4] {
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
        ("RTT", rtt_ms.judgement, rtt),
        ("UDP", udp_mbit.judgement, rate(udp_mbit.expected, udp_mbit.observed)),
        ("TCP", tcp_mbit.judgement, rate(tcp_mbit.expected, tcp_mbit.observed)),
        ("loss", loss.judgement, lost),
    ]
}

/// Returns a text for XML (1.0, §2.4). Characters that XML forbids become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}')
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_audit::{AuditVerdict, LossFigures, RateFigures, Rtt};
    use fastpath_engine::FrameAccounting;

    #[test]
    fn each_figure_is_a_test_case_and_names_are_escaped() {
        let rate = |judgement| RateFigures { expected: None, observed: None, judgement };
        let pair = Pair {
            from: "<a>\u{1b}".to_owned(),
            to: "b\"".to_owned(),
            rtt_ms: Rtt {
                configured: 20.0,
                mean: None,
                median: Some(30.0),
                p99: None,
                sent: 5,
                received: 5,
                judgement: Judgement::Fail,
            },
            udp_mbit: rate(Judgement::Pass),
            tcp_mbit: rate(Judgement::Shown),
            loss: LossFigures {
                configured: 0.0,
                observed: 0.0,
                sent: 9,
                lost: 0,
                interval: (0, 0),
                judgement: Judgement::Pass,
            },
        };
        let conservation = FrameAccounting::default();
        let audit = Audit {
            pairs: vec![pair],
            links: Vec::new(),
            conservation,
            notes: Vec::new(),
            verdict: AuditVerdict::Fail,
        };
        let xml = junit(&audit);
        assert!(xml.contains("tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{xml}");
        assert!(
            xml.contains("name=\"&lt;a&gt;\u{fffd} → b&quot;: RTT\"><failure message=\"expected 20.000 ms"),
            "{xml}"
        );
    }
}
