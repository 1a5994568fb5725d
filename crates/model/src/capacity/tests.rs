//! Tests of predictions against costs known exactly.

use super::*;
use crate::model::Model;
use crate::scaling::ScalingCosts;
use crate::terms::Terms;
use proptest::prelude::*;

/// 100 ns for a packet, and 50 ns for each pipe, 30 for each router, 20 more with CoDel.
fn costs() -> EngineCosts {
    let terms: Terms = "const,bytes,pipes,routers,spread,calls,log,q_codel".parse().expect("terms");
    let constants = [100.0, 0.05, 50.0, 30.0, 1.0, 60.0, 200.0, 20.0];
    let around = |value: f64| Estimate::around(value, 0.1 * value);
    EngineCosts {
        packet: Model::from_constants(terms, &constants, 1e-9).expect("as many constants"),
        queues: vec!["codel".to_owned()],
        scaling: ScalingCosts { handover: Estimate::exact(0.25), slowdown: Estimate::exact(1.0) },
        lateness: LatenessCosts {
            idle_p50_us: around(10.0),
            idle_p99_us: around(40.0),
            waiting_p50_us: around(5.0),
            waiting_p99_us: around(30.0),
        },
        memory: MemoryCosts {
            program_bytes: around(1e7),
            engine_bytes: Estimate::exact(0.0),
            link_bytes: around(2000.0),
            port_bytes: around(20_000.0),
            per_held_byte: around(2.0),
        },
        start: StartCosts {
            engine_s: around(0.01),
            link_s: around(1e-5),
            pair_s: Estimate::exact(1e-6),
            lab_s: None,
            host_s: None,
        },
        lab: Some(LabCosts {
            packet: of_engine(900.0, 1.0),
            lateness: LatenessCosts {
                idle_p50_us: around(20.0),
                idle_p99_us: around(80.0),
                waiting_p50_us: around(10.0),
                waiting_p99_us: around(60.0),
            },
            tcp_bit: of_engine(0.1, 0.0001),
            tcp_fill: Estimate { value: 0.99, low: 0.97, high: 1.0 },
        }),
    }
}

/// A fixed time, and a factor of that between ports in memory.
fn of_engine(fixed: f64, factor: f64) -> Model {
    let terms = "const,engine_ns".parse().expect("terms");
    Model::from_constants(terms, &[fixed, factor], 1e-9).expect("as many constants")
}

fn demand(packets_per_second: f64) -> Demand {
    Demand {
        packets_per_second,
        packet: PacketShape {
            port: "memory".to_owned(),
            bytes: 1000.0,
            pipes: 3.0,
            routers: 2.0,
            ..PacketShape::default()
        },
        parts: vec![PartLoad { work: 1.0, crossings: 0.0 }],
        cores: 4,
        links: 3,
        ports: 2,
        held_bytes: 1e6,
        queue_bytes_max: 3e6,
        memory_limit: 1e9,
        tolerance_us: 1000.0,
        lab_hosts: 0,
        tcp_bottleneck_bps: f64::INFINITY,
        tcp_packet: tcp_packet(3.0),
    }
}

/// 100 + 50 + 50 for each pipe.
fn tcp_packet(pipes: f64) -> PacketShape {
    PacketShape { port: "tap".to_owned(), bytes: 1000.0, pipes, ..PacketShape::default() }
}

#[test]
fn the_costs_of_a_packet_add_up() {
    let mut shape = demand(0.0).packet;
    let ns = |shape: &PacketShape| costs().packet_ns(shape).expect("measured");
    // 100 + 50 + 150 + 60.
    assert_eq!(ns(&shape).value, 360.0);
    shape.queues.insert("codel".to_owned(), 2.0);
    assert_eq!(ns(&shape).value, 400.0);
    shape.log = 3.0;
    assert_eq!(ns(&shape).value, 1000.0);
    shape.port = "tap".to_owned();
    assert_eq!(ns(&shape).value, 1900.0);
    shape.queues.insert("pie".to_owned(), 1.0);
    assert_eq!(costs().unmeasured(&shape), ["pie"]);
    shape.port = "AF_XDP".to_owned();
    let error = costs().packet_ns(&shape).unwrap_err().to_string();
    assert!(error.contains("AF_XDP were not measured (measured: memory, tap)"), "{error}");
}

#[test]
fn a_load_below_the_capacity_is_carried_and_one_above_is_not() {
    let capacity = 1e9 / 360.0;
    let verdict = |factor: f64| {
        let demand = demand(factor * capacity);
        judge(&demand, &predict(&costs(), &demand).expect("measured"))
    };
    assert_eq!(verdict(0.5).0, CapacityVerdict::Carries);
    let (found, limits) = verdict(1.37);
    assert_eq!((found, limits[0].what.as_str()), (CapacityVerdict::Not, "worker 0: 137 % of a core"));
    let none = demand(0.0);
    let predicted = predict(&costs(), &none).expect("measured");
    assert_eq!(judge(&none, &predicted).0, CapacityVerdict::UpTo);
    assert!((predicted.packets_per_second.value - capacity).abs() < 1e-6);
    assert_eq!(predicted.lateness_p99_us.value, 40.0);
}

#[test]
fn lateness_grows_with_the_load_and_without_bound_at_the_capacity() {
    let at = |load: f64| costs().lateness.at(Estimate::exact(load))[1];
    assert_eq!(at(0.0).value, 40.0);
    assert_eq!(at(0.5).value, 70.0);
    assert!((at(0.9).value - 310.0).abs() < 1e-9);
    assert!(at(1.0).value.is_infinite() && at(2.0).low.is_infinite());
    // A tolerance is exceeded before the capacity is.
    let mut demand = demand(0.9 * 1e9 / 360.0);
    demand.tolerance_us = 100.0;
    let (verdict, limits) = judge(&demand, &predict(&costs(), &demand).expect("measured"));
    assert_eq!((verdict, limits[0].kind), (CapacityVerdict::Not, LimitKind::Lateness));
}

#[test]
fn memory_and_start_are_sums_of_their_parts() {
    let mut demand = demand(1000.0);
    let predicted = predict(&costs(), &demand).expect("measured");
    assert_eq!(predicted.memory_bytes.value, 1e7 + 3.0 * 2000.0 + 2.0 * 20_000.0 + 2e6);
    assert!(predicted.memory_bytes.high > 1.1 * (1e7 + 8e6), "full queues: {predicted:?}");
    assert!((predicted.start_s.expect("measured").value - 0.010_039).abs() < 1e-9);
    demand.lab_hosts = 2;
    assert_eq!(predict(&costs(), &demand).expect("measured").start_s, None);
    let mut with_labs = costs();
    (with_labs.start.lab_s, with_labs.start.host_s) =
        (Some(Estimate::exact(0.1)), Some(Estimate::exact(0.02)));
    let start = predict(&with_labs, &demand).expect("measured").start_s.expect("measured");
    assert!((start.value - 0.150_039).abs() < 1e-9, "{start:?}");
    demand.held_bytes = 2e9;
    let (verdict, limits) = judge(&demand, &predict(&costs(), &demand).expect("measured"));
    assert_eq!((verdict, limits[0].kind), (CapacityVerdict::Not, LimitKind::Memory));
}

#[test]
fn tcp_is_limited_by_the_slowest_link_or_by_the_machine() {
    let rate = |bottleneck: f64, pipes: f64| {
        let demand = Demand { tcp_bottleneck_bps: bottleneck, tcp_packet: tcp_packet(pipes), ..demand(0.0) };
        predict(&costs(), &demand).expect("measured").tcp_bits_per_second.expect("measured")
    };
    let slow = rate(1e9, 1.0);
    assert!((slow.value - 0.99e9 * TCP_GOODPUT).abs() < 1.0 && slow.low < slow.value, "{slow:?}");
    // 0.1 + 0.0001 · 200, and twice 50 ns more.
    assert!((rate(f64::INFINITY, 1.0).value - 1e9 / 0.12).abs() < 10.0);
    assert!((rate(f64::INFINITY, 3.0).value - 1e9 / 0.13).abs() < 10.0);
    let unmeasured = EngineCosts { lab: None, ..costs() };
    let found = predict(&unmeasured, &demand(0.0)).expect("in memory");
    assert_eq!(found.tcp_bits_per_second, None);
}

#[test]
fn packets_of_bulk_connections_cost_less_than_datagrams() {
    // 360 ns in memory, with 900 more for hosts and ports.
    let mut lab = demand(700_000.0);
    (lab.packet.port, lab.lab_hosts) = ("tap".to_owned(), 2);
    let (verdict, limits) = judge(&lab, &predict(&costs(), &lab).expect("measured"));
    let worst = limits[0].what.as_str();
    assert_eq!(
        (verdict, worst),
        (CapacityVerdict::Carries, "worker 0 with the hosts: 88 % of what they carry")
    );
    // (0.1 + 0.0001 · 360) · 11,584 bits, for a packet and half an acknowledgement.
    lab.packet.bulk = 1.0;
    let ns = |packet: &PacketShape| costs().packet_ns(packet).expect("measured").value;
    let bulk = 0.136 * 11_584.0 / 1.5;
    assert!((ns(&lab.packet) - bulk).abs() < 1e-6);
    lab.packet.bulk = 0.25;
    assert!((ns(&lab.packet) - 0.25 * bulk - 0.75 * 1260.0).abs() < 1e-6);
}

#[test]
fn another_worker_is_offered_where_it_would_carry_the_load() {
    let one = demand(1.4 * 1e9 / 360.0);
    let two = Demand { parts: vec![PartLoad { work: 0.5, crossings: 0.1 }; 2], ..one.clone() };
    let predicted = predict(&costs(), &one).expect("measured");
    let alternatives = [("--workers 2".to_owned(), two.clone()), ("nothing".to_owned(), one.clone())];
    let found = remedies(&costs(), &predicted, &alternatives).expect("measured");
    assert_eq!(found.len(), 1);
    assert!(found[0].carries && found[0].with == "--workers 2", "{found:?}");
    // 1 / (0.5 + 0.1 · 0.25) of one worker.
    assert!(
        (found[0].packets_per_second.value / predicted.packets_per_second.value - 1.0 / 0.525).abs() < 1e-9
    );
    let on_one_core = Demand { cores: 1, ..two };
    let shared = predict(&costs(), &on_one_core).expect("measured");
    assert!(shared.packets_per_second.value < predicted.packets_per_second.value);
}

proptest! {
    #[test]
    fn more_work_never_carries_more(
        pipes in 1.0f64..8.0, more in 0.0f64..3.0, bytes in 60.0f64..1500.0, load in 1e3f64..1e7, log in 0.0f64..4.0,
    ) {
        let shape = PacketShape { bytes, pipes, log, ..demand(load).packet };
        let less = Demand { packet: shape.clone(), ..demand(load) };
        let greater = Demand { packet: PacketShape { pipes: pipes + more, log: log + more, ..shape }, ..demand(load * (1.0 + more)) };
        let [less, greater] = [less, greater].map(|demand| (predict(&costs(), &demand).unwrap(), demand));
        prop_assert!(greater.0.packets_per_second.value <= less.0.packets_per_second.value);
        prop_assert!(greater.0.busiest.value >= less.0.busiest.value);
        prop_assert!(greater.0.lateness_p99_us.value >= less.0.lateness_p99_us.value);
        for (predicted, demand) in [less, greater] {
            for estimate in [predicted.packets_per_second, predicted.memory_bytes, predicted.start_s.unwrap(), predicted.lateness_p50_us] {
                prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high, "{:?}", estimate);
            }
            let (verdict, limits) = judge(&demand, &predicted);
            prop_assert_eq!(verdict == CapacityVerdict::Not, limits.iter().any(|limit| limit.share.low > 1.0));
            prop_assert!(limits.is_sorted_by(|a, b| a.share.value >= b.share.value));
        }
    }
}
