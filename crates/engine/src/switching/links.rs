//! The link state of interfaces.

use crate::port::Port;
use fastpath_switch::port::LinkState;
use fastpath_sys::{interface, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

/// Reads the link state of the interfaces behind ports.
///
/// It knows an interface of the network namespace of the thread that created it by its index, so
/// that the interface may be renamed. A TAP device that was moved into another namespace is asked
/// through its descriptor. Its link is then up while the interface is up.
#[derive(Debug)]
pub struct LinkWatch {
    /// A socket of the namespace, for queries.
    socket: UnixDatagram,
    interfaces: Vec<WatchedLink>,
}

#[derive(Debug)]
struct WatchedLink {
    port: u32,
    index: u32,
    hw_addr: Option<[u8; 6]>,
    /// See [`Port::link_fd`].
    link: Option<OwnedFd>,
}

impl LinkWatch {
    /// Watches the interfaces of these ports: port number, the open port, interface name.
    ///
    /// # Errors
    /// The operating system refuses a descriptor, or an interface does not exist.
    pub fn new<'a>(ports: impl IntoIterator<Item = (u32, &'a dyn Port, &'a str)>) -> io::Result<LinkWatch> {
        let mut watch = LinkWatch { socket: interface::any_socket()?, interfaces: Vec::new() };
        ports.into_iter().try_for_each(|(port, open, name)| watch.add(port, open, name))?;
        Ok(watch)
    }

    /// Watches the interface of a further port.
    ///
    /// # Errors
    /// The operating system refuses a descriptor, or the interface does not exist.
    pub fn add(&mut self, port: u32, open: &dyn Port, name: &str) -> io::Result<()> {
        let link = open.link_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        let hw_addr = interface::hw_addr(self.socket.as_fd(), name).ok();
        self.interfaces.push(WatchedLink { port, index: interface::index_of(name)?, hw_addr, link });
        Ok(())
    }

    /// Watches the interface of a port no longer.
    pub fn remove(&mut self, port: u32) {
        self.interfaces.retain(|interface| interface.port != port);
    }

    /// Returns the current state of every link.
    pub fn states(&self) -> impl Iterator<Item = (u32, LinkState)> {
        self.interfaces.iter().map(|watched| {
            let is_up = self.asks(watched, interface::is_running);
            (watched.port, if is_up { LinkState::Up } else { LinkState::Down })
        })
    }

    /// Returns the index of a port's interface.
    pub fn index(&self, number: u32) -> Option<u32> {
        Some(self.interfaces.iter().find(|interface| interface.port == number)?.index)
    }

    /// Returns whether a port's interface is up, with a carrier or without.
    pub fn is_up(&self, number: u32) -> Option<bool> {
        let watched = self.interfaces.iter().find(|interface| interface.port == number)?;
        Some(self.asks(watched, interface::is_up))
    }

    /// Asks for the state of an interface; through the descriptor of its port if it is in another
    /// network namespace.
    fn asks(&self, watched: &WatchedLink, question: fn(BorrowedFd<'_>, u32) -> io::Result<bool>) -> bool {
        match question(self.socket.as_fd(), watched.index) {
            Ok(answer) => answer,
            Err(_) => watched.link.as_ref().is_some_and(|fd| poll::is_writable(fd.as_fd())),
        }
    }

    /// Returns the hardware address that a port's interface had at first.
    pub fn hw_addr(&self, number: u32) -> Option<[u8; 6]> {
        self.interfaces.iter().find(|interface| interface.port == number)?.hw_addr
    }
}
