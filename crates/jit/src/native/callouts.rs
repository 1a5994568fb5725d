//! What generated code calls: whatever is rare, long, or has a body in Rust already.
//!
//! Each takes the context of the worker that runs, and up to three numbers. `table` and `found` say
//! at which rule the packet is.

use super::context::{Context, DONE, drop_for};
use super::worker::Worker;
use crate::walk::{self, Step};
use fastpath_switch::edit::{self, Ttl};
use fastpath_switch::interp::DropReason;
use fastpath_switch::plan::{Packed, RuleNumber};
use fastpath_switch::{Action, Field, Key, PipelineFields};
use fastpath_wire::Headers;

/// The packet goes on unchanged.
const GO: u64 = 0;
/// The packet goes on, changed.
pub(super) const CHANGED: u64 = 2;
/// The packet has ended.
pub(super) const STOP: u64 = 1;

/// The worker that the context is part of.
fn worker<'a>(context: *mut Context) -> &'a mut Worker {
    // SAFETY: generated code passes on the pointer that `Worker::run` gave it, which was made from
    // an exclusive borrow of a whole worker, whose first field is the context; while Rust runs,
    // generated code does not.
    unsafe { &mut *context.cast::<Worker>() }
}

fn found(number: u64) -> RuleNumber {
    RuleNumber::from_number(number as u32)
}

/// Reads the whole key of the packet as it is now.
pub(super) extern "C" fn parse(context: *mut Context, _: u64, _: u64, _: u64) -> u64 {
    let worker = worker(context);
    let packet = worker.packet_context();
    let key = {
        let frame = worker.frame();
        Key::extract(frame, &Headers::parse(frame), packet)
    };
    worker.context.words = *key.words();
    GO
}

/// Finds the rule in a table that has changed since its code was made: its number, or all ones.
pub(super) extern "C" fn find(context: *mut Context, table: u64, _: u64, _: u64) -> u64 {
    parse(context, 0, 0, 0);
    let worker = worker(context);
    let key = Key::from_words(worker.context.words);
    let program = worker.program();
    let Some(table) = program.tables.get(table as usize) else { return RuleNumber::NONE.number().into() };
    let found = table.plan.find(&key);
    if let Some(cell) = table.cell(worker.id(), found) {
        let (row, cell) = (table.row(found).as_ptr(), std::ptr::from_ref(cell));
        (worker.context.row, worker.context.cell) = (row, cell);
    }
    found.number().into()
}

/// Descends the trees, or whatever a part has, with a packed key: the number of the first rule
/// before `bound`.
pub(super) extern "C" fn find_packed<const N: usize>(
    _: *mut Context,
    packed: u64,
    key: u64,
    bound: u64,
) -> u64 {
    // SAFETY: the code was made with the address of a `Packed<N>` of a plan that the code keeps
    // alive.
    let packed = unsafe { &*std::ptr::with_exposed_provenance::<Packed<N>>(packed as usize) };
    // SAFETY: the code passes the address of `N` words on its stack, all of them written.
    let key = unsafe { &*std::ptr::with_exposed_provenance::<[u64; N]>(key as usize) };
    packed.find_packed(key, bound as u32).into()
}

/// Executes the rule's instructions and the rest of the pipeline.
pub(super) extern "C" fn execute(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    let worker = worker(context);
    let (mut packet, mut set) = (worker.take_packet(), worker.take_set());
    worker.walk(table as u8, found(rule)).rest(&mut packet, &mut set);
    worker.put_packet(packet);
    worker.put_set(set);
    DONE
}

/// Goes on at a table that is not in the code.
pub(super) extern "C" fn resume(context: *mut Context, table: u64, _: u64, _: u64) -> u64 {
    let worker = worker(context);
    let (mut packet, mut set) = (worker.take_packet(), worker.take_set());
    let mut walk = worker.walk(table as u8, RuleNumber::NONE);
    if walk.enter(table as u8, &packet) == Step::Go {
        walk.rest(&mut packet, &mut set);
    }
    worker.put_packet(packet);
    worker.put_set(set);
    DONE
}

/// Everything, where there is no code.
pub(super) extern "C" fn pipeline(context: *mut Context) -> u64 {
    if worker(context).context.len < 14 { drop_for(DropReason::Runt) } else { resume(context, 0, 0, 0) }
}

/// Lets the rule's meter judge the packet.
pub(super) extern "C" fn meter(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    let worker = worker(context);
    let mut packet = worker.take_packet();
    let mut walk = worker.walk(table as u8, found(rule));
    let id = walk.rule().and_then(|rule| rule.instructions.meter);
    let step = walk.meter(&mut packet, id);
    if worker.is_unchanged(&packet) {
        worker.give_back(packet);
        return if step == Step::Stop { STOP } else { GO };
    }
    worker.put_packet(packet);
    if step == Step::Stop { STOP } else { CHANGED }
}

/// Executes any action but outputs and groups.
pub(super) extern "C" fn act(context: *mut Context, table: u64, rule: u64, action: u64) -> u64 {
    let worker = worker(context);
    let tables = &worker.program().tables;
    let action = tables.get(table as usize).and_then(|table| table.action(found(rule), action));
    let Some(action) = action else { return GO };
    let mut packet = worker.take_packet();
    let step = worker.walk(table as u8, found(rule)).act(&mut packet, action);
    worker.put_packet(packet);
    if step == Step::Stop { STOP } else { GO }
}

/// Sends a copy of the packet where the action says.
pub(super) extern "C" fn emit(context: *mut Context, table: u64, rule: u64, action: u64) -> u64 {
    let worker = worker(context);
    let tables = &worker.program().tables;
    let action = tables.get(table as usize).and_then(|table| table.action(found(rule), action));
    if let Some(action) = action {
        worker.emit(table as u8, found(rule), action);
    }
    GO
}

/// Sends a copy of the packet out of a port.
pub(super) extern "C" fn emit_port(context: *mut Context, table: u64, rule: u64, port: u64) -> u64 {
    worker(context).emit(table as u8, found(rule), Action::output(port as u32));
    GO
}

/// Sets a field of a packet that generated code has not parsed.
pub(super) extern "C" fn set_field(context: *mut Context, field: u64, value: u64, _: u64) -> u64 {
    if let Some(field) = Field::from_number(field as u8) {
        edit::set_field(worker(context).frame_mut(), field, value.into());
    }
    GO
}

/// Counts a hop of a packet that generated code has not parsed.
pub(super) extern "C" fn dec_nw_ttl(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    match edit::dec_nw_ttl(worker(context).frame_mut()) {
        Ttl::Alive => GO,
        Ttl::Invalid => invalid_ttl(context, table, rule, 0),
    }
}

/// Ends a packet whose TTL could not be counted down.
pub(super) extern "C" fn invalid_ttl(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    worker(context).invalid_ttl(table as u8, found(rule));
    STOP
}

/// Clears and writes the action set as the rule says.
pub(super) extern "C" fn write(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    let worker = worker(context);
    let mut set = worker.take_set();
    if let Some(rule) = worker.walk(table as u8, found(rule)).rule() {
        walk::write(&mut set, &rule.instructions);
    }
    worker.put_set(set);
    worker.context.dirty = 1;
    GO
}

/// Ends the pipeline at a rule: writes the action set and executes it.
pub(super) extern "C" fn finish(context: *mut Context, table: u64, rule: u64, _: u64) -> u64 {
    write(context, table, rule, 0);
    let worker = worker(context);
    let (mut packet, set) = (worker.take_packet(), worker.take_set());
    worker.walk(table as u8, found(rule)).finish(&mut packet, &set);
    worker.put_packet(packet);
    worker.put_set(set);
    DONE
}

impl Worker {
    /// What the packet brings besides its bytes.
    fn packet_context(&self) -> PipelineFields {
        let Context { in_port, metadata, tunnel, .. } = self.context;
        PipelineFields { in_port: in_port as u32, metadata, tunnel_id: tunnel }
    }
}
