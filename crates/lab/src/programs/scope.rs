//! The processes of a lab or a shell, which end together.
//!
//! They are in a cgroup (cgroups(7)), or, where none can be made, in a PID namespace
//! (pid_namespaces(7)). A process leaves neither by a new environment, parent, session or
//! namespace.
//!
//! ```text
//!  owner ──pipe──▶ keeper ──▶ ends the processes when the owner has ended, even by `kill -9`
//! ```
//!
//! The keeper of a cgroup is a shell outside it. The keeper of a PID namespace is its first
//! process, with which the kernel ends the others.

use crate::host::first::{self, Inside};
use crate::host::host_namespace::HostNamespace;
use crate::host::mounts::{self, View};
use crate::kernel::namespace::Privilege;
use crate::programs::keeper::keeper;
use crate::programs::process::ProcessId;
use fastpath_sys::child::{Before, before};
use fastpath_sys::namespace::parent;
use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// The file with the [`Boundary`] of a lab.
pub(crate) const FILE: &str = "scope.json";
/// Time for a program to end after SIGTERM, and again after SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);
/// Names tried for a cgroup.
const NAMES: u32 = 1000;

/// The program of a cgroup's keeper. It reads until the owner has closed the pipe.
const KEEPER: &str = r#"trap '' HUP INT QUIT TERM
read -r _
tries=0
while [ -d "$0" ] && [ $tries -lt 100 ]; do
    echo 1 > "$0/cgroup.kill"
    find "$0" -depth -type d -exec rmdir {} \;
    [ -d "$0" ] && sleep 0.1
    tries=$((tries + 1))
done 2> /dev/null"#;

/// Processes that end together, at the latest with the process that made this value.
#[derive(Debug)]
pub(crate) struct Scope {
    boundary: Boundary,
    /// Ends the processes when its standard input ends.
    keeper: Child,
}

/// Where the processes of a scope are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Boundary {
    /// In a cgroup of version 2, by its directory.
    Cgroup(PathBuf),
    /// In a PID namespace, by its first process.
    PidNamespace(ProcessId),
}

impl Scope {
    /// Makes a scope without processes. `name` becomes part of the cgroup's name.
    ///
    /// Without root it is a PID namespace: a user's process in one session may not move into a
    /// cgroup of another session.
    pub(crate) fn new(name: &str, privilege: Privilege) -> io::Result<Scope> {
        let cgroup = if privilege == Privilege::Own { make_cgroup(name)? } else { None };
        let scope = match cgroup {
            Some((directory, keeper)) => Scope { keeper, boundary: Boundary::Cgroup(directory) },
            None => {
                let mut cat = Command::new("cat");
                before(&mut cat, Before { ignore_children: true, ..Before::default() });
                let start = || {
                    unshare(CloneFlags::CLONE_NEWPID)?;
                    keeper(&mut cat)
                };
                let keeper = thread::scope(|scope| scope.spawn(start).join().expect("no panic"))?;
                let pid = i32::try_from(keeper.id()).map_err(io::Error::other)?;
                Scope { boundary: Boundary::PidNamespace(ProcessId::of(pid)?), keeper }
            }
        };
        Ok(scope)
    }

    /// Returns the text of [`FILE`]: how other processes find the programs of the scope.
    pub(crate) fn record(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(&self.boundary)?)
    }

    /// Returns where its processes are.
    pub(crate) fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// Runs `work` on a thread that is in a network namespace. Commands that `work` prepares with
    /// its argument become processes of the scope.
    pub(crate) fn within<T: Send>(
        &self,
        namespace: &HostNamespace,
        work: impl FnOnce(&dyn Fn(&mut Command) -> io::Result<()>) -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let inside = Inside::View(View::default());
        namespace.within(|| {
            if let Boundary::PidNamespace(first) = &self.boundary {
                setns(File::open(format!("/proc/{}/ns/pid", first.pid))?, CloneFlags::CLONE_NEWPID)?;
            }
            work(&|command| {
                before(command, self.boundary.entry(&inside)?);
                Ok(())
            })
        })?
    }

    /// Returns the process that is the first of a PID namespace inside the scope and has the number
    /// `pid` where its starter is.
    pub(crate) fn first_process(&self, pid: i32) -> io::Result<ProcessId> {
        let is_it = |candidate: &i32| {
            let numbers = numbers_of(*candidate);
            numbers.len() > 1 && numbers[numbers.len() - 2..] == [pid, 1]
        };
        let found = self.boundary.processes().into_iter().find(is_it);
        ProcessId::of(found.ok_or_else(|| io::Error::other("its first process has ended"))?)
    }

    /// Starts the first process of a host whose programs see only each other.
    pub(crate) fn start_first(
        &self,
        namespace: &HostNamespace,
        inside: &Inside,
        proc: &Path,
    ) -> io::Result<Child> {
        let steps = self.boundary.entry(inside)?;
        namespace.within(|| {
            self.boundary.enter(inside, Some(proc))?;
            first::start(steps)
        })?
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.boundary.end();
        drop(self.keeper.stdin.take());
        // It ends with its input.
        let _ = self.keeper.wait();
    }
}

impl Boundary {
    /// Returns the place that the lab with this directory has written down.
    pub(crate) fn recorded(directory: &Path) -> Option<Boundary> {
        serde_json::from_slice(&fs::read(directory.join(FILE)).ok()?).ok()
    }

    /// Starts a program in the scope and in a host. /proc stays visible at `proc`, if programs get
    /// one of their own.
    pub(crate) fn spawn(
        &self,
        namespace: &HostNamespace,
        inside: &Inside,
        proc: Option<&Path>,
        command: &mut Command,
    ) -> io::Result<Child> {
        before(command, self.entry(inside)?);
        // The child inherits the namespaces of the thread that starts it.
        namespace.within(|| {
            self.enter(inside, proc)?;
            command.spawn()
        })?
    }

    /// Returns what a child must do to be in the scope and in a host.
    pub(crate) fn entry(&self, inside: &Inside) -> io::Result<Before> {
        Ok(match self {
            Boundary::Cgroup(directory) => {
                let cgroup = OpenOptions::new().write(true).open(directory.join("cgroup.procs"))?;
                Before { cgroup: Some(cgroup.into()), ..Before::default() }
            }
            // The others have a /proc.
            Boundary::PidNamespace(_) => {
                Before { mount_proc: matches!(inside, Inside::View(_)), ..Before::default() }
            }
        })
    }

    /// Moves the calling thread, and the children that it starts, into the namespaces of a host.
    /// The children are in the PID namespace, if there is one.
    pub(crate) fn enter(&self, inside: &Inside, proc: Option<&Path>) -> io::Result<()> {
        // A program of the lab does not see processes under their numbers outside.
        let outside = proc.filter(|proc| proc.join("self").exists());
        let seen = outside.unwrap_or(Path::new("/proc"));
        let own = match self {
            Boundary::Cgroup(_) => None,
            Boundary::PidNamespace(first) => Some(File::open(seen.join(format!("{}/ns/pid", first.pid)))?),
        };
        match inside {
            Inside::View(view) => {
                let keeps_proc = own.is_some() || view.keeps_proc;
                mounts::enter(view, proc.filter(|_| keeps_proc && outside.is_none()))?;
            }
            // Its PID namespace is inside that of the scope.
            Inside::Process(process) => return first::join(*process, seen, true, true),
            Inside::Container(process) => return first::join(*process, seen, true, false),
            // The programs end with the scope, not with the process.
            Inside::Foreign(process) => first::join(*process, seen, own.is_none(), false)?,
        }
        match own {
            Some(namespace) => Ok(setns(namespace, CloneFlags::CLONE_NEWPID)?),
            None => Ok(()),
        }
    }

    /// Ends the processes: SIGTERM, then SIGKILL. Returns how many were found at first.
    pub(crate) fn end(&self) -> usize {
        let found = self.processes().len();
        let deadline = Instant::now() + GRACE;
        let mut signalled = BTreeSet::new();
        loop {
            let mut left = self.processes();
            left.retain(|pid| !ignores_terminate(*pid));
            if left.is_empty() || Instant::now() >= deadline {
                break;
            }
            // Searched again each time: a program may have started another one meanwhile.
            self.terminate(left.difference(&signalled));
            signalled.extend(left);
            thread::sleep(POLL);
        }
        self.kill();
        found
    }

    /// Ends the processes in the network namespace with this inode: SIGTERM, then SIGKILL.
    pub(crate) fn end_in(&self, namespace: u64) {
        self.end_those(|pid| {
            fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|file| file.ino() == namespace)
        });
    }

    /// Ends the programs that were started with this argument: SIGTERM, then SIGKILL.
    pub(crate) fn end_with_argument(&self, argument: &[u8]) {
        self.end_those(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == argument)
        });
    }

    fn end_those(&self, is_meant: impl Fn(i32) -> bool) {
        let there = || self.processes().into_iter().filter(|pid| is_meant(*pid)).collect::<BTreeSet<i32>>();
        let deadline = Instant::now() + GRACE;
        let mut left = there();
        self.terminate(left.iter());
        let waits = |left: &BTreeSet<i32>| !left.iter().all(|pid| ignores_terminate(*pid));
        while waits(&left) && Instant::now() < deadline {
            thread::sleep(POLL);
            left = there();
        }
        for process in left.iter().filter_map(|&pid| ProcessId::of(pid).ok()?.open().ok()?) {
            let _ = process.signal(Signal::KILL);
        }
    }

    /// Sends SIGTERM to these processes of the scope.
    fn terminate<'p>(&self, pids: impl Iterator<Item = &'p i32>) {
        let open = |&pid: &i32| Some((pid, ProcessId::of(pid).ok()?.open().ok()??));
        let open: Vec<_> = pids.filter_map(open).collect();
        // Read after opening: a number may have become that of a process outside the scope. One
        // that is still inside now is the one that was opened, or the opened one has ended.
        let inside = self.processes();
        for (_, process) in open.iter().filter(|(pid, _)| inside.contains(pid)) {
            // It may have ended already.
            let _ = process.signal(Signal::TERM);
        }
    }

    fn kill(&self) {
        let deadline = Instant::now() + GRACE;
        match self {
            Boundary::Cgroup(directory) => {
                while directory.exists() && Instant::now() < deadline {
                    let _ = fs::write(directory.join("cgroup.kill"), "1");
                    remove_cgroup(directory);
                    if directory.exists() {
                        thread::sleep(POLL);
                    }
                }
            }
            Boundary::PidNamespace(first) => {
                if let Ok(Some(first)) = first.open() {
                    let _ = first.signal(Signal::KILL);
                    // The first process ends after all others.
                    let _ = first.wait(GRACE);
                }
            }
        }
    }

    /// Returns the processes of the scope, without the keeper.
    pub(crate) fn processes(&self) -> BTreeSet<i32> {
        match self {
            Boundary::Cgroup(directory) => in_cgroup(directory),
            Boundary::PidNamespace(first) if first.open().is_ok_and(|first| first.is_some()) => {
                let Some(own) = pid_namespace(first.pid) else { return BTreeSet::new() };
                // By inode: whether a namespace is that of the scope or lies in it.
                let mut known = BTreeMap::from([(own, true)]);
                let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
                entries
                    .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                    .filter(|&pid| pid != first.pid && is_inside(pid, &mut known))
                    .collect()
            }
            Boundary::PidNamespace(_) => BTreeSet::new(),
        }
    }
}

/// Returns the inode of the PID namespace of a process; `None` if it has ended.
fn pid_namespace(pid: i32) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{pid}/ns/pid")).ok()?.ino())
}

/// Whether the PID namespace of a process is one that is known to be inside, or lies in one:
/// containers and hosts with `pid_namespace` have their own.
fn is_inside(pid: i32, known: &mut BTreeMap<u64, bool>) -> bool {
    let Ok(mut namespace) = File::open(format!("/proc/{pid}/ns/pid")) else { return false };
    let mut seen = Vec::new();
    // The kernel nests PID namespaces 32 deep (pid_namespaces(7)).
    let found = loop {
        let Ok(inode) = namespace.metadata().map(|file| file.ino()) else { break false };
        if let Some(found) = known.get(&inode) {
            break *found;
        }
        seen.push(inode);
        match parent(&namespace) {
            Ok(around) => namespace = around,
            // That of this process, or one beside it.
            Err(_) => break false,
        }
    };
    known.extend(seen.into_iter().map(|inode| (inode, found)));
    found
}

/// Whether SIGTERM does nothing to a process: the first one of a PID namespace that has no handler
/// for it (pid_namespaces(7)).
fn ignores_terminate(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let numbers = numbers_of(pid);
    let is_first = numbers.len() > 1 && numbers.last() == Some(&1);
    is_first && caught.is_some_and(|mask| mask & (1 << (Signal::TERM.as_raw() - 1)) == 0)
}

/// Returns the numbers of a process in the PID namespaces from that of /proc to its own
/// (proc_pid_status(5)). None if it has ended.
fn numbers_of(pid: i32) -> Vec<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Makes a cgroup below that of this process, so that limits of this process hold for it, and its
/// keeper. The keeper comes first: it removes the cgroup however early this process ends. Returns
/// `None` if cgroups of version 2 are not mounted, not writable, or cannot be ended as a whole
/// (before Linux 5.14).
fn make_cgroup(name: &str) -> io::Result<Option<(PathBuf, Child)>> {
    let parent = || {
        let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
        directory_of_cgroup(own, &mountinfo)
    };
    let Some(parent) = parent() else { return Ok(None) };
    for number in 0..NAMES {
        let directory = parent.join(format!("fastpath-{name}-{}-{number}", std::process::id()));
        if directory.exists() {
            continue;
        }
        let mut shell = Command::new("sh");
        let mut keeper = keeper(shell.arg("-c").arg(KEEPER).arg(&directory))?;
        // It is killed, because it would end the cgroup of another owner otherwise.
        let mut dismiss = || keeper.kill().and_then(|()| keeper.wait());
        if let Err(error) = fs::create_dir(&directory) {
            dismiss()?;
            if error.kind() == io::ErrorKind::AlreadyExists {
                continue;
            }
            return Ok(None);
        }
        // Below a threaded cgroup it cannot have processes ("domain invalid").
        let is_domain =
            fs::read_to_string(directory.join("cgroup.type")).is_ok_and(|kind| kind == "domain\n");
        let can = |file| OpenOptions::new().write(true).open(directory.join(file)).is_ok();
        if is_domain && can("cgroup.kill") && can("cgroup.procs") {
            return Ok(Some((directory, keeper)));
        }
        dismiss()?;
        let _ = fs::remove_dir(&directory);
        return Ok(None);
    }
    Ok(None)
}

/// Returns the directory of the cgroup `path`, from the text of mountinfo.
fn directory_of_cgroup(path: &str, mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, mounted) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        kind.starts_with("cgroup2 ").then(|| Path::new(mounted).join(below))
    })
}

/// Returns the processes of a cgroup and of the cgroups below it.
fn in_cgroup(directory: &Path) -> BTreeSet<i32> {
    let own = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let mut processes: BTreeSet<i32> = own.lines().filter_map(|line| line.parse().ok()).collect();
    processes.extend(below(directory).iter().flat_map(|child| in_cgroup(child)));
    processes
}

/// Removes a cgroup and those below it, as far as they have no processes.
fn remove_cgroup(directory: &Path) {
    below(directory).iter().for_each(|child| remove_cgroup(child));
    let _ = fs::remove_dir(directory);
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}
