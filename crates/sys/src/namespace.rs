//! How namespaces are nested (ioctl_nsfs(2)).

use crate::check;
use libc::c_ulong;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// `NS_GET_PARENT` of linux/nsfs.h: `_IO(0xb7, 2)`.
const NS_GET_PARENT: c_ulong = 0xb702;

/// Opens the namespace around a PID or user namespace.
///
/// # Errors
/// It is not visible from the namespace of this process, or `namespace` is another file.
pub fn parent(namespace: &File) -> io::Result<File> {
    // SAFETY: no pointers; the result is a descriptor or an error.
    let parent = check(unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT as _) })?;
    // SAFETY: the descriptor was just created and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(parent) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_a_namespace_has_no_parent() {
        assert!(parent(&File::open("/proc/self/status").unwrap()).is_err());
    }
}
