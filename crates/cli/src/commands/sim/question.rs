//! The arguments that every simulation has.

use anyhow::bail;
use clap::Args;
use fastpath::sim::case::Parameter;
use fastpath::sim::shipped;
use fastpath::simulate::{Simulation, WORKLOAD, parse_change};

/// Program, workload, seed and changes.
#[derive(Args)]
pub(in crate::commands) struct Question {
    /// A shipped program (see `fastpath sim --list`), a program file (TOML), or pipeline=RECORDS
    /// with the records of `fastpath measure pipeline`.
    #[arg(short, long, value_name = "PROGRAM")]
    program: Option<String>,
    /// The packets that arrive, in the syntax below `fastpath sim --help`.
    #[arg(short, long, value_name = "WORKLOAD", default_value = WORKLOAD)]
    workload: String,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Change a value: machine.UNIT.FIELD, program.PARAMETER or workload.FIELD. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_change)]
    set: Vec<(Parameter, String)>,
}

impl Question {
    /// The seed.
    pub(in crate::commands) fn seed(&self) -> u64 {
        self.seed
    }

    /// The file of the machine or program `name` with the changes of the arguments.
    pub(super) fn text(&self, name: &str) -> anyhow::Result<String> {
        let machine = shipped::machine_text(name);
        let is_machine = machine.is_some();
        let Some(mut text) = machine.or_else(|| shipped::program_text(name)) else {
            bail!(
                "{name} is neither a shipped machine nor a shipped program; write a name of fastpath sim --list"
            );
        };
        for (parameter, value) in &self.set {
            text = match parameter {
                Parameter::MachineValue(path) if is_machine => text.set(path, value)?,
                Parameter::ProgramValue(path) if !is_machine => text.set(path, value)?,
                other => bail!("--set {other} changes nothing of {name}"),
            };
        }
        if is_machine {
            drop(text.machine()?)
        } else {
            drop(text.program()?)
        }
        Ok(text.text)
    }

    /// The simulation on `machine` that the arguments describe.
    pub(in crate::commands) fn simulation(&self, machine: &str) -> anyhow::Result<Simulation> {
        let Some(program) = &self.program else {
            let known = shipped::PROGRAMS.map(|(name, _)| name).join(", ");
            bail!("name a program: --program NAME (shipped: {known}) or --program FILE");
        };
        if let Some(what) = fastpath::sim::workload::ignored(&self.workload) {
            eprintln!("fastpath: {what}");
        }
        Ok(Simulation {
            workload: self.workload.clone(),
            changes: self.set.clone(),
            seed: self.seed,
            ..Simulation::new(machine, program)
        })
    }
}
