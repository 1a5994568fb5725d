//! `fastpath model fit`: least squares over a table of measurements.

use super::options::Fitting;
use crate::Answer;
use anyhow::{Context, bail};
use clap::Args;
use fastpath::records::read_table;
use fastpath_model::check::{Check, CheckVerdict, MEDIAN_PCT, P95_PCT, check, half};
use fastpath_model::fit::{Fit, fit};
use fastpath_model::output::FitOutput;
use fastpath_model::regime::Limit;
use fastpath_report::text as print;
use std::io::{self, Write};
use std::path::PathBuf;

/// Points in the table; JSON has all.
const WORST_SHOWN: usize = 10;

/// Fit a cost model to a table of measurements.
///
/// The table is CSV, or records of `fastpath measure pipeline`. With --half or --test the exit code
/// is the verdict: 0 the model holds, 1 it misses, 2 the points are too noisy to tell.
#[derive(Args)]
pub(super) struct FitCommand {
    /// The table; `-` reads standard input.
    file: PathBuf,
    /// The column (or product of columns, like cores/rate) to explain.
    #[arg(long, value_name = "COLUMN")]
    y: String,
    /// The terms that explain y: const, columns, products, steps and bends, such as
    /// 'const,p,h,p*h,ceil(p/64),max(p-256,0)'; or auto:p,h to choose terms over some columns by
    /// their leave-one-out errors.
    #[arg(long, value_name = "TERMS")]
    terms: String,
    #[command(flatten)]
    fitting: Fitting,
    /// Check the fit against the rows of another table.
    #[arg(long, value_name = "FILE", conflicts_with = "half")]
    test: Option<PathBuf>,
    /// Fit half of the rows (a checkerboard split of the grid) and check the fit against the
    /// others.
    #[arg(long)]
    half: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl FitCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let options = self.fitting.options(&self.terms)?;
        let whole = read_table(&self.file)?;
        let place = || self.file.display().to_string();
        let (found, checked) = if self.half {
            let (found, checked) = half(&whole, &self.y, &self.terms, &options).with_context(place)?;
            (found, Some(checked))
        } else {
            let found = fit(&whole, &self.y, &self.terms, &options).with_context(place)?;
            let checked = self.test.as_deref().map(|path| {
                check(&found, &read_table(path)?, &options).with_context(|| path.display().to_string())
            });
            (found, checked.transpose()?)
        };
        let output = FitOutput { fit: found, check: checked };
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_value(&output)?)?;
        } else {
            show(&mut out, &output.fit, output.check.as_ref())?;
        }
        answer(output.check.as_ref())
    }
}

/// Returns the exit code of a check, if there was one.
pub(super) fn answer(checked: Option<&Check>) -> anyhow::Result<Answer> {
    match checked.map(|check| check.verdict) {
        None | Some(CheckVerdict::Holds) => Ok(Answer::Yes),
        Some(CheckVerdict::Misses) => Ok(Answer::No),
        Some(CheckVerdict::TooNoisy) => {
            bail!("the points are too noisy to tell: measure them again on a quieter machine")
        }
    }
}

/// Prints how well the points that were not fitted are predicted.
pub(super) fn show_check(out: &mut impl Write, check: &Check) -> io::Result<()> {
    writeln!(
        out,
        "test points   {} with {:.2} % median error, 95 % of them within {:.2} %, largest {:.2} %; {:.1} % in their interval",
        check.n,
        check.median_pct,
        check.p95_pct,
        check.max_pct,
        100.0 * check.covered
    )?;
    if check.capped > 0 {
        writeln!(out, "left out      {} points limited by a line rate or a packet-rate cap", check.capped)?;
    }
    if let Some(repeat) = check.repeat {
        writeln!(
            out,
            "repeats       {} points differ by {:.2} % in the median, 95 % of them by at most {:.2} %",
            repeat.n, repeat.median_pct, repeat.p95_pct
        )?;
    }
    let verdict = match check.verdict {
        CheckVerdict::Holds => "holds",
        CheckVerdict::Misses => {
            "misses: the terms do not explain the cost; try other terms, or a list of columns such as auto:p,h"
        }
        CheckVerdict::TooNoisy => {
            "too noisy to tell: repeated points differ by more than the criterion; measure again on a quieter machine"
        }
    };
    writeln!(
        out,
        "verdict       {verdict} (criterion: {MEDIAN_PCT} % median error, 95 % of the points within {P95_PCT} %)"
    )
}

fn show(out: &mut impl Write, found: &Fit, checked: Option<&Check>) -> io::Result<()> {
    let interval = format!("{} % interval", 100.0 * found.level);
    let mut table = print::table(["term", "coefficient", &interval, "VIF"]);
    for term in found.terms.iter() {
        let c = found.coefficients[term.text()];
        let vif = found.vif.get(term.text()).map_or(String::new(), |v| print::number(*v));
        let range = format!("{} … {}", print::number(c.low), print::number(c.high));
        table.add_row([term.text().to_owned(), print::number(c.value), range, vif]);
    }
    let poor = found.warnings.first().filter(|_| found.is_poor());
    if let Some(poor) = poor {
        writeln!(out, "{poor}\n")?;
    }
    writeln!(out, "{} = {}, {} points\n{table}", found.y, found.terms, found.n)?;
    let r = found.residuals;
    writeln!(out, "R²            {:.6} (corrected {:.6})", found.r2, found.r2_adjusted)?;
    writeln!(
        out,
        "residuals     {:.1} % of the points within 0.5 %, {:.1} % within 1 %, {:.1} % within 3 %; largest {:.2} %",
        100.0 * r.within_0_5_pct,
        100.0 * r.within_1_pct,
        100.0 * r.within_3_pct,
        r.max_pct
    )?;
    writeln!(out, "leave one out {:.2} % median error", found.loo_median_pct)?;
    if let Some(check) = checked {
        show_check(out, check)?;
    }
    for regime in found.regimes.iter().filter(|r| r.limit != Limit::Cpu) {
        let rate = regime.rate.map(print::number).unwrap_or_default();
        let what = if regime.limit == Limit::LineRate { "bit/s on the wire" } else { "packets/s" };
        writeln!(out, "limited       {} points by {rate} {what}", regime.points)?;
    }
    let mut worst: Vec<_> = found.points.iter().collect();
    worst.sort_by(|a, b| b.residual_pct.abs().total_cmp(&a.residual_pct.abs()));
    let mut table = print::table(["line", "measured", "fitted", "residual %", "left out %"]);
    for point in worst.iter().take(WORST_SHOWN) {
        let left_out = point.loo_pct.map_or(String::new(), |x| format!("{x:.2}"));
        table.add_row([
            point.line.to_string(),
            print::number(point.measured),
            print::number(point.fitted),
            format!("{:.2}", point.residual_pct),
            left_out,
        ]);
    }
    writeln!(out, "\nlargest residuals\n{table}")?;
    let mut notes = found.warnings.iter().skip(usize::from(poor.is_some()));
    notes.try_for_each(|warning| writeln!(out, "note: {warning}"))
}
