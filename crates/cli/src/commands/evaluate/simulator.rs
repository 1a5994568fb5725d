//! `fastpath evaluate simulator`: the shipped machines against every figure published about them.

use super::{Figure, tell, verdict};
use crate::Answer;
use crate::progress::bar;
use clap::Args;
use fastpath_report::text as print;
use fastpath_sim::validation::{Basis, Effort, Kind, ValidationCheck, results};

/// Simulate every published figure of the shipped machines.
///
/// A calibration point was used to set a parameter of the machine. A prediction was not. A
/// qualitative check concerns only the sign of a difference or the shape of a curve. A figure
/// outside its range is shown as a miss, with the reason, and makes the exit code 1. The basis of a
/// range is "given" if the publication or a requirement fixed it before the simulation, and
/// "chosen" if it was set with the simulated figures known.
#[derive(Args)]
pub(super) struct SimulatorCommand {
    /// Take a few seconds: shorter runs.
    #[arg(long)]
    quick: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl SimulatorCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let bar = bar(0, "{msg} {pos}/{len} ({elapsed})");
        let mut progress = |part: &str, done: usize, total: usize| {
            bar.set_length(total as u64);
            bar.set_message(part.to_owned());
            bar.set_position(done as u64);
        };
        let results = results(if self.quick { Effort::Quick } else { Effort::Full }, &mut progress);
        bar.finish_and_clear();
        let mut table = print::table(["figure", "published", "ours", "range", "basis", "used as", ""]);
        for check in &results {
            let kind = match check.kind {
                Kind::Calibration => "calibration",
                Kind::Prediction => "prediction",
                Kind::Qualitative => "qualitative",
            };
            table.add_row([
                check.id.clone(),
                check.original.map_or("–".to_owned(), print::number),
                print::number(check.ours),
                format!("{} … {}", print::number(check.low), print::number(check.high)),
                match check.basis {
                    Basis::Given => "given".to_owned(),
                    Basis::Chosen => "chosen".to_owned(),
                },
                kind.to_owned(),
                verdict(check.pass),
            ]);
        }
        tell(&results, self.json, table, &remarks(&results))
    }
}

impl Figure for ValidationCheck {
    fn pass(&self) -> bool {
        self.pass
    }
}

/// Returns the remarks on the figures. Consecutive figures with the same remark share one.
fn remarks(results: &[ValidationCheck]) -> Vec<String> {
    let mut remarks: Vec<(Vec<&str>, &str)> = Vec::new();
    for check in results {
        match remarks.last_mut() {
            Some((ids, note)) if *note == check.note => ids.push(&check.id),
            _ => remarks.push((vec![&check.id], check.note)),
        }
    }
    let mut told: Vec<String> =
        remarks.iter().map(|(ids, note)| format!("{}: {note}", ids.join(", "))).collect();
    let given = results.iter().filter(|check| check.basis == Basis::Given).count();
    told.push(format!(
        "ranges: {given} are given: a publication (a count, a zero) or a requirement (5 % over a grid) fixed them before the simulation; {} are chosen: set with the simulated figures known, so that a pass shows agreement and not a prediction",
        results.len() - given
    ));
    told
}
