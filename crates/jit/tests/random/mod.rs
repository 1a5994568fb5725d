//! Random switches and packets over few values, so that packets meet rules: every match field,
//! instruction, action, type of group and band; frames of every type that the key knows, whole, cut
//! and damaged.

mod bridging;
mod extension;

use fastpath_jit::ebpf::{KernelError, KernelTables, Trial};
use fastpath_jit::{Fate, Live, Worker};
use fastpath_switch::action::{ACTIONS, Action, Argument};
use fastpath_switch::edit;
use fastpath_switch::field::{FIELDS, Field, Needs, STANDARD};
use fastpath_switch::flow::{ClearActions, FlowCommand, FlowMod, Instructions, WriteMetadata, flags};
use fastpath_switch::group::{Bucket, GroupCommand, GroupKind, GroupMod};
use fastpath_switch::meter::{self, Band, BandKind, MeterCommand, MeterMod};
use fastpath_switch::outcome::{LearnedChange, PacketOutcome};
use fastpath_switch::port::{self, LinkState, Port};
use fastpath_switch::{FieldMatch, Limits, Match, Switch, Table, interp};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp};
use std::collections::BTreeMap;
use std::net::IpAddr;

const TABLES: u8 = 5;

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

/// Returns a value of a field that random packets may have.
fn value(rng: &mut Rng, field: Field) -> u128 {
    let small = u128::from(rng.below(4));
    let value = match field {
        Field::InPort | Field::InPhyPort => 1 + small,
        Field::EthDst
        | Field::EthSrc
        | Field::ArpSha
        | Field::ArpTha
        | Field::Ipv6NdSll
        | Field::Ipv6NdTll => 0x0200_0000_0000 + small,
        Field::EthType => {
            u128::from(pick(rng, &[0x0800u16, 0x86dd, 0x0806, 0x8847, 0x8848, 0x88e7, 0x1234, 0x05ff]))
        }
        Field::VlanVid => 0x1000 + small,
        Field::IpProto => u128::from(pick(rng, &[6u8, 17, 1, 58, 132])),
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => 0xc000_0200 + small,
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => 0xfe80 << 112 | small,
        Field::TcpDst | Field::UdpDst | Field::SctpDst => 50 + small,
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => 1000 + small,
        Field::Icmpv6Type => 135 + small % 2,
        Field::Ipv6Exthdr => small << 2,
        // Tracked: new, established, a reply, invalid.
        Field::CtState => pick(rng, &[0, 0x21, 0x22, 0x2a, 0x30]),
        Field::CtNwSrc | Field::CtNwDst => 0xc000_0200 + small,
        Field::CtIpv6Src | Field::CtIpv6Dst => 0xfe80 << 112 | small,
        Field::CtNwProto => u128::from(pick(rng, &[6u8, 17])),
        _ => small,
    };
    // Sometimes any value, including those that carry through whole checksums.
    let value = match rng.below(12) {
        0 => u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()),
        1 => u128::MAX,
        _ => value,
    };
    value & field.ones()
}

fn push(rng: &mut Rng, fields: &mut Vec<FieldMatch>, field: Field) {
    let value = if field == Field::VlanVid { value(rng, field) | 0x1000 } else { value(rng, field) };
    let mask = match (field.is_maskable(), rng.below(3)) {
        (true, 0) => field.ones() & !(field.ones() >> rng.below(field.bits().into())),
        (true, 1) => (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) & field.ones(),
        _ => field.ones(),
    };
    fields.push(FieldMatch::masked(field, value & mask, mask));
}

/// Returns a field; those of connection tracking, which few packets have, less often.
fn any_field(rng: &mut Rng) -> Field {
    let count = if rng.below(3) == 0 { FIELDS.len() } else { Field::CtState as usize };
    FIELDS[rng.below(count as u64) as usize].field
}

/// Returns a match of up to three fields, with their prerequisites.
fn any_match(rng: &mut Rng) -> Match {
    for _ in 0..20 {
        let mut fields = Vec::new();
        let first = any_field(rng).info();
        let (ethertype, protocol) = match first.needs {
            Needs::Nothing | Needs::VlanTag => (None, None),
            Needs::EthType(types) => (Some(pick(rng, types)), None),
            Needs::IpProto(types, protocol) => (Some(pick(rng, types)), Some(protocol)),
            Needs::Icmpv6(_) => (Some(0x86dd), Some(58)),
        };
        fields.extend(ethertype.map(|kind| FieldMatch::exact(Field::EthType, kind.into())));
        fields.extend(protocol.map(|number| FieldMatch::exact(Field::IpProto, number.into())));
        if let Needs::Icmpv6(types) = first.needs {
            fields.push(FieldMatch::exact(Field::Icmpv6Type, pick(rng, types).into()));
        }
        if first.needs == Needs::VlanTag {
            fields.push(FieldMatch::masked(Field::VlanVid, 0x1000, 0x1000));
        }
        push(rng, &mut fields, first.field);
        for _ in 0..rng.below(3) {
            let more = any_field(rng);
            push(rng, &mut fields, more);
        }
        // Fields that exclude each other are drawn again.
        if let Ok(matching) = Match::new(&fields) {
            return matching;
        }
    }
    Match::any()
}

/// Returns a match for many rules over few fields, so that tries, hashes and trees are built.
fn routed_match(rng: &mut Rng) -> Match {
    let mut fields = vec![FieldMatch::exact(Field::EthType, 0x0800)];
    let len = rng.below(33) as u32;
    let mask = u128::from(u32::MAX.checked_shl(32 - len).unwrap_or(0));
    fields.push(FieldMatch::masked(Field::Ipv4Dst, value(rng, Field::Ipv4Dst) & mask, mask));
    if rng.below(3) == 0 {
        fields.push(FieldMatch::exact(Field::IpProto, 17));
        fields.push(FieldMatch::exact(Field::UdpDst, value(rng, Field::UdpDst)));
    }
    Match::new(&fields).unwrap_or_else(|_| Match::any())
}

fn any_action(rng: &mut Rng) -> Action {
    match rng.below(46) {
        40.. => extension::any_extension(rng),
        0..10 => Action::output(pick(rng, &[1, 2, 3, 4, 5, 9, 2000, 4_000_000])),
        10..12 => {
            let to = pick(
                rng,
                &[port::ALL, port::FLOOD, port::NORMAL, port::IN_PORT, port::CONTROLLER, port::LOCAL],
            );
            Action::Output { port: to, max_len: 64 }
        }
        12 | 13 => Action::Group(1 + rng.below(4) as u32),
        14..25 => any_simple_action(rng),
        25..29 => Action::DecNwTtl,
        29..34 => {
            let common = [
                Field::EthDst,
                Field::EthSrc,
                Field::Ipv4Src,
                Field::Ipv4Dst,
                Field::TcpSrc,
                Field::TcpDst,
                Field::UdpSrc,
                Field::UdpDst,
            ];
            let field = pick(rng, &common);
            Action::SetField(field, value(rng, field))
        }
        _ => loop {
            let field = FIELDS[rng.below(FIELDS.len() as u64) as usize].field;
            if field.is_settable() {
                break Action::SetField(field, value(rng, field));
            }
        },
    }
}

/// Returns an action of any type whose argument is a number; all types are equally likely.
fn any_simple_action(rng: &mut Rng) -> Action {
    loop {
        match pick(rng, ACTIONS).argument {
            Argument::None(action) => return action,
            Argument::Ttl(make) => return make(rng.below(3) as u8),
            Argument::EtherType(make) => {
                // Others are refused.
                let possible: &[u16] = match make(0) {
                    Action::PushVlan(_) => &[0x8100, 0x88a8],
                    Action::PushMpls(_) => &[0x8847, 0x8848],
                    Action::PushPbb(_) => &[0x88e7],
                    _ => &[0x0800, 0x8847, 0x86dd],
                };
                return make(pick(rng, possible));
            }
            Argument::Number { make, .. } => return make(1 + rng.below(4) as u32),
            Argument::Own => {}
        }
    }
}

fn any_actions(rng: &mut Rng) -> Vec<Action> {
    (0..rng.below(5)).map(|_| any_action(rng)).collect()
}

/// Returns actions that the kernel has.
fn kernel_actions(rng: &mut Rng) -> Vec<Action> {
    let common = [
        Field::EthDst,
        Field::EthSrc,
        Field::VlanVid,
        Field::VlanPcp,
        Field::IpDscp,
        Field::IpEcn,
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::TcpSrc,
        Field::TcpDst,
        Field::UdpSrc,
        Field::UdpDst,
        Field::TunnelId,
    ];
    let action = |rng: &mut Rng| match rng.below(16) {
        0..6 => Action::output(pick(rng, &[1, 2, 3, 4, 5, 9, 2000])),
        6 => Action::output(pick(rng, &[port::ALL, port::FLOOD, port::IN_PORT, port::LOCAL])),
        7 => Action::Group(1 + rng.below(4) as u32),
        8 => Action::PushVlan(pick(rng, &[0x8100, 0x88a8])),
        9 => Action::PopVlan,
        10 => pick(rng, &[Action::DecNwTtl, Action::SetNwTtl(0), Action::SetNwTtl(2)]),
        _ => {
            let field = pick(rng, &common);
            Action::SetField(field, value(rng, field))
        }
    };
    (0..rng.below(5)).map(|_| action(rng)).collect()
}

/// Returns a switch whose rules the kernel has, mostly.
pub(crate) fn kernel_switch(rng: &mut Rng) -> Switch {
    let mut switch = Switch::new(Limits { tables: TABLES, ..Limits::default() });
    for number in [1, 2, 3, 4, 5, 2000, port::LOCAL] {
        switch.set_port(number, if rng.below(4) == 0 { any_port(rng) } else { Port::up() });
    }
    for id in 1..=4 {
        let kind =
            pick(rng, &[GroupKind::All, GroupKind::FastFailover, GroupKind::Indirect, GroupKind::Select]);
        let to = |rng: &mut Rng| {
            (0..rng.below(3)).map(|_| Action::output(1 + rng.below(6) as u32)).collect::<Vec<_>>()
        };
        let (watch_port, weight) = match kind {
            GroupKind::FastFailover => (1 + rng.below(6) as u32, 0),
            GroupKind::Select => (1 + rng.below(6) as u32, rng.below(4) as u16),
            _ => (port::ANY, 0),
        };
        let count = if kind == GroupKind::Indirect { 1 } else { rng.below(4) };
        let buckets = (0..count).map(|_| {
            let mut actions = to(rng);
            if rng.below(4) == 0 {
                actions.extend(
                    kernel_actions(rng).into_iter().filter(|action| !matches!(action, Action::Group(_))),
                );
            }
            Bucket { watch_port, weight, ..Bucket::new(actions) }
        });
        let request = GroupMod { command: GroupCommand::Add, id, kind, buckets: buckets.collect() };
        let _ = switch.group_mod(Time::ZERO, &request);
    }
    let style = rng.below(3);
    for _ in 0..5 + rng.below(60) {
        let mut request = any_add(rng, style);
        request.instructions.meter = None;
        request.instructions.apply = kernel_actions(rng);
        if !request.instructions.write.is_empty() {
            request.instructions.write = kernel_actions(rng);
        }
        let _ = switch.flow_mod(Time::ZERO, &request);
    }
    switch
}

/// Returns a request to add a flow, of OpenFlow 1.3 only in styles below 3.
fn any_add(rng: &mut Rng, style: u64) -> FlowMod {
    loop {
        let request = any_extended_add(rng, style % 3);
        let is_standard = request.instructions.actions().all(Action::is_standard)
            && request.matching.presence() >> STANDARD == 0;
        if style >= 3 || is_standard {
            return request;
        }
    }
}

/// Returns a request to add a flow. Many are refused, because their actions need more than their
/// match requires.
fn any_extended_add(rng: &mut Rng, style: u64) -> FlowMod {
    let table_id = rng.below(TABLES.into()) as u8;
    let goto = (table_id + 1 < TABLES && rng.below(2) == 0)
        .then(|| table_id + 1 + rng.below(u64::from(TABLES - table_id - 1)) as u8);
    let write = if rng.below(3) == 0 { any_actions(rng) } else { Vec::new() };
    let instructions = Instructions {
        meter: (rng.below(10) == 0).then(|| 1 + rng.below(2) as u32),
        apply: any_actions(rng),
        clear: if rng.below(8) == 0 { ClearActions::Clear } else { ClearActions::Keep },
        write,
        metadata: (rng.below(4) == 0)
            .then(|| WriteMetadata { value: rng.below(4), mask: pick(rng, &[3, 1, u64::MAX]) }),
        goto,
    };
    let instructions = match rng.below(12) {
        0 => Instructions::apply([extension::clause(rng)]),
        _ => instructions,
    };
    let matching = match (style, rng.below(8)) {
        (_, 0) => Match::any(),
        (0, _) => any_match(rng),
        (1, _) => routed_match(rng),
        _ if rng.below(2) == 0 => any_match(rng),
        _ => routed_match(rng),
    };
    let flags = if rng.below(10) == 0 { flags::NO_BYTE_COUNTS } else { 0 };
    let cookie = rng.below(3);
    FlowMod { flags, cookie, ..FlowMod::add(table_id, rng.below(6) as u16, matching, instructions) }
}

fn any_meter(rng: &mut Rng, command: MeterCommand, id: u32) -> MeterMod {
    let kind = pick(rng, &[BandKind::Drop, BandKind::DscpRemark(1)]);
    let bands = vec![Band { kind, rate: 1 + rng.below(50) as u32, burst: 1 + rng.below(3) as u32 }];
    MeterMod { command, id, flags: meter::flags::PKTPS | meter::flags::BURST, bands }
}

fn any_group(rng: &mut Rng, command: GroupCommand, id: u32) -> GroupMod {
    let kind = pick(rng, &[GroupKind::All, GroupKind::Select, GroupKind::FastFailover, GroupKind::Indirect]);
    let bucket = |rng: &mut Rng| {
        // Groups lead to groups of lower numbers only.
        let lower = |action: &Action| !matches!(action, Action::Group(other) if *other >= id);
        let actions: Vec<Action> = any_actions(rng).into_iter().filter(lower).collect();
        let watch_port = match kind {
            GroupKind::All | GroupKind::Indirect => port::ANY,
            GroupKind::Select | GroupKind::FastFailover => 1 + rng.below(6) as u32,
        };
        let weight = if kind == GroupKind::Select { rng.below(4) as u16 } else { 0 };
        Bucket { watch_port, weight, ..Bucket::new(actions) }
    };
    let count = if kind == GroupKind::Indirect { 1 } else { rng.below(4) };
    GroupMod { command, id, kind, buckets: (0..count).map(|_| bucket(rng)).collect() }
}

fn any_port(rng: &mut Rng) -> Port {
    let config = if rng.below(4) == 0 {
        pick(
            rng,
            &[
                port::config::PORT_DOWN,
                port::config::NO_RECV,
                port::config::NO_FWD,
                port::config::NO_PACKET_IN,
            ],
        )
    } else {
        0
    };
    Port { config, link: if rng.below(8) == 0 { LinkState::Down } else { LinkState::Up }, ..Port::up() }
}

/// Returns a switch with ports, groups, meters and flows.
pub(crate) fn any_switch(rng: &mut Rng) -> Switch {
    let mut switch = Switch::new(Limits { tables: TABLES, ..Limits::default() });
    for number in [1, 2, 3, 4, 5, 2000, port::LOCAL] {
        switch.set_port(number, any_port(rng));
    }
    for id in 1..=2 {
        // A refusal is acceptable.
        let _ = switch.meter_mod(Time::ZERO, &any_meter(rng, MeterCommand::Add, id));
    }
    for id in 1..=4 {
        let _ = switch.group_mod(Time::ZERO, &any_group(rng, GroupCommand::Add, id));
    }
    let style = rng.below(6);
    for _ in 0..5 + rng.below(60) {
        let _ = switch.flow_mod(Time::ZERO, &any_add(rng, style));
    }
    // Most rules that track packets are refused, because their match does not say IP.
    if rng.below(4) == 0 {
        track_all(rng, &mut switch);
    }
    if rng.below(2) == 0 {
        switch.set_bridging(bridging::any_bridging(rng));
        let normal = Instructions::apply([Action::output(port::NORMAL)]);
        let _ = switch.flow_mod(Time::ZERO, &FlowMod::add(0, 1, Match::any(), normal));
    }
    switch
}

/// Tracks all packets of IPv4.
fn track_all(rng: &mut Rng, switch: &mut Switch) {
    let ip = Match::new(&[FieldMatch::exact(Field::EthType, 0x0800)]).expect("a match");
    let track = Instructions::apply([extension::tracking(rng), Action::output(2)]);
    let _ = switch.flow_mod(Time::ZERO, &FlowMod::add(0, 6, ip, track));
}

/// Applies some requests that change a switch; refusals are part of it.
pub(crate) fn change(rng: &mut Rng, now: Time, switch: &mut Switch) {
    for _ in 0..1 + rng.below(6) {
        match rng.below(13) {
            12 => switch.set_bridging(bridging::any_bridging(rng)),
            0 => {
                let id = 1 + rng.below(4) as u32;
                let _ = switch.group_mod(now, &any_group(rng, GroupCommand::Modify, id));
            }
            1 => {
                let id = 1 + rng.below(2) as u32;
                let _ = switch.meter_mod(now, &any_meter(rng, MeterCommand::Modify, id));
            }
            2 => {
                let number = 1 + rng.below(5) as u32;
                let counters = switch.port(number).map(|port| port.counters).unwrap_or_default();
                switch.set_port(number, Port { counters, ..any_port(rng) });
            }
            kind => {
                let command = match kind {
                    3 => FlowCommand::Delete,
                    4 => FlowCommand::DeleteStrict,
                    5 | 6 => FlowCommand::Modify,
                    _ => FlowCommand::Add,
                };
                let mut request = FlowMod { command, ..any_add(rng, 2) };
                // Every other request applies to an existing flow.
                let flows: Vec<_> = switch.tables()[usize::from(request.table_id)].flows().collect();
                if !flows.is_empty() && rng.below(2) == 0 {
                    let (rank, _) = flows[rng.below(flows.len() as u64) as usize];
                    (request.priority, request.matching) = (rank.priority(), rank.matching().clone());
                }
                let _ = switch.flow_mod(now, &request);
            }
        }
    }
}

fn neighbour(rng: &mut Rng) -> Vec<u8> {
    let mut message = vec![pick(rng, &[135u8, 136, 128]), 0, 0, 0, 0, 0, 0, 0, 0xfe, 0x80];
    message.resize(23, 0);
    message.push(rng.below(4) as u8);
    message.extend([pick(rng, &[1, 2]), 1, 2, 0, 0, 0, 0, rng.below(4) as u8]);
    message
}

/// An IEEE 802.3 frame with LLC or SNAP.
fn llc(rng: &mut Rng) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, rng.below(4) as u8, 2, 0, 0, 0, 0, rng.below(4) as u8];
    frame.extend([0, 46]);
    frame.extend(pick(
        rng,
        &[
            [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x06],
            [0xaa, 0xaa, 3, 0, 0, 0, 0x12, 0x34],
            [0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0],
            [0x42, 0x42, 3, 0, 0, 0, 0, 0],
        ],
    ));
    frame.resize(60, 0);
    frame
}

fn arp(rng: &mut Rng) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, rng.below(4) as u8, 8, 6, 0, 1, 8, 0, 6, 4, 0, rng.below(4) as u8]);
    for _ in 0..2 {
        frame.extend([2, 0, 0, 0, 0, rng.below(4) as u8, 192, 0, 2, rng.below(4) as u8]);
    }
    frame
}

/// Returns a random frame.
pub(crate) fn any_frame(rng: &mut Rng) -> Vec<u8> {
    let is_v6 = rng.below(4) == 0;
    let end = |rng: &mut Rng| -> (MacAddr, IpAddr) {
        let (mac, host) = (rng.below(4) as u32, rng.below(4) as u16);
        let address: IpAddr =
            if is_v6 { [0xfe80, 0, 0, 0, 0, 0, 0, host].into() } else { [192, 0, 2, host as u8].into() };
        (MacAddr::from_index(mac), address)
    };
    let (from, to) = (end(rng), end(rng));
    let ttl = pick(rng, &[0, 1, 2, 3, 64]);
    let ip = Ip { ttl, traffic_class: pick(rng, &[0, 0, 40, 0xff]), ..Ip::between(from, to) };
    let (mut src_port, mut dst_port) = (1000 + rng.below(4) as u16, 50 + rng.below(4) as u16);
    // A packet in the other direction.
    if rng.below(4) == 0 {
        (src_port, dst_port) = (dst_port, src_port);
    }
    let mut frame = match rng.below(12) {
        0..4 => ip.tcp(&Tcp { src_port, dst_port, ..Tcp::default() }, b"payload"),
        4..8 => ip.udp(src_port, dst_port, b"payload"),
        8 => {
            let mut packet = src_port.to_be_bytes().to_vec();
            packet.extend(dst_port.to_be_bytes());
            packet.extend([0; 12]);
            ip.packet(132, &packet)
        }
        9 if is_v6 => ip.packet(58, &neighbour(rng)),
        9 => ip.packet(1, &[rng.below(4) as u8, 0, 0, 0, 1, 2, 3, 4]),
        10 if is_v6 => {
            ip.packet(pick(rng, &[0, 43, 44, 60]), &[17, 0, 0, 0, 1, 2, 3, 4, 3, 232, 0, 50, 0, 8, 0, 1])
        }
        11 if rng.below(3) == 0 => llc(rng),
        _ => arp(rng),
    };
    for _ in 0..2 {
        match rng.below(12) {
            0 | 1 => edit::push_vlan(&mut frame, pick(rng, &[0x8100, 0x88a8])),
            2 => edit::push_mpls(&mut frame, 0x8847),
            3 => edit::push_pbb(&mut frame, 0x88e7),
            _ => {}
        }
    }
    damage(rng, &mut frame);
    frame
}

fn damage(rng: &mut Rng, frame: &mut Vec<u8>) {
    match rng.below(10) {
        0 => frame.truncate(rng.below(frame.len() as u64 + 1) as usize),
        1 => frame.resize(frame.len() + rng.below(20) as usize, 0),
        2 | 3 => {
            // Headers more often than payload.
            let at = rng.below((frame.len() as u64).min(60)) as usize;
            let flipped = frame[at] ^ 1 << rng.below(8);
            frame[at] = pick(rng, &[0, 0xff, flipped]);
        }
        4 if frame.len() > 42 => {
            // Checksums of all zeros or all ones.
            let at = pick(rng, &[24, 40, 50]).min(frame.len() - 2);
            frame[at..at + 2].fill(pick(rng, &[0, 0xff]));
        }
        _ => {}
    }
}

/// Returns the outcomes of a worker for a frame, in the form of the interpreter.
pub(crate) fn run(worker: &mut Worker, in_port: u32, frame: &[u8]) -> Vec<PacketOutcome> {
    let mut bytes = frame.to_vec();
    let fate = worker.run(in_port, &mut bytes);
    let mut outcomes = std::mem::take(worker.outcomes());
    match fate {
        Fate::Forward { port, queue } => outcomes.push(PacketOutcome::Output { port, queue, frame: bytes }),
        Fate::Drop(reason) => outcomes.push(PacketOutcome::Drop(reason)),
        Fate::Done => {}
    }
    outcomes
}

/// Adds the flows that a worker's last packet has learned, which are its last outcomes.
fn learn(live: &mut Live, worker: &mut Worker, switch: &mut Switch, now: Time) -> Vec<PacketOutcome> {
    let learned = worker.take_learned();
    match switch.learn_all(now, &learned) {
        (LearnedChange::None, _) => {}
        (LearnedChange::Flows, tables) => live.update_flows(switch, &tables),
        (LearnedChange::OtherTables, _) => live.update(switch),
    }
    learned.into_iter().map(|flow| PacketOutcome::Learn(Box::new(flow))).collect()
}

/// Returns all counters as text.
pub(crate) fn counters(switch: &Switch) -> String {
    let flows: Vec<_> = switch.tables().iter().flat_map(Table::flows).map(|(_, flow)| flow).collect();
    let hits: Vec<_> = switch.tables().iter().map(Table::hits).collect();
    let groups: Vec<_> = switch.groups().collect();
    let ports: Vec<_> = switch.ports().collect();
    let meters: Vec<_> = switch.meters().collect();
    format!("{flows:#?} {hits:?} {groups:#?} {ports:#?} {meters:#?}")
}

/// What a comparison covered.
#[derive(Default)]
pub(crate) struct Seen {
    /// Pairs of switch and packet.
    pub(crate) pairs: u64,
    /// Connections that were committed.
    pub(crate) connections: u64,
    /// Frames that left.
    pub(crate) outputs: u64,
    /// Packet-ins.
    pub(crate) packet_ins: u64,
    /// Pairs that the kernel executed.
    pub(crate) in_kernel: u64,
    /// Frames that the kernel would have sent.
    pub(crate) kernel_outputs: u64,
    /// Pairs of user space, by what is said of them.
    pub(crate) in_user: BTreeMap<String, u64>,
    /// Whether bpf(2) is not permitted.
    pub(crate) no_kernel: bool,
}

/// Executes `packets` packets on one random switch, which changes now and then, compiled and
/// interpreted. Panics where they differ. The seed determines the switch and the packets.
pub(crate) fn compare(seed: u64, packets: u64, seen: &mut Seen) {
    let mut rng = Rng::new(seed);
    let mut switch = any_switch(&mut rng);
    let mut compiled = switch.clone();
    let mut live = Live::new(&mut compiled, 1).unwrap_or_else(|error| panic!("{error}"));
    let mut worker = live.worker(0);
    let mut made = None;
    for i in 0..packets {
        let now = Time::ZERO + Duration::from_ms(i * 10);
        if rng.below(packets / 3 + 1) == 0 {
            live.settle(&mut compiled);
            let mut twin = rng.clone();
            change(&mut rng, now, &mut switch);
            change(&mut twin, now, &mut compiled);
            if rng.below(8) == 0 {
                drop((switch.clear(&FlowMod::delete_all()), compiled.clear(&FlowMod::delete_all())));
            }
            live.update(&mut compiled);
            // The result of a job is taken over at once, or after further changes.
            if rng.below(2) == 0
                && let Some(job) = live.job()
            {
                made = Some(job.run().unwrap_or_else(|error| panic!("{error}")));
            }
            if rng.below(2) == 0
                && let Some(made) = made.take()
            {
                live.finish(&mut compiled, made);
            }
        }
        let in_port = pick(&mut rng, &[1, 2, 3, 4, 5, 2000, port::LOCAL, 7]);
        let frame = any_frame(&mut rng);
        let expected = interp(&mut switch, now, in_port, &frame);
        worker.begin(now);
        let mut found = run(&mut worker, in_port, &frame);
        found.extend(learn(&mut live, &mut worker, &mut compiled, now));
        assert!(
            found == expected,
            "seed {seed}, packet {i}, port {in_port}, frame {frame:02x?}\ncompiled {found:02x?}\ninterpreted {expected:02x?}\n{}",
            live.explain()
        );
        seen.pairs += 1;
        seen.outputs +=
            expected.iter().filter(|outcome| matches!(outcome, PacketOutcome::Output { .. })).count() as u64;
        seen.packet_ins +=
            expected.iter().filter(|outcome| matches!(outcome, PacketOutcome::Controller(_))).count() as u64;
    }
    seen.connections += switch.connections().counters().committed;
    assert_eq!(compiled.connections().list(Time::ZERO), switch.connections().list(Time::ZERO), "seed {seed}");
    assert_eq!(compiled.connections().counters(), switch.connections().counters(), "seed {seed}");
    live.settle(&mut compiled);
    let (found, expected) = (counters(&compiled), counters(&switch));
    if found != expected {
        let line = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        panic!("seed {seed}: counters differ, first at {line:?}");
    }
}

/// The third executor: a switch whose packets the kernel executes, and user space where it has to.
struct InKernel {
    switch: Switch,
    tables: Result<KernelTables, KernelError>,
}

impl InKernel {
    fn new(switch: Switch) -> InKernel {
        InKernel { tables: KernelTables::for_trials(&switch), switch }
    }

    /// Takes over changes of the switch.
    fn update(&mut self) {
        self.tables = KernelTables::for_trials(&self.switch);
    }

    /// Executes a frame, and counts it.
    fn run(&mut self, now: Time, in_port: u32, frame: &[u8], seen: &mut Seen) -> Vec<PacketOutcome> {
        let because = match &mut self.tables {
            Err(error) => error.to_string(),
            Ok(tables) => match tables.trial(in_port, frame) {
                // Test runs take no frames that end in an Ethernet or IP header.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                    "a test run takes no such frame".to_owned()
                }
                Err(error) => panic!("{error}: {frame:02x?}"),
                Ok(Trial::Done(outcomes)) => {
                    tables.credit(&mut self.switch, now).unwrap_or_else(|error| panic!("{error}"));
                    seen.in_kernel += 1;
                    let is_output =
                        |outcome: &&PacketOutcome| matches!(outcome, PacketOutcome::Output { .. });
                    seen.kernel_outputs += outcomes.iter().filter(is_output).count() as u64;
                    return outcomes;
                }
                Ok(Trial::InUser(reason)) => reason.why().to_owned(),
            },
        };
        *seen.in_user.entry(because).or_default() += 1;
        let outcomes = interp(&mut self.switch, now, in_port, frame);
        if outcomes.iter().any(|outcome| matches!(outcome, PacketOutcome::Learn(_))) {
            self.update();
        }
        outcomes
    }
}

/// Executes `packets` packets on one random switch, which changes now and then, in the kernel,
/// compiled and interpreted, with what the kernel has not interpreted in its place. Panics where
/// outcomes or counters differ.
pub(crate) fn compare_kernel(seed: u64, packets: u64, make: fn(&mut Rng) -> Switch, seen: &mut Seen) {
    let mut rng = Rng::new(seed);
    let mut switch = make(&mut rng);
    let mut kernel = InKernel::new(switch.clone());
    let mut compiled = switch.clone();
    let mut live = Live::new(&mut compiled, 1).unwrap_or_else(|error| panic!("{error}"));
    let mut worker = live.worker(0);
    match &kernel.tables {
        Err(error) if error.is_refusal() => return seen.no_kernel = true,
        Err(error @ (KernelError::Load(_) | KernelError::System(_))) => panic!("seed {seed}: {error}"),
        _ => {}
    }
    for i in 0..packets {
        let now = Time::ZERO + Duration::from_ms(i * 10);
        if rng.below(packets / 2 + 1) == 0 {
            live.settle(&mut compiled);
            change(&mut rng.clone(), now, &mut compiled);
            live.update(&mut compiled);
            let mut twin = rng.clone();
            change(&mut rng, now, &mut switch);
            change(&mut twin, now, &mut kernel.switch);
            kernel.update();
        }
        let in_port = pick(&mut rng, &[1, 2, 3, 4, 5, 2000, port::LOCAL, 7]);
        let frame = any_frame(&mut rng);
        let expected = interp(&mut switch, now, in_port, &frame);
        let found = kernel.run(now, in_port, &frame, seen);
        assert!(
            found == expected,
            "seed {seed}, packet {i}, port {in_port}, frame {frame:02x?}\nin the kernel {found:02x?}\ninterpreted   {expected:02x?}"
        );
        worker.begin(now);
        let mut found = run(&mut worker, in_port, &frame);
        found.extend(learn(&mut live, &mut worker, &mut compiled, now));
        assert!(found == expected, "seed {seed}, packet {i}: compiled");
        seen.pairs += 1;
    }
    live.settle(&mut compiled);
    assert!(counters(&compiled) == counters(&switch), "seed {seed}: counters of compiled tables");
    let (found, expected) = (counters(&kernel.switch), counters(&switch));
    if found != expected {
        let line = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        panic!("seed {seed}: counters differ, first at {line:?}");
    }
}
