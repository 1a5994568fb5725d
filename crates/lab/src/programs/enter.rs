//! Enters a host: its network namespace, and a mount namespace with the files of the host.

use crate::attach::{self, NotFound};
use crate::host::first::Inside;
use crate::programs::scope::Boundary;
use crate::programs::variables;
use crate::state::claim::ForeignDirectory;
use crate::state::lab_files::PROC;
use crate::state::{self, HostState, NamespaceState, State};
use crate::text::or_none;
use fastpath_sys::child::{Before, before};
use nix::sched::{CloneFlags, setns};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// How long a lab that is being brought up is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// The addition to a message about a missing host, whose name may be that of another node.
pub const NO_PROGRAMS: &str =
    "; programs run on hosts and on routers with kind = \"kernel\", not on other routers and switches";

/// Why a program did not start in a host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    /// No lab of that name is up.
    #[error("no lab {name} is up (up: {})", or_none(.have))]
    NoSuchLab {
        /// The name.
        name: String,
        /// The labs there are.
        have: Vec<String>,
    },
    /// The process that held the lab was killed.
    #[error("lab {0} is dead: its process was killed; `fastpath lab down {0}` removes what it left")]
    Dead(String),
    /// The lab has no hosts yet.
    #[error("lab {0} is being started: try again when `fastpath lab up` has printed its hosts")]
    Starting(String),
    /// The engine of the lab does not answer.
    #[error("lab {lab} does not answer: {why}")]
    Silent {
        /// The lab.
        lab: String,
        /// The reason.
        why: String,
    },
    /// Another user owns the state of the lab.
    #[error(transparent)]
    Foreign(#[from] ForeignDirectory),
    /// The lab has no such host.
    #[error("lab {lab} has no host {host} (have: {}){NO_PROGRAMS}", or_none(.have))]
    NoSuchHost {
        /// The lab.
        lab: String,
        /// The host.
        host: String,
        /// Its hosts.
        have: Vec<String>,
    },
    /// A namespace could not be entered.
    #[error("entering host {host}: {step}: {source}")]
    Namespace {
        /// The host.
        host: String,
        /// The refused step.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The namespace that the host is attached to is not there.
    #[error("host {host}: {source}")]
    Gone {
        /// The host.
        host: String,
        /// The reason.
        source: NotFound,
    },
    /// The program could not be started.
    #[error("{program}: {source}")]
    Program {
        /// Its name as given.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// The command line has no program.
    #[error("no program given: write it after `--`")]
    NoProgram,
}

/// Replaces this process by a program in a host of a running lab, so that terminal, signals and
/// exit code are the program's. If programs of the lab or host are in a PID namespace, which a
/// process cannot move into, the program becomes a child, which ends with this thread. The process
/// must be single-threaded; after a failure it may be inside the host's namespaces.
pub fn exec(lab: &str, host: &str, argv: &[OsString]) -> Result<Child, EnterError> {
    let (program, arguments) = argv.split_first().ok_or(EnterError::NoProgram)?;
    let mut command = Command::new(program);
    command.args(arguments);
    start(lab, host, command)
}

/// Replaces this process by a shell in a host, as [`exec`] does: $SHELL, or sh. Its prompt names
/// the host.
///
/// # Errors
/// See [`EnterError`].
pub fn exec_shell(lab: &str, host: &str) -> Result<Child, EnterError> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let mut command = Command::new(shell.unwrap_or_else(|| "sh".into()));
    // A shell without start-up files takes PS1. bash sets its own there, and runs PROMPT_COMMAND
    // before each prompt.
    command.env("PS1", format!("({host}) $ "));
    let named = format!("case $PS1 in '({host}) '*) ;; *) PS1=\"({host}) $PS1\" ;; esac");
    command.env("PROMPT_COMMAND", named);
    start(lab, host, command)
}

fn start(lab: &str, host: &str, mut command: Command) -> Result<Child, EnterError> {
    let (directory, state) = alive(lab)?;
    let host_state = host_of(lab, host, &state)?;
    command.envs(&host_state.env).envs(environment(lab, host, &state::base()));
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| EnterError::Program { program: program.clone(), source };
    match enter(host, host_state, &directory, &state)? {
        (Boundary::Cgroup(_), Inside::View(_)) => Err(failed(command.exec())),
        // A process cannot move into a PID namespace; its children can.
        (boundary, inside) => {
            let steps = match boundary {
                // This process has joined it.
                Boundary::Cgroup(_) => Before::default(),
                Boundary::PidNamespace(_) => boundary.entry(&inside).map_err(failed)?,
            };
            before(&mut command, Before { end_with_parent: true, ..steps }).spawn().map_err(failed)
        }
    }
}

fn host_of<'s>(lab: &str, host: &str, state: &'s State) -> Result<&'s HostState, EnterError> {
    state.hosts.get(host).ok_or_else(|| {
        let have = state.hosts.keys().cloned().collect();
        EnterError::NoSuchHost { lab: lab.to_owned(), host: host.to_owned(), have }
    })
}

/// Returns whether a lab of that name is up and has that host.
pub fn is_host(lab: &str, host: &str) -> bool {
    state::alive(lab).ok().flatten().is_some_and(|(_, state)| state.hosts.contains_key(host))
}

/// Returns the directory and state of a lab that is up. Waits a while for one that is being brought
/// up: its name is listed before its hosts can be entered.
pub(crate) fn alive(lab: &str) -> Result<(PathBuf, State), EnterError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match alive_now(lab) {
            Err(EnterError::Starting(_)) if Instant::now() < deadline => thread::sleep(POLL),
            found => return found,
        }
    }
}

fn alive_now(lab: &str) -> Result<(PathBuf, State), EnterError> {
    state::alive(lab)?.ok_or_else(|| {
        let (up, dead): (Vec<_>, Vec<_>) = state::list().into_iter().partition(|lab| lab.alive);
        let named = |labs: &[state::Listed]| labs.iter().any(|listed| listed.name == lab);
        match (named(&up), named(&dead)) {
            // It may have come up since.
            (true, _) => EnterError::Starting(lab.to_owned()),
            (false, true) => EnterError::Dead(lab.to_owned()),
            (false, false) => {
                let have = up.into_iter().map(|lab| lab.name).collect();
                EnterError::NoSuchLab { name: lab.to_owned(), have }
            }
        }
    })
}

/// Returns the environment variables of a program in a lab.
pub(crate) fn environment(lab: &str, host: &str, base: &Path) -> [(&'static str, OsString); 3] {
    [
        (variables::LAB, lab.into()),
        ("FASTPATH_HOST", host.into()),
        (variables::DIRECTORY, base.as_os_str().to_owned()),
    ]
}

fn enter(
    host: &str,
    host_state: &HostState,
    directory: &Path,
    state: &State,
) -> Result<(Boundary, Inside), EnterError> {
    let failed = |step| {
        let host = host.to_owned();
        move |source| EnterError::Namespace { host, step, source }
    };
    let proc = directory.join(PROC);
    // Programs in a PID namespace see the holder of the lab only there.
    let seen = if proc.join("self").exists() { &proc } else { Path::new("/proc") };
    let holder = seen.join(state.pid.to_string());
    let opening = failed("opening its namespace");
    let (network, inside) = match &host_state.namespace {
        NamespaceState::Held { fd, inode } => {
            let network = File::open(holder.join(format!("fd/{fd}"))).and_then(|namespace| {
                // The number may be that of another process by now.
                let is_its = namespace.metadata()?.ino() == *inode;
                is_its.then_some(namespace).ok_or_else(|| io::ErrorKind::NotFound.into())
            });
            (network.map_err(opening)?, host_state.inside.clone())
        }
        NamespaceState::Attached(name) => {
            let gone = |source| EnterError::Gone { host: host.to_owned(), source };
            let found = name.parse().map_err(io::Error::other).map_err(opening)?;
            let found = attach::find(&found).map_err(gone)?;
            let inside = found.process.map_or_else(|| host_state.inside.clone(), Inside::Foreign);
            (File::open(found.path).map_err(failed("opening its namespace"))?, inside)
        }
    };
    let unknown = || io::Error::from(io::ErrorKind::NotFound);
    let boundary = Boundary::recorded(directory).ok_or_else(unknown).map_err(failed("its programs"))?;
    if let Boundary::Cgroup(cgroup) = &boundary {
        fs::write(cgroup.join("cgroup.procs"), "0").map_err(failed("joining its cgroup"))?;
    }
    if state.user_namespace {
        let user = File::open(holder.join("ns/user")).map_err(failed("opening its user namespace"))?;
        // A program that `lab run` started is in it already; the kernel refuses to join it twice.
        if !is_own(&user).map_err(failed("reading its user namespace"))? {
            setns(user, CloneFlags::CLONE_NEWUSER)
                .map_err(io::Error::from)
                .map_err(failed("joining its user namespace"))?;
        }
    }
    setns(network, CloneFlags::CLONE_NEWNET)
        .map_err(io::Error::from)
        .map_err(failed("joining its network namespace"))?;
    boundary.enter(&inside, Some(&proc)).map_err(failed("its mount namespace"))?;
    Ok((boundary, inside))
}

/// Whether this is the user namespace of this process.
fn is_own(user_namespace: &File) -> io::Result<bool> {
    Ok(user_namespace.metadata()?.ino() == fs::metadata("/proc/self/ns/user")?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::claim;
    use crate::state::lab_files::STATE;
    use std::collections::BTreeMap;

    #[test]
    fn a_lab_that_is_being_brought_up_is_waited_for() {
        let name = format!("waited-{}", std::process::id());
        let claim = claim(&name).unwrap();
        assert!(matches!(alive_now(&name), Err(EnterError::Starting(_))));
        assert!(state::list().iter().any(|lab| lab.name == name && lab.starting));
        let published =
            State { pid: std::process::id() as i32, user_namespace: false, hosts: BTreeMap::new() };
        let found = thread::scope(|scope| {
            let waiting = scope.spawn(|| alive(&name));
            claim.write(STATE, &serde_json::to_vec(&published).unwrap()).unwrap();
            waiting.join().unwrap()
        });
        assert_eq!(found.unwrap().1, published);
        assert!(state::list().iter().any(|lab| lab.name == name && lab.alive && !lab.starting));
    }
}
