//! AF_XDP sockets (Documentation/networking/af_xdp.rst) on one memory of chunks. Each socket owns
//! some of the chunks, receives into a part of them and sends from the rest.
//!
//! Read first: `xdp_ring.rs`. The program that redirects frames to the sockets is in `bpf.rs`.

use super::memory::Mapping;
use super::xdp_ring::{Consumer, Producer};
use super::{Plain, check, check_len, get_option, set_option};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Entries of the receive rings, and chunks to receive into: 4 ms at a million frames per second.
const RX_LEN: u32 = 4096;
/// Chunks that the kernel holds while this side keeps up. The kernel fills chunks in turn on the
/// core from which frames arrive. With all chunks in use, none would still be in that core's cache
/// when it is filled again.
const FEW: usize = 512;
/// If this many frames, or pieces of frames, wait at a poll, the kernel gets all chunks …
const BEHIND: usize = FEW / 4;
/// … until this many have arrived without such a poll.
const CALM: usize = 2 * RX_LEN as usize;
/// Entries of the transmit rings, and chunks to send from.
const TX_LEN: u32 = 2048;
/// Chunks of a socket.
const CHUNKS: usize = (RX_LEN + TX_LEN) as usize;
/// Bytes that the kernel leaves free at the start of a chunk that it receives into
/// (`XDP_PACKET_HEADROOM`).
pub const HEADROOM: usize = 256;
/// Frames the kernel is asked to send with one call (`XDP_MAX_TX_SKB_BUDGET`, Linux 6.17; 32
/// before).
const BUDGET: u32 = 512;
const MAX_TX_SKB_BUDGET: i32 = 9;
/// Most calls to send what is in the ring: enough for all of it at 32 frames each.
const KICKS: u32 = TX_LEN / 32;

// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_statistics {}

/// The memory of all sockets, handed out socket by socket.
#[derive(Debug)]
pub struct Umem {
    memory: Arc<Mapping>,
    chunk_len: usize,
    /// Bytes handed out.
    given: usize,
    /// A bound socket that registered the memory, for other sockets to share.
    first: Option<Arc<OwnedFd>>,
}

impl Umem {
    /// Allocates memory for this many sockets. A chunk has 2048 or 4096 bytes.
    pub fn new(sockets: usize, chunk_len: usize) -> io::Result<Umem> {
        let memory = Arc::new(Mapping::anonymous(sockets * CHUNKS * chunk_len)?);
        Ok(Umem { memory, chunk_len, given: 0, first: None })
    }

    /// Returns the bytes of memory, and how many of them lie on huge pages.
    pub fn extent(&self) -> (usize, usize) {
        (self.memory.len_bytes(), self.memory.huge())
    }
}

/// What a socket is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Index of the interface.
    pub index: u32,
    /// Number of the receive queue.
    pub queue: u32,
    /// Copy mode, with frames longer than a chunk in several pieces, as generic XDP supports.
    pub generic: bool,
}

/// A socket bound to a queue of an interface.
#[derive(Debug)]
pub struct XdpSocket {
    fd: Arc<OwnedFd>,
    memory: Arc<Mapping>,
    chunk_len: usize,
    fill: Producer<u64>,
    rx: Consumer<libc::xdp_desc>,
    tx: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    /// Chunks to receive into that the kernel does not hold, the last used last.
    kept: Vec<u64>,
    /// Chunks received since this side was last behind; `None` while the kernel holds few.
    since_behind: Option<usize>,
    /// Chunks to send from, by their offset in the memory.
    free: Vec<u64>,
    drops: u64,
}

impl XdpSocket {
    /// Binds a socket, with the next chunks of `umem`.
    pub fn open(umem: &mut Umem, binding: Binding) -> io::Result<XdpSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
        // SAFETY: the descriptor was just created and nothing else owns it.
        let fd = Arc::new(unsafe { OwnedFd::from_raw_fd(fd) });
        let set = |option, value: u32| set_option(fd.as_fd(), libc::SOL_XDP, option, value);
        if umem.first.is_none() {
            let registration = libc::xdp_umem_reg {
                addr: umem.memory.start().as_ptr() as u64,
                len: umem.memory.len_bytes() as u64,
                chunk_size: umem.chunk_len as u32,
                headroom: 0,
                flags: 0,
                tx_metadata_len: 0,
            };
            set_option(fd.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, registration)?;
        }
        set(libc::XDP_UMEM_FILL_RING, RX_LEN)?;
        set(libc::XDP_UMEM_COMPLETION_RING, TX_LEN)?;
        set(libc::XDP_RX_RING, RX_LEN)?;
        set(libc::XDP_TX_RING, TX_LEN)?;
        // An older kernel keeps its own limit.
        let _ = set(MAX_TX_SKB_BUDGET, BUDGET);
        let none = || libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
        let empty = libc::xdp_mmap_offsets { rx: none(), tx: none(), fr: none(), cr: none() };
        let offsets = get_option(fd.as_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, empty)?;
        let from = umem.given as u64;
        let chunk = |number: u32| from + u64::from(number) * umem.chunk_len as u64;
        let mut fill: Producer<u64> =
            Producer::map(fd.as_fd(), libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, &offsets.fr, RX_LEN)?;
        (0..FEW as u32).for_each(|number| assert!(fill.push(chunk(number)), "a new ring has room"));
        fill.publish();
        let mut kept = Vec::with_capacity(RX_LEN as usize);
        kept.extend((FEW as u32..RX_LEN).map(chunk));
        let socket = XdpSocket {
            memory: Arc::clone(&umem.memory),
            chunk_len: umem.chunk_len,
            fill,
            rx: Consumer::map(fd.as_fd(), libc::XDP_PGOFF_RX_RING, &offsets.rx, RX_LEN)?,
            tx: Producer::map(fd.as_fd(), libc::XDP_PGOFF_TX_RING, &offsets.tx, TX_LEN)?,
            completion: Consumer::map(
                fd.as_fd(),
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
                &offsets.cr,
                TX_LEN,
            )?,
            kept,
            since_behind: None,
            free: (RX_LEN..RX_LEN + TX_LEN).map(chunk).collect(),
            drops: 0,
            fd,
        };
        socket.bind(umem.first.as_deref(), binding)?;
        umem.first.get_or_insert_with(|| Arc::clone(&socket.fd));
        umem.given += CHUNKS * umem.chunk_len;
        assert!(umem.given <= umem.memory.len_bytes(), "more sockets than the memory is for");
        Ok(socket)
    }

    fn bind(&self, first: Option<&OwnedFd>, binding: Binding) -> io::Result<()> {
        let flags = match (first, binding.generic) {
            // The others inherit the flags of the first.
            (Some(_), _) => libc::XDP_SHARED_UMEM,
            (None, true) => libc::XDP_USE_NEED_WAKEUP | libc::XDP_COPY | libc::XDP_USE_SG,
            (None, false) => libc::XDP_USE_NEED_WAKEUP,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: binding.index,
            sxdp_queue_id: binding.queue,
            sxdp_shared_umem_fd: first.map_or(0, |fd| fd.as_raw_fd() as u32),
        };
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` lives through the call and `len` is its size.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(())
    }

    /// Passes received pieces to `take` while it returns true, each with whether it is the last of
    /// its frame. Then returns the chunks to the kernel.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8], bool) -> bool) {
        let (mut wants_more, mut taken) = (true, 0);
        while wants_more {
            let Some(descriptor) = self.rx.pop() else { break };
            let at = (descriptor.addr as usize).min(self.memory.len_bytes());
            let len = (descriptor.len as usize).min(self.chunk_len).min(self.memory.len_bytes() - at);
            // SAFETY: the range is inside the memory. The kernel gave it to this side and takes it
            // back by the fill ring only.
            let bytes = unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr().add(at), len) };
            let is_last = descriptor.options & libc::XDP_PKT_CONTD == 0;
            // A frame is always taken completely.
            wants_more = take(bytes, is_last) || !is_last;
            self.kept.push(descriptor.addr - descriptor.addr % self.chunk_len as u64);
            taken += 1;
        }
        if taken > 0 {
            self.rx.release();
            self.refill(taken);
        }
        if self.fill.needs_wakeup() {
            // SAFETY: no buffer. It only wakes the driver.
            unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        }
    }

    /// Gives the kernel chunks to receive into, after `taken` chunks were read.
    fn refill(&mut self, taken: usize) {
        self.since_behind = match self.since_behind {
            _ if taken + self.rx.waiting() as usize >= BEHIND => Some(0),
            Some(received) if received + taken < CALM => Some(received + taken),
            _ => None,
        };
        let all = RX_LEN as usize;
        let wanted = if self.since_behind.is_some() { all } else { FEW };
        while all - self.kept.len() < wanted
            && let Some(chunk) = self.kept.pop()
        {
            // There is room: the ring has an entry for every chunk.
            self.fill.push(chunk);
        }
        self.fill.publish();
    }

    /// Puts frames, none longer than a chunk, into the ring until it is full. Returns their number.
    pub fn queue<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> usize {
        let mut count = 0;
        for frame in frames {
            if self.free.is_empty() {
                self.reclaim();
            }
            let Some(chunk) = self.free.pop() else { break };
            assert!(frame.len() <= self.chunk_len, "a frame of {} bytes", frame.len());
            // SAFETY: the chunk is inside the memory and belongs to this side until its descriptor
            // is published. The frame is elsewhere.
            unsafe {
                let to = self.memory.start().as_ptr().add(chunk as usize);
                std::ptr::copy_nonoverlapping(frame.as_ptr(), to, frame.len());
            }
            let descriptor = libc::xdp_desc { addr: chunk, len: frame.len() as u32, options: 0 };
            if !self.tx.push(descriptor) {
                self.free.push(chunk);
                break;
            }
            count += 1;
        }
        self.tx.publish();
        count
    }

    /// Makes the kernel send what is in the ring. Returns `Ok` also if the device has no room now.
    pub fn send(&mut self) -> io::Result<()> {
        if !self.tx.needs_wakeup() {
            return Ok(());
        }
        for _ in 0..KICKS {
            let fd = self.fd.as_raw_fd();
            // SAFETY: no buffer.
            let sent =
                unsafe { libc::sendto(fd, std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
            match check_len(sent) {
                Ok(_) => break,
                Err(error) => match error.raw_os_error() {
                    // The budget of one call is spent.
                    Some(libc::EAGAIN) if self.tx.pending() > 0 => {}
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => break,
                    _ => return Err(error),
                },
            }
        }
        self.reclaim();
        Ok(())
    }

    /// Returns whether frames in the ring have not been sent yet.
    pub fn is_sending(&self) -> bool {
        self.tx.pending() > 0
    }

    /// Takes back the chunks of frames that were sent.
    fn reclaim(&mut self) {
        let free = &mut self.free;
        free.extend(std::iter::from_fn(|| self.completion.pop()));
        self.completion.release();
    }

    /// Returns and clears the pending error of the socket.
    pub fn take_error(&self) -> io::Result<()> {
        match get_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR, 0u32)? {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error as i32)),
        }
    }

    /// Returns the number of frames that the kernel dropped since the last call because they were
    /// not taken in time.
    pub fn take_drops(&mut self) -> u64 {
        let none = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        let statistics = get_option(self.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS, none);
        let all = statistics.map_or(self.drops, |found| found.rx_dropped + found.rx_ring_full);
        all.saturating_sub(std::mem::replace(&mut self.drops, all))
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
