//! Parsing in generated code: Ethernet, untagged or with one tag, that carries IPv4 without options
//! and the first bytes of TCP or UDP. That is nearly all traffic. For every other packet the Rust
//! parser reads the key.
//!
//! A packet that this code has parsed is *hot*: its headers are at known offsets, so code may edit
//! it too.

use super::asm::Asm;
use super::callout_table::Callouts;
use super::context::at;
use crate::template::{Op, is_inline};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Value, types};
use cranelift_frontend::Variable;
use fastpath_switch::field::{ALWAYS_PRESENT, WORDS};
use fastpath_switch::key::ETH_TYPE_MIN;
use fastpath_switch::{Depth, Field};
use fastpath_wire::{ethertype, protocol};

/// The packet in registers.
pub(super) struct Registers {
    pub(super) context: Value,
    pub(super) callouts: Callouts,
    /// The key; words that no table compares stay 0.
    pub(super) words: [Variable; WORDS],
    /// Not 0 if the packet is hot.
    pub(super) hot: Variable,
    /// The frame, of hot packets.
    pub(super) frame: Variable,
    /// The IPv4 header, of hot packets parsed to the network layer.
    pub(super) ip: Variable,
    /// The protocol, of hot packets parsed to the network layer.
    pub(super) protocol: Variable,
    /// The bits of the key that any table compares.
    pub(super) wanted: [u64; WORDS],
    pub(super) depth: Depth,
}

/// Returns how deep a packet must be parsed for an operation to be done in code.
pub(super) fn depth_of(op: &Op) -> Depth {
    match op {
        Op::DecNwTtl => Depth::Network,
        Op::Set(Field::EthDst | Field::EthSrc) => Depth::Link,
        Op::Set(field) if is_inline(*field) => Depth::Network,
        _ => Depth::Nothing,
    }
}

impl Registers {
    pub(super) fn new(
        asm: &mut Asm<'_>,
        context: Value,
        callouts: Callouts,
        wanted: [u64; WORDS],
        depth: Depth,
    ) -> Registers {
        let words = std::array::from_fn(|_| asm.variable(0));
        let [hot, frame, ip, protocol] = std::array::from_fn(|_| asm.variable(0));
        Registers { context, callouts, words, hot, frame, ip, protocol, wanted, depth }
    }

    /// Returns whether any table compares bits of a field.
    pub(super) fn wants(&self, field: Field) -> bool {
        let word = field.info().word;
        self.wanted[usize::from(word)] & field.info().bits_in(word) != 0
    }

    /// Emits the parsing of a new packet's key; continues at `next`.
    pub(super) fn parse(&self, asm: &mut Asm<'_>, next: Block) {
        let presence = ALWAYS_PRESENT;
        if self.depth == Depth::Everything {
            self.parse_in_rust(asm);
            asm.jump(next);
            return;
        }
        if self.depth == Depth::Nothing {
            self.define(asm, 0, |asm| asm.number(presence));
            let in_port = asm.load(self.context, at::IN_PORT);
            self.define(asm, 1, |asm| asm.shl(in_port, 32));
            asm.jump(next);
            return;
        }
        let cold = asm.cold_block();
        let frame = asm.load(self.context, at::FRAME);
        let len = asm.load(self.context, at::LEN);
        asm.set(self.frame, frame);
        let link = self.parse_link(asm, frame, len, cold);
        if self.depth == Depth::Link {
            // IEEE 802.3 frames: Rust finds the EtherType of LLC and SNAP. Deeper code excludes
            // them with everything else that is not IPv4.
            let is_length = asm.is_number(IntCC::UnsignedLessThan, link.ethertype, ETH_TYPE_MIN.into());
            asm.leave_if(is_length, cold);
        }
        let presence = asm.or_number(link.presence, presence);
        let in_port = asm.load(self.context, at::IN_PORT);
        let in_port = asm.shl(in_port, 32);
        let kind = asm.shl(link.ethertype, 16);
        let word = asm.or(in_port, kind);
        self.define(asm, 1, |asm| asm.or(word, link.tag));
        self.define(asm, 5, |asm| {
            let src = asm.load_be(types::I64, frame, 6);
            asm.shr(src, 16)
        });
        let dst = |asm: &mut Asm<'_>| {
            let dst = asm.load_be(types::I64, frame, 0);
            asm.shr(dst, 16)
        };
        if self.depth == Depth::Link {
            self.define(asm, 0, |_| presence);
            self.define(asm, 4, dst);
        } else {
            let dst =
                if self.wanted[4] & Field::EthDst.ones() as u64 != 0 { dst(asm) } else { asm.number(0) };
            self.parse_ip(asm, (presence, dst), (frame, len), &link, cold);
        }
        let one = asm.number(1);
        asm.set(self.hot, one);
        asm.jump(next);
        asm.at(cold);
        self.parse_in_rust(asm);
        asm.jump(next);
    }

    /// Emits a call that reads the whole key of the packet as it is now, in Rust. The packet is not
    /// hot afterwards.
    pub(super) fn parse_in_rust(&self, asm: &mut Asm<'_>) {
        let zero = asm.number(0);
        asm.set(self.hot, zero);
        asm.call(self.callouts.parse, [self.context, zero, zero, zero]);
        for word in 0..WORDS {
            self.define(asm, word, |asm| asm.load(self.context, at::KEY + 8 * word as i32));
        }
    }

    /// Sets a word of the key if any table compares it.
    fn define(&self, asm: &mut Asm<'_>, word: usize, value: impl FnOnce(&mut Asm<'_>) -> Value) {
        if self.wanted[word] != 0 {
            let value = value(asm);
            asm.set(self.words[word], value);
        }
    }

    /// Emits the parsing of EtherType and tag. Frames with two tags are left to Rust.
    fn parse_link(&self, asm: &mut Asm<'_>, frame: Value, len: Value, cold: Block) -> LinkLayer {
        let [ethertype, tag, presence, length] = std::array::from_fn(|_| asm.variable(0));
        let fields = [Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid, Field::VlanTci];
        let bits = fields.iter().fold(0, |bits, field| bits | field.presence_bit());
        let plain = asm.load_be(types::I16, frame, 12);
        asm.set(ethertype, plain);
        let (bits_plain, length_plain) = (asm.number(bits), asm.number(14));
        asm.set(presence, bits_plain);
        asm.set(length, length_plain);
        let (tagged, done) = (asm.cold_block(), asm.block());
        let is_tag = self.is_tag(asm, plain);
        asm.branch(is_tag, tagged, done);
        asm.at(tagged);
        let is_short = asm.is_number(IntCC::UnsignedLessThan, len, 18);
        asm.leave_if(is_short, cold);
        let inner = asm.load_be(types::I16, frame, 16);
        let is_tag = self.is_tag(asm, inner);
        asm.leave_if(is_tag, cold);
        let tci = asm.load_be(types::I16, frame, 14);
        let vid = asm.and(tci, 0x0fff);
        let vid = asm.or_number(vid, 0x1000);
        let pcp = asm.and(tci, 0xe000);
        let bits = asm.number(bits | Field::VlanPcp.presence_bit());
        let word = asm.or(vid, pcp);
        let length_tagged = asm.number(18);
        asm.set(ethertype, inner);
        asm.set(tag, word);
        asm.set(presence, bits);
        asm.set(length, length_tagged);
        asm.jump(done);
        asm.at(done);
        LinkLayer {
            ethertype: asm.get(ethertype),
            tag: asm.get(tag),
            presence: asm.get(presence),
            length: asm.get(length),
        }
    }

    /// Emits whether an EtherType is one of the tags that [`fastpath_wire::Headers`] knows.
    fn is_tag(&self, asm: &mut Asm<'_>, kind: Value) -> Value {
        let tags = [ethertype::VLAN, ethertype::SERVICE_VLAN, 0x9100, 0x9200];
        let [first, rest @ ..] = tags.map(|tag| asm.is_number(IntCC::Equal, kind, tag.into()));
        rest.into_iter().fold(first, |any, is| asm.or(any, is))
    }

    /// Emits the parsing of IPv4 with TCP or UDP. Other packets are left to Rust.
    fn parse_ip(
        &self,
        asm: &mut Asm<'_>,
        (presence, dst): (Value, Value),
        (frame, len): (Value, Value),
        link: &LinkLayer,
        cold: Block,
    ) {
        let other = asm.is_number(IntCC::NotEqual, link.ethertype, ethertype::IPV4.into());
        asm.leave_if(other, cold);
        let room = asm.sub(len, link.length);
        // The shortest hot packet: an IPv4 and a UDP header. A frame shorter than its link header
        // would wrap, but there is none.
        let short = asm.is_number(IntCC::SignedLessThan, room, 28);
        asm.leave_if(short, cold);
        let ip = asm.add(frame, link.length);
        asm.set(self.ip, ip);
        let first = asm.load_8(ip, 0);
        let other = asm.is_number(IntCC::NotEqual, first, 0x45);
        asm.leave_if(other, cold);
        let total = asm.load_be(types::I16, ip, 2);
        let long = asm.is(IntCC::UnsignedGreaterThan, total, room);
        asm.leave_if(long, cold);
        let fragment = asm.load_be(types::I16, ip, 6);
        let later = asm.and(fragment, 0x1fff);
        asm.leave_if(later, cold);
        let number = asm.load_8(ip, 9);
        asm.set(self.protocol, number);
        let is_tcp = asm.is_number(IntCC::Equal, number, protocol::TCP.into());
        let is_udp = asm.is_number(IntCC::Equal, number, protocol::UDP.into());
        let either = asm.or(is_tcp, is_udp);
        asm.leave_unless(either, cold);
        // Up to the checksum of the transport header.
        let (tcp, udp) = (asm.number(38), asm.number(28));
        let needed = asm.select(is_tcp, tcp, udp);
        let short = asm.is(IntCC::UnsignedLessThan, total, needed);
        asm.leave_if(short, cold);
        let bits = |fields: [Field; 7]| fields.iter().fold(0, |bits, field| bits | field.presence_bit());
        let ip_fields = [Field::IpDscp, Field::IpEcn, Field::IpProto, Field::Ipv4Src, Field::Ipv4Dst];
        let with = |src, dst| {
            let [a, b, c, d, e] = ip_fields;
            bits([a, b, c, d, e, src, dst])
        };
        self.define(asm, 0, |asm| {
            let tcp = asm.number(with(Field::TcpSrc, Field::TcpDst));
            let udp = asm.number(with(Field::UdpSrc, Field::UdpDst));
            let fields = asm.select(is_tcp, tcp, udp);
            asm.or(presence, fields)
        });
        self.define(asm, 4, |asm| {
            let class = asm.load_8(ip, 1);
            let (dscp, ecn) = (asm.shr(class, 2), asm.shl(class, 62));
            let (dscp, number) = (asm.shl(dscp, 56), asm.shl(number, 48));
            let word = asm.or(dst, number);
            let word = asm.or(word, dscp);
            asm.or(word, ecn)
        });
        self.define(asm, 6, |asm| asm.load_be(types::I64, ip, 12));
        self.define(asm, 7, |asm| asm.load_be(types::I32, ip, 20));
    }
}

/// The fields of the link layer.
struct LinkLayer {
    ethertype: Value,
    /// VLAN id and priority, as in the key.
    tag: Value,
    presence: Value,
    length: Value,
}
