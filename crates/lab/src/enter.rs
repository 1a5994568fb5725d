//! Becoming a program of a host: its network namespace, and a mount namespace in which /etc/hosts
//! knows the names of the lab.

use crate::state::{self, State, or_none};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a program did not start in a host.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// Nothing of that name is up.
    #[error("no lab {name} is up (up: {})", or_none(.have))]
    NoSuchLab {
        /// What was asked for.
        name: String,
        /// The labs there are.
        have: Vec<String>,
    },
    /// The lab has no such host.
    #[error("lab {lab} has no host {host} (have: {})", or_none(.have))]
    NoSuchHost {
        /// The lab.
        lab: String,
        /// What was asked for.
        host: String,
        /// Its hosts.
        have: Vec<String>,
    },
    /// A namespace could not be entered.
    #[error("entering host {host}: {step}: {source}")]
    Namespace {
        /// The host.
        host: String,
        /// What was refused.
        step: &'static str,
        /// How the kernel put it.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("{program}: {source}")]
    Program {
        /// Its name as given.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// No program was named.
    #[error("no program given: write it after `--`")]
    NoProgram,
}

/// Replaces this process by a program in a host of a running lab, so that its terminal, signals and
/// exit code are the caller's own. Returns only if that fails; the process must be single-threaded,
/// and is of no further use after a failure past the first checks.
pub fn exec(lab: &str, host: &str, argv: &[OsString]) -> Result<Infallible, EnterError> {
    let (directory, state) = alive(lab)?;
    let (program, arguments) = argv.split_first().ok_or(EnterError::NoProgram)?;
    let base = state::base();
    enter(lab, host, &directory, &state)?;
    let source = Command::new(program).args(arguments).envs(environment(lab, host, &base)).exec();
    Err(EnterError::Program { program: program.to_string_lossy().into_owned(), source })
}

/// The directory and state of a lab that is up.
pub(crate) fn alive(lab: &str) -> Result<(PathBuf, State), EnterError> {
    state::alive(lab).ok_or_else(|| {
        let have = state::list().into_iter().filter(|lab| lab.alive).map(|lab| lab.name).collect();
        EnterError::NoSuchLab { name: lab.to_owned(), have }
    })
}

/// What a program in a lab finds in its environment.
pub(crate) fn environment(lab: &str, host: &str, base: &Path) -> [(&'static str, OsString); 3] {
    [
        (state::LAB_VARIABLE, lab.into()),
        ("FASTPATH_HOST", host.into()),
        (state::DIRECTORY_VARIABLE, base.as_os_str().to_owned()),
    ]
}

fn enter(lab: &str, host: &str, directory: &Path, state: &State) -> Result<(), EnterError> {
    let Some(place) = state.hosts.get(host) else {
        let have = state.hosts.keys().cloned().collect();
        return Err(EnterError::NoSuchHost { lab: lab.to_owned(), host: host.to_owned(), have });
    };
    let failed = |step| {
        let host = host.to_owned();
        move |source| EnterError::Namespace { host, step, source }
    };
    let pid = state.pid;
    let network = File::open(format!("/proc/{pid}/fd/{}", place.namespace_fd))
        .map_err(failed("opening its namespace"))?;
    if state.user_namespace {
        let user =
            File::open(format!("/proc/{pid}/ns/user")).map_err(failed("opening its user namespace"))?;
        // A program that `lab run` started is in it already, and the kernel refuses to join twice.
        if !is_own(&user).map_err(failed("looking at its user namespace"))? {
            setns(user, CloneFlags::CLONE_NEWUSER)
                .map_err(io::Error::from)
                .map_err(failed("joining its user namespace"))?;
        }
    }
    setns(network, CloneFlags::CLONE_NEWNET)
        .map_err(io::Error::from)
        .map_err(failed("joining its network namespace"))?;
    see_names(&directory.join("hosts")).map_err(failed("mounting /etc/hosts"))
}

/// Whether this is the user namespace of the process itself.
fn is_own(user_namespace: &File) -> io::Result<bool> {
    Ok(user_namespace.metadata()?.ino() == fs::metadata("/proc/self/ns/user")?.ino())
}

/// Gives the calling thread a mount namespace of its own with `hosts` in the place of /etc/hosts.
pub(crate) fn see_names(hosts: &Path) -> io::Result<()> {
    let target = Path::new("/etc/hosts");
    if !target.exists() {
        return Ok(());
    }
    const NONE: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Slave, not private: mounts made on the machine later still arrive, ours never leave.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE)?;
    mount(Some(hosts), target, NONE, MsFlags::MS_BIND, NONE)?;
    Ok(())
}
