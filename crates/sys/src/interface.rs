//! Properties of network interfaces by name: index, MTU, queue, receive offloads. ioctl(2) on a
//! socket answers for the socket's namespace, whatever the thread's namespace is now.

use super::check;
use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
/// Large receive offload, as a bit of `ETHTOOL_GFLAGS` (linux/ethtool.h).
pub const FLAG_LRO: u32 = 1 << 15;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
/// Most queues of an interface that are used.
const QUEUES_MAX: u32 = 64;

/// `struct ethtool_channels` of linux/ethtool.h.
#[repr(C)]
struct Channels {
    command: u32,
    counts: [u32; 8],
}

/// `struct ethtool_drvinfo` of linux/ethtool.h.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Returns the index of the interface called `name` in the thread's namespace.
pub fn index_of(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: `name` ends in NUL and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Returns the names of the interfaces of the thread's namespace.
pub fn names() -> Vec<String> {
    // SAFETY: no arguments; the result is null or a list that stays ours until it is freed below.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Vec::new();
    }
    let mut names = Vec::new();
    for place in 0.. {
        // SAFETY: the list ends with an entry that has a null name, and `place` has not passed it.
        let entry = unsafe { &*list.add(place) };
        if entry.if_name.is_null() {
            break;
        }
        // SAFETY: a name in the list is a NUL-terminated string that lives as long as the list.
        let name = unsafe { CStr::from_ptr(entry.if_name) };
        names.push(name.to_string_lossy().into_owned());
    }
    // SAFETY: `list` is from if_nameindex, and nothing borrows from it any more.
    unsafe { libc::if_freenameindex(list) };
    names
}

/// Returns the largest packet above Ethernet that the interface sends, in bytes.
pub fn mtu(socket: BorrowedFd<'_>, name: &str) -> io::Result<usize> {
    let mut request = request(name)?;
    ioctl(socket, libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: the kernel answered SIOCGIFMTU by writing this member.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
}

/// Sets the MTU of an interface.
pub fn set_mtu(socket: BorrowedFd<'_>, name: &str, bytes: usize) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_mtu = bytes.min(i32::MAX as usize) as i32;
    ioctl(socket, libc::SIOCSIFMTU, &mut request)
}

/// Sets how many packets may wait for the device; for a TAP, for its reader.
pub fn set_queue_len(socket: BorrowedFd<'_>, name: &str, packets: u16) -> io::Result<()> {
    let mut request = request(name)?;
    // The kernel reads `ifr_qlen`, which lies where the MTU does.
    request.ifr_ifru.ifru_mtu = packets.into();
    ioctl(socket, libc::SIOCSIFTXQLEN, &mut request)
}

/// Returns the number of receive queues of an interface in the thread's namespace; 1 if the driver
/// does not report it.
pub fn rx_queues(name: &str) -> u32 {
    let Ok(socket) = any_socket() else { return 1 };
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, counts: [0; 8] };
    let Ok(mut request) = request(name) else { return 1 };
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    let found = ioctl(socket.as_fd(), libc::SIOCETHTOOL, &mut request);
    // max_rx, max_tx, max_other, max_combined, rx, tx, other, combined.
    let [.., rx, _, _, combined] = channels.counts;
    found.map_or(1, |()| (rx + combined).clamp(1, QUEUES_MAX))
}

/// Returns the name of the driver of an interface in the thread's namespace.
pub fn driver(name: &str) -> io::Result<String> {
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    ioctl(any_socket()?.as_fd(), libc::SIOCETHTOOL, &mut request)?;
    let text = info.driver.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Opens a socket of the thread's namespace, for queries about interfaces.
pub fn any_socket() -> io::Result<UnixDatagram> {
    UnixDatagram::unbound()
}

/// Returns whether an interface with this index exists in the socket's namespace.
pub fn exists(socket: BorrowedFd<'_>, index: u32) -> bool {
    named(socket, index).is_ok()
}

/// Returns whether the interface with this index is up and has a carrier. An error means that it
/// does not exist in the socket's namespace.
pub fn is_running(socket: BorrowedFd<'_>, index: u32) -> io::Result<bool> {
    has_flags(socket, index, libc::IFF_UP | libc::IFF_RUNNING)
}

/// Returns whether the interface with this index is up. An error means that it does not exist in
/// the socket's namespace.
pub fn is_up(socket: BorrowedFd<'_>, index: u32) -> io::Result<bool> {
    has_flags(socket, index, libc::IFF_UP)
}

fn has_flags(socket: BorrowedFd<'_>, index: u32, flags: c_int) -> io::Result<bool> {
    let mut request = named(socket, index)?;
    ioctl(socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel answered SIOCGIFFLAGS by writing this member.
    Ok(c_int::from(unsafe { request.ifr_ifru.ifru_flags }) & flags == flags)
}

/// Returns whether the interface with this index has a carrier now. (Its flags follow up to a
/// second later.) An error means that it does not exist in the socket's namespace.
pub fn has_carrier(socket: BorrowedFd<'_>, index: u32) -> io::Result<bool> {
    let mut value = EthtoolValue { command: ETHTOOL_GLINK, data: 0 };
    let mut request = named(socket, index)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    ioctl(socket, libc::SIOCETHTOOL, &mut request)?;
    Ok(value.data != 0)
}

/// Returns a request with the current name of the interface with this index.
fn named(socket: BorrowedFd<'_>, index: u32) -> io::Result<libc::ifreq> {
    let mut request = request("")?;
    request.ifr_ifru.ifru_ifindex = index as c_int;
    ioctl(socket, libc::SIOCGIFNAME, &mut request)?;
    Ok(request)
}

/// Sets the interface up.
pub fn set_up(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let flags = interface_flags(socket, name)?;
    let mut request = request(name)?;
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as c_short;
    ioctl(socket, libc::SIOCSIFFLAGS, &mut request)
}

fn interface_flags(socket: BorrowedFd<'_>, name: &str) -> io::Result<c_short> {
    let mut request = request(name)?;
    ioctl(socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel answered SIOCGIFFLAGS by writing this member.
    Ok(unsafe { request.ifr_ifru.ifru_flags })
}

/// Returns the hardware address of an Ethernet interface.
pub fn hw_addr(socket: BorrowedFd<'_>, name: &str) -> io::Result<[u8; 6]> {
    let mut request = request(name)?;
    ioctl(socket, libc::SIOCGIFHWADDR, &mut request)?;
    // SAFETY: the kernel answered SIOCGIFHWADDR by writing this member.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    Ok(std::array::from_fn(|byte| address.sa_data[byte] as u8))
}

/// Sets the hardware address of an Ethernet interface.
pub fn set_hw_addr(socket: BorrowedFd<'_>, name: &str, address: [u8; 6]) -> io::Result<()> {
    let mut request = request(name)?;
    let mut hw_addr = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    for (to, from) in hw_addr.sa_data.iter_mut().zip(address) {
        // `c_char` is signed on some systems.
        *to = c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_hwaddr = hw_addr;
    ioctl(socket, libc::SIOCSIFHWADDR, &mut request)
}

/// Returns whether the interface merges received packets (generic receive offload).
pub fn gro(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    ethtool(socket, name, ETHTOOL_GGRO, 0)
}

/// Switches generic receive offload on (1) or off (0).
pub fn set_gro(socket: BorrowedFd<'_>, name: &str, value: u32) -> io::Result<()> {
    ethtool(socket, name, ETHTOOL_SGRO, value).map(drop)
}

/// Returns the offload flags of the interface; [`FLAG_LRO`] is one of them.
pub fn flags(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    ethtool(socket, name, ETHTOOL_GFLAGS, 0)
}

/// Sets the offload flags of the interface.
pub fn set_flags(socket: BorrowedFd<'_>, name: &str, flags: u32) -> io::Result<()> {
    ethtool(socket, name, ETHTOOL_SFLAGS, flags).map(drop)
}

/// Makes the interface send and receive single frames with complete checksums: no segmentation
/// offload, no receive offload, no checksum offload.
pub fn send_single_frames(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // The checksum offload last: without it the kernel also ends those that need it.
    for command in [ETHTOOL_SGRO, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM] {
        ethtool(socket, name, command, 0)?;
    }
    Ok(())
}

fn ethtool(socket: BorrowedFd<'_>, name: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    ioctl(socket, libc::SIOCETHTOOL, &mut request)?;
    Ok(value.data)
}

/// Returns an interface request that names an interface.
pub(super) fn request(name: &str) -> io::Result<libc::ifreq> {
    let mut request =
        libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_mtu: 0 } };
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    Ok(request)
}

fn ioctl(socket: BorrowedFd<'_>, operation: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every operation used in this file takes an `ifreq`, which lives through the call, and
    // so does the ethtool structure it may point to.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), operation as _, &raw mut *request) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_has_no_index() {
        assert!(index_of("no-such-if").is_err() && index_of("a\0b").is_err());
        assert!(request("a name far too long for an interface").is_err());
    }

    #[test]
    fn every_name_has_an_index() {
        for name in names() {
            assert!(index_of(&name).is_ok(), "{name}");
        }
    }
}
