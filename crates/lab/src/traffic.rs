//! The traffic of a description on the hosts of a lab: datagrams over sockets of their kernels.
//!
//! ```text
//!  Packets of each flow ─▶ one thread ─ sendmmsg ─▶ sockets in senders ─▶ the network
//!                                                                            │
//!  Received of each flow ◀─ one thread ◀─ recvmmsg ─ sockets in receivers ◀──┘
//! ```
//!
//! Sockets are opened inside the hosts and used from this process, so both ends read one clock and
//! one-way delays need no synchronisation. A packet carries the time at which it was handed to the
//! kernel; arrivals have the kernel's time. Packets that were due while the sending thread slept
//! leave at once, so the mean rate is that of the model.

use crate::host::Host;
use fastpath_engine::{Clock, Notice};
use fastpath_net::{HostPath, Routes};
use fastpath_spec::{NodeId, Topology, Traffic};
use fastpath_traffic::{FlowEnds, FlowHeader, FlowReport, Packets, Received, Sent};
use fastpath_units::Time;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{Ipv4Tos, Ipv6TClass, RcvBuf, RcvBufForce, ReceiveTimestampns};
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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Receive buffer, bytes: 30 ms at 1 Gbit/s.
const BUFFER: usize = 4 << 20;
/// Datagrams sent or received by one system call.
const BATCH: usize = 64;
/// Minimum sleep of the sender. Datagrams due by then are sent in one batch.
const TICK: Duration = Duration::from_micros(50);
/// Interval between two looks at the flag that ends the threads.
const ATTENTION: Duration = Duration::from_millis(50);
const ATTENTION_MS: u16 = 50;
/// How long the last datagrams may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest UDP payload, bytes.
const PAYLOAD_MAX: usize = 65_535;

/// The traffic of a lab. It ends on drop.
#[derive(Debug)]
pub(crate) struct LabTraffic {
    flows: Arc<Vec<LabFlow>>,
    clock: Clock,
    stop: Arc<AtomicBool>,
    /// Whether the sender has nothing left to send.
    is_sent: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Why traffic cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// A host of it is not in the lab.
    #[error("traffic {traffic}: {host} is a port of this machine; name hosts without port")]
    NoHost {
        /// The traffic.
        traffic: String,
        /// The host.
        host: String,
    },
    /// Its hosts have no route.
    #[error(
        "traffic {traffic}: {from} has no route to an address of {to}; join them by links, or give them addresses"
    )]
    NoRoute {
        /// The traffic.
        traffic: String,
        /// The host that sends.
        from: String,
        /// The host that receives.
        to: String,
    },
    /// A socket could not be opened.
    #[error("traffic {traffic}: {host}: {source}")]
    Socket {
        /// The traffic.
        traffic: String,
        /// The host.
        host: String,
        /// The reason.
        source: io::Error,
    },
}

/// The state of a flow that reports read.
#[derive(Debug)]
struct LabFlow {
    traffic: Traffic,
    /// The names of its hosts.
    ends: [String; 2],
    /// When it starts by the clock of the run: at its start, or when the lab is up.
    start: Time,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: Mutex<Received>,
}

/// A flow as its sender has it.
struct Outgoing {
    socket: UdpSocket,
    packets: Packets,
    sequence: u64,
    /// A batch of payloads.
    payloads: Vec<Vec<u8>>,
}

impl LabTraffic {
    /// Finds what keeps the traffic of a topology from being sent, before anything is made.
    pub(crate) fn check(topology: &Topology) -> Result<(), TrafficError> {
        destinations(topology).map(drop)
    }

    /// Opens the sockets of all traffic and starts it. `None` without traffic.
    pub(crate) fn start(
        topology: &Topology,
        hosts: &[Arc<Host>],
        (seed, clock): (u64, Clock),
        notice: &Notice,
    ) -> Result<Option<LabTraffic>, TrafficError> {
        if topology.traffic.is_empty() {
            return Ok(None);
        }
        let (mut flows, mut outgoing, mut incoming) = (Vec::new(), Vec::new(), Vec::new());
        for (traffic, destination) in topology.traffic.iter().zip(destinations(topology)?) {
            let target = SocketAddr::new(destination, traffic.port);
            let open =
                |id: NodeId, open: &(dyn Fn() -> io::Result<UdpSocket> + Sync)| {
                    let name = &topology.node(id).name;
                    let host = hosts.iter().find(|host| host.node() == id).ok_or_else(|| {
                        TrafficError::NoHost { traffic: traffic.name.clone(), host: name.clone() }
                    })?;
                    host.namespace.within(open).and_then(|opened| opened).map_err(|source| {
                        TrafficError::Socket { traffic: traffic.name.clone(), host: name.clone(), source }
                    })
                };
            incoming.push(open(traffic.to, &|| open_receiver(target))?);
            let socket = open(traffic.from, &|| open_sender(target, traffic.dscp))?;
            let start = traffic.start.max(clock.now());
            let stop = traffic.stop.unwrap_or(Time::from_ps(u64::MAX));
            outgoing.push(Outgoing {
                socket,
                packets: traffic.packets(start, stop, seed),
                sequence: 0,
                payloads: vec![vec![0; traffic.model.size as usize]; BATCH],
            });
            flows.push(LabFlow {
                traffic: traffic.clone(),
                ends: [traffic.from, traffic.to].map(|host| topology.node(host).name.clone()),
                start,
                sent: AtomicU64::new(0),
                sent_bytes: AtomicU64::new(0),
                received: Mutex::default(),
            });
        }
        Ok(Some(LabTraffic::run(flows, outgoing, incoming, clock, notice)))
    }

    /// Starts the threads that send and receive.
    fn run(
        flows: Vec<LabFlow>,
        outgoing: Vec<Outgoing>,
        incoming: Vec<UdpSocket>,
        clock: Clock,
        notice: &Notice,
    ) -> LabTraffic {
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
        LabTraffic { flows, clock, stop, is_sent, threads }
    }

    /// Waits until all is sent, and received or lost, or `stop` is set.
    pub(crate) fn wait(&self, stop: &AtomicBool) {
        let mut quiet = Duration::ZERO;
        let mut before = None;
        while !stop.load(Ordering::Relaxed) && quiet < PATIENCE {
            thread::sleep(ATTENTION);
            if !self.is_sent.load(Ordering::Relaxed) {
                continue;
            }
            let reports = self.reports();
            if reports.iter().all(|flow| flow.lost == 0) {
                return;
            }
            let received: u64 = reports.iter().map(|flow| flow.received).sum();
            quiet =
                if before.replace(received) == Some(received) { quiet + ATTENTION } else { Duration::ZERO };
        }
    }

    /// Ends the traffic and returns the results.
    pub(crate) fn end(mut self) -> Vec<FlowReport> {
        self.close();
        self.reports()
    }

    fn close(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic in a thread has been printed.
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }

    /// Returns the results so far, in the order of the description.
    pub(crate) fn reports(&self) -> Vec<FlowReport> {
        let now = self.clock.now();
        let report = |flow: &LabFlow| {
            let end = flow.traffic.stop.map_or(now, |stop| stop.min(now)).max(flow.start);
            let [from, to] = flow.ends.each_ref().map(String::as_str);
            let ends = FlowEnds { name: &flow.traffic.name, from, to, length: end.since(flow.start) };
            let (packets, bytes) =
                (flow.sent.load(Ordering::Relaxed), flow.sent_bytes.load(Ordering::Relaxed));
            let received = flow.received.lock().unwrap_or_else(PoisonError::into_inner);
            received.report(ends, Sent { packets, bytes })
        };
        self.flows.iter().map(report).collect()
    }
}

impl Drop for LabTraffic {
    fn drop(&mut self) {
        self.close();
    }
}

/// The address to which each flow is sent.
fn destinations(topology: &Topology) -> Result<Vec<IpAddr>, TrafficError> {
    if topology.traffic.is_empty() {
        return Ok(Vec::new());
    }
    let routes = Routes::compute(topology);
    let destination = |traffic: &Traffic| {
        let [from, to] = [traffic.from, traffic.to].map(|id| topology.node(id).name.clone());
        let path = HostPath::find(topology, &routes, traffic.from, traffic.to);
        let no_route = || TrafficError::NoRoute { traffic: traffic.name.clone(), from, to };
        path.map(|path| path.to.1).ok_or_else(no_route)
    };
    topology.traffic.iter().map(destination).collect()
}

fn open_receiver(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    setsockopt(&socket, ReceiveTimestampns, &true)?;
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
    while let Some(Reverse((due, index))) = pending.pop() {
        let now = clock.now();
        if due > now {
            pending.push(Reverse((due, index)));
            if stop.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(due.since(now).to_std().clamp(TICK, ATTENTION));
            continue;
        }
        let flow = &mut outgoing[index];
        match flow.send_due(now, &mut headers) {
            Ok(sent) => {
                let bytes = u64::from(flows[index].traffic.model.size) * sent;
                flows[index].sent.fetch_add(sent, Ordering::Relaxed);
                flows[index].sent_bytes.fetch_add(bytes, Ordering::Relaxed);
                pending.extend(flow.packets.next_at().map(|next| Reverse((next, index))));
            }
            Err(error) => {
                let name = &flows[index].traffic.name;
                notice.send(&format!("traffic {name} ends: sending: {error}"));
            }
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

impl Outgoing {
    /// Sends the packets that are due, at most a batch. Returns how many the kernel took. The
    /// others are left out, as by a full interface.
    fn send_due(&mut self, now: Time, headers: &mut MultiHeaders<SockaddrStorage>) -> Result<u64, Errno> {
        let mut due = 0;
        while due < BATCH && self.packets.next_at().is_some_and(|at| at <= now) {
            self.packets.next();
            let header = FlowHeader { sequence: self.sequence + due as u64, sent: now }.to_bytes();
            self.payloads[due][..header.len()].copy_from_slice(&header);
            due += 1;
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
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, Some(cmsg_space!(TimeSpec)));
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
    {
        let mut slices: Vec<[IoSliceMut; 1]> =
            payloads.iter_mut().map(|payload| [IoSliceMut::new(payload)]).collect();
        match recvmmsg(socket.as_raw_fd(), headers, &mut slices, MsgFlags::empty(), None) {
            Ok(results) => arrivals
                .extend(results.map(|message| (message.bytes, message.cmsgs().ok().and_then(arrival)))),
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    // The kernel's times are those of another clock.
    let (now, wall) = (clock.now(), clock_gettime(ClockId::CLOCK_REALTIME).map(Duration::from)?);
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    for (payload, (bytes, at)) in payloads.iter().zip(arrivals) {
        let ago = at.map_or(Duration::ZERO, |at| wall.saturating_sub(at));
        if let Some(header) = FlowHeader::parse(&payload[..bytes]) {
            received.count(now.saturating_sub(ago.into()), header, bytes);
        }
    }
    Ok(())
}

/// Returns the kernel's time of arrival of a message, since 1970.
pub fn arrival(control: impl IntoIterator<Item = ControlMessageOwned>) -> Option<std::time::Duration> {
    control.into_iter().find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(at) => Some(at.into()),
        _ => None,
    })
}
