//! The results of a sweep as commands print them.

use super::{Front, Results, Sweep, cell_value};
use crate::output::{Render, json_line};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;

/// The results of a sweep, or the Pareto front of them.
pub struct SweepTable<'s> {
    /// The sweep.
    pub sweep: &'s Sweep,
    /// Its results.
    pub results: &'s Results,
    /// Their Pareto front, if asked for.
    pub front: Option<&'s Front<'s>>,
    /// The number of axes.
    pub axes: usize,
    /// The file that holds the results, if any.
    pub file: Option<&'s Path>,
}

impl Render for SweepTable<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        match (self.front, self.file) {
            (Some(front), _) => writeln!(out, "{}", front.text(&self.sweep.columns(), self.axes)),
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
        let rows: Vec<_> = self.results.rows().map(object).collect();
        let pareto = self.front.map(|front| front.rows.iter().map(|f| object(f.row)).collect::<Vec<_>>());
        let configuration = self.sweep.configuration();
        json_line(out, &json!({ "configuration": configuration, "rows": rows, "pareto": pareto }))
    }
}
