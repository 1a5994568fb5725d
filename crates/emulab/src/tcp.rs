//! TCP of ns-2: its agents, and what they and their sources are told to send. `transfers.rs` makes
//! connections of it.
//!
//! ```text
//!  Application/FTP ─ attach-agent ─▶ Agent/TCP/Reno ─ connect ─▶ Agent/TCPSink
//!   start, stop, send BYTES,          on a node                  on a node
//!   produce PACKETS                   advance PACKETS
//! ```
//!
//! The connections are those of Linux (`fastpath_tcp`): CUBIC or Reno with selective and delayed
//! acknowledgements. Other congestion controls are the nearest of them, and a warning says so, as
//! it does of `packetSize_` and `window_`. Amounts are ns-2's (tcp.cc): `advance` and `produce`
//! count packets from the first of the connection, `advanceby` and `producemore` add, `send` has
//! bytes.

use crate::objects::usage;
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{Source, SourceKind, Switch, SwitchAct, TcpAgent};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::{Code, choice};
use fastpath_traffic::CongestionControl;
use fastpath_units::Time;

/// The data of a packet, bytes, and the packets in flight (ns-default.tcl).
const PACKET_SIZE: u32 = 1000;
const WINDOW: &str = "20";
/// The most packets of ns-2 (`TCP_MAXSEQ`).
const PACKETS_MAX: u64 = 1 << 30;
/// The most bytes that are sent at once.
const BYTES_MAX: u64 = 1 << 44;

/// The classes after `Agent/TCP/`, the congestion control of each, and its name if that is another.
const CLASSES: [(&str, CongestionControl, Option<&str>); 24] = {
    use CongestionControl::{Cubic, Reno};
    [
        ("", Reno, Some("Tahoe")),
        ("Reno", Reno, None),
        ("Newreno", Reno, None),
        ("Sack1", Reno, None),
        ("SackRH", Reno, None),
        ("FullTcp", Reno, None),
        ("FullTcp/Newreno", Reno, None),
        ("FullTcp/Sack", Reno, None),
        ("FullTcp/Tahoe", Reno, Some("Tahoe")),
        ("BayFullTcp", Reno, None),
        ("BayFullTcp/Newreno", Reno, None),
        ("BayFullTcp/Sack", Reno, None),
        ("BayFullTcp/Tahoe", Reno, Some("Tahoe")),
        ("Linux", Reno, None),
        ("Cubic", Cubic, None),
        ("Fack", Reno, Some("FACK")),
        ("Vegas", Reno, Some("Vegas")),
        ("Vegas/RBP", Reno, Some("Vegas with paced packets")),
        ("Reno/RBP", Reno, Some("Reno with paced packets")),
        ("Reno/Asym", Reno, Some("Reno for asymmetric paths")),
        ("Newreno/Asym", Reno, Some("Newreno for asymmetric paths")),
        ("Asym", Reno, Some("Tahoe for asymmetric paths")),
        ("RFC793edu", Reno, Some("TCP of RFC 793")),
        ("Int", Reno, Some("Newreno of one session")),
    ]
};

/// The congestion controls of Linux in ns-2 (`select_ca`) that are CUBIC here, or nearest to it:
/// for long fat networks.
const LIKE_CUBIC: [&str; 4] = ["cubic", "bic", "htcp", "highspeed"];
const LIKE_RENO: [&str; 8] =
    ["reno", "naivereno", "westwood", "vegas", "veno", "hybla", "scalable", "illinois"];

/// What an agent can be told.
const METHODS: [&str; 16] = [
    "advance",
    "advanceby",
    "attach-app",
    "attach-source",
    "attach-trace",
    "attach-traffic",
    "close",
    "listen",
    "persist",
    "proc",
    "select_ca",
    "send",
    "set",
    "trace",
    "tracevar",
    "upcall",
];

/// The values of a new agent: `class` is without `Agent/`.
pub(crate) fn new(class: &str) -> Result<TcpAgent, Interrupt> {
    let kind = kind(class);
    let Some((_, congestion, _)) = CLASSES.iter().find(|(known, ..)| *known == kind) else {
        let known = CLASSES.iter().map(|(known, ..)| *known).filter(|known| !known.is_empty());
        let instead = choice(kind, known).replacen("write ", "write new Agent/TCP/", 1);
        return mistake(format!("there is no class 'Agent/{class}' here"), instead);
    };
    Ok(TcpAgent {
        class: class.to_owned(),
        congestion: *congestion,
        packet_size: PACKET_SIZE,
        window: WINDOW.to_owned(),
        ecn: false,
        sender: None,
        packets: 0,
    })
}

/// The part of a class after `TCP/`.
fn kind(class: &str) -> &str {
    class.strip_prefix("TCP").unwrap_or(class).trim_start_matches('/')
}

/// The name of the congestion control of a class that is another one here.
pub(crate) fn replaced(class: &str) -> Option<&'static str> {
    let kind = kind(class);
    CLASSES.iter().find(|(known, ..)| *known == kind).and_then(|(_, _, other)| *other)
}

/// A command of an agent of TCP. `None` if it is of another class, or the command is one of all
/// agents.
pub(crate) fn method(tcl: &mut Interp, index: usize, words: &[Value]) -> Option<TclResult> {
    tcl.simulator.agents[index].tcp.as_ref()?;
    Some(match words {
        [name, ..] if matches!(&**name, "attach-app" | "attach-source" | "attach-traffic") => return None,
        [set, key, value] if &**set == "set" => return set_value(tcl, index, key, value),
        [set, key] if &**set == "set" => return read(tcl, index, key),
        [set, ..] if &**set == "set" => return None,
        [name, amount] if matches!(&**name, "send" | "sendmsg" | "advance" | "advanceby") => {
            told(tcl, index, name, amount)
        }
        [name, ..] if matches!(&**name, "send" | "sendmsg" | "advance" | "advanceby") => {
            usage(&format!("$ns at 1.0 \"$tcp {} 1000\"", &**name))
        }
        [name] if &**name == "close" => stop(tcl, index),
        [name] if &**name == "listen" => Ok(Value::default()),
        [name, control] if &**name == "select_ca" => select(tcl, index, control),
        [name, procedure, ..] if &**name == "proc" => {
            let what = format!(
                "{} is never called: what a run does is not known when the script is read",
                &**procedure
            );
            tcl.warn(Code::Ignored, what);
            Ok(Value::default())
        }
        // What only traces show.
        [name, ..] if matches!(&**name, "trace" | "tracevar" | "attach-trace" | "attach" | "eventtrace") => {
            Ok(Value::default())
        }
        [name, ..] if TUNING.contains(&&**name) => {
            tcl.warn(Code::Ignored, format!("'{}' of an agent is ignored: it is TCP of Linux here", &**name));
            Ok(Value::default())
        }
        [name, ..] => mistake(format!("an agent of TCP has no command '{}'", &**name), choice(name, METHODS)),
        [] => usage("$tcp set fid_ 2"),
    })
}

/// Commands that choose how the connections of ns-2 behave.
const TUNING: [&str; 11] = [
    "get_ca_default_param",
    "get_ca_param",
    "monitor",
    "namtrace",
    "persist",
    "port",
    "print",
    "reset",
    "set_ca_default_param",
    "set_ca_param",
    "target",
];

fn values<'i>(tcl: &'i mut Interp<'_>, index: usize) -> &'i mut TcpAgent {
    tcl.simulator.agents[index].tcp.as_mut().expect("the agent is one of TCP")
}

/// Reads a value. `None` if it is one of all agents.
fn read(tcl: &mut Interp, index: usize, key: &Value) -> Option<TclResult> {
    let known = values(tcl, index);
    let text = match key.trim() {
        "packetSize_" | "segsize_" => known.packet_size.to_string(),
        "window_" => known.window.clone(),
        "ecn_" => u8::from(known.ecn).to_string(),
        _ => return None,
    };
    tcl.warn_if_unused(key);
    Some(Ok(Value::from(text)))
}

/// Sets a value. `None` if it is one of all agents.
fn set_value(tcl: &mut Interp, index: usize, key: &Value, value: &Value) -> Option<TclResult> {
    let (key, text) = (key.trim(), value.trim());
    let bad = |instead: &str| Some(mistake(format!("'{text}' is not a value of {key}"), instead));
    match key {
        // The segment size of FullTcp.
        "packetSize_" | "segsize_" => match text.parse::<u32>() {
            Ok(size) if (1..=65_495).contains(&size) => values(tcl, index).packet_size = size,
            _ => return bad("write bytes of data, such as 1000"),
        },
        "window_" => match text.parse::<f64>() {
            Ok(window) if window >= 1.0 => values(tcl, index).window = text.to_owned(),
            _ => return bad("write a number of packets, such as 20"),
        },
        "ecn_" => match text {
            "1" | "true" => values(tcl, index).ecn = true,
            "0" | "false" => values(tcl, index).ecn = false,
            _ => return bad("write true or false"),
        },
        _ => return None,
    }
    if tcl.now.is_some() {
        tcl.warn(Code::Different, format!("{key} that an event sets counts from the start"));
    }
    Some(Ok(value.clone()))
}

/// `$tcp select_ca cubic`.
fn select(tcl: &mut Interp, index: usize, control: &Value) -> TclResult {
    let name = control.trim();
    let congestion = match name {
        name if LIKE_CUBIC.contains(&name) => CongestionControl::Cubic,
        name if LIKE_RENO.contains(&name) => CongestionControl::Reno,
        _ => {
            let known = LIKE_CUBIC.into_iter().chain(LIKE_RENO);
            return mistake(format!("there is no congestion control '{name}'"), choice(name, known));
        }
    };
    if !matches!(name, "cubic" | "reno") {
        tcl.warn(Code::Different, format!("{name} is {} here", congestion.name()));
    }
    values(tcl, index).congestion = congestion;
    Ok(Value::default())
}

/// The source of what an agent itself is told to send. It has the name of the agent.
fn sender(tcl: &mut Interp, index: usize) -> usize {
    if let Some(sender) = values(tcl, index).sender {
        return sender;
    }
    let made = tcl.simulator.agents[index].made;
    let source = Source { agent: Some(index), ..Source::new(made, SourceKind::Ftp) };
    tcl.simulator.sources.push(source);
    let sender = tcl.simulator.sources.len() - 1;
    values(tcl, index).sender = Some(sender);
    sender
}

/// `$tcp send BYTES`, `$tcp advance PACKETS`.
fn told(tcl: &mut Interp, index: usize, name: &str, amount: &Value) -> TclResult {
    let sender = sender(tcl, index);
    let act = self::amount(tcl, sender, name, amount)?;
    let (at, place) = (tcl.now.unwrap_or(Time::ZERO), tcl.at);
    tcl.simulator.sources[sender].switches.push(Switch { at, act, place });
    Ok(Value::default())
}

fn stop(tcl: &mut Interp, index: usize) -> TclResult {
    let (at, place) = (tcl.now.unwrap_or(Time::ZERO), tcl.at);
    let all = tcl.simulator.sources.iter_mut().filter(|source| source.agent == Some(index));
    all.for_each(|source| source.switches.push(Switch { at, act: SwitchAct::Stop, place }));
    Ok(Value::default())
}

/// What `start` of a source is: of FTP that has a count, its packets.
pub(crate) fn start(tcl: &mut Interp, index: usize) -> SwitchAct {
    let source = &tcl.simulator.sources[index];
    let agent = source.agent.and_then(|agent| tcl.simulator.agents[agent].tcp.as_ref());
    match (source.kind, source.values.packets_max, agent) {
        (SourceKind::Ftp, Some(packets), Some(agent)) => {
            SwitchAct::Send(packets.min(PACKETS_MAX) * u64::from(agent.packet_size))
        }
        _ => SwitchAct::Start,
    }
}

/// What `send`, `produce` and `producemore` of a source are, and `advance` of its agent.
pub(crate) fn amount(
    tcl: &mut Interp,
    source: usize,
    name: &str,
    amount: &Value,
) -> Result<SwitchAct, Interrupt> {
    let text = amount.trim();
    if matches!(name, "send" | "sendmsg") && text == "-1" {
        return Ok(SwitchAct::Start);
    }
    let max = if matches!(name, "send" | "sendmsg") { BYTES_MAX } else { PACKETS_MAX };
    let number = text.parse::<f64>().ok().filter(|number| (1.0..=max as f64).contains(number));
    let Some(number) = number.map(|number| number as u64) else {
        // `advance 0` is how ns-2 stops.
        if name == "advance" && text == "0" {
            return Ok(SwitchAct::Stop);
        }
        return mistake(
            format!("'{text}' is not an amount to {name}"),
            "write a number from 1, such as 1000",
        );
    };
    if matches!(name, "send" | "sendmsg") {
        return Ok(SwitchAct::Send(number));
    }
    let agent = tcl.simulator.sources[source].agent;
    let Some(agent) = agent.and_then(|agent| tcl.simulator.agents[agent].tcp.as_mut()) else {
        return mistake(
            format!("{name} counts packets of an agent, and there is none of TCP"),
            "write $ftp attach-agent $tcp before",
        );
    };
    let added = match name {
        "produce" | "advance" => number.saturating_sub(agent.packets),
        _ => number,
    };
    agent.packets = agent.packets.saturating_add(added);
    let size = u64::from(agent.packet_size);
    if added == 0 {
        tcl.warn(
            Code::Unused,
            format!("{name} {number} adds nothing: the packets count from the first of the connection"),
        );
    }
    Ok(SwitchAct::Send(added * size))
}
