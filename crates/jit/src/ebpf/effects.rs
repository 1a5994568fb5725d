//! The second half of a packet's way: does what was noted, in order. From here on the packet is the
//! kernel's.
//!
//! A copy that leaves waits until the next change or copy, so that the last one leaves without
//! being copied. Checksums follow by the kernel's functions, which know those that the sender has
//! left to the hardware.

use super::code::Code;
use super::layout::{
    IN_FLAGS, IN_PORT, IN_SLOT, L3, L4, LEN, LIST, MISSED, OUTCOMES, PENDING, REAL_TAGS, SEGMENTS, STEPS,
    STEPS_MAX, SUM, SUM_FLAGS, VERSION, kind, port,
};
use super::rows::reason_number;
use fastpath_bpf::asm::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use fastpath_bpf::asm::Size::{Byte, Double, Half, Word};
use fastpath_bpf::asm::{Alu, Cond, Label, Size};
use fastpath_bpf::helpers::{DROP, helper, skb};
use fastpath_switch::outcome::DropReason;

/// A flag of `bpf_l4_csum_replace`: the pseudo-header covers the field.
const PSEUDO: i32 = 0x10;
/// The least length of a frame without FCS, which removing a tag does not go below.
const LEN_MIN: i32 = 60;
/// On the stack: what is written after the checksums.
const NEW: i16 = -16;
const OLD: i16 = -24;

/// A kind of step, and what emits it.
struct Edit<'m>(u8, Emit<'m>);

type Emit<'m> = fn(&mut Code<'m>);

impl Code<'_> {
    /// Emits everything behind the tables.
    pub(super) fn effects(&mut self) {
        self.count_port(IN_SLOT, [0, 8]);
        self.a.mov(R7, 0);
        let (again, done, next) = (self.a.label(), self.a.label(), self.a.label());
        self.a.place(again);
        self.get(R1, STEPS);
        self.a.jump_if(Cond::Ge, R7, R1, done);
        self.a.jump_if(Cond::Ge, R7, i32::from(STEPS_MAX), done);
        self.a.mov(R8, R7);
        self.a.alu(Alu::ShiftLeft, R8, 4);
        self.a.alu(Alu::Add, R8, R9);
        self.a.alu(Alu::Add, R8, i32::from(LIST));
        self.outcomes(next);
        self.edits(next);
        self.a.place(next);
        self.a.alu(Alu::Add, R7, 1);
        self.a.jump(again);
        self.a.place(done);
        self.end();
    }

    /// Counts packets and bytes at a port whose place is in the state.
    fn count_port(&mut self, slot: i16, [packets, bytes]: [i16; 2]) {
        let maps = self.maps;
        self.get(R3, slot);
        self.look_up(&maps.port_counters, R3);
        let none = self.a.label();
        self.a.jump_if(Cond::Eq, R0, 0, none);
        self.get(R3, SEGMENTS);
        self.get(R4, LEN);
        self.add(packets, R3, R5);
        self.add(bytes, R4, R5);
        self.a.place(none);
    }

    /// Emits the end of a packet whose steps are done.
    fn end(&mut self) {
        let maps = self.maps;
        let (hit, some, gone) = (self.a.label(), self.a.label(), self.a.label());
        self.get(R3, MISSED);
        self.a.jump_if(Cond::Eq, R3, 0, hit);
        self.a.alu(Alu::Sub, R3, 1);
        self.look_up(&maps.misses, R3);
        let none = self.a.label();
        self.a.jump_if(Cond::Eq, R0, 0, none);
        self.get(R3, SEGMENTS);
        self.add(0, R3, R5);
        self.a.place(none);
        self.drop(DropReason::TableMiss);
        self.a.jump(some);
        self.a.place(hit);
        self.get(R1, OUTCOMES);
        self.a.jump_if(Cond::Ne, R1, 0, some);
        self.drop(DropReason::NoOutput);
        self.a.place(some);
        self.get(R1, PENDING);
        self.a.jump_if(Cond::Eq, R1, 0, gone);
        self.a.mov(R2, 0);
        self.a.call(helper::REDIRECT);
        self.a.exit();
        self.a.place(gone);
        self.a.mov(R0, DROP);
        self.a.exit();
    }

    /// Drops a copy.
    pub(super) fn drop(&mut self, reason: DropReason) {
        self.a.mov(R3, reason_number(reason) as i32);
        self.drop_for();
    }

    /// Drops a copy for the reason in `R3`.
    fn drop_for(&mut self) {
        let drop = self.functions.drop;
        self.a.mov(R1, R6);
        self.a.mov(R2, R9);
        self.a.call_function(drop);
    }

    /// Emits the steps that leave the packet as it is. `R4` becomes the kind of the step.
    fn outcomes(&mut self, next: Label) {
        let [count, out, back, dropped, edit] = std::array::from_fn(|_| self.a.label());
        self.a.load(Word, R4, R8, 0);
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::COUNT), count);
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::OUT), out);
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::OUT_IN), back);
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::DROP), dropped);
        self.a.jump(edit);

        self.a.place(count);
        let maps = self.maps;
        self.a.load(Word, R3, R8, 4);
        self.look_up(&maps.counters, R3);
        self.a.jump_if(Cond::Eq, R0, 0, next);
        self.get(R3, SEGMENTS);
        self.get(R4, LEN);
        self.add(0, R3, R5);
        self.add(8, R4, R5);
        self.a.jump(next);

        self.a.place(dropped);
        self.a.load(Word, R3, R8, 4);
        self.drop_for();
        self.a.jump(next);

        self.out(out, back, next);
        self.a.place(edit);
    }

    /// Outputs: to a port (`out`), and to the port of entry (`back`).
    fn out(&mut self, out: Label, back: Label, next: Label) {
        let maps = self.maps;
        let [other, may, send, gone] = std::array::from_fn(|_| self.a.label());
        // `R3`: the place, `R4`: the number, `R5`: the flags.
        self.a.place(out);
        self.a.load(Word, R3, R8, 4);
        self.a.load(Word, R4, R8, 8);
        self.a.load(Word, R5, R8, 12);
        self.get(R1, IN_PORT);
        self.a.jump_if(Cond::Ne, R1, R4, other);
        self.a.jump_if(Cond::Set, R5, port::FLOOD as i32, next);
        self.drop(DropReason::NoOtherPort);
        self.a.jump(next);
        self.a.place(back);
        self.get(R3, IN_SLOT);
        self.get(R4, IN_PORT);
        self.get(R5, IN_FLAGS);
        self.a.place(other);
        self.a.jump_if(Cond::Set, R5, port::SENDS as i32, send);
        self.a.jump_if(Cond::Set, R5, port::EXISTS as i32, may);
        self.a.jump(gone);
        self.a.place(may);
        self.look_up(&maps.port_counters, R3);
        self.a.jump_if(Cond::Eq, R0, 0, gone);
        self.get(R3, SEGMENTS);
        self.add(40, R3, R5);
        self.a.place(gone);
        self.drop(DropReason::Egress);
        self.a.jump(next);
        self.a.place(send);
        self.a.mov(R1, R6);
        self.a.mov(R2, R9);
        let function = self.functions.send;
        self.a.call_function(function);
        self.a.jump(next);
    }

    /// Emits the steps that change the packet.
    fn edits(&mut self, next: Label) {
        if self.maps.ring.is_none() {
            let clean = self.a.label();
            self.get(R1, PENDING);
            self.a.jump_if(Cond::Eq, R1, 0, clean);
            self.a.mov(R1, R6);
            self.a.mov(R2, R9);
            let flush = self.functions.flush;
            self.a.call_function(flush);
            self.a.place(clean);
        }
        let edits: [Edit; 9] = [
            Edit(kind::ETH, Code::set_address),
            Edit(kind::DEC_TTL, Code::dec_ttl),
            Edit(kind::IPV4, Code::set_ipv4),
            Edit(kind::PORT, Code::set_port),
            Edit(kind::VLAN, Code::set_tag),
            Edit(kind::PUSH, Code::push_tag),
            Edit(kind::POP, Code::pop_tag),
            Edit(kind::TOS, Code::set_class),
            Edit(kind::SET_TTL, Code::set_ttl),
        ];
        for Edit(kind, emit) in edits {
            let other = self.a.label();
            self.a.load(Word, R4, R8, 0);
            self.a.jump_if(Cond::Ne, R4, i32::from(kind), other);
            emit(self);
            self.a.jump(next);
            self.a.place(other);
        }
    }

    /// `R2` = the network header and `at` bytes, of which `room` are readable.
    fn header(&mut self, at: i32, room: i32) {
        let give_up = self.give_up;
        self.pointers();
        self.get(R4, L3);
        self.a.alu(Alu::And, R4, 0x3f);
        self.a.alu(Alu::Add, R2, R4);
        if at != 0 {
            self.a.alu(Alu::Add, R2, at);
        }
        self.room(R2, room, give_up);
    }

    /// Updates the checksum of the IPv4 header, from `R3` to `R4`, of `size` bytes.
    fn header_sum(&mut self, size: i32) {
        self.get(R2, L3);
        self.a.alu(Alu::Add, R2, 10);
        self.a.mov(R1, R6);
        self.a.mov(R5, size);
        self.a.call(helper::L3_CSUM_REPLACE);
    }

    /// Updates the transport checksum, if there is one, from `R3` to `R4`.
    fn transport_sum(&mut self, flags: i32) {
        let none = self.a.label();
        self.get(R2, SUM);
        self.a.jump_if(Cond::Eq, R2, 0, none);
        self.get(R1, L3);
        self.a.alu(Alu::Add, R2, R1);
        self.get(R5, SUM_FLAGS);
        self.a.alu(Alu::Or, R5, flags);
        self.a.mov(R1, R6);
        self.a.call(helper::L4_CSUM_REPLACE);
        self.a.place(none);
    }

    fn stack(&mut self, size: Size, to: fastpath_bpf::asm::Reg, at: i16) {
        self.a.load(size, to, R10, at);
    }

    fn set_address(&mut self) {
        let give_up = self.give_up;
        self.pointers();
        self.a.load(Word, R1, R8, 4);
        self.a.alu(Alu::And, R1, 0xf);
        self.a.alu(Alu::Add, R2, R1);
        self.room(R2, 6, give_up);
        self.a.load(Double, R1, R8, 8);
        self.a.store(Word, R2, 0, R1);
        self.a.alu(Alu::ShiftRight, R1, 32);
        self.a.store(Half, R2, 4, R1);
    }

    fn dec_ttl(&mut self) {
        self.ttl_by(|code| code.a.alu(Alu::Sub, R4, 1));
    }

    fn set_ttl(&mut self) {
        self.ttl_by(|code| {
            code.a.alu(Alu::And, R4, 0xff00);
            code.a.load(Word, R1, R8, 4);
            code.a.alu(Alu::Or, R4, R1);
        });
    }

    /// Changes the TTL, which is the lowest byte of `R4`.
    fn ttl_by(&mut self, change: impl Fn(&mut Self)) {
        let (v6, done) = (self.a.label(), self.a.label());
        self.get(R1, VERSION);
        self.a.jump_if(Cond::Ne, R1, 4, v6);
        self.header(8, 2);
        self.a.load(Half, R3, R2, 0);
        self.a.mov(R4, R3);
        change(self);
        self.a.store(Byte, R2, 0, R4);
        self.header_sum(2);
        self.a.jump(done);
        self.a.place(v6);
        self.header(7, 1);
        self.a.load(Byte, R4, R2, 0);
        change(self);
        self.a.store(Byte, R2, 0, R4);
        self.a.place(done);
    }

    fn set_ipv4(&mut self) {
        self.field_at(|code| {
            code.a.load(Word, R1, R8, 4);
            code.a.alu(Alu::And, R1, 0x1f);
        });
        self.a.load(Word, R3, R2, 0);
        self.a.load(Word, R4, R8, 8);
        self.a.store(Word, R2, 0, R4);
        self.a.store(Double, R10, NEW, R4);
        self.a.store(Double, R10, OLD, R3);
        self.transport_sum(PSEUDO | 4);
        self.stack(Double, R4, NEW);
        self.stack(Double, R3, OLD);
        self.header_sum(4);
    }

    /// `R2` = the place in the network packet that `place` computes in `R1`; four bytes for
    /// addresses, two for ports, are readable.
    fn field_at(&mut self, place: impl Fn(&mut Self)) {
        let give_up = self.give_up;
        self.pointers();
        place(self);
        self.get(R4, L3);
        self.a.alu(Alu::Add, R1, R4);
        self.a.alu(Alu::And, R1, 0x7f);
        self.a.alu(Alu::Add, R2, R1);
        self.room(R2, 4, give_up);
    }

    fn set_port(&mut self) {
        let (second, read) = (self.a.label(), self.a.label());
        // Both ports are readable from the first.
        self.field_at(|code| code.get(R1, L4));
        self.a.load(Word, R4, R8, 8);
        self.a.load(Word, R1, R8, 4);
        self.a.jump_if(Cond::Ne, R1, 0, second);
        self.a.load(Half, R3, R2, 0);
        self.a.store(Half, R2, 0, R4);
        self.a.jump(read);
        self.a.place(second);
        self.a.load(Half, R3, R2, 2);
        self.a.store(Half, R2, 2, R4);
        self.a.place(read);
        self.transport_sum(2);
    }

    fn set_class(&mut self) {
        let (v6, done) = (self.a.label(), self.a.label());
        self.get(R1, VERSION);
        self.a.jump_if(Cond::Ne, R1, 4, v6);
        self.header(0, 2);
        self.a.load(Half, R3, R2, 0);
        self.a.mov(R1, R3);
        self.a.alu(Alu::ShiftRight, R1, 8);
        self.merge();
        self.a.store(Byte, R2, 1, R1);
        self.a.alu(Alu::ShiftLeft, R1, 8);
        self.a.mov(R4, R3);
        self.a.alu(Alu::And, R4, 0xff);
        self.a.alu(Alu::Or, R4, R1);
        self.header_sum(2);
        self.a.jump(done);
        self.a.place(v6);
        self.header(0, 2);
        self.a.load(Half, R3, R2, 0);
        self.a.swap_network(R3, 16);
        self.a.mov(R1, R3);
        self.a.alu(Alu::ShiftRight, R1, 4);
        self.a.alu(Alu::And, R1, 0xff);
        self.merge();
        self.a.alu(Alu::ShiftLeft, R1, 4);
        self.a.alu(Alu::And, R3, 0xf00f);
        self.a.alu(Alu::Or, R3, R1);
        self.a.swap_network(R3, 16);
        self.a.store(Half, R2, 0, R3);
        self.a.place(done);
    }

    /// `R1` keeps the bits of the step's argument and gets those of its value. Changes `R4`.
    fn merge(&mut self) {
        self.a.load(Word, R4, R8, 4);
        self.a.alu(Alu::And, R1, R4);
        self.a.load(Double, R4, R8, 8);
        self.a.alu(Alu::Or, R1, R4);
    }

    fn set_tag(&mut self) {
        let give_up = self.give_up;
        let (in_frame, done) = (self.a.label(), self.a.label());
        self.a.load(Word, R1, R6, skb::VLAN_PRESENT);
        self.a.jump_if(Cond::Eq, R1, 0, in_frame);
        self.a.load(Word, R1, R6, skb::VLAN_TCI);
        self.merge();
        self.a.store(Double, R10, NEW, R1);
        self.a.load(Word, R1, R6, skb::VLAN_PROTO);
        self.a.store(Double, R10, OLD, R1);
        self.a.mov(R1, R6);
        self.a.call(helper::VLAN_POP);
        self.a.mov(R1, R6);
        self.stack(Double, R2, OLD);
        self.stack(Double, R3, NEW);
        self.a.call(helper::VLAN_PUSH);
        self.length();
        self.a.jump(done);
        self.a.place(in_frame);
        self.pointers();
        self.room(R2, 16, give_up);
        self.a.load(Half, R1, R2, 14);
        self.a.swap_network(R1, 16);
        self.merge();
        self.a.swap_network(R1, 16);
        self.a.store(Half, R2, 14, R1);
        self.a.place(done);
    }

    fn push_tag(&mut self) {
        let give_up = self.give_up;
        let (in_frame, first, known) = (self.a.label(), self.a.label(), self.a.label());
        self.a.load(Word, R1, R6, skb::VLAN_PRESENT);
        self.a.jump_if(Cond::Eq, R1, 0, in_frame);
        self.a.load(Word, R4, R6, skb::VLAN_TCI);
        self.a.jump(known);
        self.a.place(in_frame);
        self.a.mov(R4, 0);
        self.get(R1, REAL_TAGS);
        self.a.jump_if(Cond::Eq, R1, 0, first);
        self.pointers();
        self.room(R2, 16, give_up);
        self.a.load(Half, R4, R2, 14);
        self.a.swap_network(R4, 16);
        self.a.place(known);
        // A new tag says nothing of whether the packet may be dropped.
        self.a.alu(Alu::And, R4, 0xefff);
        self.a.place(first);
        self.a.mov(R1, R6);
        self.a.load(Word, R2, R8, 4);
        self.a.mov(R3, R4);
        self.a.call(helper::VLAN_PUSH);
        self.get(R1, REAL_TAGS);
        self.a.alu(Alu::Add, R1, 1);
        self.put(REAL_TAGS, R1);
        self.length();
    }

    fn pop_tag(&mut self) {
        let whole = self.a.label();
        self.get(R1, LEN);
        self.a.store(Double, R10, OLD, R1);
        self.a.mov(R1, R6);
        self.a.call(helper::VLAN_POP);
        self.get(R1, REAL_TAGS);
        self.a.alu(Alu::Sub, R1, 1);
        self.put(REAL_TAGS, R1);
        self.length();
        self.stack(Double, R1, OLD);
        self.a.jump_if(Cond::Lt, R1, LEN_MIN, whole);
        self.get(R1, LEN);
        self.a.jump_if(Cond::Ge, R1, LEN_MIN, whole);
        self.a.load(Word, R2, R6, skb::LEN);
        self.a.alu(Alu::Add, R2, LEN_MIN);
        self.a.alu(Alu::Sub, R2, R1);
        self.a.mov(R1, R6);
        self.a.mov(R3, 0);
        self.a.call(helper::CHANGE_TAIL);
        self.length();
        self.a.place(whole);
    }
}
