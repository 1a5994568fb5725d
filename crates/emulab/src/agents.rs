//! Traffic of ns-2 and Emulab: agents on nodes, and the sources that send over them.
//!
//! ```text
//!  Application/Traffic/CBR ─ attach-agent ─▶ Agent/UDP ─ connect ─▶ Agent/Null
//!        start, stop                        on a node              on a node
//! ```
//!
//! Parameters and defaults are those of ns-2 (ns-default.tcl). A packet of `packetSize_` bytes is a
//! datagram with that payload, as Emulab's traffic generator sends it.

use crate::objects::{made, node, shown, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::quantity;
use crate::simulator::{Agent, AgentClass, Object, Simulator, Source, SourceKind, Switch};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_spec::TrafficDescription;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Duration, Time};

/// The words of sources after `Application/` or `Traffic/`.
const SOURCES: [(&str, SourceKind); 6] = [
    ("CBR", SourceKind::Constant),
    ("Poisson", SourceKind::Poisson),
    ("Exponential", SourceKind::Exponential),
    ("Pareto", SourceKind::Pareto),
    ("FTP", SourceKind::Stream),
    ("Telnet", SourceKind::Stream),
];

/// `new Agent/UDP`, `new Application/Traffic/CBR`. `None` for classes of other things.
pub(crate) fn new(tcl: &mut Interp, class: &str) -> Option<TclResult> {
    if let Some(class) = class.strip_prefix("Agent/") {
        if matches!(class, "CBR" | "CBR/UDP" | "CBR/UDP/TG") {
            return Some(new_agent(tcl, AgentClass::Udp, Some(SourceKind::Constant)));
        }
        let known = match class {
            "UDP" | "UDP/TG" => AgentClass::Udp,
            "Null" | "LossMonitor" => AgentClass::Sink,
            tcp if tcp.starts_with("TCPSink") => AgentClass::Sink,
            tcp if tcp.starts_with("TCP") => AgentClass::Tcp,
            _ => return None,
        };
        return Some(new_agent(tcl, known, None));
    }
    let class = class.strip_prefix("Application/").unwrap_or(class);
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
    tcl.simulator.agents.push(Agent { class, node: None, peer: None, source });
    Ok(handle)
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
        ("attach-agent", _) => usage("$ns attach-agent $node $agent"),
        ("connect", [a, b]) => connect(tcl, a, b),
        ("connect", _) => usage("$ns connect $udp $null"),
        ("create-connection" | "create-connection-list", [from, a, to, b, ..]) => {
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
        return Ok(Value::default());
    }
    let agent = agent(tcl, word)?;
    tcl.simulator.agents[agent].node = Some(node);
    Ok(Value::default())
}

fn connect(tcl: &mut Interp, a: &Value, b: &Value) -> TclResult {
    let is_other = |word: &Value| matches!(tcl.simulator.object(word.trim()), Some(Object::Other));
    if is_other(a) || is_other(b) {
        return Ok(a.clone());
    }
    let (from, to) = (agent(tcl, a)?, agent(tcl, b)?);
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
    let own = tcl.simulator.agents[index].source;
    match words {
        [name, class, ..] if matches!(&**name, "attach-app" | "attach-source") => {
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
            Ok(handle)
        }
        [name, source] if &**name == "attach-traffic" => {
            let source = self::source(tcl, source)?;
            tcl.simulator.sources[source].agent = Some(index);
            Ok(Value::default())
        }
        [name, ..] if matches!(&**name, "start" | "stop" | "set") && own.is_some() => {
            source_method(tcl, own.unwrap_or_default(), words)
        }
        // Values such as fid_ and window_ change nothing here.
        _ => Ok(words.get(2).cloned().unwrap_or_default()),
    }
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
    match words {
        [name, word] if matches!(&**name, "attach-agent" | "attach") => {
            let agent = agent(tcl, word)?;
            tcl.simulator.sources[index].agent = Some(agent);
            Ok(Value::default())
        }
        [name, key, value] if &**name == "set" => set(tcl, index, key, value),
        [name, ..] if matches!(&**name, "start" | "stop") => {
            event(tcl, Time::ZERO, index, words)?;
            Ok(Value::default())
        }
        _ => Ok(Value::default()),
    }
}

fn set(tcl: &mut Interp, index: usize, key: &Value, value: &Value) -> TclResult {
    let count = || match value.trim().parse::<f64>() {
        Ok(count) if (1.0..=1e15).contains(&count) => Ok(count as u64),
        _ => mistake(format!("'{}' is not a value of {}", &**value, &**key), "write a number from 1"),
    };
    match key.trim() {
        "packetSize_" | "packet_size_" => {
            tcl.simulator.sources[index].size = count()?.min(u64::from(u32::MAX)) as u32;
        }
        "rate_" => {
            let rate = quantity::rate(value)?;
            let source = &mut tcl.simulator.sources[index];
            (source.rate, source.interval) = (rate, None);
        }
        "interval_" => {
            let interval = quantity::delay(value, 1.0)?;
            if interval.is_zero() {
                return mistake("an interval of 0 is an endless rate", "write for example interval_ 0.005");
            }
            tcl.simulator.sources[index].interval = Some(interval);
        }
        "burst_time_" => tcl.simulator.sources[index].burst = quantity::delay(value, 1.0)?,
        "idle_time_" => tcl.simulator.sources[index].idle = quantity::delay(value, 1.0)?,
        "shape_" => match value.trim().parse::<f64>() {
            Ok(shape) if shape > 1.0 => tcl.simulator.sources[index].shape = shape,
            _ => {
                let what = format!("a Pareto law of shape {} has no finite mean", &**value);
                return mistake(what, "write a number above 1, such as 1.5");
            }
        },
        "maxpkts_" => tcl.simulator.sources[index].packets_max = Some(count()?),
        "random_" if !matches!(value.trim(), "0" | "false" | "off") => {
            tcl.warn("random_ is ignored: packets leave at equal distances; Poisson sources are random");
        }
        "random_" | "type_" | "class_" | "fid_" => {}
        other => tcl.warn(format!("{other} of a source of traffic is ignored")),
    }
    Ok(value.clone())
}

/// `$ns at 0.5 "$cbr start"`.
pub(crate) fn event(tcl: &mut Interp, at: Time, source: usize, words: &[Value]) -> Result<(), Interrupt> {
    let starts = match words.first().map_or("", |word| word.trim()) {
        "start" => true,
        "stop" => false,
        "set" => {
            tcl.warn("values of traffic are those that it has before the run: this event is ignored");
            return Ok(());
        }
        // `$ftp produce 10`, `$ftp send 5000`.
        other => {
            tcl.warn(format!("'{other}' of traffic is ignored: start and stop are not"));
            return Ok(());
        }
    };
    let place = tcl.at;
    tcl.simulator.sources[source].switches.push(Switch { at, starts, place });
    Ok(())
}

/// The source that an agent is itself.
pub(crate) fn own_source(simulator: &Simulator, agent: usize) -> Option<usize> {
    simulator.agents[agent].source
}

/// The nodes on which traffic begins or ends.
pub(crate) fn nodes(simulator: &Simulator) -> impl Iterator<Item = usize> {
    let sending = simulator.sources.iter().filter(|source| !source.switches.is_empty());
    sending.filter_map(|source| ends(simulator, source)).flat_map(|(from, to, _)| [from, to])
}

/// The nodes of a source whose agents are attached and connected, and the class of its agent.
fn ends(simulator: &Simulator, source: &Source) -> Option<(usize, usize, AgentClass)> {
    let agent = &simulator.agents[source.agent?];
    Some((agent.node?, simulator.agents[agent.peer?].node?, agent.class))
}

/// What the sources send, each with its place in the script. `names` are those of the nodes.
pub(crate) fn traffic(
    simulator: &Simulator,
    names: &[String],
    remarks: &mut Remarks,
) -> Vec<(TrafficDescription, usize)> {
    let mut all = Vec::new();
    for source in simulator.sources.iter().filter(|source| !source.switches.is_empty()) {
        let own_name = simulator.name(source.made);
        let name = own_name.unwrap_or("the source");
        let place = source.made.at;
        let Some((from, to, class)) = ends(simulator, source) else {
            let (what, instead) = missing(simulator, source, name);
            remarks.mistake(place, what, instead);
            continue;
        };
        if class == AgentClass::Tcp || source.kind == SourceKind::Stream {
            remarks.warn(place, format!("{name} is ignored: run real programs in the hosts for TCP"));
            continue;
        }
        if from == to {
            remarks.warn(place, format!("{name} is ignored: it stays on {}", names[from]));
            continue;
        }
        for (number, (start, stop)) in periods(simulator, source).into_iter().enumerate() {
            let mut traffic = TrafficDescription::new(&names[from], &names[to], source.kind());
            traffic.name = own_name.map(|name| match number {
                0 => name.to_owned(),
                _ => format!("{name}-{}", number + 1),
            });
            traffic.rate = source.rate();
            traffic.size = Some(source.size);
            traffic.start = start.since(Time::ZERO);
            traffic.stop = stop.map(|stop| stop.since(Time::ZERO));
            all.push((traffic, place));
        }
    }
    all
}

/// What a source that sends nothing needs, and what to write.
fn missing(simulator: &Simulator, source: &Source, name: &str) -> (String, String) {
    let Some(index) = source.agent else {
        return (format!("{name} is started and has no agent"), format!("write ${name} attach-agent $udp0"));
    };
    let agent = &simulator.agents[index];
    match agent.node {
        None => (format!("the agent of {name} is on no node"), "write $ns attach-agent $n0 $udp0".to_owned()),
        Some(_) if agent.peer.is_none() => {
            (format!("the agent of {name} is not connected"), "write $ns connect $udp0 $null0".to_owned())
        }
        Some(_) => (
            format!("the agent that receives {name} is on no node"),
            "write $ns attach-agent $n1 $null0".to_owned(),
        ),
    }
}

/// From each start to the stop after it.
fn periods(simulator: &Simulator, source: &Source) -> Vec<(Time, Option<Time>)> {
    let mut switches = source.switches.clone();
    switches.sort_by_key(|switch| switch.at);
    let mut periods: Vec<(Time, Option<Time>)> = Vec::new();
    let mut since = None;
    for Switch { at, starts, .. } in switches {
        match (since, starts) {
            (None, true) => since = Some(at),
            (Some(start), false) => {
                periods.push((start, Some(at)));
                since = None;
            }
            _ => {}
        }
    }
    periods.extend(since.map(|start| (start, simulator.end)));
    let counted = source.packets_max.zip(source.rate()).map(|(packets, rate)| {
        // Up to before the packet after the last.
        let seconds = (packets as f64 - 0.5) * f64::from(source.size) * 8.0 / rate.as_bps() as f64;
        Duration::from_secs_f64(seconds)
    });
    if let Some(length) = counted {
        for (start, stop) in &mut periods {
            let last = start.saturating_add(length);
            *stop = Some(stop.map_or(last, |stop| stop.min(last)));
        }
    }
    periods.retain(|(start, stop)| stop.is_none_or(|stop| stop > *start));
    periods
}
