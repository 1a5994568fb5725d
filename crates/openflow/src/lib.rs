//! OpenFlow 1.0, 1.3.5, 1.4 and 1.5: messages, and the agent that connects controllers and a
//! switch.
//!
//! `message` is pure: it converts between bytes and values. `agent` runs on Linux, as the data path
//! does.
//!
//! Read first: `message/mod.rs`, then `agent/mod.rs`.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod agent;
pub mod message;
