//! What programs read of a frame and change in it: its length, its ECN field, a bit.

use crate::asm::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use crate::asm::{Alu, Assembler, Cond, Label, Size};
use crate::helpers::{helper, skb};
use crate::path_state as state;

/// EtherTypes of tags, as the readers of frames know them (`fastpath_wire::Headers`).
const TAGS: [i32; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// The most tags read.
const TAGS_MAX: usize = 8;
const IPV4: i32 = 0x0800;
const IPV6: i32 = 0x86dd;
/// IP protocol numbers.
const TCP: i32 = 6;
const UDP: i32 = 17;
/// The ECN bits of the first two bytes of an IP header, in the order of the network.
const CE_IPV4: i32 = 0x0003;
const CE_IPV6: i32 = 0x0030;

/// Loads `len` bytes of the packet in `R6` at the offset in register `R8` plus `plus` to the stack
/// at `to`, or goes on at `fail`. Changes `R0` to `R5`.
fn load_at(a: &mut Assembler, plus: i32, to: i16, len: i32, fail: Label) {
    a.mov(R1, R6);
    a.mov(R2, R8);
    a.alu(Alu::Add, R2, plus);
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(to));
    a.mov(R4, len);
    a.call(helper::LOAD_BYTES);
    a.jump_if(Cond::Ne, R0, 0, fail);
}

/// Finds the network header of the packet in `R6`: `R8` = its offset, `R7` = the EtherType. Uses
/// four bytes of the stack at −4. Changes `R0` to `R5`.
fn find_network(a: &mut Assembler, fail: Label) {
    let done = a.label();
    a.mov(R8, 12);
    load_at(a, 0, -4, 2, fail);
    a.mov(R8, 14);
    for _ in 0..TAGS_MAX {
        let is_tag = a.label();
        a.load(Size::Half, R7, R10, -4);
        a.swap_network(R7, 16);
        TAGS.iter().for_each(|tag| a.jump_if(Cond::Eq, R7, *tag, is_tag));
        a.jump(done);
        a.place(is_tag);
        load_at(a, 2, -4, 2, fail);
        a.alu(Alu::Add, R8, 4);
    }
    a.load(Size::Half, R7, R10, -4);
    a.swap_network(R7, 16);
    a.place(done);
}

/// A function of a packet: notes in the state of the frame (second argument) where its IP header
/// is, if the packet is ECN-capable, and returns a number above 0; else 0.
pub(crate) fn find_ecn(a: &mut Assembler) {
    let (no, v4, v6, found) = (a.label(), a.label(), a.label(), a.label());
    a.mov(R6, R1);
    a.mov(R9, R2);
    find_network(a, no);
    a.jump_if(Cond::Eq, R7, IPV4, v4);
    a.jump_if(Cond::Eq, R7, IPV6, v6);
    a.jump(no);

    // A header that readers of frames accept (`fastpath_wire::headers`).
    a.place(v4);
    left_behind(a, R7, 20, no);
    load_at(a, 0, -4, 4, no);
    a.load(Size::Byte, R1, R10, -4);
    a.mov(R2, R1);
    a.alu(Alu::ShiftRight, R2, 4);
    a.jump_if(Cond::Ne, R2, 4, no);
    a.alu(Alu::And, R1, 15);
    a.alu(Alu::ShiftLeft, R1, 2);
    a.jump_if(Cond::Lt, R1, 20, no);
    a.jump_if(Cond::Gt, R1, R7, no);
    a.load(Size::Half, R2, R10, -2);
    a.swap_network(R2, 16);
    a.jump_if(Cond::Lt, R2, R1, no);
    a.jump_if(Cond::Gt, R2, R7, no);
    a.mov(R4, CE_IPV4);
    a.jump(found);

    a.place(v6);
    left_behind(a, R7, 40, no);
    load_at(a, 4, -4, 2, no);
    a.load(Size::Half, R2, R10, -4);
    a.swap_network(R2, 16);
    a.alu(Alu::Add, R2, 40);
    a.jump_if(Cond::Gt, R2, R7, no);
    load_at(a, 0, -4, 4, no);
    a.load(Size::Byte, R1, R10, -4);
    a.alu(Alu::ShiftRight, R1, 4);
    a.jump_if(Cond::Ne, R1, 6, no);
    a.mov(R4, CE_IPV6);

    a.place(found);
    a.load(Size::Half, R1, R10, -4);
    a.store(Size::Word, R9, state::ECN_OLD, R1);
    a.swap_network(R1, 16);
    a.mov(R2, R1);
    a.alu(Alu::And, R2, R4);
    a.jump_if(Cond::Eq, R2, 0, no);
    a.alu(Alu::Or, R1, R4);
    a.swap_network(R1, 16);
    a.store(Size::Word, R9, state::ECN_NEW, R1);
    a.store(Size::Word, R9, state::ECN_AT, R8);
    a.store(Size::Word, R9, state::ECN_KIND, R4);
    a.mov(R0, R2);
    a.exit();
    a.place(no);
    a.mov(R0, 0);
    a.exit();
}

/// `left` = the bytes of the packet behind the offset in `R8`, or goes on at `fail` if they are
/// fewer than `least`.
fn left_behind(a: &mut Assembler, left: crate::asm::Reg, least: i32, fail: Label) {
    a.load(Size::Word, left, R6, skb::LEN);
    a.jump_if(Cond::Lt, left, R8, fail);
    a.alu(Alu::Sub, left, R8);
    a.jump_if(Cond::Lt, left, least, fail);
}

/// A function of a packet and its state: sets the ECN field that [`find_ecn`] has noted to `new`
/// (third argument 1) or back.
pub(crate) fn set_ecn(a: &mut Assembler) {
    let (back, write, done) = (a.label(), a.label(), a.label());
    a.mov(R6, R1);
    a.mov(R9, R2);
    // R7: what it becomes, R8: what it was.
    a.jump_if(Cond::Eq, R3, 0, back);
    a.load(Size::Word, R7, R9, state::ECN_NEW);
    a.load(Size::Word, R8, R9, state::ECN_OLD);
    a.jump(write);
    a.place(back);
    a.load(Size::Word, R7, R9, state::ECN_OLD);
    a.load(Size::Word, R8, R9, state::ECN_NEW);
    a.place(write);
    a.store(Size::Half, R10, -2, R7);
    store_bytes(a, state::ECN_AT, -2, 2);
    a.load(Size::Word, R1, R9, state::ECN_KIND);
    a.jump_if(Cond::Ne, R1, CE_IPV4, done);
    a.mov(R1, R6);
    a.load(Size::Word, R2, R9, state::ECN_AT);
    a.alu(Alu::Add, R2, 10);
    a.mov(R3, R8);
    a.mov(R4, R7);
    a.mov(R5, 2);
    a.call(helper::L3_CSUM_REPLACE);
    a.place(done);
    a.mov(R0, 0);
    a.exit();
}

/// Stores `len` bytes of the stack at `from` to the packet in `R6`, at the offset that the state in
/// `R9` has at `at`.
fn store_bytes(a: &mut Assembler, at: i16, from: i16, len: i32) {
    a.mov(R1, R6);
    a.load(Size::Word, R2, R9, at);
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(from));
    a.mov(R4, len);
    a.mov(R5, 0);
    a.call(helper::STORE_BYTES);
}

/// A function of a packet and its state: flips the bit that the state names.
pub(crate) fn flip_bit(a: &mut Assembler) {
    let done = a.label();
    a.mov(R6, R1);
    a.mov(R9, R2);
    a.load(Size::Word, R8, R9, state::FLIP_AT);
    load_at(a, 0, -1, 1, done);
    a.load(Size::Byte, R1, R10, -1);
    a.load(Size::Word, R2, R9, state::FLIP_MASK);
    a.alu(Alu::Xor, R1, R2);
    a.store(Size::Byte, R10, -1, R1);
    store_bytes(a, state::FLIP_AT, -1, 1);
    a.place(done);
    a.mov(R0, 0);
    a.exit();
}

/// A function of a packet: puts a tag that is beside its bytes into them.
pub(crate) fn settle_tag(a: &mut Assembler) {
    let done = a.label();
    a.mov(R6, R1);
    a.load(Size::Word, R1, R6, skb::VLAN_PRESENT);
    a.jump_if(Cond::Eq, R1, 0, done);
    // A second tag pushes the first one into the bytes, and is taken off again.
    a.mov(R1, R6);
    a.mov(R2, TAGS[0]);
    a.swap_network(R2, 16);
    a.mov(R3, 1);
    a.call(helper::VLAN_PUSH);
    a.mov(R1, R6);
    a.call(helper::VLAN_POP);
    a.place(done);
    a.mov(R0, 0);
    a.exit();
}

/// A function of a packet and its state: notes the frames that it counts for, and their bytes. A
/// super-packet counts as its segments, each with the headers.
pub(crate) fn measure(a: &mut Assembler) {
    let [single, known, counted, untagged] = [(); 4].map(|()| a.label());
    a.mov(R6, R1);
    a.mov(R9, R2);
    a.load(Size::Word, R1, R6, skb::GSO_SIZE);
    a.jump_if(Cond::Eq, R1, 0, single);
    find_payload(a, single);
    // segments = ⌈payload / size⌉
    a.load(Size::Word, R1, R6, skb::LEN);
    a.jump_if(Cond::Le, R1, R8, single);
    a.mov(R2, R1);
    a.alu(Alu::Sub, R2, R8);
    a.load(Size::Word, R3, R6, skb::GSO_SIZE);
    a.jump_if(Cond::Eq, R3, 0, single);
    a.alu(Alu::Add, R2, R3);
    a.alu(Alu::Sub, R2, 1);
    a.alu(Alu::Div, R2, R3);
    // In a tunnel the headers are longer than those found, and the sender's number is right. A
    // sender that is a program gives none.
    a.load(Size::Word, R3, R6, skb::GSO_SEGS);
    a.jump_if(Cond::Eq, R3, 0, known);
    a.mov(R2, R3);
    a.place(known);
    a.mov(R3, R2);
    a.alu(Alu::Sub, R3, 1);
    a.alu(Alu::Mul, R3, R8);
    a.alu(Alu::Add, R1, R3);
    a.jump(counted);
    a.place(single);
    a.load(Size::Word, R1, R6, skb::LEN);
    a.load(Size::Word, R2, R6, skb::GSO_SEGS);
    a.jump_if(Cond::Ne, R2, 0, counted);
    a.mov(R2, 1);
    a.place(counted);
    // A tag beside the bytes belongs to each frame.
    a.load(Size::Word, R3, R6, skb::VLAN_PRESENT);
    a.jump_if(Cond::Eq, R3, 0, untagged);
    a.mov(R3, R2);
    a.alu(Alu::ShiftLeft, R3, 2);
    a.alu(Alu::Add, R1, R3);
    a.place(untagged);
    a.store(Size::Double, R9, state::FRAMES, R2);
    a.store(Size::Double, R9, state::BYTES, R1);
    a.mov(R0, 0);
    a.exit();
}

/// `R8` = the offset of the payload of TCP or UDP in the packet in `R6`, or goes on at `fail`.
/// Changes `R0` to `R5` and `R7`.
fn find_payload(a: &mut Assembler, fail: Label) {
    let (v4, v6, transport, udp, found) = (a.label(), a.label(), a.label(), a.label(), a.label());
    find_network(a, fail);
    a.jump_if(Cond::Eq, R7, IPV4, v4);
    a.jump_if(Cond::Eq, R7, IPV6, v6);
    a.jump(fail);
    a.place(v4);
    load_at(a, 9, -3, 1, fail);
    load_at(a, 0, -4, 1, fail);
    a.load(Size::Byte, R7, R10, -3);
    a.load(Size::Byte, R1, R10, -4);
    a.alu(Alu::And, R1, 15);
    a.alu(Alu::ShiftLeft, R1, 2);
    a.alu(Alu::Add, R8, R1);
    a.jump(transport);
    a.place(v6);
    load_at(a, 6, -4, 1, fail);
    a.load(Size::Byte, R7, R10, -4);
    a.alu(Alu::Add, R8, 40);
    a.place(transport);
    a.jump_if(Cond::Eq, R7, UDP, udp);
    a.jump_if(Cond::Ne, R7, TCP, fail);
    load_at(a, 12, -4, 1, fail);
    a.load(Size::Byte, R1, R10, -4);
    a.alu(Alu::ShiftRight, R1, 4);
    a.alu(Alu::ShiftLeft, R1, 2);
    a.alu(Alu::Add, R8, R1);
    a.jump(found);
    a.place(udp);
    a.alu(Alu::Add, R8, 8);
    a.place(found);
}
