//! Waiting with ppoll(2) until descriptors become readable, a doorbell rings, or time passes; and
//! asking with poll(2) whether a descriptor is writable.

use super::{check, check_len};
use std::ffi::c_uint;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A set of descriptors to wait on.
#[derive(Default)]
pub struct PollSet {
    fds: Vec<libc::pollfd>,
}

impl PollSet {
    /// Adds a descriptor to wait on until it is readable. It must stay open while this set is used.
    /// A closed one only ends every wait at once.
    pub fn add(&mut self, fd: BorrowedFd<'_>) {
        self.fds.push(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    }

    /// Waits until one of the descriptors is readable or broken, a signal arrives, or `timeout` has
    /// passed. Returns true if a descriptor ended the wait.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let count = self.fds.len() as libc::nfds_t;
        // SAFETY: `fds` holds `count` entries and `timeout` outlives the call; no signal mask is
        // given.
        let ready =
            unsafe { libc::ppoll(self.fds.as_mut_ptr(), count, &raw const timeout, std::ptr::null()) };
        ready > 0
    }
}

/// Returns whether a descriptor is writable now.
pub fn is_writable(fd: BorrowedFd<'_>) -> bool {
    let mut one = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry, which lives through the call. The call does not wait.
    let ready = unsafe { libc::poll(&raw mut one, 1, 0) };
    ready > 0 && one.revents & (libc::POLLOUT | libc::POLLERR) == libc::POLLOUT
}

/// A doorbell that wakes a poller from another thread (eventfd(2)).
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// Returns a bell that has not been rung.
    ///
    /// # Errors
    /// The limit of open files is reached (eventfd(2)).
    pub fn new() -> io::Result<Bell> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::eventfd(0 as c_uint, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor was just created and nothing else owns it.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Rings. The doorbell stays readable until [`Bell::silence`].
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`. It fails only if the counter is full; then it
        // rings already.
        let _ = check_len(unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) });
    }

    /// Makes the doorbell unreadable again. Returns true if it rang.
    pub fn silence(&self) -> bool {
        let mut count = 0u64;
        // SAFETY: eight bytes are written to `count`. It fails only if the doorbell did not ring.
        check_len(unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) }).is_ok()
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
