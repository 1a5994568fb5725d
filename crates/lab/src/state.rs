//! The files of a running lab, which `exec`, `down` and `list` read: one directory per lab.
//!
//! ```text
//! /run/fastpath/<lab>/        as root, else $XDG_RUNTIME_DIR/fastpath/<lab>/
//!   lock                      held by the process that brought it up: a lab is alive while it is
//!                             locked; the kernel unlocks it however that process ends
//!   state.json                [`State`]
//!   hosts                     /etc/hosts as the programs in the lab see it
//!   control.sock              the engine's control socket
//! ```

use crate::leftovers::{Mark, end_programs};
use crate::variables;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a name: the path of a Unix socket has 107 bytes.
const NAME_MAX: usize = 40;
/// Time for an engine to clean up after SIGTERM, before SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// The published state of a running lab.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The process that holds the namespaces.
    pub(crate) pid: i32,
    /// Whether programs must first join that process's user namespace.
    pub(crate) user_namespace: bool,
    /// The hosts by name.
    pub(crate) hosts: BTreeMap<String, HostState>,
}

/// The published state of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct HostState {
    /// The namespace is `/proc/<pid>/fd/<this>`.
    pub(crate) namespace_fd: i32,
    /// The inode of the namespace, which identifies the programs in it.
    pub(crate) namespace_inode: u64,
    /// Addresses with prefix lengths.
    pub(crate) addresses: Vec<String>,
}

/// The state directory of a lab that this process brings up; removed on drop.
#[derive(Debug)]
pub(crate) struct Claim {
    directory: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

/// Why a lab's name could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Names become file names.
    #[error("lab name {0:?}: use 1 to {NAME_MAX} letters, digits, '-', '_' or '.', not '.' first")]
    BadName(String),
    /// Another process holds the name.
    #[error(
        "lab {name} is up already (process {pid}): `fastpath lab down {name}` ends it, --name gives another"
    )]
    AlreadyUp {
        /// Its name.
        name: String,
        /// The process that holds it.
        pid: i32,
    },
    /// The directory cannot be created.
    #[error("state directory {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Claim {
    /// Claims the name, and removes what a dead lab of that name left.
    pub(crate) fn new(name: &str) -> Result<Claim, ClaimError> {
        check_name(name)?;
        let directory = base().join(name);
        let failed = |source| ClaimError::Directory { path: directory.clone(), source };
        make_directory(&directory).map_err(failed)?;
        let lock = File::create(directory.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = read(&directory).map_or(0, |state| state.pid);
                return Err(ClaimError::AlreadyUp { name: name.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        end_leftovers(&directory);
        Ok(Claim { directory, _lock: lock })
    }

    /// Returns the directory of the lab's files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a file of the directory atomically.
    pub(crate) fn write(&self, file: &str, content: &[u8]) -> io::Result<()> {
        let partial = self.directory.join(format!(".{file}"));
        fs::write(&partial, content)?;
        fs::rename(partial, self.directory.join(file))
    }

    /// Publishes the state.
    pub(crate) fn publish(&self, state: &State) -> io::Result<()> {
        self.write("state.json", &serde_json::to_vec_pretty(state)?)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        end_leftovers(&self.directory);
        // What remains after an error is removed by the next `up` or `down` of the name.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Why `down` failed.
#[derive(Debug, thiserror::Error)]
pub enum DownError {
    /// There is no lab of that name.
    #[error("no lab {name} (up: {})", or_none(.have))]
    NoSuchLab {
        /// The name.
        name: String,
        /// The labs there are.
        have: Vec<String>,
    },
    /// The process does not end.
    #[error("process {pid} of lab {name} does not end: {source}")]
    Stuck {
        /// The lab.
        name: String,
        /// The process.
        pid: i32,
        /// The error of the last attempt.
        source: io::Error,
    },
    /// The state directory cannot be removed.
    #[error("removing {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// An entry of [`list`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whether its engine runs. If not, `down` removes what remains.
    pub alive: bool,
    /// The process that holds it (or held it).
    pub pid: i32,
    /// Its hosts with their addresses.
    pub hosts: BTreeMap<String, Vec<String>>,
}

/// Ends a lab and removes all of it: the engine (SIGTERM, on which it cleans up; SIGKILL if it does
/// not), the programs still running in the hosts, and the state directory. Returns the number of
/// such programs.
pub fn down(name: &str) -> Result<usize, DownError> {
    let directory = base().join(name);
    if check_name(name).is_err() || !directory.is_dir() {
        let have = list().into_iter().map(|lab| lab.name).collect();
        return Err(DownError::NoSuchLab { name: name.to_owned(), have });
    }
    stop_engine(name, &directory)?;
    if !directory.exists() {
        return Ok(0);
    }
    let ended = end_leftovers(&directory);
    match fs::remove_dir_all(&directory) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(DownError::Directory { path: directory, source })
        }
        _ => Ok(ended),
    }
}

/// Returns the labs of this user, alive or dead, sorted by name.
pub fn list() -> Vec<Listed> {
    let Ok(entries) = fs::read_dir(base()) else { return Vec::new() };
    let mut labs: Vec<Listed> = entries
        .filter_map(|entry| {
            let directory = entry.ok()?.path();
            let name = directory.file_name()?.to_str()?.to_owned();
            let state = read(&directory);
            let (pid, hosts) = state.map_or((0, BTreeMap::new()), |state| (state.pid, state.hosts));
            let hosts = hosts.into_iter().map(|(name, host)| (name, host.addresses)).collect();
            directory.is_dir().then(|| Listed { name, alive: is_alive(&directory), pid, hosts })
        })
        .collect();
    labs.sort_by(|a, b| a.name.cmp(&b.name));
    labs
}

/// Returns the directory and state of a lab that is alive.
pub(crate) fn alive(name: &str) -> Option<(PathBuf, State)> {
    check_name(name).ok()?;
    let directory = base().join(name);
    let state = is_alive(&directory).then(|| read(&directory))??;
    Some((directory, state))
}

/// Returns the directory of all labs of this user. Call it before the process becomes root in a
/// user namespace.
pub(crate) fn base() -> PathBuf {
    if let Some(given) = env::var_os(variables::DIRECTORY) {
        return given.into();
    }
    if Uid::effective().is_root() {
        return "/run/fastpath".into();
    }
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    runtime.or_else(home).unwrap_or_else(|| "/run/user".into()).join("fastpath")
}

fn check_name(name: &str) -> Result<(), ClaimError> {
    let fits = (1..=NAME_MAX).contains(&name.len()) && !name.starts_with('.');
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if fits && plain { Ok(()) } else { Err(ClaimError::BadName(name.to_owned())) }
}

fn make_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

fn is_alive(directory: &Path) -> bool {
    let Ok(lock) = File::open(directory.join("lock")) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn read(directory: &Path) -> Option<State> {
    serde_json::from_slice(&fs::read(directory.join("state.json")).ok()?).ok()
}

fn stop_engine(name: &str, directory: &Path) -> Result<(), DownError> {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        // The directory is locked, and the lock's holder wrote the process number.
        let Some((true, state)) = read(directory).map(|state| (is_alive(directory), state)) else {
            return Ok(());
        };
        let pid = state.pid;
        kill(Pid::from_raw(pid), signal).map_err(|e| DownError::Stuck {
            name: name.to_owned(),
            pid,
            source: e.into(),
        })?;
        let deadline = Instant::now() + STOP_GRACE;
        while is_alive(directory) && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        if signal == Signal::SIGKILL && is_alive(directory) {
            let source = io::ErrorKind::TimedOut.into();
            return Err(DownError::Stuck { name: name.to_owned(), pid, source });
        }
    }
    Ok(())
}

fn end_leftovers(directory: &Path) -> usize {
    let hosts = read(directory).map(|state| state.hosts).unwrap_or_default();
    let inodes: BTreeSet<u64> = hosts.values().map(|host| host.namespace_inode).collect();
    let Some((name, base)) = directory.file_name().and_then(|name| name.to_str()).zip(directory.parent())
    else {
        return 0;
    };
    if inodes.is_empty() { 0 } else { end_programs(&inodes, &Mark::new(name, base)) }
}

pub(crate) fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_a_plain_file_name_is_refused() {
        for name in ["", ".", "..", ".hidden", "a/b", "a b", "ü", &"x".repeat(NAME_MAX + 1)] {
            assert!(matches!(check_name(name), Err(ClaimError::BadName(_))), "{name:?}");
        }
        for name in ["a", "emulab-fig2-1", "v1.2_x"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn a_name_is_taken_once_and_free_again_after() {
        let name = format!("claim-test-{}", std::process::id());
        let claim = Claim::new(&name).unwrap();
        claim.publish(&State { pid: 17, user_namespace: false, hosts: BTreeMap::new() }).unwrap();
        assert!(matches!(Claim::new(&name), Err(ClaimError::AlreadyUp { pid: 17, .. })));
        assert!(list().iter().any(|lab| lab.name == name && lab.alive && lab.pid == 17));
        drop(claim);
        assert!(list().iter().all(|lab| lab.name != name));
        assert!(matches!(down(&name), Err(DownError::NoSuchLab { .. })));
    }
}
