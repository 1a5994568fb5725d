//! Datagrams over sockets of the hosts: one thread sends those of all flows, one receives them.

use super::flow::LabFlow;
use super::hosts::{TrafficError, locked, paths, times_of, within};
use crate::host::Host;
use fastpath_engine::{Clock, Notice};
use fastpath_spec::{NodeId, Topology};
use fastpath_traffic::{FlowHeader, Pacer, Received};
use fastpath_units::Time;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{Ipv4Tos, Ipv6TClass, RcvBuf, RcvBufForce, ReceiveTimestampns, RxqOvfl};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg,
    setsockopt,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Receive buffer, bytes: 30 ms at 1 Gbit/s.
const BUFFER: usize = 4 << 20;
/// Datagrams sent or received by one system call.
const BATCH: usize = 64;
/// Minimum sleep of the sender. Datagrams due by then are sent in one batch.
const TICK: Duration = Duration::from_micros(50);
/// A sleep may end this much too late. What leaves so shortly before a stop is waited for awake.
const LAST: Duration = Duration::from_micros(300);
/// Interval between two looks at the flag that ends the threads.
const ATTENTION: Duration = Duration::from_millis(50);
const ATTENTION_MS: u16 = 50;
/// How often two clocks are read for one instant at most, and how near two readings need not be
/// repeated.
const CLOCK_READINGS: usize = 8;
const CLOCKS_APART: fastpath_units::Duration = fastpath_units::Duration::from_us(1);
/// The largest UDP payload, bytes.
const PAYLOAD_MAX: usize = 65_535;

/// The threads that send and receive the datagrams of a lab.
#[derive(Debug)]
pub(super) struct SocketFlows {
    pub(super) flows: Arc<Vec<LabFlow>>,
    stop: Arc<AtomicBool>,
    /// Whether the sender has nothing left to send.
    is_sent: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A flow as its sender has it.
struct Outgoing {
    socket: UdpSocket,
    packets: Pacer,
    sequence: u64,
    /// A batch of payloads.
    payloads: Vec<Vec<u8>>,
}

impl SocketFlows {
    /// Opens the sockets of all datagrams and starts them.
    pub(super) fn start(
        topology: &Topology,
        hosts: &[Arc<Host>],
        (seed, clock): (u64, Clock),
        notice: &Notice,
    ) -> Result<SocketFlows, TrafficError> {
        let (mut flows, mut outgoing, mut incoming) = (Vec::new(), Vec::new(), Vec::new());
        for (traffic, destination) in topology.traffic.iter().zip(destinations(topology)?) {
            let target = SocketAddr::new(destination, traffic.port);
            let name = &traffic.name;
            let open = |id: NodeId, open: &(dyn Fn() -> io::Result<UdpSocket> + Sync)| {
                within((topology, hosts), (name, id), open)
            };
            incoming.push(open(traffic.to, &|| open_receiver(target))?);
            let socket = open(traffic.from, &|| open_sender(target, traffic.dscp))?;
            let (start, stop) = times_of((name, traffic.start, traffic.stop), clock, notice);
            let packets = traffic.packets(start, stop, seed);
            outgoing.push(Outgoing {
                socket,
                packets: Pacer::new(packets.clone()),
                sequence: 0,
                payloads: vec![vec![0; traffic.model.size as usize]; BATCH],
            });
            flows.push(LabFlow::new(topology, traffic, start, packets));
        }
        Ok(SocketFlows::run(flows, outgoing, incoming, clock, notice))
    }

    /// Starts the threads that send and receive.
    fn run(
        flows: Vec<LabFlow>,
        outgoing: Vec<Outgoing>,
        incoming: Vec<UdpSocket>,
        clock: Clock,
        notice: &Notice,
    ) -> SocketFlows {
        let (flows, stop) = (Arc::new(flows), Arc::new(AtomicBool::new(false)));
        let is_sent = Arc::new(AtomicBool::new(false));
        let sender = {
            let (flows, stop, notice) = (Arc::clone(&flows), Arc::clone(&stop), notice.clone());
            let is_sent = Arc::clone(&is_sent);
            move || {
                send(&flows, outgoing, clock, &stop, &notice);
                is_sent.store(true, Ordering::Relaxed);
            }
        };
        let receiver = {
            let (flows, stop, notice) = (Arc::clone(&flows), Arc::clone(&stop), notice.clone());
            move || {
                if let Err(error) = receive(&flows, &incoming, clock, &stop) {
                    notice.send(&format!("receiving traffic: {error}"));
                }
            }
        };
        // Receivers are ready before the first packet.
        let threads = vec![thread::spawn(receiver), thread::spawn(sender)];
        SocketFlows { flows, stop, is_sent, threads }
    }

    /// Whether all is sent.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }

    /// Ends the threads.
    pub(super) fn close(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic in a thread has been printed.
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

/// The address to which each flow is sent.
pub(super) fn destinations(topology: &Topology) -> Result<Vec<IpAddr>, TrafficError> {
    Ok(paths(topology)?.iter().map(|path| path.to.1).collect())
}

fn open_receiver(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    setsockopt(&socket, ReceiveTimestampns, &true)?;
    setsockopt(&socket, RxqOvfl, &1)?;
    // Above the system's limit only with CAP_NET_ADMIN.
    setsockopt(&socket, RcvBufForce, &BUFFER).or_else(|_| setsockopt(&socket, RcvBuf, &BUFFER))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn open_sender(target: SocketAddr, dscp: u8) -> io::Result<UdpSocket> {
    let any: IpAddr = if target.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    let class = i32::from(dscp) << 2;
    match target.is_ipv4() {
        true => setsockopt(&socket, Ipv4Tos, &class)?,
        false => setsockopt(&socket, Ipv6TClass, &class)?,
    }
    socket.connect(target)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Sends until no flow has a packet or `stop` is set.
fn send(flows: &[LabFlow], mut outgoing: Vec<Outgoing>, clock: Clock, stop: &AtomicBool, notice: &Notice) {
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
    let pending = outgoing.iter().enumerate();
    let mut pending: BinaryHeap<Reverse<(Time, usize)>> =
        pending.filter_map(|(index, flow)| Some(Reverse((flow.packets.next_at()?, index)))).collect();
    while let Some(Reverse((leaves, index))) = pending.pop() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (now, flow) = (clock.now(), &mut outgoing[index]);
        if now >= flow.packets.stop() {
            // What is still due is missed.
            continue;
        }
        if leaves > now {
            pending.push(Reverse((leaves, index)));
            match flow.sleep(now, leaves) {
                Some(sleep) => thread::sleep(sleep),
                None => thread::yield_now(),
            }
            continue;
        }
        match flow.send_due(now, &mut headers) {
            Ok(packets) => {
                let mut sent = locked(&flows[index].sent);
                sent.packets += packets;
                sent.bytes += u64::from(flows[index].traffic.model.size) * packets;
                sent.burst_max = sent.burst_max.max(packets);
                sent.last = if packets > 0 { Some(now) } else { sent.last };
                pending.extend(flow.packets.next_at().map(|next| Reverse((next, index))));
            }
            Err(error) => {
                let name = &flows[index].traffic.name;
                notice.send(&format!("traffic {name} ends: sending: {error}"));
            }
        }
    }
}

impl Outgoing {
    /// How long the sender may sleep before the next packet leaves. `None` where a sleep would take
    /// too long: the flow is behind, or the packet leaves just before the stop.
    fn sleep(&self, now: Time, leaves: Time) -> Option<Duration> {
        let wait = leaves.since(now).to_std();
        if self.packets.stop().since(leaves).to_std() < LAST {
            return wait.checked_sub(LAST).map(|early| early.min(ATTENTION));
        }
        (wait >= TICK || !self.packets.is_behind(now)).then(|| wait.clamp(TICK, ATTENTION))
    }

    /// Sends the packets that may leave, at most a batch. Returns how many the kernel took. The
    /// others are missed, as by a full interface.
    fn send_due(&mut self, now: Time, headers: &mut MultiHeaders<SockaddrStorage>) -> Result<u64, Errno> {
        let mut due = 0;
        while due < BATCH && self.packets.take(now).is_some() {
            let header = FlowHeader { sequence: self.sequence + due as u64, sent: now }.to_bytes();
            self.payloads[due][..header.len()].copy_from_slice(&header);
            due += 1;
        }
        if due == 0 {
            return Ok(0);
        }
        let slices: Vec<[IoSlice; 1]> =
            self.payloads[..due].iter().map(|payload| [IoSlice::new(payload)]).collect();
        let (targets, none): (Vec<Option<SockaddrStorage>>, [ControlMessage; 0]) = (vec![None; due], []);
        let results = sendmmsg(self.socket.as_raw_fd(), headers, &slices, targets, none, MsgFlags::empty());
        let sent = match results {
            Ok(results) => results.count() as u64,
            Err(Errno::ENOBUFS | Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => 0,
            Err(error) => return Err(error),
        };
        self.sequence += sent;
        Ok(sent)
    }
}

/// Receives until `stop` is set.
fn receive(flows: &[LabFlow], sockets: &[UdpSocket], clock: Clock, stop: &AtomicBool) -> io::Result<()> {
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, Some(cmsg_space!(TimeSpec, u32)));
    let size = flows.iter().map(|flow| flow.traffic.model.size as usize).max().unwrap_or(0).min(PAYLOAD_MAX);
    let mut payloads = vec![vec![0; size]; BATCH];
    while !stop.load(Ordering::Relaxed) {
        let mut ready: Vec<PollFd> =
            sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        match poll(&mut ready, PollTimeout::from(ATTENTION_MS)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<usize> =
            (0..ready.len()).filter(|index| ready[*index].any().unwrap_or(false)).collect();
        for index in ready {
            take(&sockets[index], &mut headers, &mut payloads, clock, &flows[index].received)?;
        }
    }
    Ok(())
}

/// Takes a batch of datagrams from a socket.
fn take(
    socket: &UdpSocket,
    headers: &mut MultiHeaders<SockaddrStorage>,
    payloads: &mut [Vec<u8>],
    clock: Clock,
    received: &Mutex<Received>,
) -> io::Result<()> {
    let mut arrivals: Vec<(usize, Option<Duration>)> = Vec::with_capacity(BATCH);
    let mut overrun = None;
    {
        let mut slices: Vec<[IoSliceMut; 1]> =
            payloads.iter_mut().map(|payload| [IoSliceMut::new(payload)]).collect();
        match recvmmsg(socket.as_raw_fd(), headers, &mut slices, MsgFlags::empty(), None) {
            Ok(results) => arrivals.extend(results.map(|message| {
                let control: Vec<ControlMessageOwned> = message.cmsgs().into_iter().flatten().collect();
                overrun = control.iter().find_map(dropped).or(overrun);
                (message.bytes, arrival(control))
            })),
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    let (now, wall) = clocks(clock)?;
    let mut received = locked(received);
    if let Some(packets) = overrun {
        received.set_overrun(packets);
    }
    for (payload, (bytes, at)) in payloads.iter().zip(arrivals) {
        let ago = at.map_or(Duration::ZERO, |at| wall.saturating_sub(at));
        if let Some(header) = FlowHeader::parse(&payload[..bytes]) {
            received.count(now.saturating_sub(ago.into()), header, bytes);
        }
    }
    Ok(())
}

/// Reads the clock of the run and, for the same instant, that of the kernel's stamps. The thread
/// may lose the processor between two readings, so the kernel's is taken between two of the run:
/// the tightest of a few pairs, and of that the later time. An arrival is never taken for an
/// earlier one.
fn clocks(clock: Clock) -> Result<(Time, Duration), Errno> {
    let mut best = (Time::ZERO, Duration::ZERO);
    let mut width = None;
    for _ in 0..CLOCK_READINGS {
        let before = clock.now();
        let wall = clock_gettime(ClockId::CLOCK_REALTIME).map(Duration::from)?;
        let after = clock.now();
        let between = after.since(before);
        if width.is_none_or(|least| between < least) {
            (best, width) = ((after, wall), Some(between));
        }
        if between <= CLOCKS_APART {
            break;
        }
    }
    Ok(best)
}

/// Returns the kernel's time of arrival of a message, since 1970.
pub fn arrival(control: impl IntoIterator<Item = ControlMessageOwned>) -> Option<std::time::Duration> {
    control.into_iter().find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(at) => Some(at.into()),
        _ => None,
    })
}

/// The packets that the socket of a message had dropped before it, because its buffer was full. The
/// kernel says nothing while there are none.
fn dropped(message: &ControlMessageOwned) -> Option<u64> {
    match message {
        ControlMessageOwned::RxqOvfl(packets) => Some(u64::from(*packets)),
        _ => None,
    }
}
