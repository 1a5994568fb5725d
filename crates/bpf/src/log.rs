//! The records of the per-packet log, which go to user space by a ring buffer.

use crate::asm::Reg::{self, R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use crate::asm::{Alu, Assembler, Cond, Size};
use crate::helpers::{helper, skb};
use crate::layout::record;
use crate::maps::Maps;
use crate::path_state as state;

/// The values of [`Log::numbers`]: frames that entered, packets that were made, records without
/// room.
pub(crate) const ENTERED: i32 = 0;
pub(crate) const MADE: i32 = 1;
pub(crate) const MISSING: i32 = 2;

/// Adds 1 to a number: `R0` = what it was. Uses four bytes of the stack at −8. Changes `R1` to `R5`.
fn next_number(a: &mut Assembler, maps: &Maps, which: i32) {
    let Some(log) = &maps.log else { return };
    const KEY: i16 = -8;
    let (absent, done) = (a.label(), a.label());
    a.store(Size::Word, R10, KEY, which);
    a.load_map(R1, &log.numbers);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(KEY));
    a.call(helper::MAP_LOOKUP);
    a.jump_if(Cond::Eq, R0, 0, absent);
    a.mov(R1, 1);
    a.fetch_add(R0, 0, R1);
    a.mov(R0, R1);
    a.jump(done);
    a.place(absent);
    a.mov(R0, 0);
    a.place(done);
}

/// Gives the frame whose state is in `of` its number, from 1.
pub(crate) fn number_frame(a: &mut Assembler, maps: &Maps, of: Reg) {
    next_number(a, maps, ENTERED);
    a.alu(Alu::Add, R0, 1);
    a.store(Size::Double, of, state::ENTERED, R0);
    a.store(Size::Double, of, state::MADE, 0);
}

/// Keeps the number of the packet in `R6`, whose state is in `R7`, in its mark: for the next switch.
/// A mark does not leave the namespace. Changes `R1` to `R3`.
pub(crate) fn keep_number(a: &mut Assembler) {
    let (copy, done) = (a.label(), a.label());
    a.load(Size::Double, R1, R7, state::MADE);
    a.jump_if(Cond::Ne, R1, 0, copy);
    a.load(Size::Double, R1, R7, state::ENTERED);
    a.alu(Alu::ShiftLeft, R1, 1);
    a.jump(done);
    a.place(copy);
    a.alu(Alu::ShiftLeft, R1, 1);
    a.alu(Alu::Or, R1, 1);
    a.place(done);
    a.store(Size::Word, R6, skb::MARK, R1);
}

/// Gives the frame whose state is in `of` the number in the mark of the packet in `R6`. Changes `R1`
/// and `R2`.
pub(crate) fn known_number(a: &mut Assembler, of: Reg) {
    let (entered, done) = (a.label(), a.label());
    a.load(Size::Word, R1, R6, skb::MARK);
    a.mov(R2, R1);
    a.alu(Alu::ShiftRight, R1, 1);
    a.alu(Alu::And, R2, 1);
    a.jump_if(Cond::Eq, R2, 0, entered);
    a.store(Size::Double, of, state::MADE, R1);
    a.jump(done);
    a.place(entered);
    a.store(Size::Double, of, state::ENTERED, R1);
    a.place(done);
}

/// Gives a copy of the frame whose state is in `of` its number, from 1.
pub(crate) fn number_copy(a: &mut Assembler, maps: &Maps, of: Reg) {
    next_number(a, maps, MADE);
    a.alu(Alu::Add, R0, 1);
    a.store(Size::Double, of, state::MADE, R0);
}

/// Arguments: the packet, the state of its frame, the location, what happened (`outcome`).
pub(crate) fn write(a: &mut Assembler, maps: &Maps) {
    let Some(log) = &maps.log else { return };
    let (full, untagged, short, done) = (a.label(), a.label(), a.label(), a.label());
    a.mov(R6, R1);
    a.mov(R7, R2);
    a.mov(R8, R3);
    a.mov(R9, R4);
    a.load_map(R1, &log.records);
    a.mov(R2, record::SIZE);
    a.mov(R3, 0);
    a.call(helper::RING_RESERVE);
    a.jump_if(Cond::Eq, R0, 0, full);
    a.store(Size::Word, R0, record::LOCATION, R8);
    a.store(Size::Word, R0, record::OUTCOME, R9);
    a.mov(R8, R0);
    for (from, to) in [(state::ENTERED, record::ENTERED), (state::MADE, record::MADE)] {
        a.load(Size::Double, R1, R7, from);
        a.store(Size::Double, R8, to, R1);
    }
    a.load(Size::Word, R9, R6, skb::LEN);
    a.store(Size::Word, R8, record::LEN, R9);
    a.store(Size::Word, R8, record::TAG, 0);
    a.load(Size::Word, R1, R6, skb::VLAN_PRESENT);
    a.jump_if(Cond::Eq, R1, 0, untagged);
    a.load(Size::Word, R1, R6, skb::VLAN_PROTO);
    a.swap_network(R1, 16);
    a.alu(Alu::ShiftLeft, R1, 16);
    a.load(Size::Word, R2, R6, skb::VLAN_TCI);
    a.alu(Alu::Or, R1, R2);
    a.store(Size::Word, R8, record::TAG, R1);
    a.place(untagged);
    a.call(helper::KTIME_NS);
    a.store(Size::Double, R8, record::TIME, R0);
    // At least 1 and at most the room, as the verifier wants to see.
    a.jump_if(Cond::Eq, R9, 0, done);
    a.jump_if(Cond::Le, R9, record::SNAP, short);
    a.mov(R9, record::SNAP);
    a.place(short);
    a.mov(R1, R6);
    a.mov(R2, 0);
    a.mov(R3, R8);
    a.alu(Alu::Add, R3, i32::from(record::BYTES));
    a.mov(R4, R9);
    a.call(helper::LOAD_BYTES);
    a.place(done);
    a.mov(R1, R8);
    a.mov(R2, 0);
    a.call(helper::RING_SUBMIT);
    a.mov(R0, 0);
    a.exit();
    a.place(full);
    next_number(a, maps, MISSING);
    a.mov(R0, 0);
    a.exit();
}
