//! Match-action tables as machine code.
//!
//! ```text
//!  Switch ──▶ Live ── plans, rows, code ──▶ Worker::run(port, frame) ──▶ Fate, outcomes
//! ```
//!
//! A [`Live`] switch compiles the tables of a [`Switch`](fastpath_switch::Switch), follows changes
//! of its rules, and collects the counts of its workers. A [`Worker`] runs the code on one thread.
//! Packets are executed exactly as [`interp`](fastpath_switch::interp()) executes them.
//!
//! ```
//! use fastpath_jit::{Fate, Live};
//! use fastpath_switch::{Action, FlowMod, Instructions, Limits, Match, Port, Switch};
//! use fastpath_units::Time;
//!
//! let mut switch = Switch::new(Limits::default());
//! (1..=2).for_each(|number| switch.set_port(number, Port::up()));
//! let rule = FlowMod::add(0, 1, Match::any(), Instructions::apply([Action::output(2)]));
//! switch.flow_mod(Time::ZERO, &rule).expect("the switch accepts the rule");
//!
//! let mut live = Live::new(&mut switch, 1)?; // one worker
//! let mut worker = live.worker(0);
//! worker.begin(Time::ZERO); // a burst
//! assert_eq!(worker.run(1, &mut [0; 60]), Fate::Forward { port: 2, queue: 0 });
//!
//! live.settle(&mut switch); // adds the worker's counts to the switch
//! assert_eq!(switch.tables()[0].hits(), (1, 1));
//! # Ok::<(), fastpath_jit::CompileError>(())
//! ```
//!
//! [`ebpf`] makes a program of the kernel from the same tables, with maps for its rules and counts.
//!
//! The shapes of tables are not here: those are plans (the crate `fastpath-plan`). Ports, threads
//! and clocks are not here either: time is an argument. Read first: `template.rs`, `program.rs`,
//! `native/mod.rs`.

mod base_table;
mod cells;
#[cfg(target_os = "linux")]
pub mod ebpf;
mod executor;
mod live;
mod live_groups;
mod native;
mod port_table;
mod program;
mod serials;
mod shared;
mod table_list;
mod template;
mod walk;

pub use executor::Compiled;
pub use live::{Job, JobResult, Live};
pub use native::{CompileError, Fate, Finder, Worker};
