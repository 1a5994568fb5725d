//! A guest: a Linux kernel that runs as an ordinary process (User Mode Linux) on the files of its
//! machine, in virtual time. While programs compute its clock stands still; when all of them sleep
//! it jumps to the next timer. A lab in it runs the same every time, whatever else the machine
//! does, and needs no rights.
//!
//! ```text
//!  build ──▶ Kernel ──▶ Guest::run(Job) ══ process of the kernel ═══════════════════════════╗
//!  (once)                   │             ║ init: an overlay in memory over the machine's   ║
//!                           │             ║   files ─▶ the program of the job ─▶ new files  ║
//!                           ▼             ╚═════════════════════════════════════════════════╝
//!             standard output, exit code, Ended: what was read, how much time has passed
//! ```
//!
//! Read `kernel.rs` (where the kernel is), `build/` (how it gets there), `run.rs` (outside) and
//! `init.rs` (inside). `kernel/` has the configuration and the patch. What the patch does: entropy
//! follows from a seed; neither signals of the machine, nor the command line, nor numbers and times
//! of access of its files reach the guest; the process that started the kernel can see what runs,
//! at which time, and which files were opened.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod build;
mod error;
mod init;
mod job;
mod kernel;
mod recipe;
mod run;
pub mod sums;

pub use build::{Source, build};
pub use error::{BuildError, RunError};
pub use fastpath_sys::thread::has_virtual_time as is_inside;
pub use init::init;
pub use job::{Came, Job, RECORD};
pub use kernel::{Kernel, KernelStatus, home, status};
pub use run::{Ended, Guest, Stuck};
