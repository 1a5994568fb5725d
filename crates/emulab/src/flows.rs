//! From the agents and sources of a script to the traffic of a description.

use crate::agents;
use crate::simulator::{AgentClass, Simulator, Source, SourceKind, SourceValues, Switch, SwitchAct};
use fastpath_spec::TrafficDescription;
use fastpath_text::mistake::{Code, Remarks};
use fastpath_units::{Duration, Time};

/// The nodes on which traffic begins or ends.
pub(crate) fn nodes(simulator: &Simulator) -> impl Iterator<Item = usize> {
    let sending = simulator.sources.iter().filter(|source| source.is_started());
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
    warn_of_idle(simulator, remarks);
    for source in simulator.sources.iter().filter(|source| source.is_started()) {
        let own_name = simulator.name(source.made);
        let name = own_name.unwrap_or("the source");
        let place = source.made.at;
        let Some((from, to, class)) = ends(simulator, source) else {
            let (what, instead) = missing(simulator, source, name);
            remarks.mistake(place, what, instead);
            continue;
        };
        if class == AgentClass::Tcp || source.kind == SourceKind::Stream {
            warn(source, remarks, &format!("{name} is ignored: run real programs in the hosts for TCP"));
            continue;
        }
        if matches!(class, AgentClass::Other | AgentClass::Sink) {
            warn(source, remarks, &format!("{name} is ignored: its agent does not send here"));
            continue;
        }
        if from == to {
            warn(source, remarks, &format!("{name} is ignored: it stays on {}", names[from]));
            continue;
        }
        for (number, period) in periods(simulator, source, name, remarks).into_iter().enumerate() {
            let Period { start, stop, values, .. } = period;
            let kind = values.kind(source.kind);
            let mut traffic = TrafficDescription::new(&names[from], &names[to], kind);
            traffic.name = own_name.map(|name| match number {
                0 => name.to_owned(),
                _ => format!("{name}-{}", number + 1),
            });
            traffic.rate = values.rate(source.kind, simulator.is_emulab);
            traffic.size = Some(values.size);
            traffic.dscp = values.dscp;
            traffic.start = start.since(Time::ZERO);
            traffic.stop = stop.map(|stop| stop.since(Time::ZERO));
            all.push((traffic, place));
        }
    }
    all
}

/// Warns at a source and at each of its events.
fn warn(source: &Source, remarks: &mut Remarks, what: &str) {
    let places = source.switches.iter().map(|switch| switch.place);
    std::iter::once(source.made.at).chain(places).for_each(|place| remarks.warn(Code::Unused, place, what));
}

/// Warns of sources and agents that are there and send nothing.
fn warn_of_idle(simulator: &Simulator, remarks: &mut Remarks) {
    for source in simulator.sources.iter().filter(|source| !source.is_started()) {
        let name = simulator.name(source.made).unwrap_or("the source");
        // An agent that is a source itself may be the other end.
        let agent = source.agent.map(|agent| &simulator.agents[agent]);
        if agent.is_none_or(|agent| agent.source.is_none()) {
            let what =
                format!("{name} sends nothing: it is never started; write $ns at 1.0 \"${name} start\"");
            warn(source, remarks, &what);
        }
    }
    let sending = simulator.sending_agents();
    for (index, agent) in simulator.agents.iter().enumerate() {
        let peer_sends = agent.peer.is_some_and(|peer| sending.contains(&peer));
        if agent.class == AgentClass::Udp && !sending.contains(&index) && !peer_sends {
            let name = simulator.name(agent.made).unwrap_or("the agent");
            remarks.warn(
                Code::Unused,
                agent.made.at,
                format!("{name} sends nothing: no source is attached to it"),
            );
        }
    }
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

/// Equal values from a time on.
struct Period {
    start: Time,
    stop: Option<Time>,
    values: SourceValues,
    place: usize,
}

/// From each start, or change, to the change or stop after it.
fn periods(simulator: &Simulator, source: &Source, name: &str, remarks: &mut Remarks) -> Vec<Period> {
    let mut switches = source.switches.clone();
    switches.sort_by_key(|switch| switch.at);
    let mut values = source.values.clone();
    let mut periods: Vec<Period> = Vec::new();
    let mut running: Option<(Time, usize)> = None;
    let end = simulator.end;
    for Switch { at, act, place } in switches {
        let before = values.clone();
        if let SwitchAct::Set(key, value) = &act {
            // It was tried where the script has it.
            _ = agents::set(&mut values, key, value);
        }
        match (running, &act) {
            (None, SwitchAct::Start) => running = Some((at, place)),
            (Some(_), SwitchAct::Start) => {
                remarks.warn(Code::Unused, place, format!("{name} is running already"))
            }
            (None, SwitchAct::Stop) => remarks.warn(Code::Unused, place, format!("{name} is not running")),
            (Some((start, from)), SwitchAct::Stop) => {
                periods.push(Period { start, stop: Some(at), values: before, place: from });
                running = None;
            }
            (Some((start, from)), SwitchAct::Set(..)) if start < at => {
                periods.push(Period { start, stop: Some(at), values: before, place: from });
                running = Some((at, place));
            }
            (_, SwitchAct::Set(..)) => {}
        }
    }
    periods.extend(running.map(|(start, place)| Period { start, stop: end, values, place }));
    for Period { start, stop, values, .. } in &mut periods {
        let rate = values.rate(source.kind, simulator.is_emulab);
        let Some((packets, rate)) = values.packets_max.zip(rate) else { continue };
        // Up to before the packet after the last.
        let seconds = (packets as f64 - 0.5) * f64::from(values.size) * 8.0 / rate.as_bps() as f64;
        let last = start.saturating_add(Duration::from_secs_f64(seconds));
        *stop = Some(stop.map_or(last, |stop| stop.min(last)));
    }
    periods.retain(|period| {
        let lasts = period.stop.is_none_or(|stop| stop > period.start);
        if !lasts {
            remarks.warn(
                Code::Unused,
                period.place,
                format!("{name} sends nothing from here: it stops when it starts"),
            );
        }
        lasts
    });
    periods
}
