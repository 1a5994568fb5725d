//! What all parts of the program use: its maps, its functions, and the ways out.
//!
//! In the main part `R6` is the context (`struct __sk_buff`) and `R9` the state of the packet; `R7`
//! and `R8` belong to the part at work.

use super::layout::{
    IN_USER, LEN, OUTCOMES, PENDING, RECORD, RECORD_DROP, RECORD_HEAD, RECORD_OUTPUT, SEGMENTS,
};
use super::lookups::Lookups;
use super::maps::Maps;
use fastpath_bpf::asm::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use fastpath_bpf::asm::Size::{Double, Word};
use fastpath_bpf::asm::{Alu, Assembler, Cond, Label, Reg};
use fastpath_bpf::helpers::{DROP, helper, skb};
use fastpath_sys::bpf::Map;

/// What a tcx program returns: the next program or the stack takes the packet.
pub(super) const TC_OK: i32 = 0;

/// The program in the making.
pub(super) struct Code<'m> {
    pub(super) a: Assembler,
    pub(super) maps: &'m Maps,
    /// Goes to user space; `R0` has the number of the reason and
    /// [`TO_USER`](super::layout::TO_USER).
    pub(super) to_user: Label,
    /// Ends a packet that cannot be handled on, which does not happen.
    pub(super) give_up: Label,
    pub(super) functions: Functions,
    /// The maps that the tables look up in.
    pub(super) lookups: &'m Lookups,
}

/// The functions of the program.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    /// `take(state, operation)`: notes what an operation does.
    pub(super) take: Label,
    /// `enter(state, row)`: notes what a rule does.
    pub(super) enter: Label,
    /// `send(context, state, place, port)`: a copy leaves by a port.
    pub(super) send: Label,
    /// `drop(context, state, reason)`: a copy is dropped.
    pub(super) drop: Label,
    /// `flush(context, state)`: sends the copy that waits to leave.
    pub(super) flush: Label,
    /// `tell(context, kind, argument)`: leaves a record.
    pub(super) tell: Label,
}

impl<'m> Code<'m> {
    pub(super) fn new(maps: &'m Maps, lookups: &'m Lookups) -> Code<'m> {
        let mut a = Assembler::new();
        let [take, enter, send, drop, flush, tell] = std::array::from_fn(|_| a.label());
        let functions = Functions { take, enter, send, drop, flush, tell };
        let (to_user, give_up) = (a.label(), a.label());
        Code { a, maps, to_user, give_up, functions, lookups }
    }

    /// `to` = a word of the state.
    pub(super) fn get(&mut self, to: Reg, at: i16) {
        self.a.load(Double, to, R9, at);
    }

    /// A word of the state = `from`.
    pub(super) fn put(&mut self, at: i16, from: Reg) {
        self.a.store(Double, R9, at, from);
    }

    /// A word of the state = a number.
    pub(super) fn put_number(&mut self, at: i16, number: i32) {
        self.a.store(Double, R9, at, number);
    }

    /// `R0` = the value of a key of four bytes in a map, or null. Changes `R1` to `R5`.
    pub(super) fn look_up(&mut self, map: &Map, key: Reg) {
        self.a.store(Word, R10, -4, key);
        self.a.mov(R2, R10);
        self.a.alu(Alu::Add, R2, -4);
        self.a.load_map(R1, map);
        self.a.call(helper::MAP_LOOKUP);
    }

    /// Adds `by` to a counter behind `R0`, which is not null. Each CPU has its own.
    pub(super) fn add(&mut self, offset: i16, by: Reg, scratch: Reg) {
        self.a.load(Double, scratch, R0, offset);
        self.a.alu(Alu::Add, scratch, by);
        self.a.store(Double, R0, offset, scratch);
    }

    /// Gives the packet to user space.
    pub(super) fn user_if(&mut self, condition: Cond, register: Reg, with: i32) {
        let to_user = self.to_user;
        self.a.jump_if(condition, register, with, to_user);
    }

    /// Emits the ways out of the main part, and the functions but for those of `steps.rs`.
    pub(super) fn ends(&mut self) {
        let (to_user, give_up) = (self.to_user, self.give_up);
        self.a.place(to_user);
        self.a.alu(Alu::And, R0, 0xf);
        self.a.mov(R7, R0);
        let maps = self.maps;
        self.look_up(&maps.to_user, R7);
        let none = self.a.label();
        self.a.jump_if(Cond::Eq, R0, 0, none);
        self.a.mov(R2, 1);
        self.add(0, R2, R1);
        self.a.place(none);
        let go_on = self.a.label();
        self.get(R1, IN_USER);
        self.a.jump_if(Cond::Eq, R1, 0, go_on);
        self.a.mov(R2, 0);
        self.a.call(helper::REDIRECT);
        self.a.exit();
        self.a.place(go_on);
        self.a.mov(R0, TC_OK);
        self.a.exit();
        self.a.place(give_up);
        self.a.mov(R0, DROP);
        self.a.exit();
        self.send_function();
        self.drop_function();
        // The kernel refuses functions without a caller.
        if self.maps.ring.is_some() {
            self.tell_function();
        } else {
            self.flush_function();
        }
    }

    /// `send(context, state, place, port)`.
    fn send_function(&mut self) {
        let maps = self.maps;
        let send = self.functions.send;
        self.a.place(send);
        self.a.mov(R6, R1);
        self.a.mov(R9, R2);
        self.a.mov(R7, R3);
        self.a.mov(R8, R4);
        self.count_outcome();
        self.look_up(&maps.port_counters, R7);
        let end = self.a.label();
        self.a.jump_if(Cond::Eq, R0, 0, end);
        self.get(R3, SEGMENTS);
        self.get(R4, LEN);
        self.add(16, R3, R5);
        self.add(24, R4, R5);
        if maps.ring.is_some() {
            self.tell(RECORD_OUTPUT, R8);
        } else {
            let flush = self.functions.flush;
            self.a.mov(R1, R6);
            self.a.mov(R2, R9);
            self.a.call_function(flush);
            self.look_up(&maps.ports, R7);
            self.a.jump_if(Cond::Eq, R0, 0, end);
            self.a.load(Word, R1, R0, 0);
            self.put(PENDING, R1);
        }
        self.a.place(end);
        self.a.mov(R0, 0);
        self.a.exit();
    }

    fn count_outcome(&mut self) {
        self.get(R0, OUTCOMES);
        self.a.alu(Alu::Add, R0, 1);
        self.put(OUTCOMES, R0);
    }

    /// `drop(context, state, reason)`.
    fn drop_function(&mut self) {
        let maps = self.maps;
        let drop = self.functions.drop;
        self.a.place(drop);
        self.a.mov(R6, R1);
        self.a.mov(R9, R2);
        self.a.mov(R7, R3);
        self.count_outcome();
        self.look_up(&maps.drops, R7);
        let end = self.a.label();
        self.a.jump_if(Cond::Eq, R0, 0, end);
        self.get(R3, SEGMENTS);
        self.add(0, R3, R5);
        if maps.ring.is_some() {
            self.tell(RECORD_DROP, R7);
        }
        self.a.place(end);
        self.a.mov(R0, 0);
        self.a.exit();
    }

    /// `flush(context, state)`.
    fn flush_function(&mut self) {
        let flush = self.functions.flush;
        self.a.place(flush);
        self.a.mov(R6, R1);
        self.a.mov(R9, R2);
        let end = self.a.label();
        self.get(R2, PENDING);
        self.a.jump_if(Cond::Eq, R2, 0, end);
        self.a.mov(R1, R6);
        self.a.mov(R3, 0);
        self.a.call(helper::CLONE_REDIRECT);
        self.put_number(PENDING, 0);
        self.a.place(end);
        self.a.mov(R0, 0);
        self.a.exit();
    }

    fn tell(&mut self, kind: i32, argument: Reg) {
        let tell = self.functions.tell;
        self.a.mov(R3, argument);
        self.a.mov(R1, R6);
        self.a.mov(R2, kind);
        self.a.call_function(tell);
    }

    /// `tell(context, kind, argument)`.
    fn tell_function(&mut self) {
        let tell = self.functions.tell;
        let maps = self.maps;
        let Some(ring) = &maps.ring else { return };
        let (end, submit, fits) = (self.a.label(), self.a.label(), self.a.label());
        self.a.place(tell);
        self.a.mov(R6, R1);
        self.a.mov(R7, R2);
        self.a.mov(R8, R3);
        self.a.load_map(R1, ring);
        self.a.mov(R2, RECORD);
        self.a.mov(R3, 0);
        self.a.call(helper::RING_RESERVE);
        self.a.jump_if(Cond::Eq, R0, 0, end);
        self.a.store(Word, R0, 0, R7);
        self.a.store(Word, R0, 4, R8);
        self.a.mov(R7, R0);
        self.a.load(Word, R4, R6, skb::LEN);
        for (at, offset) in [(12, skb::VLAN_PRESENT), (16, skb::VLAN_TCI), (20, skb::VLAN_PROTO)] {
            self.a.load(Word, R1, R6, offset);
            self.a.store(Word, R7, at, R1);
        }
        let most = RECORD - RECORD_HEAD;
        self.a.jump_if(Cond::Le, R4, most, fits);
        self.a.mov(R4, most);
        self.a.place(fits);
        self.a.store(Word, R7, 8, R4);
        self.a.jump_if(Cond::Eq, R4, 0, submit);
        self.a.mov(R1, R6);
        self.a.mov(R2, 0);
        self.a.mov(R3, R7);
        self.a.alu(Alu::Add, R3, RECORD_HEAD);
        self.a.call(helper::LOAD_BYTES);
        self.a.place(submit);
        self.a.mov(R1, R7);
        self.a.mov(R2, 0);
        self.a.call(helper::RING_SUBMIT);
        self.a.place(end);
        self.a.mov(R0, 0);
        self.a.exit();
    }
}
