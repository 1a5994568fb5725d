//! Every message survives encoding and decoding, no input makes a decoder panic, and faults have
//! the numbers of the specification.

mod nx;

use super::*;
use fastpath_switch::flow::{ClearActions, WriteMetadata};
use fastpath_switch::group::{self, BUCKET_UNNUMBERED};
use fastpath_switch::{
    Action, Band, BandKind, Bucket, Counters, Field, FieldMatch, FlowCommand, FlowFilter, GroupCommand,
    GroupKind, Instructions, Match, MeterCommand, PortCounters, Version, port,
};
use fastpath_units::{Duration, Rng};
use fastpath_wire::MacAddr;
use proptest::prelude::*;

/// Generates well-formed messages with random content.
pub(super) struct Draw(pub(super) Rng);

impl Draw {
    pub(super) fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    pub(super) fn u32(&mut self) -> u32 {
        self.u64() as u32
    }
    pub(super) fn u16(&mut self) -> u16 {
        self.u64() as u16
    }
    pub(super) fn u8(&mut self) -> u8 {
        self.u64() as u8
    }
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }
    pub(super) fn list<T>(&mut self, most: u64, mut item: impl FnMut(&mut Draw) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| item(self)).collect()
    }
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        self.list(40, Draw::u8)
    }
    pub(super) fn text(&mut self) -> String {
        self.list(15, |d| char::from(b'a' + d.below(26) as u8)).into_iter().collect()
    }
    pub(super) fn age(&mut self) -> Duration {
        Duration::from_ns(self.below(1 << 53))
    }
    pub(super) fn counters(&mut self) -> Counters {
        Counters { packets: self.u64(), bytes: self.u64() }
    }

    fn matching(&mut self) -> Match {
        let mut fields = vec![FieldMatch::exact(Field::InPort, self.u32().into())];
        let masked = |d: &mut Draw, field: Field| {
            let mask = u128::from(d.u64()) << 64 | u128::from(d.u64());
            let value = u128::from(d.u64()) << 64 | u128::from(d.u64());
            FieldMatch::masked(field, value & mask & field.ones(), mask & field.ones())
        };
        fields.push(masked(self, Field::EthDst));
        fields.push(masked(self, Field::Metadata));
        let v6 = self.below(2) == 1;
        fields.push(FieldMatch::exact(Field::EthType, if v6 { 0x86dd } else { 0x0800 }));
        fields.push(masked(self, if v6 { Field::Ipv6Dst } else { Field::Ipv4Dst }));
        fields.push(FieldMatch::exact(Field::IpProto, 6));
        fields.push(masked(self, Field::TcpDst));
        fields.truncate(self.below(8) as usize);
        Match::new(&fields).unwrap()
    }

    fn action(&mut self) -> Action {
        match self.below(17) {
            0 => Action::Output { port: self.u32(), max_len: self.u16() },
            1 => Action::Group(self.u32()),
            2 => Action::SetQueue(self.u32()),
            3 => {
                let field = Field::from_number(self.below(40) as u8).unwrap();
                Action::SetField(field, u128::from(self.u64()) & field.ones())
            }
            4 => Action::PushVlan(self.u16()),
            5 => Action::PopVlan,
            6 => Action::PushMpls(self.u16()),
            7 => Action::PopMpls(self.u16()),
            8 => Action::PushPbb(self.u16()),
            9 => Action::PopPbb,
            10 => Action::CopyTtlOut,
            11 => Action::CopyTtlIn,
            12 => Action::SetMplsTtl(self.u8()),
            13 => Action::DecMplsTtl,
            14 => Action::SetNwTtl(self.u8()),
            _ => Action::DecNwTtl,
        }
    }

    fn instructions(&mut self) -> Instructions {
        let coin = |d: &mut Draw| d.below(2) == 1;
        Instructions {
            meter: coin(self).then(|| self.u32()),
            apply: self.list(4, Draw::action),
            clear: if coin(self) { ClearActions::Clear } else { ClearActions::Keep },
            write: self.list(4, Draw::action),
            metadata: coin(self).then(|| WriteMetadata { value: self.u64(), mask: self.u64() }),
            goto: coin(self).then(|| self.u8()),
        }
    }

    fn bucket(&mut self) -> Bucket {
        let (weight, watch_port, watch_group) = (self.u16(), self.u32(), self.u32());
        Bucket { id: BUCKET_UNNUMBERED, weight, watch_port, watch_group, actions: self.list(4, Draw::action) }
    }

    fn group_kind(&mut self) -> GroupKind {
        [GroupKind::All, GroupKind::Select, GroupKind::Indirect, GroupKind::FastFailover]
            [self.below(4) as usize]
    }

    fn band(&mut self) -> Band {
        let kind = if self.below(2) == 0 { BandKind::Drop } else { BandKind::DscpRemark(self.u8()) };
        Band { kind, rate: self.u32(), burst: self.u32() }
    }

    fn filter(&mut self) -> FlowFilter {
        FlowFilter {
            table_id: self.u8(),
            out_port: self.u32(),
            out_group: self.u32(),
            cookie: self.u64(),
            cookie_mask: self.u64(),
            matching: self.matching(),
        }
    }

    pub(super) fn port(&mut self) -> PortDescription {
        PortDescription {
            number: self.u32(),
            hw_addr: MacAddr::from_index(self.u32()),
            name: self.text(),
            config: self.u32(),
            state: self.u32(),
            features: [0; 4].map(|_| self.u32()),
            speeds: [0; 2].map(|_| self.u32()),
        }
    }

    fn table(&mut self) -> TableFeatures {
        let fields =
            |d: &mut Draw| d.list(6, |d| (Field::from_number(d.below(40) as u8).unwrap(), d.below(2) == 0));
        let whom = if self.below(2) == 0 { For::Flows } else { For::Miss };
        TableFeatures {
            table_id: self.u8(),
            name: self.text(),
            metadata_match: self.u64(),
            metadata_write: self.u64(),
            config: self.u32(),
            entries: self.u32(),
            properties: vec![
                Property::Instructions(whom, self.list(5, Draw::u16)),
                Property::NextTables(whom, self.list(5, Draw::u8)),
                Property::WriteActions(whom, self.list(5, Draw::u16)),
                Property::ApplyActions(whom, self.list(5, Draw::u16)),
                Property::Match(fields(self)),
                Property::Wildcards(fields(self)),
                Property::WriteSetField(whom, fields(self)),
                Property::ApplySetField(whom, fields(self)),
            ],
        }
    }

    fn flow_mod(&mut self) -> FlowMod {
        let commands = [FlowCommand::Add, FlowCommand::ModifyStrict, FlowCommand::Delete];
        FlowMod {
            command: commands[self.below(3) as usize],
            table_id: self.u8(),
            cookie: self.u64(),
            cookie_mask: self.u64(),
            new_cookie: None,
            importance: 0,
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            priority: self.u16(),
            out_port: self.u32(),
            out_group: self.u32(),
            flags: self.u16(),
            matching: self.matching(),
            instructions: self.instructions(),
            version: Version::V13,
        }
    }

    fn request(&mut self) -> Request {
        match self.below(15) {
            0 => Request::Desc,
            1 => Request::Flow(self.filter()),
            2 => Request::Aggregate(self.filter()),
            3 => Request::Table,
            4 => Request::PortStats(self.u32()),
            5 => Request::Queue { port: self.u32(), queue: self.u32() },
            6 => Request::Group(self.u32()),
            7 => Request::GroupDesc(group::ALL),
            8 => Request::GroupFeatures,
            9 => Request::Meter(self.u32()),
            10 => Request::MeterConfig(self.u32()),
            11 => Request::MeterFeatures,
            12 => Request::TableFeatures(self.list(3, Draw::table)),
            13 => Request::PortDesc(port::ANY),
            _ => Request::Experimenter { experimenter: self.u32(), kind: self.u32(), data: self.bytes() },
        }
    }

    fn reply(&mut self) -> Reply {
        match self.below(15) {
            0 => Reply::Desc(Description {
                manufacturer: self.text(),
                datapath: self.text(),
                ..Description::default()
            }),
            1 => Reply::Flow(self.list(3, Draw::flow_stats)),
            2 => Reply::Aggregate { counters: self.counters(), flows: self.u32() },
            3 => Reply::Table(self.list(3, |d| TableStats {
                table_id: d.u8(),
                name: String::new(),
                entries: 0,
                active: d.u32(),
                lookups: d.u64(),
                matched: d.u64(),
            })),
            4 => Reply::PortStats(self.list(3, |d| {
                let counters =
                    PortCounters { rx_packets: d.u64(), tx_dropped: d.u64(), ..PortCounters::default() };
                PortStats { port: d.u32(), counters, age: d.age() }
            })),
            5 => Reply::Queue(self.list(3, |d| QueueStats {
                port: d.u32(),
                queue: d.u32(),
                sent: d.counters(),
                errors: d.u64(),
                age: d.age(),
            })),
            6 => Reply::Group(self.list(3, |d| GroupStats {
                id: d.u32(),
                references: d.u32(),
                counters: d.counters(),
                age: d.age(),
                buckets: d.list(4, Draw::counters),
            })),
            7 => Reply::GroupDesc(self.list(3, |d| GroupDescription {
                id: d.u32(),
                kind: d.group_kind(),
                buckets: d.list(3, Draw::bucket),
            })),
            8 => Reply::GroupFeatures(GroupFeatures {
                kinds: self.u32(),
                capabilities: self.u32(),
                most: [0; 4].map(|_| self.u32()),
                actions: [0; 4].map(|_| self.u32()),
            }),
            9 => Reply::Meter(self.list(3, |d| MeterStats {
                id: d.u32(),
                references: d.u32(),
                counters: d.counters(),
                age: d.age(),
                bands: d.list(3, Draw::counters),
            })),
            10 => Reply::MeterConfig(self.list(3, |d| MeterDescription {
                id: d.u32(),
                flags: d.u16(),
                bands: d.list(3, Draw::band),
            })),
            11 => Reply::MeterFeatures(MeterFeatures {
                most: self.u32(),
                band_kinds: self.u32(),
                capabilities: self.u32(),
                bands: self.u8(),
                colors: self.u8(),
            }),
            12 => Reply::TableFeatures(self.list(3, Draw::table)),
            13 => Reply::PortDesc(self.list(3, Draw::port)),
            _ => Reply::Experimenter { experimenter: self.u32(), kind: self.u32(), data: self.bytes() },
        }
    }

    pub(super) fn flow_stats(&mut self) -> FlowStats {
        FlowStats {
            table_id: self.u8(),
            age: self.age(),
            priority: self.u16(),
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            importance: 0,
            idle: None,
            flags: self.u16(),
            cookie: self.u64(),
            counters: self.counters(),
            matching: self.matching(),
            instructions: self.instructions(),
        }
    }

    pub(super) fn role(&mut self) -> RoleMessage {
        let roles = [Role::NoChange, Role::Equal, Role::Master, Role::Slave];
        RoleMessage { role: roles[self.below(4) as usize], generation_id: self.u64() }
    }

    pub(super) fn masks(&mut self) -> Async {
        let mut two = || [self.u32(), self.u32()];
        Async { packet_in: two(), port_status: two(), flow_removed: two(), ..Async::NONE }
    }

    pub(super) fn message(&mut self) -> Message {
        match self.below(30) {
            0 => Message::Hello(Hello { version: 1 + self.below(6) as u8, bitmap: Some(self.u32()) }),
            1 => Message::Error(ErrorMessage { kind: self.u16(), code: self.u16(), data: self.bytes() }),
            2 => Message::EchoRequest(self.bytes()),
            3 => Message::EchoReply(self.bytes()),
            4 => Message::Experimenter { experimenter: self.u32(), kind: self.u32(), data: self.bytes() },
            5 => Message::FeaturesRequest,
            6 => Message::FeaturesReply(Features {
                datapath_id: self.u64(),
                buffers: self.u32(),
                tables: self.u8(),
                auxiliary_id: self.u8(),
                capabilities: self.u32(),
                actions: 0,
                ports: Vec::new(),
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
                table_id: self.u8(),
                cookie: self.u64(),
                matching: self.matching(),
                data: self.bytes(),
            }),
            11 => Message::FlowRemoved(FlowRemoved {
                cookie: self.u64(),
                priority: self.u16(),
                reason: self.u8(),
                table_id: self.u8(),
                age: self.age(),
                idle_timeout: self.u16(),
                hard_timeout: self.u16(),
                packets: self.u64(),
                bytes: self.u64(),
                matching: self.matching(),
            }),
            12 => Message::PortStatus(PortStatus { reason: self.u8(), port: self.port() }),
            13 => Message::PacketOut(PacketOut {
                buffer_id: self.u32(),
                in_port: self.u32(),
                fields: Vec::new(),
                actions: self.list(5, Draw::action),
                data: self.bytes(),
            }),
            14 => Message::FlowMod { buffer_id: self.u32(), request: self.flow_mod() },
            15 => Message::GroupMod(GroupMod {
                command: GroupCommand::Modify,
                id: self.u32(),
                kind: self.group_kind(),
                buckets: self.list(4, Draw::bucket),
            }),
            16 => Message::PortMod(PortMod {
                port: self.u32(),
                hw_addr: MacAddr::from_index(self.u32()),
                config: self.u32(),
                mask: self.u32(),
                advertise: self.u32(),
            }),
            17 => Message::TableMod(TableMod {
                table_id: self.u8(),
                config: self.u32(),
                eviction: None,
                vacancy: None,
            }),
            18 => Message::MultipartRequest { flags: self.u16(), request: self.request() },
            19 => Message::MultipartReply { flags: self.u16(), reply: self.reply() },
            20 => Message::BarrierRequest,
            21 => Message::BarrierReply,
            22 => Message::QueueGetConfigRequest { port: self.u32() },
            23 => Message::QueueGetConfigReply {
                port: self.u32(),
                queues: self.list(3, |d| PacketQueue { port: d.u32(), number: d.u32() }),
            },
            24 => Message::RoleRequest(self.role()),
            25 => Message::RoleReply(self.role()),
            26 => Message::GetAsyncRequest,
            27 => Message::GetAsyncReply(self.masks()),
            28 => Message::SetAsync(self.masks()),
            _ => Message::MeterMod(MeterMod {
                command: MeterCommand::Add,
                id: self.u32(),
                flags: self.u16(),
                bands: self.list(4, Draw::band),
            }),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_message_survives_encoding_and_decoding(seed: u64, xid: u32) {
        let message = Draw(Rng::new(seed)).message();
        let mut bytes = vec![0xaa; 3];
        message.encode(xid, &mut bytes);
        let bytes = &bytes[3..];
        prop_assert_eq!(frame_len(bytes), Ok(Some(bytes.len())));
        prop_assert_eq!(decode(bytes), Ok((xid, message)));
    }

    #[test]
    fn a_damaged_or_cut_message_is_read_or_refused_and_what_is_read_can_be_written(seed: u64) {
        let mut draw = Draw(Rng::new(seed));
        let mut bytes = Vec::new();
        draw.message().encode(1, &mut bytes);
        for _ in 0..=draw.below(4) {
            let at = draw.below(bytes.len() as u64) as usize;
            bytes[at] = draw.u8();
        }
        bytes.truncate(HEADER_LEN.max(draw.below(2 * bytes.len() as u64) as usize));
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        if let Ok((xid, message)) = decode(&bytes) {
            let mut again = Vec::new();
            message.encode(xid, &mut again);
            prop_assert_eq!(decode(&again), Ok((xid, message)));
        }
    }
}

#[test]
fn what_is_wrong_has_the_numbers_of_the_specification() {
    let refused = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        decode(&bytes).map_err(|fault| fault.numbers()).unwrap_err()
    };
    let message = |message: Message| {
        let mut bytes = Vec::new();
        message.encode(7, &mut bytes);
        bytes
    };
    let flow = |instructions: Instructions| {
        message(Message::FlowMod {
            buffer_id: NO_BUFFER,
            request: FlowMod::add(0, 1, Match::any(), instructions),
        })
    };
    assert_eq!(refused(&[9, 5, 0, 0, 0, 0, 0, 0]), (1, 0), "version");
    assert_eq!(refused(&[4, 77, 0, 0, 0, 0, 0, 0]), (1, 1), "type");
    assert_eq!(refused(&[4, 9, 0, 0, 0, 0, 0, 0]), (1, 6), "a short set-config");
    assert_eq!(refused(&[4, 5, 0, 0, 0, 0, 0, 0, 0]), (1, 6), "a long features request");
    let multipart = message(Message::MultipartRequest { flags: 0, request: Request::Desc });
    assert_eq!(refused(&[&multipart[..8], &[0, 99], &multipart[10..]].concat()), (1, 2), "multipart type");
    let mut bad_command = flow(Instructions::default());
    bad_command[25] = 9;
    assert_eq!(refused(&bad_command), (5, 6), "flow command");
    let mut bad_match = flow(Instructions::default());
    bad_match[49] = 0;
    assert_eq!(refused(&bad_match), (4, 0), "match type");
    let apply = flow(Instructions::apply([Action::PopVlan]));
    let mut bad_action = apply.clone();
    bad_action[65] = 99;
    assert_eq!(refused(&bad_action), (2, 0), "action type");
    let mut bad_len = apply.clone();
    bad_len[67] = 16;
    assert_eq!(refused(&bad_len), (2, 1), "action length");
    let mut bad_instruction = apply.clone();
    bad_instruction[57] = 99;
    assert_eq!(refused(&bad_instruction), (3, 0), "instruction type");
    let twice = [&apply[..], &apply[56..]].concat();
    assert_eq!(refused(&twice), (3, 9), "an instruction twice");
    assert_eq!(frame_len(&[4, 0, 0, 7, 0, 0, 0, 0]), Err(Fault::BadLen));
    assert_eq!(frame_len(&[4, 0, 0]), Ok(None));
}

#[test]
fn a_reply_that_is_too_long_for_one_message_is_cut_between_items() {
    let mut draw = Draw(Rng::new(1));
    let flows: Vec<FlowStats> = (0..1000).map(|_| draw.flow_stats()).collect();
    let mut bytes = vec![1, 2, 3];
    let mut pages = Pages::begin(Version::V13, &mut bytes, 1, 5);
    flows.iter().for_each(|flow| pages.item(&mut bytes, |out| flow.write(out, &action::FLOWS)));
    pages.end(&mut bytes, 0);
    let (mut rest, mut read, mut all_flags) = (&bytes[3..], Vec::new(), Vec::new());
    while let Ok(Some(len)) = frame_len(rest) {
        let (xid, message) = decode(&rest[..len]).unwrap();
        let Message::MultipartReply { flags, reply: Reply::Flow(part) } = message else {
            panic!("{message:?}")
        };
        assert_eq!(xid, 5);
        read.extend(part);
        all_flags.push(flags);
        rest = &rest[len..];
    }
    assert_eq!((read, rest), (flows, &[][..]));
    assert!(all_flags.len() > 1 && all_flags[..all_flags.len() - 1].iter().all(|flags| *flags == MORE));
    assert_eq!(all_flags.last(), Some(&0));
}

#[test]
fn versions_are_agreed_on_by_bitmap_or_by_the_smaller_number() {
    use Version::{V10, V13};
    let agreed = |ours: &str, version, bitmap| {
        Hello { version, bitmap }.negotiate(ours.parse().expect("these versions"))
    };
    for (version, bitmap, both, of_10, of_13) in [
        (1, None, Some(V10), Some(V10), None),
        (2, None, None, Some(V10), None),
        (4, None, Some(V13), Some(V10), Some(V13)),
        (6, None, Some(V13), Some(V10), Some(V13)),
        (6, Some(0x72), Some(V13), Some(V10), Some(V13)),
        (6, Some(0x62), Some(V10), Some(V10), None),
        (6, Some(0x60), None, None, None),
        (4, Some(0x10), Some(V13), None, Some(V13)),
        (1, Some(0x02), Some(V10), Some(V10), None),
    ] {
        let all = ["1.0,1.3", "1.0", "1.3"].map(|ours| agreed(ours, version, bitmap));
        assert_eq!(all, [both, of_10, of_13], "version {version}, bitmap {bitmap:x?}");
    }
    assert_eq!(Hello::of(Versions::default()), Hello { version: 4, bitmap: Some(0x12) });
    assert_eq!(Hello::of(Versions::only(V13)), Hello::ours());
    assert_eq!(Hello::of(Versions::only(V10)), Hello { version: 1, bitmap: None });
    let wrong = "1.0,1.2".parse::<Versions>().expect_err("no such version").to_string();
    assert_eq!(wrong, "unknown OpenFlow version '1.2'; write some of 1.0, 1.3, 1.4 and 1.5, as in 1.0,1.3");
    assert_eq!(Versions::default().to_string(), "1.0,1.3");
}
