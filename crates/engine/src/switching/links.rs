//! Whether interfaces have a link.

use crate::sys::interface;
use fastpath_switch::port::Link;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

/// Watches the interfaces behind ports, in the network namespace of the thread that made it.
#[derive(Debug)]
pub struct LinkWatch {
    /// Any socket of the namespace will do to ask.
    socket: UdpSocket,
    interfaces: Vec<(u32, String)>,
}

impl LinkWatch {
    /// A watch of the interfaces with these port numbers and names.
    ///
    /// # Errors
    /// The system has no socket left.
    pub fn new(interfaces: Vec<(u32, String)>) -> io::Result<LinkWatch> {
        Ok(LinkWatch { socket: UdpSocket::bind("127.0.0.1:0")?, interfaces })
    }

    /// How every link is now.
    pub fn states(&self) -> impl Iterator<Item = (u32, Link)> {
        self.interfaces.iter().map(|(number, name)| {
            let is_running = interface::is_running(self.socket.as_fd(), name).unwrap_or(false);
            (*number, if is_running { Link::Up } else { Link::Down })
        })
    }

    /// The hardware address of a port's interface.
    pub fn hw_addr(&self, number: u32) -> Option<[u8; 6]> {
        let (_, name) = self.interfaces.iter().find(|(other, _)| *other == number)?;
        interface::hw_addr(self.socket.as_fd(), name).ok()
    }
}
