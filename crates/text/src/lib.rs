//! Texts of users: keys and values with their places, from TOML and JSON, and mistakes with what to
//! write instead.
//!
//! ```text
//!  TOML ─ document ─┐
//!                   ├─▶ Tree ─▶ Fields: read key by key ─▶ Remarks: every mistake with its place
//!  JSON ─ json ─────┘
//!  values ─ write ─▶ JSON, inline TOML
//! ```
//!
//! It does not know what the keys mean, except for keys of other tools in `hints.rs`. Read first:
//! `mistake.rs`, `tree.rs`, then `fields.rs`.
#![forbid(unsafe_code)]

pub mod document;
pub mod fields;
pub mod hints;
pub mod json;
pub mod link_names;
pub mod mistake;
pub mod mutation;
pub mod name;
pub mod path;
pub mod schema_parts;
pub mod tree;
pub mod write;
