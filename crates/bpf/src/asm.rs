//! An assembler: operations, labels and functions become the instructions of a program (RFC 9669).
//!
//! Written out here because programs are made when they are needed, for the network at hand, on
//! machines without a compiler. The kernel checks every program, so a mistake here is a refusal.

use fastpath_sys::bpf::{FunctionInfo, Instruction};
use std::os::fd::{AsFd, AsRawFd};

/// A register. A call leaves its result in `R0` and changes `R1` to `R5`, which hold its arguments;
/// the others are kept. `R10` is the end of the stack frame and cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// The width of an access to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// One byte.
    Byte = 0x10,
    /// Two bytes.
    Half = 0x08,
    /// Four bytes.
    Word = 0x00,
    /// Eight bytes.
    Double = 0x18,
}

/// An arithmetic operation on 64 bits, without sign and modulo 2⁶⁴. Shifts take their count modulo
/// 64; a division by zero is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Mod = 0x90,
    Xor = 0xa0,
}

/// A comparison of 64 bits, without sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cond {
    /// Equal.
    Eq = 0x10,
    /// Above.
    Gt = 0x20,
    /// At least.
    Ge = 0x30,
    /// Some bit is set in both.
    Set = 0x40,
    /// Different.
    Ne = 0x50,
    /// Below.
    Lt = 0xa0,
    /// At most.
    Le = 0xb0,
}

/// What an operation works with beside its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A number, whose sign is extended.
    Number(i32),
}

impl From<Reg> for Operand {
    fn from(register: Reg) -> Operand {
        Operand::Reg(register)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Operand {
        Operand::Number(number)
    }
}

/// A place in a program, which may be placed after it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// How a label is used.
#[derive(Clone, Copy, Debug)]
enum LabelUse {
    /// A jump: the distance in the offset.
    Jump,
    /// A call, or the address of a function: the distance in the immediate.
    Function,
}

/// Instructions in the making.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<Draft>,
    /// By label: the number of an instruction.
    places: Vec<Option<usize>>,
    uses: Vec<(usize, Label, LabelUse)>,
    functions: Vec<FunctionInfo>,
}

/// An instruction whose distances are not known yet.
#[derive(Clone, Copy, Debug)]
struct Draft {
    code: u8,
    destination: u8,
    source: u8,
    offset: i16,
    immediate: i32,
}

// RFC 9669 §3: classes and modes.
const CLASS_ALU64: u8 = 0x07;
const CLASS_ALU32: u8 = 0x04;
const CLASS_JUMP: u8 = 0x05;
const CLASS_LOAD: u8 = 0x61;
const CLASS_STORE: u8 = 0x63;
const CLASS_STORE_NUMBER: u8 = 0x62;
const ATOMIC: u8 = 0xc3;
const FROM_REGISTER: u8 = 0x08;
const MOVE: u8 = 0xb0;
const SWAP: u8 = 0xd0;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOAD_DOUBLE: u8 = 0x18;
/// The kinds of what [`LOAD_DOUBLE`] loads, in its source register (RFC 9669 §5.4).
const MAP_DESCRIPTOR: u8 = 1;
const FUNCTION_ADDRESS: u8 = 4;
/// In the source register of a call: a function of the program.
const LOCAL: u8 = 1;
/// In an atomic operation: the register gets the former value.
const FETCH: i32 = 1;

impl Assembler {
    /// No instructions.
    pub fn new() -> Assembler {
        Assembler::default()
    }

    fn push(&mut self, code: u8, destination: Reg, source: u8, offset: i16, immediate: i32) {
        self.code.push(Draft { code, destination: destination as u8, source, offset, immediate });
    }

    /// A label without a place.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Gives a label its place: the next instruction.
    ///
    /// # Panics
    /// It has one.
    pub fn place(&mut self, label: Label) {
        let place = &mut self.places[label.0];
        assert!(place.is_none(), "a label has one place");
        *place = Some(self.code.len());
    }

    /// Begins a function here whose type has this number in the program's descriptions of types.
    pub fn function(&mut self, label: Label, kind: u32) {
        self.functions.push(FunctionInfo { first: self.code.len() as u32, kind });
        self.place(label);
    }

    /// `to = from`
    pub fn mov(&mut self, to: Reg, from: impl Into<Operand>) {
        self.with_operand(CLASS_ALU64 | MOVE, to, from.into(), 0);
    }

    /// `to = number`
    pub fn mov_wide(&mut self, to: Reg, number: u64) {
        match i32::try_from(number) {
            Ok(number) => self.mov(to, number),
            Err(_) => self.load_double(to, 0, [number as u32 as i32, (number >> 32) as u32 as i32]),
        }
    }

    /// `to = to op by`
    pub fn alu(&mut self, op: Alu, to: Reg, by: impl Into<Operand>) {
        self.with_operand(CLASS_ALU64 | op as u8, to, by.into(), 0);
    }

    /// The lower half of `to` becomes itself op `by`; the upper half zero.
    pub fn alu32(&mut self, op: Alu, to: Reg, by: impl Into<Operand>) {
        self.with_operand(CLASS_ALU32 | op as u8, to, by.into(), 0);
    }

    /// Converts the lower `bits` (16, 32 or 64) of a register between the order of the network and
    /// that of the machine, and clears the others.
    pub fn swap_network(&mut self, register: Reg, bits: i32) {
        self.push(CLASS_ALU32 | SWAP | FROM_REGISTER, register, 0, 0, bits);
    }

    /// Rotates a register to the left, by 1 … 63. Changes `scratch`.
    pub fn rotate_left(&mut self, register: Reg, by: i32, scratch: Reg) {
        self.mov(scratch, register);
        self.alu(Alu::ShiftRight, scratch, 64 - by);
        self.alu(Alu::ShiftLeft, register, by);
        self.alu(Alu::Or, register, scratch);
    }

    /// `to = *(from + offset)`
    pub fn load(&mut self, size: Size, to: Reg, from: Reg, offset: i16) {
        self.push(CLASS_LOAD | size as u8, to, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`
    pub fn store(&mut self, size: Size, to: Reg, offset: i16, from: impl Into<Operand>) {
        match from.into() {
            Operand::Reg(from) => self.push(CLASS_STORE | size as u8, to, from as u8, offset, 0),
            Operand::Number(number) => self.push(CLASS_STORE_NUMBER | size as u8, to, 0, offset, number),
        }
    }

    /// `*(to + offset) += by`, of eight bytes, atomically.
    pub fn atomic_add(&mut self, to: Reg, offset: i16, by: Reg) {
        self.push(ATOMIC | Size::Double as u8, to, by as u8, offset, 0);
    }

    /// As [`Assembler::atomic_add`]; `by` becomes the former value.
    pub fn fetch_add(&mut self, to: Reg, offset: i16, by: Reg) {
        self.push(ATOMIC | Size::Double as u8, to, by as u8, offset, FETCH);
    }

    /// `to` = the map.
    pub fn load_map(&mut self, to: Reg, map: &impl AsFd) {
        self.load_double(to, MAP_DESCRIPTOR, [map.as_fd().as_raw_fd(), 0]);
    }

    /// `to` = the address of a function, for a helper that calls it.
    pub fn load_function(&mut self, to: Reg, function: Label) {
        self.uses.push((self.code.len(), function, LabelUse::Function));
        self.load_double(to, FUNCTION_ADDRESS, [0, 0]);
    }

    fn load_double(&mut self, to: Reg, kind: u8, [low, high]: [i32; 2]) {
        self.push(LOAD_DOUBLE, to, kind, 0, low);
        self.push(0, Reg::R0, 0, 0, high);
    }

    /// Goes on at a label.
    pub fn jump(&mut self, to: Label) {
        self.uses.push((self.code.len(), to, LabelUse::Jump));
        self.push(CLASS_JUMP, Reg::R0, 0, 0, 0);
    }

    /// Goes on at a label if `register` compares so.
    pub fn jump_if(&mut self, condition: Cond, register: Reg, with: impl Into<Operand>, to: Label) {
        self.uses.push((self.code.len(), to, LabelUse::Jump));
        self.with_operand(CLASS_JUMP | condition as u8, register, with.into(), 0);
    }

    /// Calls a helper by its number (`enum bpf_func_id` of linux/bpf.h).
    pub fn call(&mut self, helper: i32) {
        self.push(CALL, Reg::R0, 0, 0, helper);
    }

    /// Calls a function of the program.
    pub fn call_function(&mut self, function: Label) {
        self.uses.push((self.code.len(), function, LabelUse::Function));
        self.push(CALL, Reg::R0, LOCAL, 0, 0);
    }

    /// Returns `R0`.
    pub fn exit(&mut self) {
        self.push(EXIT, Reg::R0, 0, 0, 0);
    }

    fn with_operand(&mut self, code: u8, to: Reg, operand: Operand, offset: i16) {
        match operand {
            Operand::Reg(from) => self.push(code | FROM_REGISTER, to, from as u8, offset, 0),
            Operand::Number(number) => self.push(code, to, 0, offset, number),
        }
    }

    /// The number of instructions so far.
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    /// Returns the instructions, and the functions in them.
    ///
    /// # Panics
    /// A label that is used has no place, or a jump is longer than 32767 instructions.
    pub fn finish(mut self) -> (Vec<Instruction>, Vec<FunctionInfo>) {
        for (from, label, use_) in std::mem::take(&mut self.uses) {
            let to = self.places[label.0].expect("every label that is used has a place");
            let distance = to as i64 - from as i64 - 1;
            match use_ {
                LabelUse::Jump => self.code[from].offset = i16::try_from(distance).expect("a short jump"),
                LabelUse::Function => self.code[from].immediate = i32::try_from(distance).expect("in range"),
            }
        }
        let instruction = |parts: Draft| {
            let Draft { code, destination, source, offset, immediate } = parts;
            Instruction::new(code, destination, source, offset, immediate)
        };
        (self.code.into_iter().map(instruction).collect(), self.functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of a few instructions, as clang writes them (`llvm-objdump -d`).
    #[test]
    fn instructions_are_those_of_the_standard() {
        let code = |write: &dyn Fn(&mut Assembler)| {
            let mut a = Assembler::new();
            write(&mut a);
            let (code, _) = a.finish();
            code.into_iter().map(|i| format!("{:02x?}", i.bytes()).replace(", ", " ")).collect::<Vec<_>>()
        };
        use Reg::{R0, R1, R2, R6, R10};
        type Write = &'static dyn Fn(&mut Assembler);
        let table: [(Write, &str); 12] = [
            (&|a| a.mov(R6, R1), "[bf 16 00 00 00 00 00 00]"),
            (&|a| a.mov(R0, 7), "[b7 00 00 00 07 00 00 00]"),
            (&|a| a.load(Size::Word, R2, R1, 4), "[61 12 04 00 00 00 00 00]"),
            (&|a| a.load(Size::Byte, R2, R1, 0), "[71 12 00 00 00 00 00 00]"),
            (&|a| a.store(Size::Double, R10, -8, R6), "[7b 6a f8 ff 00 00 00 00]"),
            (&|a| a.store(Size::Word, R10, -4, 1), "[62 0a fc ff 01 00 00 00]"),
            (&|a| a.alu(Alu::Xor, R0, R1), "[af 10 00 00 00 00 00 00]"),
            (&|a| a.alu32(Alu::And, R0, 15), "[54 00 00 00 0f 00 00 00]"),
            (&|a| a.swap_network(R1, 16), "[dc 01 00 00 10 00 00 00]"),
            (&|a| a.atomic_add(R1, 8, R2), "[db 21 08 00 00 00 00 00]"),
            (&|a| a.call(5), "[85 00 00 00 05 00 00 00]"),
            (&|a| a.exit(), "[95 00 00 00 00 00 00 00]"),
        ];
        for (write, expected) in table {
            assert_eq!(code(write), [expected]);
        }
        let wide = code(&|a| a.mov_wide(R1, 0x0102_0304_0506_0708));
        assert_eq!(wide, ["[18 01 00 00 08 07 06 05]", "[00 00 00 00 04 03 02 01]"]);
        let jumps = code(&|a| {
            let (start, end) = (a.label(), a.label());
            a.place(start);
            a.jump_if(Cond::Eq, R1, 0, end);
            a.jump_if(Cond::Lt, R1, R2, start);
            a.jump(end);
            a.place(end);
            a.exit();
        });
        let expected =
            ["[15 01 02 00 00 00 00 00]", "[ad 21 fe ff 00 00 00 00]", "[05 00 00 00 00 00 00 00]"];
        assert_eq!(jumps[..3], expected);
    }
}
