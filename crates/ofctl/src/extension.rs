//! Actions of Open vSwitch, parsed and printed (ovs-actions(7)).

use crate::ct::{parse_ct, print_ct};
use crate::fields::{Meaning, RESERVED, port_number};
use crate::learn::{parse_learn, print_learn};
use crate::subfield::{names_bits, parse_bits, parse_value, print_bits};
use crate::syntax::split;
use crate::{PortNames, Wrong, value, wrong};
use fastpath_switch::action::Action;
use fastpath_switch::extension::{Algorithm, Bits, Bundle, Controller, Extension, HashFields, Multipath};
use fastpath_switch::field::VLAN_PRESENT;
use fastpath_switch::outcome::PacketInReason;
use fastpath_switch::{Field, port};
use std::sync::Arc;

/// The fields that are hashed, by name.
const HASH_FIELDS: [(&str, HashFields); 7] = [
    ("eth_src", HashFields::EthSrc),
    ("symmetric_l4", HashFields::SymmetricL4),
    ("symmetric_l3l4", HashFields::SymmetricL3L4),
    ("symmetric_l3l4+udp", HashFields::SymmetricL3L4Udp),
    ("nw_src", HashFields::NwSrc),
    ("nw_dst", HashFields::NwDst),
    ("symmetric_l3", HashFields::SymmetricL3),
];
/// The algorithms of `multipath`, by name.
const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("modulo_n", Algorithm::Modulo),
    ("hash_threshold", Algorithm::HashThreshold),
    ("hrw", Algorithm::HighestRandomWeight),
    ("iter_hash", Algorithm::Iterative),
];
/// The reasons of packet-ins, by name.
const REASONS: [(&str, PacketInReason); 6] = [
    ("action", PacketInReason::Action),
    ("no_match", PacketInReason::NoMatch),
    ("invalid_ttl", PacketInReason::InvalidTtl),
    ("action_set", PacketInReason::ActionSet),
    ("group", PacketInReason::Group),
    ("packet_out", PacketInReason::PacketOut),
];
/// Actions of Open vSwitch that are refused by name, with what to write.
const MISSING: [(&str, &str); 9] = [
    ("nat", "write it in ct: ct(commit,nat(src=ADDRESS))"),
    ("delete_field", "write set_field:0->FIELD"),
    ("encap", "write push_vlan, push_mpls or push_pbb"),
    ("decap", "write pop_vlan, pop_mpls or pop_pbb"),
    ("dec_nsh_ttl", "remove it; there is no NSH here"),
    ("set_queue_stats", "remove it"),
    ("unroll_xlate", "remove it"),
    ("stack_push", "write push:FIELD"),
    ("stack_pop", "write pop:FIELD"),
];

/// The most parentheses inside each other in the argument of `clone`.
const NESTING_MAX: usize = 18;

/// Parses a list of actions, as the actions inside others are.
type ParseActions = fn(&str, &PortNames, Meaning) -> Result<Vec<Action>, Wrong>;

/// Parses an action of Open vSwitch; `None` if the name is not that of one.
pub(crate) fn parse(
    name: &str,
    argument: &str,
    (ports, meaning): (&PortNames, Meaning),
    parse_actions: ParseActions,
) -> Result<Option<Action>, Wrong> {
    let extension = match name {
        "load" => return load(argument).map(Some),
        "set_field" => return set_field(argument, meaning).map(Some),
        "move" => {
            let (from, to) = arrow(name, argument)?;
            Extension::Move { from: parse_bits(from)?, to: parse_bits(to)? }
        }
        "push" => Extension::Push(parse_bits(argument)?),
        "pop" => Extension::Pop(parse_bits(argument)?),
        "output" if names_bits(argument) => {
            Extension::OutputTo { port: parse_bits(argument)?, max_len: port::NO_BUFFER }
        }
        "output" if argument.contains('=') => truncated(argument, ports)?,
        "resubmit" => resubmit(argument, ports)?,
        "learn" => Extension::Learn(parse_learn(argument)?),
        "multipath" => Extension::Multipath(multipath(argument)?),
        "bundle" | "bundle_load" => Extension::Bundle(bundle(name, argument, ports)?),
        "note" => Extension::Note(note(argument)?),
        "clone" if nesting(argument) > NESTING_MAX => {
            return wrong("actions are nested too deep", "write at most 16 clones inside each other");
        }
        "clone" => Extension::Clone(parse_actions(argument, ports, meaning)?),
        "ct" => Extension::Ct(parse_ct(argument, (ports, meaning), parse_actions)?),
        "ct_clear" if argument.is_empty() => Extension::CtClear,
        "conjunction" => conjunction(argument)?,
        "sample" => sample(argument, ports)?,
        "exit" if argument.is_empty() => Extension::Exit,
        "controller" if !is_plain_controller(argument) => controller(argument)?,
        "enqueue" => enqueue(argument, ports)?,
        "fin_timeout" => fin_timeout(argument)?,
        "debug_recirc" if argument.is_empty() => Extension::DebugRecirc,
        "debug_slow" if argument.is_empty() => Extension::DebugSlow,
        "pop_queue" if argument.is_empty() => Extension::PopQueue,
        "check_pkt_larger" => {
            let Some((len, to)) = argument.split_once(")->") else {
                return wrong("check_pkt_larger has no field", "write check_pkt_larger(BYTES)->FIELD[BIT]");
            };
            let longer_than = value::number(name, len, 0xffff)? as u16;
            Extension::CheckLen { longer_than, to: parse_bits(to)? }
        }
        _ => {
            return match MISSING.iter().find(|(missing, _)| *missing == name) {
                Some((_, instead)) => wrong(format!("{name} is not supported"), *instead),
                None => Ok(None),
            };
        }
    };
    Ok(Some(Action::Extension(Arc::new(extension))))
}

/// Parses `PORT:QUEUE`.
fn enqueue(argument: &str, ports: &PortNames) -> Result<Extension, Wrong> {
    let words: Vec<&str> = argument.split([':', ',']).map(str::trim).collect();
    let [to, queue] = words[..] else {
        return wrong(format!("enqueue cannot be '{argument}'"), "write enqueue:PORT:QUEUE");
    };
    let queue = value::number("queue", queue, u32::MAX.into())? as u32;
    Ok(Extension::Enqueue { port: port_number(to, ports)?, queue })
}

/// Returns the most parentheses that are open at once.
fn nesting(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for c in text.chars() {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

fn arrow<'a>(name: &str, argument: &'a str) -> Result<(&'a str, &'a str), Wrong> {
    match argument.split_once("->") {
        Some((from, to)) => Ok((from.trim(), to.trim())),
        None => wrong(format!("{name} has no -> in '{argument}'"), format!("write {name}:VALUE->FIELD")),
    }
}

/// Parses `VALUE->FIELD[FIRST..LAST]`.
fn load(argument: &str) -> Result<Action, Wrong> {
    let (text, name) = arrow("load", argument)?;
    let to = parse_bits(name)?;
    let below = u32::from(fastpath_switch::nxm::of_bits(to).below);
    let is_whole_tos = below > 0 && (name.ends_with("[]") || !name.contains('['));
    let value = match is_whole_tos {
        true => value::dscp_of_tos("load", text)?,
        false => parse_value("load", to, text)?,
    };
    let (value, mask) = (value << to.from, to.mask());
    Ok(Action::Extension(Arc::new(Extension::Set { field: to.field, value, mask, is_load: true })))
}

/// Parses `VALUE->FIELD` or `VALUE/MASK->FIELD`.
fn set_field(argument: &str, meaning: Meaning) -> Result<Action, Wrong> {
    let Some((text, name)) = argument.split_once("->") else {
        return wrong(format!("set_field has no field in '{argument}'"), "write set_field:VALUE->FIELD");
    };
    let (text, name) = (text.trim(), name.trim());
    let part = match name.starts_with(['r', 'x', 'N', 'O']) {
        true => parse_bits(name).ok(),
        false => None,
    };
    let bits = match part {
        Some(bits) => bits,
        None => Bits::all(meaning.field(name)?),
    };
    let (text, mask) = text.split_once('/').map_or((text, None), |(text, mask)| (text, Some(mask)));
    // The field includes the present bit; ovs-ofctl accepts the id alone.
    let present = if bits.field == Field::VlanVid { u128::from(VLAN_PRESENT) } else { 0 };
    let read = |text: &str| match bits.field {
        Field::InPort => port_number(text, &PortNames::new()).map(u128::from),
        _ => parse_value(name, bits, text),
    };
    let value = read(text)?;
    if mask.is_none() && bits == Bits::all(bits.field) {
        return Ok(Action::SetField(bits.field, value | present));
    }
    let mask = mask.map_or(Ok(bits.ones()), read)?;
    let (value, mask) = ((value & mask) << bits.from, mask << bits.from);
    Ok(Action::Extension(Arc::new(Extension::Set { field: bits.field, value, mask, is_load: false })))
}

/// Parses `port=PORT,max_len=BYTES`.
fn truncated(argument: &str, ports: &PortNames) -> Result<Extension, Wrong> {
    let mut to = None;
    let mut max_len = None;
    for word in split(argument) {
        match word.split_once('=') {
            Some(("port", text)) => to = Some(port_number(text, ports)?),
            Some(("max_len", text)) => {
                max_len = Some(value::number("max_len", text, u32::MAX.into())? as u32)
            }
            _ => return wrong(format!("output has no '{word}'"), "write output(port=PORT,max_len=BYTES)"),
        }
    }
    match (to, max_len) {
        (Some(port), Some(max_len)) => Ok(Extension::Truncated { port, max_len }),
        _ => wrong("output needs a port and max_len", "write output(port=PORT,max_len=BYTES)"),
    }
}

/// Parses `idle_timeout=N,hard_timeout=N`.
fn fin_timeout(argument: &str) -> Result<Extension, Wrong> {
    let (mut idle, mut hard) = (0, 0);
    for word in split(argument) {
        let (key, text) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "idle_timeout" => idle = value::number(key, text, 0xffff)? as u16,
            "hard_timeout" => hard = value::number(key, text, 0xffff)? as u16,
            _ => {
                return wrong(
                    format!("fin_timeout has no '{word}'"),
                    "write fin_timeout(idle_timeout=SECONDS,hard_timeout=SECONDS)",
                );
            }
        }
    }
    Ok(Extension::FinTimeout { idle, hard })
}

/// Parses `PORT`, `PORT,TABLE` or `,TABLE`, and `,ct` behind a table.
fn resubmit(argument: &str, ports: &PortNames) -> Result<Extension, Wrong> {
    let mut words = argument.split(',').map(str::trim);
    let in_port = match words.next().unwrap_or_default() {
        "" => None,
        text => Some(port_number(text, ports)?).filter(|number| *number != port::IN_PORT),
    };
    let table = match words.next().unwrap_or_default() {
        "" => None,
        text => Some(value::number("table", text, 255)? as u8).filter(|table| *table != 255),
    };
    match words.next() {
        None => Ok(Extension::Resubmit { in_port, table, is_original: false }),
        Some("ct") => Ok(Extension::Resubmit { in_port, table, is_original: true }),
        Some(more) => wrong(
            format!("resubmit has no '{more}'"),
            "write resubmit(PORT,TABLE), or resubmit(PORT,TABLE,ct)",
        ),
    }
}

fn of_name<T: Copy>(what: &str, name: &str, names: &[(&str, T)]) -> Result<T, Wrong> {
    match names.iter().find(|(known, _)| *known == name) {
        Some((_, found)) => Ok(*found),
        None => {
            let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            wrong(format!("unknown {what} '{name}'"), format!("write one of {}", names.join(", ")))
        }
    }
}

fn name_of<T: PartialEq>(wanted: &T, names: &'static [(&'static str, T)]) -> &'static str {
    names.iter().find(|(_, value)| value == wanted).map_or("", |(name, _)| name)
}

/// Parses `FIELDS,BASIS,ALGORITHM,LINKS,ARGUMENT,FIELD[…]`.
fn multipath(argument: &str) -> Result<Multipath, Wrong> {
    let words: Vec<&str> = split(argument).collect();
    let [fields, basis, algorithm, links, arg, to] = words[..] else {
        return wrong(
            format!("multipath has six arguments, not {}", words.len()),
            "write multipath(FIELDS,BASIS,ALGORITHM,LINKS,ARGUMENT,FIELD[])",
        );
    };
    Ok(Multipath {
        fields: of_name("fields", fields, &HASH_FIELDS)?,
        basis: value::number("basis", basis, 0xffff)? as u16,
        algorithm: of_name("algorithm", algorithm, &ALGORITHMS)?,
        links: value::number("links", links, 65_536)? as u32,
        argument: value::number("argument", arg, 0xffff_ffff)? as u32,
        to: parse_bits(to)?,
    })
}

/// Parses `FIELDS,BASIS,ALGORITHM,ofport,members:PORT,…`; a field before the members for
/// `bundle_load`.
fn bundle(name: &str, argument: &str, ports: &PortNames) -> Result<Bundle, Wrong> {
    let form = if name == "bundle" { "" } else { "FIELD[]," };
    let example = format!("write {name}(FIELDS,BASIS,ALGORITHM,ofport,{form}members:PORT,…)");
    let Some((head, list)) = argument.split_once("members:").or_else(|| argument.split_once("slaves:"))
    else {
        return wrong(format!("{name} has no members"), example);
    };
    let words: Vec<&str> = split(head).collect();
    let (fields, basis, algorithm, to) = match (words[..].split_at_checked(4), name) {
        (Some(([fields, basis, algorithm, "ofport"], [])), "bundle") => (*fields, *basis, *algorithm, None),
        (Some(([fields, basis, algorithm, "ofport"], [to])), "bundle_load") => {
            (*fields, *basis, *algorithm, Some(parse_bits(to)?))
        }
        _ => return wrong(format!("{name} has other arguments"), example),
    };
    let is_backup = of_name("algorithm", algorithm, &[("active_backup", true), ("hrw", false)])?;
    let members = split(list).map(|text| port_number(text, ports)).collect::<Result<_, _>>()?;
    Ok(Bundle {
        fields: of_name("fields", fields, &HASH_FIELDS)?,
        basis: value::number("basis", basis, 0xffff)? as u16,
        is_backup,
        members,
        to,
    })
}

/// Parses bytes, in hexadecimal, with or without dots.
fn note(argument: &str) -> Result<Vec<u8>, Wrong> {
    bytes_of("note", argument)
}

fn bytes_of(key: &str, argument: &str) -> Result<Vec<u8>, Wrong> {
    let digits: Vec<char> = argument.chars().filter(|c| *c != '.').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).ok();
    match digits.chunks(2).map(|pair| byte(pair).filter(|_| pair.len() == 2)).collect() {
        Some(bytes) => Ok(bytes),
        None => {
            wrong(format!("{key} cannot be '{argument}'"), "write bytes in hexadecimal, for example 01.02.ff")
        }
    }
}

/// Parses `ID,CLAUSE/CLAUSES`, where clauses are counted from 1.
fn conjunction(argument: &str) -> Result<Extension, Wrong> {
    let words: Vec<&str> = argument.split([',', '/']).map(str::trim).collect();
    let [id, clause, clauses] = words[..] else {
        return wrong(format!("conjunction cannot be '{argument}'"), "write conjunction(ID,CLAUSE/CLAUSES)");
    };
    let id = value::number("a conjunction", id, u32::MAX.into())? as u32;
    let clauses = value::number("the number of clauses", clauses, 64)? as u8;
    let clause = value::number("a clause", clause, clauses.into())? as u8;
    match clause.checked_sub(1).filter(|_| clauses >= 2) {
        Some(clause) => Ok(Extension::Conjunction { id, clause, clauses }),
        None => wrong(format!("conjunction cannot be '{argument}'"), "write clauses from 1/2 to 64/64"),
    }
}

/// Parses `probability=N,collector_set_id=N,…`.
fn sample(argument: &str, ports: &PortNames) -> Result<Extension, Wrong> {
    let (mut probability, mut set, mut domain, mut point, mut via, mut direction) = (0, 0, 0, 0, 0, 0);
    for word in split(argument) {
        let (key, text) = word.split_once('=').unwrap_or((word, ""));
        let number = |max: u64| value::number(key, text, max);
        match key {
            "probability" => probability = number(0xffff)? as u16,
            "collector_set_id" => set = number(u32::MAX.into())? as u32,
            "obs_domain_id" => domain = number(u32::MAX.into())? as u32,
            "obs_point_id" => point = number(u32::MAX.into())? as u32,
            "sampling_port" => via = port_number(text, ports)?,
            "ingress" => direction = 1,
            "egress" => direction = 2,
            _ => return wrong(format!("sample has no '{key}'"), "write sample(probability=N,…)"),
        }
    }
    if probability == 0 {
        return wrong("sample has no probability", "write probability=N with N from 1 to 65535");
    }
    let (collector_set, sampling_port) = (set, via);
    Ok(Extension::Sample { probability, collector_set, domain, point, sampling_port, direction })
}

/// Returns whether an action is the output to the controllers: with a length at most.
fn is_plain_controller(argument: &str) -> bool {
    split(argument).all(|word| word.starts_with("max_len=") || !word.contains('=') && word != "pause")
}

/// Parses `reason=R,max_len=N,id=N,userdata=HEX,pause,meter_id=N`.
fn controller(argument: &str) -> Result<Extension, Wrong> {
    let (reason, max_len) = (PacketInReason::Action, port::NO_BUFFER);
    let mut to = Controller { max_len, reason, id: 0, userdata: Vec::new(), meter: None, pauses: false };
    for word in split(argument) {
        match word.split_once('=') {
            Some(("reason", text)) => to.reason = of_name("reason", text, &REASONS)?,
            Some(("max_len", text)) => to.max_len = value::number("max_len", text, 0xffff)? as u16,
            Some(("id", text)) => to.id = value::number("id", text, 0xffff)? as u16,
            Some(("userdata", text)) => to.userdata = bytes_of("userdata", text)?,
            Some(("meter_id", text)) => {
                let id = value::number("meter_id", text, u32::MAX.into())? as u32;
                to.meter = Some(id).filter(|id| *id != 0);
            }
            None if word == "pause" => to.pauses = true,
            _ => {
                return wrong(
                    format!("controller has no '{word}'"),
                    "write controller(reason=R,max_len=N,id=N,userdata=HEX,pause,meter_id=N)",
                );
            }
        }
    }
    Ok(Extension::Controller(to))
}

/// Prints an action of Open vSwitch.
pub(crate) fn print(extension: &Extension, print_actions: fn(&[Action]) -> String) -> String {
    match extension {
        Extension::Set { field, value, mask, is_load } => print_set(*field, *value, *mask, *is_load),
        Extension::Move { from, to } => format!("move:{}->{}", print_bits(*from), print_bits(*to)),
        Extension::Push(bits) => format!("push:{}", print_bits(*bits)),
        Extension::Pop(bits) => format!("pop:{}", print_bits(*bits)),
        Extension::OutputTo { port, .. } => format!("output:{}", print_bits(*port)),
        Extension::Truncated { port, max_len } => {
            format!("output(port={},max_len={max_len})", print_port(*port))
        }
        Extension::Resubmit { in_port, table: None, is_original: false } => {
            format!("resubmit:{}", print_port(in_port.unwrap_or(port::IN_PORT)))
        }
        Extension::Resubmit { in_port, table, is_original } => {
            let port = in_port.map(print_port).unwrap_or_default();
            let table = table.map(|table| table.to_string()).unwrap_or_default();
            format!("resubmit({port},{table}{})", if *is_original { ",ct" } else { "" })
        }
        Extension::FinTimeout { idle, hard } => print_fin_timeout(*idle, *hard),
        Extension::DebugRecirc => "debug_recirc".to_owned(),
        Extension::DebugSlow => "debug_slow".to_owned(),
        Extension::Learn(learn) => print_learn(learn),
        Extension::Multipath(multipath) => {
            let Multipath { fields, basis, algorithm, links, argument, to } = multipath;
            let (fields, algorithm) = (name_of(fields, &HASH_FIELDS), name_of(algorithm, &ALGORITHMS));
            format!("multipath({fields},{basis},{algorithm},{links},{argument},{})", print_bits(*to))
        }
        Extension::Bundle(bundle) => print_bundle(bundle),
        Extension::Note(bytes) => {
            format!("note:{}", hex(bytes))
        }
        Extension::Clone(actions) => format!("clone({})", print_actions(actions)),
        Extension::Conjunction { id, clause, clauses } => {
            format!("conjunction({id},{}/{clauses})", clause + 1)
        }
        Extension::Sample { probability, collector_set, domain, point, sampling_port, direction } => {
            let via = match sampling_port {
                0 => String::new(),
                port => format!(",sampling_port={}", print_port(*port)),
            };
            let direction = ["", ",ingress", ",egress"][usize::from(*direction).min(2)];
            format!(
                "sample(probability={probability},collector_set_id={collector_set},obs_domain_id={domain},\
                 obs_point_id={point}{via}{direction})"
            )
        }
        Extension::Ct(ct) => print_ct(ct, print_actions),
        Extension::CtClear => "ct_clear".to_owned(),
        Extension::Exit => "exit".to_owned(),
        Extension::Controller(controller) => print_controller(controller),
        Extension::Enqueue { port, queue } => format!("enqueue:{}:{queue}", print_port(*port)),
        Extension::PopQueue => "pop_queue".to_owned(),
        Extension::Meter(id) => format!("meter:{id}"),
        Extension::CheckLen { longer_than, to } => {
            format!("check_pkt_larger({longer_than})->{}", print_bits(*to))
        }
    }
}

fn print_fin_timeout(idle: u16, hard: u16) -> String {
    let word = |name, value: u16| (value != 0).then(|| format!("{name}={value}"));
    let words = [word("idle_timeout", idle), word("hard_timeout", hard)];
    format!("fin_timeout({})", words.into_iter().flatten().collect::<Vec<_>>().join(","))
}

/// Prints a packet-in as [`controller`] reads it. What is usual is left out, but not all.
fn print_controller(controller: &Controller) -> String {
    let Controller { max_len, reason, id, userdata, meter, pauses } = controller;
    let mut words = Vec::new();
    if *reason != PacketInReason::Action {
        words.push(format!("reason={}", name_of(reason, &REASONS)));
    }
    if *max_len != port::NO_BUFFER {
        words.push(format!("max_len={max_len}"));
    }
    if *id != 0 {
        words.push(format!("id={id}"));
    }
    if !userdata.is_empty() {
        words.push(format!("userdata={}", hex(userdata)));
    }
    words.extend(pauses.then(|| "pause".to_owned()));
    words.extend(meter.map(|id| format!("meter_id={id}")));
    let is_plain = (*reason, *id, userdata.is_empty(), *meter, *pauses)
        == (PacketInReason::Action, 0, true, None, false);
    if is_plain {
        words.insert(0, "reason=action".to_owned());
    }
    format!("controller({})", words.join(","))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(".")
}

fn print_set(field: Field, value: u128, mask: u128, is_load: bool) -> String {
    let from = mask.trailing_zeros().min(127) as u8;
    let span = Bits {
        field,
        from,
        width: (128 - mask.leading_zeros()).saturating_sub(u32::from(from)).max(1) as u8,
    };
    if is_load && span.mask() == mask {
        return format!("load:{:#x}->{}", value >> from, print_bits(span));
    }
    // The smallest named part that holds the mask.
    let named = fastpath_switch::nxm::of_bits(span);
    let part = named.bits;
    let (low, bits) = (part.from, mask >> part.from);
    let mask = if bits == part.ones() { String::new() } else { format!("/{bits:#x}") };
    format!("set_field:{:#x}{mask}->{}", value >> low, named.short)
}

fn print_bundle(bundle: &Bundle) -> String {
    let Bundle { fields, basis, is_backup, members, to } = bundle;
    let algorithm = if *is_backup { "active_backup" } else { "hrw" };
    let members: Vec<String> = members.iter().map(|port| print_port(*port)).collect();
    let (name, to) = match to {
        None => ("bundle", String::new()),
        Some(to) => ("bundle_load", format!("{},", print_bits(*to))),
    };
    let (fields, members) = (name_of(fields, &HASH_FIELDS), members.join(","));
    format!("{name}({fields},{basis},{algorithm},ofport,{to}members:{members})")
}

/// Prints a port: its reserved name, or its number.
pub(crate) fn print_port(port: u32) -> String {
    match RESERVED.iter().find(|(_, number)| *number == port) {
        Some((name, _)) => name.to_ascii_uppercase(),
        None => port.to_string(),
    }
}
