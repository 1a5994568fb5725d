//! `fastpath model assign`: the best assignment of tasks to engines.

use crate::Answer;
use clap::Args;
use fastpath::records::read_tasks;
use fastpath_model::assign::{Assignment, NetworkProcessor, best};
use fastpath_model::publications::linkem;
use fastpath_report::text as print;
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
                let found = best(&read_tasks(path)?, &processor)?;
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
