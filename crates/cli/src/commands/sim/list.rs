//! `fastpath sim --list`: the machines and programs that are shipped.

use fastpath_report::text as print;
use fastpath_sim::shipped::{MACHINES, PROGRAMS, machine, program};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) fn show(out: &mut impl Write, is_json: bool) -> io::Result<()> {
    let machines = MACHINES.iter().map(|(name, _)| *name).chain(["ixp1200-egress2"]);
    let machines: Vec<[String; 3]> = machines.filter_map(machine_row).collect();
    let programs: Vec<[String; 3]> = PROGRAMS.iter().filter_map(|(name, _)| program_row(name)).collect();
    if is_json {
        let objects = |rows: &[[String; 3]], key: &str| -> Vec<Value> {
            rows.iter()
                .map(|[name, about, source]| json!({ "name": name, key: about, "source": source }))
                .collect()
        };
        let value =
            json!({ "machines": objects(&machines, "units"), "programs": objects(&programs, "parameters") });
        return writeln!(out, "{value}");
    }
    for (title, about, rows) in [("machine", "units", machines), ("program", "parameters", programs)] {
        let mut table = print::table([title, about, "numbers from"]);
        print::align_left(&mut table, 0..3);
        table.add_rows(rows);
        writeln!(out, "{table}\n")?;
    }
    Ok(())
}

fn machine_row(name: &str) -> Option<[String; 3]> {
    let machine = machine(name)?;
    Some([name.to_owned(), machine.units().join(", "), short(&machine.source)])
}

fn program_row(name: &str) -> Option<[String; 3]> {
    let program = program(name)?;
    Some([name.to_owned(), program.params().join(", "), short(program.source())])
}

/// The first clause of a source, so that a row is a line.
fn short(source: &str) -> String {
    source.split(';').next().unwrap_or(source).trim().to_owned()
}
