//! What tables became, and the way of one packet through them.

use super::rules::{SwitchArgs, number};
use crate::Answer;
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath_jit::Compiled;
use fastpath_switch::interp::{Lookup, Outcome, trace};
use fastpath_switch::ofctl::{self, Described, PortNames};
use fastpath_switch::plan::Part;
use fastpath_switch::{Plan, Port, Switch, TablePlan};
use fastpath_units::Time;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Instant;

/// Show the shape that each table takes and why, the code made of them, and the way of one packet.
#[derive(Args)]
pub(super) struct Explain {
    #[command(flatten)]
    switch: SwitchArgs,
    /// A packet: fields as in a rule (in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80), or a frame in
    /// hexadecimal.
    #[arg(long, value_name = "PACKET")]
    trace: Option<String>,
    /// A port that rules and packets may name, as `fastpath switch` has it: NAME or NAME=KIND. May
    /// be repeated; the order decides the numbers.
    #[arg(long = "port", value_name = "NAME")]
    ports: Vec<String>,
    /// The port that a frame in hexadecimal arrives on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    in_port: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        ensure!(self.switch.rules.is_some(), "nothing to explain: give --rules FILE");
        let mut switch = self.switch.switch();
        let names =
            self.ports.iter().map(|port| port.split_once('=').map_or(port.as_str(), |(name, _)| name));
        let names: PortNames =
            number(names)?.into_iter().map(|(number, name)| (name.to_owned(), number)).collect();
        self.switch.load(&mut switch, &names)?;
        let before = Instant::now();
        let compiled = Compiled::new(&mut switch);
        let milliseconds = before.elapsed().as_secs_f64() * 1e3;
        let way = match &self.trace {
            Some(text) => Some(Way::of(&mut switch, packet(text, self.in_port, &names)?)),
            None => None,
        };
        let mut out = io::stdout().lock();
        if self.json {
            let mut value = match &compiled {
                Ok(compiled) => shapes(compiled.live().plans().map(|(id, plan, ..)| (id, plan))),
                Err(_) => shapes((0..).zip(Plan::new(&mut switch).tables())),
            };
            if let Ok(live) = compiled.as_ref().map(Compiled::live) {
                value["code"] = json!({ "bytes": live.code_bytes(), "tables": live.tables_in_code() });
                value["compile_ms"] = json!(milliseconds);
            }
            value["trace"] = json!(way.as_ref().map(Way::json));
            writeln!(out, "{value}")?;
            return Ok(Answer::Yes);
        }
        match &compiled {
            Ok(compiled) => {
                write!(out, "{}", compiled.live().explain())?;
                writeln!(out, "analysed and compiled in {milliseconds:.2} ms")?;
            }
            Err(error) => {
                let plan = Plan::new(&mut switch).explain();
                writeln!(out, "{plan}no code: {error}; packets would be interpreted")?;
            }
        }
        if let Some(way) = &way {
            way.show(&mut out)?;
        }
        Ok(Answer::Yes)
    }
}

/// For each table with rules, its parts.
fn shapes<'a>(plans: impl Iterator<Item = (u8, &'a TablePlan)>) -> Value {
    let part = |part: &Part| json!({ "rules": part.rules(), "shape": part.shape(), "why": part.to_string(), "bytes": part.bytes() });
    let table = |(id, plan): (u8, &TablePlan)| {
        let depth = format!("{:?}", plan.depth()).to_lowercase();
        let parts: Vec<Value> = plan.base().parts().iter().map(part).collect();
        let (rules, bytes) = (plan.rules().len(), plan.base().bytes());
        let is_default = plan.base().default_rule().is_some();
        json!({ "table": id, "rules": rules, "parsed_to": depth, "bytes": bytes, "parts": parts, "rule_for_the_rest": is_default })
    };
    let tables: Vec<Value> = plans.filter(|(_, plan)| !plan.rules().is_empty()).map(table).collect();
    json!({ "tables": tables })
}

/// The packet that a text stands for.
fn packet(text: &str, in_port: u32, names: &PortNames) -> anyhow::Result<Described> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    let is_hex = digits.len() >= 28 && digits.chars().all(|c| c.is_ascii_hexdigit());
    if !is_hex {
        return ofctl::parse_packet(text, names).map_err(anyhow::Error::msg).context("--trace");
    }
    ensure!(digits.len().is_multiple_of(2), "--trace: {} digits are half a byte too many", digits.len());
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
    let frame: Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(byte).collect();
    match frame {
        Ok(frame) => Ok(Described { in_port, frame, assumed: String::new() }),
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
    let is_port = |number: &u32| (1..=port::MAX).contains(number) || *number == port::LOCAL;
    outputs.chain(watched).filter(is_port).collect()
}

/// The way of one packet.
struct Way {
    packet: Described,
    lookups: Vec<Lookup>,
    outcomes: Vec<Outcome>,
}

impl Way {
    /// Through the tables, with every port there that they mention.
    fn of(switch: &mut Switch, packet: Described) -> Way {
        let mut ports = mentioned(switch);
        ports.insert(packet.in_port);
        ports.into_iter().for_each(|number| switch.set_port(number, Port::up()));
        let (lookups, outcomes) = trace(switch, Time::ZERO, packet.in_port, &packet.frame);
        Way { packet, lookups, outcomes }
    }

    fn show(&self, out: &mut impl Write) -> io::Result<()> {
        let Described { in_port, frame, assumed } = &self.packet;
        let assumed =
            if assumed.is_empty() { String::new() } else { format!("; not said and assumed: {assumed}") };
        writeln!(out, "\npacket of {} bytes on port {in_port}{assumed}", frame.len())?;
        for Lookup { table_id, rank, instructions } in &self.lookups {
            match rank {
                None => writeln!(out, "table {table_id}: no flow matches")?,
                Some(rank) => {
                    let matching = ofctl::print_match(rank.matching());
                    let comma = if matching.is_empty() { "" } else { "," };
                    let actions = ofctl::print_instructions(instructions);
                    writeln!(out, "table {table_id}: priority={}{comma}{matching}", rank.priority())?;
                    writeln!(out, "         actions={actions}")?;
                }
            }
        }
        for outcome in &self.outcomes {
            match outcome {
                Outcome::Output { port, queue, frame } => {
                    let queue = if *queue == 0 { String::new() } else { format!(", queue {queue}") };
                    writeln!(out, "leaves by port {port}{queue}: {}", hex(frame))?;
                }
                Outcome::Controller(packet) => {
                    writeln!(out, "goes to the controllers ({:?}): {}", packet.reason, hex(&packet.frame))?;
                }
                Outcome::Drop(reason) => writeln!(out, "dropped: {}", reason.name())?,
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let lookup = |Lookup { table_id, rank, instructions }: &Lookup| match rank {
            None => json!({ "table": table_id, "matched": false }),
            Some(rank) => json!({
                "table": table_id, "matched": true, "priority": rank.priority(),
                "match": ofctl::print_match(rank.matching()), "actions": ofctl::print_instructions(instructions),
            }),
        };
        let outcome = |outcome: &Outcome| match outcome {
            Outcome::Output { port, queue, frame } => {
                json!({ "output": port, "queue": queue, "frame": hex(frame) })
            }
            Outcome::Controller(packet) => {
                json!({ "controller": format!("{:?}", packet.reason), "frame": hex(&packet.frame) })
            }
            Outcome::Drop(reason) => json!({ "dropped": reason.name() }),
        };
        json!({
            "in_port": self.packet.in_port, "frame": hex(&self.packet.frame), "assumed": self.packet.assumed,
            "lookups": self.lookups.iter().map(lookup).collect::<Vec<_>>(),
            "outcomes": self.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        })
    }
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}
