//! The programs that a build runs, with their output in one log.

use super::file;
use crate::BuildError;
use nix::sys::statvfs::statvfs;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Lines of the log that an error shows.
const END_LINES: usize = 12;

/// Where a build works, and how it calls programs.
pub(super) struct Steps {
    /// The directory of the build.
    pub(super) room: PathBuf,
    /// The output of the programs.
    pub(super) log: PathBuf,
    /// Directories with programs, before those of the machine.
    pub(super) path: Vec<PathBuf>,
    /// Further variables of the environment.
    pub(super) environment: Vec<(&'static str, OsString)>,
}

impl Steps {
    /// Runs a program in the directory of the build.
    pub(super) fn run(
        &self,
        step: &'static str,
        program: &str,
        arguments: &[&str],
    ) -> Result<(), BuildError> {
        self.run_in(&self.room, step, program, arguments)
    }

    /// Runs a program in a directory.
    pub(super) fn run_in(
        &self,
        directory: &Path,
        step: &'static str,
        program: &str,
        arguments: &[&str],
    ) -> Result<(), BuildError> {
        let log = self.log()?;
        let errors = log.try_clone().map_err(|source| file(&self.log, source))?;
        let mut command = self.command(program);
        command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(log).stderr(errors);
        let said = match command.status() {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let mut log = self.log()?;
        // The log cannot be written: its last lines are shown without this one.
        let _ = writeln!(log, "{program} {}: {said}", arguments.join(" "));
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(END_LINES)..].join("\n");
        Err(BuildError::Step { step, program: program.to_owned(), log: self.log.clone(), end })
    }

    /// Runs a program and returns what it prints; nothing if it fails.
    pub(super) fn output(&self, program: &str, arguments: &[&str]) -> String {
        let output =
            self.command(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let printed = output.ok().filter(|output| output.status.success());
        printed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    /// Whether a program can be started.
    pub(super) fn has(&self, program: &str) -> bool {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let all = self.path.iter().cloned().chain(std::env::split_paths(&directories));
        all.into_iter().any(|directory| directory.join(program).is_file())
    }

    /// Writes a file of the build.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, BuildError> {
        let path = self.room.join(name);
        fs::write(&path, text).map_err(|source| file(&path, source))?;
        Ok(path)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let all = self.path.iter().cloned().chain(std::env::split_paths(&directories));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
        command.env("LC_ALL", "C").envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn log(&self) -> Result<File, BuildError> {
        let opened = OpenOptions::new().create(true).append(true).open(&self.log);
        opened.map_err(|source| file(&self.log, source))
    }
}

/// Returns the free room of a directory's file system, MiB.
pub(super) fn free_mib(directory: &Path) -> Result<u64, BuildError> {
    let system = statvfs(directory).map_err(|source| file(directory, io::Error::from(source)))?;
    Ok(system.blocks_available() * system.fragment_size() / (1 << 20))
}

/// Lets a file be executed.
pub(super) fn make_executable(path: &Path) -> Result<(), BuildError> {
    fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(|source| file(path, source))
}
