//! Network namespaces held by descriptor, and the user namespace that replaces root privileges.
//!
//! A thread that joins another network namespace stays there, so work inside a namespace runs on
//! its own thread ([`Namespace::within`]). Sockets opened there keep their namespace.

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Gid, Uid};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

/// How often, and at which interval, this process waits for the end of its other threads.
const THREAD_WAITS: u32 = 100;
const THREAD_WAIT: Duration = Duration::from_millis(1);

/// A network namespace. The kernel removes it with its last descriptor, process and socket.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    inode: u64,
}

/// The system does not permit namespaces. `fastpath replay` works without them.
#[derive(Debug, thiserror::Error)]
#[error("network namespaces are not permitted here: {step}: {source}")]
pub struct NotPermitted {
    /// The refused step.
    pub step: &'static str,
    /// The kernel's error.
    pub source: io::Error,
}

impl Namespace {
    /// Makes a namespace with nothing but a loopback interface that is down.
    pub fn new() -> Result<Namespace, NotPermitted> {
        let made = thread::scope(|scope| {
            let maker = scope.spawn(|| -> Result<File, NotPermitted> {
                unshare(CloneFlags::CLONE_NEWNET).map_err(|e| refused("unshare(CLONE_NEWNET)", e.into()))?;
                File::open("/proc/thread-self/ns/net")
                    .map_err(|e| refused("opening /proc/thread-self/ns/net", e))
            });
            maker.join().expect("making a namespace does not panic")
        })?;
        Namespace::of(made)
    }

    /// Opens the namespace of another process.
    pub fn of_process(process: u32) -> Result<Namespace, NotPermitted> {
        let file = File::open(format!("/proc/{process}/ns/net"));
        Namespace::of(file.map_err(|e| refused("opening another process' namespace", e))?)
    }

    fn of(file: File) -> Result<Namespace, NotPermitted> {
        let inode = file.metadata().map_err(|e| refused("reading the namespace's inode", e))?.ino();
        Ok(Namespace { file, inode })
    }

    /// Returns the inode that identifies it under `/proc/<pid>/ns/net`.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns the descriptor's number in this process.
    pub fn raw_fd(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Returns the descriptor that holds it.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Runs `work` on a thread inside the namespace and waits for it. A panic in `work` is
    /// propagated.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        within_file(&self.file, work)
    }
}

/// Runs `work` on a thread inside the network namespace that `file` is, and waits for it.
pub(crate) fn within_file<T: Send>(file: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| -> io::Result<T> {
            setns(file.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Makes sure that this process may create network namespaces. Without the privilege it moves into
/// a new user namespace, in which it is root.
///
/// The kernel allows the move only while the process has a single thread.
pub fn gain_privilege() -> Result<Privilege, NotPermitted> {
    if Namespace::new().is_ok() {
        return Ok(Privilege::Own);
    }
    let (uid, gid) = (Uid::effective(), Gid::effective());
    own_users().map_err(|e| refused("unshare(CLONE_NEWUSER)", e.into()))?;
    // user_namespaces(7): an unprivileged process may map only itself, and only without setgroups.
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {uid} 1")),
        ("/proc/self/gid_map", format!("0 {gid} 1")),
    ] {
        fs::write(file, text).map_err(|e| refused("mapping the user into its own namespace", e))?;
    }
    Namespace::new().map(|_| Privilege::UserNamespace)
}

/// Moves this process into a new user namespace.
fn own_users() -> nix::Result<()> {
    // A thread that was waited for counts until the kernel has removed it, a moment later.
    for _ in 0..THREAD_WAITS {
        match unshare(CloneFlags::CLONE_NEWUSER) {
            Err(Errno::EINVAL) => thread::sleep(THREAD_WAIT),
            result => return result,
        }
    }
    unshare(CloneFlags::CLONE_NEWUSER)
}

/// The origin of the privilege to make namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privilege {
    /// The process had it already.
    Own,
    /// The process is root in its own user namespace.
    UserNamespace,
}

fn refused(step: &'static str, source: io::Error) -> NotPermitted {
    NotPermitted { step, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn a_namespace_has_a_loopback_only_and_goes_with_its_value() {
        let Ok(namespace) = Namespace::new() else {
            return skip("a_namespace_has_a_loopback_only_and_goes_with_its_value", "no namespaces here");
        };
        let inside = namespace.within(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
        let names: Vec<&str> =
            inside.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
        assert_eq!(names, ["lo"]);
        assert_ne!(namespace.inode(), fs::metadata("/proc/self/ns/net").unwrap().ino());
    }

    #[test]
    fn the_calling_thread_stays_where_it_was() {
        let Ok(namespace) = Namespace::new() else {
            return skip("the_calling_thread_stays_where_it_was", "no namespaces here");
        };
        let here = || fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let before = here();
        assert_eq!(namespace.within(here).unwrap(), namespace.inode());
        assert_eq!(here(), before);
    }
}
