//! Traffic of ns-2 and Emulab: agents on nodes, and the sources that send over them.
//!
//! ```text
//!  Application/Traffic/CBR ─ attach-agent ─▶ Agent/UDP ─ connect ─▶ Agent/Null
//!        start, stop                        on a node              on a node
//! ```
//!
//! Parameters and defaults are those of ns-2 (ns-default.tcl); in a script of Emulab a CBR source
//! has Emulab's (ns2ir/traffic.tcl). A packet of `packetSize_` bytes is a datagram with that
//! payload, as Emulab's traffic generator sends it.

use crate::objects::{made, node, shown, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{Agent, AgentClass, Object, Source, SourceKind, SourceValues, Switch, SwitchAct};
use crate::state::Interp;
use crate::syntax::Value;
use crate::{class_values, quantity, tcp};
use fastpath_text::mistake::{Code, choice, nearest};
use fastpath_units::Time;
use std::collections::BTreeMap;

/// Values of agents and sources that colour and count packets in pictures and traces.
const VISUAL: [&str; 6] = ["fid_", "class_", "type_", "prio_", "flowid_", "color_"];
/// The values of a source.
const VALUES: [&str; 9] = [
    "packetSize_",
    "packet_size_",
    "rate_",
    "interval_",
    "burst_time_",
    "idle_time_",
    "shape_",
    "maxpkts_",
    "iptos_",
];
/// The commands of an agent, and of a source.
const AGENT_METHODS: [&str; 8] =
    ["attach-app", "attach-source", "attach-traffic", "set", "send", "sendmsg", "start", "stop"];
const SOURCE_METHODS: [&str; 8] =
    ["attach-agent", "attach", "set", "start", "stop", "send", "produce", "producemore"];
/// Commands of them that are ignored, with a warning.
const ELSEWHERE: [&str; 20] = [
    "add-var-trace",
    "agent",
    "attach-trace",
    "clear",
    "close",
    "cmd",
    "connect",
    "dst-addr",
    "eventtrace",
    "join-group",
    "leave-group",
    "monitor",
    "namtrace",
    "port",
    "print",
    "reset",
    "target",
    "trace",
    "tracevar",
    "use-rng",
];
/// The largest payload of an agent of ns-2 (`Agent/UDP set packetSize_`).
pub(crate) const MESSAGE_MAX: u32 = 1000;

/// The sinks of TCP.
const SINKS: [&str; 6] =
    ["TCPSink", "TCPSink/DelAck", "TCPSink/Sack1", "TCPSink/Sack1/DelAck", "TCPSink/Asym", "TCPSink/QS"];

/// The words of sources after `Application/` or `Traffic/`.
const SOURCES: [(&str, SourceKind); 6] = [
    ("CBR", SourceKind::Constant),
    ("Poisson", SourceKind::Poisson),
    ("Exponential", SourceKind::Exponential),
    ("Pareto", SourceKind::Pareto),
    ("FTP", SourceKind::Ftp),
    ("Telnet", SourceKind::Telnet),
];

/// `new Agent/UDP`, `new Application/Traffic/CBR`, with the values of the class. `None` for classes
/// of other things.
pub(crate) fn new(tcl: &mut Interp, class: &str) -> Option<TclResult> {
    Some(make(tcl, class)?.and_then(|handle| {
        set_of_class(tcl, class, &handle)?;
        Ok(handle)
    }))
}

/// Sets the values that a class gives to its objects.
fn set_of_class(tcl: &mut Interp, class: &str, handle: &Value) -> Result<(), Interrupt> {
    for [key, value] in class_values::of(tcl, class) {
        let words = [Value::from("set"), key, value];
        match tcl.simulator.object(handle) {
            Some(Object::Agent(agent)) => agent_method(tcl, agent, &words)?,
            Some(Object::Source(source)) => source_method(tcl, source, &words)?,
            _ => return Ok(()),
        };
    }
    Ok(())
}

fn make(tcl: &mut Interp, class: &str) -> Option<TclResult> {
    if let Some(class) = class.strip_prefix("Agent/") {
        if matches!(class, "CBR" | "CBR/UDP" | "CBR/UDP/TG") {
            return Some(new_agent(tcl, AgentClass::Udp, Some(SourceKind::Constant)));
        }
        let known = match class {
            "UDP" | "UDP/TG" => AgentClass::Udp,
            "Null" | "LossMonitor" => AgentClass::Sink,
            sink if SINKS.contains(&sink) => AgentClass::TcpSink,
            sink if sink.starts_with("TCPSink") => {
                let instead = choice(sink, SINKS).replacen("write ", "write new Agent/", 1);
                return Some(mistake(format!("there is no class 'Agent/{sink}'"), instead));
            }
            tcp if tcp == "TCP" || tcp.starts_with("TCP/") => AgentClass::Tcp,
            _ => return None,
        };
        if known != AgentClass::Tcp {
            return Some(new_agent(tcl, known, None));
        }
        return Some(tcp::new(class).and_then(|values| {
            let handle = new_agent(tcl, known, None)?;
            tcl.simulator.agents.last_mut().expect("an agent was added").tcp = Some(values);
            Ok(handle)
        }));
    }
    let class = ["Application/", "Source/"].iter().find_map(|of| class.strip_prefix(of)).unwrap_or(class);
    let name = class.strip_prefix("Traffic/").unwrap_or(class);
    let (_, kind) = SOURCES.iter().find(|(known, _)| *known == name)?;
    Some(new_source(tcl, *kind).map(|(_, handle)| handle))
}

fn new_agent(tcl: &mut Interp, class: AgentClass, own: Option<SourceKind>) -> TclResult {
    let index = tcl.simulator.agents.len();
    let (creation, handle) = made(tcl, Object::Agent(index))?;
    let source = own.map(|kind| {
        tcl.simulator.sources.push(Source { agent: Some(index), ..Source::new(creation, kind) });
        tcl.simulator.sources.len() - 1
    });
    let values = BTreeMap::new();
    tcl.simulator.agents.push(Agent {
        made: creation,
        class,
        node: None,
        peer: None,
        source,
        values,
        tcp: None,
    });
    Ok(handle)
}

/// An agent of a class that is not known here: traffic may go to it.
pub(crate) fn new_other(tcl: &mut Interp) -> TclResult {
    new_agent(tcl, AgentClass::Other, None)
}

fn new_source(tcl: &mut Interp, kind: SourceKind) -> Result<(usize, Value), Interrupt> {
    let index = tcl.simulator.sources.len();
    let (creation, handle) = made(tcl, Object::Source(index))?;
    tcl.simulator.sources.push(Source::new(creation, kind));
    Ok((index, handle))
}

/// The commands of `$ns` about agents. `None` if `name` is another command.
pub(crate) fn simulator(tcl: &mut Interp, name: &str, words: &[Value]) -> Option<TclResult> {
    Some(match (name, words) {
        ("attach-agent", [at, agent]) => attach_to_node(tcl, at, agent),
        ("attach-tbf-agent", [at, agent, _]) => {
            tcl.warn(Code::Ignored, "no token bucket shapes this agent: it is attached without");
            attach_to_node(tcl, at, agent)
        }
        ("attach-agent", _) => usage("$ns attach-agent $node $agent"),
        ("connect", [a, b]) => connect(tcl, a, b),
        ("connect", _) => usage("$ns connect $udp $null"),
        ("create-connection" | "create-connection-list", [from, a, to, b, flow @ ..]) if flow.len() < 2 => {
            create_connection(tcl, [from, to], [a, b], name.ends_with("list"))
        }
        ("create-connection" | "create-connection-list", _) => {
            usage("$ns create-connection UDP $n0 Null $n1 0")
        }
        _ => return None,
    })
}

fn attach_to_node(tcl: &mut Interp, at: &Value, word: &Value) -> TclResult {
    // Emulab's documentation has both orders of the words.
    let (at, word) = match tcl.simulator.object(at.trim()) {
        Some(Object::Agent(_)) => (word, at),
        _ => (at, word),
    };
    let node = node(tcl, at)?;
    if matches!(tcl.simulator.object(word.trim()), Some(Object::Other)) {
        tcl.warn(Code::Ignored, "attach-agent of an object that is ignored is ignored");
        return Ok(Value::default());
    }
    let agent = agent(tcl, word)?;
    tcl.simulator.agents[agent].node = Some(node);
    Ok(Value::default())
}

fn connect(tcl: &mut Interp, a: &Value, b: &Value) -> TclResult {
    let is_other = |word: &Value| matches!(tcl.simulator.object(word.trim()), Some(Object::Other));
    if is_other(a) || is_other(b) {
        tcl.warn(Code::Ignored, "connect of an object that is ignored is ignored");
        return Ok(a.clone());
    }
    let (from, to) = (agent(tcl, a)?, agent(tcl, b)?);
    if from == to {
        return mistake("the agent is connected to itself", "write $ns connect $udp0 $null0");
    }
    if tcl.now.is_some() {
        tcl.warn(Code::Different, "what is connected by an event is connected from the start");
    }
    tcl.simulator.agents[from].peer = Some(to);
    tcl.simulator.agents[to].peer = Some(from);
    Ok(a.clone())
}

fn create_connection(tcl: &mut Interp, classes: [&Value; 2], nodes: [&Value; 2], is_list: bool) -> TclResult {
    let mut handles = Vec::new();
    for (class, at) in classes.into_iter().zip(nodes) {
        let Some(handle) = new(tcl, &format!("Agent/{}", class.trim())) else {
            return mistake(
                format!("there is no class 'Agent/{}'", &**class),
                "write UDP, TCP, Null or TCPSink",
            );
        };
        let handle = handle?;
        attach_to_node(tcl, at, &handle)?;
        handles.push(handle);
    }
    connect(tcl, &handles[0], &handles[1])?;
    Ok(match is_list {
        true => Value::from(format!("{} {}", &*handles[0], &*handles[1])),
        false => handles.swap_remove(0),
    })
}

fn agent(tcl: &mut Interp, word: &Value) -> Result<usize, Interrupt> {
    match tcl.simulator.object(word.trim()) {
        Some(Object::Agent(agent)) => Ok(agent),
        Some(Object::Broken) => Err(Interrupt::Reported),
        _ => {
            mistake(format!("{} is not an agent", shown(tcl, word)), "write set udp0 [new Agent/UDP] before")
        }
    }
}

/// A command of an agent.
pub(crate) fn agent_method(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    let Agent { class, source: own, .. } = tcl.simulator.agents[index];
    if let Some(outcome) = tcp::method(tcl, index, words) {
        return outcome;
    }
    match words {
        [name, class] if matches!(&**name, "attach-app" | "attach-source") => {
            let class = class.trim();
            let kind = class.strip_prefix("Traffic/").unwrap_or(class);
            let Some((_, kind)) = SOURCES.iter().find(|(known, _)| *known == kind) else {
                let known: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
                return mistake(
                    format!("there is no application '{class}'"),
                    format!("write one of {}", known.join(", ")),
                );
            };
            let (source, handle) = new_source(tcl, *kind)?;
            tcl.simulator.sources[source].agent = Some(index);
            set_of_class(tcl, &format!("Application/{class}"), &handle)?;
            Ok(handle)
        }
        [name, ..] if matches!(&**name, "attach-app" | "attach-source") => {
            usage("$udp attach-app Traffic/CBR")
        }
        [name, source] if &**name == "attach-traffic" => {
            let source = self::source(tcl, source)?;
            tcl.simulator.sources[source].agent = Some(index);
            Ok(Value::default())
        }
        [set, key, ..] if &**set == "set" && VALUES.contains(&key.trim()) && own.is_some() => {
            source_method(tcl, own.unwrap_or_default(), words)
        }
        [name, ..] if matches!(&**name, "start" | "stop") && own.is_some() => {
            source_method(tcl, own.unwrap_or_default(), words)
        }
        [set, rest @ ..] if &**set == "set" => set_of_agent(tcl, index, rest),
        [name, bytes, ..] if matches!(&**name, "send" | "sendmsg") && class == AgentClass::Udp => {
            send(tcl, index, bytes, words.len() - 2)
        }
        [name] if &**name == "listen" => Ok(Value::default()),
        [name, ..] if class == AgentClass::Other => {
            tcl.warn(
                Code::Ignored,
                format!("'{}' of this agent is ignored: run real programs in the hosts", &**name),
            );
            Ok(Value::default())
        }
        _ => unknown(tcl, "an agent", words, &AGENT_METHODS),
    }
}

/// `$udp set fid_ 2`, and `$sink set bytes_`.
fn set_of_agent(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    match words {
        [key, value] => {
            // `flows.rs` says where packets are larger.
            let is_size = key.trim() == "packetSize_" && tcl.simulator.agents[index].class == AgentClass::Udp;
            if !VISUAL.contains(&key.trim()) && (!is_size || tcl.simulator.is_emulab) {
                tcl.warn(
                    Code::Ignored,
                    format!("{} of an agent is ignored{}", &**key, reason(tcl, index, key)),
                );
            }
            tcl.simulator.agents[index].values.insert(key.trim().to_owned(), value.clone());
            Ok(value.clone())
        }
        [key] => {
            tcl.warn_if_unused(key);
            if let Some(value) = tcl.simulator.agents[index].values.get(key.trim()) {
                return Ok(value.clone());
            }
            Ok(unknown_value(tcl, key))
        }
        _ => usage("$udp set fid_ 2"),
    }
}

fn reason(tcl: &Interp, index: usize, key: &str) -> String {
    match (tcl.simulator.agents[index].class, nearest(key, VISUAL).filter(|meant| *meant != key)) {
        (_, Some(meant)) => format!("; write {meant}"),
        (AgentClass::Tcp, _) => ": it is TCP of Linux here".to_owned(),
        _ if key.trim() == "packetSize_" => ": datagrams have the size of their source".to_owned(),
        _ => String::new(),
    }
}

/// A value that only a run has.
fn unknown_value(tcl: &mut Interp, key: &str) -> Value {
    tcl.warn(Code::Different, format!("{key} is not known when the script is read: it is read as 0"));
    Value::from("0")
}

/// `$udp send 1000`: one datagram.
fn send(tcl: &mut Interp, agent: usize, bytes: &Value, others: usize) -> TclResult {
    let size = match bytes.trim().parse::<u32>() {
        Ok(size) if (1..=65_507).contains(&size) => size,
        _ => {
            let what = format!("'{}' is not a number of bytes of a datagram", &**bytes);
            return mistake(what, "write a number from 16 to 65507");
        }
    };
    if others > 0 {
        tcl.warn(Code::Ignored, "the text of a message is ignored: its bytes are zeros");
    }
    if size > MESSAGE_MAX {
        tcl.warn(
            Code::Different,
            format!("{size} bytes are one datagram: ns-2 sends datagrams of {MESSAGE_MAX}"),
        );
    }
    let (source, _) = new_source(tcl, SourceKind::Constant)?;
    let at = tcl.now.unwrap_or(Time::ZERO);
    let sent = Switch { at, act: SwitchAct::Start, place: tcl.at };
    let source = &mut tcl.simulator.sources[source];
    (source.agent, source.switches, source.is_message) = (Some(agent), vec![sent], true);
    // A packet a second, of which there is one.
    source.values.size = size;
    source.values.rate = fastpath_units::Rate::from_bps(u64::from(size) * 8);
    source.values.packets_max = Some(1);
    Ok(Value::default())
}

/// A command that is not one of `known`: one of those without effect, or a mistake.
fn unknown(tcl: &mut Interp, what: &str, words: &[Value], known: &[&'static str]) -> TclResult {
    let name = words.first().map_or("", |word| word.trim());
    if ELSEWHERE.contains(&name) {
        tcl.warn(Code::Ignored, format!("'{name}' of {what} is ignored"));
        return Ok(Value::default());
    }
    if known.contains(&name) {
        return mistake(format!("{what} cannot take this '{name}'"), format!("write ${name} as ns-2 has it"));
    }
    mistake(format!("{what} has no command '{name}'"), choice(name, known.iter().copied().chain(ELSEWHERE)))
}

fn source(tcl: &mut Interp, word: &Value) -> Result<usize, Interrupt> {
    match tcl.simulator.object(word.trim()) {
        Some(Object::Source(source)) => Ok(source),
        Some(Object::Broken) => Err(Interrupt::Reported),
        _ => {
            let what = format!("{} is not a source of traffic", shown(tcl, word));
            mistake(what, "write set cbr0 [new Application/Traffic/CBR] before")
        }
    }
}

/// A command of a source.
pub(crate) fn source_method(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    let at = tcl.now.unwrap_or(Time::ZERO);
    let is_ftp = tcl.simulator.sources[index].kind == SourceKind::Ftp;
    let act = match words {
        [name, word] if matches!(&**name, "attach-agent" | "attach") => {
            let agent = agent(tcl, word)?;
            tcl.simulator.sources[index].agent = Some(agent);
            return Ok(Value::default());
        }
        [set, key] if &**set == "set" => {
            tcl.warn_if_unused(key);
            return read(tcl, index, key);
        }
        [set, key, value] if &**set == "set" => return set_value(tcl, index, key, value),
        [name] if &**name == "start" => tcp::start(tcl, index),
        [name] if &**name == "stop" => SwitchAct::Stop,
        [name, amount] if is_ftp && matches!(&**name, "send" | "produce" | "producemore") => {
            tcp::amount(tcl, index, name, amount)?
        }
        [name, ..] if is_ftp && matches!(&**name, "send" | "produce" | "producemore") => {
            return usage(&format!("$ns at 1.0 \"$ftp {} 1000\"", &**name));
        }
        [name, ..] if matches!(&**name, "start" | "stop") => {
            return usage(&format!("$ns at 1.0 \"$source {}\"", &**name));
        }
        [name, ..] if matches!(&**name, "attach-agent" | "attach") => return usage("$cbr attach-agent $udp"),
        [name, ..] if &**name == "set" => return usage("$cbr set rate_ 1Mb"),
        _ => return unknown(tcl, "a source of traffic", words, &SOURCE_METHODS),
    };
    let place = tcl.at;
    tcl.simulator.sources[index].switches.push(Switch { at, act, place });
    Ok(Value::default())
}

fn set_value(tcl: &mut Interp, index: usize, key: &Value, value: &Value) -> TclResult {
    let Source { kind, ref values, .. } = tcl.simulator.sources[index];
    let mut values = values.clone();
    let key = key.trim();
    if !set(&mut values, key, value)? {
        warn_of(tcl, key, value);
        return Ok(value.clone());
    }
    let is_used = match key {
        "burst_time_" | "idle_time_" => matches!(kind, SourceKind::Exponential | SourceKind::Pareto),
        "shape_" => kind == SourceKind::Pareto,
        "maxpkts_" => matches!(kind, SourceKind::Constant | SourceKind::Ftp),
        _ => kind != SourceKind::Ftp,
    };
    if !is_used {
        tcl.warn(Code::Ignored, format!("{key} is ignored: this kind of source does not have it"));
    }
    match tcl.now {
        Some(at) => {
            let act = SwitchAct::Set(key.to_owned(), value.clone());
            let place = tcl.at;
            tcl.simulator.sources[index].switches.push(Switch { at, act, place });
        }
        None => tcl.simulator.sources[index].values = values,
    }
    Ok(value.clone())
}

/// Warns of a value that is none of a source here.
fn warn_of(tcl: &mut Interp, key: &str, value: &Value) {
    match key {
        "random_" if matches!(value.trim(), "0" | "false" | "off") => {}
        "random_" => {
            tcl.warn(
                Code::Ignored,
                "random_ is ignored: packets leave at equal distances; Poisson sources are random",
            );
        }
        key if VISUAL.contains(&key) => {}
        key => {
            let meant = nearest(key, VALUES).map_or_else(String::new, |meant| format!("; write {meant}"));
            tcl.warn(Code::Ignored, format!("{key} of a source of traffic is ignored{meant}"));
        }
    }
}

/// Sets a value of a source. Returns false if it is none here.
pub(crate) fn set(values: &mut SourceValues, key: &str, value: &Value) -> Result<bool, Interrupt> {
    let count = || match value.trim().parse::<f64>() {
        Ok(count) if (1.0..=1e15).contains(&count) => Ok(count as u64),
        _ => mistake(format!("'{}' is not a value of {key}", &**value), "write a number from 1"),
    };
    match key {
        "packetSize_" | "packet_size_" => values.size = count()?.min(u64::from(u32::MAX)) as u32,
        "rate_" => match quantity::rate(value)? {
            Some(rate) => (values.rate, values.interval) = (Some(rate), None),
            None => return mistake("a source has a rate", "write for example rate_ 1Mb"),
        },
        "interval_" => {
            let interval = quantity::delay(value, 1.0)?;
            if interval.is_zero() {
                return mistake("an interval of 0 is an endless rate", "write for example interval_ 0.005");
            }
            values.interval = Some((interval, values.size));
        }
        "burst_time_" => values.burst = quantity::delay(value, 1.0)?,
        "idle_time_" => values.idle = quantity::delay(value, 1.0)?,
        "shape_" => match value.trim().parse::<f64>() {
            Ok(shape) if shape > 1.0 => values.shape = shape,
            _ => {
                let what = format!("a Pareto law of shape {} has no finite mean", &**value);
                return mistake(what, "write a number above 1, such as 1.5");
            }
        },
        "maxpkts_" => values.packets_max = Some(count()?),
        // The type of service: its upper six bits are the DSCP (RFC 2474).
        "iptos_" => match value.trim().parse::<u8>() {
            Ok(tos) => values.dscp = tos >> 2,
            Err(_) => return mistake(format!("'{}' is not a type of service", &**value), "write 0 to 255"),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn read(tcl: &mut Interp, index: usize, key: &Value) -> TclResult {
    let Source { kind, ref values, .. } = tcl.simulator.sources[index];
    let rate = values.rate(kind, tcl.simulator.is_emulab).map_or(0.0, |rate| rate.as_bps() as f64);
    let seconds = |duration: fastpath_units::Duration| format!("{:?}", duration.as_secs_f64());
    Ok(Value::from(match key.trim() {
        "packetSize_" | "packet_size_" => values.size.to_string(),
        "rate_" => format!("{rate:?}"),
        "interval_" => format!("{:?}", f64::from(values.size) * 8.0 / rate),
        "burst_time_" => seconds(values.burst),
        "idle_time_" => seconds(values.idle),
        "shape_" => format!("{:?}", values.shape),
        "maxpkts_" => values.packets_max.map_or_else(|| "268435456".to_owned(), |count| count.to_string()),
        "iptos_" => (u32::from(values.dscp) << 2).to_string(),
        "random_" => "0".to_owned(),
        other => return Ok(unknown_value(tcl, other)),
    }))
}
