//! The part of the program that reads a packet's key: Ethernet with at most one VLAN tag, in the
//! frame or in metadata, that carries IPv4 without options, IPv6 without extension headers, ARP, or
//! something that has no fields. All other packets go to user space.
//!
//! Read first: `switch/src/key.rs`, `wire/src/headers.rs`.

use super::code::Code;
use super::layout::{
    FRAGMENT, HEADERS, IN_PORT, INNER, KEY, L3, L4, LEN, MISSED, OUTCOMES, PENDING, REAL_TAGS, SEGMENTS,
    SET_MASK, SKIP, STEPS, SUM, SUM_FLAGS, TAGS, TO_USER, TTL, ToUser, VERSION,
};
use fastpath_bpf::asm::Reg::{self, R0, R1, R2, R3, R4, R5, R6, R7, R8};
use fastpath_bpf::asm::Size::{Byte, Double, Half, Word};
use fastpath_bpf::asm::{Alu, Cond, Label};
use fastpath_bpf::helpers::{helper, skb};
use fastpath_switch::Field;
use fastpath_switch::field::{ALWAYS_PRESENT, HEADER_WORDS};
use fastpath_switch::key::ETH_TYPE_MIN;
use fastpath_wire::{ethertype, protocol};

/// Bytes of the headers that are read: Ethernet, a tag, IPv6, TCP.
const HEADERS_MAX: i32 = 14 + 4 + 40 + 20;
/// Flags of `bpf_l4_csum_replace`: zero means that there is no checksum.
const MANGLED_ZERO: i32 = 0x20;
/// Ethertypes of tags that the kernel does not take out of frames, and of headers with fields that
/// are not read here.
const DEEPER: [i32; 7] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x8847, 0x8848, 0x88e7];
/// Headers behind which others follow (IPv6 extensions).
const EXTENSIONS: [i32; 7] = [0, 43, 44, 50, 51, 59, 60];

fn word(number: i16) -> i16 {
    KEY + 8 * number
}

fn presence(fields: &[Field]) -> u64 {
    fields.iter().fold(0, |bits, field| bits | field.presence_bit())
}

/// Where the parts of [`Code::parse`] meet.
#[derive(Clone, Copy)]
struct Exits {
    /// Nothing more is read.
    done: Label,
    /// The packet is not for the kernel.
    deep: Label,
}

impl Code<'_> {
    /// Emits the parsing. `R6` and `R9` are set, and the port of entry is in the state.
    pub(super) fn parse(&mut self) {
        let exits = Exits { done: self.a.label(), deep: self.a.label() };
        self.clear();
        self.pull(exits);
        self.link(exits);
        self.network(exits);
        self.a.place(exits.deep);
        self.a.mov(R0, TO_USER + ToUser::Packet as i32);
        let to_user = self.to_user;
        self.a.jump(to_user);
        self.a.place(exits.done);
        self.measure();
    }

    fn clear(&mut self) {
        for number in 2..HEADER_WORDS as i16 {
            self.put_number(word(number), 0);
        }
        let zero = [
            TTL, TAGS, INNER, VERSION, L4, SUM, HEADERS, REAL_TAGS, PENDING, OUTCOMES, STEPS, SET_MASK,
            MISSED, SKIP, FRAGMENT,
        ];
        zero.iter().for_each(|at| self.put_number(*at, 0));
        self.put_number(SEGMENTS, 1);
        self.put_number(L3, 14);
    }

    /// Makes the headers readable: `R2` is their start, `R3` their end.
    fn pull(&mut self, exits: Exits) {
        let (whole, enough) = (self.a.label(), self.a.label());
        self.a.load(Word, R7, R6, skb::LEN);
        self.a.jump_if(Cond::Le, R7, HEADERS_MAX, whole);
        self.a.mov(R7, HEADERS_MAX);
        self.a.place(whole);
        self.pointers();
        self.a.mov(R1, R3);
        self.a.alu(Alu::Sub, R1, R2);
        self.a.jump_if(Cond::Ge, R1, R7, enough);
        self.a.mov(R1, R6);
        self.a.mov(R2, R7);
        self.a.call(helper::PULL_DATA);
        self.pointers();
        self.a.place(enough);
        self.room(R2, 14, exits.deep);
    }

    /// `R2` and `R3` are the start and the end of the frame.
    pub(super) fn pointers(&mut self) {
        self.a.load(Word, R2, R6, skb::DATA);
        self.a.load(Word, R3, R6, skb::DATA_END);
    }

    /// Goes to `short` unless this many bytes follow a pointer. Changes `R5`.
    pub(super) fn room(&mut self, from: Reg, bytes: i32, short: Label) {
        self.a.mov(R5, from);
        self.a.alu(Alu::Add, R5, bytes);
        self.a.jump_if(Cond::Gt, R5, R3, short);
    }

    /// `to` = the number of two or four bytes in the order of the network.
    fn number(&mut self, size: fastpath_bpf::asm::Size, to: Reg, from: Reg, offset: i16) {
        self.a.load(size, to, from, offset);
        self.a.swap_network(to, if size == Half { 16 } else { 32 });
    }

    /// `to` = the number of six bytes.
    fn address(&mut self, to: Reg, from: Reg, offset: i16) {
        self.number(Word, to, from, offset);
        self.a.alu(Alu::ShiftLeft, to, 16);
        self.number(Half, R5, from, offset + 4);
        self.a.alu(Alu::Or, to, R5);
    }

    /// Reads addresses, tag and type: `R4` becomes the EtherType, `R8` the network header, `R7` the
    /// fields that are present.
    fn link(&mut self, exits: Exits) {
        self.address(R1, R2, 0);
        self.put(word(4), R1);
        self.address(R1, R2, 6);
        self.put(word(5), R1);
        let always = [Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid];
        self.a.mov_wide(R7, ALWAYS_PRESENT | presence(&always));
        let (plain, tagged, known) = (self.a.label(), self.a.label(), self.a.label());
        self.a.mov(R8, R2);
        self.a.alu(Alu::Add, R8, 14);
        self.number(Half, R4, R2, 12);
        self.a.mov(R0, 0);
        // A tag that the kernel has taken out of the frame.
        self.a.load(Word, R1, R6, skb::VLAN_PRESENT);
        let in_frame = self.a.label();
        self.a.jump_if(Cond::Eq, R1, 0, in_frame);
        self.a.load(Word, R0, R6, skb::VLAN_TCI);
        self.a.jump(tagged);
        self.a.place(in_frame);
        let is_tag = self.a.label();
        self.a.jump_if(Cond::Eq, R4, i32::from(ethertype::VLAN), is_tag);
        self.a.jump_if(Cond::Ne, R4, i32::from(ethertype::SERVICE_VLAN), plain);
        self.a.place(is_tag);
        self.room(R2, 18, exits.deep);
        self.number(Half, R0, R2, 14);
        self.number(Half, R4, R2, 16);
        self.a.alu(Alu::Add, R8, 4);
        self.put_number(L3, 18);
        self.a.place(tagged);
        self.put_number(TAGS, 1);
        self.put_number(REAL_TAGS, 1);
        self.a.alu(Alu::And, R0, 0xefff);
        self.a.alu(Alu::Or, R0, 0x1000);
        self.a.alu(Alu::Or, R7, Field::VlanPcp.presence() as i32);
        self.a.jump(known);
        self.a.place(plain);
        self.a.mov(R0, 0);
        self.a.place(known);
        self.get(R1, IN_PORT);
        self.a.alu(Alu::ShiftLeft, R1, 32);
        self.a.alu(Alu::Or, R0, R1);
        self.a.mov(R1, R4);
        self.a.alu(Alu::ShiftLeft, R1, 16);
        self.a.alu(Alu::Or, R0, R1);
        self.put(word(1), R0);
    }

    fn network(&mut self, exits: Exits) {
        let (v4, v6, arp) = (self.a.label(), self.a.label(), self.a.label());
        self.a.jump_if(Cond::Eq, R4, i32::from(ethertype::IPV4), v4);
        self.a.jump_if(Cond::Eq, R4, i32::from(ethertype::IPV6), v6);
        self.a.jump_if(Cond::Eq, R4, i32::from(ethertype::ARP), arp);
        self.a.jump_if(Cond::Lt, R4, i32::from(ETH_TYPE_MIN), exits.deep);
        DEEPER.iter().for_each(|kind| self.a.jump_if(Cond::Eq, R4, *kind, exits.deep));
        self.present(&[]);
        self.a.jump(exits.done);
        self.a.place(arp);
        self.arp(exits);
        self.a.place(v6);
        self.ipv6(exits);
        self.a.place(v4);
        self.ipv4(exits);
    }

    /// Notes the fields that are present: those so far and these.
    fn present(&mut self, more: &[Field]) {
        self.a.mov_wide(R1, presence(more));
        self.a.alu(Alu::Or, R7, R1);
        self.put(word(0), R7);
    }

    /// Adds the lowest `bits` of a register, which change, to a word of the key.
    fn or_into(&mut self, at: i16, from: Reg, shift: i32) {
        self.get(R1, at);
        self.a.alu(Alu::ShiftLeft, from, shift);
        self.a.alu(Alu::Or, R1, from);
        self.put(at, R1);
    }

    fn arp(&mut self, exits: Exits) {
        self.room(R8, 28, exits.deep);
        self.number(Half, R1, R8, 4);
        self.a.jump_if(Cond::Ne, R1, 0x0604, exits.deep);
        self.number(Half, R1, R8, 6);
        self.put(word(7), R1);
        self.address(R1, R8, 8);
        self.put(word(14), R1);
        self.address(R1, R8, 18);
        self.put(word(15), R1);
        self.number(Word, R1, R8, 14);
        self.a.alu(Alu::ShiftLeft, R1, 32);
        self.number(Word, R4, R8, 24);
        self.a.alu(Alu::Or, R1, R4);
        self.put(word(6), R1);
        self.present(&[Field::ArpOp, Field::ArpSpa, Field::ArpTpa, Field::ArpSha, Field::ArpTha]);
        self.a.jump(exits.done);
    }

    /// Notes traffic class (`R4`) and protocol (`R0`, kept).
    fn ip(&mut self, version: i32) {
        self.put_number(VERSION, version);
        self.a.mov(R2, R4);
        self.a.alu(Alu::ShiftRight, R4, 2);
        self.or_into(word(4), R4, 56);
        self.a.alu(Alu::And, R2, 3);
        self.or_into(word(4), R2, 62);
        self.a.mov(R2, R0);
        self.or_into(word(4), R2, 48);
    }

    fn ipv4(&mut self, exits: Exits) {
        self.room(R8, 20, exits.deep);
        self.a.load(Byte, R1, R8, 0);
        self.a.jump_if(Cond::Ne, R1, 0x45, exits.deep);
        // A checksum that no sender makes, and that difference updates in two ways.
        self.number(Half, R1, R8, 10);
        self.a.jump_if(Cond::Eq, R1, 0xffff, exits.deep);
        self.number(Word, R1, R8, 12);
        self.a.alu(Alu::ShiftLeft, R1, 32);
        self.number(Word, R4, R8, 16);
        self.a.alu(Alu::Or, R1, R4);
        self.put(word(6), R1);
        self.a.load(Byte, R1, R8, 8);
        self.put(TTL, R1);
        self.put_number(L4, 20);
        self.a.load(Byte, R4, R8, 1);
        self.a.load(Byte, R0, R8, 9);
        self.ip(4);
        let fields = [Field::Ipv4Src, Field::Ipv4Dst, Field::IpProto, Field::IpDscp, Field::IpEcn];
        self.present(&fields);
        // `R4`: the bytes behind the header.
        self.number(Half, R4, R8, 2);
        self.a.jump_if(Cond::Lt, R4, 20, exits.deep);
        self.a.mov(R1, R4);
        self.fits(R1, exits);
        self.a.alu(Alu::Sub, R4, 20);
        self.number(Half, R1, R8, 6);
        self.a.mov(R2, R1);
        self.a.alu(Alu::And, R2, 0x3fff);
        self.put(FRAGMENT, R2);
        self.a.alu(Alu::And, R1, 0x1fff);
        self.a.jump_if(Cond::Ne, R1, 0, exits.done);
        self.a.alu(Alu::Add, R8, 20);
        self.transport(protocol::ICMP, exits);
    }

    /// Goes to user space if the network packet of this many bytes is longer than the frame.
    fn fits(&mut self, bytes: Reg, exits: Exits) {
        self.get(R2, L3);
        self.a.alu(Alu::Add, bytes, R2);
        self.a.load(Word, R2, R6, skb::LEN);
        self.a.jump_if(Cond::Gt, bytes, R2, exits.deep);
    }

    fn ipv6(&mut self, exits: Exits) {
        self.room(R8, 40, exits.deep);
        self.number(Word, R4, R8, 0);
        self.a.mov(R1, R4);
        self.a.alu(Alu::ShiftRight, R1, 28);
        self.a.jump_if(Cond::Ne, R1, 6, exits.deep);
        self.a.mov(R1, R4);
        self.a.alu(Alu::And, R1, 0xf_ffff);
        self.put(word(6), R1);
        for (number, offset) in [(8, 8), (9, 16), (10, 24), (11, 32)] {
            self.a.load(Double, R1, R8, offset);
            self.a.swap_network(R1, 64);
            self.put(word(number), R1);
        }
        self.a.load(Byte, R1, R8, 7);
        self.put(TTL, R1);
        self.put_number(L4, 40);
        self.a.alu(Alu::ShiftRight, R4, 20);
        self.a.alu(Alu::And, R4, 0xff);
        self.a.load(Byte, R0, R8, 6);
        EXTENSIONS.iter().for_each(|next| self.a.jump_if(Cond::Eq, R0, *next, exits.deep));
        self.ip(6);
        let fields = [
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::Ipv6Flabel,
            Field::Ipv6Exthdr,
            Field::IpProto,
            Field::IpDscp,
            Field::IpEcn,
        ];
        self.present(&fields);
        self.number(Half, R4, R8, 4);
        self.a.mov(R1, R4);
        self.a.alu(Alu::Add, R1, 40);
        self.fits(R1, exits);
        self.a.alu(Alu::Add, R8, 40);
        self.transport(protocol::ICMPV6, exits);
    }

    /// Reads the ports behind `R8`, of `R4` bytes and protocol `R0`.
    fn transport(&mut self, icmp: u8, exits: Exits) {
        let [tcp, udp, sctp, message] = std::array::from_fn(|_| self.a.label());
        self.a.jump_if(Cond::Eq, R0, i32::from(protocol::TCP), tcp);
        self.a.jump_if(Cond::Eq, R0, i32::from(protocol::UDP), udp);
        self.a.jump_if(Cond::Eq, R0, i32::from(protocol::SCTP), sctp);
        self.a.jump_if(Cond::Eq, R0, i32::from(icmp), message);
        self.a.jump(exits.done);

        self.a.place(tcp);
        self.ports([Field::TcpSrc, Field::TcpDst], exits);
        self.checksum(16, 0, exits);
        self.a.place(udp);
        self.ports([Field::UdpSrc, Field::UdpDst], exits);
        self.checksum(6, MANGLED_ZERO, exits);
        self.a.place(sctp);
        self.ports([Field::SctpSrc, Field::SctpDst], exits);
        self.a.jump(exits.done);

        self.a.place(message);
        let is_v6 = icmp == protocol::ICMPV6;
        self.a.jump_if(Cond::Lt, R4, 2, exits.done);
        self.room(R8, 2, exits.deep);
        self.a.load(Byte, R2, R8, 0);
        if is_v6 {
            // Neighbour discovery has fields of its own.
            self.a.jump_if(Cond::Eq, R2, 135, exits.deep);
            self.a.jump_if(Cond::Eq, R2, 136, exits.deep);
        }
        self.a.alu(Alu::ShiftLeft, R2, 16);
        self.a.load(Byte, R1, R8, 1);
        self.a.alu(Alu::Or, R2, R1);
        self.put(word(7), R2);
        self.present(&match is_v6 {
            true => [Field::Icmpv6Type, Field::Icmpv6Code],
            false => [Field::Icmpv4Type, Field::Icmpv4Code],
        });
        if is_v6 {
            // Its checksum covers addresses, but is not at the place of the others.
            self.checksum(2, 0, exits);
        } else {
            self.a.jump(exits.done);
        }
    }

    fn ports(&mut self, fields: [Field; 2], exits: Exits) {
        self.a.jump_if(Cond::Lt, R4, 4, exits.done);
        self.room(R8, 4, exits.deep);
        self.number(Word, R2, R8, 0);
        self.put(word(7), R2);
        self.present(&fields);
    }

    /// Notes the checksum `at` bytes behind `R8`, if the packet is as long.
    fn checksum(&mut self, at: i16, flags: i32, exits: Exits) {
        self.a.jump_if(Cond::Lt, R4, i32::from(at) + 2, exits.done);
        self.room(R8, i32::from(at) + 2, exits.deep);
        if flags == 0 {
            self.number(Half, R1, R8, at);
            self.a.jump_if(Cond::Eq, R1, 0xffff, exits.deep);
        }
        self.get(R1, L4);
        self.a.alu(Alu::Add, R1, i32::from(at));
        self.put(SUM, R1);
        self.put_number(SUM_FLAGS, flags);
        // What each segment of a super-packet repeats.
        self.get(R1, L4);
        if at == 16 {
            self.a.load(Byte, R2, R8, 12);
            self.a.alu(Alu::ShiftRight, R2, 4);
            self.a.alu(Alu::ShiftLeft, R2, 2);
            self.a.alu(Alu::Add, R1, R2);
        } else {
            self.a.alu(Alu::Add, R1, 8);
        }
        self.put(HEADERS, R1);
        self.a.jump(exits.done);
    }

    /// Notes the number of segments, and the length.
    fn measure(&mut self) {
        let one = self.a.label();
        self.a.load(Word, R1, R6, skb::GSO_SEGS);
        self.a.jump_if(Cond::Le, R1, 1, one);
        self.put(SEGMENTS, R1);
        self.a.place(one);
        self.length();
    }

    /// Notes the place of the network header, and the length of all segments as frames. Changes
    /// `R1` to `R4`.
    pub(super) fn length(&mut self) {
        self.a.load(Word, R1, R6, skb::VLAN_PRESENT);
        self.get(R2, REAL_TAGS);
        self.a.alu(Alu::Sub, R2, R1);
        self.a.alu(Alu::And, R2, 3);
        self.a.alu(Alu::ShiftLeft, R2, 2);
        self.a.alu(Alu::Add, R2, 14);
        self.put(L3, R2);
        self.a.alu(Alu::ShiftLeft, R1, 2);
        self.a.load(Word, R3, R6, skb::LEN);
        self.a.alu(Alu::Add, R3, R1);
        self.a.alu(Alu::Add, R2, R1);
        self.get(R4, HEADERS);
        self.a.alu(Alu::Add, R2, R4);
        self.get(R4, SEGMENTS);
        self.a.alu(Alu::Sub, R4, 1);
        self.a.alu(Alu::Mul, R2, R4);
        self.a.alu(Alu::Add, R3, R2);
        self.put(LEN, R3);
    }
}
