//! An evaluation as data: published figures, ours, and the criterion that each is held to. It is
//! the object that `fastpath evaluate emulator --json` prints; `page.rs` shows it.

mod page;

use crate::chart::Axis;
use fastpath_record::Provenance;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of an evaluation, and where they come from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Evaluation {
    /// The evaluated publication: the heading of the page.
    pub title: String,
    /// The tables and figures that the results belong to, in order.
    pub figures: Vec<FigureGroup>,
    /// The results, in the order of the publication.
    pub results: Vec<EvaluatedFigure>,
    /// Results that could not be measured here.
    pub skipped: Vec<SkippedFigure>,
    /// Number of results that meet their criterion.
    pub passed: usize,
    /// Number of results that do not, in measurements that the machine disturbed to the end.
    #[serde(default)]
    pub disturbed: usize,
    /// Number of results.
    pub total: usize,
    /// Notes on several results.
    pub notes: Vec<String>,
    /// Machine, commit, command line and disturbance.
    pub provenance: Provenance,
}

/// A table or figure of a publication: what its results have in common.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FigureGroup {
    /// The beginning of the ids of its results, up to the first slash.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where the original values come from.
    pub original: String,
    /// The x axis: what the second part of an id is, if that is a number.
    pub x: Option<Axis>,
    /// The y axis, if there is a chart.
    pub y: Option<Axis>,
    /// A note on the unit, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The meanings of the other parts of ids: `virtual` is `in virtual time`.
    pub variants: BTreeMap<String, String>,
}

/// One result: the original, ours, and the criterion by which it passes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EvaluatedFigure {
    /// A stable name: the table or figure, then the row or the value on the x axis.
    pub id: String,
    /// The published value; `None` where no number is printed.
    pub original: Option<f64>,
    /// Our value.
    pub ours: f64,
    /// The same measurement without an emulator in the path.
    pub control: Option<f64>,
    /// The same measurement with other programs in the path, in the same run.
    pub peers: BTreeMap<String, f64>,
    /// The unit of all these values.
    pub unit: String,
    /// The largest relative error, or shortfall, that passes.
    pub tolerance: f64,
    /// Whether our value passes.
    pub pass: bool,
    /// What disturbed the measurement, if our value does not pass and the machine took the core
    /// away in every round: the value then says nothing about the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// The criterion as a text.
    pub rule: String,
    /// The criterion.
    pub criterion: Criterion,
    /// Number of packets, echoes or trials behind our value.
    pub n: u64,
    /// The interval of our value if it is subject to chance: 95 %, or 99.9 % for a loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Further numbers, by name with the unit last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, f64>,
    /// A note for the reader.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A result that could not be measured here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SkippedFigure {
    /// Its name.
    pub id: String,
    /// The reason.
    pub reason: String,
}

/// The criterion that a result is held to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Criterion {
    /// Within a relative error of the configured value.
    Within {
        /// The configured value.
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
        /// The name of the bound.
        of: String,
    },
    /// At most a bound, plus a share of it.
    AtMost {
        /// The bound.
        bound: f64,
        /// The share.
        tolerance: f64,
        /// The name of the bound.
        of: String,
    },
    /// Within the range that a correct link has in 999 of 1000 runs.
    Chance {
        /// The configured value.
        target: f64,
        /// The ends of the range.
        between: [f64; 2],
    },
}

impl Criterion {
    /// At least `bound`, less the share `tolerance` of it; `of` says what the bound is.
    pub fn at_least(bound: f64, tolerance: f64, of: impl Into<String>) -> Criterion {
        Criterion::AtLeast { bound, tolerance, of: of.into() }
    }

    /// At most `bound`, plus the share `tolerance` of it; `of` says what the bound is.
    pub fn at_most(bound: f64, tolerance: f64, of: impl Into<String>) -> Criterion {
        Criterion::AtMost { bound, tolerance, of: of.into() }
    }

    /// Whether a value meets the criterion. NaN does not.
    pub fn holds(&self, ours: f64) -> bool {
        match *self {
            Criterion::Within { target, tolerance } => (ours - target).abs() <= tolerance * target.abs(),
            Criterion::AtLeast { bound, tolerance, .. } => ours >= bound - tolerance * bound.abs(),
            Criterion::AtMost { bound, tolerance, .. } => ours <= bound + tolerance * bound.abs(),
            Criterion::Chance { between: [low, high], .. } => (low..=high).contains(&ours),
        }
    }

    /// The relative error, or shortfall, that passes.
    pub fn tolerance(&self) -> f64 {
        match *self {
            Criterion::Within { tolerance, .. }
            | Criterion::AtLeast { tolerance, .. }
            | Criterion::AtMost { tolerance, .. } => tolerance,
            Criterion::Chance { target, between: [low, high] } if target > 0.0 => {
                (high - target).max(target - low) / target
            }
            Criterion::Chance { .. } => 0.0,
        }
    }

    /// The criterion as a text, with numbers written by `number`.
    pub fn text(&self, number: impl Fn(f64) -> String) -> String {
        let share = |tolerance: &f64| number(100.0 * tolerance);
        match self {
            Criterion::Within { target, tolerance: 0.0 } => format!("exactly {}", number(*target)),
            Criterion::Within { target, tolerance } => {
                format!("{} ± {} %", number(*target), share(tolerance))
            }
            Criterion::AtLeast { bound, tolerance: 0.0, of } => {
                format!("at least {of}, {}", number(*bound))
            }
            Criterion::AtLeast { bound, tolerance, of } => {
                format!("at least {of}, {}, less {} %", number(*bound), share(tolerance))
            }
            Criterion::AtMost { bound, tolerance: 0.0, of } => {
                format!("at most {of}, {}", number(*bound))
            }
            Criterion::AtMost { bound, tolerance, of } => {
                format!("at most {of}, {}, plus {} %", number(*bound), share(tolerance))
            }
            Criterion::Chance { target, between: [low, high] } => {
                format!("{}, by chance from {} to {}", number(*target), number(*low), number(*high))
            }
        }
    }
}

impl EvaluatedFigure {
    /// A result without original, control and peers. It passes if it meets the criterion and rests
    /// on at least one observation (`n`).
    pub fn new(id: String, unit: &str, ours: f64, n: u64, criterion: Criterion) -> EvaluatedFigure {
        EvaluatedFigure {
            id,
            original: None,
            ours,
            control: None,
            peers: BTreeMap::new(),
            unit: unit.to_owned(),
            tolerance: criterion.tolerance(),
            pass: n > 0 && criterion.holds(ours),
            disturbed: None,
            rule: criterion.text(|x| format!("{x}")),
            criterion,
            n,
            interval: None,
            details: BTreeMap::new(),
            note: String::new(),
        }
    }

    /// Sets the published value.
    pub fn original(mut self, original: impl Into<Option<f64>>) -> EvaluatedFigure {
        self.original = original.into();
        self
    }

    /// Sets the value without an emulator in the path.
    pub fn control(mut self, control: impl Into<Option<f64>>) -> EvaluatedFigure {
        self.control = control.into();
        self
    }

    /// Adds the value of another program, if there is one.
    pub fn peer(mut self, name: &str, value: impl Into<Option<f64>>) -> EvaluatedFigure {
        self.peers.extend(value.into().map(|value| (name.to_owned(), value)));
        self
    }

    /// Sets the interval.
    pub fn interval(mut self, interval: Option<[f64; 2]>) -> EvaluatedFigure {
        self.interval = interval;
        self
    }

    /// Adds a further number; the name ends in its unit.
    pub fn detail(mut self, name: &str, value: f64) -> EvaluatedFigure {
        self.details.insert(name.to_owned(), value);
        self
    }

    /// Sets what disturbed the measurement. A value that passes is not called disturbed.
    pub fn disturbed(mut self, reason: Option<String>) -> EvaluatedFigure {
        self.disturbed = reason.filter(|_| !self.pass);
        self
    }

    /// Returns the verdict in a word: `ok`, `disturbed` or `MISS`.
    pub fn verdict(&self) -> &'static str {
        match (self.pass, &self.disturbed) {
            (true, _) => "ok",
            (false, Some(_)) => "disturbed",
            (false, None) => "MISS",
        }
    }

    /// Sets the note.
    pub fn note(mut self, note: impl Into<String>) -> EvaluatedFigure {
        self.note = note.into();
        self
    }
}

impl Evaluation {
    /// The figures that are disturbed, by what disturbed them.
    pub fn disturbances(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for result in &self.results {
            if let Some(reason) = &result.disturbed {
                all.entry(reason).or_default().push(&result.id);
            }
        }
        all
    }

    /// The results that could not be measured, by reason.
    pub fn reasons(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for skipped in &self.skipped {
            reasons.entry(&skipped.reason).or_default().push(&skipped.id);
        }
        reasons
    }

    /// Describes the result called `id`, without its table or figure: `configured rate 512 kbit/s,
    /// in virtual time`. Empty where the id says no more than its table or figure.
    pub fn describe(&self, id: &str) -> String {
        let mut parts = id.split('/');
        let of = parts.next().unwrap_or_default();
        let Some(group) = self.figures.iter().find(|group| group.id == of) else { return id.to_owned() };
        let part = |part: &str| match (&group.x, part.parse::<f64>()) {
            (Some(x), Ok(_)) => match x.label.rsplit_once(", ") {
                Some((quantity, unit)) => format!("{quantity} {part} {unit}"),
                None => format!("{} {part}", x.label),
            },
            _ => group.variants.get(part).cloned().unwrap_or_else(|| part.to_owned()),
        };
        parts.map(part).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    fn within(target: f64, tolerance: f64) -> Criterion {
        Criterion::Within { target, tolerance }
    }

    pub(super) fn evaluation() -> Evaluation {
        let result = |id: &str, ours: f64| {
            EvaluatedFigure::new(id.to_owned(), "kbit/s", ours, 40, within(512.0, 0.01))
                .original(508.12)
                .control(600.0)
                .peer("tc tbf", 505.0)
                .note("a note")
        };
        Evaluation {
            title: "An evaluation".to_owned(),
            figures: vec![FigureGroup {
                id: "table-5.1".to_owned(),
                title: "Table 5.1: bandwidth".to_owned(),
                original: "LinkEM, published".to_owned(),
                x: Some(Axis::new("configured rate, kbit/s", Scale::Log10)),
                y: Some(Axis::new("observed rate, kbit/s", Scale::Log10)),
                note: "100 % is 512 kbit/s".to_owned(),
                variants: [("virtual".to_owned(), "in virtual time".to_owned())].into(),
            }],
            results: vec![
                result("table-5.1/512", 511.5).detail("offered_packets_per_second", 7000.0),
                result("table-5.1/512/virtual", 400.0),
            ],
            skipped: vec![SkippedFigure { id: "table-5.1/64".to_owned(), reason: "no rights".to_owned() }],
            passed: 1,
            disturbed: 0,
            total: 2,
            notes: vec!["of all".to_owned()],
            provenance: crate::testing::provenance(),
        }
    }

    #[test]
    fn each_criterion_passes_up_to_its_bound_and_no_further() {
        let ten = within(10.0, 0.01);
        assert!(ten.holds(10.1) && ten.holds(9.9) && !ten.holds(10.11) && !ten.holds(9.89));
        let exact = within(3.0, 0.0);
        assert!(exact.holds(3.0) && !exact.holds(3.0 + 1e-12));
        let least = Criterion::at_least(100.0, 0.1, "the bridge");
        assert!(least.holds(90.0) && least.holds(1e9) && !least.holds(89.9));
        let most = Criterion::at_most(2.0, 0.5, "the control");
        assert!(most.holds(3.0) && most.holds(-1.0) && !most.holds(3.01));
        let chance = Criterion::Chance { target: 1.0, between: [0.9, 1.2] };
        assert!(chance.holds(0.9) && chance.holds(1.2) && !chance.holds(0.89) && !chance.holds(1.21));
        assert!((chance.tolerance() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_value_that_is_not_a_number_or_rests_on_nothing_does_not_pass() {
        for criterion in [
            within(1.0, 1.0),
            Criterion::at_least(0.0, 0.0, "nothing"),
            Criterion::at_most(0.0, 0.0, "nothing"),
            Criterion::Chance { target: 0.0, between: [0.0, 1.0] },
        ] {
            assert!(!criterion.holds(f64::NAN), "{criterion:?}");
        }
        let criterion = Criterion::at_least(1.0, 0.0, "one");
        assert!(EvaluatedFigure::new("x".to_owned(), "links", 2.0, 5, criterion.clone()).pass);
        assert!(!EvaluatedFigure::new("x".to_owned(), "links", 2.0, 0, criterion).pass);
    }

    #[test]
    fn a_result_is_the_object_that_scripts_rely_on() {
        let result =
            EvaluatedFigure::new("table-5.1/512".to_owned(), "kbit/s", 511.5, 40, within(512.0, 0.01))
                .original(508.12)
                .control(Some(600.0))
                .peer("tc tbf", 505.0)
                .peer("tc htb", None);
        let json = serde_json::to_value(&result).unwrap();
        let expected = serde_json::json!({
            "id": "table-5.1/512", "original": 508.12, "ours": 511.5, "control": 600.0,
            "peers": { "tc tbf": 505.0 }, "unit": "kbit/s", "tolerance": 0.01, "pass": true,
            "rule": "512 ± 1 %", "n": 40,
            "criterion": { "kind": "within", "target": 512.0, "tolerance": 0.01 },
        });
        assert_eq!(json, expected);
        let bare = EvaluatedFigure { original: None, control: None, ..result };
        assert!(serde_json::to_value(bare).unwrap()["original"].is_null());
    }

    #[test]
    fn a_value_that_misses_in_a_disturbed_measurement_is_disturbed_and_one_that_passes_is_not() {
        let result = |ours| EvaluatedFigure::new("x".to_owned(), "ms", ours, 5, within(10.0, 0.01));
        let reason = || Some("the machine took the core away".to_owned());
        let verdicts = [result(10.0).disturbed(reason()), result(11.0).disturbed(reason()), result(11.0)]
            .map(|result| {
                (result.verdict(), serde_json::to_value(&result).unwrap().get("disturbed").is_some())
            });
        assert_eq!(verdicts, [("ok", false), ("disturbed", true), ("MISS", false)]);
        let mut evaluation = evaluation();
        evaluation.results[1] = evaluation.results[1].clone().disturbed(reason());
        evaluation.disturbed = 1;
        let page = evaluation.report().markdown();
        assert!(page.contains("disturbed") && !page.contains("MISS"), "{page}");
        assert_eq!(evaluation.disturbances().len(), 1);
    }

    #[test]
    fn an_evaluation_survives_its_json_and_ids_are_described() {
        let evaluation = evaluation();
        let json = serde_json::to_string(&evaluation).unwrap();
        assert_eq!(serde_json::from_str::<Evaluation>(&json).unwrap(), evaluation);
        assert_eq!(
            evaluation.describe("table-5.1/512/virtual"),
            "configured rate 512 kbit/s, in virtual time"
        );
    }
}
