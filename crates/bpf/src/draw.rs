//! Draws of the frozen generator (`fastpath_units::Rng`, xoshiro256++) and of laws, as instructions.
//! The state is in a value of the map of laws, whose lock the program holds, so there are no calls.

use crate::asm::Reg::{self, R0, R1, R2, R3, R4, R5, R8};
use crate::asm::{Alu, Assembler, Cond, Label, Size};
use crate::layout::{chance, channel, law};

/// `R0` = 64 uniform bits. `of` holds the address of the law. Changes `R1` to `R5`.
pub(crate) fn next_u64(a: &mut Assembler, of: Reg) {
    let state = [R0, R1, R2, R3];
    for (place, word) in (0..).zip(state) {
        a.load(Size::Double, word, of, law::RNG + 8 * place);
    }
    // The result: rotl(s0 + s3, 23) + s0.
    a.mov(R4, R0);
    a.alu(Alu::Add, R4, R3);
    a.rotate_left(R4, 23, R5);
    a.alu(Alu::Add, R4, R0);
    a.mov(R5, R1);
    a.alu(Alu::ShiftLeft, R5, 17);
    a.alu(Alu::Xor, R2, R0);
    a.alu(Alu::Xor, R3, R1);
    a.alu(Alu::Xor, R1, R2);
    a.alu(Alu::Xor, R0, R3);
    a.alu(Alu::Xor, R2, R5);
    a.rotate_left(R3, 45, R5);
    for (place, word) in (0..).zip(state) {
        a.store(Size::Double, of, law::RNG + 8 * place, word);
    }
    a.mov(R0, R4);
}

/// Goes on at `hit` if the chance at `at` of the law hits. Changes `R0` to `R5`.
pub(crate) fn draw_chance(a: &mut Assembler, of: Reg, at: i16, hit: Label) {
    let (is_correlated, miss) = (a.label(), a.label());
    a.load(Size::Double, R1, of, at + chance::WEIGHT);
    a.jump_if(Cond::Ne, R1, 0, is_correlated);
    next_u64(a, of);
    a.alu(Alu::ShiftRight, R0, 11);
    a.load(Size::Double, R1, of, at + chance::BELOW);
    a.jump_if(Cond::Lt, R0, R1, hit);
    a.jump(miss);
    // The mix of the draw and the mix before, in 2⁻³² (`Chance`). No product exceeds 2⁶⁴.
    a.place(is_correlated);
    next_u64(a, of);
    a.alu(Alu::ShiftRight, R0, 32);
    a.load(Size::Double, R1, of, at + chance::WEIGHT);
    a.mov_wide(R2, 1 << 32);
    a.alu(Alu::Sub, R2, R1);
    a.alu(Alu::Mul, R0, R2);
    a.load(Size::Double, R3, of, at + chance::LAST);
    a.alu(Alu::Mul, R3, R1);
    a.alu(Alu::Add, R0, R3);
    a.alu(Alu::ShiftRight, R0, 32);
    a.store(Size::Double, of, at + chance::LAST, R0);
    a.load(Size::Double, R1, of, at + chance::BELOW);
    a.jump_if(Cond::Lt, R0, R1, hit);
    a.place(miss);
}

/// Goes on at `hit` if the channel at `at` of the law loses the packet: a draw for the state of the
/// next packet, then one for this packet. Changes `R0` to `R5` and `R8`.
pub(crate) fn draw_channel(a: &mut Assembler, of: Reg, at: i16, hit: Label) {
    a.load(Size::Double, R8, of, at + channel::STATE);
    for [in_good, in_bad] in
        [[channel::TO_BAD, channel::TO_GOOD], [channel::LOSS_IN_GOOD, channel::LOSS_IN_BAD]]
    {
        let (is_good, compare, miss) = (a.label(), a.label(), a.label());
        next_u64(a, of);
        a.alu(Alu::ShiftRight, R0, 11);
        a.jump_if(Cond::Eq, R8, 0, is_good);
        a.load(Size::Double, R1, of, at + in_bad);
        a.jump(compare);
        a.place(is_good);
        a.load(Size::Double, R1, of, at + in_good);
        a.place(compare);
        if in_good == channel::LOSS_IN_GOOD {
            a.jump_if(Cond::Lt, R0, R1, hit);
        } else {
            a.jump_if(Cond::Ge, R0, R1, miss);
            a.mov(R2, R8);
            a.alu(Alu::Xor, R2, 1);
            a.store(Size::Double, of, at + channel::STATE, R2);
        }
        a.place(miss);
    }
}

/// `R0` = the first 64 bits of a generator whose seed is in `R1` (SplitMix64 fills its state).
/// Changes `R1` to `R5`.
pub(crate) fn first_of_seed(a: &mut Assembler) {
    // rotl(s0 + s3, 23) + s0 needs the first and the fourth word.
    for (register, number) in [(R0, 1u64), (R2, 4)] {
        a.mov(register, R1);
        a.mov_wide(R3, 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(number));
        a.alu(Alu::Add, register, R3);
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9u64), (27, 0x94d0_49bb_1331_11eb)] {
            a.mov(R3, register);
            a.alu(Alu::ShiftRight, R3, shift);
            a.alu(Alu::Xor, register, R3);
            a.mov_wide(R3, factor);
            a.alu(Alu::Mul, register, R3);
        }
        a.mov(R3, register);
        a.alu(Alu::ShiftRight, R3, 31);
        a.alu(Alu::Xor, register, R3);
    }
    a.alu(Alu::Add, R2, R0);
    a.rotate_left(R2, 23, R3);
    a.alu(Alu::Add, R0, R2);
}
