//! A TAP device: the kernel's end is an interface, ours a descriptor. Each call moves one frame,
//! preceded by a virtio-net header (Documentation/networking/tuntap.rst).

use super::interface::request;
use super::{check, check_len};
use fastpath_wire::vnet::VnetHeader;
use std::ffi::{c_int, c_short, c_uint};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Most parts of a frame that is written.
pub const PARTS_MAX: usize = 65;

/// What the kernel may leave undone on frames that it hands out: segmentation of TCP and checksums
/// …
const OFFLOAD_TCP: c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// … and, since Linux 6.2, segmentation of UDP.
const OFFLOAD_UDP: c_uint = OFFLOAD_TCP | libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// An open TAP device.
#[derive(Debug)]
pub struct Tap(OwnedFd);

impl Tap {
    /// Creates the TAP interface `name` in the thread's network namespace, or attaches to an
    /// existing one that no process has open. A created interface is removed with this value.
    pub fn open(name: &str) -> io::Result<Tap> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        create(file.as_fd(), name)?;
        Tap::prepare(file.into())
    }

    /// Creates the interface again after it was removed with another network namespace: in the
    /// namespace in which [`Tap::open`] was called. The descriptor stays the same.
    pub fn reopen(&self, name: &str) -> io::Result<()> {
        create(self.0.as_fd(), name)?;
        set_up(self.0.as_fd())
    }

    /// Returns a second descriptor of the same device.
    pub fn try_clone(&self) -> io::Result<Tap> {
        self.0.try_clone().map(Tap)
    }

    /// Takes over a descriptor on which TUNSETIFF was done with `IFF_TAP | IFF_NO_PI |
    /// IFF_VNET_HDR`.
    pub fn prepare(fd: OwnedFd) -> io::Result<Tap> {
        // SAFETY: F_SETFL takes a number.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        set_up(fd.as_fd())?;
        Ok(Tap(fd))
    }

    /// Keeps the interface when the descriptor is closed.
    pub fn persist(&self) -> io::Result<()> {
        // SAFETY: TUNSETPERSIST takes a number.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETPERSIST, 1) }).map(drop)
    }

    /// Returns the name that the interface has now.
    pub fn interface_name(&self) -> io::Result<String> {
        let mut request = request("")?;
        // SAFETY: TUNGETIFF fills an `ifreq`, which lives through the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNGETIFF, &raw mut request) })?;
        let bytes = request.ifr_name.iter().take_while(|&&byte| byte != 0);
        // `c_char` is signed on some systems.
        let bytes: Vec<u8> = bytes.map(|byte| byte.to_ne_bytes()[0]).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Says whether the interface has a carrier, as a cable would (Linux 4.20).
    pub fn set_carrier(&self, is_on: bool) -> io::Result<()> {
        let is_on = c_int::from(is_on);
        // SAFETY: TUNSETCARRIER takes a pointer to an int, which lives through the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETCARRIER, &raw const is_on) })?;
        Ok(())
    }

    /// Reads one header, and its frame into `frame`. Bytes that do not fit are cut off. Returns the
    /// length of the frame.
    pub fn read(&self, header: &mut [u8; VnetHeader::LEN], frame: &mut [u8]) -> io::Result<usize> {
        let part =
            |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let parts = [part(header), part(frame)];
        // SAFETY: the parts point to bytes that live through the call, and nothing else refers to
        // them meanwhile.
        let len = check_len(unsafe { libc::readv(self.0.as_raw_fd(), parts.as_ptr(), 2) })?;
        Ok(len.saturating_sub(VnetHeader::LEN))
    }

    /// Writes one header and one frame, given in up to [`PARTS_MAX`] parts.
    pub fn write<'a>(&self, header: &VnetHeader, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        let part =
            |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let header = header.to_bytes();
        let mut all = [part(&header[..VnetHeader::LEN]); 1 + PARTS_MAX];
        let mut count = 1;
        for (place, bytes) in all[1..].iter_mut().zip(parts) {
            *place = part(bytes);
            count += 1;
        }
        // SAFETY: the first `count` parts point to bytes that live through the call, which only
        // reads them.
        check_len(unsafe { libc::writev(self.0.as_raw_fd(), all.as_ptr(), count) })?;
        Ok(())
    }
}

/// Creates the interface `name` for an open driver.
fn create(driver: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as c_short;
    // SAFETY: TUNSETIFF takes an `ifreq`, which lives through the call.
    check(unsafe { libc::ioctl(driver.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(())
}

/// Sets what belongs to the device: the length of the header, and the offloads.
fn set_up(fd: BorrowedFd<'_>) -> io::Result<()> {
    let header_len = VnetHeader::LEN as c_int;
    // SAFETY: TUNSETVNETHDRSZ takes a pointer to an int, which lives through the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const header_len) })?;
    // SAFETY: TUNSETOFFLOAD takes a number.
    let udp = check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, OFFLOAD_UDP) });
    if udp.is_err() {
        // SAFETY: as above; a kernel before 6.2 knows the smaller set only.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, OFFLOAD_TCP) })?;
    }
    Ok(())
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
