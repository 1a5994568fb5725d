//! The link state of interfaces.

use crate::port::Port;
use fastpath_switch::port::LinkState;
use fastpath_sys::{interface, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
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
        let socket = interface::any_socket()?;
        let watch = |(port, open, name): (u32, &dyn Port, &str)| {
            let link = open.link_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
            let hw_addr = interface::hw_addr(socket.as_fd(), name).ok();
            Ok(WatchedLink { port, index: interface::index_of(name)?, hw_addr, link })
        };
        let interfaces = ports.into_iter().map(watch).collect::<io::Result<_>>()?;
        Ok(LinkWatch { socket, interfaces })
    }

    /// Returns the current state of every link.
    pub fn states(&self) -> impl Iterator<Item = (u32, LinkState)> {
        self.interfaces.iter().map(|WatchedLink { port, index, link, .. }| {
            let is_up = match interface::is_running(self.socket.as_fd(), *index) {
                Ok(is_running) => is_running,
                Err(_) => link.as_ref().is_some_and(|fd| poll::is_writable(fd.as_fd())),
            };
            (*port, if is_up { LinkState::Up } else { LinkState::Down })
        })
    }

    /// Returns the hardware address that a port's interface had at first.
    pub fn hw_addr(&self, number: u32) -> Option<[u8; 6]> {
        self.interfaces.iter().find(|interface| interface.port == number)?.hw_addr
    }
}
