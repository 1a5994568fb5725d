//! One command, one file.

pub(crate) mod completions;
pub(crate) mod man;
