//! The function that passes a frame through a pipe: counts, draws, marks, flips, records. As
//! `fastpath_link::Pipe` does for a pipe that holds nothing (`InstantSpec`).

use crate::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use crate::asm::{Alu, Assembler, Cond, Label, Size};
use crate::draw::{draw_chance, draw_channel, first_of_seed, next_u64};
use crate::helpers::{helper, skb};
use crate::layout::{counter, law, outcome};
use crate::maps::{Functions, Maps};
use crate::path_state as state;

// The stack of the function.
const PIPE: i16 = -4;
const IS_ECT: i16 = -8;
const DONE: i16 = -16;
const SEED: i16 = -24;
const COUNTERS: i16 = -32;

/// Arguments: the packet, the number of the pipe, the state of the frame. Returns how often the
/// frame leaves: 0 (dropped), 1 or 2. The packet has changed as the state says (`DONE`).
pub(crate) fn pass(a: &mut Assembler, maps: &Maps, functions: &Functions) {
    let (gone, deliver) = (a.label(), a.label());
    a.jump_if(Cond::Eq, R3, 0, gone);
    a.mov(R6, R1);
    a.mov(R9, R3);
    a.store(Size::Word, R10, PIPE, R2);
    a.store(Size::Word, R9, state::DONE, 0);
    a.store(Size::Double, R10, DONE, 0);
    look_up(a, &maps.counters);
    a.jump_if(Cond::Eq, R0, 0, gone);
    a.store(Size::Double, R10, COUNTERS, R0);
    count_volume(a, counter::PUSHED);
    if maps.has_laws {
        look_up(a, &maps.laws);
        a.jump_if(Cond::Eq, R0, 0, gone);
        a.mov(R7, R0);
        a.load(Size::Double, R1, R7, law::FLAGS);
        a.jump_if(Cond::Eq, R1, 0, deliver);
        apply(a, functions, deliver, gone);
    }
    a.place(deliver);
    a.load(Size::Double, R0, R10, COUNTERS);
    count_volume(a, counter::DELIVERED);
    if maps.has_log() {
        record(a, functions);
    }
    a.load(Size::Double, R0, R10, DONE);
    a.alu(Alu::And, R0, outcome::DUPLICATED);
    let single = a.label();
    a.jump_if(Cond::Eq, R0, 0, single);
    a.mov(R0, 2);
    a.exit();
    a.place(single);
    a.mov(R0, 1);
    a.exit();
    a.place(gone);
    a.mov(R0, 0);
    a.exit();
}

/// `R0` = the value of the pipe in a map.
fn look_up(a: &mut Assembler, map: &fastpath_sys::bpf::Map) {
    a.load_map(R1, map);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(PIPE));
    a.call(helper::MAP_LOOKUP);
}

/// Adds the frames and the bytes to two counters of the value in `R0`.
fn count_volume(a: &mut Assembler, at: i16) {
    count(a, state::FRAMES, at);
    count(a, state::BYTES, at + 8);
}

/// Adds what the state has at `what` to the counter at `at` of the value in `R0`, which is this
/// CPU's.
fn count(a: &mut Assembler, what: i16, at: i16) {
    a.load(Size::Double, R1, R9, what);
    a.load(Size::Double, R2, R0, at);
    a.alu(Alu::Add, R2, R1);
    a.store(Size::Double, R0, at, R2);
}

/// Adds bits to what the draws have decided, in the law in `R7`. On the stack each path through the
/// draws would be another one to the verifier.
fn decide(a: &mut Assembler, bits: i32) {
    a.load(Size::Double, R1, R7, law::DECIDED);
    a.alu(Alu::Or, R1, bits);
    a.store(Size::Double, R7, law::DECIDED, R1);
}

/// Passes a record to the log.
fn record(a: &mut Assembler, functions: &Functions) {
    a.mov(R1, R6);
    a.mov(R2, R9);
    a.load(Size::Word, R3, R10, PIPE);
    a.load(Size::Double, R4, R10, DONE);
    a.call_function(functions.record);
}

/// Applies the law in `R7`: goes on at `deliver` or at `gone`.
fn apply(a: &mut Assembler, functions: &Functions, deliver: Label, gone: Label) {
    let (is_up, marks, lost) = (a.label(), a.label(), a.label());
    a.alu(Alu::And, R1, law::DOWN);
    a.jump_if(Cond::Eq, R1, 0, is_up);
    a.store(Size::Double, R10, DONE, outcome::DOWN);
    a.load(Size::Double, R0, R10, COUNTERS);
    count_volume(a, counter::DOWN);
    a.jump(lost);
    a.place(is_up);
    a.store(Size::Double, R10, IS_ECT, 0);
    a.load(Size::Double, R1, R7, law::FLAGS);
    a.alu(Alu::And, R1, law::MARKS);
    a.jump_if(Cond::Eq, R1, 0, marks);
    a.mov(R1, R6);
    a.mov(R2, R9);
    a.call_function(functions.find_ecn);
    a.store(Size::Double, R10, IS_ECT, R0);
    a.place(marks);

    a.mov(R1, R7);
    a.call(helper::SPIN_LOCK);
    a.store(Size::Double, R7, law::DECIDED, 0);
    draw_all(a);
    a.load(Size::Double, R1, R7, law::DECIDED);
    a.store(Size::Double, R10, DONE, R1);
    a.mov(R1, R7);
    a.call(helper::SPIN_UNLOCK);

    a.load(Size::Double, R0, R10, COUNTERS);
    count_whole(a);
    a.load(Size::Double, R8, R10, DONE);
    let unmarked = a.label();
    a.mov(R3, R8);
    a.alu(Alu::And, R3, outcome::MARKED);
    a.jump_if(Cond::Eq, R3, 0, unmarked);
    count(a, state::FRAMES, counter::MARKED);
    a.place(unmarked);
    let kept = a.label();
    a.mov(R3, R8);
    a.alu(Alu::And, R3, outcome::LOST);
    a.jump_if(Cond::Eq, R3, 0, kept);
    count_volume(a, counter::LOST);
    a.place(lost);
    record_if(a, functions);
    a.jump(gone);
    a.place(kept);
    alter(a, functions);
    a.jump(deliver);
}

/// In a program without a log nothing is called.
fn record_if(a: &mut Assembler, functions: &Functions) {
    if functions.has_log {
        record(a, functions);
    }
}

/// Counts a super-packet, which the law takes as one frame. `R0` has the counters.
fn count_whole(a: &mut Assembler) {
    let single = a.label();
    a.load(Size::Double, R1, R9, state::FRAMES);
    a.jump_if(Cond::Le, R1, 1, single);
    a.load(Size::Double, R2, R0, counter::WHOLE);
    a.alu(Alu::Add, R2, 1);
    a.store(Size::Double, R0, counter::WHOLE, R2);
    a.place(single);
}

/// Makes the draws of a frame, in the order of the pipe, with the lock held.
fn draw_all(a: &mut Assembler) {
    let (hit, lost, survived, done) = (a.label(), a.label(), a.label(), a.label());
    let if_set = |a: &mut Assembler, flag: i32, draw: &dyn Fn(&mut Assembler)| {
        let not_set = a.label();
        a.load(Size::Double, R1, R7, law::FLAGS);
        a.alu(Alu::And, R1, flag);
        a.jump_if(Cond::Eq, R1, 0, not_set);
        draw(a);
        a.place(not_set);
    };
    if_set(a, law::LOSS_CHANCE, &|a| draw_chance(a, R7, law::LOSS, hit));
    if_set(a, law::LOSS_CHANNEL, &|a| draw_channel(a, R7, law::LOSS, hit));
    a.jump(survived);
    a.place(hit);
    a.load(Size::Double, R1, R10, IS_ECT);
    a.jump_if(Cond::Eq, R1, 0, lost);
    decide(a, outcome::MARKED);
    a.place(survived);
    let at_exit = a.label();
    if_set(a, law::EGRESS_CHANCE, &|a| draw_chance(a, R7, law::EGRESS, at_exit));
    if_set(a, law::EGRESS_CHANNEL, &|a| draw_channel(a, R7, law::EGRESS, at_exit));
    if_set(a, law::DUPLICATES, &|a| {
        let (copied, once) = (a.label(), a.label());
        draw_chance(a, R7, law::DUPLICATE, copied);
        a.jump(once);
        a.place(copied);
        decide(a, outcome::DUPLICATED);
        a.place(once);
    });
    if_set(a, law::CORRUPTS, &|a| {
        let (flipped, whole) = (a.label(), a.label());
        draw_chance(a, R7, law::CORRUPT, flipped);
        a.jump(whole);
        a.place(flipped);
        decide(a, outcome::CORRUPTED);
        next_u64(a, R7);
        a.store(Size::Double, R10, SEED, R0);
        a.place(whole);
    });
    a.jump(done);
    a.place(at_exit);
    decide(a, outcome::AT_EXIT);
    a.place(lost);
    decide(a, outcome::LOST);
    a.place(done);
}

/// Marks and corrupts the packet as `R8` says, and counts copies and corruption.
fn alter(a: &mut Assembler, functions: &Functions) {
    a.store(Size::Word, R9, state::DONE, R8);
    let if_done = |a: &mut Assembler, bit: i32, act: &dyn Fn(&mut Assembler)| {
        let not_done = a.label();
        a.mov(R1, R8);
        a.alu(Alu::And, R1, bit);
        a.jump_if(Cond::Eq, R1, 0, not_done);
        act(a);
        a.place(not_done);
    };
    if_done(a, outcome::MARKED, &|a| {
        a.mov(R1, R6);
        a.mov(R2, R9);
        a.mov(R3, 1);
        a.call_function(functions.set_ecn);
    });
    if_done(a, outcome::DUPLICATED, &|a| {
        a.load(Size::Double, R0, R10, COUNTERS);
        count_volume(a, counter::DUPLICATED);
    });
    if_done(a, outcome::CORRUPTED, &|a| {
        a.load(Size::Double, R0, R10, COUNTERS);
        count(a, state::FRAMES, counter::CORRUPTED);
        a.mov(R1, R6);
        a.call_function(functions.settle_tag);
        choose_bit(a);
        a.mov(R1, R6);
        a.mov(R2, R9);
        a.call_function(functions.flip_bit);
    });
}

/// Notes in the state the bit that `Corruption::apply` flips: ⌊u·bits / 2⁶⁴⌋ for the first number u
/// of the seed's generator. Lemire's method would draw again for a part of 2⁻⁴⁵ of the numbers.
fn choose_bit(a: &mut Assembler) {
    a.load(Size::Double, R1, R10, SEED);
    // The seed has 32 bits.
    a.alu(Alu::ShiftLeft, R1, 32);
    a.alu(Alu::ShiftRight, R1, 32);
    first_of_seed(a);
    a.load(Size::Word, R1, R6, skb::LEN);
    a.alu(Alu::ShiftLeft, R1, 3);
    a.mov(R2, R0);
    a.alu(Alu::ShiftLeft, R2, 32);
    a.alu(Alu::ShiftRight, R2, 32);
    a.alu(Alu::Mul, R2, R1);
    a.alu(Alu::ShiftRight, R2, 32);
    a.alu(Alu::ShiftRight, R0, 32);
    a.alu(Alu::Mul, R0, R1);
    a.alu(Alu::Add, R0, R2);
    a.alu(Alu::ShiftRight, R0, 32);
    a.mov(R1, R0);
    a.alu(Alu::ShiftRight, R1, 3);
    a.store(Size::Word, R9, state::FLIP_AT, R1);
    a.alu(Alu::And, R0, 7);
    a.mov(R1, 1);
    a.alu(Alu::ShiftLeft, R1, R0);
    a.store(Size::Word, R9, state::FLIP_MASK, R1);
}

/// A function of a packet and the state of its frame: undoes what the pipe passed last did to the
/// bytes.
pub(crate) fn restore(a: &mut Assembler, functions: &Functions) {
    let (uncorrupted, done) = (a.label(), a.label());
    a.mov(R6, R1);
    a.mov(R9, R2);
    a.load(Size::Word, R8, R9, state::DONE);
    a.mov(R1, R8);
    a.alu(Alu::And, R1, outcome::CORRUPTED);
    a.jump_if(Cond::Eq, R1, 0, uncorrupted);
    a.mov(R1, R6);
    a.mov(R2, R9);
    a.call_function(functions.flip_bit);
    a.place(uncorrupted);
    a.mov(R1, R8);
    a.alu(Alu::And, R1, outcome::MARKED);
    a.jump_if(Cond::Eq, R1, 0, done);
    a.mov(R1, R6);
    a.mov(R2, R9);
    a.mov(R3, 0);
    a.call_function(functions.set_ecn);
    a.place(done);
    a.store(Size::Word, R9, state::DONE, 0);
    a.mov(R0, 0);
    a.exit();
}
