//! The program of a kernel path: its entry, and its functions put together.

use crate::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use crate::asm::{Alu, Assembler, Cond, Size};
use crate::helpers::{DROP, helper, skb};
use crate::layout::{PortRole, port};
use crate::maps::{Functions, Maps};
use crate::types::Types;
use crate::{bridge, frame, log, pass, path_state as state};
use fastpath_sys::bpf::{Btf, LoadError, LoadedProgram, ProgramKind, ProgramSpec};

/// Loads the program with these maps.
pub(crate) fn load(maps: &Maps) -> Result<LoadedProgram, LoadError> {
    let name = "fastpath_path";
    let mut a = Assembler::new();
    let mut types = Types::new();
    let entry = a.label();
    let functions = Functions::new(&mut a, maps.has_log());
    a.function(entry, types.function("entry", 1));
    write_entry(&mut a, maps, &functions);
    a.function(functions.measure, types.function("measure", 2));
    frame::measure(&mut a);
    a.function(functions.pass, types.shared_function("pass", state::SIZE as u32));
    pass::pass(&mut a, maps, &functions);
    if maps.has_laws {
        a.function(functions.restore, types.function("restore", 2));
        pass::restore(&mut a, &functions);
        a.function(functions.find_ecn, types.function("find_ecn", 2));
        frame::find_ecn(&mut a);
        a.function(functions.set_ecn, types.function("set_ecn", 3));
        frame::set_ecn(&mut a);
        a.function(functions.flip_bit, types.function("flip_bit", 2));
        frame::flip_bit(&mut a);
        a.function(functions.settle_tag, types.function("settle_tag", 1));
        frame::settle_tag(&mut a);
    }
    a.function(functions.send, types.function("send", 4));
    bridge::send(&mut a, maps, &functions);
    a.function(functions.transmit, types.function("transmit", 4));
    bridge::transmit(&mut a, maps, &functions);
    a.function(functions.count, types.function("count", 3));
    bridge::count(&mut a, maps);
    a.function(functions.switch, types.function("switch", 3));
    bridge::switch(&mut a, maps, &functions);
    a.function(functions.flood_one, types.function("flood_one", 2));
    bridge::flood_one(&mut a, maps, &functions);
    if functions.has_log {
        a.function(functions.record, types.function("record", 4));
        log::write(&mut a, maps);
    }
    let (instructions, infos) = a.finish();
    let failed = |source| LoadError { name: name.to_owned(), source, log: String::new() };
    let types: Btf = types.load().map_err(failed)?;
    LoadedProgram::load(&ProgramSpec {
        kind: ProgramKind::TcxIngress,
        name,
        instructions: &instructions,
        types: Some((&types, &infos)),
    })
}

/// The entry: what an interface has received. `R7` has the value of the interface, `R8` its role.
fn write_entry(a: &mut Assembler, maps: &Maps, functions: &Functions) {
    const INDEX: i16 = -4;
    let (drop, user, tap, switch) = (a.label(), a.label(), a.label(), a.label());
    a.mov(R6, R1);
    a.load(Size::Word, R1, R6, skb::IFINDEX);
    a.store(Size::Word, R10, INDEX, R1);
    a.load_map(R1, &maps.ports);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(INDEX));
    a.call(helper::MAP_LOOKUP);
    a.jump_if(Cond::Eq, R0, 0, drop);
    a.mov(R7, R0);
    a.load(Size::Word, R8, R7, port::ROLE);
    a.jump_if(Cond::Eq, R8, PortRole::User as i32, user);
    a.jump_if(Cond::Eq, R8, PortRole::Tap as i32, tap);
    a.jump_if(Cond::Eq, R8, 0, drop);

    begin(a, maps, functions, INDEX);
    let inside = a.label();
    a.mov(R0, 1);
    a.load(Size::Word, R2, R7, port::PIPE_IN);
    a.mov_wide(R1, u64::from(port::NO_PIPE));
    a.jump_if(Cond::Eq, R2, R1, inside);
    a.mov(R1, R6);
    a.mov(R3, R9);
    a.call_function(functions.pass);
    a.jump_if(Cond::Eq, R0, 0, drop);
    a.place(inside);
    a.jump_if(Cond::Eq, R8, PortRole::Switch as i32, switch);

    // A wire: to the other end.
    let once = a.label();
    a.jump_if(Cond::Eq, R0, 1, once);
    call_transmit(a, functions, 0);
    a.place(once);
    call_transmit(a, functions, 1);
    a.exit();

    a.place(switch);
    let single = a.label();
    a.jump_if(Cond::Eq, R0, 1, single);
    if functions.has_log {
        a.load(Size::Double, R1, R9, state::MADE);
        a.store(Size::Double, R9, state::BEFORE, R1);
        log::number_copy(a, maps, R9);
    }
    call_switch(a, functions, 0);
    if functions.has_log {
        a.load(Size::Double, R1, R9, state::BEFORE);
        a.store(Size::Double, R9, state::MADE, R1);
    }
    a.place(single);
    call_switch(a, functions, 1);
    a.exit();

    a.place(user);
    a.load(Size::Word, R1, R7, port::ASIDE);
    a.mov(R2, 0);
    a.call(helper::REDIRECT);
    a.exit();
    a.place(tap);
    a.load(Size::Word, R1, R7, port::OUT);
    a.mov(R2, 0);
    a.call(helper::REDIRECT);
    a.exit();
    a.place(drop);
    a.mov(R0, DROP);
    a.exit();
}

/// Makes the state of a frame, at `R9` on the stack: behind two words, with the packet in front of
/// it. The index of the interface is on the stack at `index`.
fn begin(a: &mut Assembler, maps: &Maps, functions: &Functions, index: i16) {
    let at = -8 - state::SIZE;
    a.mov(R9, R10);
    a.alu(Alu::Add, R9, i32::from(at));
    (0..state::SIZE).step_by(8).for_each(|word| a.store(Size::Double, R9, word, 0));
    a.store(Size::Double, R9, state::PACKET, R6);
    let copied = [
        (port::NODE, state::NODE),
        (port::FIRST, state::FIRST),
        (port::COUNT, state::COUNT),
        (port::IS_BLOCKED, state::IS_BLOCKED),
    ];
    for (from, to) in copied {
        a.load(Size::Word, R1, R7, from);
        a.store(Size::Word, R9, to, R1);
    }
    a.load(Size::Word, R1, R10, index);
    a.store(Size::Word, R9, state::FROM, R1);
    if functions.has_log {
        // Keeps R6 to R9; the stack at −8 is free.
        let (known, numbered) = (a.label(), a.label());
        a.load(Size::Word, R2, R7, port::PIPE_IN);
        a.mov_wide(R1, u64::from(port::NO_PIPE));
        a.jump_if(Cond::Eq, R2, R1, known);
        log::number_frame(a, maps, R9);
        a.jump(numbered);
        a.place(known);
        log::known_number(a, R9);
        a.place(numbered);
    }
    a.mov(R1, R6);
    a.mov(R2, R9);
    a.call_function(functions.measure);
}

fn call_switch(a: &mut Assembler, functions: &Functions, is_last: i32) {
    a.mov(R1, R6);
    a.mov(R2, R9);
    a.mov(R3, is_last);
    a.call_function(functions.switch);
}

fn call_transmit(a: &mut Assembler, functions: &Functions, is_last: i32) {
    a.mov(R1, R6);
    a.load(Size::Word, R2, R7, port::OUT);
    a.mov(R3, R9);
    a.mov(R4, is_last);
    a.call_function(functions.transmit);
}
