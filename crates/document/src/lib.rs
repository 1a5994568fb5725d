//! Keys and values of a text with their places, from TOML and JSON.
//!
//! ```text
//!  TOML ─ toml ─┐
//!               ├─▶ Tree ─▶ Fields: read key by key, every mistake with its place
//!  JSON ─ json ─┘
//!  values ─ write ─▶ JSON, inline TOML
//! ```
//!
//! It does not know what the keys mean, except for keys of other tools in `hints.rs`. Read first:
//! `tree.rs`, then `fields.rs`.
#![forbid(unsafe_code)]

pub mod fields;
pub mod hints;
pub mod json;
pub mod tree;
pub mod write;
