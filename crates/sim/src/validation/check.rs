//! A published figure next to the simulated one, and the simulations that give it.

use super::quantity::{self, Quantity};
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::program::Program;
use crate::run::run;
use crate::shipped;
use crate::workload::{Sizes, Workload};
use fastpath_units::Duration;
use serde::Serialize;

pub(super) const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1518];
pub(super) const FOUR: [u32; 4] = [0, 1, 2, 3];
pub(super) const TWO: [u32; 2] = [0, 2];

/// The use of a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The figure set a number of the machine.
    Calibration,
    /// The figure was not used.
    Prediction,
    /// A sign or a shape, not a number.
    Qualitative,
}

/// The basis of an accepted range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The publication (a count, a zero) or the task (5 % over a grid): fixed before our figure was
    /// computed.
    Given,
    /// Chosen while the machine was built and our figures were known. A pass shows how well the two
    /// figures agree, not that the agreement was predicted.
    Chosen,
}

/// A published figure, and the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationCheck {
    /// A stable name.
    pub id: String,
    /// What it is, and where it was published.
    #[serde(flatten)]
    pub about: Quantity,
    /// The published figure; `None` if only a sign or a shape was published.
    pub original: Option<f64>,
    /// The simulated one.
    pub ours: f64,
    /// The least value that passes.
    pub low: f64,
    /// The greatest value that passes.
    pub high: f64,
    /// The basis of the range.
    pub basis: Basis,
    /// The use of the published figure.
    pub kind: Kind,
    /// True if our figure is in the range.
    pub pass: bool,
    /// The meaning of the figure and, for a miss, the reason.
    pub note: &'static str,
}

/// The length of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A fifth of the full length: a few seconds in total.
    Quick,
    /// The length of the published report.
    Full,
}

impl Effort {
    pub(super) fn ms(self, full: u64) -> Duration {
        match self {
            Effort::Quick => Duration::from_us(full * 200),
            Effort::Full => Duration::from_ms(full),
        }
    }
}

pub(super) fn check(
    id: impl Into<String>,
    kind: Kind,
    original: impl Into<Option<f64>>,
    ours: f64,
    range: (f64, f64),
    note: &'static str,
) -> ValidationCheck {
    let (low, high) = range;
    let id = id.into();
    ValidationCheck {
        about: quantity::of(&id),
        id,
        original: original.into(),
        ours,
        low,
        high,
        // A range of one value was not chosen.
        basis: if low == high { Basis::Given } else { Basis::Chosen },
        kind,
        pass: (low..=high).contains(&ours),
        note,
    }
}

impl ValidationCheck {
    /// The same check with a given range.
    pub(super) fn given(self) -> ValidationCheck {
        ValidationCheck { basis: Basis::Given, ..self }
    }
}

pub(super) fn shipped(machine: &str, program: &str) -> (Machine, Program) {
    let machine = shipped::machine(machine).expect("a shipped machine");
    (machine, shipped::program(program).expect("a shipped program"))
}

pub(super) fn go(machine: &Machine, program: &Program, workload: &Workload) -> Outcome {
    run(machine, program, workload, 1).expect("shipped files fit each other")
}

/// Line rate of one frame size on some ports.
pub(super) fn line_rate(size: u32, ports: &[u32], duration: Duration) -> Workload {
    Workload { sizes: Sizes::Fixed(size), ports: ports.to_vec(), duration, ..Workload::default() }
}
