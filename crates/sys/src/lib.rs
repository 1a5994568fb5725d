//! System calls of Linux behind types that are safe to use: packet sockets, AF_XDP, TAP devices,
//! interfaces, epoll, threads, child processes, cgroups, namespaces and memory.
//!
//! Each file wraps one kernel facility. An `unsafe` block holds one operation and the reason why it
//! is sound. Frames, links and emulated time are unknown here; the ports and workers of crate
//! `engine` and the programs of crate `lab` use these types.
//!
//! Linux only: on other systems the crate is empty. Read first: `packet.rs`, then `memory.rs`.
#![cfg(target_os = "linux")]

pub mod bpf;
pub mod cgroup;
pub mod child;
pub mod epoll;
pub mod heap;
pub mod interface;
pub mod large_blocks;
pub mod memory;
pub mod namespace;
pub mod packet;
pub mod packet_batch;
pub mod poll;
pub mod tap;
pub mod tcp;
pub mod thread;
pub mod xdp;
mod xdp_ring;

use std::ffi::{c_char, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The result of a system call that reports failure as a negative number.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// As [`check`], for calls that return a length.
fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Kernel structures in which any bit pattern is a value and no pointer has to be kept alive.
///
/// # Safety
/// The type must be such a structure.
unsafe trait Plain: Copy {}
// SAFETY: integers.
unsafe impl Plain for c_int {}
// SAFETY: three integers.
unsafe impl Plain for libc::ucred {}

fn set_option<T: Plain>(fd: BorrowedFd<'_>, level: c_int, option: c_int, value: T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives through the call and `len` is its size; the kernel only reads it.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len) })?;
    Ok(())
}

fn get_option<T: Plain>(fd: BorrowedFd<'_>, level: c_int, option: c_int, mut value: T) -> io::Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of `value`, and any bytes make a `T`.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut len) })?;
    Ok(value)
}

/// Returns the process that listens on the abstract Unix socket `name` of the thread's network
/// namespace; `None` if there is none, or none that is visible from here.
pub fn listening_process(name: &[u8]) -> Option<i32> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers. Not blocking, because the listener may never accept.
    let fd = check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) }).ok()?;
    // SAFETY: the descriptor was just created and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
    // A leading zero byte makes the name abstract (unix(7)).
    for (to, from) in address.sun_path[1..].iter_mut().zip(name) {
        *to = *from as c_char;
    }
    let len = size_of_val(&address.sun_family) + 1 + name.len().min(107);
    // SAFETY: `address` lives through the call and holds at least `len` bytes.
    check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), len as libc::socklen_t) })
        .ok()?;
    let peer = peer(fd.as_fd()).ok()?;
    (peer.pid != 0).then_some(peer.pid)
}

fn peer(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let unknown = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    get_option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, unknown)
}
