//! `fastpath evaluate simulator`: the shipped machines against every figure published about them.

use super::{Figure, tell, verdict};
use crate::Answer;
use crate::progress::bar;
use clap::Args;
use fastpath_report::text as print;
use fastpath_sim::validation::{Basis, Effort, Kind, ValidationCheck, results};

/// Simulate every published figure of the shipped machines; exit 1 if one does not come out.
///
/// A calibration point was used to set a number of the machine, a prediction was not, a qualitative
/// check is about a sign or a shape. A figure that does not come out is shown as a miss, with the
/// reason. A range is given where what was published or asked fixes it before anything is
/// simulated, and chosen where we did, with our figures in sight.
#[derive(Args)]
pub(super) struct SimulatorCommand {
    /// Shorter runs: some seconds in all.
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

/// What is to be said of the figures; one remark may be about several in a row.
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
        "ranges: {given} were given before our figures were computed, by what was published (a count, a zero) or asked (5 % over \
         a grid); {} we chose while the machines were built, with their figures known: there, coming out says how well the two \
         agree, and not that it was foreseen",
        results.len() - given
    ));
    told
}
