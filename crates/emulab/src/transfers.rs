//! From the agents of TCP and their sources to transfers of a description: connections, with the time
//! and the amount of each.

use crate::simulator::{AgentClass, Simulator, Source, Switch, SwitchAct, TcpAgent};
use crate::tcp;
use fastpath_spec::{TrafficDescription, TrafficKind};
use fastpath_text::mistake::{Code, Remarks};
use fastpath_traffic::{CongestionControl, TransferModel, TransferProtocol, Workload};
use fastpath_units::{Bytes, Time};

/// A connection that sends from a time on.
struct Sending {
    start: Time,
    stop: Option<Time>,
    /// `None`: without end.
    size: Option<u64>,
    place: usize,
}

/// The transfers of a source over TCP. Mistakes and warnings go to the remarks.
pub(crate) fn transfers(
    simulator: &Simulator,
    source: &Source,
    [from, to]: [&str; 2],
    remarks: &mut Remarks,
) -> Vec<(TrafficDescription, usize)> {
    let own_name = simulator.name(source.made);
    let name = own_name.unwrap_or("the source");
    let place = source.made.at;
    let agent = source.agent.map(|agent| &simulator.agents[agent]);
    let Some((agent, tcp)) = agent.and_then(|agent| Some((agent, agent.tcp.as_ref()?))) else {
        return Vec::new();
    };
    let peer = agent.peer.map(|peer| simulator.agents[peer].class);
    if matches!(peer, Some(AgentClass::Udp | AgentClass::Sink)) {
        let what = format!("the agent that receives {name} acknowledges nothing");
        remarks.mistake(place, what, "write new Agent/TCPSink for it");
        return Vec::new();
    }
    remarks.warn(Code::Different, agent.made.at, difference(tcp));
    let sendings = sendings(simulator, source, name, remarks);
    let describe = |(number, sending): (usize, Sending)| {
        let model = TransferModel {
            protocol: TransferProtocol::Tcp,
            flows: 1,
            workload: Workload::Bulk(sending.size.map(Bytes)),
            congestion: tcp.congestion,
            ecn: tcp.ecn,
        };
        let mut traffic = TrafficDescription::new(from, to, TrafficKind::Transfer(model));
        traffic.name = own_name.map(|name| match number {
            0 => name.to_owned(),
            _ => format!("{name}-{}", number + 1),
        });
        traffic.start = sending.start.since(Time::ZERO);
        traffic.stop = sending.stop.map(|stop| stop.since(Time::ZERO));
        (traffic, place)
    };
    sendings.into_iter().enumerate().map(describe).collect()
}

/// What TCP of ns-2 has and the connections here have not.
fn difference(tcp: &TcpAgent) -> String {
    let TcpAgent { class, congestion, packet_size, window, .. } = tcp;
    let instead = tcp::replaced(class).map_or_else(String::new, |other| format!(" in place of {other}"));
    let control = if *congestion == CongestionControl::Cubic { "CUBIC" } else { "Reno" };
    format!(
        "Agent/{class} is {control} of Linux here{instead}: selective and delayed acknowledgements, segments \
         of the MTU and not of packetSize_ {packet_size}, windows of the receiver and not window_ {window}"
    )
}

/// When a source sends how much, in the order of time.
fn sendings(simulator: &Simulator, source: &Source, name: &str, remarks: &mut Remarks) -> Vec<Sending> {
    let mut switches = source.switches.clone();
    switches.sort_by_key(|switch| switch.at);
    let mut all: Vec<Sending> = Vec::new();
    // Those before were stopped.
    let mut first_open = 0;
    for Switch { at, act, place } in switches {
        let is_endless = all[first_open..].iter().any(|sending| sending.size.is_none());
        let size = match act {
            SwitchAct::Start => None,
            SwitchAct::Send(0) => continue,
            SwitchAct::Send(bytes) => Some(bytes),
            SwitchAct::Stop => {
                if first_open == all.len() {
                    remarks.warn(Code::Unused, place, format!("{name} is not running"));
                }
                all[first_open..].iter_mut().for_each(|sending| sending.stop = Some(at));
                first_open = all.len();
                continue;
            }
            SwitchAct::Set(..) => continue,
        };
        if is_endless {
            let what = format!("{name} sends without end already: this adds nothing");
            remarks.warn(Code::Unused, place, what);
            continue;
        }
        // What is told at one time is sent together.
        let same = all[first_open..].last_mut().filter(|sending| sending.start == at);
        if let Some(same) = same {
            same.size = same.size.zip(size).map(|(before, more)| before.saturating_add(more));
            continue;
        }
        if !all.is_empty() {
            let what = format!("{name} sends over a new connection from here: in ns-2 the first one goes on");
            remarks.warn(Code::Different, place, what);
        }
        all.push(Sending { start: at, stop: None, size, place });
    }
    for sending in all[first_open..].iter_mut() {
        sending.stop = simulator.end.filter(|end| *end > sending.start);
    }
    all.retain(|sending| {
        let lasts = sending.stop.is_none_or(|stop| stop > sending.start);
        if !lasts {
            let what = format!("{name} sends nothing from here: it stops when it starts");
            remarks.warn(Code::Unused, sending.place, what);
        }
        lasts
    });
    all
}
