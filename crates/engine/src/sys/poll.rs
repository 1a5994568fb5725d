//! A bell for who waits on descriptors.

use super::{check, check_len};
use std::ffi::c_uint;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A bell that wakes a poller from another thread (eventfd(2)).
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::eventfd(0 as c_uint, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Rings. The bell stays readable until [`Bell::silence`].
    pub(crate) fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`. It fails only if the counter is full: then it rings already.
        let _ = check_len(unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) });
    }

    /// Makes the bell unreadable again. True if it rang.
    pub(crate) fn silence(&self) -> bool {
        let mut count = 0u64;
        // SAFETY: eight bytes are written to `count`. It fails only if the bell did not ring.
        check_len(unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) }).is_ok()
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
