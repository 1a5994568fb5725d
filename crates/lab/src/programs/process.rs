//! Processes identified beyond their number, which the kernel gives to another process later.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// The identity of a process: no two processes since boot have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    /// Its number.
    pub(crate) pid: i32,
    /// When it started, clock ticks since boot (field 22 of proc_pid_stat(5)).
    pub(crate) started: u64,
}

impl ProcessId {
    /// Returns that of this process.
    pub(crate) fn own() -> io::Result<ProcessId> {
        ProcessId::of(i32::try_from(std::process::id()).map_err(io::Error::other)?)
    }

    /// Returns that of the process which has the number now.
    pub(crate) fn of(pid: i32) -> io::Result<ProcessId> {
        Ok(ProcessId { pid, started: started(pid)? })
    }

    /// Whether the process runs. `proc` shows processes as this process numbers them.
    pub(crate) fn runs_in(&self, proc: &Path) -> bool {
        Stat::read(proc, self.pid).is_ok_and(|stat| stat.started == self.started && !stat.has_ended)
    }

    /// Opens the process; `None` if it has ended.
    pub(crate) fn open(&self) -> io::Result<Option<Process>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Process { descriptor },
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Read after opening: the descriptor refers to the process with this start time, or to one
        // that has ended since.
        Ok(started(self.pid).is_ok_and(|started| started == self.started).then_some(process))
    }
}

/// A process, by descriptor. Its number may be another's after it has ended; the descriptor never
/// is.
#[derive(Debug)]
pub(crate) struct Process {
    descriptor: OwnedFd,
}

impl Process {
    /// Opens a child that has not been waited for.
    pub(crate) fn of_child(child: &Child) -> io::Result<Process> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a number");
        Ok(Process { descriptor: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Waits until one of `processes` has ended, `closed` has no writer any more, or `timeout` is
    /// over. Returns whether `closed` has no writer.
    pub(crate) fn wait_any(
        processes: &[&Process],
        closed: BorrowedFd<'_>,
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        let descriptors = processes.iter().map(|process| process.descriptor.as_fd());
        let mut wanted: Vec<PollFd> =
            std::iter::once(closed).chain(descriptors).map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // Rounded up: a wait that ends early would be repeated without end.
        let round_up = |wait: Duration| {
            PollTimeout::try_from(wait + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
        };
        match poll(&mut wanted, timeout.map_or(PollTimeout::NONE, round_up)) {
            Ok(_) => Ok(wanted[0].any().unwrap_or(true)),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal. A process that has ended is not an error.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.descriptor, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Waits until it has ended, for at most `timeout`. Returns whether it has.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let mut wanted = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut wanted, PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX))? > 0)
    }
}

/// What the kernel says of a process (proc_pid_stat(5)).
struct Stat {
    started: u64,
    /// It has ended, and its parent has not waited for it.
    has_ended: bool,
}

impl Stat {
    fn read(proc: &Path, pid: i32) -> io::Result<Stat> {
        let stat = fs::read_to_string(proc.join(format!("{pid}/stat")))?;
        // The second field is the name in parentheses, which may contain any byte.
        let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        let unreadable = || io::Error::other(format!("/proc/{pid}/stat has no start time"));
        let started = fields.get(22 - 3).and_then(|field| field.parse().ok()).ok_or_else(unreadable)?;
        Ok(Stat { started, has_ended: matches!(fields[0], "Z" | "X" | "x") })
    }
}

fn started(pid: i32) -> io::Result<u64> {
    Stat::read(Path::new("/proc"), pid).map(|stat| stat.started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_number_that_another_process_has_by_now_is_not_opened() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let id = ProcessId { pid, started: started(pid).unwrap() };
        let process = id.open().unwrap().expect("it runs");
        assert!(id.runs_in(Path::new("/proc")));
        // The number is the same, the process is not.
        assert!(ProcessId { started: id.started + 1, ..id }.open().unwrap().is_none());
        assert!(!process.wait(Duration::ZERO).unwrap());
        process.signal(Signal::KILL).unwrap();
        assert!(process.wait(Duration::from_secs(60)).unwrap());
        assert!(!id.runs_in(Path::new("/proc")), "it has not been waited for yet");
        child.wait().unwrap();
        assert!(id.open().unwrap().is_none());
        process.signal(Signal::KILL).unwrap();
    }
}
