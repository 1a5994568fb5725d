//! What OpenFlow 1.0 can say survives writing and reading, no input makes a decoder panic, and the
//! bytes are those of `openflow.h` 1.0.

mod nx;

use super::*;
use crate::message::tests::Draw;
use crate::message::{
    Codec, Description, ErrorMessage, Features, FlowFormat, FlowRemoved, FlowStats, HEADER_LEN, Hello,
    NO_BUFFER, Nicira, PacketIn, PacketInFormat, PacketOut, PacketQueue, Pages, PortDescription, PortMod,
    PortStats, PortStatus, QueueStats, Reply, Request, Role, TableStats, frame_len,
};
use fastpath_switch::Extension;
use fastpath_switch::flow::{ALL_TABLES, ANY_GROUP, flags};
use fastpath_switch::{
    Action, Field, FieldMatch, FlowCommand, FlowFilter, FlowMod, Instructions, Match, PortCounters, Version,
    port as ports,
};
use fastpath_units::{Duration, Rng};
use fastpath_wire::MacAddr;
use proptest::prelude::*;

/// The tags of the packets of a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagOfMatch {
    Unknown,
    None,
    Some,
}

/// A match of OpenFlow 1.0, and what it says of its packets.
struct Matched {
    matching: Match,
    tag: TagOfMatch,
    protocol: Option<u8>,
}

impl Matched {
    fn is_exact(&self) -> bool {
        let mut bytes = Vec::new();
        matching::write(&mut bytes, &self.matching);
        bytes[..4] == [0; 4]
    }
}

impl Draw {
    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    fn port_10(&mut self) -> u32 {
        port_number::widen(self.u16())
    }

    fn mac(&mut self) -> u128 {
        u128::from(self.u64() & 0xffff_ffff_ffff)
    }

    /// Returns a match of which every field is there, or some.
    fn matched(&mut self) -> Matched {
        let all = self.below(4) == 0;
        let mut fields = Vec::new();
        let (mut tag, mut protocol) = (TagOfMatch::Unknown, None);
        let is_there = |d: &mut Draw| all || d.coin();
        if is_there(self) {
            fields.push(FieldMatch::exact(Field::InPort, self.port_10().into()));
        }
        for field in [Field::EthSrc, Field::EthDst] {
            if is_there(self) {
                fields.push(FieldMatch::exact(field, self.mac()));
            }
        }
        match self.below(if all { 3 } else { 5 }) {
            0 => {
                fields.push(FieldMatch::exact(Field::VlanVid, 0));
                tag = TagOfMatch::None;
            }
            kind @ (1..4) => {
                let vid = FieldMatch::exact(Field::VlanVid, 0x1000 | u128::from(self.below(4096)));
                let any = FieldMatch::masked(Field::VlanVid, 0x1000, 0x1000);
                fields.push(if kind == 3 { any } else { vid });
                if kind != 2 || all {
                    fields.push(FieldMatch::exact(Field::VlanPcp, self.below(8).into()));
                }
                tag = TagOfMatch::Some;
            }
            _ => {}
        }
        if is_there(self) {
            let eth_type = [0x0800, 0x0800, 0x86dd, 0x0806, 0x88b5, 0x05ff][self.below(6) as usize];
            fields.push(FieldMatch::exact(Field::EthType, eth_type));
            protocol = self.network(eth_type, all, &mut fields);
        }
        Matched { matching: Match::new(&fields).unwrap(), tag, protocol }
    }

    /// Adds fields of the network and transport layers. Returns the IP protocol.
    fn network(&mut self, eth_type: u128, all: bool, fields: &mut Vec<FieldMatch>) -> Option<u8> {
        let addresses = match eth_type {
            0x0800 => [Field::Ipv4Src, Field::Ipv4Dst].as_slice(),
            0x0806 => &[Field::ArpSpa, Field::ArpTpa],
            _ => &[],
        };
        for field in addresses {
            let len = if all { 32 } else { self.below(33) as u32 };
            let mask = u128::from(u32::MAX.checked_shl(32 - len).unwrap_or(0));
            if mask != 0 {
                fields.push(FieldMatch::masked(*field, u128::from(self.u32()) & mask, mask));
            }
        }
        if eth_type == 0x0806 && self.coin() {
            fields.push(FieldMatch::exact(Field::ArpOp, self.u8().into()));
        }
        if !matches!(eth_type, 0x0800 | 0x86dd) {
            return None;
        }
        if all || self.coin() {
            fields.push(FieldMatch::exact(Field::IpDscp, self.below(64).into()));
        }
        if !all && self.coin() {
            return None;
        }
        let icmp = if eth_type == 0x0800 { 1 } else { 58 };
        let protocol = [6, 17, 132, icmp, 89][self.below(5) as usize];
        fields.push(FieldMatch::exact(Field::IpProto, protocol.into()));
        let pair = match (protocol, eth_type) {
            (6, _) => [Field::TcpSrc, Field::TcpDst],
            (17, _) => [Field::UdpSrc, Field::UdpDst],
            (132, _) => [Field::SctpSrc, Field::SctpDst],
            (1, _) => [Field::Icmpv4Type, Field::Icmpv4Code],
            (58, _) => [Field::Icmpv6Type, Field::Icmpv6Code],
            _ => return Some(protocol),
        };
        for field in pair {
            if all || self.coin() {
                fields.push(FieldMatch::exact(field, u128::from(self.u64()) & field.ones()));
            }
        }
        Some(protocol)
    }

    /// Returns what a list of actions of OpenFlow 1.0 is here.
    fn actions_10(&mut self, mut tag: TagOfMatch, protocol: Option<u8>) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..self.below(6) {
            match self.below(10) {
                0 | 1 => actions.push(Action::Output { port: self.port_10(), max_len: self.u16() }),
                kind @ (2 | 3) => {
                    let (field, number) = if kind == 2 {
                        (Field::VlanVid, self.below(4096))
                    } else {
                        (Field::VlanPcp, self.below(8))
                    };
                    let either = match field {
                        Field::VlanVid => Action::ModVlanVid(number as u16),
                        _ => Action::ModVlanPcp(number as u8),
                    };
                    let present = if kind == 2 { 0x1000 } else { 0 };
                    let set = Action::SetField(field, u128::from(number | present));
                    match tag {
                        TagOfMatch::Unknown => actions.push(either),
                        TagOfMatch::None => actions.extend([Action::PushVlan(0x8100), set]),
                        TagOfMatch::Some => actions.push(set),
                    }
                    tag = TagOfMatch::Some;
                }
                4 => {
                    actions.push(Action::PopVlan);
                    tag = if tag == TagOfMatch::None { TagOfMatch::None } else { TagOfMatch::Unknown };
                }
                5 => {
                    let field = if self.coin() { Field::EthSrc } else { Field::EthDst };
                    actions.push(Action::SetField(field, self.mac()));
                }
                6 => {
                    let field = if self.coin() { Field::Ipv4Src } else { Field::Ipv4Dst };
                    actions.push(Action::SetField(field, self.u32().into()));
                }
                7 => actions.push(Action::SetField(Field::IpDscp, self.below(64).into())),
                8 => {
                    let fields = if self.coin() {
                        [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc]
                    } else {
                        [Field::TcpDst, Field::UdpDst, Field::SctpDst]
                    };
                    let number = self.u16().into();
                    let known = [6, 17, 132].iter().position(|one| protocol == Some(*one));
                    let fields = known.map_or(fields.to_vec(), |place| vec![fields[place]]);
                    actions.extend(fields.into_iter().map(|field| Action::SetField(field, number)));
                }
                _ => {
                    let to = [1, 0xfeff, ports::IN_PORT, ports::LOCAL][self.below(4) as usize];
                    actions
                        .push(Action::Extension(Extension::Enqueue { port: to, queue: self.u32() }.into()));
                }
            }
        }
        actions
    }

    fn flow_mod_10(&mut self, tables: TableIds) -> FlowMod {
        let matched = self.matched();
        let commands = [
            FlowCommand::Add,
            FlowCommand::Modify,
            FlowCommand::ModifyStrict,
            FlowCommand::Delete,
            FlowCommand::DeleteStrict,
        ];
        let command = commands[self.below(5) as usize];
        let anywhere = if command == FlowCommand::Add { 0 } else { ALL_TABLES };
        FlowMod {
            command,
            table_id: if tables == TableIds::InCommand { self.below(255) as u8 } else { anywhere },
            cookie: self.u64(),
            cookie_mask: 0,
            new_cookie: None,
            importance: 0,
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            priority: if matched.is_exact() { u16::MAX } else { self.u16() },
            out_port: self.port_10(),
            out_group: ANY_GROUP,
            flags: self.below(4) as u16,
            instructions: Instructions::apply(self.actions_10(matched.tag, matched.protocol)),
            matching: matched.matching,
            version: Version::V10,
        }
    }

    fn filter_10(&mut self) -> FlowFilter {
        FlowFilter {
            table_id: self.u8(),
            out_port: self.port_10(),
            matching: self.matched().matching,
            ..FlowFilter::all()
        }
    }

    fn flow_stats_10(&mut self) -> FlowStats {
        let matched = self.matched();
        FlowStats {
            table_id: self.u8(),
            age: self.age(),
            priority: self.u16(),
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            importance: 0,
            idle: None,
            flags: 0,
            cookie: self.u64(),
            counters: self.counters(),
            instructions: Instructions::apply(self.actions_10(matched.tag, matched.protocol)),
            matching: matched.matching,
        }
    }

    fn description_10(&mut self) -> PortDescription {
        PortDescription {
            number: self.port_10(),
            hw_addr: MacAddr::from_index(self.u32()),
            name: self.text(),
            config: self.u32(),
            state: self.below(2) as u32,
            features: [0; 4].map(|_| port::widen_features(self.u32())),
            speeds: [0, 0],
        }
    }

    fn request_10(&mut self) -> Request {
        match self.below(8) {
            0 => Request::Desc,
            1 => Request::Flow(self.filter_10()),
            2 => Request::Aggregate(self.filter_10()),
            3 => Request::Table,
            4 => Request::PortStats(self.port_10()),
            5 => {
                let port = if self.coin() { ports::ANY } else { self.below(0xff00) as u32 };
                Request::Queue { port, queue: self.u32() }
            }
            6 => Request::PortDesc(ports::ANY),
            _ => Request::Experimenter { experimenter: self.u32(), kind: self.u32(), data: self.bytes() },
        }
    }

    fn reply_10(&mut self) -> Reply {
        match self.below(8) {
            0 => Reply::Desc(Description { software: self.text(), ..Description::default() }),
            1 => Reply::Flow(self.list(3, Draw::flow_stats_10)),
            2 => Reply::Aggregate { counters: self.counters(), flows: self.u32() },
            3 => Reply::Table(self.list(3, |d| TableStats {
                table_id: d.u8(),
                name: d.text(),
                entries: d.u32(),
                active: d.u32(),
                lookups: d.u64(),
                matched: d.u64(),
            })),
            4 => Reply::PortStats(self.list(3, |d| {
                let counters =
                    PortCounters { rx_bytes: d.u64(), tx_dropped: d.u64(), ..PortCounters::default() };
                PortStats { port: d.port_10(), counters, age: Duration::ZERO }
            })),
            5 => Reply::Queue(self.list(3, |d| QueueStats {
                port: d.port_10(),
                queue: d.u32(),
                sent: d.counters(),
                errors: d.u64(),
                age: Duration::ZERO,
            })),
            6 => Reply::PortDesc(self.list(3, Draw::description_10)),
            _ => Reply::Experimenter { experimenter: self.u32(), kind: self.u32(), data: self.bytes() },
        }
    }

    fn nicira(&mut self) -> Nicira {
        let roles = [Role::Equal, Role::Master, Role::Slave];
        match self.below(7) {
            0 => Nicira::RoleRequest(roles[self.below(3) as usize]),
            1 => Nicira::RoleReply(roles[self.below(3) as usize]),
            2 => Nicira::SetFlowFormat(if self.coin() { FlowFormat::Nxm } else { FlowFormat::Standard }),
            3 => Nicira::FlowModTableId(self.coin()),
            4 => Nicira::SetPacketInFormat(if self.coin() {
                PacketInFormat::Nxt
            } else {
                PacketInFormat::Standard
            }),
            5 => Nicira::SetAsync(self.masks()),
            _ => Nicira::SetControllerId(self.u16()),
        }
    }

    fn message_10(&mut self, tables: TableIds) -> Message {
        match self.below(24) {
            0 => Message::Hello(Hello { version: 1, bitmap: None }),
            1 => Message::Error(ErrorMessage { kind: self.u16(), code: self.u16(), data: self.bytes() }),
            2 => Message::EchoRequest(self.bytes()),
            3 => Message::EchoReply(self.bytes()),
            4 => Message::Experimenter { experimenter: self.u32(), kind: self.u32(), data: self.bytes() },
            5 => Message::FeaturesRequest,
            6 => Message::FeaturesReply(Features {
                datapath_id: self.u64(),
                buffers: self.u32(),
                tables: self.u8(),
                auxiliary_id: 0,
                capabilities: self.u32(),
                actions: self.u32(),
                ports: self.list(3, Draw::description_10),
            }),
            7 => Message::GetConfigRequest,
            8 => Message::GetConfigReply(Config { flags: self.u16(), miss_send_len: self.u16() }),
            9 => Message::SetConfig(Config { flags: self.u16(), miss_send_len: self.u16() }),
            10 => Message::PacketIn(PacketIn {
                userdata: Vec::new(),
                continuation: Vec::new(),
                buffer_id: self.u32(),
                total_len: self.u16(),
                reason: self.u8(),
                table_id: 0,
                cookie: u64::MAX,
                matching: Match::new(&[FieldMatch::exact(Field::InPort, self.port_10().into())]).unwrap(),
                data: self.bytes(),
            }),
            11 => Message::FlowRemoved(FlowRemoved {
                cookie: self.u64(),
                priority: self.u16(),
                reason: self.below(3) as u8,
                table_id: ALL_TABLES,
                age: self.age(),
                idle_timeout: self.u16(),
                hard_timeout: 0,
                packets: self.u64(),
                bytes: self.u64(),
                matching: self.matched().matching,
            }),
            12 => Message::PortStatus(PortStatus { reason: self.u8(), port: self.description_10() }),
            13 => Message::PacketOut(PacketOut {
                buffer_id: self.u32(),
                in_port: [7, ports::LOCAL, ports::CONTROLLER][self.below(3) as usize],
                fields: Vec::new(),
                actions: self.actions_10(TagOfMatch::Unknown, None),
                data: self.bytes(),
            }),
            14 | 22 => Message::FlowMod { buffer_id: self.u32(), request: self.flow_mod_10(tables) },
            15 => Message::PortMod(PortMod {
                port: self.port_10(),
                hw_addr: MacAddr::from_index(self.u32()),
                config: self.u32(),
                mask: self.u32(),
                advertise: port::widen_features(self.u32()),
            }),
            16 => Message::MultipartRequest { flags: self.u16(), request: self.request_10() },
            17 | 23 => Message::MultipartReply { flags: self.u16(), reply: self.reply_10() },
            18 => Message::BarrierRequest,
            19 => Message::BarrierReply,
            20 => Message::QueueGetConfigRequest { port: self.port_10() },
            21 => {
                let port = self.port_10();
                let queues = self.list(3, |d| PacketQueue { port, number: d.u32() });
                Message::QueueGetConfigReply { port, queues }
            }
            _ => Message::Nicira(self.nicira()),
        }
    }
}

/// Returns a codec whose flow mods have tables as given.
fn codec(tables: TableIds) -> Codec {
    let mut codec = Codec::new(Version::V10);
    if tables == TableIds::InCommand {
        codec.decode(&bytes_of(&codec, &Message::Nicira(Nicira::FlowModTableId(true)))).unwrap();
    }
    codec
}

fn bytes_of(codec: &Codec, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec.encode(7, message, &mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn what_openflow_10_can_say_survives_encoding_and_decoding(seed: u64, xid: u32) {
        let mut draw = Draw(Rng::new(seed));
        let tables = if draw.coin() { TableIds::InCommand } else { TableIds::None };
        let message = draw.message_10(tables);
        let mut bytes = vec![0xaa; 3];
        codec(tables).encode(xid, &message, &mut bytes);
        let bytes = &bytes[3..];
        prop_assert_eq!(bytes[0], 1);
        prop_assert_eq!(frame_len(bytes), Ok(Some(bytes.len())));
        prop_assert_eq!(codec(tables).decode(bytes), Ok((xid, message)));
    }

    #[test]
    fn a_damaged_or_cut_message_is_read_or_refused_and_what_is_read_can_be_written(seed: u64) {
        let mut draw = Draw(Rng::new(seed));
        let tables = if draw.coin() { TableIds::InCommand } else { TableIds::None };
        let mut bytes = bytes_of(&codec(tables), &draw.message_10(tables));
        for _ in 0..=draw.below(4) {
            let at = draw.below(bytes.len() as u64) as usize;
            bytes[at] = draw.u8();
        }
        bytes.truncate(HEADER_LEN.max(draw.below(2 * bytes.len() as u64) as usize));
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        if let Ok((xid, message)) = codec(tables).decode(&bytes) {
            let mut again = Vec::new();
            codec(tables).encode(xid, &message, &mut again);
            prop_assert_eq!(codec(tables).decode(&again), Ok((xid, message)));
        }
    }

    /// Whatever a flow of OpenFlow 1.3 is, it can be shown.
    #[test]
    fn every_flow_of_openflow_13_can_be_shown(seed: u64) {
        let flows = Draw(Rng::new(seed)).list(4, Draw::flow_stats);
        let shown = Message::MultipartReply { flags: 0, reply: Reply::Flow(flows.clone()) };
        let codec = &mut Codec::new(Version::V10);
        let (_, read) = codec.decode(&bytes_of(codec, &shown)).unwrap();
        let Message::MultipartReply { reply: Reply::Flow(read), .. } = read else { panic!("{read:?}") };
        prop_assert_eq!(read.len(), flows.len());
        for (read, flow) in read.iter().zip(&flows) {
            prop_assert!(flow.matching.is_within(&read.matching), "{:?} as {:?}", flow.matching, read.matching);
        }
    }
}

/// Reads hexadecimal digits; spaces and the text after `#` do not count.
fn hex(text: &str) -> Vec<u8> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
    let digits: Vec<u8> = lines.flat_map(str::bytes).filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A port, and its `struct ofp_phy_port`.
fn described() -> (PortDescription, &'static str) {
    let port = PortDescription {
        number: ports::LOCAL,
        hw_addr: MacAddr([2, 0, 0, 0, 0, 9]),
        name: "s1".to_owned(),
        config: 1,
        state: 1,
        features: [0x40 | 1 << 11, 0, 0x40 | 1 << 13, 0],
        speeds: [0, 0],
    };
    let phy_port = "fffe 020000000009 73310000000000000000000000000000
        00000001 00000001 000000c0 00000000 00000240 00000000";
    (port, phy_port)
}

fn in_port(number: u128) -> Match {
    Match::new(&[FieldMatch::exact(Field::InPort, number)]).unwrap()
}

/// `struct ofp_match` of `in_port(3)`.
const IN_PORT_3: &str = "003820fe 0003 000000000000 000000000000 0000 00 00 0000 00 00 0000
    00000000 00000000 0000 0000";

fn check_layout(message: Message, body: &str) {
    let codec = &mut Codec::new(Version::V10);
    let bytes = hex(body);
    assert_eq!(bytes_of(codec, &message), bytes, "{message:?}");
    assert_eq!(codec.decode(&bytes), Ok((7, message)));
}

/// The fields of `struct ofp_flow_mod` and of the actions, at their places.
#[test]
fn a_flow_mod_has_the_layout_of_the_header_file() {
    let bytes = hex("01 0e 0070 00000007
        0038084c         # wildcards: dl_src, dl_dst, tp_src, 8 bits of nw_src, nw_dst, pcp and tos
        0003             # in_port
        000000000000     # dl_src
        000000000000     # dl_dst
        0064 00 00       # dl_vlan, dl_vlan_pcp
        0800 00 06 0000  # dl_type, nw_tos, nw_proto
        c0000200 00000000
        0000 0050        # tp_src, tp_dst
        0102030405060708 # cookie
        0000 000a 0014   # add, idle and hard timeouts
        8000 ffffffff    # priority, buffer
        ffff 0003        # out_port, flags
        0001 0008 00c8 0000
        0006 0008 0a000001
        000b 0010 0002 000000000000 00000005
        0000 0008 fffd 0080");
    let matching = Match::new(&[
        FieldMatch::exact(Field::InPort, 3),
        FieldMatch::exact(Field::VlanVid, 0x1064),
        FieldMatch::exact(Field::EthType, 0x0800),
        FieldMatch::masked(Field::Ipv4Src, 0xc000_0200, 0xffff_ff00),
        FieldMatch::exact(Field::IpProto, 6),
        FieldMatch::exact(Field::TcpDst, 80),
    ]);
    let request = FlowMod {
        cookie: 0x0102_0304_0506_0708,
        idle_timeout: 10,
        hard_timeout: 20,
        flags: flags::SEND_FLOW_REM | flags::CHECK_OVERLAP,
        version: Version::V10,
        ..FlowMod::add(
            0,
            0x8000,
            matching.unwrap(),
            Instructions::apply([
                Action::SetField(Field::VlanVid, 0x10c8),
                Action::SetField(Field::Ipv4Src, 0x0a00_0001),
                Action::Extension(Extension::Enqueue { port: 2, queue: 5 }.into()),
                Action::Output { port: ports::CONTROLLER, max_len: 128 },
            ]),
        )
    };
    let message = Message::FlowMod { buffer_id: NO_BUFFER, request };
    let codec = &mut Codec::new(Version::V10);
    assert_eq!(codec.decode(&bytes), Ok((7, message.clone())));
    assert_eq!(bytes_of(codec, &message), bytes);
}

#[test]
fn asynchronous_messages_have_the_layout_of_the_header_file() {
    let (port, phy_port) = described();
    check_layout(
        Message::PortStatus(PortStatus { reason: 2, port }),
        &format!("01 0c 0040 00000007 02 00000000000000 {phy_port}"),
    );
    let packet_in = PacketIn {
        userdata: Vec::new(),
        continuation: Vec::new(),
        buffer_id: NO_BUFFER,
        total_len: 60,
        reason: 1,
        table_id: 0,
        cookie: u64::MAX,
        matching: in_port(3),
        data: vec![0xab, 0xcd],
    };
    check_layout(Message::PacketIn(packet_in), "01 0a 0014 00000007 ffffffff 003c 0003 01 00 abcd");
    let removed = FlowRemoved {
        cookie: 5,
        priority: 9,
        reason: 1,
        table_id: ALL_TABLES,
        age: Duration::from_ns(3_000_000_004),
        idle_timeout: 6,
        hard_timeout: 0,
        packets: 7,
        bytes: 8,
        matching: in_port(3),
    };
    check_layout(
        Message::FlowRemoved(removed),
        &format!(
            "01 0b 0058 00000007 {IN_PORT_3} 0000000000000005 0009 01 00 00000003 00000004 0006 0000
            0000000000000007 0000000000000008"
        ),
    );
}

#[test]
fn statistics_have_the_layout_of_the_header_file() {
    let reply = |reply| Message::MultipartReply { flags: 0, reply };
    let stats = FlowStats {
        table_id: 1,
        age: Duration::from_ns(3_000_000_004),
        priority: 9,
        idle_timeout: 6,
        hard_timeout: 7,
        importance: 0,
        idle: None,
        flags: 0,
        cookie: 5,
        counters: fastpath_switch::Counters { packets: 7, bytes: 8 },
        matching: in_port(3),
        instructions: Instructions::apply([Action::PopVlan]),
    };
    check_layout(
        reply(Reply::Flow(vec![stats])),
        &format!(
            "01 11 006c 00000007 0001 0000 0060 01 00 {IN_PORT_3} 00000003 00000004 0009 0006 0007
            000000000000 0000000000000005 0000000000000007 0000000000000008 0003 0008 00000000"
        ),
    );
    let table =
        TableStats { table_id: 1, name: "t1".to_owned(), entries: 100, active: 2, lookups: 3, matched: 4 };
    check_layout(
        reply(Reply::Table(vec![table])),
        &format!(
            "01 11 004c 00000007 0003 0000 01 000000 7431{} 003fffff 00000064 00000002
            0000000000000003 0000000000000004",
            "00".repeat(30)
        ),
    );
    let counters =
        PortCounters { rx_packets: 1, tx_packets: 2, rx_bytes: 3, tx_bytes: 4, ..PortCounters::default() };
    check_layout(
        reply(Reply::PortStats(vec![PortStats { port: 2, counters, age: Duration::ZERO }])),
        &format!(
            "01 11 0074 00000007 0004 0000 0002 000000000000 0000000000000001 0000000000000002
            0000000000000003 0000000000000004 {}",
            "00".repeat(64)
        ),
    );
}

#[test]
fn other_messages_have_the_layout_of_the_header_file() {
    let (port, phy_port) = described();
    let features = Features {
        datapath_id: 0x2a,
        buffers: 0,
        tables: 254,
        auxiliary_id: 0,
        capabilities: 0x87,
        actions: 0xfff,
        ports: vec![port],
    };
    check_layout(
        Message::FeaturesReply(features),
        &format!("01 06 0050 00000007 000000000000002a 00000000 fe 000000 00000087 00000fff {phy_port}"),
    );
    let hw_addr = MacAddr([2, 0, 0, 0, 0, 9]);
    check_layout(
        Message::PortMod(PortMod { port: 2, hw_addr, config: 1, mask: 0x11, advertise: 0 }),
        "01 0f 0020 00000007 0002 020000000009 00000001 00000011 00000000 00000000",
    );
    check_layout(
        Message::QueueGetConfigReply { port: 2, queues: vec![PacketQueue { port: 2, number: 9 }] },
        "01 15 0018 00000007 0002 000000000000 00000009 0008 0000",
    );
    check_layout(
        Message::Nicira(Nicira::RoleReply(Role::Master)),
        "01 04 0014 00000007 00002320 0000000b 00000001",
    );
    let mut codec = Codec::new(Version::V10);
    codec.decode(&hex("01 04 0018 00000007 00002320 0000000f 01 00000000000000")).unwrap();
    assert_eq!(codec, self::codec(TableIds::InCommand));
}

/// Returns the match that a message with these wildcards and fields has.
fn read_match(wildcards: u32, change: impl FnOnce(&mut [u8])) -> Result<Match, Fault> {
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&wildcards.to_be_bytes());
    change(&mut bytes[..]);
    matching::read(&mut ByteReader::new(&bytes, Fault::BadLen)).map(|read| read.matching)
}

#[test]
fn fields_without_their_prerequisite_are_ignored_as_in_open_vswitch() {
    let fields = |wildcards, change: &dyn Fn(&mut [u8])| {
        let matching = read_match(wildcards, change).unwrap();
        matching.fields().map(|field| (field.field, field.value)).collect::<Vec<_>>()
    };
    let all = matching::ALL;
    // tp_dst and nw_proto without an EtherType; nw_src of 40 ignored bits.
    assert_eq!(fields(all & !(1 << 7 | 1 << 5), &|bytes| bytes[39] = 80), []);
    // tp_dst without a protocol that has one.
    let ip = |bytes: &mut [u8]| bytes[22..24].copy_from_slice(&[8, 0]);
    assert_eq!(fields(all & !(1 << 4 | 1 << 7), &ip), [(Field::EthType, 0x0800)]);
    // A priority in packets without a tag.
    let untagged = |bytes: &mut [u8]| {
        bytes[18..20].fill(0xff);
        bytes[20] = 3;
    };
    assert_eq!(fields(all & !(1 << 1 | 1 << 20), &untagged), [(Field::VlanVid, 0)]);
    // The type of service in ARP; the operation and addresses are there.
    let arp = |bytes: &mut [u8]| {
        bytes[22..24].copy_from_slice(&[8, 6]);
        (bytes[24], bytes[25], bytes[31]) = (0x20, 2, 9);
    };
    assert_eq!(
        fields(all & !(1 << 4 | 1 << 5 | 1 << 21 | 0x3f << 8), &arp),
        [(Field::EthType, 0x0806), (Field::ArpOp, 2), (Field::ArpSpa, 9)]
    );
    // The lowest bits of the type of service are not compared.
    let tos = |bytes: &mut [u8]| {
        ip(bytes);
        bytes[24] = 0xb9;
    };
    assert_eq!(fields(all & !(1 << 4 | 1 << 21), &tos), [(Field::EthType, 0x0800), (Field::IpDscp, 0x2e)]);
    // Fields of RARP cannot be compared, and are not ignored.
    let rarp = |bytes: &mut [u8]| bytes[22..24].copy_from_slice(&[0x80, 0x35]);
    assert!(read_match(all & !(1 << 4 | 1 << 5), rarp).is_err());
}

#[test]
fn what_is_wrong_has_the_numbers_of_openflow_10() {
    let mut codec = Codec::new(Version::V10);
    let add = FlowMod {
        version: Version::V10,
        ..FlowMod::add(0, 1, Match::any(), Instructions::apply([Action::PopVlan]))
    };
    let right = bytes_of(&codec, &Message::FlowMod { buffer_id: NO_BUFFER, request: add });
    let mut refused = |changes: &[(usize, u8)]| {
        let mut bytes = right.clone();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        let fault = codec.decode(&bytes).expect_err("it is wrong");
        let error = codec.error(&fault, &bytes[..64]);
        let inside = error.data.first_chunk::<8>().copied();
        match (error.kind, error.code, inside) {
            (0xb0c2, 0, Some([0, 0, 0x23, 0x20, k0, k1, c0, c1])) => {
                assert_eq!(error.data[8..], bytes[..64]);
                (u16::from_be_bytes([k0, k1]), u16::from_be_bytes([c0, c1]))
            }
            (kind, code, _) => (kind, code),
        }
    };
    assert_eq!(refused(&[(0, 4)]), (1, 0), "version");
    assert_eq!(refused(&[(1, 22)]), (1, 1), "type");
    assert_eq!(refused(&[(1, 16), (9, 99)]), (1, 2), "statistics");
    assert_eq!(refused(&[(1, 4), (8, 0), (9, 0), (10, 0x23), (11, 0x20), (15, 99)]), (1, 4), "subtype");
    assert_eq!(refused(&[(1, 9)]), (1, 6), "length");
    assert_eq!(refused(&[(73, 77)]), (2, 0), "action");
    assert_eq!(refused(&[(75, 16)]), (2, 1), "action length");
    assert_eq!(refused(&[(73, 0xff), (72, 0xff)]), (2, 2), "vendor of an action");
    assert_eq!(refused(&[(73, 1), (76, 0x10)]), (2, 5), "VLAN id");
    assert_eq!(refused(&[(57, 9)]), (3, 4), "command");
    assert_eq!(refused(&[(71, 4)]), (3, 0), "an emergency flow");
    assert_eq!(refused(&[(71, 4), (61, 1)]), (3, 3), "an emergency flow that times out");
    assert_eq!(refused(&[(71, 8)]), (3, 258), "flags: an error of Nicira");
    let refusal = |fault: Fault| {
        let error = codec.error(&fault, &[]);
        (error.kind, error.code)
    };
    assert_eq!(refusal(Fault::IsSlave), (1, 5));
    assert_eq!(refusal(fastpath_switch::Refusal::FlowTableFull(0).into()), (3, 0));
    assert_eq!(refusal(fastpath_switch::Refusal::FlowOverlap.into()), (3, 1));
    assert_eq!(refusal(fastpath_switch::Refusal::PortUnknown(1).into()), (4, 0));
    assert_eq!(refusal(Fault::PortBadHwAddr(1)), (4, 1));
    assert_eq!(refusal(Fault::QueueBadPort(1)), (5, 0));
    assert_eq!(refusal(Fault::QueueBadQueue(1)), (5, 1));
}

#[test]
fn a_reply_that_is_too_long_for_one_message_is_cut_between_items() {
    let mut draw = Draw(Rng::new(1));
    let flows: Vec<FlowStats> = (0..2000).map(|_| draw.flow_stats_10()).collect();
    let mut bytes = Vec::new();
    let mut pages = Pages::begin(Version::V10, &mut bytes, 1, 5);
    for flow in &flows {
        let item = Reply::Flow(vec![flow.clone()]);
        pages.item(&mut bytes, |out| statistics::write_reply(out, &item));
    }
    pages.end(&mut bytes, 0);
    let (mut rest, mut read, mut all_flags) = (&bytes[..], Vec::new(), Vec::new());
    while let Ok(Some(len)) = frame_len(rest) {
        let (_, message) = Codec::new(Version::V10).decode(&rest[..len]).unwrap();
        let Message::MultipartReply { flags, reply: Reply::Flow(part) } = message else {
            panic!("{message:?}")
        };
        read.extend(part);
        all_flags.push(flags);
        rest = &rest[len..];
    }
    assert!(all_flags.len() > 1 && all_flags[..all_flags.len() - 1].iter().all(|flags| *flags == 1));
    assert_eq!((read, all_flags.last()), (flows, Some(&0)));
}
