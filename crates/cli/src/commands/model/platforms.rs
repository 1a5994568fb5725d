//! Platforms named on the command line.

use anyhow::{bail, ensure};
use fastpath::records::read_platforms;
use fastpath_model::platform::Platform;
use std::path::Path;

/// Reads one platform: `FILE` with a single one, or `FILE:NAME`.
pub(super) fn one(text: &str) -> anyhow::Result<Platform> {
    let whole = Path::new(text);
    let (path, name) = match text.rsplit_once(':') {
        Some((file, name)) if !whole.exists() => (Path::new(file), Some(name)),
        _ => (whole, None),
    };
    let mut platforms = read_platforms(path)?;
    let names = platforms.iter().map(|p| p.name.clone()).collect::<Vec<_>>().join(", ");
    match name {
        None if platforms.len() > 1 => bail!("{text}: several platforms ({names}): write {text}:NAME"),
        None => {}
        Some(name) => {
            platforms.retain(|p| p.name == name);
            ensure!(!platforms.is_empty(), "{}: no platform `{name}` (have: {names})", path.display());
        }
    }
    Ok(platforms.swap_remove(0))
}
