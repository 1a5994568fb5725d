//! Loads network descriptions for commands, with their warnings on standard error.

use fastpath::{Loaded, at};
use std::path::Path;

/// Loads a description. Prints its warnings to standard error.
pub(crate) fn load_with_warnings(path: &Path) -> anyhow::Result<Loaded> {
    let loaded = fastpath::load(path)?;
    loaded.warnings.iter().for_each(|warning| eprintln!("{}", at(path, warning)));
    Ok(loaded)
}
