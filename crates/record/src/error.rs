//! The error of reading and writing records.

use std::io;
use std::path::{Path, PathBuf};

/// Why a record cannot be read or written. The text says what, where, and what to write instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A file or directory is not a record, or is one of another format.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl RecordError {
    /// Makes a [`RecordError::File`] of an error of the operating system.
    pub fn file(path: &Path) -> impl Fn(io::Error) -> RecordError + '_ {
        move |source| RecordError::File { path: path.to_owned(), source }
    }

    /// A [`RecordError::Content`] with this text.
    pub fn content(path: &Path, what: impl Into<String>) -> RecordError {
        RecordError::Content { path: path.to_owned(), what: what.into() }
    }
}
