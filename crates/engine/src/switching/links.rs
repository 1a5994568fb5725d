//! The link state of interfaces.

use crate::sys::interface;
use fastpath_switch::port::LinkState;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

/// Reads the link state of the interfaces behind ports, in the network namespace of the thread that
/// created it.
#[derive(Debug)]
pub struct LinkWatch {
    /// A socket of the namespace, for queries.
    socket: UdpSocket,
    interfaces: Vec<(u32, String)>,
}

impl LinkWatch {
    /// For the interfaces with these port numbers and names.
    ///
    /// The operating system refuses a socket.
    pub fn new(interfaces: Vec<(u32, String)>) -> io::Result<LinkWatch> {
        Ok(LinkWatch { socket: UdpSocket::bind("127.0.0.1:0")?, interfaces })
    }

    /// Returns the current state of every link.
    pub fn states(&self) -> impl Iterator<Item = (u32, LinkState)> {
        self.interfaces.iter().map(|(number, name)| {
            let is_running = interface::is_running(self.socket.as_fd(), name).unwrap_or(false);
            (*number, if is_running { LinkState::Up } else { LinkState::Down })
        })
    }

    /// Returns the hardware address of a port's interface.
    pub fn hw_addr(&self, number: u32) -> Option<[u8; 6]> {
        let (_, name) = self.interfaces.iter().find(|(other, _)| *other == number)?;
        interface::hw_addr(self.socket.as_fd(), name).ok()
    }
}
