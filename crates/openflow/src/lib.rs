//! OpenFlow 1.3.5: messages, and the agent between controllers and a switch.
//!
//! Read first: `message/mod.rs` (pure), then `agent/mod.rs` (Linux, as the data path).
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod agent;
pub mod message;
