//! A port on an existing interface by AF_XDP sockets, one for each receive queue. Frames pass
//! through memory shared with the kernel, before the rest of the network stack has handled them.
//!
//! ```text
//!   interface ─▶ XDP program ─▶ rx ring ─▶ copied into the frame pool      pool ─▶ copied to a chunk ─▶ tx ring ─▶ queue 0
//! ```
//!
//! The copies keep the frames of all ports in one pool of tight slots. Chunks have 2 KiB each and
//! would be spread over memory (`cargo bench -p fastpath-engine` shows the cost of a copy). All
//! frames are sent by the first queue, so that they stay in order.
//!
//! Offloads. The far end of a veth leaves checksums unfinished and, unless the program runs in the
//! driver, hands over super-packets. Nothing but the frame itself indicates either, so both are
//! inferred from the frame (`offload.rs`). VLAN tags that a device on the far end of a veth left to
//! the hardware are lost; a packet socket receives them.

use super::af_packet::AfPacket;
use super::base::PortBase;
use super::claim::Claim;
use super::merging::Merging;
use super::offload::{RxSink, Scratch, infer};
use super::{BURST, Burst, OpenContext, OpenError, Port, PortCounters, PortError, PortKind, interface_of};
use fastpath_net::{FRAME_MAX, Frame, FramePool};
use fastpath_spec::PortName;
use fastpath_sys::bpf::{Mode, Redirect};
use fastpath_sys::epoll::Epoll;
use fastpath_sys::interface;
use fastpath_sys::packet::PacketSocket;
use fastpath_sys::xdp::{Binding, HEADROOM, Umem, XdpSocket};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Bytes of an Ethernet header and two VLAN tags.
const LINK_HEADERS: usize = 14 + 8;
/// The longest chunk: a page.
const CHUNK_MAX: usize = 4096;
/// The length of the shortest frame.
const FRAME_MIN: usize = 14;
/// Time between checks of the socket's error while nothing arrives; they cost system calls.
const CHECK_EVERY: fastpath_units::Duration = fastpath_units::Duration::from_ms(250);
/// A queue that another socket has just left is busy for up to 24 ms.
const BUSY_TRIES: u32 = 10;
const BUSY_RETRY_DELAY: Duration = Duration::from_millis(10);

pub(super) const KINDS: &[PortKind] = &[
    PortKind {
        name: "xdp",
        about: "an existing interface by AF_XDP; a packet socket where AF_XDP is unavailable",
        needs: "CAP_NET_RAW and CAP_BPF, Linux 5.10 or later",
        open: |name, context| open(name, None, context),
    },
    PortKind {
        name: "xdp-native",
        about: "as xdp, with the XDP program in the driver",
        needs: "a driver with native XDP",
        open: |name, context| open(name, Some(XdpMode::Native), context),
    },
    PortKind {
        name: "xdp-generic",
        about: "as xdp, with the XDP program in the network stack",
        needs: "CAP_NET_RAW and CAP_BPF, Linux 5.10 or later",
        open: |name, context| open(name, Some(XdpMode::Generic), context),
    },
];

/// Opens a port by AF_XDP, or by a packet socket where AF_XDP is unavailable, with a notice.
fn open(
    name: &PortName,
    mode: Option<XdpMode>,
    context: &mut OpenContext<'_>,
) -> Result<Box<dyn Port>, OpenError> {
    let interface = interface_of(name);
    let names = &context.names;
    let memory = context.xdp.get_or_insert_with(|| {
        let is_xdp = |name: &&PortName| KINDS.iter().any(|kind| kind.name == name.kind());
        XdpMemory::for_ports(names.iter().filter(is_xdp).map(interface_of))
    });
    match AfXdp::open(interface, mode, memory) {
        Ok(port) => Ok(Box::new(port)),
        Err(error @ (OpenError::NoSuchInterface { .. } | OpenError::InUse { process: Some(_), .. })) => {
            Err(error)
        }
        Err(why) => {
            context.notice.send(&format!("AF_XDP unavailable ({why}), falling back to AF_PACKET"));
            Ok(Box::new(AfPacket::open(interface)?))
        }
    }
}

/// The hook at which the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XdpMode {
    /// The program runs in the driver.
    Native,
    /// In the network stack, for every device.
    Generic,
}

/// The directions that a port uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Both,
    Send,
}

/// An interface of this machine, as a port.
pub struct AfXdp {
    base: PortBase,
    index: u32,
    mode: XdpMode,
    /// One per queue. Several are polled through `readable`.
    sockets: Vec<XdpSocket>,
    readable: Option<Epoll>,
    mtu: usize,
    scratch: Scratch,
    /// A frame that arrived in several pieces.
    whole: Vec<u8>,
    checked_at: Time,
    memory: String,
    merging: Merging,
    /// Detaches the program before the sockets close; `None` if nothing is received.
    _redirect: Option<Redirect>,
    /// Holds the interface in promiscuous mode.
    _promiscuous: PacketSocket,
    claim: Claim,
}

/// Memory that the ports of one engine share, allocated when the first of them opens.
#[derive(Debug, Default)]
pub struct XdpMemory {
    umem: Option<Umem>,
    /// Number of sockets it has room for.
    sockets: usize,
    /// Bytes of a chunk, for the largest MTU.
    chunk_len: usize,
}

impl XdpMemory {
    /// For the interfaces called `names` of the thread's network namespace.
    pub fn for_ports<'n>(names: impl Iterator<Item = &'n str>) -> XdpMemory {
        let mut memory = XdpMemory::default();
        for name in names {
            memory.sockets += interface::rx_queues(name) as usize;
            let mtu = interface::any_socket().and_then(|any| interface::mtu(any.as_fd(), name));
            memory.chunk_len = memory.chunk_len.max(mtu.ok().and_then(chunk_len).unwrap_or(0));
        }
        memory
    }

    fn umem(&mut self, sockets: usize, chunk_len: usize) -> io::Result<&mut Umem> {
        if self.umem.is_none() {
            self.umem = Some(Umem::new(self.sockets.max(sockets), self.chunk_len.max(chunk_len))?);
        }
        Ok(self.umem.as_mut().expect("just made"))
    }
}

/// Returns the length of the chunks that hold every frame of an interface with this MTU; `None` if
/// it is too large.
fn chunk_len(mtu: usize) -> Option<usize> {
    [2048, CHUNK_MAX].into_iter().find(|len| mtu + LINK_HEADERS + HEADROOM <= *len)
}

impl AfXdp {
    /// Opens the interface `name` of the thread's network namespace, which should be up, with
    /// chunks of `memory`. Without a mode the program runs in the network stack for veth, where
    /// native XDP costs more, and in the driver for others. Where that mode is refused, the other
    /// one is used.
    pub fn open(name: &str, mode: Option<XdpMode>, memory: &mut XdpMemory) -> Result<AfXdp, OpenError> {
        let first = match mode {
            Some(mode) => mode,
            None if interface::driver(name).is_ok_and(|driver| driver == "veth") => XdpMode::Generic,
            None => XdpMode::Native,
        };
        let second = if first == XdpMode::Native { XdpMode::Generic } else { XdpMode::Native };
        match AfXdp::open_in(name, first, Purpose::Both, memory) {
            Err(OpenError::System { .. }) if mode.is_none() => {
                AfXdp::open_in(name, second, Purpose::Both, memory)
            }
            result => result,
        }
    }

    /// Opens the egress of the interface `name` only, as a traffic source. Frames that arrive at
    /// the interface reach the host as usual.
    pub fn sender(name: &str) -> Result<AfXdp, OpenError> {
        let mut memory = XdpMemory::for_ports([name].into_iter());
        AfXdp::open_in(name, XdpMode::Generic, Purpose::Send, &mut memory)
    }

    fn open_in(
        name: &str,
        mode: XdpMode,
        purpose: Purpose,
        memory: &mut XdpMemory,
    ) -> Result<AfXdp, OpenError> {
        let failed = |operation| move |error| OpenError::from_os(name, operation, error);
        let index = interface::index_of(name).map_err(failed("looking for the interface"))?;
        let claim = Claim::take(name, index)?;
        let mtu = interface::mtu(claim.as_fd(), name).map_err(failed("asking for the MTU"))?;
        let Some(chunk_len) = chunk_len(mtu) else {
            let most = CHUNK_MAX - HEADROOM - LINK_HEADERS;
            return Err(OpenError::MtuTooLarge { name: name.to_owned(), mtu, most });
        };
        let promiscuous = PacketSocket::promiscuous(index).map_err(failed("becoming promiscuous"))?;
        let queues = interface::rx_queues(name);
        let generic = mode == XdpMode::Generic;
        let program_mode = if generic { Mode::Generic } else { Mode::Native };
        let attach = || Redirect::attach(index, queues, program_mode);
        let redirect = (purpose == Purpose::Both).then(attach).transpose();
        let redirect = redirect.map_err(failed("attaching the XDP program"))?;
        let umem = memory.umem(queues as usize, chunk_len).map_err(failed("taking memory for XDP"))?;
        let several = (queues > 1).then(Epoll::new);
        let readable = several.transpose().map_err(failed("making an epoll set"))?;
        let mut sockets = Vec::new();
        for queue in 0..queues {
            let socket =
                bind(umem, Binding { index, queue, generic }).map_err(failed("binding an XDP socket"))?;
            if let Some(redirect) = &redirect {
                redirect.send_to(queue, socket.as_fd()).map_err(failed("redirecting frames"))?;
            }
            if let Some(readable) = &readable {
                readable.add(socket.as_fd(), queue.into()).map_err(failed("adding to an epoll set"))?;
            }
            sockets.push(socket);
        }
        let (bytes, huge) = umem.extent();
        Ok(AfXdp {
            base: PortBase::new(name),
            index,
            mode,
            sockets,
            readable,
            mtu,
            scratch: Scratch::default(),
            whole: Vec::with_capacity(FRAME_MAX),
            checked_at: Time::ZERO,
            memory: format!("{} of {} MiB on huge pages", huge >> 20, bytes >> 20),
            merging: Merging::switch_off(claim.as_fd(), name),
            _redirect: redirect,
            _promiscuous: promiscuous,
            claim,
        })
    }

    /// Checks for a pending error of a socket: ENETDOWN after the interface went down, and after it
    /// was removed.
    fn check(&mut self) -> Result<(), PortError> {
        for socket in &self.sockets {
            match socket.take_error() {
                Err(error) if error.raw_os_error() != Some(libc::ENETDOWN) => {
                    return Err(self.base.failure("receiving", error));
                }
                _ => {}
            }
        }
        if interface::exists(self.claim.as_fd(), self.index) { Ok(()) } else { Err(self.base.gone()) }
    }

    /// Makes the kernel send what is in the ring.
    fn send(&mut self) -> Result<(), PortError> {
        if !self.sockets[0].is_sending() {
            return Ok(());
        }
        match self.sockets[0].send() {
            Ok(()) => Ok(()),
            // Frames in the ring wait there until the interface is up again.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                if interface::exists(self.claim.as_fd(), self.index) { Ok(()) } else { Err(self.base.gone()) }
            }
            Err(error) => Err(self.base.failure("sending", error)),
        }
    }

    /// Returns whether the device can ever send a frame of this length.
    fn is_sendable(&self, len: usize) -> bool {
        (FRAME_MIN..=self.mtu + LINK_HEADERS).contains(&len)
    }
}

/// Binds a socket to a queue, which may be busy for a moment after another socket left it.
fn bind(umem: &mut Umem, binding: Binding) -> io::Result<XdpSocket> {
    for _ in 0..BUSY_TRIES {
        match XdpSocket::open(umem, binding) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(BUSY_RETRY_DELAY),
            result => return result,
        }
    }
    XdpSocket::open(umem, binding)
}

impl Port for AfXdp {
    fn name(&self) -> &str {
        &self.base.name
    }

    fn kind(&self) -> String {
        let mode = if self.mode == XdpMode::Native { "native" } else { "generic" };
        let queues = self.sockets.len();
        format!("AF_XDP ({mode}, {queues} queue{}, {})", if queues == 1 { "" } else { "s" }, self.memory)
    }

    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        // Frames that the device had no room for are retried, also when there are no new frames to
        // send.
        self.send()?;
        let mut arrivals = RxSink { pool, burst, counters: &mut self.base.counters };
        let (whole, scratch, mtu) = (&mut self.whole, &mut self.scratch, self.mtu);
        for socket in &mut self.sockets {
            if arrivals.burst.is_full() {
                break;
            }
            socket.receive(|piece, is_last| {
                if is_last && whole.is_empty() {
                    arrivals.finish(&infer(piece, mtu), piece, scratch);
                    return !arrivals.burst.is_full();
                }
                whole.extend_from_slice(piece);
                if is_last {
                    arrivals.finish(&infer(whole, mtu), whole, scratch);
                    whole.clear();
                }
                !arrivals.burst.is_full()
            });
        }
        if arrivals.burst.is_empty() && now.since(self.checked_at) >= CHECK_EVERY {
            self.checked_at = now;
            return self.check();
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
            let Some(first) = frames.front() else { break };
            if !self.is_sendable(first.len()) {
                self.base.counters.tx_refused += 1;
                pool.free(frames.pop_front().expect("the frame just looked at"));
                continue;
            }
            let good = frames.iter().take(BURST).take_while(|frame| self.is_sendable(frame.len())).count();
            let count = self.sockets[0].queue(frames.iter().take(good).map(|frame| pool.bytes(frame)));
            self.base.sent(frames.drain(..count), pool);
            if count < good || frames.is_empty() {
                break;
            }
        }
        self.send()
    }

    fn show_carrier(&mut self, _is_on: bool) -> bool {
        false
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.readable.as_ref().map(Epoll::as_fd).or_else(|| self.sockets.first().map(XdpSocket::as_fd))
    }

    fn counters(&mut self) -> PortCounters {
        self.base.counters.rx_overrun += self.sockets.iter_mut().map(XdpSocket::take_drops).sum::<u64>();
        self.base.counters
    }
}

impl Drop for AfXdp {
    fn drop(&mut self) {
        self.merging.restore(self.claim.as_fd(), &self.base.name);
    }
}
