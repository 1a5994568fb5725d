//! One command, one file.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod replay;
