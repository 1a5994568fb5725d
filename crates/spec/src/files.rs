//! How the files that a description names are read: by a function of the caller.

/// Returns the text of a file that a description names, or why it cannot be read.
pub type Files<'f> = dyn Fn(&str) -> Result<String, String> + 'f;

/// Reads no file.
pub const NO_FILES: &Files = &|_| Err("no files can be read here".to_owned());
