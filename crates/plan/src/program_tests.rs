//! Whole pipelines on whole packets: planned and interpreted execution give the same outcomes and
//! counters.

use super::*;
use fastpath_switch::Limits;
use fastpath_switch::action::Action;
use fastpath_switch::field::Field;
use fastpath_switch::flow::{ClearActions, FlowMod, Instructions, WriteMetadata};
use fastpath_switch::group::{Bucket, GroupCommand, GroupKind, GroupMod};
use fastpath_switch::interp::{interp, interp_by};
use fastpath_switch::meter::{self, Band, BandKind, MeterCommand, MeterMod};
use fastpath_switch::port::{self, Port};
use fastpath_switch::workload;
use fastpath_switch::{FieldMatch, Match};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp};

const TABLES: u8 = 4;

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// A match over few values, so that random packets meet it.
fn any_match(rng: &mut Rng) -> Match {
    let v4 = [FieldMatch::exact(Field::EthType, 0x0800)];
    let mut fields = Vec::new();
    let small = |rng: &mut Rng| u128::from(rng.below(4));
    match rng.below(10) {
        0 => {}
        1 => fields.push(FieldMatch::exact(Field::InPort, 1 + small(rng))),
        2 => fields.push(FieldMatch::exact(Field::EthDst, 0x0200_0000_0000 + small(rng))),
        3 => fields.push(FieldMatch::masked(Field::VlanVid, 0x1000, 0x1000)),
        4 => fields.push(FieldMatch::masked(Field::Metadata, small(rng), 3)),
        5 => fields.push(FieldMatch::exact(Field::EthType, pick(rng, &[0x86dd, 0x8847, 0x88e7, 0x0806]))),
        kind => {
            fields.extend(v4);
            let len = rng.below(4) * 8 + 8;
            let mask = u128::from(u32::MAX << (32 - len));
            fields.push(FieldMatch::masked(Field::Ipv4Dst, (0xc000_0200 + small(rng)) & mask, mask));
            if kind > 7 {
                fields.push(FieldMatch::exact(Field::IpProto, 17));
                fields.push(FieldMatch::exact(Field::UdpDst, 50 + small(rng)));
            }
        }
    }
    Match::new(&fields).unwrap_or_else(|refusal| panic!("{fields:?}: {refusal}"))
}

fn any_action(rng: &mut Rng) -> Action {
    let small = u128::from(rng.below(4));
    let set = Action::SetField;
    match rng.below(24) {
        0..6 => Action::output(pick(rng, &[1, 2, 3, 4, 9, port::ALL, port::IN_PORT, port::CONTROLLER])),
        6 | 7 => Action::Group(1 + rng.below(3) as u32),
        8 => Action::PushVlan(0x8100),
        9 => Action::PopVlan,
        10 => Action::PushMpls(0x8847),
        11 => Action::PopMpls(0x0800),
        12 => Action::PushPbb(0x88e7),
        13 => Action::PopPbb,
        14 => Action::DecNwTtl,
        15 => Action::DecMplsTtl,
        16 => Action::CopyTtlIn,
        17 => Action::CopyTtlOut,
        18 => Action::SetQueue(rng.below(3) as u32),
        19 => set(Field::EthDst, 0x0200_0000_0000 + small),
        20 => set(Field::TunnelId, small),
        21 => set(Field::Ipv4Dst, 0xc000_0200 + small),
        22 => set(Field::UdpDst, 50 + small),
        _ => set(Field::VlanVid, 0x1000 + small),
    }
}

fn any_actions(rng: &mut Rng) -> Vec<Action> {
    (0..rng.below(4)).map(|_| any_action(rng)).collect()
}

fn any_flow(rng: &mut Rng) -> FlowMod {
    let table_id = rng.below(TABLES.into()) as u8;
    let metadata = (rng.below(3) == 0).then(|| WriteMetadata { value: rng.below(4), mask: 3 });
    let goto = (table_id + 1 < TABLES && rng.below(2) == 0).then_some(table_id + 1);
    let instructions = Instructions {
        meter: (rng.below(8) == 0).then_some(1),
        apply: any_actions(rng),
        clear: if rng.below(8) == 0 { ClearActions::Clear } else { ClearActions::Keep },
        write: any_actions(rng),
        metadata,
        goto,
    };
    FlowMod::add(table_id, rng.below(6) as u16, any_match(rng), instructions)
}

fn any_switch(rng: &mut Rng) -> Switch {
    let mut switch = Switch::new(Limits { tables: TABLES, ..Limits::default() });
    (1..=4).for_each(|port| switch.set_port(port, Port::up()));
    let bands = vec![Band { kind: pick(rng, &[BandKind::Drop, BandKind::DscpRemark(1)]), rate: 2, burst: 2 }];
    let flags = meter::flags::PKTPS | meter::flags::BURST;
    let add = MeterMod { command: MeterCommand::Add, id: 1, flags, bands };
    switch.meter_mod(Time::ZERO, &add).expect("a good meter");
    for (id, kind) in [(1, GroupKind::All), (2, GroupKind::Select), (3, GroupKind::FastFailover)] {
        let bucket = |rng: &mut Rng| {
            let actions: Vec<Action> =
                any_actions(rng).into_iter().filter(|action| !matches!(action, Action::Group(_))).collect();
            let watch_port = 1 + rng.below(5) as u32;
            match kind {
                GroupKind::Select => Bucket { weight: 1, watch_port, ..Bucket::new(actions) },
                GroupKind::FastFailover => Bucket { watch_port, ..Bucket::new(actions) },
                GroupKind::All | GroupKind::Indirect => Bucket::new(actions),
            }
        };
        let buckets = (0..1 + rng.below(3)).map(|_| bucket(rng)).collect();
        let add = GroupMod { command: GroupCommand::Add, id, kind, buckets };
        switch.group_mod(Time::ZERO, &add).expect("a good group");
    }
    switch
}

/// Adds flows. Those whose actions their match does not allow are refused, which is correct too.
fn add_flows(rng: &mut Rng, switch: &mut Switch, count: u64) {
    for _ in 0..count {
        let _ = switch.flow_mod(Time::ZERO, &any_flow(rng));
    }
}

fn any_frame(rng: &mut Rng) -> Vec<u8> {
    let end = |n: u64| (MacAddr::from_index(n as u32), [192, 0, 2, n as u8].into());
    let ip = Ip { ttl: rng.below(4) as u8, ..Ip::between(end(rng.below(4)), end(rng.below(4))) };
    let mut frame = match rng.below(3) {
        0 => ip.tcp(&Tcp { src_port: 1, dst_port: 80, ..Tcp::default() }, b"payload"),
        _ => ip.udp(1000, 50 + rng.below(4) as u16, b"payload"),
    };
    match rng.below(8) {
        0 => fastpath_switch::edit::push_vlan(&mut frame, 0x8100),
        1 => fastpath_switch::edit::push_mpls(&mut frame, 0x8847),
        2 => fastpath_switch::edit::push_pbb(&mut frame, 0x88e7),
        3 => frame.truncate(rng.below(60) as usize),
        4 => {
            let at = rng.below(frame.len() as u64) as usize;
            frame[at] ^= 1 << rng.below(8);
        }
        _ => {}
    }
    frame
}

/// All counters.
fn counters(switch: &Switch) -> String {
    let flows: Vec<_> =
        switch.tables().iter().flat_map(Table::flows).map(|(_, flow)| flow.counters).collect();
    let hits: Vec<_> = switch.tables().iter().map(Table::hits).collect();
    let groups: Vec<_> = switch.groups().map(|(_, group)| (group.counters, &group.bucket_counters)).collect();
    let ports: Vec<_> = switch.ports().map(|(_, port)| port.counters).collect();
    let meters: Vec<_> = switch.meters().collect();
    format!("{flows:?} {hits:?} {groups:?} {ports:?} {meters:?}")
}

#[test]
fn planned_and_interpreted_switches_execute_packets_alike() {
    let mut rng = Rng::new(11);
    let mut sent = 0;
    for program in 0..150 {
        let mut switch = any_switch(&mut rng);
        let flows = 5 + rng.below(120);
        add_flows(&mut rng, &mut switch, flows);
        let mut plan = Plan::new(&mut switch);
        if program % 2 == 0 {
            // Half of the switches have a delta.
            add_flows(&mut rng, &mut switch, 20);
            plan.update(&mut switch);
        }
        let mut planned = switch.clone();
        for i in 0..100 {
            let (now, in_port, frame) =
                (Time::ZERO + Duration::from_ms(i * 10), 1 + rng.below(5) as u32, any_frame(&mut rng));
            let expected = interp(&mut switch, now, in_port, &frame);
            let found = interp_by(&plan, &mut planned, now, in_port, &frame);
            assert_eq!(
                found,
                expected,
                "program {program}, port {in_port}, frame {frame:02x?}\n{}",
                plan.explain()
            );
        }
        assert_eq!(counters(&planned), counters(&switch), "program {program}");
        sent += switch.ports().map(|(_, port)| port.counters.tx_packets).sum::<u64>();
    }
    assert!(sent > 3000, "too few packets match: {sent} of 15000 packets left");
}

#[test]
fn a_plan_of_many_routes_reports_its_depth() {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    let mut depth = |filters: &[workload::Filter]| {
        for (priority, matching) in filters {
            let add = FlowMod::add(0, *priority, matching.clone(), Instructions::default());
            switch.flow_mod(Time::ZERO, &add).expect("room");
        }
        Plan::new(&mut switch).depth()
    };
    assert_eq!(depth(&[]), Depth::Nothing);
    assert_eq!(depth(&workload::macs(20, 1)), Depth::Link);
    assert_eq!(depth(&workload::routes(20, 1)), Depth::Network);
    assert_eq!(depth(&workload::filters(20, 1)), Depth::Transport);
}
