//! Generated code: making it, calling it, and what it calls. All unsafe code of the crate is below
//! this directory.
//!
//! ```text
//!  Code::new ── parse.rs, find.rs, ops.rs emit with asm.rs ──▶ machine code
//!  Worker::run ──▶ machine code ──▶ callouts.rs (what is rare, in Rust)
//!                      └─ both read and write Context (context.rs)
//! ```
//!
//! What makes it sound, in one place. Generated code reads and writes: the frame, within the length
//! that `parse.rs` has checked; the [`Context`](context::Context) of its worker; rows, cells and
//! structures of the program that the worker holds while it runs the code, at indices that come
//! from those structures themselves. It never keeps a pointer between calls. It does not unwind:
//! callouts abort on panic, as every `extern "C"` function does. Its memory is freed when the last
//! program that has it goes, and a worker holds its program while it runs.

mod asm;
mod callouts;
mod code;
mod context;
mod find;
mod ops;
mod parse;
mod worker;

pub(crate) use code::Code;
pub use code::{CompileError, Finder};
pub use worker::{Fate, Worker};
