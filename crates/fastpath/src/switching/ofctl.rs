//! The commands of `ovs-ofctl` as OpenFlow messages to a switch, and its answers as text. It is not
//! a connection: the caller sends the bytes and receives those of the switch.
//!
//! ```text
//!  command, lines ── requests ──▶ hello, requests, barrier ──▶ switch ──▶ bytes ── answers ──▶ text, refusals
//! ```
//!
//! Each request carries the number of its line as its transaction id, so that a refusal has a
//! place.

use crate::error::{Error, Result};
use fastpath_ofctl::{self as ofctl, FileRule, PortNames, parse_request, print_instructions, print_match};
use fastpath_openflow::message::{
    self, FlowStats, GroupDescription, HEADER_LEN, Hello, Message, MeterDescription, NO_BUFFER, PortStats,
    Reply, Request,
};
use fastpath_switch::flow::{ALL_TABLES, ANY_GROUP};
use fastpath_switch::{
    Action, Band, BandKind, FlowCommand, FlowFilter, FlowMod, GroupCommand, GroupKind, GroupMod,
    Instructions, MeterCommand, MeterMod, port,
};
use std::fmt::Write;

/// The transaction id of the last request, a barrier. Lines have smaller numbers.
const BARRIER: u32 = u32::MAX;
/// All groups (OFPG_ALL), and all meters (OFPM_ALL).
const ALL_GROUPS: u32 = 0xffff_fffc;
const ALL_METERS: u32 = 0xffff_ffff;
/// The priority that `dump-flows` leaves out (OFP_DEFAULT_PRIORITY).
const PRIORITY: u16 = 32_768;

/// Which flows a command applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All flows within the match.
    Loose,
    /// The flow of exactly this match and priority (`--strict`).
    Strict,
}

/// What a switch has answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answers {
    /// What was asked for, one line each.
    pub text: String,
    /// The lines that the switch refuses, and why.
    pub refused: Vec<(u32, String)>,
}

/// Returns the messages of a command of `ovs-ofctl`: a hello, a request for each line, a barrier.
///
/// # Errors
/// [`Error::Mistakes`] with the places of mistakes in `lines`; [`Error::Argument`] if there is no
/// such command here.
pub fn requests(command: &str, selection: Selection, lines: &str, ports: &PortNames) -> Result<Vec<u8>> {
    let mut messages = vec![(0, Message::Hello(Hello::ours()))];
    match command {
        "add-flow" | "add-flows" => {
            added(lines, ports, &mut messages, |rule| matches!(rule, FileRule::Flow(_)))?;
        }
        "replace-flows" => {
            messages.push((0, flow(FlowMod { command: FlowCommand::Delete, ..everything() })));
            added(lines, ports, &mut messages, |rule| matches!(rule, FileRule::Flow(_)))?;
        }
        "add-group" | "add-groups" | "mod-group" => {
            added(lines, ports, &mut messages, |rule| matches!(rule, FileRule::Group(_)))?;
        }
        "add-meter" | "add-meters" | "mod-meter" => {
            added(lines, ports, &mut messages, |rule| matches!(rule, FileRule::Meter(_)))?;
        }
        "mod-flows" | "del-flows" => selected(command, selection, lines, ports, &mut messages)?,
        "del-groups" => messages.push((1, Message::GroupMod(deleted_groups(lines)?))),
        "del-meter" | "del-meters" => messages.push((1, Message::MeterMod(deleted_meters(lines)?))),
        _ => messages.push((1, shown(command, lines, ports)?)),
    }
    if command.starts_with("mod-") {
        messages.iter_mut().for_each(|(_, message)| match message {
            Message::GroupMod(request) => request.command = GroupCommand::Modify,
            Message::MeterMod(request) => request.command = MeterCommand::Modify,
            _ => {}
        });
    }
    messages.push((BARRIER, Message::BarrierRequest));
    let mut bytes = Vec::new();
    messages.iter().for_each(|(xid, message)| message.encode(*xid, &mut bytes));
    Ok(bytes)
}

fn everything() -> FlowMod {
    FlowMod::add(ALL_TABLES, 0, fastpath_switch::Match::any(), Instructions::default())
}

fn flow(request: FlowMod) -> Message {
    Message::FlowMod { buffer_id: NO_BUFFER, request }
}

/// Adds the requests of lines that `is_asked` accepts.
fn added(
    lines: &str,
    ports: &PortNames,
    messages: &mut Vec<(u32, Message)>,
    is_asked: impl Fn(&FileRule) -> bool,
) -> Result<()> {
    let found = ofctl::parse(lines, ports).map_err(|mistakes| mistaken(&mistakes))?;
    for line in found {
        if !is_asked(&line.rule) {
            let what =
                format!("{}: another command adds this: add-flows, add-groups or add-meters", line.number);
            return Err(Error::Mistakes(vec![what]));
        }
        let message = match line.rule {
            FileRule::Flow(request) => flow(request),
            FileRule::Group(request) => Message::GroupMod(request),
            FileRule::Meter(request) => Message::MeterMod(request),
        };
        messages.push((line.number as u32, message));
    }
    Ok(())
}

fn mistaken(mistakes: &[ofctl::Mistake]) -> Error {
    Error::Mistakes(mistakes.iter().map(ToString::to_string).collect())
}

/// Adds the requests that change or delete flows. A modification names one table (§6.4).
fn selected(
    command: &str,
    selection: Selection,
    lines: &str,
    ports: &PortNames,
    messages: &mut Vec<(u32, Message)>,
) -> Result<()> {
    let command = match (command, selection) {
        ("mod-flows", Selection::Loose) => FlowCommand::Modify,
        ("mod-flows", Selection::Strict) => FlowCommand::ModifyStrict,
        (_, Selection::Loose) => FlowCommand::Delete,
        (_, Selection::Strict) => FlowCommand::DeleteStrict,
    };
    let given = if lines.trim().is_empty() { vec![(1, "")] } else { (1..).zip(lines.lines()).collect() };
    for (number, line) in given {
        let line = line.split('#').next().unwrap_or_default().trim();
        let request = parse_request(line, command, ports);
        let request = request.map_err(|mistake| mistaken(&[ofctl::Mistake { line: number, ..mistake }]))?;
        let is_change = matches!(command, FlowCommand::Modify | FlowCommand::ModifyStrict);
        let tables = if is_change && request.table_id == ALL_TABLES {
            0..ALL_TABLES - 1
        } else {
            request.table_id..request.table_id.saturating_add(1)
        };
        if request.table_id == ALL_TABLES && !is_change {
            messages.push((number as u32, flow(request)));
            continue;
        }
        let of_table = |table_id| (number as u32, flow(FlowMod { table_id, ..request.clone() }));
        messages.extend(tables.map(of_table));
    }
    Ok(())
}

fn number_of(text: &str, key: &str, all: u32) -> Result<u32> {
    let text = text.trim();
    let given = text.strip_prefix(key).and_then(|rest| rest.strip_prefix('='));
    match given {
        None if text.is_empty() => Ok(all),
        Some("all") => Ok(all),
        Some(number) if number.parse::<u32>().is_ok() => Ok(number.parse().unwrap_or(all)),
        _ => Err(Error::Mistakes(vec![format!("1: '{text}'; write {key}=N, or nothing for all")])),
    }
}

fn deleted_groups(lines: &str) -> Result<GroupMod> {
    let id = number_of(lines, "group_id", ALL_GROUPS)?;
    Ok(GroupMod { command: GroupCommand::Delete, id, kind: GroupKind::All, buckets: Vec::new() })
}

fn deleted_meters(lines: &str) -> Result<MeterMod> {
    let id = number_of(lines, "meter", ALL_METERS)?;
    Ok(MeterMod { command: MeterCommand::Delete, id, flags: 0, bands: Vec::new() })
}

/// Returns the request of a command that only shows something.
fn shown(command: &str, lines: &str, ports: &PortNames) -> Result<Message> {
    let filter = || {
        // As in a deletion, everything in the line selects flows.
        let request = parse_request(lines.trim(), FlowCommand::Delete, ports);
        request.map(|request| FlowFilter::of(&request)).map_err(|mistake| mistaken(&[mistake]))
    };
    let request = match command {
        "dump-flows" => Request::Flow(filter()?),
        "dump-aggregate" => Request::Aggregate(filter()?),
        "dump-groups" => Request::GroupDesc(fastpath_switch::group::ALL),
        "dump-meters" => Request::MeterConfig(number_of(lines, "meter", ALL_METERS)?),
        "dump-ports" if lines.trim().is_empty() => Request::PortStats(port::ANY),
        "dump-ports" => {
            let number = ports.get(lines.trim()).copied().or_else(|| lines.trim().parse().ok());
            let unknown =
                || Error::Mistakes(vec![format!("1: '{}'; write the number of a port", lines.trim())]);
            Request::PortStats(number.ok_or_else(unknown)?)
        }
        _ => return Err(Error::Argument(format!("{command}: switches of fastpath have no such command"))),
    };
    Ok(Message::MultipartRequest { flags: 0, request })
}

/// The version of OpenFlow 1.3 in every header (OpenFlow 1.3.5, §7.1).
const VERSION: u8 = 4;

/// Reads what a switch has sent so far; `None` until it has answered every request.
///
/// # Errors
/// [`Error::Argument`] if the bytes are not messages of OpenFlow 1.3.
pub fn answers(bytes: &[u8]) -> Result<Option<Answers>> {
    let odd = |fault: message::Fault| Error::Argument(format!("not an answer of OpenFlow 1.3: {fault}"));
    if let Some(version) = bytes.first().filter(|version| **version != VERSION) {
        return Err(Error::argument(format!("not an answer of OpenFlow 1.3: its version is {version:#x}")));
    }
    let (mut rest, mut found, mut is_complete) = (bytes, Vec::new(), false);
    while let Some(len) = message::frame_len(rest).map_err(odd)? {
        let Some((whole, after)) = rest.split_at_checked(len) else { break };
        found.push(whole);
        rest = after;
        is_complete = whole.get(4..HEADER_LEN) == Some(&BARRIER.to_be_bytes()[..]);
    }
    if !is_complete {
        return Ok(None);
    }
    let mut answers = Answers::default();
    for whole in found {
        let (xid, message) = message::decode(whole).map_err(odd)?;
        match message {
            Message::Error(error) => {
                let why = format!("the switch refuses it (error type {}, code {})", error.kind, error.code);
                answers.refused.push((xid, why));
            }
            Message::MultipartReply { reply, .. } => print_reply(&reply, &mut answers.text),
            _ => {}
        }
    }
    Ok(Some(answers))
}

fn print_reply(reply: &Reply, out: &mut String) {
    match reply {
        Reply::Flow(flows) => flows.iter().for_each(|flow| print_flow(flow, out)),
        Reply::Aggregate { counters, flows } => {
            let (packets, bytes) = (counters.packets, counters.bytes);
            _ = writeln!(out, "packet_count={packets} byte_count={bytes} flow_count={flows}");
        }
        Reply::GroupDesc(groups) => groups.iter().for_each(|group| print_group(group, out)),
        Reply::MeterConfig(meters) => meters.iter().for_each(|meter| print_meter(meter, out)),
        Reply::PortStats(ports) => ports.iter().for_each(|port| print_port(port, out)),
        _ => {}
    }
}

/// Prints a flow as `ovs-ofctl dump-flows` does.
fn print_flow(flow: &FlowStats, out: &mut String) {
    _ = write!(
        out,
        " cookie={:#x}, duration={:.3}s, table={}",
        flow.cookie,
        flow.age.as_secs_f64(),
        flow.table_id
    );
    _ = write!(out, ", n_packets={}, n_bytes={}", flow.counters.packets, flow.counters.bytes);
    for (key, seconds) in [("idle_timeout", flow.idle_timeout), ("hard_timeout", flow.hard_timeout)] {
        if seconds > 0 {
            _ = write!(out, ", {key}={seconds}");
        }
    }
    let mut rank = Vec::new();
    if flow.priority != PRIORITY {
        rank.push(format!("priority={}", flow.priority));
    }
    rank.extend(Some(print_match(&flow.matching)).filter(|text| !text.is_empty()));
    if !rank.is_empty() {
        _ = write!(out, ", {}", rank.join(","));
    }
    _ = writeln!(out, " actions={}", print_instructions(&flow.instructions));
}

fn print_actions(actions: &[Action]) -> String {
    print_instructions(&Instructions { apply: actions.to_vec(), ..Instructions::default() })
}

fn print_group(group: &GroupDescription, out: &mut String) {
    let kind = match group.kind {
        GroupKind::All => "all",
        GroupKind::Select => "select",
        GroupKind::Indirect => "indirect",
        GroupKind::FastFailover => "ff",
    };
    _ = write!(out, " group_id={},type={kind}", group.id);
    for bucket in &group.buckets {
        _ = write!(out, ",bucket=");
        if group.kind == GroupKind::Select {
            _ = write!(out, "weight:{},", bucket.weight);
        }
        if bucket.watch_port != port::ANY {
            _ = write!(out, "watch_port:{},", bucket.watch_port);
        }
        if bucket.watch_group != ANY_GROUP {
            _ = write!(out, "watch_group:{},", bucket.watch_group);
        }
        _ = write!(out, "actions={}", print_actions(&bucket.actions));
    }
    out.push('\n');
}

fn print_meter(meter: &MeterDescription, out: &mut String) {
    let words = [(1, "kbps"), (2, "pktps"), (4, "burst"), (8, "stats")];
    let words: Vec<&str> =
        words.iter().filter(|(bit, _)| meter.flags & bit != 0).map(|(_, word)| *word).collect();
    _ = write!(out, " meter={} {} bands=", meter.id, words.join(" "));
    for Band { kind, rate, burst } in &meter.bands {
        let kind = match kind {
            BandKind::Drop => "drop".to_owned(),
            BandKind::DscpRemark(levels) => format!("dscp_remark prec_level={levels}"),
        };
        _ = write!(out, " type={kind} rate={rate} burst_size={burst}");
    }
    out.push('\n');
}

fn print_port(port: &PortStats, out: &mut String) {
    let c = port.counters;
    _ = writeln!(
        out,
        "  port {:>2}: rx pkts={}, bytes={}, drop={}, errs=0, frame=0, over=0, crc=0",
        port.port, c.rx_packets, c.rx_bytes, c.rx_dropped
    );
    _ = writeln!(
        out,
        "           tx pkts={}, bytes={}, drop={}, errs=0, coll=0",
        c.tx_packets, c.tx_bytes, c.tx_dropped
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_openflow::message::{ErrorMessage, MORE};
    use fastpath_units::Duration;

    fn decoded(command: &str, selection: Selection, lines: &str) -> Vec<(u32, Message)> {
        let ports = PortNames::from([("s1-eth2".to_owned(), 2)]);
        let bytes = requests(command, selection, lines, &ports).unwrap();
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        while let Some(len) = message::frame_len(rest).unwrap() {
            let (whole, after) = rest.split_at(len);
            found.push(message::decode(whole).unwrap());
            rest = after;
        }
        assert_eq!(found.remove(0).1.kind(), 0);
        assert_eq!(found.pop(), Some((BARRIER, Message::BarrierRequest)));
        found
    }

    #[test]
    fn a_flow_may_name_ports_as_interfaces() {
        let found = decoded("add-flow", Selection::Loose, "in_port=1,actions=output:s1-eth2");
        let [(1, Message::FlowMod { request, .. })] = &found[..] else { panic!("{found:?}") };
        assert_eq!(print_instructions(&request.instructions), "output:2");
    }

    #[test]
    fn deletions_select_flows_and_replacement_deletes_first() {
        let found = decoded("del-flows", Selection::Strict, "priority=3,ip");
        let [(1, Message::FlowMod { request, .. })] = &found[..] else { panic!("{found:?}") };
        assert_eq!((request.command, request.priority), (FlowCommand::DeleteStrict, 3));
        assert_eq!(decoded("replace-flows", Selection::Loose, "ip,actions=2\narp,actions=2").len(), 3);
        assert_eq!(decoded("mod-flows", Selection::Loose, "table=7,ip,actions=2").len(), 1);
        assert_eq!(decoded("mod-flows", Selection::Loose, "ip,actions=2").len(), 254);
    }

    #[test]
    fn what_is_unknown_is_refused_with_its_line() {
        let ports = PortNames::new();
        for (command, lines, named) in [
            ("add-flows", "ip,actions=1\nip,actions=ct(alg=sip)", "2: "),
            ("add-flow", "group_id=1,type=all,bucket=output:1", "another command"),
            ("monitor", "", "monitor: switches of fastpath"),
            ("del-groups", "group=1", "write group_id=N"),
            ("dump-flows", "in_prt=1", "in_prt"),
        ] {
            let error = requests(command, Selection::Loose, lines, &ports).unwrap_err().to_string();
            assert!(error.contains(named), "{command}: {error}");
        }
    }

    #[test]
    fn answers_are_printed_as_by_ovs_ofctl_once_the_barrier_is_answered() {
        let FileRule::Flow(request) =
            &ofctl::parse("priority=7,tcp,tp_dst=80,actions=2", &PortNames::new()).unwrap()[0].rule
        else {
            panic!()
        };
        let flow = FlowStats {
            table_id: 0,
            age: Duration::from_ps(1_500_000_000_000),
            priority: 7,
            idle_timeout: 9,
            hard_timeout: 0,
            importance: 0,
            idle: None,
            flags: 0,
            cookie: 5,
            counters: fastpath_switch::Counters { packets: 3, bytes: 180 },
            matching: request.matching.clone(),
            instructions: request.instructions.clone(),
        };
        let mut bytes = Vec::new();
        Message::MultipartReply { flags: MORE, reply: Reply::Flow(vec![flow]) }.encode(1, &mut bytes);
        Message::Error(ErrorMessage { kind: 5, code: 2, data: Vec::new() }).encode(3, &mut bytes);
        assert_eq!(answers(&bytes).unwrap(), None);
        Message::BarrierReply.encode(BARRIER, &mut bytes);
        let found = answers(&bytes).unwrap().unwrap();
        let wanted = " cookie=0x5, duration=1.500s, table=0, n_packets=3, n_bytes=180, idle_timeout=9, \
                      priority=7,tcp,tp_dst=80 actions=output:2\n";
        assert_eq!(found.text, wanted);
        assert_eq!(found.refused, [(3, "the switch refuses it (error type 5, code 2)".to_owned())]);
        assert!(answers(b"GET / HTTP/1.1\r\n").is_err());
    }
}
