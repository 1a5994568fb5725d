//! What each scenario adds to the network: losses, corruption, a blackhole, a NAT that rebinds,
//! cross traffic.

use super::words::Arguments;
use super::{ACCESS, BOTTLENECK, ROUTERS, link, on_link};
use fastpath_link::{Bounded, Change, CorruptSpec, LossPlan, LossSpec, PacketFilter};
use fastpath_spec::{
    Dependence, Description, DirectionDescription, EventDescription, NatDescription, NatSettings,
    NatTimeouts, NodeDescription, NodeRole, Rebinding, TrafficDescription, TrafficKind,
};
use fastpath_text::mistake::Remarks;
use fastpath_traffic::{CongestionControl, TransferModel, TransferProtocol, Workload};
use fastpath_units::{Duration, Probability};
use std::net::Ipv4Addr;
use std::num::NonZeroU32;

/// The directions of the bottleneck: their words in keys, in scenarios and in events.
const TO_CLIENT: usize = 1;
const DIRECTIONS: [(&str, &str, &str); 2] =
    [("server", "toserver", "forward"), ("client", "toclient", "backward")];

/// The addresses at which the client appears after rebindings, beside its own: the last octets.
const REBOUND: std::ops::RangeInclusive<u8> = 101..=131;
/// Sessions of the NAT do not end within a run of the simulator.
const RUN_MAX: Duration = Duration::from_secs(36_000);

/// The cross traffic. Over UDP: the start, the size in bytes and the port of ns-3's source.
const CROSS_START: Duration = Duration::from_secs(20);
const CROSS_SIZE: u32 = 512;
const CROSS_PORT: u16 = 9;
const CROSS_LINKS: [&str; 2] = ["left-sink", "right-source"];
const CROSS_HOSTS: [&str; 2] = ["sink", "source"];
const CROSS_ADDRESSES: [[&str; 2]; 2] =
    [["193.167.51.1/24", "193.167.51.2/24"], ["193.167.49.2/24", "193.167.49.1/24"]];

/// Adds what a scenario has beside the bottleneck.
pub(super) fn add(network: &mut Description, arguments: &mut Arguments, remarks: &mut Remarks) {
    match arguments.scenario {
        "drop-rate" => by_chance(network, arguments, remarks, |law| Change {
            egress_loss: Some(LossSpec::Bounded(law)),
            ..Change::default()
        }),
        "corrupt-rate" => by_chance(network, arguments, remarks, |law| Change {
            corrupt: Some(Some(CorruptSpec::UdpPayload(law))),
            ..Change::default()
        }),
        "droplist" => by_number(network, arguments, remarks),
        "blackhole" => blackhole(network, arguments, remarks),
        "rebind" => rebind(network, arguments, remarks),
        "udp-cross-traffic" => udp_cross_traffic(network, arguments, remarks),
        "tcp-cross-traffic" => tcp_cross_traffic(network),
        _ => {}
    }
}

fn direction(network: &mut Description, index: usize) -> &mut DirectionDescription {
    let bottleneck = &mut network.links[0];
    if index == TO_CLIENT { &mut bottleneck.backward } else { &mut bottleneck.forward }
}

/// Independent losses or corruption, with a bound on packets in a row.
fn by_chance(
    network: &mut Description,
    arguments: &mut Arguments,
    remarks: &mut Remarks,
    change: impl Fn(Bounded) -> Change,
) {
    for (index, (to, ..)) in DIRECTIONS.iter().enumerate() {
        let rate = arguments.percent(&format!("rate_to_{to}"), "10", remarks);
        let burst = arguments.optional(&format!("burst_to_{to}"));
        let burst = burst.and_then(|burst| burst.whole("3", 1..=i32::MAX as u64, remarks));
        let burst_max = burst.and_then(|burst| NonZeroU32::new(burst as u32));
        if let Some(probability) = rate.filter(|rate| !rate.is_never()) {
            let law = Bounded { probability, burst_max, of: PacketFilter::Udp };
            direction(network, index).values = change(law);
        }
    }
}

/// Losses of UDP datagrams by number.
fn by_number(network: &mut Description, arguments: &mut Arguments, remarks: &mut Remarks) {
    for (index, (to, ..)) in DIRECTIONS.iter().enumerate() {
        let given = arguments.optional(&format!("drops_to_{to}"));
        let Some(mut numbers) = given.and_then(|given| given.numbers(remarks)) else { continue };
        numbers.sort_unstable();
        numbers.dedup();
        if !numbers.is_empty() {
            let plan = LossPlan::Numbers { numbers: numbers.into(), of: PacketFilter::Udp };
            direction(network, index).values.egress_loss = Some(LossSpec::Plan(plan));
        }
    }
}

/// Times without any packet. They are times of arrival: a packet that leaves the bottleneck its
/// delay earlier is lost.
fn blackhole(network: &mut Description, arguments: &mut Arguments, remarks: &mut Remarks) {
    const REPEAT_MAX: u64 = 10_000;
    let on = arguments.span("on", "10s", remarks);
    let off = arguments.span("off", "2s", remarks);
    let repeat = arguments.optional("repeat");
    let repeat = repeat.map_or(Some(1), |repeat| repeat.whole("2", 1..=REPEAT_MAX, remarks));
    let words = ["both", DIRECTIONS[0].1, DIRECTIONS[1].1];
    let place = arguments.optional("direction");
    let place = place.map_or(Some(0), |direction| direction.word(&words, remarks));
    let delay = network.links[0].values.delay;
    let (Some(on), Some(off), Some(repeat), Some(place), Some(delay)) = (on, off, repeat, place, delay)
    else {
        return;
    };
    let direction = place.checked_sub(1).map(|index| DIRECTIONS[index].2.to_owned());
    let mut event = |at: Duration, loss| {
        network.events.push(EventDescription {
            at: at.saturating_sub(delay),
            links: vec![BOTTLENECK.to_owned()],
            direction: direction.clone(),
            values: Change { egress_loss: Some(loss), ..Change::default() },
            ..EventDescription::default()
        });
    };
    let mut start = on;
    for _ in 0..repeat {
        event(start, LossSpec::Uniform(Probability::ALWAYS));
        event(start + off, LossSpec::Never);
        start = start + off + on;
    }
}

/// A NAT in place of the router at the left: packets of the client have its own address and port
/// until the first rebinding.
fn rebind(network: &mut Description, arguments: &mut Arguments, remarks: &mut Remarks) {
    let first = arguments.span("first-rebind", "1s", remarks);
    let every = arguments.optional("rebind-freq").and_then(|every| every.time("3s", remarks));
    let moves = arguments.optional("rebind-addr").is_some_and(|moves| moves.switch(remarks));
    let client = Ipv4Addr::new(193, 167, 0, 100);
    let others = REBOUND.map(|last| Ipv4Addr::new(193, 167, 0, last));
    let nat = NatSettings {
        filtering: Dependence::EndpointIndependent,
        pool: std::iter::once(client).chain(others.filter(|_| moves)).collect(),
        ports: 1..=u16::MAX,
        port_parity: false,
        inbound_refresh: true,
        timeouts: NatTimeouts { udp: RUN_MAX, ..NatTimeouts::default() },
        ..NatSettings::default()
    };
    let router = network.nodes.iter_mut().find(|node| node.name == ROUTERS[0]).expect("the left router");
    router.kind = NodeRole::Nat;
    router.nat = NatDescription { inside: vec![ACCESS[0].to_owned()], settings: nat };
    // What is inside of a NAT is not known outside.
    let far = network.nodes.iter_mut().find(|node| node.name == ROUTERS[1]).expect("the right router");
    far.routes.push(("193.167.0.0/24".parse().expect("a prefix"), Ipv4Addr::new(193, 167, 50, 1).into()));
    network.events.push(EventDescription {
        at: first.unwrap_or_default(),
        nat: Some(ROUTERS[0].to_owned()),
        rebind: Some(if moves { Rebinding::Address } else { Rebinding::Port }),
        every: every.filter(|every| !every.is_zero()),
        ..EventDescription::default()
    });
}

/// A source at the right that sends at a constant rate to a sink at the left.
fn udp_cross_traffic(network: &mut Description, arguments: &mut Arguments, remarks: &mut Remarks) {
    let rate = arguments.rate("crossdatarate", "1Mbps", remarks);
    add_cross_hosts(network);
    network.traffic.push(TrafficDescription {
        rate,
        size: Some(CROSS_SIZE),
        start: CROSS_START,
        ..cross(TrafficKind::Constant)
    });
}

/// A source at the right that sends as much as Reno does to a sink at the left, from the start on.
fn tcp_cross_traffic(network: &mut Description) {
    add_cross_hosts(network);
    let (congestion, workload) = (CongestionControl::Reno, Workload::Bulk(None));
    let protocol = TransferProtocol::Tcp;
    let model = TransferModel { protocol, flows: 1, workload, congestion, ecn: false };
    network.traffic.push(cross(TrafficKind::Transfer(model)));
}

/// Cross traffic of a kind.
fn cross(kind: TrafficKind) -> TrafficDescription {
    TrafficDescription {
        name: Some("cross".to_owned()),
        port: Some(CROSS_PORT),
        ..TrafficDescription::new(CROSS_HOSTS[1], CROSS_HOSTS[0], kind)
    }
}

/// Adds the source and the sink.
fn add_cross_hosts(network: &mut Description) {
    for side in 0..2 {
        let [router, host] = CROSS_ADDRESSES[side].map(|address| [address]);
        let mut node = NodeDescription::host(CROSS_HOSTS[side]);
        node.addresses = on_link(CROSS_LINKS[side], &host);
        network.nodes.push(node);
        let name = ROUTERS[side];
        let it = network.nodes.iter_mut().find(|node| node.name == name).expect("a router");
        it.addresses.extend(on_link(CROSS_LINKS[side], &router));
        network.links.push(link(CROSS_LINKS[side], [name, CROSS_HOSTS[side]]));
    }
}
