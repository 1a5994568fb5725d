//! Links and switches that hold no packet, as BPF programs in the kernel (tcx).
//!
//! Linux only. Read first: `asm.rs`.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

pub mod asm;
pub mod types;
