//! The memory of code that is no longer run is freed.

use fastpath_jit::Live;
use fastpath_switch::{Action, FlowMod, Instructions, Limits, Match, Port, Switch};
use fastpath_units::Time;

/// Returns the pages of address space of this process.
#[cfg(target_os = "linux")]
fn pages() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    statm.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn two_thousand_programs_leak_no_memory() {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    (1..=2).for_each(|number| switch.set_port(number, Port::up()));
    let add = FlowMod::add(0, 1, Match::any(), Instructions::apply([Action::output(2)]));
    switch.flow_mod(Time::ZERO, &add).expect("room");
    let mut cycle = || {
        let live = Live::new(&mut switch, 1).expect("code for this machine");
        let mut worker = live.worker(0);
        worker.begin(Time::ZERO);
        worker.run(1, &mut [0; 60]);
    };
    (0..100).for_each(|_| cycle());
    let before = pages();
    (0..2000).for_each(|_| cycle());
    // A program has a page of code and more of cells: leaking one page each would be 2000 and more.
    let grown = pages().saturating_sub(before);
    assert!(grown < 1000, "{grown} pages after 2000 programs");
}
