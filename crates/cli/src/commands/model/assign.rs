//! `fastpath model assign`: the best assignment of tasks to engines.

use crate::{Answer, print};
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath::records::read_table;
use fastpath_model::assign::{Assignment, NetworkProcessor, State, Task, best};
use fastpath_model::publications::linkem;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;

/// Find the best assignment of tasks to engines with limited code space.
///
/// Without a table the tasks of Joglekar 2004 (LinkEM) are used, and its mapping is shown too.
#[derive(Args)]
pub(super) struct AssignCommand {
    /// The tasks: a table with the columns name, compute, memory (cycles), code (instructions) and
    /// state (private or shared).
    file: Option<PathBuf>,
    /// Number of engines free for the tasks.
    #[arg(long, default_value_t = 3)]
    engines: u32,
    /// Threads per engine.
    #[arg(long, default_value_t = 4)]
    threads: u32,
    /// Instructions that an engine holds.
    #[arg(long, default_value_t = 2048)]
    code_limit: u32,
    /// Share u of the memory cycles that other threads hide, 0 to 1.
    #[arg(long, value_name = "U", default_value_t = linkem::HIDDEN_CALIBRATED)]
    hidden: f64,
    /// Engine clock in Hz [default: the IXP1200's 232 MHz].
    #[arg(long, value_name = "HZ")]
    clock: Option<f64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl AssignCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let default = linkem::ixp1200();
        let processor = NetworkProcessor {
            engines: self.engines,
            threads: self.threads,
            code_limit: self.code_limit,
            hidden: self.hidden,
            clock_hz: self.clock.unwrap_or(default.clock_hz),
            ..default
        };
        let mut out = io::stdout().lock();
        let (value, named, gain) = match &self.file {
            Some(path) => {
                let found = best(&tasks(path)?, &processor)?;
                (json!({ "best": found }), vec![("best", found)], None)
            }
            None if processor == linkem::ixp1200() => {
                let found = linkem::comparison();
                let gain = found.gain;
                (
                    json!(found),
                    vec![
                        ("thesis", found.thesis),
                        ("best", found.best),
                        ("best on two engines", found.best_on_two),
                    ],
                    Some(gain),
                )
            }
            None => {
                let found = best(&linkem::tasks(), &processor)?;
                (json!({ "best": found }), vec![("best", found)], None)
            }
        };
        if self.json {
            writeln!(out, "{value}")?;
            return Ok(Answer::Yes);
        }
        for (name, assignment) in &named {
            show(&mut out, name, assignment)?;
        }
        if let Some(gain) = gain {
            writeln!(
                out,
                "the best mapping carries {} times the packets of the mapping of Joglekar 2004",
                print::estimate(gain)
            )?;
        }
        for caveat in value["caveats"].as_array().into_iter().flatten() {
            writeln!(out, "note: {}", caveat.as_str().unwrap_or_default())?;
        }
        Ok(Answer::Yes)
    }
}

fn tasks(path: &std::path::Path) -> anyhow::Result<Vec<Task>> {
    let place = || path.display().to_string();
    let rows = read_table(path)?;
    let numbers = |name: &str| -> anyhow::Result<Vec<f64>> {
        let values = rows.numbers(name).with_context(place)?;
        for (i, value) in values.iter().enumerate() {
            ensure!(
                *value >= 0.0,
                "{}: line {}, column `{name}`: {value} is negative",
                place(),
                rows.line(i)
            );
        }
        Ok(values)
    };
    let (names, states) = (rows.texts("name").with_context(place)?, rows.texts("state").with_context(place)?);
    let (compute, memory, code) = (numbers("compute")?, numbers("memory")?, numbers("code")?);
    (0..rows.len())
        .map(|i| {
            let state = match states[i].as_str() {
                "private" => State::Private,
                "shared" => State::Shared,
                other => {
                    bail!("{}: line {}: state `{other}`: write private or shared", place(), rows.line(i))
                }
            };
            let code = code[i];
            ensure!(
                code.fract() == 0.0 && code <= f64::from(u32::MAX),
                "{}: line {}: code {code} is no count of instructions",
                place(),
                rows.line(i)
            );
            Ok(Task {
                name: names[i].clone(),
                compute: compute[i],
                memory: memory[i],
                code: code as u32,
                state,
            })
        })
        .collect()
}

fn show(out: &mut impl Write, name: &str, assignment: &Assignment) -> io::Result<()> {
    let mut table = print::table(["tasks", "engines", "instructions", "cycles between packets"]);
    for group in &assignment.groups {
        table.add_row([
            group.tasks.join(" + "),
            group.engines.to_string(),
            group.code.to_string(),
            print::number(group.arrival_cycles),
        ]);
    }
    writeln!(out, "{name}: {} packets/s\n{table}", print::estimate(assignment.packets_per_s))
}
