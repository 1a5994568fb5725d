//! The functions that forward a frame: to one interface, or as a learning switch does
//! (`fastpath_net`'s `Bridge`, IEEE 802.1D-2004 clause 7).

use crate::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use crate::asm::{Alu, Assembler, Cond, Label, Size};
use crate::helpers::{DROP, helper};
use crate::layout::{counter, learned, node, outcome, port, record};
use crate::maps::{AGEING_NS, Functions, LEARNED_MAX, Maps};
use crate::path_state as state;

/// Looks up the word of the stack at `key` in a map: `R0` = the address of its value, or goes on at
/// `absent`.
fn look_up(a: &mut Assembler, map: &fastpath_sys::bpf::Map, key: i16, absent: Label) {
    a.load_map(R1, map);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(key));
    a.call(helper::MAP_LOOKUP);
    a.jump_if(Cond::Eq, R0, 0, absent);
}

/// Arguments: the packet, the index of the interface on which it leaves, the state of its frame,
/// whether the packet is needed no more. Returns the verdict.
pub(crate) fn send(a: &mut Assembler, maps: &Maps, functions: &Functions) {
    const OUT: i16 = -4;
    let (gone, once) = (a.label(), a.label());
    a.mov(R6, R1);
    a.mov(R7, R3);
    a.mov(R8, R4);
    a.store(Size::Word, R10, OUT, R2);
    look_up(a, &maps.ports, OUT, gone);
    a.mov(R9, R0);
    a.mov(R1, R6);
    a.load(Size::Word, R2, R9, port::PIPE_OUT);
    a.mov(R3, R7);
    a.call_function(functions.pass);
    a.jump_if(Cond::Eq, R0, 0, gone);
    a.jump_if(Cond::Eq, R0, 1, once);
    a.mov(R1, R6);
    a.load(Size::Word, R2, R10, OUT);
    a.mov(R3, R7);
    a.mov(R4, 0);
    a.call_function(functions.transmit);
    a.place(once);
    a.mov(R1, R6);
    a.load(Size::Word, R2, R10, OUT);
    a.mov(R3, R7);
    a.mov(R4, R8);
    a.call_function(functions.transmit);
    // A packet that is needed for others is as it was.
    let last = a.label();
    a.jump_if(Cond::Ne, R8, 0, last);
    if maps.has_laws {
        a.mov(R1, R6);
        a.mov(R2, R7);
        a.call_function(functions.restore);
    }
    a.mov(R0, DROP);
    a.place(last);
    a.exit();
    a.place(gone);
    a.mov(R0, DROP);
    a.exit();
}

/// Arguments: as of [`send`]. Hands the packet, or a copy if it is needed further, to an interface,
/// without a pipe. Returns the verdict.
pub(crate) fn transmit(a: &mut Assembler, maps: &Maps, functions: &Functions) {
    const OUT: i16 = -4;
    let (gone, copy, near, is_down, done) = (a.label(), a.label(), a.label(), a.label(), a.label());
    a.mov(R6, R1);
    a.mov(R7, R3);
    a.mov(R8, R4);
    a.store(Size::Word, R10, OUT, R2);
    look_up(a, &maps.ports, OUT, gone);
    a.mov(R9, R0);
    a.load(Size::Word, R1, R9, port::IS_DOWN);
    a.jump_if(Cond::Ne, R1, 0, is_down);
    a.jump_if(Cond::Eq, R8, 0, copy);
    if functions.has_log {
        crate::log::keep_number(a);
    }
    a.load(Size::Word, R1, R9, port::IS_PEER);
    a.jump_if(Cond::Eq, R1, 0, near);
    // What another station gets goes as a copy, whose end is known.
    for_its_station(a, copy);
    a.load(Size::Word, R1, R10, OUT);
    a.mov(R2, 0);
    a.call(helper::REDIRECT_PEER);
    a.exit();
    a.place(near);
    a.load(Size::Word, R1, R10, OUT);
    a.mov(R2, 0);
    a.call(helper::REDIRECT);
    a.exit();
    a.place(copy);
    if functions.has_log {
        crate::log::keep_number(a);
    }
    a.mov(R1, R6);
    a.load(Size::Word, R2, R10, OUT);
    a.mov(R3, 0);
    a.call(helper::CLONE_REDIRECT);
    a.jump_if(Cond::Eq, R0, 0, gone);
    a.mov(R2, i32::from(counter::PORT_REFUSED));
    a.jump(done);
    a.place(is_down);
    a.mov(R2, i32::from(counter::PORT_DOWN));
    a.place(done);
    a.load(Size::Word, R1, R9, port::PIPE_OUT);
    a.mov(R3, R7);
    a.call_function(functions.count);
    a.place(gone);
    a.mov(R0, DROP);
    a.exit();
}

/// Goes on at `other` unless the packet in `R6` is for the station behind the interface whose value
/// is in `R9`. What goes straight to an interface is taken there as addressed to it
/// (`skb_scrub_packet` of the kernel).
fn for_its_station(a: &mut Assembler, other: Label) {
    const DESTINATION: i16 = -16;
    a.mov(R1, R6);
    a.mov(R2, 0);
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(DESTINATION));
    a.mov(R4, 6);
    a.call(helper::LOAD_BYTES);
    a.jump_if(Cond::Ne, R0, 0, other);
    for (size, at) in [(Size::Word, 0), (Size::Half, 4)] {
        a.load(size, R1, R10, DESTINATION + at);
        a.load(size, R2, R9, port::ADDRESS + at);
        a.jump_if(Cond::Ne, R1, R2, other);
    }
}

/// Arguments: the number of a pipe, the offset of a counter, the state of a frame. Counts it.
pub(crate) fn count(a: &mut Assembler, maps: &Maps) {
    const PIPE: i16 = -4;
    let absent = a.label();
    a.mov(R8, R2);
    a.mov(R7, R3);
    a.store(Size::Word, R10, PIPE, R1);
    look_up(a, &maps.counters, PIPE, absent);
    // Within the value, as the verifier wants to see.
    a.alu(Alu::And, R8, 0x78);
    a.alu(Alu::Add, R0, R8);
    for (from, to) in [(state::FRAMES, 0), (state::BYTES, 8)] {
        a.load(Size::Double, R1, R7, from);
        a.load(Size::Double, R2, R0, to);
        a.alu(Alu::Add, R2, R1);
        a.store(Size::Double, R0, to, R2);
    }
    a.place(absent);
    a.mov(R0, 0);
    a.exit();
}

/// The answer of a map that has the key (−EEXIST).
const EEXIST: i32 = -17;

// The stack of the switch: a key of learned addresses, its value, two addresses, a word.
const KEY: i16 = -16;
const VALUE: i16 = -32;
const ADDRESSES: i16 = -48;
const NODE: i16 = -52;

/// Arguments: the packet, the state of its frame, whether the packet is needed no more. Returns the
/// verdict.
pub(crate) fn switch(a: &mut Assembler, maps: &Maps, functions: &Functions) {
    let (malformed, filtered, flood) = (a.label(), a.label(), a.label());
    a.mov(R6, R1);
    a.mov(R7, R2);
    a.mov(R8, R3);
    a.mov(R2, 0);
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(ADDRESSES));
    a.mov(R4, 12);
    a.call(helper::LOAD_BYTES);
    a.jump_if(Cond::Ne, R0, 0, malformed);
    a.load(Size::Word, R1, R7, state::IS_BLOCKED);
    a.jump_if(Cond::Ne, R1, 0, filtered);
    a.store(Size::Half, R10, KEY + 10, 0);
    a.load(Size::Word, R1, R7, state::NODE);
    a.store(Size::Word, R10, KEY, R1);
    a.load(Size::Word, R1, R7, state::FROM);
    a.store(Size::Word, R10, VALUE + learned::PORT, R1);
    a.store(Size::Word, R10, VALUE + learned::PORT + 4, 0);
    a.call(helper::KTIME_COARSE_NS);
    a.store(Size::Double, R10, VALUE + learned::TIME, R0);
    learn(a, maps);

    key_of(a, 0);
    look_up(a, &maps.learned, KEY, flood);
    a.load(Size::Double, R1, R10, VALUE + learned::TIME);
    a.load(Size::Double, R2, R0, learned::TIME);
    let young = a.label();
    // Another CPU may have seen it since.
    a.jump_if(Cond::Ge, R2, R1, young);
    a.alu(Alu::Sub, R1, R2);
    a.mov_wide(R2, AGEING_NS);
    a.jump_if(Cond::Gt, R1, R2, flood);
    a.place(young);
    a.load(Size::Word, R2, R0, learned::PORT);
    a.load(Size::Word, R1, R7, state::FROM);
    a.jump_if(Cond::Eq, R1, R2, filtered);
    a.mov(R1, R6);
    a.mov(R3, R7);
    a.mov(R4, R8);
    a.call_function(functions.send);
    a.exit();

    a.place(flood);
    a.store(Size::Word, R7, state::FLOODED, 0);
    a.load(Size::Word, R1, R7, state::COUNT);
    a.load_function(R2, functions.flood_one);
    a.mov(R3, R7);
    a.mov(R4, 0);
    a.call(helper::LOOP);
    a.load(Size::Word, R1, R7, state::FLOODED);
    a.jump_if(Cond::Eq, R1, 0, filtered);
    a.mov(R0, DROP);
    a.exit();

    discard(a, maps, functions, malformed, (node::MALFORMED, outcome::MALFORMED));
    discard(a, maps, functions, filtered, (node::FILTERED, outcome::FILTERED));
}

/// Puts one of the two addresses (0: destination, 6: source) into the key.
fn key_of(a: &mut Assembler, which: i16) {
    for half in [0, 2, 4] {
        a.load(Size::Half, R1, R10, ADDRESSES + which + half);
        a.store(Size::Half, R10, KEY + 4 + half, R1);
    }
}

/// Learns the source address, unless it is a group's.
fn learn(a: &mut Assembler, maps: &Maps) {
    let (done, unknown, full, current) = (a.label(), a.label(), a.label(), a.label());
    a.load(Size::Byte, R1, R10, ADDRESSES + 6);
    a.alu(Alu::And, R1, 1);
    a.jump_if(Cond::Ne, R1, 0, done);
    key_of(a, 6);
    look_up(a, &maps.learned, KEY, unknown);
    // Written only when it differs: the line is shared by all CPUs.
    a.load(Size::Word, R1, R7, state::FROM);
    a.load(Size::Word, R2, R0, learned::PORT);
    a.jump_if(Cond::Eq, R1, R2, current);
    a.store(Size::Word, R0, learned::PORT, R1);
    a.place(current);
    a.load(Size::Double, R1, R10, VALUE + learned::TIME);
    a.load(Size::Double, R2, R0, learned::TIME);
    a.jump_if(Cond::Eq, R1, R2, done);
    a.store(Size::Double, R0, learned::TIME, R1);
    a.jump(done);

    a.place(unknown);
    a.load(Size::Word, R1, R7, state::NODE);
    a.store(Size::Word, R10, NODE, R1);
    look_up(a, &maps.learned_count, NODE, done);
    a.load(Size::Double, R1, R0, 0);
    a.jump_if(Cond::Ge, R1, LEARNED_MAX, full);
    a.mov(R9, R0);
    a.load_map(R1, &maps.learned);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(KEY));
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(VALUE));
    // BPF_NOEXIST: another CPU may have added it.
    a.mov(R4, 1);
    a.call(helper::MAP_UPDATE);
    a.mov(R1, EEXIST);
    a.jump_if(Cond::Eq, R0, R1, done);
    a.jump_if(Cond::Ne, R0, 0, full);
    a.mov(R1, 1);
    a.atomic_add(R9, 0, R1);
    a.jump(done);
    a.place(full);
    look_up(a, &maps.nodes, NODE, done);
    count_in(a, node::NOT_LEARNED);
    a.place(done);
}

/// Adds the frames of the state in `R7` to a counter of the value in `R0`.
fn count_in(a: &mut Assembler, at: i16) {
    a.load(Size::Double, R1, R7, state::FRAMES);
    a.load(Size::Double, R2, R0, at);
    a.alu(Alu::Add, R2, R1);
    a.store(Size::Double, R0, at, R2);
}

/// Counts and records a frame that the switch drops.
fn discard(a: &mut Assembler, maps: &Maps, functions: &Functions, place: Label, (counter, bits): (i16, i32)) {
    let absent = a.label();
    a.place(place);
    a.load(Size::Word, R1, R7, state::NODE);
    a.store(Size::Word, R10, NODE, R1);
    look_up(a, &maps.nodes, NODE, absent);
    count_in(a, counter);
    a.place(absent);
    if functions.has_log {
        a.mov(R1, R6);
        a.mov(R2, R7);
        a.load(Size::Word, R3, R7, state::NODE);
        a.mov_wide(R4, u64::from(record::IS_NODE));
        a.alu(Alu::Or, R3, R4);
        a.mov(R4, bits);
        a.call_function(functions.record);
    }
    a.mov(R0, DROP);
    a.exit();
}

/// Called for each member of a switch. Arguments: its number, the state of the frame.
pub(crate) fn flood_one(a: &mut Assembler, maps: &Maps, functions: &Functions) {
    const MEMBER: i16 = -4;
    let done = a.label();
    a.mov(R6, R2);
    a.load(Size::Word, R2, R6, state::FIRST);
    a.alu(Alu::Add, R1, R2);
    a.store(Size::Word, R10, MEMBER, R1);
    look_up(a, &maps.members, MEMBER, done);
    a.load(Size::Word, R7, R0, 0);
    a.load(Size::Word, R1, R6, state::FROM);
    a.jump_if(Cond::Eq, R1, R7, done);
    a.load(Size::Word, R1, R6, state::FLOODED);
    if functions.has_log {
        // The first keeps the number of the frame.
        let first = a.label();
        a.jump_if(Cond::Eq, R1, 0, first);
        crate::log::number_copy(a, maps, R6);
        a.place(first);
    }
    // Not a number: the verifier would follow each.
    a.store(Size::Word, R6, state::FLOODED, 1);
    a.load(Size::Double, R1, R6, state::PACKET);
    a.mov(R2, R7);
    a.mov(R3, R6);
    a.mov(R4, 0);
    a.call_function(functions.send);
    a.place(done);
    a.mov(R0, 0);
    a.exit();
}
