//! The arguments that every simulation has.

use anyhow::bail;
use clap::Args;
use fastpath::sim::case::{Case, Parameter};
use fastpath::sim::shipped;
use fastpath::simulate::Simulation;
use serde_json::{Map, Value, json};

/// Program, workload, seed and changes.
#[derive(Args)]
pub(in crate::commands) struct Question {
    /// A shipped program (see `sim --list`), a program file (TOML), or pipeline=RECORDS of
    /// `fastpath measure pipeline`.
    #[arg(short, long, value_name = "PROGRAM")]
    program: Option<String>,
    /// The arriving packets.
    #[arg(short, long, value_name = "WORKLOAD", default_value = "line-rate,size=64,duration=10ms")]
    workload: String,
    /// The seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Change a value: machine.UNIT.FIELD, program.PARAMETER or workload.FIELD (may be repeated).
    #[arg(long, value_name = "NAME=VALUE", value_parser = change)]
    set: Vec<(Parameter, String)>,
}

fn change(text: &str) -> Result<(Parameter, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.parse().map_err(|error| format!("{error}"))?, value.to_owned()))
}

impl Question {
    /// The seed.
    pub(in crate::commands) fn seed(&self) -> u64 {
        self.seed
    }

    /// The arguments as parameters of a record: program, changes, and the fields of the workload.
    pub(in crate::commands) fn parameters(&self) -> Map<String, Value> {
        let value = |text: &str| text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number));
        let mut parameters = Map::from_iter([("program".to_owned(), json!(self.program))]);
        let mut fields = self.workload.split(',');
        parameters.insert("workload".to_owned(), json!(fields.next().unwrap_or_default()));
        parameters.extend(fields.filter_map(|f| f.split_once('=')).map(|(k, v)| (k.to_owned(), value(v))));
        parameters.extend(self.set.iter().map(|(target, v)| (target.to_string(), value(v))));
        parameters
    }

    /// The simulation that the arguments describe.
    pub(in crate::commands) fn simulation(&self) -> anyhow::Result<Simulation> {
        let Some(program) = &self.program else {
            let known = shipped::PROGRAMS.map(|(name, _)| name).join(", ");
            bail!("name a program: --program NAME (shipped: {known}) or --program FILE");
        };
        let (program, workload) = (program.clone(), self.workload.clone());
        Ok(Simulation { program, workload, changes: self.set.clone(), seed: self.seed })
    }

    /// The simulation on `machine`.
    pub(in crate::commands) fn case(&self, machine: &str) -> anyhow::Result<Case> {
        Ok(self.simulation()?.on(machine)?)
    }
}
