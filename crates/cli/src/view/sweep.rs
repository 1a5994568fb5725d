//! The results of a sweep as commands print them.

use super::{Render, json_line};
use fastpath::sweep::{CARRIES, COLUMNS_BEFORE_AXES, Front, Results, Sweep, cell_value};
use fastpath_report::text;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;

/// The results of a sweep, or the Pareto front of them.
pub(crate) struct SweepTable<'s> {
    /// The sweep.
    pub(crate) sweep: &'s Sweep,
    /// Its results.
    pub(crate) results: &'s Results,
    /// Their Pareto front, if asked for.
    pub(crate) front: Option<&'s Front<'s>>,
    /// The number of axes.
    pub(crate) axes: usize,
    /// The file that holds the results, if any.
    pub(crate) file: Option<&'s Path>,
}

impl Render for SweepTable<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        match (self.front, self.file) {
            (Some(front), _) => writeln!(out, "{}", front_table(front, &self.sweep.columns(), self.axes)),
            (None, Some(path)) => {
                let (done, all) = (self.results.rows().count(), self.sweep.points());
                writeln!(out, "{}: {done} of {all} points", path.display())
            }
            (None, None) => out.write_all(&self.results.csv()),
        }
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.sweep.columns();
        let object = |row: &[String]| -> Map<String, Value> {
            let cells = columns.iter().zip(row);
            cells.map(|(name, cell)| (name.clone(), cell_value(name, cell))).collect()
        };
        let rows: Vec<_> = self.results.rows().map(|row| object(row.cells())).collect();
        let pareto = self.front.map(|front| front.rows.iter().map(|f| object(f.row)).collect::<Vec<_>>());
        let configuration = self.sweep.configuration();
        json_line(out, &json!({ "configuration": configuration, "rows": rows, "pareto": pareto }))
    }
}

/// Formats the front as a table, followed by the cheapest row that carries its workload. The
/// axes are `axes` of the `columns`, from the third on.
fn front_table(front: &Front<'_>, columns: &[String], axes: usize) -> String {
    let mut table = text::table(["cost", "throughput", "carries it", "bottleneck", "point"]);
    let bottleneck = columns.iter().position(|column| column == "bottleneck").unwrap_or_default();
    for row in &front.rows {
        let axes = columns.iter().zip(row.row).skip(COLUMNS_BEFORE_AXES).take(axes);
        let point: Vec<String> = axes.map(|(name, value)| format!("{name}={value}")).collect();
        table.add_row([
            text::number(row.cost),
            text::number(row.throughput),
            if row.carries { "yes" } else { "no" }.to_owned(),
            row.row[bottleneck].clone(),
            point.join(" "),
        ]);
    }
    match front.rows.iter().find(|row| row.carries) {
        Some(row) => {
            format!("{table}\ncheapest row that carries its workload: cost {}", text::number(row.cost))
        }
        None => format!("{table}\nno row carries its workload (forwards {} % of it)", 100.0 * CARRIES),
    }
}
