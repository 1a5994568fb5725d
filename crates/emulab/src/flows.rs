//! From the agents and sources of a script to the traffic of a description.

use crate::simulator::{AgentClass, Simulator, Source, SourceKind, SourceValues, Switch, SwitchAct};
use crate::{agents, transfers};
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
        if let Some((what, instead)) = refused(source.kind, class) {
            remarks.mistake(place, format!("{name} {what}"), instead);
            continue;
        }
        if matches!(class, AgentClass::Other | AgentClass::Sink | AgentClass::TcpSink) {
            warn(source, remarks, &format!("{name} is ignored: its agent does not send here"));
            continue;
        }
        if from == to {
            warn(source, remarks, &format!("{name} is ignored: it stays on {}", names[from]));
            continue;
        }
        if source.kind == SourceKind::Ftp {
            let ends = [from, to].map(|node| names[node].as_str());
            all.extend(transfers::transfers(simulator, source, ends, remarks));
            continue;
        }
        warn_of_parts(simulator, source, name, remarks);
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

/// Why a source cannot send over an agent of a class, and what to write.
fn refused(kind: SourceKind, class: AgentClass) -> Option<(&'static str, &'static str)> {
    let is_tcp = class == AgentClass::Tcp;
    match kind {
        SourceKind::Telnet => {
            Some(("sends keystrokes over TCP, which no traffic here does", "write Application/FTP"))
        }
        SourceKind::Ftp if !is_tcp && class != AgentClass::Other => {
            Some(("sends as fast as TCP lets it, and its agent is not one of TCP", "write new Agent/TCP"))
        }
        SourceKind::Ftp => None,
        _ if is_tcp => Some((
            "sends at a rate, and its agent is one of TCP",
            "write new Agent/UDP, or Application/FTP for as much as TCP carries",
        )),
        _ => None,
    }
}

/// Warns of packets that an agent of ns-2 sends in parts (udp.cc).
fn warn_of_parts(simulator: &Simulator, source: &Source, name: &str, remarks: &mut Remarks) {
    let agent = source.agent.map(|agent| &simulator.agents[agent]).filter(|agent| agent.source.is_none());
    let Some(agent) = agent.filter(|_| !simulator.is_emulab && !source.is_message) else { return };
    let limit = agent.values.get("packetSize_").and_then(|value| value.trim().parse().ok());
    let (limit, size) = (limit.unwrap_or(agents::MESSAGE_MAX), source.values.size);
    if size > limit {
        let what = format!("{name}: {size} bytes are one datagram here: ns-2 sends datagrams of {limit}");
        remarks.warn(Code::Different, source.made.at, what);
    }
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
        if matches!(agent.class, AgentClass::Udp | AgentClass::Tcp)
            && !sending.contains(&index)
            && !peer_sends
        {
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
    let mut run = SourceRun::new(source, simulator.is_emulab);
    for Switch { at, act, place } in switches {
        run.end_by_count(Some(at));
        match (run.running, &act) {
            (None, SwitchAct::Start) => run.running = Some((at, place)),
            (Some(_), SwitchAct::Start) => {
                remarks.warn(Code::Unused, place, format!("{name} is running already"))
            }
            // A source that has sent its last packet is not asked to stop in vain.
            (None, SwitchAct::Stop) if run.has_counted_out => {}
            (None, SwitchAct::Stop) => remarks.warn(Code::Unused, place, format!("{name} is not running")),
            (Some(_), SwitchAct::Stop) => run.end(Some(at)),
            // Only sources over TCP are told amounts.
            (_, SwitchAct::Send(_)) => {}
            (Some((start, _)), SwitchAct::Set(..)) if start < at => {
                run.end(Some(at));
                run.running = Some((at, place));
            }
            (_, SwitchAct::Set(..)) => {}
        }
        if let SwitchAct::Set(key, value) = &act {
            // It was tried where the script has it.
            _ = agents::set(&mut run.values, key, value);
        }
    }
    run.end_by_count(simulator.end);
    run.end(simulator.end);
    let mut periods = run.periods;
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

/// A source along its events.
///
/// ns-2 counts the packets of a constant source over its whole life (`seqno_` in cbr_traffic.cc and
/// trafgen.cc): neither a change nor a start sets the count back. A start after the last packet
/// sends one more, because the count is looked at after each packet.
struct SourceRun<'s> {
    source: &'s Source,
    is_emulab: bool,
    values: SourceValues,
    periods: Vec<Period>,
    /// When it started or changed, and where the script says so.
    running: Option<(Time, usize)>,
    /// Packets before that.
    sent: u64,
    /// Whether it stopped by its count.
    has_counted_out: bool,
}

impl<'s> SourceRun<'s> {
    fn new(source: &'s Source, is_emulab: bool) -> SourceRun<'s> {
        let values = source.values.clone();
        let (periods, running) = (Vec::new(), None);
        SourceRun { source, is_emulab, values, periods, running, sent: 0, has_counted_out: false }
    }

    /// The interval of packets, seconds, if they are counted and limited.
    fn counted_interval(&self) -> Option<(u64, f64)> {
        let limit = self.values.packets_max.filter(|_| self.source.kind == SourceKind::Constant)?;
        let rate = self.values.rate(self.source.kind, self.is_emulab)?;
        Some((limit, f64::from(self.values.size) * 8.0 / rate.as_bps() as f64))
    }

    /// Ends at the last packet of the count, if that leaves before `end`.
    fn end_by_count(&mut self, end: Option<Time>) {
        let Some(((start, _), (limit, interval))) = self.running.zip(self.counted_interval()) else { return };
        let left = limit.saturating_sub(self.sent).max(1);
        // Up to before the packet after the last.
        let stop = start.saturating_add(Duration::from_secs_f64((left as f64 - 0.5) * interval));
        if end.is_none_or(|end| stop <= end) {
            self.end(Some(stop));
            self.has_counted_out = true;
        }
    }

    /// Ends what runs.
    fn end(&mut self, stop: Option<Time>) {
        let Some((start, place)) = self.running.take() else { return };
        self.has_counted_out = false;
        let rate = self.values.rate(self.source.kind, self.is_emulab);
        if let Some((stop, rate)) = stop.zip(rate).filter(|(stop, _)| *stop > start) {
            // The first packet leaves at the start, and none at the stop.
            let bits_ps = u128::from(stop.since(start).as_ps()) * u128::from(rate.as_bps());
            let packet = u128::from(self.values.size) * 8 * 1_000_000_000_000;
            self.sent += u64::try_from(bits_ps.div_ceil(packet)).unwrap_or(u64::MAX);
        }
        self.periods.push(Period { start, stop, values: self.values.clone(), place });
    }
}
