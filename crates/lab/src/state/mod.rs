//! The files of a running lab, which `exec`, `down` and `list` read: one directory per lab.
//!
//! ```text
//! /run/fastpath/<lab>/        as root, else $XDG_RUNTIME_DIR/fastpath/<lab>/
//!   lock, holder.json         `claim.rs`
//!   state.json                [`State`], when the lab is up
//!   scope.json                `scope.rs`: where the programs are
//!   hosts, resolv.conf        /etc/hosts and /etc/resolv.conf as the programs in the lab see them
//!   private/<host>/           the directories that the host has for itself
//!   containers/<host>/        `container.rs`: the bundle of a container
//!   detached.json             `attach/watch.rs`: hosts whose namespace is gone
//!   control.sock              the engine's control socket
//!   HOST.log                  the output of the commands that the description has for a host
//! ```

pub(crate) mod claim;
pub(crate) mod inspect;
pub(crate) mod lab_files;

use crate::host::first::Inside;
use crate::programs::process::Process;
use crate::programs::variables;
use crate::text::or_none;
use claim::{Attempt, Claim, ForeignDirectory, Holder};
use lab_files::{DETACHED, STATE};
use nix::unistd::{Pid, Uid};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a name: the path of a Unix socket has 107 bytes.
const NAME_MAX: usize = 40;
/// Time for an engine to clean up after SIGTERM, before SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(10);

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
    /// Its network namespace.
    pub(crate) namespace: NamespaceState,
    /// The other namespaces and the cgroup of its programs. For a host attached to a process they
    /// are looked up again.
    pub(crate) inside: Inside,
    /// Variables of its programs.
    pub(crate) env: BTreeMap<String, String>,
    /// Addresses with prefix lengths.
    pub(crate) addresses: Vec<String>,
}

/// Where the network namespace of a host is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NamespaceState {
    /// Held by the process of the lab.
    Held {
        /// The namespace is `/proc/<pid>/fd/<this>`.
        fd: i32,
        /// The inode of the namespace.
        inode: u64,
    },
    /// Attached, by its name in the spec.
    Attached(String),
}

/// Why a lab's name could not be claimed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// Names become file names.
    #[error("lab name {0:?}: use 1 to {NAME_MAX} letters, digits, '-', '_' or '.', not '.' first")]
    BadName(String),
    /// Another process holds the name.
    #[error(
        "lab {name} is up already ({}): `fastpath lab down {name}` ends it, --name gives another",
        claim::process(*.holder)
    )]
    AlreadyUp {
        /// Its name.
        name: String,
        /// The process that holds it, if it is known.
        holder: Option<i32>,
    },
    /// Another user owns the directory.
    #[error(transparent)]
    Foreign(#[from] ForeignDirectory),
    /// The directory cannot be created.
    #[error("state directory {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Claims the name for a lab that this process brings up, and removes what a dead lab of that name
/// left.
pub(crate) fn claim(name: &str) -> Result<Claim, ClaimError> {
    check_name(name)?;
    let directory = base().join(name);
    let failed = |source| ClaimError::Directory { path: directory.clone(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(base()).map_err(failed)?;
    claim::check_base(&base())?;
    let deadline = Instant::now() + claim::PATIENCE;
    loop {
        claim::check_owner(&directory)?;
        if let Attempt::Claimed(claim) = Claim::take(&directory).map_err(failed)? {
            return Ok(claim);
        }
        let running = claim::holder(&directory).filter(Holder::runs);
        if running.is_some() || Instant::now() >= deadline {
            let holder = running.map(|holder| holder.process.pid);
            return Err(ClaimError::AlreadyUp { name: name.to_owned(), holder });
        }
        thread::sleep(claim::POLL);
    }
}

/// Why `down` failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownError {
    /// There is no lab of that name.
    #[error("no lab {name} (have: {})", or_none(.have))]
    NoSuchLab {
        /// The name.
        name: String,
        /// The labs there are.
        have: Vec<String>,
    },
    /// The process that holds the lab does not end.
    #[error("lab {name} does not end: {} holds it", claim::process(*.holder))]
    Stuck {
        /// The lab.
        name: String,
        /// The process that holds it, if it is known.
        holder: Option<i32>,
    },
    /// The process cannot be signalled.
    #[error("signalling process {pid} of lab {name}: {source}")]
    Signal {
        /// The lab.
        name: String,
        /// The process.
        pid: i32,
        /// The reason.
        source: io::Error,
    },
    /// Another user owns the directory.
    #[error(transparent)]
    Foreign(#[from] ForeignDirectory),
    /// The state directory cannot be removed.
    #[error("removing {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
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
    /// Whether it is being brought up: its hosts cannot be entered yet.
    pub starting: bool,
    /// The process that holds it (or held it).
    pub pid: i32,
    /// Whether the process was started in the session (setsid(2)) of this process: as a rule, from
    /// the same terminal.
    pub same_session: bool,
    /// Its hosts with their addresses.
    pub hosts: BTreeMap<String, Vec<String>>,
    /// The attached hosts among them whose network namespace is gone.
    pub detached: Vec<String>,
}

/// Ends a lab and removes all of it: the process that holds it (SIGTERM, on which it cleans up;
/// SIGKILL if it does not), also while it brings the lab up, then the programs still running in the
/// hosts, and the state directory. Returns the number of such programs.
pub fn down(name: &str) -> Result<usize, DownError> {
    let no_such_lab = || {
        let named = |lab: Listed| if lab.alive { lab.name } else { format!("{}, which is dead", lab.name) };
        let have = list().into_iter().map(named).collect();
        DownError::NoSuchLab { name: name.to_owned(), have }
    };
    check_name(name).map_err(|_| no_such_lab())?;
    let directory = base().join(name);
    claim::check_base(&base())?;
    claim::check_owner(&directory)?;
    let failed = |source| DownError::Directory { path: directory.clone(), source };
    // The lab that is ended is the one that is up now. Another process may bring up the next.
    let mut target: Option<Ending> = None;
    let patience = Instant::now() + claim::PATIENCE;
    loop {
        match Claim::lock(&directory).map_err(failed)? {
            Attempt::Claimed(claim) => return claim.remove().map_err(failed),
            Attempt::Gone if target.is_some() => return Ok(0),
            Attempt::Gone => return Err(no_such_lab()),
            Attempt::Held => {}
        }
        let stuck = |holder| DownError::Stuck { name: name.to_owned(), holder };
        match (&mut target, claim::holder(&directory)) {
            (Some(target), Some(holder)) if holder != target.holder && holder.runs() => return Ok(0),
            (Some(target), _) => {
                let pid = target.holder.process.pid;
                let signalled = target.signal_when_due();
                let due =
                    signalled.map_err(|source| DownError::Signal { name: name.to_owned(), pid, source });
                if !due? {
                    return Err(stuck(Some(pid)));
                }
            }
            (none, Some(holder)) => *none = Ending::of(holder).map_err(failed)?,
            (None, None) => {}
        }
        if target.is_none() && Instant::now() >= patience {
            return Err(stuck(None));
        }
        thread::sleep(claim::POLL);
    }
}

/// A process that is made to give up its lab.
struct Ending {
    holder: Holder,
    process: Process,
    /// The signals to come.
    signals: std::array::IntoIter<Signal, 2>,
    /// When the next one is due.
    next: Instant,
}

impl Ending {
    /// Returns `None` if the process has ended.
    fn of(holder: Holder) -> io::Result<Option<Ending>> {
        let ending = |process| {
            let signals = [Signal::TERM, Signal::KILL].into_iter();
            Ending { holder, process, signals, next: Instant::now() }
        };
        Ok(holder.process.open()?.map(ending))
    }

    /// Sends the next signal if it is due. Returns whether there is still hope.
    fn signal_when_due(&mut self) -> io::Result<bool> {
        if Instant::now() < self.next {
            return Ok(true);
        }
        self.next = Instant::now() + STOP_GRACE;
        match self.signals.next() {
            Some(signal) => self.process.signal(signal).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Returns the labs of this user, alive or dead, sorted by name.
pub fn list() -> Vec<Listed> {
    let Ok(entries) = fs::read_dir(base()) else { return Vec::new() };
    let mut labs: Vec<Listed> = entries
        .filter_map(|entry| {
            let directory = entry.ok()?.path();
            let name = directory.file_name()?.to_str()?.to_owned();
            if !directory.is_dir() || claim::check_owner(&directory).is_err() {
                return None;
            }
            let alive = claim::is_alive(&directory);
            let state = read(&directory);
            let starting = alive && state.is_none();
            let hosts = state.map(|state| state.hosts).unwrap_or_default();
            let hosts = hosts.into_iter().map(|(name, host)| (name, host.addresses)).collect();
            let holder = claim::holder(&directory);
            let pid = holder.map_or(0, |holder| holder.process.pid);
            let session = nix::unistd::getsid(None).map(Pid::as_raw).ok();
            let same_session = holder.is_some_and(|holder| Some(holder.session) == session);
            let detached = fs::read(directory.join(DETACHED)).ok();
            let detached = detached.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
            Some(Listed { name, alive, starting, pid, same_session, hosts, detached })
        })
        .collect();
    labs.sort_by(|a, b| a.name.cmp(&b.name));
    labs
}

/// Why a command that names no lab has none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoLab {
    /// None counts.
    #[error(
        "no lab is up; start one with `fastpath lab up SPEC` (to reach a `fastpath shell` or `netem`, start it with \
         --http unix:PATH and write --socket PATH)"
    )]
    None,
    /// Only labs whose process was killed have names.
    #[error(
        "no lab is up: the process of {} was killed; `fastpath lab down {}` removes what it left",
        .0.join(", "), .0.join("`, `fastpath lab down ")
    )]
    Killed(Vec<String>),
    /// These names count.
    #[error("several labs are up; name one of {}", .0.join(", "))]
    Several(Vec<String>),
}

/// Returns the lab of a command that names none: the lab in the environment, or the only one of
/// this user that `counts`.
///
/// # Errors
/// [`NoLab`] if none or several count.
pub fn only_lab(counts: impl Fn(&Listed) -> bool) -> Result<String, NoLab> {
    if let Ok(name) = env::var(variables::LAB) {
        return Ok(name);
    }
    let labs = list();
    let names: Vec<String> = labs.iter().filter(|lab| counts(lab)).map(|lab| lab.name.clone()).collect();
    match <[String; 1]>::try_from(names) {
        Ok([name]) => Ok(name),
        Err(none) if none.is_empty() && !labs.is_empty() => {
            Err(NoLab::Killed(labs.into_iter().map(|lab| lab.name).collect()))
        }
        Err(none) if none.is_empty() => Err(NoLab::None),
        Err(several) => Err(NoLab::Several(several)),
    }
}

/// Returns the directory and state of a lab that is up; `None` if it is not, or not yet.
pub(crate) fn alive(name: &str) -> Result<Option<(PathBuf, State)>, ForeignDirectory> {
    if check_name(name).is_err() {
        return Ok(None);
    }
    let directory = base().join(name);
    claim::check_owner(&directory)?;
    let state = claim::is_alive(&directory).then(|| read(&directory)).flatten();
    Ok(state.map(|state| (directory, state)))
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

fn read(directory: &Path) -> Option<State> {
    serde_json::from_slice(&fs::read(directory.join(STATE)).ok()?).ok()
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
        let claim = claim(&name).unwrap();
        let own = std::process::id() as i32;
        assert!(
            matches!(super::claim(&name), Err(ClaimError::AlreadyUp { holder: Some(pid), .. }) if pid == own)
        );
        assert!(list().iter().any(|lab| lab.name == name && lab.alive && lab.pid == own));
        drop(claim);
        assert!(list().iter().all(|lab| lab.name != name));
        assert!(matches!(down(&name), Err(DownError::NoSuchLab { .. })));
    }
}
