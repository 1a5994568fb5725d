//! What the kernel knows of a TCP connection, and its congestion control (tcp(7)).

use super::check;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The part of `struct tcp_info` (linux/tcp.h) that is read, bytes: up to `tcpi_total_rto`.
const INFO_LEN: usize = 242;

/// Counts of one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TcpCounts {
    /// Segments with data that were sent, copies among them (Linux 4.6).
    pub segments: u32,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Retransmission timeouts; `None` before Linux 6.7, which does not count them.
    pub timeouts: Option<u32>,
    /// The shortest round trip, in whole microseconds (Linux 4.6); `None` before one is known.
    pub rtt_min: Option<Duration>,
}

/// Returns the counts of a connection, open or closed.
///
/// # Errors
/// It is not a TCP socket.
pub fn counts(socket: BorrowedFd<'_>) -> io::Result<TcpCounts> {
    let mut info = [0u8; INFO_LEN];
    let mut len = info.len() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the kernel writes at most `len` bytes, the length of `info`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, info.as_mut_ptr().cast(), &raw mut len)
    };
    check(result)?;
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let rtt = word(148);
    Ok(TcpCounts {
        segments: word(156),
        retransmitted: word(100),
        timeouts: (len as usize >= INFO_LEN).then(|| u16::from_ne_bytes([info[240], info[241]]).into()),
        // All ones: none yet.
        rtt_min: (rtt != 0 && rtt != u32::MAX).then(|| Duration::from_micros(rtt.into())),
    })
}

/// Sets the congestion control of a socket, `cubic` for example. Connections that a listening
/// socket accepts have its own.
///
/// # Errors
/// The kernel does not have it, or the user may not choose it.
pub fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    let len = name.len() as libc::socklen_t;
    // SAFETY: the name lives through the call and `len` is its length; the kernel only reads it.
    let result: c_int =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, name.as_ptr().cast(), len) };
    check(result).map(drop)
}

/// Has the next close of a connection end it at once: what is not sent yet is dropped.
pub fn abort_on_close(socket: BorrowedFd<'_>) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let len = size_of::<libc::linger>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
    // SAFETY: the structure lives through the call and `len` is its size; the kernel only reads it.
    let result: c_int =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const linger).cast(), len) };
    check(result).map(drop)
}
