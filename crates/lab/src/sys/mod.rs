//! The only unsafe code of the crate: one ioctl. What it needs is checked before, what it gives is owned.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The frame's `virtio_net_hdr` (virtio 1.1 §5.1.6) comes first in every read and write.
const FLAGS: libc::c_int = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;

/// Makes a TAP interface called `name` (1 to 15 bytes) in the calling thread's network namespace, and gives
/// its descriptor: non-blocking, every frame behind a `virtio_net_hdr`. The interface lasts as long as the
/// descriptor.
pub(crate) fn open_tap(name: &str) -> io::Result<OwnedFd> {
    let device: File = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: FLAGS as libc::c_short },
    };
    for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: TUNSETIFF reads and writes one `ifreq`; `request` is one, initialised, with a terminated name,
    // and outlives the call; the descriptor is open for the whole call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(device.into()) }
}
