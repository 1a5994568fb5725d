//! A packet socket (packet(7)). Received frames arrive in a ring of memory shared with the kernel
//! (TPACKET_V2). Frames to send go out in batches (sendmmsg(2)). Both carry virtio-net headers.
//!
//! TPACKET_V3 would delay frames by up to a millisecond at low rates; V2 shows each at once.

use super::{Plain, check, check_len, get_option, interface, set_option};
use fastpath_wire::vnet::VnetHeader;
use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Frames sent with one system call.
pub const SEND_BATCH: usize = 64;

/// The kernel's ring is allocated in blocks of this size, which is a multiple of every slot size.
const BLOCK_LEN: usize = 1 << 18;
/// Bytes the kernel may queue for frames longer than a slot.
const LONG_FRAMES_LEN: c_int = 16 << 20;
/// `ETH_P_ALL`, in network byte order.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();
/// A group that splits frames by a hash of their flows, PACKET_FANOUT_HASH (linux/if_packet.h).
const FANOUT_HASH: c_int = 0;
/// The same, with a number of the kernel's choice: PACKET_FANOUT_FLAG_UNIQUEID.
const FANOUT_UNIQUE_ID: c_int = (FANOUT_HASH | 0x2000) << 16;
/// The number of a group, beside its kind and flags.
const FANOUT_ID_MASK: c_int = 0xffff;
/// Binds to an interface without receiving from it (packet(7)).
const NO_PROTOCOL: u16 = 0;

// SAFETY: two integers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: four integers.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: integers and an array of bytes.
unsafe impl Plain for libc::packet_mreq {}

/// A packet socket bound to one interface.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    ring: PacketRing,
}

/// The receive ring: `slots` slots of `slot_len` bytes, filled by the kernel in order.
#[derive(Debug)]
struct PacketRing {
    memory: NonNull<u8>,
    slot_len: usize,
    slots: usize,
    /// The slot to read next.
    next: usize,
}

// SAFETY: the mapping belongs to this value alone, is not tied to a thread, and is only touched
// through `&mut self`.
unsafe impl Send for PacketRing {}

/// One received frame, in the ring.
pub struct Received<'a> {
    /// The virtio-net header.
    pub header: [u8; VnetHeader::LEN],
    /// The frame, without the VLAN tag that the kernel removed, cut off at the slot's length.
    pub bytes: &'a [u8],
    /// Its length before it was cut off.
    pub len: usize,
    /// The whole frame waits to be read with [`PacketSocket::receive_long`].
    pub long: bool,
    /// The removed tag: protocol (0x8100 …) and control information.
    pub tag: Option<[u16; 2]>,
}

impl PacketSocket {
    /// Opens a socket on the interface with this index that receives every frame arriving there,
    /// and none that leaves. The ring has `slots` slots for frames of up to `frame_len` bytes.
    pub fn open(index: u32, frame_len: usize, slots: usize) -> io::Result<PacketSocket> {
        let socket = PacketSocket::new(frame_len, slots)?;
        socket.be_promiscuous(index)?;
        socket.bind(index, ALL_PROTOCOLS)?;
        Ok(socket)
    }

    /// Opens sockets on the interface with this index, between which the kernel splits the frames
    /// that arrive by a hash of their flows (PACKET_FANOUT_HASH). Frames of a flow come to one
    /// socket, in order. Each socket has a ring as [`PacketSocket::open`] says.
    pub fn open_group(
        index: u32,
        count: usize,
        frame_len: usize,
        slots: usize,
    ) -> io::Result<Vec<PacketSocket>> {
        let open = |_| PacketSocket::open(index, frame_len, slots);
        let mut sockets = (0..count).map(open).collect::<io::Result<Vec<PacketSocket>>>()?;
        let mut group = FANOUT_UNIQUE_ID;
        for socket in &sockets {
            set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, group)?;
            // The kernel has chosen a free number, which the other sockets join.
            let joined = get_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, 0 as c_int)?;
            group = joined & FANOUT_ID_MASK | FANOUT_HASH << 16;
        }
        // Until it had joined, each socket received all frames.
        for socket in &mut sockets {
            let _ = (0..slots).all(|_| socket.receive(|_| ()).is_some());
        }
        Ok(sockets)
    }

    /// Opens a socket on the interface with this index that only sends.
    pub fn sender(index: u32) -> io::Result<PacketSocket> {
        let socket = PacketSocket::new(0, 1)?;
        socket.bind(index, NO_PROTOCOL)?;
        Ok(socket)
    }

    /// Opens a socket that only keeps the interface with this index in promiscuous mode.
    pub fn promiscuous(index: u32) -> io::Result<PacketSocket> {
        let socket = PacketSocket::new(0, 1)?;
        socket.be_promiscuous(index)?;
        Ok(socket)
    }

    fn new(frame_len: usize, slots: usize) -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers. Protocol 0: nothing is received until the socket is bound.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the descriptor was just created and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let set = |option: c_int, value: c_int| set_option(fd.as_fd(), libc::SOL_PACKET, option, value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as c_int)?;
        set(libc::PACKET_VNET_HDR, 1)?;
        set(libc::PACKET_IGNORE_OUTGOING, 1)?;
        set(libc::PACKET_COPY_THRESH, 1)?;
        // The emulated queue is the only queue. Without one in front of the device, a full device
        // pushes back.
        set(libc::PACKET_QDISC_BYPASS, 1)?;
        // Refused inside a user namespace. Then the default bounds how many long frames can wait.
        let _ = set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, LONG_FRAMES_LEN)
            .or_else(|_| set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, LONG_FRAMES_LEN));
        let ring = PacketRing::map(fd.as_fd(), frame_len, slots)?;
        Ok(PacketSocket { fd, ring })
    }

    fn be_promiscuous(&self, index: u32) -> io::Result<()> {
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(self.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, promiscuous)
    }

    fn bind(&self, index: u32, protocol: u16) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol,
            sll_ifindex: index as c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` lives through the call and `len` is its size.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(())
    }

    /// Passes the oldest received frame to `take`, then returns its slot to the kernel. `None` if
    /// there is none.
    pub fn receive<R>(&mut self, take: impl FnOnce(Received<'_>) -> R) -> Option<R> {
        self.ring.receive(take)
    }

    /// Reads a frame that was longer than a slot, header first. `None` if it is not there.
    pub fn receive_long(&self, buffer: &mut [u8]) -> Option<usize> {
        let data = buffer.as_mut_ptr().cast();
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
        check_len(unsafe { libc::recv(self.fd.as_raw_fd(), data, buffer.len(), libc::MSG_DONTWAIT) }).ok()
    }

    /// Sends up to [`SEND_BATCH`] frames, complete with their checksums. Returns how many the
    /// device accepted. An error is that of the first frame.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        // All zero: nothing left to do for the kernel (VIRTIO_NET_HDR_GSO_NONE, no flags).
        const COMPLETE: [u8; VnetHeader::LEN] = [0; VnetHeader::LEN];
        const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let part = |bytes: &[u8]| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(),
            iov_len: bytes.len(),
        };
        let mut parts = [[part(&COMPLETE), NOTHING]; SEND_BATCH];
        let mut count = 0;
        for (parts, bytes) in parts.iter_mut().zip(frames) {
            parts[1] = part(bytes);
            count += 1;
        }
        // SAFETY: all zeroes is a message without address, parts and control data. musl's type has
        // further, private fields.
        let empty: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let mut messages = parts.each_mut().map(|parts| {
            let mut message = empty;
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len() as _;
            message
        });
        let fd = self.fd.as_raw_fd();
        // SAFETY: the first `count` messages point to parts, and those to bytes, that live through
        // the call and are only read.
        let sent =
            unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count as c_uint, libc::MSG_DONTWAIT as _) };
        Ok(check(sent)? as usize)
    }

    /// Returns and clears the pending error of the socket.
    pub fn take_error(&self) -> io::Result<()> {
        match get_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR, 0 as c_int)? {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Returns the number of frames that the kernel dropped since the last call because the ring
    /// was full.
    pub fn take_drops(&self) -> u64 {
        let none = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let stats = get_option(self.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, none);
        stats.map_or(0, |stats| stats.tp_drops.into())
    }

    /// Returns whether the interface with this index exists in the namespace of the socket.
    pub fn has_interface(&self, index: u32) -> bool {
        interface::exists(self.as_fd(), index)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PacketRing {
    fn map(socket: BorrowedFd<'_>, frame_len: usize, slots: usize) -> io::Result<PacketRing> {
        // The kernel's own header, alignment and our header take less than 128 bytes before the
        // frame.
        let slot_len = (frame_len + 128).next_power_of_two().clamp(2048, BLOCK_LEN);
        let slots_per_block = BLOCK_LEN / slot_len;
        let blocks = slots.div_ceil(slots_per_block);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_LEN as c_uint,
            tp_block_nr: blocks as c_uint,
            tp_frame_size: slot_len as c_uint,
            tp_frame_nr: (blocks * slots_per_block) as c_uint,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let len = blocks * BLOCK_LEN;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, kind, socket.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).expect("a mapping is never at address 0");
        Ok(PacketRing { memory, slot_len, slots: blocks * slots_per_block, next: 0 })
    }

    fn receive<R>(&mut self, take: impl FnOnce(Received<'_>) -> R) -> Option<R> {
        // SAFETY: `next < slots`, so the slot lies inside the mapping of `slots × slot_len` bytes.
        let slot = unsafe { self.memory.add(self.next * self.slot_len) };
        // SAFETY: a slot begins with a `tpacket2_hdr`. Its first member is the status word, aligned
        // and shared with the kernel, which this type only touches as an atomic.
        let status = unsafe { AtomicU32::from_ptr(slot.as_ptr().cast()) };
        let state = status.load(Ordering::Acquire);
        if state & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours until the status is given back, and begins with a
        // `tpacket2_hdr`.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        // SAFETY: as above; the whole slot is initialised memory that the kernel leaves alone until
        // then.
        let bytes = unsafe { std::slice::from_raw_parts(slot.as_ptr(), self.slot_len) };
        let result = take(Received::of(state, &header, bytes));
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = if self.next + 1 == self.slots { 0 } else { self.next + 1 };
        Some(result)
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.slots * self.slot_len) };
    }
}

impl<'a> Received<'a> {
    /// Finds the parts of a slot. Inconsistent lengths yield an empty frame.
    fn of(state: u32, header: &libc::tpacket2_hdr, slot: &'a [u8]) -> Received<'a> {
        let (at, len) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let bytes = slot.get(at..at + len).unwrap_or_default();
        let before = at.checked_sub(VnetHeader::LEN).and_then(|from| slot.get(from..at));
        let tag = (state & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let known = state & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            [if known { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 }, header.tp_vlan_tci]
        });
        Received {
            header: before.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default(),
            bytes,
            len: header.tp_len as usize,
            long: state & libc::TP_STATUS_COPY != 0,
            tag,
        }
    }
}
