//! The structures made from the tables of a switch, and the path of one packet through them.

use crate::error::{Error, Result};
use fastpath_jit::Compiled;
use fastpath_ofctl::{self as ofctl, Described, PortNames};
use fastpath_plan::{Plan, Subtable, TablePlan};
use fastpath_switch::outcome::{DropReason, Learned, PacketOutcome};
use fastpath_switch::trace::{Lookup, Trace, TraceEvent, TraceStep};
use fastpath_switch::{Action, ConnectionFields, Port, Switch, interp, port};
use fastpath_units::Time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Instant;

/// The shapes of the tables of a switch, the code made of them, and the path of a packet.
pub struct Explanation {
    tables: Value,
    text: String,
    path: Option<PacketPath>,
}

/// Explains the tables of a switch, and the path of `packet` if one is given: fields as in a rule
/// (`in_port=1,tcp,nw_dst=10.0.0.1`), or a frame in hexadecimal that arrives on `in_port`.
///
/// # Errors
/// [`Error::Argument`] if the packet cannot be read.
pub fn explain(
    switch: &mut Switch,
    names: &PortNames,
    packet: Option<&str>,
    in_port: u32,
) -> Result<Explanation> {
    let before = Instant::now();
    let compiled = Compiled::new(switch);
    let milliseconds = before.elapsed().as_secs_f64() * 1e3;
    let packet = packet.map(|text| parse_packet(text, in_port, names)).transpose()?;
    let path = packet.map(|packet| PacketPath::of(switch, names, packet));
    let (mut tables, text) = match &compiled {
        Ok(compiled) => {
            let live = compiled.live();
            let mut tables = shapes(live.plans().map(|(id, plan, ..)| (id, plan)));
            tables["code"] = json!({ "bytes": live.code_bytes(), "tables": live.tables_in_code() });
            tables["compile_ms"] = json!(milliseconds);
            (tables, format!("{}analysed and compiled in {milliseconds:.2} ms\n", live.explain()))
        }
        Err(error) => {
            let plan = Plan::new(switch);
            let text = format!("{}no code: {error}; packets would be interpreted\n", plan.explain());
            (shapes((0..).zip(plan.tables())), text)
        }
    };
    tables["trace"] = json!(path.as_ref().map(PacketPath::json));
    Ok(Explanation { tables, text, path })
}

impl Explanation {
    /// Returns the explanation as JSON: `tables`, `code`, `compile_ms`, `trace`.
    pub fn json(&self) -> &Value {
        &self.tables
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.path.as_ref().map_or(Ok(()), |path| write!(f, "{path}"))
    }
}

/// Returns the parts of each table with rules.
fn shapes<'a>(plans: impl Iterator<Item = (u8, &'a TablePlan)>) -> Value {
    let part = |part: &Subtable| json!({ "rules": part.rules(), "shape": part.shape(), "why": part.to_string(), "bytes": part.bytes() });
    let table = |(id, plan): (u8, &TablePlan)| {
        let depth = format!("{:?}", plan.depth()).to_lowercase();
        let parts: Vec<Value> = plan.base().subtables().iter().map(part).collect();
        let (rules, bytes) = (plan.rules().len(), plan.base().bytes());
        let is_default = plan.base().default_rule().is_some();
        json!({ "table": id, "rules": rules, "parsed_to": depth, "bytes": bytes, "parts": parts, "rule_for_the_rest": is_default })
    };
    let tables: Vec<Value> = plans.filter(|(_, plan)| !plan.rules().is_empty()).map(table).collect();
    json!({ "tables": tables })
}

/// Parses fields as in a rule, or a frame in hexadecimal.
fn parse_packet(text: &str, in_port: u32, names: &PortNames) -> Result<Described> {
    let refuse = |error: String| Error::Argument(format!("--packet: {error}"));
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    let is_hex = digits.len() >= 28 && digits.chars().all(|c| c.is_ascii_hexdigit());
    if !is_hex {
        return ofctl::parse_packet(text, names).map_err(|error| refuse(error.to_string()));
    }
    if !digits.len().is_multiple_of(2) {
        return Err(refuse(format!("{} hexadecimal digits; write two for each byte", digits.len())));
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
    let frame: std::result::Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(byte).collect();
    let frame = frame.map_err(|error| refuse(error.to_string()))?;
    Ok(Described { in_port, frame, assumed: String::new() })
}

/// Returns the ports that rules and groups send to, the reserved ones too.
fn mentioned(switch: &Switch) -> BTreeSet<u32> {
    let flows = switch.tables().iter().flat_map(|table| table.flows());
    let flows = flows.flat_map(|(_, flow)| flow.instructions.actions());
    let buckets: Vec<_> = switch.groups().flat_map(|(_, group)| group.buckets.iter()).collect();
    let watched = buckets.iter().map(|bucket| bucket.watch_port);
    let actions = flows.chain(buckets.iter().flat_map(|bucket| &bucket.actions));
    let outputs = actions.flat_map(Action::ports);
    outputs.chain(watched).collect()
}

/// Whether a number is that of a port of the switch.
fn is_port(number: u32) -> bool {
    (1..=port::MAX).contains(&number) || number == port::LOCAL
}

/// The word of a reserved port that sends to all other ports.
fn flooding_word(number: u32) -> Option<&'static str> {
    Some(match number {
        port::NORMAL => "NORMAL",
        port::FLOOD => "FLOOD",
        port::ALL => "ALL",
        _ => return None,
    })
}

/// The path of one packet through the tables.
struct PacketPath {
    packet: Described,
    trace: Trace,
    /// The names of ports, by number. Without any the switch has the ports that its tables mention.
    names: BTreeMap<u32, String>,
    /// The ports that were declared for this packet alone.
    declared: BTreeSet<u32>,
    /// What sends to all other ports, if no port is declared.
    undeclared: Option<&'static str>,
}

impl PacketPath {
    /// Sends a packet through the tables. The declared ports, and every port that the tables
    /// mention, are up.
    fn of(switch: &mut Switch, names: &PortNames, packet: Described) -> PacketPath {
        let mentioned = mentioned(switch);
        let names: BTreeMap<u32, String> =
            names.iter().map(|(name, number)| (*number, name.clone())).collect();
        let ports = mentioned.iter().copied().filter(|number| is_port(*number));
        let declared = names.keys().copied().filter(|number| switch.port(*number).is_none()).collect();
        for number in ports.chain(names.keys().copied()).chain([packet.in_port]).collect::<BTreeSet<_>>() {
            if switch.port(number).is_none() {
                switch.set_port(number, Port::up());
            }
        }
        let has_others = names.keys().any(|number| *number != packet.in_port);
        let undeclared = mentioned.iter().find_map(|number| flooding_word(*number)).filter(|_| !has_others);
        let trace = interp::trace(switch, Time::ZERO, packet.in_port, &packet.frame);
        PacketPath { packet, trace, names, declared, undeclared }
    }

    /// The word that floods, where a packet has no other port only because none is declared.
    fn flooded_nowhere(&self, outcome: &PacketOutcome) -> Option<&'static str> {
        self.undeclared.filter(|_| *outcome == PacketOutcome::Drop(DropReason::NoOtherPort))
    }

    /// The word that floods to the ports that the rules mention, because none is declared.
    fn flooded_word(&self) -> Option<&'static str> {
        let is_sent =
            self.trace.outcomes.iter().any(|outcome| matches!(outcome, PacketOutcome::Output { .. }));
        self.undeclared.filter(|_| is_sent)?;
        let actions = lookups(&self.trace).flat_map(|(_, lookup)| lookup.instructions.actions());
        let words = actions.filter_map(|action| match action {
            Action::Output { port, .. } => flooding_word(*port),
            _ => None,
        });
        words.last()
    }

    /// A port as text: `p2` if it was declared by that name, `port 7` otherwise.
    fn port(&self, number: u32) -> String {
        match self.names.get(&number) {
            Some(name) if *name == format!("p{number}") && self.declared.contains(&number) => name.clone(),
            _ => format!("port {number}"),
        }
    }

    /// The declared ports of the packet whose name does not have their number.
    fn named(&self) -> Vec<String> {
        let outputs = self.trace.outcomes.iter().filter_map(|outcome| match outcome {
            PacketOutcome::Output { port, .. } => Some(*port),
            _ => None,
        });
        let ports: BTreeSet<u32> = outputs.chain([self.packet.in_port]).collect();
        let name = |number: u32| Some((number, self.names.get(&number)?));
        let named = ports.into_iter().filter_map(name);
        let named = named.filter(|(number, name)| **name != format!("p{number}"));
        named.map(|(number, name)| format!("port {number} is {name}")).collect()
    }

    fn json(&self) -> Value {
        let lookup = |(depth, lookup): (usize, &Lookup)| {
            let Lookup { table_id, rank, instructions, connection, key } = lookup;
            let mut line = match rank {
                None => json!({ "table": table_id, "matched": false }),
                Some(rank) => json!({
                    "table": table_id, "matched": true, "priority": rank.priority(),
                    "match": ofctl::print_match(rank.matching()), "actions": ofctl::print_instructions(instructions),
                }),
            };
            (line["depth"], line["registers"]) = (json!(depth), json!(ofctl::print_carried(key)));
            if let Some(state) = ofctl::print_tracked(connection) {
                let ConnectionFields { zone, mark, label, .. } = connection;
                line["ct"] =
                    json!({ "state": state, "zone": zone, "mark": mark, "label": format!("{label:#x}") });
            }
            line
        };
        let outcome = |outcome: &PacketOutcome| match outcome {
            PacketOutcome::Output { port, queue, frame } => {
                let mut output = json!({ "output": port, "queue": queue, "frame": hex(frame) });
                if let Some(name) = self.names.get(port) {
                    output["name"] = json!(name);
                }
                output
            }
            PacketOutcome::Controller(packet) => {
                json!({ "controller": format!("{:?}", packet.reason), "frame": hex(&packet.frame) })
            }
            PacketOutcome::Learn(learned) => {
                json!({ "learned": print_learned(learned), "table": learned.table_id() })
            }
            PacketOutcome::Drop(reason) => match self.flooded_nowhere(outcome) {
                Some(word) => json!({ "flooded": word, "ports": [] }),
                None => json!({ "dropped": reason.name() }),
            },
        };
        json!({
            "in_port": self.packet.in_port, "frame": hex(&self.packet.frame), "assumed": self.packet.assumed,
            "lookups": lookups(&self.trace).map(lookup).collect::<Vec<_>>(),
            "steps": self.trace.steps.iter().map(step_json).collect::<Vec<_>>(),
            "final_flow": ofctl::print_key(&self.trace.ended),
            "looked_at": ofctl::print_fields(self.trace.looked_at.iter().copied()),
            "outcomes": self.trace.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        })
    }
}

/// Returns the lookups of a path, and how deep each is in others.
fn lookups(trace: &Trace) -> impl Iterator<Item = (usize, &Lookup)> {
    trace.steps.iter().filter_map(|TraceStep { depth, event }| match event {
        TraceEvent::Lookup(lookup) => Some((*depth, &**lookup)),
        _ => None,
    })
}

/// Returns a step of a path as JSON.
fn step_json(TraceStep { depth, event }: &TraceStep) -> Value {
    let kind = match event {
        TraceEvent::Lookup(_) => "lookup",
        TraceEvent::Action(_) => "action",
        TraceEvent::ActionSet => "action-set",
        TraceEvent::Bucket { .. } => "bucket",
        TraceEvent::Metered { .. } => "meter",
        TraceEvent::Tracked(_) => "tracked",
        TraceEvent::Located(_) => "normal",
    };
    json!({ "depth": depth, "kind": kind, "text": ofctl::print_step(event) })
}

/// Prints a learned flow as a rule, or the timeouts of the rule that were lowered.
fn print_learned(learned: &Learned) -> String {
    let (priority, matching, rest) = match learned {
        Learned::Flow { flow, .. } => {
            let actions = ofctl::print_instructions(&flow.instructions);
            (flow.priority, &flow.matching, format!("actions={actions}"))
        }
        Learned::Timeouts { rank, idle, hard, .. } => {
            (rank.priority(), rank.matching(), format!("idle_timeout<={idle},hard_timeout<={hard}"))
        }
    };
    let matching = ofctl::print_match(matching);
    let comma = if matching.is_empty() { "" } else { "," };
    format!("priority={priority}{comma}{matching},{rest}")
}

impl fmt::Display for PacketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Described { in_port, frame, assumed } = &self.packet;
        let assumed = if assumed.is_empty() { String::new() } else { format!("; assumed: {assumed}") };
        writeln!(f, "\npacket of {} bytes on port {in_port}{assumed}", frame.len())?;
        f.write_str(&ofctl::print_trace(&self.trace))?;
        for outcome in &self.trace.outcomes {
            match outcome {
                PacketOutcome::Output { port, queue, frame } => {
                    let queue = if *queue == 0 { String::new() } else { format!(", queue {queue}") };
                    writeln!(f, "output to {}{queue}: {}", self.port(*port), hex(frame))?;
                }
                PacketOutcome::Controller(packet) => {
                    writeln!(f, "sent to the controllers ({:?}): {}", packet.reason, hex(&packet.frame))?;
                }
                PacketOutcome::Learn(learned) => {
                    writeln!(f, "learned in table {}: {}", learned.table_id(), print_learned(learned))?;
                }
                PacketOutcome::Drop(reason) => match self.flooded_nowhere(outcome) {
                    Some(word) => writeln!(
                        f,
                        "forwarded to every other port ({word}): none is declared; write --port p1 --port p2"
                    )?,
                    None => writeln!(f, "dropped: {}", reason.name())?,
                },
            }
        }
        if let Some(word) = self.flooded_word() {
            writeln!(f, "{word}: only the ports that the rules mention; declare the others by --port")?;
        }
        let named = self.named();
        if named.is_empty() { Ok(()) } else { writeln!(f, "{}", named.join(", ")) }
    }
}

/// Formats a frame in hexadecimal.
fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}
