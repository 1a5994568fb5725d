//! The first half of a packet's way: which rules it meets, and what they do, without doing it. What
//! user space must execute leaves here, as it came.
//!
//! ```text
//!  table ─▶ rule ─▶ row ─▶ enter: for each operation take ─▶ key, action set, steps
//!    ▲                 │
//!    └── next table ◀──┘ else: the action set, by take
//! ```

use super::KernelTable;
use super::code::Code;
use super::layout::{
    END, FRAGMENT, INNER, KEY, LIST, MISSED, NOTHING, OP, POINT, ROW_HEAD, ROW_IN_USER, ROW_LAST, SET,
    SET_MASK, SET_MAX, SKIP, STEPS, STEPS_MAX, TAGS, TO_USER, TTL, ToUser, VERSION, kind,
};
use super::lookups::TablePart;
use fastpath_bpf::asm::Reg::{self, R0, R1, R2, R3, R4, R5, R7, R8, R9};
use fastpath_bpf::asm::Size::{Byte, Double, Half, Word};
use fastpath_bpf::asm::{Alu, Cond, Label};
use fastpath_switch::Field;

/// The word of the key with the VLAN tag in its lowest half.
const TAG: i16 = KEY + 8;
/// The multiplier of [`select_hash`](fastpath_switch::group::select_hash).
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Code<'_> {
    /// Emits the tables and the action set. Continues with all steps noted.
    pub(super) fn tables(&mut self, tables: &[KernelTable], parts: &[Vec<TablePart<'_>>], slots: u64) {
        let all_found = self.a.label();
        for (place, (table, parts)) in tables.iter().zip(parts).enumerate() {
            let next = self.a.label();
            if place > 0 {
                self.a.jump_if(Cond::Ne, R8, i32::from(table.id), next);
            }
            self.find(&table.plan, parts);
            let hit = self.a.label();
            self.a.mov_wide(R1, super::find::NO_RULE);
            self.a.jump_if(Cond::Ne, R8, R1, hit);
            self.put_number(MISSED, i32::from(table.id) + 1);
            self.a.jump(all_found);
            self.a.place(hit);
            self.a.alu(Alu::Add, R8, table.first_row as i32);
            let maps = self.maps;
            self.look_up(&maps.rows, R8);
            let give_up = self.give_up;
            self.a.jump_if(Cond::Eq, R0, 0, give_up);
            self.a.mov(R2, R0);
            self.a.mov(R1, R9);
            let enter = self.functions.enter;
            self.a.call_function(enter);
            self.user_if(Cond::Ge, R0, TO_USER);
            self.a.mov(R8, R0);
            self.a.place(next);
        }
        self.action_set(slots, all_found);
        self.a.place(all_found);
    }

    fn action_set(&mut self, slots: u64, done: Label) {
        self.get(R1, SET_MASK);
        self.a.jump_if(Cond::Eq, R1, 0, done);
        let take = self.functions.take;
        for slot in (0..SET_MAX).filter(|slot| slots >> slot & 1 != 0) {
            let (is_set, next) = (self.a.label(), self.a.label());
            self.get(R1, SET_MASK);
            self.a.jump_if(Cond::Set, R1, 1 << slot, is_set);
            self.a.jump(next);
            self.a.place(is_set);
            self.a.mov(R1, R9);
            self.a.mov(R2, R9);
            self.a.alu(Alu::Add, R2, i32::from(SET + slot * OP));
            self.a.call_function(take);
            self.user_if(Cond::Ne, R0, 0);
            self.a.place(next);
        }
    }

    /// `enter(state, row)`: returns the next table, [`END`] or the reason for user space. A row has
    /// at most `most` operations.
    pub(super) fn enter_function(&mut self, most: i16) {
        let (enter, take) = (self.functions.enter, self.functions.take);
        let (here, more, done, full, end) =
            (self.a.label(), self.a.label(), self.a.label(), self.a.label(), self.a.label());
        self.a.place(enter);
        self.a.mov(R9, R1);
        self.a.mov(R8, R2);
        self.a.load(Byte, R1, R8, 4);
        self.a.jump_if(Cond::Ne, R1, i32::from(ROW_IN_USER), here);
        self.a.mov(R0, TO_USER + ToUser::Rule as i32);
        self.a.exit();
        self.a.place(here);
        self.get(R3, STEPS);
        self.a.jump_if(Cond::Ge, R3, i32::from(STEPS_MAX), full);
        self.a.load(Word, R2, R8, 0);
        self.a.mov(R4, i32::from(kind::COUNT));
        self.a.mov(R5, 0);
        self.note();
        self.a.mov(R7, 0);
        self.a.place(more);
        self.a.load(Byte, R1, R8, 5);
        self.a.jump_if(Cond::Ge, R7, R1, done);
        self.a.jump_if(Cond::Ge, R7, i32::from(most), done);
        self.a.mov(R2, R7);
        self.a.alu(Alu::ShiftLeft, R2, OP.ilog2() as i32);
        self.a.alu(Alu::Add, R2, R8);
        self.a.alu(Alu::Add, R2, i32::from(ROW_HEAD));
        self.a.mov(R1, R9);
        self.a.call_function(take);
        self.a.jump_if(Cond::Ne, R0, 0, end);
        self.a.alu(Alu::Add, R7, 1);
        self.a.jump(more);
        self.a.place(done);
        self.a.load(Half, R0, R8, 6);
        self.a.jump_if(Cond::Ne, R0, i32::from(ROW_LAST), end);
        self.a.mov(R0, END);
        self.a.place(end);
        self.a.exit();
        self.a.place(full);
        self.a.mov(R0, TO_USER + ToUser::Steps as i32);
        self.a.exit();
    }

    /// Adds a step of kind `R4`, argument `R2` and value `R5`; `R3` is the number of steps. Changes
    /// `R1`.
    fn note(&mut self) {
        self.a.mov(R1, R3);
        self.a.alu(Alu::ShiftLeft, R1, 4);
        self.a.alu(Alu::Add, R1, R9);
        self.a.store(Word, R1, LIST, R4);
        self.a.store(Word, R1, LIST + 4, R2);
        self.a.store(Double, R1, LIST + 8, R5);
        self.a.alu(Alu::Add, R3, 1);
        self.put(STEPS, R3);
    }

    /// `take(state, operation)`: returns 0, or the reason for user space.
    pub(super) fn take_function(&mut self) {
        let take = self.functions.take;
        let [apply, nothing, append] = std::array::from_fn(|_| self.a.label());
        self.a.place(take);
        self.a.mov(R9, R1);
        self.a.mov(R7, R2);
        self.leave_out(nothing);
        self.a.load(Byte, R3, R7, 2);
        self.a.jump_if(Cond::Eq, R3, i32::from(NOTHING), apply);
        self.write(nothing);
        self.a.place(apply);
        self.a.load(Byte, R4, R7, 0);
        let keep_set = self.a.label();
        self.a.jump_if(Cond::Ne, R4, i32::from(kind::CLEAR), keep_set);
        self.put_number(SET_MASK, 0);
        self.a.jump(nothing);
        self.a.place(keep_set);
        self.shares(nothing);
        self.a.load(Byte, R3, R7, 1);
        let holds = self.a.label();
        self.a.jump_if(Cond::Eq, R3, i32::from(NOTHING), holds);
        self.a.alu(Alu::And, R3, 63);
        self.get(R1, KEY);
        self.a.alu(Alu::ShiftRight, R1, R3);
        self.a.alu(Alu::And, R1, 1);
        self.a.jump_if(Cond::Eq, R1, 0, nothing);
        self.a.place(holds);
        self.tags(append, nothing);
        self.ttl(append);
        self.a.load(Byte, R3, R7, 3);
        self.a.jump_if(Cond::Eq, R3, i32::from(NOTHING), append);
        self.a.alu(Alu::And, R3, 15);
        self.a.alu(Alu::ShiftLeft, R3, 3);
        self.a.alu(Alu::Add, R3, R9);
        self.a.load(Double, R1, R3, KEY);
        self.a.load(Double, R2, R7, 16);
        self.a.alu(Alu::And, R1, R2);
        self.a.load(Double, R2, R7, 24);
        self.a.alu(Alu::Or, R1, R2);
        self.a.store(Double, R3, KEY, R1);
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::KEY), nothing);
        self.a.place(append);
        let full = self.a.label();
        self.get(R3, STEPS);
        self.a.jump_if(Cond::Ge, R3, i32::from(STEPS_MAX), full);
        self.a.load(Word, R2, R7, 4);
        self.a.load(Double, R5, R7, 8);
        self.note();
        self.a.place(nothing);
        self.a.mov(R0, 0);
        self.a.exit();
        self.a.place(full);
        self.a.mov(R0, TO_USER + ToUser::Steps as i32);
        self.a.exit();
    }

    /// Writes the operation to the action set, at the place in `R3`.
    fn write(&mut self, done: Label) {
        self.a.jump_if(Cond::Ge, R3, i32::from(SET_MAX), done);
        self.a.mov(R1, R3);
        self.a.alu(Alu::ShiftLeft, R1, OP.ilog2() as i32);
        self.a.alu(Alu::Add, R1, R9);
        for at in (0..OP).step_by(8) {
            self.a.load(Double, R2, R7, at);
            self.a.store(Double, R1, SET + at, R2);
        }
        self.a.store(Byte, R1, SET + 2, i32::from(NOTHING));
        self.a.mov(R4, 1);
        self.a.alu(Alu::ShiftLeft, R4, R3);
        self.get(R5, SET_MASK);
        self.a.alu(Alu::Or, R5, R4);
        self.put(SET_MASK, R5);
        self.a.jump(done);
    }

    /// Leaves the operation out if an earlier one said so.
    fn leave_out(&mut self, nothing: Label) {
        let all = self.a.label();
        self.get(R1, SKIP);
        self.a.jump_if(Cond::Eq, R1, 0, all);
        self.a.alu(Alu::Sub, R1, 1);
        self.put(SKIP, R1);
        self.a.jump(nothing);
        self.a.place(all);
    }

    /// The operations of groups of type select.
    fn shares(&mut self, nothing: Label) {
        let [skip, other, outside] = std::array::from_fn(|_| self.a.label());
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::SKIP), skip);
        self.a.jump_if(Cond::Ne, R4, i32::from(kind::SHARE), other);
        self.flow_hash();
        self.a.load(Word, R1, R7, 4);
        self.a.alu(Alu::Mul, R0, R1);
        self.a.alu(Alu::ShiftRight, R0, 32);
        self.put(POINT, R0);
        self.a.jump(nothing);
        self.a.place(skip);
        self.get(R1, POINT);
        self.a.load(Double, R2, R7, 16);
        self.a.jump_if(Cond::Lt, R1, R2, outside);
        self.a.load(Double, R2, R7, 24);
        self.a.jump_if(Cond::Lt, R1, R2, nothing);
        self.a.place(outside);
        self.a.load(Word, R1, R7, 4);
        self.put(SKIP, R1);
        self.a.jump(nothing);
        self.a.place(other);
    }

    /// `R0` = the hash of [`select_hash`](fastpath_switch::group::select_hash). Changes `R1` to
    /// `R5`.
    fn flow_hash(&mut self) {
        let [ip, arp, plain, flow, known] = std::array::from_fn(|_| self.a.label());
        self.a.mov(R0, 0);
        self.get(R3, VERSION);
        self.a.jump_if(Cond::Ne, R3, 0, ip);
        self.get(R1, KEY);
        self.a.jump_if(Cond::Set, R1, Field::ArpOp.presence_bit() as i32, arp);
        self.a.jump(plain);

        self.a.place(arp);
        self.get(R4, KEY + 8 * 6);
        self.a.jump(known);

        self.a.place(plain);
        self.address_word(4);
        self.mix();
        self.address_word(5);
        self.a.alu(Alu::ShiftLeft, R1, 16);
        self.ethertype(R5);
        self.a.alu(Alu::Or, R1, R5);
        self.mix();
        self.a.jump(flow);

        self.a.place(ip);
        self.addresses_and_ports();

        self.a.place(flow);
        self.a.mov_wide(R2, MIX);
        self.a.alu(Alu::Mul, R0, R2);
        self.a.alu(Alu::ShiftRight, R0, 32);
        self.a.mov(R4, R0);
        self.a.place(known);
        self.a.mov(R0, 0);
        self.address_word(4);
        self.mix();
        self.address_word(5);
        self.mix();
        self.ethertype(R1);
        self.mix();
        self.a.mov(R1, R4);
        self.mix();
        self.a.mov_wide(R2, MIX);
        self.a.alu(Alu::Mul, R0, R2);
        self.a.alu(Alu::ShiftRight, R0, 32);
    }

    /// Mixes addresses, protocol and ports of IP version `R3` into `R0`.
    fn addresses_and_ports(&mut self) {
        let [v6, ports, no_ports] = std::array::from_fn(|_| self.a.label());
        let ported = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc];
        let ported = ported.iter().fold(0, |bits, field| bits | field.presence_bit());
        self.a.jump_if(Cond::Ne, R3, 4, v6);
        self.get(R1, KEY + 8 * 6);
        self.mix();
        self.a.jump(ports);
        self.a.place(v6);
        for word in 8..12 {
            self.get(R1, KEY + 8 * word);
            self.mix();
        }
        self.a.place(ports);
        self.get(R5, KEY + 8 * 4);
        self.a.alu(Alu::ShiftRight, R5, 48);
        self.a.alu(Alu::And, R5, 0xff);
        self.a.alu(Alu::ShiftLeft, R5, 32);
        self.get(R1, FRAGMENT);
        self.a.jump_if(Cond::Ne, R1, 0, no_ports);
        self.get(R1, KEY);
        self.a.mov_wide(R2, ported);
        self.a.alu(Alu::And, R1, R2);
        self.a.jump_if(Cond::Eq, R1, 0, no_ports);
        self.get(R1, KEY + 8 * 7);
        self.a.mov_wide(R2, 0xffff_ffff);
        self.a.alu(Alu::And, R1, R2);
        self.a.alu(Alu::Or, R5, R1);
        self.a.place(no_ports);
        self.a.mov(R1, R5);
        self.mix();
    }

    /// `R1` = the lowest 48 bits of a word of the key.
    fn address_word(&mut self, word: i16) {
        self.get(R1, KEY + 8 * word);
        self.a.alu(Alu::ShiftLeft, R1, 16);
        self.a.alu(Alu::ShiftRight, R1, 16);
    }

    fn ethertype(&mut self, to: Reg) {
        self.get(to, TAG);
        self.a.alu(Alu::ShiftRight, to, 16);
        self.a.alu(Alu::And, to, 0xffff);
    }

    /// Mixes `R1` into the hash in `R0`. Changes `R2`.
    fn mix(&mut self) {
        self.a.alu(Alu::Xor, R0, R1);
        self.a.mov_wide(R2, MIX);
        self.a.alu(Alu::Mul, R0, R2);
        self.a.mov(R1, R0);
        self.a.alu(Alu::ShiftRight, R1, 32);
        self.a.alu(Alu::Xor, R0, R1);
    }

    /// What pushing and popping tags does to the key.
    fn tags(&mut self, append: Label, nothing: Label) {
        let [pop, other, first, inner, last] = std::array::from_fn(|_| self.a.label());
        let has_tag = Field::VlanPcp.presence_bit() as i32;
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::POP), pop);
        self.a.jump_if(Cond::Ne, R4, i32::from(kind::PUSH), other);
        self.get(R3, TAGS);
        self.get(R1, TAG);
        self.a.jump_if(Cond::Eq, R3, 0, first);
        let room = self.a.label();
        self.a.jump_if(Cond::Lt, R3, 2, room);
        self.a.mov(R0, TO_USER + ToUser::Packet as i32);
        self.a.exit();
        self.a.place(room);
        self.a.alu(Alu::And, R1, 0xffff);
        self.put(INNER, R1);
        self.put_number(TAGS, 2);
        self.a.jump(append);
        self.a.place(first);
        self.a.alu(Alu::Or, R1, 0x1000);
        self.put(TAG, R1);
        self.get(R1, KEY);
        self.a.alu(Alu::Or, R1, has_tag);
        self.put(KEY, R1);
        self.put_number(TAGS, 1);
        self.a.jump(append);

        self.a.place(pop);
        self.get(R3, TAGS);
        self.a.jump_if(Cond::Eq, R3, 0, nothing);
        self.get(R1, TAG);
        self.a.alu(Alu::And, R1, -0x1_0000);
        self.a.jump_if(Cond::Gt, R3, 1, inner);
        self.a.mov(R2, 0);
        self.get(R5, KEY);
        self.a.alu(Alu::And, R5, !has_tag);
        self.put(KEY, R5);
        self.a.jump(last);
        self.a.place(inner);
        self.get(R2, INNER);
        self.a.place(last);
        self.a.alu(Alu::Or, R1, R2);
        self.put(TAG, R1);
        self.a.alu(Alu::Sub, R3, 1);
        self.put(TAGS, R3);
        self.a.jump(append);
        self.a.place(other);
    }

    fn ttl(&mut self, append: Label) {
        let [set, other, alive] = std::array::from_fn(|_| self.a.label());
        self.a.jump_if(Cond::Eq, R4, i32::from(kind::SET_TTL), set);
        self.a.jump_if(Cond::Ne, R4, i32::from(kind::DEC_TTL), other);
        self.get(R3, TTL);
        self.a.jump_if(Cond::Gt, R3, 1, alive);
        self.a.mov(R0, TO_USER + ToUser::Ttl as i32);
        self.a.exit();
        self.a.place(alive);
        self.a.alu(Alu::Sub, R3, 1);
        self.put(TTL, R3);
        self.a.jump(append);
        self.a.place(set);
        self.a.load(Word, R3, R7, 4);
        self.put(TTL, R3);
        self.a.jump(append);
        self.a.place(other);
    }
}
