//! Programs and files that several chores use.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target directory of cargo.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

pub(crate) fn cargo(arguments: &[&str]) -> io::Result<()> {
    succeed(Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(arguments))
}

/// Runs a command. A failure is an `Err` that shows the command.
pub(crate) fn succeed(command: &mut Command) -> io::Result<()> {
    let status = command.status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("{command:?}: {status}"))),
        Err(error) => Err(io::Error::new(error.kind(), format!("{command:?}: {error}"))),
    }
}

/// Copies a directory with all that is in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
