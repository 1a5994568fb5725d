//! A directory for the records of a measurement, removed on drop.

use std::io;
use std::path::{Path, PathBuf};

/// A directory that is removed on drop.
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes a directory in that of the system, named by `what` and this process. An error has the
    /// path.
    pub(crate) fn new(what: &str) -> Result<TemporaryDirectory, (String, io::Error)> {
        let path = std::env::temp_dir().join(format!("fastpath-{what}-{}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(TemporaryDirectory(path)),
            Err(source) => Err((path.display().to_string(), source)),
        }
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // What cannot be removed remains in the system's temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
