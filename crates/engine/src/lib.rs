//! The network of `fastpath-net` driven in real time between real ports.
//!
//! Linux only: on other systems the crate is empty, and `fastpath replay` does without it.
#![cfg(target_os = "linux")]

mod clock;
pub mod port;
mod sys;

pub use clock::Clock;
