//! A keeper: a process that does something once its owner has ended, even by `kill -9`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Starts a process that ends with its standard input, a pipe.
pub(crate) fn keeper(command: &mut Command) -> io::Result<Child> {
    // Signals from the terminal go to the process group of the owner.
    let quiet = command.process_group(0).current_dir("/").env_clear();
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into());
    let quiet = quiet.env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::null());
    let program = quiet.get_program().to_string_lossy().into_owned();
    quiet.spawn().map_err(|source| io::Error::new(source.kind(), format!("starting {program}: {source}")))
}
