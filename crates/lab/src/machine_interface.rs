//! What is known of an interface of this machine before it is opened.

use fastpath_sys::interface;
use fastpath_wire::MacAddr;
use std::io;
use std::os::fd::AsFd;

/// An interface of the calling thread's network namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineInterface {
    /// Its hardware address.
    pub mac: MacAddr,
    /// The largest packet that it carries, bytes.
    pub mtu: usize,
}

impl MachineInterface {
    /// Looks an interface up.
    ///
    /// # Errors
    /// There is none of this name, or it has no hardware address.
    pub fn named(name: &str) -> io::Result<MachineInterface> {
        let socket = interface::any_socket()?;
        let mac = MacAddr(interface::hw_addr(socket.as_fd(), name)?);
        Ok(MachineInterface { mac, mtu: interface::mtu(socket.as_fd(), name)? })
    }
}
