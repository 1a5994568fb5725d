//! Platforms from files: a record of `fastpath measure host`, or a table of platforms (CSV).

use super::source::read;
use anyhow::{Context, bail, ensure};
use fastpath_model::platform::{self, Platform};
use fastpath_report::Measurement;
use std::path::Path;

/// Reads all platforms of a file.
pub(in crate::commands) fn load(path: &Path) -> anyhow::Result<Vec<Platform>> {
    let text = read(path)?;
    let place = || path.display().to_string();
    let platforms = if text.trim_start().starts_with('{') {
        let measured = Measurement::parse(&text).with_context(place)?;
        measured.into_iter().filter_map(|measurement| measurement.platform).collect()
    } else {
        platform::from_csv(&text).with_context(place)?
    };
    ensure!(!platforms.is_empty(), "{}: no platform in it: measure with `fastpath measure host`", place());
    Ok(platforms)
}

/// Reads one platform: `FILE` with a single one, or `FILE:NAME`.
pub(super) fn one(text: &str) -> anyhow::Result<Platform> {
    let whole = Path::new(text);
    let (path, name) = match text.rsplit_once(':') {
        Some((file, name)) if !whole.exists() => (Path::new(file), Some(name)),
        _ => (whole, None),
    };
    let mut platforms = load(path)?;
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
