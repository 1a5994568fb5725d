//! Where the programs of a host run besides its network namespace, and the first process of a host
//! that has a PID namespace or is a container: programs that are started later join its namespaces
//! (setns(2)).

use crate::host::mounts::View;
use crate::programs::keeper::keeper;
use crate::programs::process::ProcessId;
use fastpath_sys::child::{Before, before};
use nix::sched::{CloneFlags, setns, unshare};
use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};

/// Where the programs of a host run besides its network namespace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inside {
    /// Each in mount and UTS namespaces of its own, which show this.
    View(View),
    /// In the namespaces of a process of the lab that sees the files of the machine.
    Process(ProcessId),
    /// In the namespaces of the first process of a container of the lab.
    Container(ProcessId),
    /// In the namespaces of a process that the lab did not start.
    Foreign(ProcessId),
}

/// Starts the first process of a PID namespace, which sees its own processes in /proc. The calling
/// thread is where the process shall be. It ends when its standard input does, and the kernel ends
/// the others with it.
pub(crate) fn start(steps: Before) -> io::Result<Child> {
    unshare(CloneFlags::CLONE_NEWPID)?;
    let mut cat = Command::new("cat");
    before(&mut cat, Before { ignore_children: true, mount_proc: true, ..steps });
    keeper(&mut cat)
}

/// Moves the calling thread into the namespaces of `process`, and the children that it starts into
/// its PID namespace if `with_processes`. `proc` shows the process under its number.
///
/// The working directory stays if it is there too and `keeps_directory`; else it is /.
pub(crate) fn join(
    process: ProcessId,
    proc: &Path,
    with_processes: bool,
    keeps_directory: bool,
) -> io::Result<()> {
    const KINDS: [(&str, CloneFlags); 4] = [
        ("ipc", CloneFlags::CLONE_NEWIPC),
        ("uts", CloneFlags::CLONE_NEWUTS),
        ("pid", CloneFlags::CLONE_NEWPID),
        ("mnt", CloneFlags::CLONE_NEWNS),
    ];
    let namespaces = proc.join(process.pid.to_string()).join("ns");
    let mut others = Vec::new();
    for (kind, flag) in KINDS.into_iter().filter(|(kind, _)| with_processes || *kind != "pid") {
        let own = fs::metadata(format!("/proc/thread-self/ns/{kind}")).map(|own| own.ino()).ok();
        let file = File::open(namespaces.join(kind))?;
        if own != Some(file.metadata()?.ino()) {
            others.push((file, flag));
        }
    }
    if !process.runs_in(proc) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "its first process has ended"));
    }
    let directory = env::current_dir().ok().filter(|_| keeps_directory);
    // A thread that shares its working directory may not change its mount namespace.
    unshare(CloneFlags::CLONE_FS)?;
    for (file, flag) in others {
        setns(file, flag)?;
    }
    if let Some(directory) = directory {
        let _ = env::set_current_dir(directory);
    }
    Ok(())
}
