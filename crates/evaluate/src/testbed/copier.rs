//! A loop that reads from one TAP and writes to another: the cost of the copies alone. It copies
//! twice what a bridge forwards without a copy, on cores that sender and receiver need.

use fastpath_engine::port::{Port, TapPort};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A virtio_net_hdr and the longest super-packet.
const READ_MAX: usize = 10 + 65536 + 14;
/// Super-packets copied from one side before the other.
const BATCH: usize = 4;
/// The time within which the loop notices that it must end, ms.
const POLL_MS: u8 = 20;

/// The loop, on its own thread. It ends on drop.
#[derive(Debug)]
pub(crate) struct Copier {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Copier {
    /// Starts copying between two TAPs.
    pub(crate) fn start(ports: [TapPort; 2]) -> io::Result<Copier> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("copier".to_owned()).spawn(move || {
            let [Some(a), Some(b)] = ports.each_ref().map(Port::fd) else { return };
            // It ends when a TAP is removed, which the results show.
            let _ = copy([a, b], &over);
        })?;
        Ok(Copier { is_over, thread: Some(thread) })
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn copy(taps: [BorrowedFd<'_>; 2], is_over: &AtomicBool) -> nix::Result<()> {
    let mut buffer = vec![0; READ_MAX];
    while !is_over.load(Ordering::Relaxed) {
        let mut moved = false;
        for (from, to) in [(taps[0], taps[1]), (taps[1], taps[0])] {
            for _ in 0..BATCH {
                let len = match unistd::read(from, &mut buffer) {
                    Ok(len) => len,
                    Err(Errno::EAGAIN | Errno::EINTR) => break,
                    Err(error) => return Err(error),
                };
                moved = true;
                // A frame that the TAP does not take is lost. A removed TAP fails on read.
                let _ = unistd::write(to, &buffer[..len]);
            }
        }
        if !moved {
            let mut polled = taps.map(|tap| PollFd::new(tap, PollFlags::POLLIN));
            match poll(&mut polled, PollTimeout::from(POLL_MS)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
