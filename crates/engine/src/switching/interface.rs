//! Interfaces of bridges: opened as ports and set up, as a switch daemon does.

use crate::port::{AfPacket, OpenError, Port, TapPort};
use fastpath_sys::interface;
use std::io;
use std::os::fd::AsFd;

/// Opens an interface of this machine that exists, and sets it up.
///
/// # Errors
/// See [`OpenError`].
pub fn open_existing(name: &str) -> Result<Box<dyn Port>, OpenError> {
    // A failure to set it up shows in its link state.
    let _ = interface::any_socket().and_then(|any| interface::set_up(any.as_fd(), name));
    Ok(Box::new(AfPacket::open(name)?))
}

/// Makes an interface for programs of this machine. It is down and has no addresses until the user
/// sets it up.
///
/// # Errors
/// See [`OpenError`].
pub fn open_internal(name: &str) -> Result<Box<dyn Port>, OpenError> {
    Ok(Box::new(TapPort::open(name)?))
}

/// Sets the hardware address and the MTU of an interface where they differ from these.
///
/// # Errors
/// The interface is gone, or its driver refuses.
pub fn adjust(name: &str, hw_addr: Option<[u8; 6]>, mtu: Option<u32>) -> io::Result<()> {
    let any = interface::any_socket()?;
    if let Some(address) =
        hw_addr.filter(|wanted| interface::hw_addr(any.as_fd(), name).ok() != Some(*wanted))
    {
        interface::set_hw_addr(any.as_fd(), name, address)?;
    }
    if let Some(mtu) = mtu.map(|mtu| mtu as usize)
        && interface::mtu(any.as_fd(), name)? != mtu
    {
        interface::set_mtu(any.as_fd(), name, mtu)?;
    }
    Ok(())
}

/// Returns the hardware address and the MTU of an interface.
///
/// # Errors
/// There is no such interface in the network namespace of the thread.
pub fn properties(name: &str) -> io::Result<([u8; 6], usize)> {
    let any = interface::any_socket()?;
    Ok((interface::hw_addr(any.as_fd(), name)?, interface::mtu(any.as_fd(), name)?))
}
