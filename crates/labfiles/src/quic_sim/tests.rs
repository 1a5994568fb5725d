//! Scenarios, the networks that they are, and the mistakes in them.

use super::{BOTTLENECK, Endpoint, check};
use fastpath_link::{LossPlan, LossSpec, PacketFilter, PipeSpec};
use fastpath_spec::{Direction, NodeKind, Rebinding, Topology, describe};
use fastpath_units::{Duration, Probability, Rate, Time};

const LINK: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

fn endpoints() -> [Endpoint; 2] {
    [("eth0", "02:42:c1:a7:00:02"), ("eth1", "02:42:c1:a7:64:02")].map(|(port, mac)| Endpoint {
        port: port.parse().expect("a port"),
        mac: Some(mac.parse().expect("a MAC address")),
        mtu: Some(1500),
    })
}

fn topology(scenario: &str) -> Topology {
    let endpoints = endpoints().map(|endpoint| Endpoint { mac: None, ..endpoint });
    let checked = check(scenario, &endpoints);
    match checked.into_result() {
        Ok((spec, warnings)) => {
            assert_eq!(warnings, [], "{scenario}");
            spec.topology
        }
        Err(mistakes) => panic!("{scenario}: {mistakes:?}"),
    }
}

/// The pipes of the bottleneck: to the server, to the client.
fn pipes(scenario: &str) -> [PipeSpec; 2] {
    let topology = topology(scenario);
    let id = topology.link_named(BOTTLENECK).expect("the bottleneck");
    topology.link(id).pipes.clone()
}

fn p(percent: f64) -> Probability {
    Probability::new(percent / 100.0).expect("a probability")
}

#[test]
fn every_scenario_has_the_bottleneck_and_the_addresses_of_the_runner() {
    for rest in [
        "simple-p2p",
        "drop-rate --rate_to_client=10 --rate_to_server=0",
        "corrupt-rate --rate_to_client=10 --rate_to_server=0",
        "droplist",
        "blackhole --on=5s --off=2s",
        "rebind --first-rebind=1s",
        "udp-cross-traffic --crossdatarate=1Mbps",
    ] {
        let scenario = format!("{rest} {LINK}");
        let topology = topology(&scenario);
        let addresses = |name: &str| -> Vec<String> {
            let node = topology.node(topology.node_named(name).expect("a node"));
            node.interfaces.iter().flat_map(|it| &it.addresses).map(ToString::to_string).collect()
        };
        assert_eq!(addresses("client"), ["193.167.0.100/24", "fd00:cafe:cafe::100/64"]);
        assert_eq!(addresses("server"), ["193.167.100.100/24", "fd00:cafe:cafe:100::100/64"]);
        let right =
            ["193.167.50.2/24", "fd00:cafe:cafe:50::2/64", "193.167.100.2/24", "fd00:cafe:cafe:100::2/64"];
        assert_eq!(addresses("right")[..4], right);
        for pipe in pipes(&scenario) {
            assert_eq!((pipe.delay, pipe.rate), (Duration::from_ms(15), Rate::from_bps(10_000_000)));
            // 25 in the queue, one in the device, one on the wire.
            assert_eq!(pipe.queue.to_string(), "27p", "{scenario}");
            assert_eq!(pipe.framing.expect("PPP").on_wire(1514).0, 1502);
        }
        let described = fastpath_spec::resolve(&describe(&topology), &fastpath_spec::NO_FILES);
        assert_eq!(described.expect("a network").0, topology, "{scenario}");
    }
    let endpoint = |side: usize| endpoints()[side].mac;
    let (spec, _) = check(&format!("simple-p2p {LINK}"), &endpoints()).into_result().expect("a network");
    let left = spec.topology.node(spec.topology.node_named("left").expect("a router"));
    assert!(left.interfaces.iter().any(|interface| interface.mac == endpoint(0)));
}

#[test]
fn losses_and_corruption_are_of_udp_where_packets_arrive() {
    let [to_server, to_client] =
        pipes(&format!("drop-rate {LINK} --rate_to_client=10 --burst_to_client=3 --rate_to_server=0"));
    let LossSpec::Bounded(law) = to_client.egress_loss else { panic!("{to_client:?}") };
    assert_eq!(
        (law.probability, law.burst_max.map(|max| max.get()), law.of),
        (p(10.0), Some(3), PacketFilter::Udp)
    );
    assert!(to_server.egress_loss.is_never() && to_server.loss.is_never() && to_client.loss.is_never());
    let [to_server, to_client] =
        pipes(&format!("corrupt-rate {LINK} --rate_to_client=0 --rate_to_server=100 --burst_to_server=1"));
    assert!(to_client.corrupt.is_none());
    assert!(
        matches!(to_server.corrupt, Some(fastpath_link::CorruptSpec::UdpPayload(law)) if law.share() == 0.5)
    );
    let [to_server, to_client] =
        pipes(&format!("droplist {LINK} --drops_to_client=4,1,3,1, --drops_to_server="));
    let plan = LossPlan::Numbers { numbers: [1, 3, 4].into(), of: PacketFilter::Udp };
    assert_eq!((to_client.egress_loss, to_server.egress_loss), (LossSpec::Plan(plan), LossSpec::Never));
}

#[test]
fn a_blackhole_opens_so_long_and_so_often_for_packets_that_arrive() {
    let events = |rest: &str| -> Vec<(u64, Direction, f64)> {
        let topology = topology(&format!("blackhole {LINK} {rest}"));
        let share =
            |event: &fastpath_spec::Event| event.change.egress_loss.as_ref().map_or(-1.0, LossSpec::share);
        topology
            .events
            .iter()
            .map(|event| (event.at.as_ns() / 1_000_000, event.direction, share(event)))
            .collect()
    };
    let both = Direction::Both;
    assert_eq!(events("--on=1s --off=500ms"), [(985, both, 1.0), (1485, both, 0.0)]);
    let to_client = Direction::Backward;
    assert_eq!(
        events("--on=1 --off=0.5 --repeat=2 --direction=toclient"),
        [985, 1485, 2485, 2985].map(|at| (
            at,
            to_client,
            if at % 1000 == 985 && at < 1000 || at == 2485 { 1.0 } else { 0.0 }
        ))
    );
    assert_eq!(events("--on=1s --off=1s --direction=toserver")[0].1, Direction::Forward);
}

#[test]
fn a_nat_keeps_the_address_of_the_client_and_rebinds() {
    let of = |rest: &str| {
        let topology = topology(&format!("rebind {LINK} {rest}"));
        let node = topology.node(topology.node_named("left").expect("a router"));
        let NodeKind::Nat { nat, .. } = &node.kind else { panic!("{:?}", node.kind) };
        let event = topology.nat_events[0];
        (nat.settings.pool.clone(), event.at, event.every, event.rebinding)
    };
    let at = Time::ZERO + Duration::from_secs(1);
    let client = std::net::Ipv4Addr::new(193, 167, 0, 100);
    assert_eq!(of("--first-rebind=1s"), (vec![client], at, None, Rebinding::Port));
    let (pool, at, every, rebinding) = of("--first-rebind=1s --rebind-freq=5s --rebind-addr");
    assert_eq!(
        (pool[0], pool.len(), every, rebinding),
        (client, 32, Some(Duration::from_secs(5)), Rebinding::Address)
    );
    assert_eq!(at.as_ns(), 1_000_000_000);
    assert_eq!(of("--first-rebind=1s --rebind-freq=0s --rebind-addr=false").3, Rebinding::Port);
}

#[test]
fn cross_traffic_goes_to_the_clients_side_from_20_s_on() {
    let topology = topology(&format!("udp-cross-traffic {LINK} --crossdatarate=2Mbps"));
    let [traffic] = topology.traffic.as_slice() else { panic!("{:?}", topology.traffic) };
    let name = |id| topology.node(id).name.as_str();
    assert_eq!((name(traffic.from), name(traffic.to), traffic.port), ("source", "sink", 9));
    assert_eq!((traffic.model.size, traffic.start.as_ns() / 1_000_000_000, traffic.stop), (512, 20, None));
    assert_eq!(traffic.model.mean_bps(), 2e6);
}

#[test]
fn a_reno_connection_fills_the_link_to_the_clients_side() {
    let topology = topology(&format!("tcp-cross-traffic {LINK}"));
    let [transfer] = topology.transfers.as_slice() else { panic!("{:?}", topology.transfers) };
    let name = |id| topology.node(id).name.as_str();
    assert_eq!((name(transfer.from), name(transfer.to), transfer.port), ("source", "sink", 9));
    assert_eq!((transfer.start.as_ns(), transfer.stop, transfer.model.congestion.name()), (0, None, "reno"));
}

#[test]
fn mistakes_are_named_with_what_to_write() {
    let cases = [
        ("", "the scenario is empty; write one of simple-p2p, drop-rate, "),
        ("simple-p2 --delay=1ms", "there is no scenario 'simple-p2'; write simple-p2p"),
        ("satellite", "there is no scenario 'satellite'; write one of simple-p2p, "),
        ("simple-p2p --delay=15ms --queue=25", "simple-p2p has no --bandwidth; write --bandwidth=10Mbps"),
        ("simple-p2p LINK --loss=1", "simple-p2p has no --loss; write one of --delay, --bandwidth, --queue"),
        ("simple-p2p LINK --dealy=1ms", "simple-p2p has no --dealy; write --delay"),
        ("simple-p2p LINK --delay=9ms", "--delay is given twice; keep one of them"),
        (
            "simple-p2p --delay 15ms --bandwidth=1Mbps --queue=5",
            "'15ms' is not an argument; write --key=value",
        ),
        (
            "simple-p2p --delay=fast --bandwidth=1Mbps --queue=5",
            "--delay: 'fast' is not a time; write --delay=15ms",
        ),
        ("simple-p2p --delay=1ms --bandwidth=10Mbit --queue=5", "--bandwidth: '10Mbit' is not a rate; write"),
        ("simple-p2p --delay=1ms --bandwidth=1Mbps --queue=0", "--queue: '0' is not a whole number from 1"),
        (
            "drop-rate LINK --rate_to_client=101 --rate_to_server=1",
            "--rate_to_client: '101' is not a share in percent",
        ),
        ("drop-rate LINK --rate_to_client=1", "drop-rate has no --rate_to_server; write --rate_to_server=10"),
        (
            "drop-rate LINK --rate_to_client=1 --rate_to_server=1 --burst_to_server=0",
            "--burst_to_server: '0' is not a",
        ),
        ("droplist LINK --drops_to_client=0,1", "--drops_to_client: '0' is not a whole number from 1"),
        ("droplist LINK --drops_to_client=1;2", "--drops_to_client: '1;2' is not a whole number from 1"),
        ("blackhole LINK --on=0s --off=1s", "--on is 0; write --on=10s"),
        (
            "blackhole LINK --on=1s --off=1s --direction=up",
            "--direction: 'up' is unknown; write one of both, toserver",
        ),
        ("blackhole LINK --on=1s", "blackhole has no --off; write --off=2s"),
        ("rebind LINK", "rebind has no --first-rebind; write --first-rebind=1s"),
        (
            "rebind LINK --first-rebind=1s --rebind-addr=maybe",
            "--rebind-addr: 'maybe' is neither true nor false",
        ),
        ("tcp-cross-traffic LINK --crossdatarate=1Mbps", "tcp-cross-traffic has no --crossdatarate; write"),
        ("udp-cross-traffic LINK", "udp-cross-traffic has no --crossdatarate; write --crossdatarate=1Mbps"),
    ];
    for (scenario, expected) in cases {
        let scenario = scenario.replace("LINK", LINK);
        let mistakes = check(&scenario, &endpoints()).into_result().expect_err(&scenario);
        let said: Vec<String> =
            mistakes.iter().map(|mistake| format!("{}; {}", mistake.what, mistake.instead)).collect();
        assert!(said.iter().any(|said| said.starts_with(expected)), "{scenario}: {said:?}");
    }
    // All mistakes at once, each with its column.
    let scenario = "simple-p2p --delay=x --queue=y";
    let mistakes = check(scenario, &endpoints()).into_result().expect_err(scenario);
    let columns: Vec<usize> = mistakes.iter().map(|mistake| mistake.column).collect();
    assert_eq!(columns, [1, 12, 22]);
}
