//! One engine per interface: a claim that every process of a network namespace can see, and that
//! ends with the process that made it.
//!
//! A claim is a listening Unix socket with an abstract name (unix(7)). Abstract names belong to a
//! network namespace, as interface indices do. They leave no file behind and reveal the listening
//! process.

use super::OpenError;
use fastpath_sys::listening_process;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The right to use an interface, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    /// Kept open, never accepted from. A waiting connection still knows its peer.
    listener: UnixListener,
}

impl Claim {
    /// Claims the interface with this index in the thread's network namespace.
    pub(super) fn take(name: &str, index: u32) -> Result<Claim, OpenError> {
        let failed = |source| OpenError::from_os(name, "claiming the interface", source);
        let label = format!("fastpath/{index}");
        let address = SocketAddr::from_abstract_name(&label).map_err(failed)?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Claim { listener }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let process = listening_process(label.as_bytes());
                Err(OpenError::InUse { name: name.to_owned(), process })
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// A socket of the interface's namespace, for queries about the interface.
impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_claim_names_the_first_ones_process_and_a_dropped_claim_is_free() {
        // No interface has this index, which a claim does not check.
        let index = u32::MAX - std::process::id();
        let claim = Claim::take("eth0", index).unwrap();
        let error = Claim::take("eth0", index).unwrap_err().to_string();
        let expected =
            format!("port eth0: in use by another engine (process {}): stop that first", std::process::id());
        assert_eq!(error, expected);
        drop(claim);
        assert!(Claim::take("eth0", index).is_ok());
    }
}
