//! Match-action tables as a program of the kernel (eBPF on tcx), with maps.
//!
//! ```text
//!  packet ─▶ key ─▶ tables: which rules? ─┬─▶ what they do, in order ─▶ ports
//!            (parse.rs)  (find.rs, steps.rs) │   (effects.rs)
//!                                         └─▶ user space: as it came, nothing counted
//! ```
//!
//! The rules of all tables are data: rows of operations in a map. Only the search in the tables is
//! made for them. A packet that needs what the kernel has not (an output to controllers, a meter,
//! headers that are not read) goes to user space before anything is counted or changed, so the
//! executor there does all of it. A program and its maps are of one state of the switch. Another
//! state is another program, which replaces this one in one step.
//!
//! Read first: `layout.rs`, `rows.rs`, `steps.rs`.

mod code;
mod effects;
mod find;
mod layout;
mod lookups;
mod maps;
mod parse;
mod rows;
mod running;
mod steps;
mod tables;

pub use layout::ToUser;
pub use running::{KernelSwitch, index_of, set_up_like};
pub use tables::{EmptyProgram, InUser, KernelCounts, KernelPort, KernelTables, Trial, empty_program};

use fastpath_plan::TablePlan;
use fastpath_sys::bpf::LoadError;
use std::io;

/// The most parts of a table that are asked one after the other.
const MASKS_MAX: usize = 512;
/// The most tables.
const TABLES_MAX: usize = 64;
/// The most instructions of a program: jumps over all of it are possible.
const INSTRUCTIONS_MAX: usize = 30_000;

/// Why tables do not run in the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The whole pipeline is in user space.
    #[error("in user space because {0}")]
    InUser(String),
    /// The kernel refuses the program.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A system call failed.
    #[error("bpf: {0}")]
    System(#[from] io::Error),
}

impl KernelError {
    /// Returns whether this process may not use bpf(2).
    pub fn is_refusal(&self) -> bool {
        match self {
            KernelError::InUser(_) => false,
            KernelError::Load(error) => error.is_refusal(),
            KernelError::System(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
}

/// A table of the program.
struct KernelTable {
    id: u8,
    /// The row of its first rule.
    first_row: u32,
    plan: TablePlan,
}
