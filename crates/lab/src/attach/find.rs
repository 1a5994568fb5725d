//! Finds the network namespace that a spec names.

use crate::programs::process::ProcessId;
use fastpath_spec::Attach;
use nix::errno::Errno;
use nix::sys::statfs::{FsType, statfs};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where `ip netns` keeps its names.
const NETNS: &str = "/run/netns";
/// The programs that are asked for containers.
const ENGINES: [&str; 2] = ["podman", "docker"];
/// The file system of namespaces (linux/magic.h).
const NSFS_MAGIC: u32 = 0x6e73_6673;

/// A namespace that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The file of the network namespace.
    pub(crate) path: PathBuf,
    /// The process that it was found by: its other namespaces are the host's too.
    pub(crate) process: Option<ProcessId>,
}

/// Why there is no such network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// `ip netns` has no such name.
    #[error("no network namespace {name} (have: {}): write one of these, or make it with `ip netns add {name}`", crate::text::or_none(.have))]
    Name {
        /// The name.
        name: String,
        /// The names there are.
        have: Vec<String>,
    },
    /// The file does not exist or is none.
    #[error("{} is not a network namespace: write the path of one, such as /proc/PID/ns/net", .0.display())]
    Path(PathBuf),
    /// The namespaces of a process may not be opened.
    #[error("{0}: its namespaces may not be opened: attach needs root")]
    NotPermitted(Attach),
    /// No process has the number.
    #[error("no process {0}: write the number of one that runs")]
    Process(u32),
    /// No container has the name.
    #[error("no container {name} of {engines}: write the name or ID of one that runs")]
    Container {
        /// The name.
        name: String,
        /// The engines that were asked.
        engines: String,
    },
    /// The container does not run.
    #[error("container {name} does not run: start it with `{engine} start {name}`")]
    Stopped {
        /// The name.
        name: String,
        /// The engine that has it.
        engine: &'static str,
    },
    /// No program knows containers.
    #[error("neither podman nor docker is installed, so container {0} cannot be found: install one of them")]
    NoEngine(String),
}

/// Finds a network namespace.
pub(crate) fn find(attach: &Attach) -> Result<Found, NotFound> {
    match attach {
        Attach::Netns(name) => {
            let path = Path::new(NETNS).join(name);
            if is_namespace(&path) {
                return Ok(Found { path, process: None });
            }
            permitted(attach, &path)?;
            let entries = fs::read_dir(NETNS).into_iter().flatten().flatten();
            let mut have: Vec<String> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            have.sort();
            Err(NotFound::Name { name: name.clone(), have })
        }
        Attach::Path(path) => {
            let path = PathBuf::from(path);
            if is_namespace(&path) {
                return Ok(Found { path, process: None });
            }
            permitted(attach, &path)?;
            Err(NotFound::Path(path))
        }
        Attach::Pid(pid) => of_process(*pid).map_or_else(
            || {
                permitted(attach, &file_of(*pid))?;
                Err(NotFound::Process(*pid))
            },
            Ok,
        ),
        Attach::Container(name) => {
            let (pid, engine) = process_of(name)?;
            if let Some(found) = of_process(pid) {
                return Ok(found);
            }
            permitted(attach, &file_of(pid))?;
            Err(NotFound::Stopped { name: name.clone(), engine })
        }
    }
}

/// Whether a file is a namespace. One whose name was removed from the file system is none.
fn is_namespace(path: &Path) -> bool {
    statfs(path).is_ok_and(|of| of.filesystem_type() == FsType(NSFS_MAGIC.into()))
}

/// Refuses a file that the user may not look at.
fn permitted(attach: &Attach, path: &Path) -> Result<(), NotFound> {
    match statfs(path) {
        Err(Errno::EACCES | Errno::EPERM) => Err(NotFound::NotPermitted(attach.clone())),
        _ => Ok(()),
    }
}

fn file_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/ns/net"))
}

fn of_process(pid: u32) -> Option<Found> {
    let path = file_of(pid);
    // A process that has ended and was not waited for has no namespaces.
    is_namespace(&path).then_some(())?;
    Some(Found { path, process: ProcessId::of(i32::try_from(pid).ok()?).ok() })
}

/// Returns the first process of a container, and the engine that has it.
fn process_of(container: &str) -> Result<(u32, &'static str), NotFound> {
    let (mut asked, mut stopped) = (Vec::new(), None);
    for engine in ENGINES {
        let mut inspect = Command::new(engine);
        inspect.args(["container", "inspect", "--format", "{{.State.Pid}}", container]);
        let output = match inspect.stdin(Stdio::null()).output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            output => output,
        };
        asked.push(engine);
        let Some(output) = output.ok().filter(|output| output.status.success()) else { continue };
        match String::from_utf8_lossy(&output.stdout).trim().parse() {
            Ok(0) => stopped = Some(engine),
            Ok(pid) => return Ok((pid, engine)),
            Err(_) => {}
        }
    }
    let name = container.to_owned();
    match stopped {
        Some(engine) => Err(NotFound::Stopped { name, engine }),
        None if asked.is_empty() => Err(NotFound::NoEngine(name)),
        None => Err(NotFound::Container { name, engines: asked.join(" and ") }),
    }
}
