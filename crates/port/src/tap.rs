//! A TAP port: the kernel's end is an interface that applications use, the engine's end a
//! descriptor.
//!
//! The fastest way to attach hosts on the same machine: there is no veth pair, and TCP hands over
//! super-packets of up to 64 KiB in one call. They stay in one piece in the pool as long as no part
//! of the network reads a segment. Segments that leave together leave in one call, as from a card
//! with receive offload. The interface belongs to the network namespace of the thread that opens
//! the port. The port itself then works from any thread.

use super::base::PortBase;
use super::batches;
use super::offload::{HEADER_LEN, RxSink, Scratch};
use super::{BURST, Burst, OpenError, Port, PortCounters, PortError, PortKind, interface_of};
use fastpath_net::{FRAME_MAX, Frame, FramePool};
use fastpath_sys::interface;
use fastpath_sys::packet_batch::PacketBatch;
use fastpath_sys::tap::{PARTS_MAX, Tap};
use fastpath_units::Time;
use fastpath_wire::coalesce::{Coalescer, Joined};
use fastpath_wire::vnet::VnetHeader;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

/// Frames that may wait in the kernel for the engine: at a million per second, an interruption of
/// 10 ms.
const QUEUE_LEN: u16 = 10_000;

pub(super) const KINDS: &[PortKind] = &[PortKind {
    name: "tap",
    about: "a TAP interface, created if it does not exist, and set up",
    needs: "/dev/net/tun and CAP_NET_ADMIN in the network namespace",
    open: |name, _| {
        let name = interface_of(name);
        let port = TapPort::open(name)?;
        let set_up = interface::any_socket().and_then(|any| interface::set_up(any.as_fd(), name));
        set_up.map_err(|error| OpenError::from_os(name, "setting the interface up", error))?;
        Ok(Box::new(port))
    },
}];

/// As many small frames, one after the other, are read and written in batches.
const BATCH_FROM: usize = 3;
/// Longer frames are not copied into a batch, bytes.
const COPIED_MAX: usize = 2048;

/// How frames have arrived, which decides whether they are read in batches.
struct Batching {
    /// Frames since the last super-packet, or since nothing was there.
    in_a_row: usize,
    /// The size of the next batch.
    expected: usize,
}

/// An open TAP device.
pub struct TapPort {
    base: PortBase,
    tap: Tap,
    /// Where the kernel writes a frame before its length is known, unless it goes directly to the
    /// pool.
    buffer: Box<[u8]>,
    overruns: Overruns,
    scratch: Scratch,
    joined: Coalescer,
    batching: Batching,
    /// The results of a batch of writes.
    results: Vec<io::Result<()>>,
    /// The headers of a part of a super-packet.
    headers: Vec<u8>,
    /// Super-packets stay in one piece.
    keeps_whole: bool,
    /// Called when the interface is removed, after which the port waits for another.
    on_removal: Option<Box<dyn Fn() + Send>>,
    /// The interface was removed, and `on_removal` called.
    is_removed: bool,
}

/// The interface of a [`TapPort`], which another thread creates again after it was removed.
#[derive(Debug)]
pub struct TapInterface(Tap);

impl TapInterface {
    /// Creates the interface `name` for its port, down and without addresses, in the network
    /// namespace in which the port was opened.
    pub fn create(&self, name: &str) -> io::Result<()> {
        self.0.reopen(name)
    }
}

impl TapPort {
    /// Creates the TAP interface `name` in the thread's network namespace, or attaches to an
    /// existing one that no process has open. A created interface is removed with the port. The
    /// interface is left down, without addresses.
    pub fn open(name: &str) -> Result<TapPort, OpenError> {
        if name.len() >= libc::IFNAMSIZ {
            return Err(OpenError::NameTooLong { name: name.to_owned() });
        }
        let tap = Tap::open(name).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => OpenError::NoTapDriver { name: name.to_owned() },
            Some(libc::EACCES) => OpenError::TapDriverClosed { name: name.to_owned() },
            _ => OpenError::from_os(name, "opening the TAP device", error),
        })?;
        // Any socket of the namespace serves for the request. If it is refused, the device keeps
        // its queue of 1000.
        let _ =
            UnixDatagram::unbound().and_then(|any| interface::set_queue_len(any.as_fd(), name, QUEUE_LEN));
        Ok(TapPort::with(name, tap))
    }

    /// Leaves the interface to its network namespace: it stays when the port closes, without a
    /// carrier, and is removed with the namespace.
    ///
    /// The kernel removes one interface after the other when descriptors are closed, which takes
    /// about 20 ms each. It removes the interfaces of dying namespaces together.
    pub fn leave_to_namespace(&self) -> Result<(), OpenError> {
        let failed = |error| OpenError::from_os(&self.base.name, "making the TAP device persistent", error);
        self.tap.persist().map_err(failed)
    }

    /// Lets the port outlive its interface, which may be moved to a network namespace that ends
    /// before the port. Messages call it `name` from now on. When the interface is removed, frames
    /// to it are counted as `tx_down`, `on_removal` is called on the thread of the engine, and the
    /// port goes on when the returned interface is created again.
    ///
    /// Drops of the device are not counted: its statistics would keep the namespace.
    pub fn outlive_interface(
        &mut self,
        name: &str,
        on_removal: Box<dyn Fn() + Send>,
    ) -> io::Result<TapInterface> {
        self.base.name = name.to_owned();
        self.on_removal = Some(on_removal);
        self.overruns = Overruns::none();
        self.tap.try_clone().map(TapInterface)
    }

    /// Returns whether an error means that the interface was removed and the port waits for
    /// another.
    fn awaits_another(&mut self, error: &io::Error) -> bool {
        let Some(on_removal) = &self.on_removal else { return false };
        // The driver's answer when there is no interface (drivers/net/tun.c).
        let is_removed = error.raw_os_error() == Some(libc::EBADFD);
        if is_removed && !self.is_removed {
            on_removal();
        }
        self.is_removed = is_removed;
        is_removed
    }

    /// Takes over an open TAP descriptor with the flags `IFF_TAP`, `IFF_NO_PI` and `IFF_VNET_HDR`.
    /// `name` is used in messages, and for the device's statistics if the thread is in its network
    /// namespace.
    pub fn from_fd(name: &str, fd: OwnedFd) -> Result<TapPort, OpenError> {
        let tap =
            Tap::prepare(fd).map_err(|error| OpenError::from_os(name, "preparing the TAP device", error))?;
        Ok(TapPort::with(name, tap))
    }

    /// Says whether the interface has a carrier. It has one after [`TapPort::open`].
    pub fn set_carrier(&mut self, is_on: bool) -> io::Result<()> {
        self.tap.set_carrier(is_on)?;
        self.overruns.set_carrier(is_on, &self.base.name);
        Ok(())
    }

    /// Drops the frames that wait to be read. They are not counted, and neither
    /// are the drops of the device so far.
    pub fn discard_waiting(&mut self) -> io::Result<()> {
        let mut header = [0; HEADER_LEN];
        loop {
            match self.tap.read(&mut header, &mut self.buffer) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.overruns.forget(&self.base.name);
        Ok(())
    }

    fn with(name: &str, tap: Tap) -> TapPort {
        TapPort {
            base: PortBase::new(name),
            tap,
            buffer: vec![0; FRAME_MAX].into_boxed_slice(),
            overruns: Overruns::watch(name),
            scratch: Scratch::default(),
            joined: Coalescer::default(),
            batching: Batching { in_a_row: 0, expected: BATCH_FROM },
            results: Vec::new(),
            headers: Vec::new(),
            keeps_whole: false,
            on_removal: None,
            is_removed: false,
        }
    }

    /// Reads one frame, or several where small ones follow one another.
    fn read(&mut self, pool: &mut FramePool, burst: &mut Burst) -> io::Result<()> {
        if self.batching.in_a_row >= BATCH_FROM {
            if let Some(end) = self.read_batch(pool, burst) {
                return end;
            }
            self.batching.in_a_row = 0;
        }
        self.read_one(pool, burst)
    }

    fn read_one(&mut self, pool: &mut FramePool, burst: &mut Burst) -> io::Result<()> {
        let mut arrivals = RxSink { pool, burst, counters: &mut self.base.counters };
        // Where the frame stays if it is a super-packet.
        let mut slot = if self.keeps_whole { arrivals.pool.alloc_super_packet() } else { None };
        let mut header = [0; HEADER_LEN];
        let room = match &mut slot {
            Some(slot) => arrivals.pool.bytes_mut(slot),
            None => &mut self.buffer,
        };
        let read = self.tap.read(&mut header, room);
        match (slot, &read, VnetHeader::parse(&header)) {
            (Some(mut frame), Ok(len), Ok(VnetHeader { gso: Some(gso), .. })) => {
                arrivals.pool.truncate(&mut frame, *len);
                arrivals.take_whole(gso, frame, &mut self.scratch);
                self.batching.in_a_row = 0;
            }
            (slot, read, _) => {
                let len = *read.as_ref().unwrap_or(&0);
                if let Some(slot) = slot {
                    self.buffer[..len].copy_from_slice(&arrivals.pool.bytes(&slot)[..len]);
                    arrivals.pool.free(slot);
                }
                if read.is_ok() {
                    arrivals.take(&header, &self.buffer[..len], &mut self.scratch);
                    self.batching.in_a_row += 1;
                }
            }
        }
        read.map(drop)
    }

    /// Reads frames in one call. `None` without a ring.
    fn read_batch(&mut self, pool: &mut FramePool, burst: &mut Burst) -> Option<io::Result<()>> {
        let TapPort { base, tap, scratch, batching, keeps_whole, .. } = self;
        let count = batching.expected.min(BURST - burst.len());
        let mut arrivals = RxSink { pool, burst, counters: &mut base.counters };
        let read = batches::with(|batch| {
            let (read, end) = batch.read(tap.as_fd(), count)?;
            for packet in batch.packets() {
                let Some((header, frame)) = packet.split_first_chunk::<HEADER_LEN>() else { continue };
                match VnetHeader::parse(header) {
                    Ok(VnetHeader { gso: Some(gso), .. }) if *keeps_whole => {
                        arrivals.take_copied(gso, frame, scratch);
                        batching.in_a_row = 0;
                    }
                    _ => arrivals.take(header, frame, scratch),
                }
            }
            batching.expected = match end {
                Ok(()) => 2 * batching.expected,
                Err(_) => read + 1,
            };
            batching.expected = batching.expected.clamp(BATCH_FROM, PacketBatch::MAX);
            Ok::<_, io::Error>(end)
        })?;
        // A ring that refuses is not asked again.
        read.inspect_err(|_| batches::give_up()).ok()
    }

    /// Writes the frames at the front of `frames` that leave one by one, in one call. Returns
    /// whether all were taken; `None` if there are too few, or no ring.
    fn write_batch(
        &mut self,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Option<Result<bool, PortError>> {
        let results = batches::with(|batch| {
            batch.clear();
            let header = VnetHeader::default().to_bytes();
            for frame in frames.iter().take_while(|frame| frame.has_own_bytes() && frame.len() <= COPIED_MAX)
            {
                let bytes = pool.bytes(frame);
                if !Coalescer::stands_alone(bytes) || !batch.stage([&header[..HEADER_LEN], bytes]) {
                    break;
                }
            }
            if batch.staged() < BATCH_FROM {
                return None;
            }
            Some(batch.write(self.tap.as_fd()).map(|results| self.results.extend(results)))
        })??;
        if results.is_err() {
            batches::give_up();
            return None;
        }
        let (mut kept, mut failed) = (Vec::new(), Ok(()));
        let mut results = std::mem::take(&mut self.results);
        for result in results.drain(..) {
            let Some(frame) = frames.pop_front() else { break };
            match self.note(1, frame.len() as u64, result) {
                Ok(true) => pool.free(frame),
                waits => {
                    failed = failed.and(waits.map(drop));
                    kept.push(frame);
                }
            }
        }
        self.results = results;
        let all = kept.is_empty();
        kept.into_iter().rev().for_each(|frame| frames.push_front(frame));
        Some(failed.map(|()| all))
    }

    /// Counts what became of frames that were written together. Returns false if they wait.
    fn note(&mut self, frames: u64, bytes: u64, result: io::Result<()>) -> Result<bool, PortError> {
        let counters = &mut self.base.counters;
        match result {
            Ok(()) => {
                counters.tx_frames += frames;
                counters.tx_bytes += bytes;
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => return Ok(false),
                // The driver's error for an interface that is down.
                Some(libc::EIO) => counters.tx_down += frames,
                Some(libc::EINVAL | libc::EMSGSIZE) => counters.tx_refused += frames,
                _ if self.awaits_another(&error) => self.base.counters.tx_down += frames,
                _ => return Err(self.base.failure("writing", error)),
            },
        }
        Ok(true)
    }

    /// Writes the frames at the front of `frames` that can leave as one packet. Returns how many
    /// frames that was.
    fn write(&mut self, pool: &FramePool, frames: &VecDeque<Frame>) -> (usize, io::Result<()>) {
        if let Some(run) = pool.segment_run(frames.iter(), &mut self.headers) {
            let parts = [&self.headers[..], run.payload];
            return (run.count, self.tap.write(&run.vnet, parts.into_iter()));
        }
        const { assert!(BURST < PARTS_MAX, "headers and every frame are a part each") };
        let joins = |frame: &&Frame| frame.has_own_bytes() && self.joined.append(pool.bytes(frame));
        let count = frames.iter().take(BURST).take_while(joins).count();
        let Some(Joined { vnet, headers, skip }) = self.joined.take() else { return (0, Ok(())) };
        let payloads = frames.range(..count).map(|frame| &pool.bytes(frame)[skip..]);
        (count, self.tap.write(&vnet, std::iter::once(headers).chain(payloads)))
    }
}

impl Port for TapPort {
    fn name(&self) -> &str {
        &self.base.name
    }

    fn kind(&self) -> String {
        "TAP".to_owned()
    }

    fn rx_burst(&mut self, _now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        let end = loop {
            if burst.is_full() {
                break Ok(());
            }
            match self.read(pool, burst) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_removed = false;
                    self.batching.in_a_row = 0;
                    break Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        match end {
            Err(error) if self.awaits_another(&error) => Ok(()),
            end => end.map_err(|error| self.base.failure("reading", error)),
        }
    }

    fn tx_burst(
        &mut self,
        _now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        for _ in 0..BURST {
            if frames.len() >= BATCH_FROM
                && let Some(all) = self.write_batch(pool, frames)
            {
                match all? {
                    true => continue,
                    false => break,
                }
            }
            let (count, result) = self.write(pool, frames);
            if count == 0 {
                break;
            }
            let bytes = frames.range(..count).map(|frame| frame.len() as u64).sum();
            if !self.note(count as u64, bytes, result)? {
                break;
            }
            frames.drain(..count).for_each(|frame| pool.free(frame));
        }
        Ok(())
    }

    fn allow_whole(&mut self) -> bool {
        self.keeps_whole = true;
        true
    }

    fn show_carrier(&mut self, is_on: bool) -> bool {
        self.set_carrier(is_on).is_ok()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.as_fd())
    }

    /// The driver reports a TAP device as writable only while it is up (`tun_sock_writeable` in
    /// drivers/net/tun.c).
    fn link_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.as_fd())
    }

    fn counters(&mut self) -> PortCounters {
        // The interface may have been renamed.
        if let (true, Ok(name)) = (self.overruns.is_watched(), self.tap.interface_name()) {
            self.base.name = name;
        }
        PortCounters { rx_overrun: self.overruns.count(&self.base.name), ..self.base.counters }
    }
}

/// The frames that the kernel dropped because the engine did not read in time: the device's
/// transmit drops, from the statistics of the network namespace in which the port was opened.
struct Overruns {
    statistics: Option<File>,
    before: u64,
    /// The drops up to the loss of the carrier: without one the kernel drops what hosts send.
    up_to_loss: Option<u64>,
}

impl Overruns {
    fn watch(name: &str) -> Overruns {
        let mut overruns =
            Overruns { statistics: File::open("/proc/thread-self/net/dev").ok(), ..Overruns::none() };
        overruns.before = overruns.count(name);
        overruns
    }

    /// Whether the statistics are read, by the name of the device.
    fn is_watched(&self) -> bool {
        self.statistics.is_some()
    }

    /// Counts nothing.
    fn none() -> Overruns {
        Overruns { statistics: None, before: 0, up_to_loss: None }
    }

    /// Counts from now on.
    fn forget(&mut self, name: &str) {
        self.before += self.count(name);
    }

    /// Leaves out what is dropped without a carrier.
    fn set_carrier(&mut self, is_on: bool, name: &str) {
        match (is_on, self.up_to_loss) {
            (false, None) => self.up_to_loss = Some(self.count(name)),
            (true, Some(counted)) => {
                self.up_to_loss = None;
                self.before += self.count(name).saturating_sub(counted);
            }
            _ => {}
        }
    }

    /// Returns the drops since the port was opened; 0 if the statistics cannot be read.
    fn count(&mut self, name: &str) -> u64 {
        if let Some(counted) = self.up_to_loss {
            return counted;
        }
        let mut text = String::new();
        let Some(file) = &mut self.statistics else { return 0 };
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        let drops = read.ok().and_then(|_| transmit_drops(&text, name));
        drops.map_or(0, |drops| drops.saturating_sub(self.before))
    }
}

/// Returns the twelfth column of the device's line in /proc/net/dev.
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
