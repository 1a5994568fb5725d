//! What `fastpath model` prints.

use super::model_text as text;
use super::{Render, json_line};
use fastpath::models::{Assignments, IndexAnswer, LinkCores};
use fastpath_model::assign::Assignment;
use fastpath_model::output::{BudgetOutput, FitOutput, IndexOutput, PredictionOutput};
use fastpath_model::publications::linkem::Comparison;
use fastpath_report::text as print;
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};

impl Render for FitOutput {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::fit(&mut out, &self.fit, self.check.as_ref())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        sorted_line(out, self)
    }
}

impl Render for PredictionOutput {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.model)?;
        self.predictions.iter().try_for_each(|prediction| text::prediction(&mut out, prediction))?;
        self.check.as_ref().map_or(Ok(()), |check| text::check(&mut out, check))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        sorted_line(out, self)
    }
}

impl Render for BudgetOutput {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::budget(&mut out, &self.budget)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        sorted_line(out, self)
    }
}

impl Render for LinkCores {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        let LinkCores { output, at } = self;
        let at: String = at.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
        let why = if output.model_fcs_assumed { " (assumed; if not, give --fcs without)" } else { "" };
        let frames = format!(
            "frame sizes include the FCS; line time adds {} bytes per frame; sizes in the model are {} FCS{why}",
            output.framing_bytes, output.model_fcs
        );
        text::cores(&mut out, &[format!("{}{at}", output.model), frames], &output.rows)?;
        output.warnings.iter().try_for_each(|warning| writeln!(out, "note: {warning}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        sorted_line(out, &self.output)
    }
}

impl Render for IndexAnswer {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        let IndexOutput { index, source, predicted_pps } = &self.output;
        text::index(&mut out, source, index, self.platform.clone().zip(*predicted_pps))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        sorted_line(out, &self.output)
    }
}

impl Render for Assignments {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let comparison = match self {
            Assignments::Best(best) => return assignment(out, "best", best),
            Assignments::Published(comparison) => comparison,
        };
        let Comparison { thesis, best, best_on_two, gain, caveats, .. } = &**comparison;
        assignment(out, "thesis", thesis)?;
        assignment(out, "best", best)?;
        assignment(out, "best on two engines", best_on_two)?;
        writeln!(
            out,
            "the best mapping carries {} times the packets of the mapping of Joglekar 2004",
            print::estimate(*gain)
        )?;
        caveats.iter().try_for_each(|caveat| writeln!(out, "note: {caveat}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Assignments::Published(comparison) => sorted_line(out, comparison),
            Assignments::Best(best) => sorted_line(out, &json!({ "best": best })),
        }
    }
}

fn assignment(out: &mut dyn Write, name: &str, found: &Assignment) -> io::Result<()> {
    let mut table = print::table(["tasks", "engines", "instructions", "cycles between packets"]);
    for group in &found.groups {
        table.add_row([
            group.tasks.join(" + "),
            group.engines.to_string(),
            group.code.to_string(),
            print::number(group.arrival_cycles),
        ]);
    }
    writeln!(out, "{name}: {} packets/s\n{table}", print::estimate(found.packets_per_s))
}

/// Writes a value as one line of JSON whose keys are sorted.
fn sorted_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    json_line(out, &serde_json::to_value(value)?)
}
