//! The machines, programs and experiments that are shipped, as commands print them.

use super::{Render, json_line};
use fastpath::sim::experiment::EXPERIMENTS;
use fastpath::sim::shipped::{MACHINES, PROGRAMS, machine, program};
use fastpath::simulate::ExperimentResults;
use fastpath_report::text as print;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The shipped machines and programs.
pub(crate) struct Shipped;

impl Shipped {
    /// Returns name, units and source of each machine.
    fn machines() -> Vec<[String; 3]> {
        let names = MACHINES.iter().map(|(name, _)| *name).chain(["ixp1200-egress2"]);
        let row = |name: &str| {
            let machine = machine(name)?;
            Some([name.to_owned(), machine.units().join(", "), first_clause(&machine.source)])
        };
        names.filter_map(row).collect()
    }

    /// Returns name, parameters and source of each program.
    fn programs() -> Vec<[String; 3]> {
        let row = |(name, _): &(&str, &str)| {
            let program = program(name)?;
            Some([(*name).to_owned(), program.params().join(", "), first_clause(program.source())])
        };
        PROGRAMS.iter().filter_map(row).collect()
    }
}

impl Render for Shipped {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (title, about, rows) in
            [("machine", "units", Self::machines()), ("program", "parameters", Self::programs())]
        {
            let mut table = print::table([title, about, "numbers from"]);
            print::align_left(&mut table, 0..3);
            table.add_rows(rows);
            writeln!(out, "{table}\n")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let objects = |rows: &[[String; 3]], key: &str| -> Vec<Value> {
            rows.iter()
                .map(|[name, about, source]| json!({ "name": name, key: about, "source": source }))
                .collect()
        };
        let machines = objects(&Self::machines(), "units");
        json_line(out, &json!({ "machines": machines, "programs": objects(&Self::programs(), "parameters") }))
    }
}

/// The first clause of a source, so that a row is a line.
fn first_clause(source: &str) -> String {
    source.split(';').next().unwrap_or(source).trim().to_owned()
}

/// The published measurement set-ups.
pub(crate) struct Experiments;

impl Render for Experiments {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        EXPERIMENTS.iter().try_for_each(|(name, about)| writeln!(out, "{name}: {about}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = EXPERIMENTS.map(|(name, about)| json!({ "name": name, "about": about }));
        json_line(out, &json!({ "experiments": all }))
    }
}

impl Render for ExperimentResults {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = self.points.first() else { return Ok(()) };
        let mut table = print::table(["machine", "program", "size"]);
        let titles = ["machine", "program", "size"].into_iter().chain(first.found.keys().copied());
        table.set_header(titles.map(|title| title.replace('_', " ")));
        for point in &self.points {
            let place = [point.machine.clone(), point.program.clone(), point.size.to_string()];
            table.add_row(place.into_iter().chain(point.found.values().map(|x| print::number(*x))));
        }
        writeln!(out, "{table}")
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &json!({ "experiment": self.name, "results": self.points }))
    }
}
