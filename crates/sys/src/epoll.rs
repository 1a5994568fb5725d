//! Waiting for many descriptors at once (epoll(7)). The cost depends on how many are readable, not
//! on how many there are. Level-triggered: a descriptor is reported as long as it is readable.

use super::check;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Descriptors reported by one call. The next call reports others first.
const BATCH: usize = 64;

/// A set of descriptors, each with a number.
pub struct Epoll {
    fd: OwnedFd,
    events: [libc::epoll_event; BATCH],
}

impl Epoll {
    /// Returns an instance that waits for nothing yet.
    ///
    /// # Errors
    /// The limit of open files is reached (epoll_create1(2)).
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just created and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Epoll { fd, events: [libc::epoll_event { events: 0, u64: 0 }; BATCH] })
    }

    /// Adds a descriptor, reported by `number`. It leaves the set when it is closed.
    pub fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        let operation = libc::EPOLL_CTL_ADD;
        // SAFETY: `event` lives through the call, which only reads it.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) })?;
        Ok(())
    }

    /// Has a descriptor of the set reported by `number` from now on: as long as it is readable, and
    /// with `writable` also as long as it can be written.
    pub fn change(&self, fd: BorrowedFd<'_>, number: u64, writable: bool) -> io::Result<()> {
        let events = if writable { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        let mut event = libc::epoll_event { events: events as u32, u64: number };
        let operation = libc::EPOLL_CTL_MOD;
        // SAFETY: `event` lives through the call, which only reads it.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) })?;
        Ok(())
    }

    /// Removes a descriptor, if it is in the set.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        let operation = libc::EPOLL_CTL_DEL;
        // SAFETY: this operation takes no event (since Linux 2.6.9). It fails only if the
        // descriptor is not there.
        let _: c_int =
            unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd.as_raw_fd(), std::ptr::null_mut()) };
    }

    /// Returns the numbers of descriptors that are readable or broken now.
    pub fn ready(&mut self) -> impl Iterator<Item = u64> + '_ {
        let (fd, room) = (self.fd.as_raw_fd(), BATCH as c_int);
        // SAFETY: the kernel writes at most `BATCH` events to `events`, which has room for them; it
        // does not wait.
        let count = unsafe { libc::epoll_wait(fd, self.events.as_mut_ptr(), room, 0) };
        let count = usize::try_from(count).unwrap_or(0);
        self.events[..count].iter().map(|event| event.u64)
    }

    /// As [`Epoll::ready`], after waiting until there are some or `timeout` has passed: one system
    /// call for both, three before Linux 5.11.
    pub fn wait_ready(&mut self, timeout: Duration) -> impl Iterator<Item = u64> + '_ {
        let (fd, room) = (self.fd.as_raw_fd(), BATCH as c_int);
        let limit = timespec(timeout);
        let (events, none) = (self.events.as_mut_ptr(), std::ptr::null::<libc::sigset_t>());
        let call = libc::SYS_epoll_pwait2;
        // SAFETY: the kernel writes at most `BATCH` events to `events`, which has room for them,
        // and reads a timeout that outlives the call; no signal mask.
        let count = unsafe { libc::syscall(call, fd, events, room, &raw const limit, none, 0usize) };
        let is_missing = count < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS);
        let count = if is_missing && self.wait(timeout) {
            self.ready().count()
        } else {
            usize::try_from(count).unwrap_or(0)
        };
        self.events[..count].iter().map(|event| event.u64)
    }

    /// Waits until a descriptor is readable or broken, or `timeout` has passed. Returns false on a
    /// timeout.
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut fd = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = timespec(timeout);
        // SAFETY: one entry, and a timeout that outlives the call; no signal mask. (epoll_wait
        // counts in milliseconds, and epoll_pwait2 is missing before Linux 5.11.)
        let ready = unsafe { libc::ppoll(&raw mut fd, 1, &raw const timeout, std::ptr::null()) };
        ready > 0
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs().min(i32::MAX as u64) as _, tv_nsec: time.subsec_nanos().into() }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
