//! The Rust functions that generated code calls: operations that are rare, long, or implemented in
//! Rust already. Their signatures and answers are documented in `callout_table.rs`.
//!
//! Read first: `callout_table.rs`.

use super::callout_table::{CHANGED, Callouts, GO, STOP};
use super::context::{Context, DONE, drop_for};
use super::worker::Worker;
use crate::walk;
use fastpath_plan::RuleNumber;
use fastpath_switch::edit::{self, Ttl};
use fastpath_switch::execute::perform;
use fastpath_switch::outcome::DropReason;
use fastpath_switch::{Action, Field};
use fastpath_wire::Headers;
use std::ops::ControlFlow;

/// All callouts.
pub(super) const CALLOUTS: Callouts = Callouts {
    parse,
    find,
    execute,
    resume,
    meter,
    act,
    emit,
    emit_port,
    set_field,
    dec_nw_ttl,
    invalid_ttl,
    write,
    finish,
    pipeline,
};

/// Returns the worker that a context is part of.
///
/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe fn worker<'a>(context: *mut Context) -> &'a mut Worker {
    // SAFETY: the pointer was derived from an exclusive borrow of a whole worker, whose first field
    // is the context (`repr(C)`); nothing else uses the worker during the call.
    unsafe { &mut *context.cast::<Worker>() }
}

fn rule_number(number: u64) -> RuleNumber {
    RuleNumber::from_number(number as u32)
}

fn go_or_stop(step: ControlFlow<()>) -> u64 {
    if step.is_break() { STOP } else { GO }
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn parse(context: *mut Context, _: u64, _: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { worker(context) }.parse();
    GO
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn find(context: *mut Context, table: u64, _: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    worker.parse();
    let program = worker.program();
    let Some(table) = program.tables.get(table as usize) else { return RuleNumber::NONE.number().into() };
    let rule = table.plan.find(&worker.context.key);
    if let Some(cell) = table.cell(worker.id(), rule) {
        let (row, cell) = (table.row(rule).as_ptr(), std::ptr::from_ref(cell));
        (worker.context.row, worker.context.cell) = (row, cell);
    }
    rule.number().into()
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn execute(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    let mut packet = worker.take_packet();
    worker.with_set(table as u8, rule_number(rule), |walk| walk.rest(&mut packet));
    worker.put_packet(packet);
    DONE
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn resume(context: *mut Context, table: u64, _: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { worker(context) }.resume(table as u8)
}

/// # Safety
/// As for [`PipelineFn`](super::callout_table::PipelineFn).
unsafe extern "C" fn pipeline(context: *mut Context) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    if worker.context.len < 14 { drop_for(DropReason::Runt) } else { worker.resume(0) }
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn meter(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    let mut packet = worker.take_packet();
    let mut walk = worker.walk(table as u8, rule_number(rule));
    let id = walk.rule().and_then(|rule| rule.instructions.meter);
    let step = walk.meter(&mut packet, id);
    if worker.is_unchanged(&packet) {
        worker.give_back(packet);
        return go_or_stop(step);
    }
    worker.put_packet(packet);
    if step.is_break() { STOP } else { CHANGED }
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn act(context: *mut Context, table: u64, rule: u64, action: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    let Some(action) = worker.action(table, action) else { return GO };
    let mut packet = worker.take_packet();
    let step = perform(&action, &mut packet, &mut worker.walk(table as u8, rule_number(rule)));
    worker.put_packet(packet);
    go_or_stop(step)
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn emit(context: *mut Context, table: u64, rule: u64, action: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    if let Some(action) = worker.action(table, action) {
        worker.emit(table as u8, rule_number(rule), action);
    }
    GO
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn emit_port(context: *mut Context, table: u64, rule: u64, port: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    worker.emit(table as u8, rule_number(rule), Action::output(port as u32));
    GO
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn set_field(context: *mut Context, field: u64, value: u64, _: u64) -> u64 {
    if let Some(field) = Field::from_number(field as u8) {
        // SAFETY: the caller's contract.
        edit::set_field(unsafe { worker(context) }.frame_mut(), field, value.into());
    }
    GO
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn dec_nw_ttl(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    match edit::dec_nw_ttl(worker.frame_mut()) {
        Ttl::Alive => GO,
        Ttl::Invalid => {
            worker.invalid_ttl(table as u8, rule_number(rule));
            STOP
        }
    }
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn invalid_ttl(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { worker(context) }.invalid_ttl(table as u8, rule_number(rule));
    STOP
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn write(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { worker(context) }.write_set(table as u8, rule_number(rule));
    GO
}

/// # Safety
/// As for [`Callout`](super::callout_table::Callout).
unsafe extern "C" fn finish(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    // SAFETY: the caller's contract.
    let worker = unsafe { worker(context) };
    let rule = rule_number(rule);
    worker.write_set(table as u8, rule);
    let mut packet = worker.take_packet();
    worker.with_set(table as u8, rule, |walk| walk.finish(&mut packet));
    worker.put_packet(packet);
    DONE
}

impl Worker {
    /// Reads the whole key of the packet as it is now into the context.
    fn parse(&mut self) {
        let Context { in_port, metadata, tunnel, dirty, .. } = self.context;
        let actset_output = if dirty == 0 { None } else { self.set.output() };
        let (frame, key) = self.frame_and_key();
        key.read(frame, &Headers::parse(frame), in_port as u32, (metadata, tunnel), actset_output);
    }

    /// Executes the rest of the pipeline, from a table that has no generated code.
    fn resume(&mut self, table: u8) -> u64 {
        let mut packet = self.take_packet();
        self.with_set(table, RuleNumber::NONE, |walk| {
            if walk.enter(table, &packet).is_continue() {
                walk.rest(&mut packet);
            }
        });
        self.put_packet(packet);
        DONE
    }

    /// Clears and writes the action set as a rule says.
    fn write_set(&mut self, table: u8, rule: RuleNumber) {
        let mut set = self.take_set();
        if let Some(rule) = self.walk(table, rule).rule() {
            walk::write(&mut set, &rule.instructions);
        }
        self.put_set(set);
    }

    /// Returns the action of a number in the rows of a table.
    fn action(&self, table: u64, number: u64) -> Option<Action> {
        self.program().tables.get(table as usize)?.action(number)
    }
}
