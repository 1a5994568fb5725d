//! What tables became, and the way of one packet through them.

use super::rules::SwitchArgs;
use crate::Answer;
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath_jit::Compiled;
use fastpath_switch::interp::{Lookup, Outcome, trace};
use fastpath_switch::ofctl::{self, PortNames};
use fastpath_switch::{Plan, Port, Switch};
use fastpath_units::Time;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Instant;

/// Show the shape that each table takes and why, the code made of them, and the way of one packet.
#[derive(Args)]
pub(super) struct Explain {
    #[command(flatten)]
    switch: SwitchArgs,
    /// A packet: fields as in a rule (in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80), or a frame in hexadecimal.
    #[arg(long, value_name = "PACKET")]
    trace: Option<String>,
    /// The port that a frame in hexadecimal arrives on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    in_port: u32,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        ensure!(self.switch.rules.is_some(), "nothing to explain: give --rules FILE");
        let mut switch = self.switch.switch();
        self.switch.load(&mut switch, &PortNames::new())?;
        let mut out = io::stdout().lock();
        let before = Instant::now();
        match Compiled::new(&mut switch) {
            Ok(compiled) => {
                let milliseconds = before.elapsed().as_secs_f64() * 1e3;
                write!(out, "{}", compiled.live().explain())?;
                writeln!(out, "analysed and compiled in {milliseconds:.2} ms")?;
            }
            Err(error) => {
                writeln!(
                    out,
                    "{}no code: {error}; packets would be interpreted",
                    Plan::new(&mut switch).explain()
                )?;
            }
        }
        if let Some(text) = &self.trace {
            let (in_port, frame) = packet(text, self.in_port)?;
            let mut ports = mentioned(&switch);
            ports.insert(in_port);
            ports.into_iter().for_each(|number| switch.set_port(number, Port::up()));
            show(&mut out, &mut switch, in_port, &frame)?;
        }
        Ok(Answer::Yes)
    }
}

/// The port of entry and the frame that a text stands for.
fn packet(text: &str, in_port: u32) -> anyhow::Result<(u32, Vec<u8>)> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    let is_hex = digits.len() >= 28 && digits.chars().all(|c| c.is_ascii_hexdigit());
    if !is_hex {
        return ofctl::parse_packet(text).map_err(anyhow::Error::msg).context("--trace");
    }
    ensure!(digits.len().is_multiple_of(2), "--trace: {} digits are half a byte too many", digits.len());
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
    let frame: Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(byte).collect();
    match frame {
        Ok(frame) => Ok((in_port, frame)),
        Err(error) => bail!("--trace: {error}"),
    }
}

/// The ports that rules and groups send to: they are taken to be there.
fn mentioned(switch: &Switch) -> BTreeSet<u32> {
    use fastpath_switch::{Action, port};
    let flows = switch.tables().iter().flat_map(|table| table.flows());
    let flows = flows.flat_map(|(_, flow)| flow.instructions.actions().copied().collect::<Vec<_>>());
    let buckets: Vec<_> = switch.groups().flat_map(|(_, group)| group.buckets.iter()).collect();
    let watched = buckets.iter().map(|bucket| bucket.watch_port);
    let actions = flows.chain(buckets.iter().flat_map(|bucket| bucket.actions.iter().copied()));
    let outputs = actions.filter_map(|action| match action {
        Action::Output { port, .. } => Some(port),
        _ => None,
    });
    outputs.chain(watched).filter(|number| (1..=port::MAX).contains(number)).collect()
}

fn show(out: &mut impl Write, switch: &mut Switch, in_port: u32, frame: &[u8]) -> anyhow::Result<()> {
    writeln!(out, "\npacket of {} bytes on port {in_port}", frame.len())?;
    let (lookups, outcomes) = trace(switch, Time::ZERO, in_port, frame);
    for Lookup { table_id, rank, instructions } in lookups {
        match rank {
            None => writeln!(out, "table {table_id}: no flow matches")?,
            Some(rank) => {
                let matching = ofctl::print_match(rank.matching());
                let comma = if matching.is_empty() { "" } else { "," };
                let actions = ofctl::print_instructions(&instructions);
                writeln!(out, "table {table_id}: priority={}{comma}{matching}", rank.priority())?;
                writeln!(out, "         actions={actions}")?;
            }
        }
    }
    for outcome in outcomes {
        match outcome {
            Outcome::Output { port, queue, frame } => {
                let queue = if queue == 0 { String::new() } else { format!(", queue {queue}") };
                writeln!(out, "leaves by port {port}{queue}: {}", hex(&frame))?;
            }
            Outcome::Controller(packet) => {
                writeln!(out, "goes to the controllers ({:?}): {}", packet.reason, hex(&packet.frame))?;
            }
            Outcome::Drop(reason) => writeln!(out, "dropped: {}", reason.name())?,
        }
    }
    Ok(())
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}
