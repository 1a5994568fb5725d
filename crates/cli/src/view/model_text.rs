//! What `fastpath model` prints: fits, predictions, indices and budgets as text.

use fastpath_model::Bounded;
use fastpath_model::budget::Budget;
use fastpath_model::check::{Check, CheckVerdict, MEDIAN_PCT, P95_PCT};
use fastpath_model::cores::CoreCount;
use fastpath_model::fit::Fit;
use fastpath_model::index::Index;
use fastpath_model::predict::PointPrediction;
use fastpath_model::regime::Limit;
use fastpath_report::text as print;
use std::io::{self, Write};

/// Points in the table; JSON has all.
const WORST_SHOWN: usize = 10;

/// Prints a fit: its terms, how well it holds, and its largest residuals.
pub(super) fn fit(out: &mut impl Write, found: &Fit, checked: Option<&Check>) -> io::Result<()> {
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
        self::check(out, check)?;
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

/// Prints how well the points that were not fitted are predicted.
pub(super) fn check(out: &mut impl Write, check: &Check) -> io::Result<()> {
    writeln!(
        out,
        "test points   {} with {:.2} % median error, 95 % of them within {:.2} %, largest {:.2} %; {:.1} % in their interval, {:.2} % wide in the median",
        check.n,
        check.median_pct,
        check.p95_pct,
        check.max_pct,
        100.0 * check.covered,
        check.width_pct
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

/// Prints the prediction at a point.
pub(super) fn prediction(out: &mut impl Write, prediction: &PointPrediction) -> io::Result<()> {
    let at: Vec<String> =
        prediction.at.iter().map(|(name, value)| format!("{name} = {}", print::number(*value))).collect();
    writeln!(out, "\nat {}", at.join(", "))?;
    let throughput = prediction.throughput();
    if let Some(frame) = throughput.and_then(|throughput| throughput.frame) {
        let assumed = if frame.assumed { ", assumed" } else { "" };
        writeln!(
            out,
            "  frame          {} bytes {} FCS{assumed}; {} with FCS, {} with preamble and gap",
            print::number(frame.model_bytes),
            frame.fcs,
            print::number(frame.with_fcs_bytes),
            print::number(frame.wire_bytes)
        )?;
    }
    let mut line = |name: &str, value: &str| writeln!(out, "  {name:<14} {value}");
    line("y", &print::estimate(prediction.y))?;
    if let Some(throughput) = throughput {
        line("ns per packet", &print::estimate(throughput.ns_per_packet))?;
        line("packets/s", &print::estimate(throughput.throughput_pps))?;
        line("limited by", throughput.limit.word())?;
    }
    prediction.warnings().iter().try_for_each(|warning| writeln!(out, "  note: {warning}"))
}

/// Prints the cores that links need, below some lines of text.
pub(super) fn cores(out: &mut impl Write, heads: &[String], rows: &[CoreCount]) -> io::Result<()> {
    let titles = ["Gbit/s", "frame B", "steps", "packets/s", "ns per packet", "cores", "whole cores"];
    let mut table = print::table(titles);
    for row in rows {
        table.add_row([
            print::number(row.gbit_per_s),
            print::number(row.frame_bytes),
            print::number(row.steps),
            print::number(row.packets_per_s),
            print::estimate(row.ns_per_packet),
            print::estimate(row.cores),
            row.whole_cores.to_string(),
        ]);
    }
    heads.iter().try_for_each(|head| writeln!(out, "{head}"))?;
    writeln!(out, "{table}")
}

/// Prints an index, and the rate predicted from it.
pub(super) fn index(
    out: &mut impl Write,
    source: &str,
    found: &Index,
    predicted: Option<(String, Bounded)>,
) -> io::Result<()> {
    writeln!(
        out,
        "{source}: M = {}, N = {} µs, L = {} B",
        print::bounded(found.m),
        print::bounded(found.n_s.scaled(1e6)),
        found.length_bytes
    )?;
    let mut table =
        print::table(["platform", "index", "without the factor 8", "predicted by the others, error %"]);
    for platform in &found.platforms {
        let error = platform.left_out_error_pct.map_or(String::new(), |x| format!("{x:+.1}"));
        table.add_row([
            platform.name.clone(),
            print::number(platform.index),
            print::number(platform.index_without_factor_8),
            error,
        ]);
    }
    writeln!(out, "{table}\nindex {}", print::bounded(found.index))?;
    if let Some((low, high)) = found.pairwise_error_pct {
        writeln!(out, "one platform predicts another with an error of {low:+.1} to {high:+.1} %")?;
    }
    if let Some((name, rate)) = predicted {
        writeln!(out, "{name}: {} packets/s", print::bounded(rate))?;
    }
    found.warnings.iter().try_for_each(|warning| writeln!(out, "note: {warning}"))
}

/// Prints the packet rate of a budget.
pub(super) fn budget(out: &mut impl Write, found: &Budget) -> io::Result<()> {
    let mut table = print::table(["", "value and range"]);
    let estimates = [
        ("cycles between packets", Some(found.arrival_cycles)),
        ("by the other formula", Some(found.other_formula_arrival_cycles)),
        ("packets/s", Some(found.packets_per_s)),
        ("cycles a thread holds a packet", Some(found.thread_cycles)),
        ("share of the offered load", found.share_of_offered),
    ];
    for (name, value) in estimates {
        if let Some(value) = value {
            table.add_row([name.to_owned(), print::estimate(value)]);
        }
    }
    if let Some(cycles) = found.offered_cycles {
        table.add_row(["cycles between offered packets".to_owned(), print::number(cycles)]);
    }
    if let Some(u) = found.hidden_needed {
        table.add_row(["hidden share u needed".to_owned(), print::number(u)]);
    }
    writeln!(out, "{table}")?;
    found.warnings.iter().try_for_each(|warning| writeln!(out, "note: {warning}"))
}
