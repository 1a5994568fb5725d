//! A port on an existing interface (a network card, a veth end) by a packet socket. The engine
//! receives every frame that arrives at the interface. Sent frames leave as if the host had sent
//! them.
//!
//! Offloads. The far end of a veth hands over TCP super-packets and unfinished checksums, and no
//! setting on this end prevents it. So the socket carries virtio-net headers, and `offload.rs`
//! completes each segment. Cards that merge packets on arrival would hide the arrival times of the
//! single packets, and some merges (LRO) cannot be undone. GRO and LRO are therefore switched off
//! on the interface while the port is open, and restored. Sent frames are complete, so the transmit
//! offloads of the interface have nothing to do.
//!
//! A VLAN tag that the kernel removed from a frame is restored.

use super::base::PortBase;
use super::claim::Claim;
use super::merging::Merging;
use super::offload::{HEADER_LEN, RxSink, Scratch};
use super::{BURST, Burst, OpenError, Port, PortCounters, PortError, PortKind, interface_of};
use fastpath_net::{FRAME_MAX, Frame, FramePool};
use fastpath_sys::interface;
use fastpath_sys::packet::{PacketSocket, Received};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Memory of the receive ring: at 1.5 million small frames per second, an interruption of the
/// engine of 5 ms.
const RING_LEN: usize = 16 << 20;
/// Bytes of an Ethernet header and two VLAN tags.
const LINK_HEADERS: usize = 14 + 8;
/// Empty polls of the ring between checks of the socket's error, which cost a system call.
const POLLS_PER_CHECK: u32 = 1024;
/// Time between these checks for an interface that was down.
const CHECK_EVERY: fastpath_units::Duration = fastpath_units::Duration::from_ms(100);

pub(super) const KINDS: &[PortKind] = &[PortKind {
    name: "packet",
    about: "an existing interface by a packet socket; sees TCP super-packets and VLAN tags as sent",
    needs: "CAP_NET_RAW in the network namespace",
    open: |name, _| Ok(Box::new(AfPacket::open(interface_of(name))?)),
}];

/// An interface of this machine, as a port.
pub struct AfPacket {
    base: PortBase,
    index: u32,
    socket: PacketSocket,
    /// Memory for a frame longer than a ring slot.
    buffer: Box<[u8]>,
    scratch: Scratch,
    empty_polls: u32,
    /// Set once the interface was down, so that it may have been removed: when it was last seen to
    /// exist.
    went_down: Option<Time>,
    merging: Merging,
    /// Shared by the channels of an interface.
    _claim: Arc<Claim>,
}

impl AfPacket {
    /// Opens the interface `name` of the thread's network namespace. The interface should be up.
    /// While it is down, nothing arrives, and sent frames are dropped and counted.
    pub fn open(name: &str) -> Result<AfPacket, OpenError> {
        let mut one = AfPacket::open_with(name, |index, frame_len, slots| {
            Ok(vec![PacketSocket::open(index, frame_len, slots)?])
        })?;
        Ok(one.remove(0))
    }

    /// Opens the interface as `channels` ports, between which the kernel splits what arrives by flows:
    /// frames of a flow arrive at one of them, in order.
    pub fn open_channels(name: &str, channels: usize) -> Result<Vec<AfPacket>, OpenError> {
        AfPacket::open_with(name, |index, frame_len, slots| {
            PacketSocket::open_group(index, channels, frame_len, slots)
        })
    }

    fn open_with(
        name: &str,
        open: impl FnOnce(u32, usize, usize) -> io::Result<Vec<PacketSocket>>,
    ) -> Result<Vec<AfPacket>, OpenError> {
        let failed = |operation| move |error| OpenError::from_os(name, operation, error);
        let index = interface::index_of(name).map_err(failed("looking for the interface"))?;
        let claim = Arc::new(Claim::take(name, index)?);
        let mtu = interface::mtu(claim.as_fd(), name).map_err(failed("asking for the MTU"))?;
        let frame_len = mtu.min(FRAME_MAX) + LINK_HEADERS;
        let sockets = open(index, frame_len, RING_LEN / (frame_len + 128).next_power_of_two())
            .map_err(failed("opening a packet socket"))?;
        let port = |socket: PacketSocket| AfPacket {
            base: PortBase::new(name),
            index,
            // The first finds the merging on, and restores it.
            merging: Merging::switch_off(socket.as_fd(), name),
            socket,
            buffer: vec![0; HEADER_LEN + FRAME_MAX].into_boxed_slice(),
            scratch: Scratch::default(),
            empty_polls: 0,
            went_down: None,
            _claim: Arc::clone(&claim),
        };
        Ok(sockets.into_iter().map(port).collect())
    }

    /// Checks that the interface exists. The socket's error is ENETDOWN after the interface went
    /// down. A removed interface goes down first, and the kernel reports nothing when it is gone,
    /// so the check is repeated.
    fn check(&mut self, now: Time) -> Result<(), PortError> {
        self.empty_polls = 0;
        match self.socket.take_error() {
            Err(error) if error.raw_os_error() != Some(libc::ENETDOWN) => {
                return Err(self.base.failure("receiving", error));
            }
            Err(_) => self.went_down = Some(now),
            Ok(()) => self.went_down = self.went_down.map(|_| now),
        }
        if self.went_down.is_some() && !self.socket.has_interface(self.index) {
            return Err(self.base.gone());
        }
        Ok(())
    }
}

impl Port for AfPacket {
    fn name(&self) -> &str {
        &self.base.name
    }

    fn kind(&self) -> String {
        "AF_PACKET".to_owned()
    }

    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        let mut arrivals = RxSink { pool, burst, counters: &mut self.base.counters };
        while !arrivals.burst.is_full() {
            let scratch = &mut self.scratch;
            let Some(rest) = self.socket.receive(|frame| accept(&frame, &mut arrivals, scratch)) else {
                self.empty_polls += 1;
                let is_due = |seen: Time| now.since(seen) >= CHECK_EVERY;
                if self.empty_polls >= POLLS_PER_CHECK || self.went_down.is_some_and(is_due) {
                    return self.check(now);
                }
                break;
            };
            if let Rest::InSocket { tag } = rest {
                let len = self.socket.receive_long(&mut self.buffer).unwrap_or(0);
                match self.buffer[..len].split_first_chunk() {
                    Some((header, frame)) => take(header, frame, tag, &mut arrivals, &mut self.scratch),
                    None => arrivals.counters.rx_overrun += 1,
                }
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
        send_burst(&self.socket, self.index, &mut self.base, pool, frames)
    }

    fn show_carrier(&mut self, _is_on: bool) -> bool {
        false
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn counters(&mut self) -> PortCounters {
        self.base.counters.rx_overrun += self.socket.take_drops();
        self.base.counters
    }
}

impl Drop for AfPacket {
    fn drop(&mut self) {
        self.merging.restore(self.socket.as_fd(), &self.base.name);
    }
}

/// Sends frames from the front of `frames` by a packet socket on the interface with this index.
/// Frames that the device has no room for stay.
pub(super) fn send_burst(
    socket: &PacketSocket,
    index: u32,
    base: &mut PortBase,
    pool: &mut FramePool,
    frames: &mut VecDeque<Frame>,
) -> Result<(), PortError> {
    for _ in 0..BURST {
        if frames.is_empty() {
            break;
        }
        match socket.send(frames.iter().take(BURST).map(|frame| pool.bytes(frame))) {
            Ok(count) => {
                base.sent(frames.drain(..count), pool);
                break;
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => break,
                Some(libc::ENETDOWN) if socket.has_interface(index) => base.counters.tx_down += 1,
                Some(libc::ENETDOWN) => return Err(base.gone()),
                Some(libc::EINVAL | libc::EMSGSIZE) => base.counters.tx_refused += 1,
                _ => return Err(base.failure("sending", error)),
            },
        }
        pool.free(frames.pop_front().expect("the frame just refused"));
    }
    Ok(())
}

/// What remains to be done for a frame found in the ring.
enum Rest {
    Nothing,
    /// The frame was too long for its slot, and waits whole in the socket.
    InSocket {
        tag: Option<[u16; 2]>,
    },
}

/// Takes a frame out of its ring slot.
fn accept(frame: &Received<'_>, arrivals: &mut RxSink<'_>, scratch: &mut Scratch) -> Rest {
    if frame.long {
        return Rest::InSocket { tag: frame.tag };
    }
    if frame.bytes.len() < frame.len {
        // Longer than its slot, and the socket had no room for the whole frame.
        arrivals.counters.rx_overrun += 1;
    } else {
        take(&frame.header, frame.bytes, frame.tag, arrivals, scratch);
    }
    Rest::Nothing
}

fn take(
    header: &[u8; HEADER_LEN],
    frame: &[u8],
    tag: Option<[u16; 2]>,
    arrivals: &mut RxSink<'_>,
    scratch: &mut Scratch,
) {
    match tag {
        None => arrivals.take(header, frame, scratch),
        Some(tag) => arrivals.take_tagged(header, frame, tag, scratch),
    }
}
