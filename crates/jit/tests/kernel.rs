//! A switch in the kernel while its rules are replaced, by test runs of its program.
#![cfg(target_os = "linux")]

use fastpath_jit::ebpf::{KernelPort, KernelSwitch, KernelTables, Trial};
use fastpath_switch::{
    Action, Field, FieldMatch, FlowCommand, FlowMod, Instructions, Key, Limits, Match, Port, Switch, interp,
    workload,
};
use fastpath_sys::bpf::TestPacket;
use fastpath_units::{Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// The verdicts of tcx: to user space, and redirected.
const REDIRECTED: u32 = 7;
/// Loopback, where packets seem to come from, and an interface that is not there.
const FROM: u32 = 1;
const NOWHERE: u32 = i32::MAX as u32;

/// Three tables that each leave a number in the packet.
fn rules(number: u128) -> [FlowMod; 3] {
    let tag = 0x1000;
    let tagged = Match::new(&[FieldMatch::masked(Field::VlanVid, tag, tag)]).unwrap();
    let table = |id: u8, field, more: Option<Action>| {
        let (matching, number) =
            if field == Field::VlanVid { (tagged.clone(), tag | number) } else { (Match::any(), number) };
        let apply: Vec<Action> = [Action::SetField(field, number)].into_iter().chain(more).collect();
        let goto = (id < 2).then_some(id + 1);
        FlowMod::add(id, 1, matching, Instructions { goto, ..Instructions::apply(apply) })
    };
    let dst = table(0, Field::EthDst, None);
    [
        dst,
        table(1, Field::EthSrc, Some(Action::PushVlan(0x8100))),
        table(2, Field::VlanVid, Some(Action::output(2))),
    ]
}

fn switch_with(number: u128) -> Switch {
    let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
    (1..=2).for_each(|port| switch.set_port(port, Port::up()));
    change(&mut switch, number);
    switch
}

/// The flows stay, with other instructions.
fn change(switch: &mut Switch, number: u128) {
    for rule in rules(number) {
        let is_new = switch.tables()[usize::from(rule.table_id)].is_empty();
        let command = if is_new { FlowCommand::Add } else { FlowCommand::ModifyStrict };
        switch.flow_mod(Time::ZERO, &FlowMod { command, ..rule }).unwrap();
    }
}

fn frame() -> Vec<u8> {
    let end = |n: u8| (MacAddr::from_index(n.into()), [192, 0, 2, n].into());
    Ip::between(end(100), end(101)).udp(1000, 53, &[0; 40])
}

fn kernel(switch: &Switch) -> Option<KernelSwitch> {
    let at = |interface| KernelPort { interface, user: None };
    match KernelSwitch::new(switch, BTreeMap::from([(1, at(FROM)), (2, at(NOWHERE))])) {
        Err(error) if error.is_refusal() => {
            println!("SKIPPED tables in the kernel: bpf(2) is not permitted");
            None
        }
        made => Some(made.unwrap_or_else(|error| panic!("{error}"))),
    }
}

#[test]
fn a_packet_meets_the_old_rules_or_the_new_ones_and_every_packet_is_counted() {
    let mut switch = switch_with(1);
    let Some(mut kernel) = kernel(&switch) else { return };
    let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let packet = frame();
    let entry = kernel.entry().try_clone().unwrap();
    let seen = thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut seen = BTreeMap::new();
            while !is_over.load(Ordering::Relaxed) {
                let run = entry.test_run(TestPacket { bytes: &packet, interface: FROM }, 1).unwrap();
                assert_eq!(run.verdict, REDIRECTED);
                // The tag is in metadata, where a test run does not show it.
                let (dst, src) = (run.bytes[5], run.bytes[11]);
                assert_eq!((dst, run.bytes.len()), (src, packet.len()));
                *seen.entry(dst).or_insert(0u64) += 1;
                sent.fetch_add(1, Ordering::Relaxed);
            }
            seen
        });
        for round in 0..30u64 {
            let before = sent.load(Ordering::Relaxed);
            while sent.load(Ordering::Relaxed) < before + 20 && !traffic.is_finished() {
                thread::yield_now();
            }
            change(&mut switch, u128::from(2 + round % 5));
            kernel.update(&mut switch, Time::ZERO).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        traffic.join().unwrap()
    });
    assert!(seen.len() > 4, "{seen:?}");
    let total: u64 = seen.values().sum();
    kernel.tables_mut().credit(&mut switch, Time::ZERO).unwrap();
    for (id, len) in [(0, 0), (1, 0), (2, 4)] {
        let table = &switch.tables()[id];
        let (_, flow) = table.flows().next().unwrap();
        let bytes = total * (packet.len() as u64 + len);
        assert_eq!(
            (flow.counters.packets, flow.counters.bytes, table.hits()),
            (total, bytes, (total, total))
        );
    }
    let counters = [1, 2].map(|port| switch.port(port).unwrap().counters);
    assert_eq!((counters[0].rx_packets, counters[1].tx_packets), (total, total));
}

#[test]
fn a_switch_that_has_stopped_leaves_packets_to_user_space_and_loses_no_count() {
    let mut switch = switch_with(1);
    let Some(mut kernel) = kernel(&switch) else { return };
    let entry = kernel.entry().try_clone().unwrap();
    let packet = frame();
    let run = || entry.test_run(TestPacket { bytes: &packet, interface: FROM }, 1).unwrap();
    assert_eq!(run().verdict, REDIRECTED);
    kernel.pause(&mut switch, Time::ZERO).unwrap();
    let left = run();
    assert_eq!((left.verdict, left.bytes), (0, packet.clone()));
    assert_eq!(switch.tables()[0].hits(), (1, 1));
}

/// Returns a TCP packet with the addresses and ports of a key.
fn packet_of(key: &Key) -> Vec<u8> {
    let number = |field| key.get(field).unwrap_or(0);
    let address = |field| std::net::Ipv4Addr::from(number(field) as u32).into();
    let end = |field| (MacAddr::from_index(7), address(field));
    let ports = (number(Field::TcpSrc) as u16, number(Field::TcpDst) as u16);
    let ip = Ip::between(end(Field::Ipv4Src), end(Field::Ipv4Dst));
    match number(Field::IpProto) as u8 {
        17 => ip.udp(number(Field::UdpSrc) as u16, number(Field::UdpDst) as u16, b"x"),
        6 => ip.tcp(&Tcp { src_port: ports.0, dst_port: ports.1, ..Tcp::default() }, b"x"),
        other => ip.packet(other, &[0; 8]),
    }
}

#[test]
fn filters_of_many_masks_and_routes_of_any_priority_find_the_flows_of_the_interpreter() {
    let mut rng = Rng::new(3);
    let shuffled = |(_, matching): (u16, Match)| (rng.below(1000) as u16, matching);
    let routes: Vec<_> = workload::routes(2000, 1).into_iter().map(shuffled).collect();
    for filters in [workload::filters(1500, 1), routes] {
        let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
        (1..=2).for_each(|port| switch.set_port(port, Port::up()));
        for (priority, matching) in &filters {
            let what = Instructions::apply([Action::output(2)]);
            switch.flow_mod(Time::ZERO, &FlowMod::add(0, *priority, matching.clone(), what)).unwrap();
        }
        let mut expected = switch.clone();
        let mut tables = match KernelTables::for_trials(&switch) {
            Err(error) if error.is_refusal() => {
                return println!("SKIPPED tables in the kernel: bpf(2) is not permitted");
            }
            made => made.unwrap_or_else(|error| panic!("{error}")),
        };
        for key in workload::matching_keys(&filters, 300, 2) {
            let frame = packet_of(&key);
            let outcomes = interp(&mut expected, Time::ZERO, 1, &frame);
            assert_eq!(tables.trial(1, &frame).unwrap(), Trial::Done(outcomes), "{key:?}");
        }
        tables.credit(&mut switch, Time::ZERO).unwrap();
        let counts = |switch: &Switch| -> Vec<u64> {
            switch.tables()[0].flows().map(|(_, flow)| flow.counters.packets).collect()
        };
        assert_eq!(counts(&switch), counts(&expected));
        assert!(counts(&switch).iter().filter(|packets| **packets > 0).count() > 100);
    }
}
