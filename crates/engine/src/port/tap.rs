//! A TAP port: the kernel's end is an interface of its own, which applications use; ours is a descriptor.
//!
//! The fastest way to attach hosts of the same machine: no veth pair, and TCP hands out super-packets of up
//! to 64 KiB with one call. They are cut on arrival (`offload.rs`), and segments that leave together are joined
//! again, as a card with receive offload would. The interface lives in the network namespace of the
//! thread that opens the port; the port itself then works from any thread.

use super::offload::{Arrivals, HEADER_LEN, Scratch};
use super::{BURST, Burst, OpenError, Port, PortCounters, PortError};
use crate::sys::interface;
use crate::sys::tap::{PARTS_MAX, Tap};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use fastpath_wire::coalesce::{Coalescer, Joined};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

/// Frames that may wait in the kernel for us: at a million a second, a pause of the engine of 10 ms.
const QUEUE_LEN: u16 = 10_000;

/// An open TAP device.
pub struct TapPort {
    name: String,
    tap: Tap,
    /// Where the kernel puts a header and a frame before its length is known.
    buffer: Box<[u8]>,
    overruns: Overruns,
    scratch: Scratch,
    joined: Coalescer,
    defers: bool,
    counters: PortCounters,
}

impl TapPort {
    /// Makes the TAP interface `name` in the thread's network namespace (it vanishes with the port), or
    /// takes an existing one that nobody has open. The interface is left down, without addresses.
    pub fn open(name: &str) -> Result<TapPort, OpenError> {
        if name.len() >= libc::IFNAMSIZ {
            return Err(OpenError::NameTooLong { name: name.to_owned() });
        }
        let tap = Tap::open(name).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => OpenError::NoTapDriver { name: name.to_owned() },
            Some(libc::EACCES) => OpenError::TapDriverClosed { name: name.to_owned() },
            _ => OpenError::from_os(name, "opening the TAP device", error),
        })?;
        // Any socket of the namespace will do to ask. Refused, the device keeps its queue of 1000.
        let _ =
            UnixDatagram::unbound().and_then(|any| interface::set_queue_len(any.as_fd(), name, QUEUE_LEN));
        Ok(TapPort::with(name, tap))
    }

    /// Takes over an open TAP descriptor with the flags `IFF_TAP`, `IFF_NO_PI` and `IFF_VNET_HDR`. `name` is for
    /// messages, and for the device's statistics if the thread is in its network namespace.
    pub fn from_fd(name: &str, fd: OwnedFd) -> Result<TapPort, OpenError> {
        let tap =
            Tap::prepare(fd).map_err(|error| OpenError::from_os(name, "preparing the TAP device", error))?;
        Ok(TapPort::with(name, tap))
    }

    fn with(name: &str, tap: Tap) -> TapPort {
        let buffer = vec![0; HEADER_LEN + fastpath_net::FRAME_MAX].into_boxed_slice();
        let (scratch, joined) = (Scratch::default(), Coalescer::default());
        let (overruns, counters) = (Overruns::watch(name), PortCounters::default());
        TapPort { name: name.to_owned(), tap, buffer, overruns, scratch, joined, defers: false, counters }
    }

    /// Joins the longest run of segments at the front of `frames`; says how many there are.
    fn join(&mut self, pool: &FramePool, frames: &VecDeque<Frame>) -> usize {
        const { assert!(BURST < PARTS_MAX, "headers and every frame are a part each") };
        frames
            .iter()
            .take(BURST)
            .take_while(|frame| self.joined.append(pool.bytes(frame), frame.is_finished()))
            .count()
    }

    /// A deleted TAP answers EBADFD to everything (drivers/net/tun.c).
    fn failure(&self, operation: &'static str, source: io::Error) -> PortError {
        let name = self.name.clone();
        match source.raw_os_error() {
            Some(libc::EBADFD | libc::ENODEV | libc::ENXIO) => PortError::Gone { name },
            _ => PortError::System { name, operation, source },
        }
    }
}

impl Port for TapPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> String {
        "TAP".to_owned()
    }

    fn rx_burst(&mut self, _now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        let mut arrivals = Arrivals { pool, burst, counters: &mut self.counters, defers: self.defers };
        while !arrivals.burst.is_full() {
            match self.tap.read(&mut self.buffer) {
                Ok(len) => {
                    if let Some((header, frame)) = self.buffer[..len].split_first_chunk() {
                        arrivals.take(header, frame, &mut self.scratch);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure("reading", error)),
            }
        }
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        for _ in 0..BURST {
            let count = self.join(pool, frames);
            let Some(Joined { vnet, headers, skip }) = self.joined.take() else { break };
            let vnet = vnet.to_bytes();
            let vnet = vnet.first_chunk().expect("the longer form begins with the shorter");
            let payloads = frames.range(..count).map(|frame| &pool.bytes(frame)[skip..]);
            match self.tap.write(vnet, std::iter::once(headers).chain(payloads)) {
                Ok(()) => {
                    self.counters.tx_frames += count as u64;
                    self.counters.tx_bytes +=
                        frames.range(..count).map(|frame| frame.len() as u64).sum::<u64>();
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => break,
                    // The driver's word for an interface that is down.
                    Some(libc::EIO) => self.counters.tx_down += count as u64,
                    Some(libc::EINVAL | libc::EMSGSIZE) => self.counters.tx_refused += count as u64,
                    _ => return Err(self.failure("writing", error)),
                },
            }
            frames.drain(..count).for_each(|frame| pool.free(frame));
        }
        Ok(())
    }

    fn defer_checksums(&mut self) -> bool {
        self.defers = true;
        true
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.as_fd())
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters { rx_overrun: self.overruns.count(&self.name), ..self.counters }
    }
}

/// How many frames the kernel dropped because we did not read in time: the device's transmit drops, from the
/// statistics of the network namespace in which the port was opened.
struct Overruns {
    statistics: Option<File>,
    before: u64,
}

impl Overruns {
    fn watch(name: &str) -> Overruns {
        let mut overruns = Overruns { statistics: File::open("/proc/thread-self/net/dev").ok(), before: 0 };
        overruns.before = overruns.count(name);
        overruns
    }

    /// Since the port was opened; 0 if the statistics cannot be had.
    fn count(&mut self, name: &str) -> u64 {
        let mut text = String::new();
        let Some(file) = &mut self.statistics else { return 0 };
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        let drops = read.ok().and_then(|_| transmit_drops(&text, name));
        drops.map_or(0, |drops| drops.saturating_sub(self.before))
    }
}

/// The twelfth column of the device's line in /proc/net/dev.
fn transmit_drops(text: &str, name: &str) -> Option<u64> {
    let columns = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    columns.split_ascii_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_found_in_the_statistics_of_all_devices() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
                    eth01:     1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0:     1 2 3 4 5 6 7 8 9 10 11 77 13 14 15 16\n";
        assert_eq!(transmit_drops(text, "eth0"), Some(77));
        assert_eq!(transmit_drops(text, "eth1"), None);
    }
}
