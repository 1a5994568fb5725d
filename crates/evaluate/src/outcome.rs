//! One figure of the evaluation: the original, ours, and the rule by which it passes.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A figure, and how it came out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// A stable name: the table or figure of the thesis, then the row or the value on the x axis.
    pub id: String,
    /// What the thesis measured; absent where it printed no number.
    pub original: Option<f64>,
    /// What we measured.
    pub ours: f64,
    /// The same measurement without an emulator in the path.
    pub control: Option<f64>,
    /// The same measurement with something else in the path, in the same run.
    pub peers: BTreeMap<&'static str, f64>,
    /// Of all these numbers.
    pub unit: &'static str,
    /// The largest relative error, or shortfall, that passes.
    pub tolerance: f64,
    /// Whether ours passes.
    pub pass: bool,
    /// What it was held to.
    #[serde(serialize_with = "in_words")]
    pub rule: Rule,
    /// Packets, echoes or trials behind ours.
    pub n: u64,
    /// The interval of ours, where chance has a part in it: 95 %, or 99.9 % of a loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Numbers beside, by name with the unit last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<&'static str, f64>,
    /// What a reader must know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What a figure is held to.
#[derive(Clone, PartialEq, Debug)]
pub enum Rule {
    /// Within a relative error of what was configured.
    Within {
        /// What was configured.
        target: f64,
        /// The error, 0.01 for 1 %.
        tolerance: f64,
    },
    /// At least a bound, less a share of it.
    AtLeast {
        /// The bound.
        bound: f64,
        /// The share.
        tolerance: f64,
        /// Where it comes from.
        of: &'static str,
    },
    /// At most a bound, and a share more.
    AtMost {
        /// The bound.
        bound: f64,
        /// The share.
        tolerance: f64,
        /// Where it comes from.
        of: &'static str,
    },
    /// As near to what was configured as chance brings a correct link 999 times in 1000.
    Chance {
        /// What was configured.
        target: f64,
        /// The least and the most that chance makes of it.
        between: [f64; 2],
    },
}

impl Rule {
    /// Whether a number passes. Nothing is not a number.
    pub fn holds(&self, ours: f64) -> bool {
        match *self {
            Rule::Within { target, tolerance } => (ours - target).abs() <= tolerance * target.abs(),
            Rule::AtLeast { bound, tolerance, .. } => ours >= bound - tolerance * bound.abs(),
            Rule::AtMost { bound, tolerance, .. } => ours <= bound + tolerance * bound.abs(),
            Rule::Chance { between: [low, high], .. } => (low..=high).contains(&ours),
        }
    }

    /// The relative error, or shortfall, that passes.
    pub fn tolerance(&self) -> f64 {
        match *self {
            Rule::Within { tolerance, .. }
            | Rule::AtLeast { tolerance, .. }
            | Rule::AtMost { tolerance, .. } => tolerance,
            Rule::Chance { target, between: [low, high] } if target > 0.0 => {
                (high - target).max(target - low) / target
            }
            Rule::Chance { .. } => 0.0,
        }
    }

    /// The rule as a reader is told it, with numbers written by `number`.
    pub fn words(&self, number: impl Fn(f64) -> String) -> String {
        let share = |tolerance: f64| number(100.0 * tolerance);
        match *self {
            Rule::Within { target, tolerance: 0.0 } => format!("exactly {}", number(target)),
            Rule::Within { target, tolerance } => format!("{} ± {} %", number(target), share(tolerance)),
            Rule::AtLeast { bound, tolerance: 0.0, of } => format!("at least {of}, {}", number(bound)),
            Rule::AtLeast { bound, tolerance, of } => {
                format!("at least {of}, {}, less {} %", number(bound), share(tolerance))
            }
            Rule::AtMost { bound, tolerance: 0.0, of } => format!("at most {of}, {}", number(bound)),
            Rule::AtMost { bound, tolerance, of } => {
                format!("at most {of}, {}, and {} % more", number(bound), share(tolerance))
            }
            Rule::Chance { target, between: [low, high] } => {
                format!("{} by chance: {} … {}", number(target), number(low), number(high))
            }
        }
    }
}

fn in_words<S: Serializer>(rule: &Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rule.words(|x| format!("{x}")))
}

impl Outcome {
    /// A figure with nothing beside it yet.
    pub(super) fn new(id: String, unit: &'static str, ours: f64, n: u64, rule: Rule) -> Outcome {
        Outcome {
            id,
            original: None,
            ours,
            control: None,
            peers: BTreeMap::new(),
            unit,
            tolerance: rule.tolerance(),
            pass: n > 0 && rule.holds(ours),
            rule,
            n,
            interval: None,
            details: BTreeMap::new(),
            note: String::new(),
        }
    }

    pub(super) fn original(mut self, original: impl Into<Option<f64>>) -> Outcome {
        self.original = original.into();
        self
    }

    pub(super) fn control(mut self, control: impl Into<Option<f64>>) -> Outcome {
        self.control = control.into();
        self
    }

    pub(super) fn peer(mut self, name: &'static str, value: impl Into<Option<f64>>) -> Outcome {
        self.peers.extend(value.into().map(|value| (name, value)));
        self
    }

    pub(super) fn interval(mut self, interval: Option<[f64; 2]>) -> Outcome {
        self.interval = interval;
        self
    }

    pub(super) fn detail(mut self, name: &'static str, value: f64) -> Outcome {
        self.details.insert(name, value);
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Outcome {
        self.note = note.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_passes_up_to_its_bound_and_no_further() {
        let within = Rule::Within { target: 10.0, tolerance: 0.01 };
        assert!(within.holds(10.1) && within.holds(9.9) && !within.holds(10.11) && !within.holds(9.89));
        let exact = Rule::Within { target: 3.0, tolerance: 0.0 };
        assert!(exact.holds(3.0) && !exact.holds(3.0 + 1e-12));
        let least = Rule::AtLeast { bound: 100.0, tolerance: 0.1, of: "the bridge" };
        assert!(least.holds(90.0) && least.holds(1e9) && !least.holds(89.9));
        let most = Rule::AtMost { bound: 2.0, tolerance: 0.5, of: "the control" };
        assert!(most.holds(3.0) && most.holds(-1.0) && !most.holds(3.01));
        let chance = Rule::Chance { target: 1.0, between: [0.9, 1.2] };
        assert!(chance.holds(0.9) && chance.holds(1.2) && !chance.holds(0.89) && !chance.holds(1.21));
        assert!((chance.tolerance() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_number_or_rests_on_nothing_does_not_pass() {
        for rule in [
            Rule::Within { target: 1.0, tolerance: 1.0 },
            Rule::AtLeast { bound: 0.0, tolerance: 0.0, of: "nothing" },
            Rule::AtMost { bound: 0.0, tolerance: 0.0, of: "nothing" },
            Rule::Chance { target: 0.0, between: [0.0, 1.0] },
        ] {
            assert!(!rule.holds(f64::NAN), "{rule:?}");
        }
        let rule = Rule::AtLeast { bound: 1.0, tolerance: 0.0, of: "one" };
        assert!(Outcome::new("x".to_owned(), "links", 2.0, 5, rule.clone()).pass);
        assert!(!Outcome::new("x".to_owned(), "links", 2.0, 0, rule).pass);
    }

    #[test]
    fn a_figure_is_the_object_that_scripts_rely_on() {
        let rule = Rule::Within { target: 512.0, tolerance: 0.01 };
        let outcome = Outcome::new("table-5.1/512".to_owned(), "kbit/s", 511.5, 40, rule)
            .original(508.12)
            .control(Some(600.0))
            .peer("tc tbf", 505.0)
            .peer("tc htb", None);
        let json = serde_json::to_value(&outcome).unwrap();
        let expected = serde_json::json!({
            "id": "table-5.1/512", "original": 508.12, "ours": 511.5, "control": 600.0,
            "peers": { "tc tbf": 505.0 }, "unit": "kbit/s", "tolerance": 0.01, "pass": true,
            "rule": "512 ± 1 %", "n": 40,
        });
        assert_eq!(json, expected);
        let bare = Outcome { original: None, control: None, ..outcome };
        assert!(serde_json::to_value(bare).unwrap()["original"].is_null());
    }
}
