//! From plans to machine code: one function for the whole pipeline, with a block for each table
//! that packets can reach.
//!
//! ```text
//!  parse ─▶ table 0: count, find ─▶ templates ─goto─▶ table n … ─▶ answer
//!                       └ changed since? call Rust
//! ```

use super::asm::Asm;
use super::callout_table::{Callouts, PipelineFn};
use super::context::{Context, TableView, at, drop_for};
use super::find;
use super::ops::{Emitter, Writes};
use super::parse::{Registers, depth_of};
use crate::base_table::BaseTable;
use crate::cells::{FlowCell, TableCell};
use crate::template::{GENERIC, Op, Template, TemplateEnd};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, Function, Signature, UserFuncName, Value, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use fastpath_plan::RuleNumber;
use fastpath_plan::TablePlan;
use fastpath_switch::field::WORDS;
use fastpath_switch::outcome::DropReason;
use fastpath_switch::{Depth, Key};
use std::collections::BTreeSet;
use std::fmt;
use std::mem::{self, offset_of};
use std::sync::Arc;

/// The most operations and subtables in one function; further tables are executed in Rust.
const SIZE_MAX: usize = 4096;

/// Why no code could be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Cranelift does not support the processor.
    #[error("no machine code for this machine: {0}")]
    Machine(&'static str),
    /// Cranelift refused.
    #[error("code generation failed: {0}")]
    Generation(String),
}

/// The entry point of machine code. It is called with the context of a worker that holds the
/// program of this code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryPoint(PipelineFn);

/// The machine code of a program.
pub(crate) struct Code {
    entry: EntryPoint,
    module: CodeMemory,
    /// Bytes of machine code.
    pub(crate) bytes: usize,
    /// The tables that it includes.
    pub(crate) tables: Vec<u8>,
    /// The depth to which the code parses packets.
    pub(crate) depth: Depth,
    /// The plans that the code points into.
    _plans: Vec<TablePlan>,
}

/// The machine code of one table's lookup, alone.
pub struct Finder {
    entry: extern "C" fn(*const u64) -> u64,
    _module: CodeMemory,
    _plan: TablePlan,
    bytes: usize,
}

/// The memory of machine code; freed on drop.
struct CodeMemory(Option<JITModule>);

impl Drop for CodeMemory {
    fn drop(&mut self) {
        if let Some(module) = self.0.take() {
            // SAFETY: every caller of the code holds the owner of this memory, so nothing runs the
            // code now or later.
            unsafe { module.free_memory() }
        }
    }
}

// SAFETY: after code generation the module is only used to free the memory, by any one thread.
// Machine code does not change, and any thread may run it.
unsafe impl Send for CodeMemory {}
// SAFETY: as above: nothing happens through a shared reference.
unsafe impl Sync for CodeMemory {}

impl EntryPoint {
    /// Runs the code.
    ///
    /// The context is the first field of a [`Worker`](super::Worker). The pointer was derived from
    /// an exclusive borrow of the whole worker, which was prepared for a packet and for the program
    /// of this code.
    #[inline]
    pub(super) unsafe fn call(self, context: *mut Context) -> u64 {
        // SAFETY: the caller's contract.
        unsafe { self.0(context) }
    }
}

impl Code {
    /// Generates the code of tables with settled plans.
    pub(super) fn new(
        tables: &[(TablePlan, Arc<BaseTable>)],
        callouts: Callouts,
    ) -> Result<Code, CompileError> {
        let mut maker = FunctionMaker::new()?;
        let reached = reached(tables);
        let mut depth = Depth::Nothing;
        let mut wanted = [0; WORDS];
        for (id, (plan, base)) in (0..).zip(tables).filter(|(id, _)| reached.contains(id)) {
            let _: u8 = id;
            depth = depth.max(plan.depth());
            wanted.iter_mut().zip(plan.wanted()).for_each(|(all, more)| *all |= more);
            depth = base.templates.list.iter().flat_map(Template::all).map(depth_of).fold(depth, Depth::max);
        }
        let signature = |maker: &FunctionMaker| {
            let mut signature = Signature::new(maker.isa.default_call_conv());
            signature.params.push(AbiParam::new(types::I64));
            signature.returns.push(AbiParam::new(types::I64));
            signature
        };
        let signature = signature(&maker);
        let function = maker.function(signature, |asm, params| {
            let registers = Registers::new(asm, params[0], callouts, wanted, depth);
            Pipeline { tables, reached: &reached, registers }.emit(asm);
        })?;
        let (address, bytes, module) = maker.finish(function)?;
        // SAFETY: the function was made with this signature, in the C calling convention of this
        // machine.
        let entry = EntryPoint(unsafe { mem::transmute::<*const u8, PipelineFn>(address) });
        let plans = tables.iter().map(|(plan, _)| plan.clone()).collect();
        let tables = reached.into_iter().collect();
        Ok(Code { entry, module: CodeMemory(Some(module)), bytes, tables, depth, _plans: plans })
    }

    /// Returns the replacement for code where none could be generated: Rust executes every table.
    pub(super) fn in_rust(callouts: Callouts) -> Code {
        let (bytes, tables, plans) = (0, Vec::new(), Vec::new());
        let entry = EntryPoint(callouts.pipeline);
        Code { entry, module: CodeMemory(None), bytes, tables, depth: Depth::Nothing, _plans: plans }
    }

    pub(crate) fn entry(&self) -> EntryPoint {
        self.entry
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_mapped = self.module.0.is_some();
        f.debug_struct("Code")
            .field("bytes", &self.bytes)
            .field("is_mapped", &is_mapped)
            .finish_non_exhaustive()
    }
}

impl Finder {
    /// Generates the lookup in the base of a table, without its later changes.
    ///
    /// Cranelift does not support the processor, or refuses.
    pub fn new(plan: &TablePlan) -> Result<Finder, CompileError> {
        let mut maker = FunctionMaker::new()?;
        let mut signature = Signature::new(maker.isa.default_call_conv());
        signature.params.push(AbiParam::new(types::I64));
        signature.returns.push(AbiParam::new(types::I64));
        let function = maker.function(signature, |asm, params| {
            let words = std::array::from_fn(|word| {
                if plan.wanted()[word] == 0 { asm.number(0) } else { asm.load(params[0], 8 * word as i32) }
            });
            // The callouts of lookups do not use the context.
            let context = asm.number(0);
            let rule = find::base(asm, context, &words, plan.base());
            asm.ret(rule);
        })?;
        let (address, bytes, module) = maker.finish(function)?;
        // SAFETY: the function was made with this signature, in the C calling convention of this
        // machine.
        let entry = unsafe { mem::transmute::<*const u8, extern "C" fn(*const u64) -> u64>(address) };
        Ok(Finder { entry, _module: CodeMemory(Some(module)), _plan: plan.clone(), bytes })
    }

    /// Returns the rule for a key.
    #[inline]
    pub fn find(&self, key: &Key) -> RuleNumber {
        RuleNumber::from_number((self.entry)(key.words().as_ptr()) as u32)
    }

    /// Bytes of machine code.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns the tables that code is generated for: those that packets can reach from table 0, as far
/// as there is room.
fn reached(tables: &[(TablePlan, Arc<BaseTable>)]) -> BTreeSet<u8> {
    let mut reached = BTreeSet::new();
    let mut open = BTreeSet::from([0]);
    let mut size = 0;
    while let Some(id) = open.pop_first() {
        let Some((plan, base)) = tables.get(usize::from(id)) else { continue };
        let templates = &base.templates.list;
        size += plan.base().subtables().len()
            + templates.iter().map(|template| 1 + template.all().count()).sum::<usize>();
        if size > SIZE_MAX {
            break;
        }
        reached.insert(id);
        open.extend(templates.iter().filter_map(|template| match template.end {
            TemplateEnd::Goto(next) => Some(next),
            _ => None,
        }));
    }
    reached
}

/// The whole pipeline.
struct Pipeline<'t> {
    tables: &'t [(TablePlan, Arc<BaseTable>)],
    reached: &'t BTreeSet<u8>,
    registers: Registers,
}

impl Pipeline<'_> {
    fn emit(&self, asm: &mut Asm<'_>) {
        let context = self.registers.context;
        let runt = asm.cold_block();
        let len = asm.load(context, at::LEN);
        let is_short = asm.is_number(IntCC::UnsignedLessThan, len, 14);
        asm.leave_if(is_short, runt);
        // The blocks of reached tables, in the order of their numbers. Goto leads to later tables
        // only.
        let blocks: Vec<Block> = self.reached.iter().map(|_| asm.block()).collect();
        let block_of = |id: u8| self.reached.iter().position(|other| *other == id).map(|place| blocks[place]);
        match block_of(0) {
            Some(first) => self.registers.parse(asm, first),
            None => self.resume(asm, 0),
        }
        asm.at(runt);
        asm.ret_number(drop_for(DropReason::Runt));
        for id in self.reached {
            if let Some(block) = block_of(*id) {
                asm.at(block);
                self.table(asm, *id, &block_of);
            }
        }
    }

    fn table(&self, asm: &mut Asm<'_>, id: u8, block_of: &impl Fn(u8) -> Option<Block>) {
        let (plan, base) = &self.tables[usize::from(id)];
        let context = self.registers.context;
        let table = asm.number(id.into());
        let table_cells = asm.load(context, at::TABLE_CELLS);
        let lookups = usize::from(id) * size_of::<TableCell>() + offset_of!(TableCell, lookups);
        asm.count(table_cells, lookups as i32);
        let views = asm.load(context, at::TABLES);
        let view = usize::from(id) * size_of::<TableView>();
        let (changed, hit, miss) = (asm.cold_block(), asm.block(), asm.cold_block());
        let [found, row, cell] = std::array::from_fn(|_| asm.variable(0));
        let is_changed = asm.load(views, (view + offset_of!(TableView, changed)) as i32);
        asm.leave_if(is_changed, changed);

        let words = self.registers.words.map(|word| asm.get(word));
        let rule = find::base(asm, context, &words, plan.base());
        let is_none = asm.is_number(IntCC::Equal, rule, find::NONE);
        asm.leave_if(is_none, miss);
        asm.set(found, rule);
        let rows = asm.load(views, (view + offset_of!(TableView, rows)) as i32);
        let offset = asm.times(rule, base.stride as u64 * 8);
        let address = asm.add(rows, offset);
        asm.set(row, address);
        let cells = asm.load(views, (view + offset_of!(TableView, cells)) as i32);
        let offset = asm.times(rule, size_of::<FlowCell>() as u64);
        let address = asm.add(cells, offset);
        asm.set(cell, address);
        asm.jump(hit);

        asm.at(changed);
        let nothing = asm.number(0);
        let rule = asm.call(self.registers.callouts.find, [context, table, nothing, nothing]);
        let is_none = asm.is_number(IntCC::Equal, rule, find::NONE);
        asm.leave_if(is_none, miss);
        asm.set(found, rule);
        let address = asm.load(context, at::ROW);
        asm.set(row, address);
        let address = asm.load(context, at::CELL);
        asm.set(cell, address);
        asm.jump(hit);

        asm.at(miss);
        let misses = usize::from(id) * size_of::<TableCell>() + offset_of!(TableCell, misses);
        asm.count(table_cells, misses as i32);
        asm.ret_number(drop_for(DropReason::TableMiss));

        asm.at(hit);
        let address = asm.get(cell);
        let (now, len) = (asm.load(context, at::NOW), asm.load(context, at::LEN));
        // As in `FlowCell::count`: packets last.
        asm.store(now, address, offset_of!(FlowCell, last_used) as i32);
        asm.bump(len, address, offset_of!(FlowCell, bytes) as i32);
        asm.count(address, offset_of!(FlowCell, packets) as i32);
        let (found, row) = (asm.get(found), asm.get(row));
        self.templates(asm, base, (table, found, row), block_of);
    }

    /// Emits the selection of the rule's template.
    fn templates(
        &self,
        asm: &mut Asm<'_>,
        base: &BaseTable,
        (table, found, row): (Value, Value, Value),
        block_of: &impl Fn(u8) -> Option<Block>,
    ) {
        let writes = self.tables.iter().flat_map(|(_, base)| &base.templates.list);
        let writes = match writes.into_iter().any(|template| template.ops.contains(&Op::Write)) {
            true => Writes::Perhaps,
            false => Writes::Never,
        };
        let number = asm.load(row, 0);
        for (place, template) in base.templates.list.iter().enumerate() {
            let other = asm.block();
            let is_other = asm.is_number(IntCC::NotEqual, number, GENERIC as u64 + 1 + place as u64);
            asm.leave_if(is_other, other);
            let mut emitter = Emitter { registers: &self.registers, table, found, row, operand: 8, writes };
            match template.end {
                TemplateEnd::Goto(next) => match block_of(next) {
                    Some(block) => emitter.template(asm, template, Some(block)),
                    None => {
                        let block = asm.block();
                        emitter.template(asm, template, Some(block));
                        asm.at(block);
                        self.resume(asm, next);
                    }
                },
                _ => emitter.template(asm, template, None),
            }
            asm.at(other);
        }
        // Template 0.
        let nothing = asm.number(0);
        let answer =
            asm.call(self.registers.callouts.execute, [self.registers.context, table, found, nothing]);
        asm.ret(answer);
    }

    /// Emits the continuation in Rust, at a table that is not in the code.
    fn resume(&self, asm: &mut Asm<'_>, table: u8) {
        let (table, nothing) = (asm.number(table.into()), asm.number(0));
        let answer =
            asm.call(self.registers.callouts.resume, [self.registers.context, table, nothing, nothing]);
        asm.ret(answer);
    }
}

/// Generates one function.
struct FunctionMaker {
    isa: OwnedTargetIsa,
    module: JITModule,
}

impl FunctionMaker {
    fn new() -> Result<FunctionMaker, CompileError> {
        let mut flags = settings::builder();
        let mut set = |name: &str, value: &str| {
            flags.set(name, value).map_err(|error| CompileError::Generation(error.to_string()))
        };
        set("opt_level", "speed")?;
        set("is_pic", "false")?;
        set("use_colocated_libcalls", "false")?;
        set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })?;
        set("unwind_info", "false")?;
        let isa = cranelift_native::builder().map_err(CompileError::Machine)?;
        let isa = isa.finish(settings::Flags::new(flags));
        let isa = isa.map_err(|error| CompileError::Generation(error.to_string()))?;
        let module = JITModule::new(JITBuilder::with_isa(Arc::clone(&isa), default_libcall_names()));
        Ok(FunctionMaker { isa, module })
    }

    fn function(
        &mut self,
        signature: Signature,
        emit: impl FnOnce(&mut Asm<'_>, &[Value]),
    ) -> Result<Function, CompileError> {
        let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature);
        let mut context = FunctionBuilderContext::new();
        let builder = FunctionBuilder::new(&mut function, &mut context);
        let (mut asm, params) = Asm::begin(builder, self.isa.default_call_conv());
        emit(&mut asm, &params);
        asm.end(self.isa.frontend_config());
        Ok(function)
    }

    /// Returns the address and size of the machine code, and the memory it is in.
    fn finish(mut self, function: Function) -> Result<(*const u8, usize, JITModule), CompileError> {
        let failed = |error: &dyn fmt::Display| CompileError::Generation(error.to_string());
        let id: FuncId = self
            .module
            .declare_function("program", Linkage::Local, &function.signature)
            .map_err(|error| failed(&error))?;
        let mut context = self.module.make_context();
        context.func = function;
        self.module.define_function(id, &mut context).map_err(|error| failed(&error))?;
        let bytes = context.compiled_code().map_or(0, |code| code.code_buffer().len());
        self.module.finalize_definitions().map_err(|error| failed(&error))?;
        Ok((self.module.get_finalized_function(id), bytes, self.module))
    }
}
