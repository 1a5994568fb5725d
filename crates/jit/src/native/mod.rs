//! Generated code: how it is made and called, and the Rust functions it calls. All unsafe code of
//! the crate is below this directory.
//!
//! ```text
//!  compile ── parse.rs, find.rs, ops.rs emit with asm.rs ──▶ machine code
//!  Worker::run ──▶ machine code ──▶ callouts.rs (rare operations, in Rust)
//!                      └─ both read and write Context (context.rs)
//! ```
//!
//! # Soundness
//! Generated code reads and writes:
//! - the frame, within the length that `parse.rs` has checked;
//! - the [`Context`](context::Context) of its worker;
//! - rows, cells and structures of the program that the worker holds while it runs the code, at
//!   indices that come from those structures themselves.
//!
//! Generated code keeps no pointer between calls. It does not unwind: callouts abort on panic, as
//! every `extern "C"` function does. Its memory is freed when the last program that holds it is
//! dropped, and a worker holds its program while it runs.

mod asm;
mod callout_table;
mod callouts;
pub(crate) mod code;
mod context;
mod find;
mod ops;
mod parse;
mod worker;

pub(crate) use code::Code;
pub use code::{CompileError, Finder};
pub use worker::{Fate, Worker};

use crate::base_table::BaseTable;
use fastpath_plan::TablePlan;
use std::sync::Arc;

/// Generates the code of tables with settled plans.
pub(crate) fn compile(tables: &[(TablePlan, Arc<BaseTable>)]) -> Result<Code, CompileError> {
    Code::new(tables, callouts::CALLOUTS)
}

/// Returns the replacement for code where none could be generated: Rust executes every table.
pub(crate) fn without_code() -> Code {
    Code::in_rust(callouts::CALLOUTS)
}
