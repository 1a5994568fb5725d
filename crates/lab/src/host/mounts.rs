//! What a program in a host sees: the machine's files, except those named here, and a host name
//! (UTS namespace, uts_namespaces(7)).
//!
//! Every program has a mount namespace of its own. Later mounts on the machine appear in it; its
//! own mounts never leave it. A container and a host with `pid_namespace` have one mount namespace
//! for all programs, that of their first process (`first.rs`).
//!
//! | path | in a host |
//! |---|---|
//! | /etc/hosts, /etc/resolv.conf | those of the lab (`names.rs`) |
//! | `binds` and `private` of the spec | the source, and an empty directory of the host |
//! | /sys | a sysfs of the host's network namespace, read-only except its interfaces (/sys/devices/virtual/net) |
//! | what is mounted below /sys (cgroups, tracing, …) | the machine's |
//! | /proc/sys | read-only, except /proc/sys/net, which belongs to the network namespace |
//! | /proc/sysrq-trigger | read-only |
//! | /proc | if the programs are in a PID namespace (`scope.rs`): that of the namespace |
//!
//! These are the rules of `proc:mixed` and `sys:mixed` in lxc.container.conf(5). They keep programs
//! from changing the machine by accident. Root can undo them.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::sethostname;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const NONE: Option<&str> = None;
/// The interfaces of a network namespace that have no hardware.
const INTERFACES: &str = "/sys/devices/virtual/net";

/// What a host sees that others do not.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct View {
    /// The name of the host; `None`: that of the machine.
    pub(crate) hostname: Option<String>,
    /// Files and directories over others, in the order of mounting.
    pub(crate) places: Vec<Placed>,
    /// Its programs get a /proc of their own, and that of the machine stays visible to them in the
    /// directory of the lab, for `fastpath lab exec`.
    pub(crate) keeps_proc: bool,
}

/// A file or directory that programs see elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) is_read_only: bool,
}

/// Moves the calling thread into a mount namespace of its own. Later mounts on the machine appear
/// in it.
pub(crate) fn own_mounts() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Slave, not private: later mounts on the machine still propagate here.
    Ok(mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE)?)
}

/// Moves the calling thread, which is in the host's network namespace, into new mount and UTS
/// namespaces with what the host sees. /proc stays visible at `proc`, for programs that get a /proc
/// of their own later.
pub(crate) fn enter(view: &View, proc: Option<&Path>) -> io::Result<()> {
    own_mounts()?;
    if let Some(name) = &view.hostname {
        unshare(CloneFlags::CLONE_NEWUTS)?;
        sethostname(name)?;
    }
    for Placed { source, target, is_read_only } in &view.places {
        let placed = || -> io::Result<()> {
            mount(Some(source), target, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?;
            if *is_read_only {
                make_read_only(target)?;
            }
            Ok(())
        };
        placed().map_err(|error| at(&target.display(), &error))?;
    }
    if let Some(proc) = proc {
        fs::create_dir_all(proc)?;
        mount(Some("/proc"), proc, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?;
    }
    mount_sys().map_err(|source| at(&"/sys", &source))?;
    for (path, writable) in [("/proc/sys", Some("/proc/sys/net")), ("/proc/sysrq-trigger", None)] {
        protect(path, writable).map_err(|source| at(&path, &source))?;
    }
    Ok(())
}

/// Mounts the sysfs of the thread's network namespace. Where that is not permitted, the machine's
/// becomes read-only.
fn mount_sys() -> io::Result<()> {
    if !Path::new(INTERFACES).exists() {
        return Ok(());
    }
    // Opened before they are covered.
    let below = File::open("/proc/thread-self/mountinfo").and_then(io::read_to_string)?;
    let below: Vec<(&str, File)> =
        mounts_on_sys(&below).into_iter().filter_map(|path| Some((path, File::open(path).ok()?))).collect();
    // sysfs may be mounted in a user namespace only with the restrictions of the sysfs outside.
    let usual = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let own = [usual, usual | MsFlags::MS_RDONLY]
        .into_iter()
        .map(|flags| mount(Some("sysfs"), "/sys", Some("sysfs"), flags, NONE))
        .find(|result| *result != Err(Errno::EPERM));
    match own {
        Some(result) => result?,
        None => return protect("/sys", None),
    }
    protect("/sys", Some(INTERFACES))?;
    for (path, root) in below {
        if Path::new(path).is_dir() {
            let root = format!("/proc/thread-self/fd/{}", root.as_raw_fd());
            mount(Some(&*root), path, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?;
        }
    }
    Ok(())
}

/// Returns where file systems other than sysfs are mounted on /sys, from the text of mountinfo
/// (proc_pid_mountinfo(5)).
fn mounts_on_sys(mountinfo: &str) -> Vec<&str> {
    let mounts = || {
        mountinfo.lines().filter_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut fields = place.split(' ');
            let (id, parent) = (fields.next()?, fields.next()?);
            Some((id, parent, fields.nth(2)?, kind.split(' ').next()?))
        })
    };
    // The last mount on a path covers the others.
    let Some((sys, ..)) = mounts().rfind(|(_, _, path, _)| *path == "/sys") else {
        return Vec::new();
    };
    let below = mounts().filter(|(_, parent, _, kind)| *parent == sys && *kind != "sysfs");
    below.map(|(_, _, path, _)| path).collect()
}

/// Makes `path` read-only in this mount namespace, except `writable` below it, if it exists.
fn protect(path: &str, writable: Option<&str>) -> io::Result<()> {
    if !Path::new(path).exists() {
        return Ok(());
    }
    for path in std::iter::once(path).chain(writable) {
        mount(Some(path), path, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?;
    }
    make_read_only(Path::new(path))
}

/// Makes the mount at `path` read-only, but not the mounts below it.
fn make_read_only(path: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | restrictions(path)?;
    Ok(mount(NONE, path, NONE, flags, NONE)?)
}

/// Returns the restrictions of the mount at `path`. A user namespace must keep them.
fn restrictions(path: &Path) -> io::Result<MsFlags> {
    let flags = statvfs(path)?.flags();
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
    ];
    Ok(pairs.into_iter().filter(|(has, _)| flags.contains(*has)).map(|(_, flag)| flag).collect())
}

fn at(path: &dyn Display, source: &io::Error) -> io::Error {
    io::Error::new(source.kind(), format!("mounting {path}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_on_the_uppermost_sys_are_found() {
        let text = "\
21 1 0:20 / /sys rw,relatime shared:2 - sysfs sysfs rw
30 21 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
31 30 0:31 / /sys/fs/cgroup/inner rw - tmpfs tmpfs rw
32 1 0:32 / /run rw master:1 propagate_from:2 - tmpfs tmpfs rw
";
        assert_eq!(mounts_on_sys(text), ["/sys/fs/cgroup"]);
        let covered = format!(
            "{text}\
40 21 0:40 / /sys rw - sysfs sysfs rw
41 40 0:40 /devices/virtual/net /sys/devices/virtual/net rw - sysfs sysfs rw
42 40 0:42 / /sys/kernel/tracing rw - tracefs tracefs rw
"
        );
        assert_eq!(mounts_on_sys(&covered), ["/sys/kernel/tracing"]);
        assert!(mounts_on_sys("").is_empty());
    }
}
