//! Rule files in the syntax of `ovs-ofctl`: flows, groups and meters, one per line, parsed and
//! printed.
//!
//! ```text
//! # comment
//! meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100
//! group_id=1,type=select,bucket=weight:1,actions=output:2,bucket=weight:3,actions=output:3
//! table=0,priority=100,tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=meter:1,dec_ttl,group:1
//! ```
//!
//! Lines of the three commands (`add-flows`, `add-groups`, `add-meters`) may be mixed in one file,
//! in any order. Every mistake is reported with its line and a remedy. Read first: ovs-ofctl(8),
//! ovs-fields(7).
//!
//! # Example
//! A switch with two ports and two rules, one packet, and its counters:
//!
//! ```
//! use fastpath_ofctl::{self as ofctl, PortNames};
//! use fastpath_switch::{Limits, PacketOutcome, Port, Switch, interp};
//! use fastpath_units::Time;
//!
//! let mut switch = Switch::new(Limits::default());
//! (1..=2).for_each(|number| switch.set_port(number, Port::up()));
//! // Rules in the syntax of ovs-ofctl.
//! let rules = "
//!     priority=10,ip,nw_dst=192.0.2.0/24,actions=dec_ttl,output:2
//!     priority=0,actions=drop
//! ";
//! let names = PortNames::new();
//! let lines = ofctl::parse(rules, &names).expect("the rules have no mistake");
//! ofctl::load(&mut switch, Time::ZERO, &lines).expect("the switch accepts the rules");
//!
//! let packet = ofctl::parse_packet("in_port=1,udp,nw_dst=192.0.2.7", &names)?;
//! let outcomes = interp(&mut switch, Time::ZERO, packet.in_port, &packet.frame);
//! assert!(matches!(&outcomes[..], [PacketOutcome::Output { port: 2, .. }]));
//!
//! assert_eq!(switch.tables()[0].hits(), (1, 1)); // looked up, matched
//! assert_eq!(switch.port(2).expect("port 2").counters.tx_packets, 1);
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

mod actions;
pub mod controller;
mod ct;
mod ct_state;
mod doubts;
mod extension;
mod fields;
mod group;
mod learn;
mod packet;
mod print;
mod request;
mod subfield;
mod syntax;
mod trace;
mod value;

pub use actions::print_instructions;
pub use doubts::{Doubt, SwitchShape, doubts};
pub use packet::{Described, parse_packet};
pub use print::print_match;
pub use request::parse_request;
pub use trace::{print_carried, print_fields, print_key, print_step, print_trace, print_tracked};

use fastpath_switch::flow::{self, FlowMod, Instructions, Removed};
use fastpath_switch::{GroupMod, Match, MeterMod, Refusal, Switch};
use fastpath_units::Time;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

/// The priority of a flow without one (OFP_DEFAULT_PRIORITY).
const PRIORITY: u16 = 32_768;
/// The most mistakes that are reported.
const MISTAKES_MAX: usize = 1000;

/// The numbers of ports that rules may name.
pub type PortNames = BTreeMap<String, u32>;

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileRule {
    /// A flow to add.
    Flow(FlowMod),
    /// A group to add.
    Group(GroupMod),
    /// A meter to add.
    Meter(MeterMod),
}

/// A rule and its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleLine {
    /// The line, counted from 1.
    pub number: usize,
    /// The rule.
    pub rule: FileRule,
}

/// A mistake in a rule file. Prints as `LINE: what; remedy`; the caller adds `FILE:` before it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mistake {
    /// The line, counted from 1.
    pub line: usize,
    /// The mistake.
    pub what: String,
    /// The remedy: `write …`.
    pub instead: String,
}

/// A mistake without its line, which the caller knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    what: String,
    instead: String,
}

pub(crate) fn wrong<T>(what: impl Into<String>, instead: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { what: what.into(), instead: instead.into() })
}

impl Wrong {
    fn at(self, line: usize) -> Mistake {
        Mistake { line, what: self.what, instead: self.instead }
    }

    fn refused(refusal: &Refusal) -> Wrong {
        let text = refusal.to_string();
        // The text of a refusal may have a remedy after a semicolon.
        let (what, instead) = text.split_once("; ").unwrap_or((&text, "change or remove this rule"));
        Wrong { what: what.to_owned(), instead: instead.to_owned() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.line, self.what, self.instead)
    }
}

impl std::error::Error for Mistake {}

/// All mistakes in a rule file, in the order of its lines; an error. Prints one per line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else { return Ok(()) };
        write!(f, "{first}")?;
        others.iter().try_for_each(|mistake| write!(f, "\n{mistake}"))
    }
}

impl std::error::Error for Mistakes {}

impl From<Mistake> for Mistakes {
    fn from(one: Mistake) -> Mistakes {
        Mistakes(vec![one])
    }
}

impl Deref for Mistakes {
    type Target = [Mistake];

    fn deref(&self) -> &[Mistake] {
        &self.0
    }
}

impl IntoIterator for Mistakes {
    type Item = Mistake;
    type IntoIter = std::vec::IntoIter<Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Parses a rule file.
///
/// # Errors
/// Every mistake, in the order of lines.
pub fn parse(text: &str, ports: &PortNames) -> Result<Vec<RuleLine>, Mistakes> {
    let (mut lines, mut mistakes) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.split('#').next().unwrap_or_default().trim();
        // The first line of what `ovs-ofctl dump-flows` prints: "OFPST_FLOW reply (OF1.3)
        // (xid=0x2):".
        let is_heading = line.contains(" reply (") && line.ends_with(':');
        if line.is_empty() || is_heading {
            continue;
        }
        match parse_rule(line, ports) {
            Ok(rule) => lines.push(RuleLine { number, rule }),
            Err(wrong) => mistakes.push(wrong.at(number)),
        }
        if mistakes.len() == MISTAKES_MAX {
            break;
        }
    }
    if mistakes.is_empty() { Ok(lines) } else { Err(Mistakes(mistakes)) }
}

/// Adds rules to a switch: meters, then groups, then flows, each in the order of lines.
///
/// # Errors
/// Every rule that the switch refuses; the others are in force.
pub fn load(switch: &mut Switch, now: Time, lines: &[RuleLine]) -> Result<(), Mistakes> {
    let mut mistakes = Vec::new();
    let mut put = |line: &RuleLine, answer: Result<Vec<Removed>, Refusal>| {
        if let Err(refusal) = answer {
            mistakes.push(Wrong::refused(&refusal).at(line.number));
        }
    };
    for line in lines {
        if let FileRule::Meter(request) = &line.rule {
            put(line, switch.meter_mod(now, request));
        }
    }
    for line in lines {
        if let FileRule::Group(request) = &line.rule {
            put(line, switch.group_mod(now, request));
        }
    }
    for line in lines {
        if let FileRule::Flow(request) = &line.rule {
            put(line, switch.flow_mod(now, request));
        }
    }
    mistakes.sort();
    mistakes.truncate(MISTAKES_MAX);
    if mistakes.is_empty() { Ok(()) } else { Err(Mistakes(mistakes)) }
}

fn parse_rule(line: &str, ports: &PortNames) -> Result<FileRule, Wrong> {
    if line.starts_with("group_id=") {
        return group::parse_group(line, ports).map(FileRule::Group);
    }
    if line.starts_with("meter=") {
        return group::parse_meter(line).map(FileRule::Meter);
    }
    parse_flow(line, ports).map(FileRule::Flow)
}

/// Parses a flow: `KEY=VALUE,…,actions=ACTION,…`.
fn parse_flow(line: &str, ports: &PortNames) -> Result<FlowMod, Wrong> {
    let Some((head, list)) = split_actions(line) else {
        return wrong("a flow needs actions", "end the line with actions=ACTION,… or actions=drop");
    };
    let mut request = FlowMod::add(0, PRIORITY, Match::any(), Instructions::default());
    let mut fields = fields::Fields::new(ports);
    let mut seen = SeenSettings::default();
    for word in words(head) {
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
        if flow_setting(&mut request, key, value)? {
            seen.once(key)?;
        } else {
            fields.add(key, value)?;
        }
    }
    let (matching, meaning) = fields.finish()?;
    request.matching = matching;
    request.instructions = actions::parse_instructions(list, ports, meaning)?;
    Ok(request)
}

/// Parses a setting of the flow that is not part of its match. Returns false if the key is not such
/// a setting.
fn flow_setting(request: &mut FlowMod, key: &str, value: Option<&str>) -> Result<bool, Wrong> {
    let flag = match key {
        "send_flow_rem" => flow::flags::SEND_FLOW_REM,
        "check_overlap" => flow::flags::CHECK_OVERLAP,
        "reset_counts" => flow::flags::RESET_COUNTS,
        "no_packet_counts" => flow::flags::NO_PACKET_COUNTS,
        "no_byte_counts" => flow::flags::NO_BYTE_COUNTS,
        _ => 0,
    };
    request.flags |= flag;
    if flag != 0 && value.is_some() {
        return wrong(format!("{key} has no value"), format!("write {key}"));
    }
    let text = value.unwrap_or_default();
    match key {
        _ if flag != 0 => {}
        "table" => request.table_id = value::number(key, text, 254)? as u8,
        "priority" => request.priority = value::number(key, text, 0xffff)? as u16,
        "cookie" => request.cookie = value::number(key, text, u64::MAX)?,
        "idle_timeout" => request.idle_timeout = value::number(key, text, 0xffff)? as u16,
        "hard_timeout" => request.hard_timeout = value::number(key, text, 0xffff)? as u16,
        // Printed by dumps; ignored.
        "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// The keys of a rule so far.
#[derive(Default)]
struct SeenSettings<'a>(Vec<&'a str>);

impl<'a> SeenSettings<'a> {
    /// Refuses a key that was there before: one of its values would be ignored.
    fn once(&mut self, key: &'a str) -> Result<(), Wrong> {
        if self.0.contains(&key) {
            return wrong(format!("{key} is given twice"), "write it once");
        }
        self.0.push(key);
        Ok(())
    }
}

/// Splits a line into the parts before and after `actions=`.
fn split_actions(line: &str) -> Option<(&str, &str)> {
    line.split_once("actions=").or_else(|| line.split_once("action="))
}

/// Splits at commas and spaces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod every_word_tests;
#[cfg(test)]
mod tests;
