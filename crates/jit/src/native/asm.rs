//! The instructions that generated code is made of. All values are unsigned and 64 bits wide.

use super::callout_table::Callout;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, InstBuilder, MemFlagsData, SigRef, Signature, StackSlotData, StackSlotKind, Type, Value,
    types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

/// A function under construction.
pub(super) struct Asm<'a> {
    builder: FunctionBuilder<'a>,
    callout: SigRef,
}

/// The signature of callouts.
pub(super) fn callout_signature(convention: CallConv) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(types::I64); 4];
    signature.returns = vec![AbiParam::new(types::I64)];
    signature
}

/// Every address that code accesses is valid; frames are not aligned.
fn good() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl<'a> Asm<'a> {
    /// Begins a function; returns its parameters.
    pub(super) fn begin(mut builder: FunctionBuilder<'a>, convention: CallConv) -> (Asm<'a>, Vec<Value>) {
        let callout = builder.import_signature(callout_signature(convention));
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let params = builder.block_params(entry).to_vec();
        (Asm { builder, callout }, params)
    }

    /// Ends the function.
    pub(super) fn end(mut self, config: cranelift_codegen::isa::TargetFrontendConfig) {
        self.builder.seal_all_blocks();
        self.builder.finalize(config);
    }

    pub(super) fn block(&mut self) -> Block {
        self.builder.create_block()
    }

    /// Creates a block that is rarely reached; it is laid out after the others.
    pub(super) fn cold_block(&mut self) -> Block {
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        block
    }

    pub(super) fn at(&mut self, block: Block) {
        self.builder.switch_to_block(block);
    }

    pub(super) fn jump(&mut self, block: Block) {
        self.builder.ins().jump(block, &[]);
    }

    /// Branches to `yes` if the value is not 0, else to `no`.
    pub(super) fn branch(&mut self, condition: Value, yes: Block, no: Block) {
        self.builder.ins().brif(condition, yes, &[], no, &[]);
    }

    /// Branches to `block` if the value is not 0; else continues.
    pub(super) fn leave_if(&mut self, condition: Value, block: Block) {
        let on = self.block();
        self.branch(condition, block, on);
        self.at(on);
    }

    /// Branches to `block` if the value is 0; else continues.
    pub(super) fn leave_unless(&mut self, condition: Value, block: Block) {
        let on = self.block();
        self.branch(condition, on, block);
        self.at(on);
    }

    pub(super) fn ret(&mut self, value: Value) {
        self.builder.ins().return_(&[value]);
    }

    pub(super) fn ret_number(&mut self, number: u64) {
        let value = self.number(number);
        self.ret(value);
    }

    pub(super) fn variable(&mut self, initial: u64) -> Variable {
        let variable = self.builder.declare_var(types::I64);
        let value = self.number(initial);
        self.builder.def_var(variable, value);
        variable
    }

    pub(super) fn set(&mut self, variable: Variable, value: Value) {
        self.builder.def_var(variable, value);
    }

    pub(super) fn get(&mut self, variable: Variable) -> Value {
        self.builder.use_var(variable)
    }

    pub(super) fn number(&mut self, number: u64) -> Value {
        self.builder.ins().iconst(types::I64, number as i64)
    }

    pub(super) fn load(&mut self, address: Value, offset: i32) -> Value {
        self.builder.ins().load(types::I64, good(), address, offset)
    }

    pub(super) fn load_8(&mut self, address: Value, offset: i32) -> Value {
        self.builder.ins().uload8(types::I64, good(), address, offset)
    }

    pub(super) fn load_32(&mut self, address: Value, offset: i32) -> Value {
        self.builder.ins().uload32(good(), address, offset)
    }

    /// Loads a big-endian number of 16, 32 or 64 bits.
    pub(super) fn load_be(&mut self, wide: Type, address: Value, offset: i32) -> Value {
        let value = self.builder.ins().load(wide, good(), address, offset);
        let value = self.builder.ins().bswap(value);
        if wide == types::I64 { value } else { self.builder.ins().uextend(types::I64, value) }
    }

    pub(super) fn store(&mut self, value: Value, address: Value, offset: i32) {
        self.builder.ins().store(good(), value, address, offset);
    }

    pub(super) fn store_8(&mut self, value: Value, address: Value, offset: i32) {
        self.builder.ins().istore8(good(), value, address, offset);
    }

    /// Stores the low 16 or 32 bits, big-endian.
    pub(super) fn store_be(&mut self, wide: Type, value: Value, address: Value, offset: i32) {
        let value = self.builder.ins().ireduce(wide, value);
        let value = self.builder.ins().bswap(value);
        self.builder.ins().store(good(), value, address, offset);
    }

    /// Adds to a number in memory.
    pub(super) fn bump(&mut self, by: Value, address: Value, offset: i32) {
        let old = self.load(address, offset);
        let new = self.add(old, by);
        self.store(new, address, offset);
    }

    /// Adds 1 to a number in memory.
    pub(super) fn count(&mut self, address: Value, offset: i32) {
        let one = self.number(1);
        self.bump(one, address, offset);
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.builder.ins().iadd(a, b)
    }

    pub(super) fn add_number(&mut self, a: Value, b: u64) -> Value {
        self.builder.ins().iadd_imm_s(a, b as i64)
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.builder.ins().isub(a, b)
    }

    pub(super) fn times(&mut self, a: Value, b: u64) -> Value {
        if b.is_power_of_two() {
            self.shl(a, b.trailing_zeros())
        } else {
            self.builder.ins().imul_imm_s(a, b as i64)
        }
    }

    /// Returns the low and the high half of a product.
    pub(super) fn wide_times(&mut self, a: Value, b: Value) -> (Value, Value) {
        (self.builder.ins().imul(a, b), self.builder.ins().umulhi(a, b))
    }

    pub(super) fn and(&mut self, a: Value, b: u64) -> Value {
        if b == u64::MAX {
            return a;
        }
        let b = self.number(b);
        self.builder.ins().band(a, b)
    }

    pub(super) fn and_value(&mut self, a: Value, b: Value) -> Value {
        self.builder.ins().band(a, b)
    }

    pub(super) fn or(&mut self, a: Value, b: Value) -> Value {
        self.builder.ins().bor(a, b)
    }

    pub(super) fn or_number(&mut self, a: Value, b: u64) -> Value {
        let b = self.number(b);
        self.builder.ins().bor(a, b)
    }

    pub(super) fn xor(&mut self, a: Value, b: Value) -> Value {
        self.builder.ins().bxor(a, b)
    }

    pub(super) fn xor_number(&mut self, a: Value, b: u64) -> Value {
        if b == 0 {
            return a;
        }
        let b = self.number(b);
        self.builder.ins().bxor(a, b)
    }

    pub(super) fn not(&mut self, a: Value) -> Value {
        self.builder.ins().bnot(a)
    }

    pub(super) fn shr(&mut self, a: Value, bits: u32) -> Value {
        if bits == 0 { a } else { self.builder.ins().ushr_imm_u(a, i64::from(bits)) }
    }

    pub(super) fn shl(&mut self, a: Value, bits: u32) -> Value {
        if bits == 0 { a } else { self.builder.ins().ishl_imm_u(a, i64::from(bits)) }
    }

    pub(super) fn select(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        self.builder.ins().select(condition, yes, no)
    }

    pub(super) fn is(&mut self, code: IntCC, a: Value, b: Value) -> Value {
        self.builder.ins().icmp(code, a, b)
    }

    pub(super) fn is_number(&mut self, code: IntCC, a: Value, b: u64) -> Value {
        let b = self.number(b);
        self.builder.ins().icmp(code, a, b)
    }

    /// Reserves `words` 64-bit words on the stack, aligned to 8 bytes.
    pub(super) fn stack(&mut self, words: usize) -> Value {
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, words as u32 * 8, 3);
        let slot = self.builder.create_sized_stack_slot(slot);
        self.builder.ins().stack_addr(types::I64, slot, 0)
    }

    /// Calls a Rust function.
    pub(super) fn call(&mut self, callee: Callout, arguments: [Value; 4]) -> Value {
        self.call_at(callee as usize as u64, arguments)
    }

    /// Calls a function of the signature of callouts at an address.
    pub(super) fn call_at(&mut self, address: u64, arguments: [Value; 4]) -> Value {
        let address = self.number(address);
        let call = self.builder.ins().call_indirect(self.callout, address, &arguments);
        self.builder.inst_results(call)[0]
    }
}
