//! Templates as generated code: frequent operations are done in code, others are called.

use super::asm::Asm;
use super::callout_table::{CHANGED, Callout, STOP};
use super::context::{DONE, at, drop_for};
use super::parse::{Registers, depth_of};
use crate::cells::PortCell;
use crate::port_table::flags;
use crate::template::{Op, SetBefore, Template, TemplateEnd};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Value, types};
use fastpath_switch::Field;
use fastpath_switch::outcome::{DropReason, OUTCOMES_MAX};
use fastpath_wire::protocol;
use std::mem::offset_of;

/// Emits one template of one table.
pub(super) struct Emitter<'r> {
    pub(super) registers: &'r Registers,
    /// The number of the table, a constant.
    pub(super) table: Value,
    /// The number of the rule.
    pub(super) found: Value,
    /// The row of the rule.
    pub(super) row: Value,
    /// The offset of the next operand in the row.
    pub(super) operand: i32,
    /// Whether any rule of the program writes to the action set and continues.
    pub(super) writes: Writes,
}

/// Whether the action set may hold an action at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writes {
    Never,
    Perhaps,
}

impl Emitter<'_> {
    /// Emits the whole template; `goto` is the block of a later table.
    pub(super) fn template(&mut self, asm: &mut Asm<'_>, template: &Template, goto: Option<Block>) {
        template.ops.iter().for_each(|op| self.op(asm, *op));
        if let Some(block) = goto {
            return self.goto(asm, template, block);
        }
        if self.writes == Writes::Perhaps && template.set == SetBefore::Counts {
            self.end_in_rust_if_written(asm, template);
        }
        template.tail.iter().for_each(|op| self.op(asm, *op));
        match template.end {
            TemplateEnd::Output | TemplateEnd::WrittenOutput => {
                let port = self.next(asm);
                self.output(asm, port);
            }
            TemplateEnd::Nothing | TemplateEnd::Goto(_) => {
                let context = self.registers.context;
                let emitted = asm.load(context, at::EMITTED);
                let dropped = asm.number(drop_for(DropReason::NoOutput));
                let done = asm.number(DONE);
                let answer = asm.select(emitted, done, dropped);
                asm.ret(answer);
            }
        }
    }

    fn goto(&self, asm: &mut Asm<'_>, template: &Template, block: Block) {
        let changes = |op: &Op| match op {
            Op::Meter | Op::Set(_) | Op::DecNwTtl | Op::Act => true,
            Op::Write => self.registers.wants(Field::ActsetOutput),
            Op::Tunnel | Op::Queue | Op::Emit | Op::Metadata => false,
        };
        if template.all().any(changes) {
            let stale = asm.cold_block();
            let hot = asm.get(self.registers.hot);
            asm.leave_unless(hot, stale);
            asm.jump(block);
            asm.at(stale);
            self.registers.parse_in_rust(asm);
        }
        asm.jump(block);
    }

    /// If earlier tables wrote to the action set, Rust ends the pipeline.
    fn end_in_rust_if_written(&self, asm: &mut Asm<'_>, template: &Template) {
        let context = self.registers.context;
        let (written, clean) = (asm.cold_block(), asm.block());
        let dirty = asm.load(context, at::DIRTY);
        asm.branch(dirty, written, clean);
        asm.at(written);
        if template.end == TemplateEnd::Output {
            let port = asm.load(self.row, self.operand);
            self.call(asm, self.registers.callouts.emit_port, port);
        }
        let nothing = asm.number(0);
        let answer = self.call(asm, self.registers.callouts.finish, nothing);
        asm.ret(answer);
        asm.at(clean);
    }

    fn op(&mut self, asm: &mut Asm<'_>, op: Op) {
        let context = self.registers.context;
        match op {
            Op::Meter => {
                let nothing = asm.number(0);
                let answer = self.call(asm, self.registers.callouts.meter, nothing);
                self.stop_if(asm, answer, STOP);
                let is_changed = asm.is_number(IntCC::Equal, answer, CHANGED);
                let (hot, zero) = (asm.get(self.registers.hot), asm.number(0));
                let hot = asm.select(is_changed, zero, hot);
                asm.set(self.registers.hot, hot);
            }
            Op::Set(field) => {
                let value = self.next(asm);
                self.set_field(asm, field, value);
            }
            Op::Tunnel => {
                let value = self.next(asm);
                asm.store(value, context, at::TUNNEL);
                asm.set(self.registers.words[3], value);
            }
            Op::DecNwTtl => self.dec_nw_ttl(asm),
            Op::Queue => {
                let queue = self.next(asm);
                asm.store(queue, context, at::QUEUE);
            }
            Op::Emit => {
                let action = self.next(asm);
                self.call(asm, self.registers.callouts.emit, action);
            }
            Op::Act => {
                let action = self.next(asm);
                let answer = self.call(asm, self.registers.callouts.act, action);
                self.stop_if(asm, answer, STOP);
                let cold = asm.number(0);
                asm.set(self.registers.hot, cold);
            }
            Op::Write => {
                let nothing = asm.number(0);
                self.call(asm, self.registers.callouts.write, nothing);
                // The output of the set is part of the key.
                if self.registers.wants(Field::ActsetOutput) {
                    let cold = asm.number(0);
                    asm.set(self.registers.hot, cold);
                }
            }
            Op::Metadata => {
                let (value, mask) = (self.next(asm), self.next(asm));
                let old = asm.load(context, at::METADATA);
                let keep = asm.not(mask);
                let (kept, new) = (asm.and_value(old, keep), asm.and_value(value, mask));
                let metadata = asm.or(kept, new);
                asm.store(metadata, context, at::METADATA);
                asm.set(self.registers.words[2], metadata);
            }
        }
    }

    fn next(&mut self, asm: &mut Asm<'_>) -> Value {
        self.operand += 8;
        asm.load(self.row, self.operand - 8)
    }

    fn call(&self, asm: &mut Asm<'_>, callee: Callout, operand: Value) -> Value {
        asm.call(callee, [self.registers.context, self.table, self.found, operand])
    }

    /// Ends the packet if the answer is `stop`.
    fn stop_if(&self, asm: &mut Asm<'_>, answer: Value, stop: u64) {
        let (end, on) = (asm.cold_block(), asm.block());
        let is_stop = asm.is_number(IntCC::Equal, answer, stop);
        asm.branch(is_stop, end, on);
        asm.at(end);
        asm.ret_number(DONE);
        asm.at(on);
    }

    /// Emits `in_code` for hot packets and `in_rust` for others.
    fn by_heat(
        &self,
        asm: &mut Asm<'_>,
        op: Op,
        in_code: impl FnOnce(&mut Asm<'_>),
        in_rust: impl FnOnce(&mut Asm<'_>),
    ) {
        let done = asm.block();
        if self.registers.depth >= depth_of(&op) {
            let (hot, cold) = (asm.block(), asm.cold_block());
            let is_hot = asm.get(self.registers.hot);
            asm.branch(is_hot, hot, cold);
            asm.at(hot);
            in_code(asm);
            asm.jump(done);
            asm.at(cold);
        }
        in_rust(asm);
        asm.jump(done);
        asm.at(done);
    }

    /// RFC 1812 §5.3.1, with the checksum updated by the difference.
    fn dec_nw_ttl(&self, asm: &mut Asm<'_>) {
        let registers = self.registers;
        let in_code = |asm: &mut Asm<'_>| {
            let ip = asm.get(registers.ip);
            let ttl = asm.load_8(ip, 8);
            let (invalid, alive) = (asm.cold_block(), asm.block());
            let is_old = asm.is_number(IntCC::UnsignedLessThanOrEqual, ttl, 1);
            asm.branch(is_old, invalid, alive);
            asm.at(invalid);
            let nothing = asm.number(0);
            self.call(asm, self.registers.callouts.invalid_ttl, nothing);
            asm.ret_number(DONE);
            asm.at(alive);
            let less = asm.add_number(ttl, u64::MAX);
            asm.store_8(less, ip, 8);
            // The word of TTL and protocol decreases by 0x0100, so its complement increases by as
            // much.
            let (old, new) = (asm.shl(ttl, 8), asm.shl(less, 8));
            self.patch(asm, ip, 10, &[(old, new)]);
        };
        let in_rust = |asm: &mut Asm<'_>| {
            let nothing = asm.number(0);
            let answer = self.call(asm, self.registers.callouts.dec_nw_ttl, nothing);
            self.stop_if(asm, answer, STOP);
        };
        self.by_heat(asm, Op::DecNwTtl, in_code, in_rust);
    }

    fn set_field(&self, asm: &mut Asm<'_>, field: Field, value: Value) {
        let in_code = |asm: &mut Asm<'_>| match field {
            Field::EthDst | Field::EthSrc => self.set_mac(asm, field, value),
            Field::Ipv4Src | Field::Ipv4Dst => self.set_address(asm, field, value),
            _ => self.set_port(asm, field, value),
        };
        let in_rust = |asm: &mut Asm<'_>| {
            let (number, nothing) = (asm.number(field as u64), asm.number(0));
            asm.call(self.registers.callouts.set_field, [self.registers.context, number, value, nothing]);
        };
        self.by_heat(asm, Op::Set(field), in_code, in_rust);
    }

    /// Also sets the value in the key, which later tables read.
    fn set_key(&self, asm: &mut Asm<'_>, field: Field, value: Value) {
        let info = field.info();
        let (word, shift) = (usize::from(info.word), u32::from(info.shift));
        if self.registers.wanted[word] != 0 {
            let old = asm.get(self.registers.words[word]);
            let kept = asm.and(old, !((field.ones() as u64) << shift));
            let new = asm.shl(value, shift);
            let new = asm.or(kept, new);
            asm.set(self.registers.words[word], new);
        }
    }

    fn set_mac(&self, asm: &mut Asm<'_>, field: Field, value: Value) {
        let frame = asm.get(self.registers.frame);
        let offset = if field == Field::EthDst { 0 } else { 6 };
        let high = asm.shr(value, 16);
        asm.store_be(types::I32, high, frame, offset);
        asm.store_be(types::I16, value, frame, offset + 4);
        self.set_key(asm, field, value);
    }

    fn set_address(&self, asm: &mut Asm<'_>, field: Field, value: Value) {
        let ip = asm.get(self.registers.ip);
        let offset = if field == Field::Ipv4Src { 12 } else { 16 };
        let old = asm.load_be(types::I32, ip, offset);
        // The pseudo-header covers addresses, so the transport checksum changes with them (RFC 793,
        // RFC 768).
        let words = halves(asm, old, value);
        self.patch_transport(asm, ip, &words);
        self.patch(asm, ip, 10, &words);
        asm.store_be(types::I32, value, ip, offset);
        self.set_key(asm, field, value);
    }

    fn set_port(&self, asm: &mut Asm<'_>, field: Field, value: Value) {
        let wanted =
            if matches!(field, Field::TcpSrc | Field::TcpDst) { protocol::TCP } else { protocol::UDP };
        let (fits, done) = (asm.block(), asm.block());
        let number = asm.get(self.registers.protocol);
        let is_wanted = asm.is_number(IntCC::Equal, number, wanted.into());
        asm.branch(is_wanted, fits, done);
        asm.at(fits);
        let ip = asm.get(self.registers.ip);
        let offset = if matches!(field, Field::TcpSrc | Field::UdpSrc) { 20 } else { 22 };
        let old = asm.load_be(types::I16, ip, offset);
        self.patch_transport(asm, ip, &[(old, value)]);
        asm.store_be(types::I16, value, ip, offset);
        self.set_key(asm, field, value);
        asm.jump(done);
        asm.at(done);
    }

    /// Updates the checksum of TCP, or of UDP if it has one.
    fn patch_transport(&self, asm: &mut Asm<'_>, ip: Value, words: &[(Value, Value)]) {
        let (tcp, udp, some, done) = (asm.block(), asm.block(), asm.block(), asm.block());
        let number = asm.get(self.registers.protocol);
        let is_tcp = asm.is_number(IntCC::Equal, number, protocol::TCP.into());
        asm.branch(is_tcp, tcp, udp);
        asm.at(tcp);
        self.patch(asm, ip, 36, words);
        asm.jump(done);
        asm.at(udp);
        // RFC 768: 0 means no checksum, and a sum of 0 is sent as all ones.
        let old = asm.load_be(types::I16, ip, 26);
        asm.branch(old, some, done);
        asm.at(some);
        let sum = self.updated(asm, old, words);
        let other = asm.number(0xffff);
        let sum = asm.select(sum, sum, other);
        asm.store_be(types::I16, sum, ip, 26);
        asm.jump(done);
        asm.at(done);
    }

    /// Updates the checksum at `offset` for words that change.
    fn patch(&self, asm: &mut Asm<'_>, ip: Value, offset: i32, words: &[(Value, Value)]) {
        let old = asm.load_be(types::I16, ip, offset);
        let sum = self.updated(asm, old, words);
        asm.store_be(types::I16, sum, ip, offset);
    }

    /// RFC 1624 eqn. 3: HC' = ~(~HC + ~m + m'), for several words together, which gives the same
    /// result.
    fn updated(&self, asm: &mut Asm<'_>, sum: Value, words: &[(Value, Value)]) -> Value {
        let mut total = asm.xor_number(sum, 0xffff);
        for (old, new) in words {
            let without = asm.xor_number(*old, 0xffff);
            total = asm.add(total, without);
            total = asm.add(total, *new);
        }
        // At most seven words of 16 bits, so two folds are enough.
        for _ in 0..2 {
            let (low, high) = (asm.and(total, 0xffff), asm.shr(total, 16));
            total = asm.add(low, high);
        }
        asm.xor_number(total, 0xffff)
    }

    /// Sends the frame out of an ordinary port, if the port may send.
    fn output(&self, asm: &mut Asm<'_>, port: Value) {
        let context = self.registers.context;
        let (full, back, refused, counted, gone) =
            (asm.cold_block(), asm.cold_block(), asm.cold_block(), asm.cold_block(), asm.cold_block());
        let emitted = asm.load(context, at::EMITTED);
        let is_full = asm.is_number(IntCC::UnsignedGreaterThanOrEqual, emitted, OUTCOMES_MAX as u64);
        asm.leave_if(is_full, full);
        let in_port = asm.load(context, at::IN_PORT);
        let is_back = asm.is(IntCC::Equal, port, in_port);
        asm.leave_if(is_back, back);
        let all = asm.load(context, at::PORT_FLAGS);
        let address = asm.add(all, port);
        let bits = asm.load_8(address, 0);
        let cells = asm.load(context, at::PORT_CELLS);
        let offset = asm.times(port, size_of::<PortCell>() as u64);
        let cell = asm.add(cells, offset);
        let sends = asm.and(bits, flags::SENDS.into());
        asm.leave_unless(sends, refused);
        let len = asm.load(context, at::LEN);
        asm.count(cell, offset_of!(PortCell, tx_packets) as i32);
        asm.bump(len, cell, offset_of!(PortCell, tx_bytes) as i32);
        asm.ret(port);
        asm.at(full);
        self.call(asm, self.registers.callouts.emit_port, port);
        asm.ret_number(DONE);
        asm.at(back);
        asm.ret_number(drop_for(DropReason::NoOtherPort));
        asm.at(refused);
        let exists = asm.and(bits, flags::EXISTS.into());
        asm.branch(exists, counted, gone);
        asm.at(counted);
        asm.count(cell, offset_of!(PortCell, tx_dropped) as i32);
        asm.jump(gone);
        asm.at(gone);
        asm.ret_number(drop_for(DropReason::Egress));
    }
}

/// Returns the 16-bit halves of an old and a new word of 32 bits.
fn halves(asm: &mut Asm<'_>, old: Value, new: Value) -> [(Value, Value); 2] {
    let high = (asm.shr(old, 16), asm.shr(new, 16));
    let low = (asm.and(old, 0xffff), asm.and(new, 0xffff));
    [high, low]
}
