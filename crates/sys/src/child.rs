//! Steps of a child process between fork and exec.

use crate::check;
use libc::{MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, c_ulong};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

const USUAL: c_ulong = MS_NOSUID | MS_NODEV | MS_NOEXEC;
/// The calls of mount(2) for a new /proc in which only the settings of the network namespace are
/// writable, as `proc:mixed` of lxc.container.conf(5).
const PROC: [(&CStr, &CStr, Option<&CStr>, c_ulong); 6] = [
    (c"proc", c"/proc", Some(c"proc"), USUAL),
    (c"/proc/sys", c"/proc/sys", None, MS_BIND),
    (c"/proc/sys/net", c"/proc/sys/net", None, MS_BIND),
    (c"", c"/proc/sys", None, MS_BIND | MS_REMOUNT | MS_RDONLY | USUAL),
    (c"/proc/sysrq-trigger", c"/proc/sysrq-trigger", None, MS_BIND),
    (c"", c"/proc/sysrq-trigger", None, MS_BIND | MS_REMOUNT | MS_RDONLY | USUAL),
];

/// Steps of a child before it executes its program.
#[derive(Debug, Default)]
pub struct Before {
    /// Move into the cgroup with this file `cgroup.procs`.
    pub cgroup: Option<OwnedFd>,
    /// Let the kernel reap the child's children, as the first process of a PID namespace must.
    pub ignore_children: bool,
    /// End the child (SIGKILL) when the thread that starts it ends.
    pub end_with_parent: bool,
    /// Mount the processes of the child's PID namespace on /proc, if that is permitted.
    pub mount_proc: bool,
}

/// Makes the child of `command` do these steps first. If one fails, `spawn` returns its error.
pub fn before(command: &mut Command, steps: Before) -> &mut Command {
    let steps = move || -> io::Result<()> {
        if let Some(cgroup) = &steps.cgroup {
            // "0" means the process that writes (cgroups(7)).
            // SAFETY: the bytes live through the call, which only reads them.
            check(unsafe { libc::write(cgroup.as_raw_fd(), c"0".as_ptr().cast(), 1) } as i32)?;
        }
        if steps.ignore_children {
            // SAFETY: SIG_IGN is not a function that could be called.
            if unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        if steps.end_with_parent {
            // SAFETY: no pointers.
            check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        }
        if steps.mount_proc {
            for (source, target, kind, flags) in PROC {
                let kind = kind.map_or(ptr::null(), CStr::as_ptr);
                // SAFETY: the strings are constants.
                let done = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, ptr::null()) };
                if done < 0 {
                    // A refusal of the first is not an error: then /proc stays the machine's.
                    break;
                }
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only. It does not allocate and takes no lock, so it
    // may run in the child of a process with several threads (signal-safety(7)).
    unsafe { command.pre_exec(steps) }
}
