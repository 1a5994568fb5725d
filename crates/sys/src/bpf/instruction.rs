//! One instruction of a BPF program.

/// One instruction (`struct bpf_insn` of linux/bpf.h). The kernel checks a program before it runs,
/// so any value of this type is safe.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    /// The instruction with this operation code, with registers 0 … 10 as destination and source.
    pub const fn new(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
        let little = cfg!(target_endian = "little");
        let registers = if little { source << 4 | destination } else { destination << 4 | source };
        Instruction { code, registers, offset, immediate }
    }

    /// Its bytes in memory.
    pub fn bytes(self) -> [u8; 8] {
        let ([o0, o1], [i0, i1, i2, i3]) = (self.offset.to_ne_bytes(), self.immediate.to_ne_bytes());
        [self.code, self.registers, o0, o1, i0, i1, i2, i3]
    }
}
