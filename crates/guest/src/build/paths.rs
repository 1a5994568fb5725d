//! Paths as arguments, and their errors.

use crate::BuildError;
use std::path::Path;

pub(super) fn file(path: &Path, source: std::io::Error) -> BuildError {
    BuildError::File { path: path.to_owned(), source }
}

/// Returns a path as an argument.
pub(super) fn text(path: &Path) -> Result<&str, BuildError> {
    let not_text =
        || std::io::Error::new(std::io::ErrorKind::InvalidInput, "not UTF-8; use another directory");
    path.to_str().ok_or_else(|| file(path, not_text()))
}
