//! An experiment: what its file says, and the numbers of its runs and conditions.

use super::axis::{Factor, label};
use super::braces;
use super::expect::Expectation;
use super::metric::Metric;
use super::step::{RunKind, RunStep};
use fastpath_text::fields::Name;
use fastpath_text::mistake::Remarks;
use fastpath_units::Duration;
use fastpath_units::matrix::{checksum, indices};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The tolerance if neither the experiment nor its network has one.
pub(super) const TOLERANCE: Duration = Duration::from_ms(1);

/// An experiment: what varies, what is done, what is measured, what is expected.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// Warnings about its networks, each once: `FILE:LINE:COLUMN: what`.
    pub warnings: Vec<String>,
    /// What varies, in the order of the names.
    pub(super) axes: Vec<Factor>,
    /// The seed of each repetition.
    pub(super) seeds: Vec<u64>,
    /// How often a run is tried that the machine disturbs.
    pub(super) attempts: u32,
    /// A frame that is released later than this is late. `None`: as the network says, or
    /// [`TOLERANCE`].
    pub(super) tolerance: Option<Duration>,
    /// The share of late frames from which a run counts as disturbed.
    pub(super) late_share: f64,
    /// Whether runs with steps are in the virtual time of guests.
    pub(super) is_virtual: bool,
    /// Whether the machine is audited before each run.
    pub(super) audit: bool,
    /// Whether the packets of runs in guests stay, also of those that came to their end.
    pub(super) keeps_packets: bool,
    pub(super) mode: RunKind,
    pub(super) metrics: Vec<Metric>,
    pub(super) expectations: Vec<Expectation>,
    /// The description, if no axis chooses it.
    pub(super) spec: Option<Name>,
    /// The directory of the file; other files are searched there.
    pub(super) base: PathBuf,
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Experiment {
    /// Whether each run is in a guest of its own: in virtual time, and not in a guest already.
    pub(super) fn is_in_guests(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.is_virtual && !fastpath::guest_run::is_inside();
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// The number of conditions: the product of the numbers of values.
    pub(super) fn conditions(&self) -> u64 {
        self.axes.iter().map(|axis| axis.values.len() as u64).product()
    }

    /// The number of runs: conditions times seeds.
    pub fn runs(&self) -> u64 {
        self.conditions() * self.seeds.len() as u64
    }

    /// The seed of a run.
    pub(super) fn seed(&self, run: u64) -> u64 {
        self.seeds[(run / self.conditions()) as usize]
    }

    /// The index of the value of each axis in a run.
    pub(super) fn condition(&self, run: u64) -> Vec<usize> {
        let counts: Vec<u64> = self.axes.iter().map(|axis| axis.values.len() as u64).collect();
        indices(run % self.conditions(), &counts).into_iter().map(|index| index as usize).collect()
    }

    /// The values of a run by the names of the axes.
    pub(super) fn place(&self, run: u64) -> BTreeMap<String, Value> {
        let condition = self.condition(run);
        let values = self
            .axes
            .iter()
            .zip(condition)
            .map(|(axis, index)| (axis.name.clone(), axis.values[index].clone()));
        values.collect()
    }

    /// Replaces `{NAME}` by the value of the axis in a run, and `{seed}` and `{run}` by their
    /// numbers. Other braces stay.
    pub(super) fn fill(&self, text: &str, run: u64) -> String {
        let condition = self.condition(run);
        braces::fill(text, &|word| match word {
            "seed" => Some(Cow::Owned(self.seed(run).to_string())),
            "run" => Some(Cow::Owned(run.to_string())),
            _ => {
                let axis = self.axes.iter().position(|axis| axis.is_word() && axis.name == word)?;
                Some(Cow::Owned(label(&self.axes[axis].values[condition[axis]])))
            }
        })
    }

    /// A mistake at a byte offset of the file, with its place: `FILE:LINE:COLUMN: what`.
    pub(super) fn mistake(&self, at: usize, what: impl std::fmt::Display) -> String {
        let (line, column) = Remarks::new(&self.text).position(at);
        fastpath::at(&self.path, &format!("{line}:{column}: {what}"))
    }

    /// What would be done, as JSON: the matrix, the seeds, the steps or captures, the metrics and
    /// the expectations.
    pub fn json(&self) -> Value {
        let steps = match &self.mode {
            RunKind::Lab(steps) => {
                let step = |step: &RunStep| {
                    let mut json = step.action.json(&str::to_owned);
                    json["name"] = json!(step.name);
                    json
                };
                ("steps", steps.iter().map(step).collect())
            }
            RunKind::Replay(replay) => ("replay", replay.json()),
        };
        let matrix: BTreeMap<&str, &[Value]> =
            self.axes.iter().map(|axis| (axis.name.as_str(), axis.values.as_slice())).collect();
        let mut all = json!({
            "experiment": self.name,
            "configuration": self.configuration(),
            "spec": self.spec.as_deref(),
            "warnings": self.warnings,
            "runs": self.runs(),
            "seeds": self.seeds,
            "matrix": matrix,
            "attempts": self.attempts,
            "tolerance": self.tolerance.map(|tolerance| tolerance.to_string()),
            "late_share": self.late_share,
            "audit": self.audit,
            "keep_packets": self.keeps_packets,
            "time": if self.is_virtual { "virtual" } else { "real" },
            "metrics": self.metrics.iter().map(Metric::json).collect::<Vec<_>>(),
            "expectations": self.expectations.iter().map(Expectation::words).collect::<Vec<_>>(),
        });
        all[steps.0] = steps.1;
        all
    }

    /// Identifies the experiment: a change of its file is another experiment.
    pub fn configuration(&self) -> String {
        checksum(std::slice::from_ref(&self.text))
    }

    /// The text of the file.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}
