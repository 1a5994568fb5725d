//! Connections of TCP over sockets of the hosts: the kernel sends, recovers and acknowledges.
//!
//! ```text
//!  TransferProgram ─ bytes to write ─▶ socket in one host ─▶ the network ─▶ socket in the other
//!        ▲                                                                        │
//!        └────────────────────────── bytes received ◀─────────────────────────────┘
//! ```
//!
//! One thread for each transfer has both ends of its connections. Which connection an accepted
//! socket belongs to, whatever address a NAT gives it, is said by its first two bytes; they count
//! as others do.

use super::connection::{LiveConnection, Wish};
use super::hosts::{TrafficError, locked, path_of, times_of, within};
use crate::host::Host;
use fastpath_engine::{Clock, Notice};
use fastpath_net::Routes;
use fastpath_spec::{NodeId, Topology, TransferTraffic};
use fastpath_sys::epoll::Epoll;
use fastpath_sys::tcp::set_congestion;
use fastpath_traffic::{
    CongestionControl, TransferEnds, TransferProgram, TransferProtocol, TransferReport, TransferSide,
    TransportCounts, Workload,
};
use fastpath_units::{Distribution, Rng, Time};
use nix::sys::socket::sockopt::{Ipv4Tos, Ipv6TClass, ReuseAddr};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket,
};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between two looks at the flag that ends the threads.
const ATTENTION: Duration = Duration::from_millis(50);
/// How long what is on the way at the stop may take.
const DRAIN: fastpath_units::Duration = fastpath_units::Duration::from_ms(1000);
/// The number by which the listening socket is reported. Ends have their flow times two, and the
/// side; accepted sockets that are not known yet have numbers from `STRANGERS` on.
const LISTENER: u64 = u64::MAX;
const STRANGERS: u64 = 1 << 32;
/// Bytes of the number of a connection, at its beginning.
const NUMBER_LEN: u64 = 2;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Whether connections ask for ECN: 0 they do not and none is accepted, 1 they do, 2 they do not.
const TCP_ECN: &str = "/proc/sys/net/ipv4/tcp_ecn";

/// The transfers of a lab. They end by [`SocketTransfers::close`].
#[derive(Debug)]
pub(super) struct SocketTransfers {
    transfers: Vec<Arc<Mutex<SocketTransfer>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// What hosts had of [`TCP_ECN`].
    ecn_before: Vec<(Arc<Host>, String)>,
}

/// One transfer.
#[derive(Debug)]
struct SocketTransfer {
    traffic: TransferTraffic,
    /// The names of its hosts.
    ends: [String; 2],
    start: Time,
    stop: Time,
    listener: TcpListener,
    connections: Vec<LiveConnection>,
    /// Accepted sockets before their number is known, and what is known of it.
    strangers: BTreeMap<u64, (TcpStream, Vec<u8>)>,
    accepted: u64,
    answers: Distribution,
    is_stopped: bool,
    is_over: bool,
}

/// Finds what keeps the transfers of a topology from being made, before anything is.
pub(super) fn check(topology: &Topology) -> Result<(), TrafficError> {
    let routes = (!topology.transfers.is_empty()).then(|| Routes::compute(topology));
    for (traffic, routes) in topology.transfers.iter().zip(routes.iter().cycle()) {
        path_of(topology, routes, (&traffic.name, traffic.from, traffic.to))?;
        let wrong = |what: String, instead: String| {
            Err(TrafficError::Connections { traffic: traffic.name.clone(), what, instead })
        };
        if traffic.model.protocol == TransferProtocol::Quic {
            let what = "it is over QUIC, which fastpath itself sends in virtual time and between interfaces";
            return wrong(what.to_owned(), "start programs that send it, or write kind = \"tcp\"".to_owned());
        }
        let (key, bytes) = match traffic.model.workload {
            Workload::Bulk(size) => ("size", size.map(|size| size.0)),
            Workload::Requests { request, .. } => ("request", Some(request)),
        };
        if traffic.model.flows > 1 && bytes.is_some_and(|bytes| bytes < NUMBER_LEN) {
            let what =
                format!("several connections in a lab need a {key} of at least 2 bytes, their numbers");
            return wrong(what, format!("write {key} = \"2B\" or more, or flows = 1"));
        }
        let other = topology.transfers.iter().find(|other| {
            other.from == traffic.from && other.model.ecn != traffic.model.ecn && other.name != traffic.name
        });
        if let Some(other) = other {
            let host = &topology.node(traffic.from).name;
            let what = format!(
                "{} opens connections from {host} with another ecn, and a kernel has one for all",
                other.name
            );
            return wrong(what, format!("write the same ecn for all transfers from {host}"));
        }
    }
    Ok(())
}

impl SocketTransfers {
    /// Opens the sockets of all transfers and starts them.
    pub(super) fn start(
        topology: &Topology,
        hosts: &[Arc<Host>],
        (seed, clock): (u64, Clock),
        notice: &Notice,
    ) -> Result<SocketTransfers, TrafficError> {
        let stop = Arc::new(AtomicBool::new(false));
        // What has begun ends on an error.
        let mut all =
            SocketTransfers { transfers: Vec::new(), stop, threads: Vec::new(), ecn_before: Vec::new() };
        let routes = (!topology.transfers.is_empty()).then(|| Routes::compute(topology));
        for (traffic, routes) in topology.transfers.iter().zip(routes.iter().cycle()) {
            all.set_ecn((topology, hosts), traffic)?;
            let path = path_of(topology, routes, (&traffic.name, traffic.from, traffic.to))?;
            let target = SocketAddr::new(path.to.1, traffic.port);
            let (listener, sockets) = open((topology, hosts), traffic, target)?;
            let times = times_of((&traffic.name, traffic.start, traffic.stop), clock, notice);
            let transfer = SocketTransfer::new((topology, traffic), (listener, sockets), target, times, seed);
            let transfer = Arc::new(Mutex::new(transfer));
            all.transfers.push(Arc::clone(&transfer));
            let (stop, notice) = (Arc::clone(&all.stop), notice.clone());
            let name = traffic.name.clone();
            all.threads.push(thread::spawn(move || {
                if let Err(error) = run(&transfer, clock, &stop, &notice) {
                    notice.send(&format!("traffic {name} ends: {error}"));
                }
                locked(&transfer).end();
            }));
        }
        Ok(all)
    }

    /// Has the hosts of a transfer want ECN, or not.
    fn set_ecn(
        &mut self,
        (topology, hosts): (&Topology, &[Arc<Host>]),
        traffic: &TransferTraffic,
    ) -> Result<(), TrafficError> {
        let ecn = traffic.model.ecn;
        for (id, opens) in [(traffic.from, true), (traffic.to, false)] {
            let set = || {
                let before = std::fs::read_to_string(TCP_ECN)?;
                let value = match before.trim() {
                    "1" if opens && !ecn => "2",
                    "0" if ecn && !opens => "2",
                    "1" => return Ok(None),
                    _ if opens && ecn => "1",
                    _ => return Ok(None),
                };
                std::fs::write(TCP_ECN, value)?;
                Ok(Some(before))
            };
            let before = within((topology, hosts), (&traffic.name, id), &set)?;
            let host = hosts.iter().find(|host| host.node() == id);
            self.ecn_before.extend(host.cloned().zip(before));
        }
        Ok(())
    }

    /// Whether nothing more happens: all is complete, or their stops have passed.
    pub(super) fn are_over(&self) -> bool {
        self.transfers.iter().all(|transfer| locked(transfer).is_over)
    }

    /// The results so far, in the order of the description.
    pub(super) fn reports(&self, now: Time) -> Vec<TransferReport> {
        self.transfers.iter().map(|transfer| locked(transfer).report(now)).collect()
    }

    /// Ends all connections.
    pub(super) fn close(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic in a thread has been printed.
        self.threads.drain(..).for_each(|thread| _ = thread.join());
        // Hosts that were attached are as before. Others are gone soon.
        for (host, before) in self.ecn_before.drain(..).rev() {
            _ = host.namespace.within(|| std::fs::write(TCP_ECN, &before));
        }
    }
}

impl Drop for SocketTransfers {
    fn drop(&mut self) {
        self.close();
    }
}

impl SocketTransfer {
    fn new(
        (topology, traffic): (&Topology, &TransferTraffic),
        (listener, sockets): (TcpListener, Vec<OwnedFd>),
        target: SocketAddr,
        (start, stop): (Time, Time),
        seed: u64,
    ) -> SocketTransfer {
        let mut rng = traffic.rng(seed);
        let mut program =
            || TransferProgram::new(&traffic.model.workload, (start, stop), Rng::new(rng.next_u64()));
        let number = |flow: usize| (traffic.model.flows > 1).then_some(flow as u16);
        let connections = sockets.into_iter().enumerate();
        SocketTransfer {
            traffic: traffic.clone(),
            ends: [traffic.from, traffic.to].map(|host| topology.node(host).name.clone()),
            start,
            stop,
            listener,
            connections: connections
                .map(|(flow, socket)| LiveConnection::new(program(), socket, target, number(flow)))
                .collect(),
            strangers: BTreeMap::new(),
            accepted: 0,
            answers: Distribution::growing(),
            is_stopped: false,
            is_over: false,
        }
    }

    /// Does what is due by `now`. Returns how long nothing more is, if nothing arrives.
    fn advance(&mut self, now: Time, epoll: &Epoll, notice: &Notice) -> Duration {
        let mut next = self.stop;
        for flow in 0..self.connections.len() {
            if !self.is_stopped && self.connections[flow].next_at().is_some_and(|at| at <= now) {
                self.work(flow, now, epoll, notice);
            }
            next = self.connections[flow].next_at().map_or(next, |at| at.min(next));
        }
        let is_idle = |connection: &LiveConnection| connection.is_over();
        if now >= self.stop && !self.is_stopped {
            self.is_stopped = true;
            let writer = 1 - self.traffic.model.workload.sink();
            for flow in 0..self.connections.len() {
                self.connections[flow].stop(writer);
                self.work(flow, now, epoll, notice);
            }
        }
        let is_drained = self.is_stopped && now >= self.stop.saturating_add(DRAIN);
        self.is_over = is_drained || self.connections.iter().all(is_idle);
        if self.is_stopped { ATTENTION } else { next.since(now).to_std().min(ATTENTION) }
    }

    /// Lets the programs of a connection do what they can.
    fn work(&mut self, flow: usize, now: Time, epoll: &Epoll, notice: &Notice) {
        let done = self.connections[flow].work(now, &mut self.answers, |side, wish, stream| {
            let number = flow as u64 * 2 + side as u64;
            match wish {
                Wish::Watch => epoll.add(stream, number),
                Wish::Write(writable) => epoll.change(stream, number, writable),
            }
        });
        // What breaks after the stop is the stop.
        if let Err(error) = done.or_else(|error| if self.is_stopped { Ok(()) } else { Err(error) }) {
            let name = &self.traffic.name;
            self.connections[flow].fail();
            notice.send(&format!("traffic {name}: connection {}: {error}", flow + 1));
        }
    }

    /// Takes what a socket has.
    fn take(&mut self, number: u64, now: Time, epoll: &Epoll, notice: &Notice) {
        match number {
            LISTENER => self.accept(now, epoll, notice),
            STRANGERS.. => self.introduce(number, now, epoll, notice),
            _ => {
                let (flow, side) = ((number / 2) as usize, (number % 2) as usize);
                self.connections[flow].receive(side);
                self.work(flow, now, epoll, notice);
            }
        }
    }

    /// Accepts the connections that wait.
    fn accept(&mut self, now: Time, epoll: &Epoll, notice: &Notice) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client has given up, or a signal came.
                Err(error) if is_passing(&error) => continue,
                Err(error) => {
                    epoll.remove(self.listener.as_fd());
                    let name = &self.traffic.name;
                    notice.send(&format!("traffic {name}: accepting connections: {error}"));
                    return;
                }
            };
            let number = STRANGERS + self.accepted;
            self.accepted += 1;
            // A socket that fails so early is reported by its other end.
            if stream.set_nonblocking(true).and_then(|()| epoll.add(stream.as_fd(), number)).is_err() {
                continue;
            }
            self.strangers.insert(number, (stream, Vec::new()));
            if self.traffic.model.flows == 1 {
                self.introduce(number, now, epoll, notice);
            }
        }
    }

    /// Finds the connection of an accepted socket.
    fn introduce(&mut self, number: u64, now: Time, epoll: &Epoll, notice: &Notice) {
        let Some((stream, known)) = self.strangers.get_mut(&number) else { return };
        let mut flow = 0;
        if self.traffic.model.flows > 1 {
            let mut bytes = [0; NUMBER_LEN as usize];
            let wanted = bytes.len() - known.len();
            match stream.read(&mut bytes[..wanted]) {
                Ok(0) => {
                    self.strangers.remove(&number);
                    return;
                }
                Ok(count) => known.extend(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.strangers.remove(&number);
                    return;
                }
            }
            let Ok(whole) = known.as_slice().try_into() else { return };
            flow = usize::from(u16::from_be_bytes(whole));
        }
        let Some((stream, known)) = self.strangers.remove(&number) else { return };
        let side = TransferSide::To as u64;
        if let Some(connection) = self.connections.get_mut(flow)
            && epoll.change(stream.as_fd(), flow as u64 * 2 + side, false).is_ok()
        {
            connection.accept(stream, known.len() as u64);
            self.work(flow, now, epoll, notice);
        }
    }

    /// Ends all connections. Their counts stay.
    fn end(&mut self) {
        self.is_over = true;
        self.strangers.clear();
        self.connections.iter_mut().for_each(LiveConnection::end);
    }

    fn report(&self, now: Time) -> TransferReport {
        let [from, to] = self.ends.each_ref().map(String::as_str);
        let ends = TransferEnds { name: &self.traffic.name, from, to };
        let mut transport = TransportCounts { timeouts: Some(0), ..TransportCounts::default() };
        for counts in self.connections.iter().flat_map(LiveConnection::counts) {
            transport.segments += u64::from(counts.segments);
            transport.retransmitted += u64::from(counts.retransmitted);
            let more = counts.timeouts.map(u64::from);
            transport.timeouts = transport.timeouts.zip(more).map(|(sum, more)| sum + more);
            let rtt = counts.rtt_min.map(fastpath_units::Duration::from);
            transport.rtt_min = transport.rtt_min.into_iter().chain(rtt).min();
        }
        let programs = self.connections.iter().map(LiveConnection::program);
        let times = (self.start, self.stop.min(now));
        TransferReport::new((&self.traffic.model, ends), times, programs, transport, &self.answers)
    }
}

/// Whether the next call may succeed after this error of accept(2).
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

/// Runs a transfer until it is over or `stop` is set.
fn run(transfer: &Mutex<SocketTransfer>, clock: Clock, stop: &AtomicBool, notice: &Notice) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    epoll.add(locked(transfer).listener.as_fd(), LISTENER)?;
    while !stop.load(Ordering::Relaxed) {
        let wait = {
            let mut transfer = locked(transfer);
            let wait = transfer.advance(clock.now(), &epoll, notice);
            if transfer.is_over {
                return Ok(());
            }
            wait
        };
        let ready: Vec<u64> = epoll.wait_ready(wait).collect();
        let mut transfer = locked(transfer);
        for number in ready {
            transfer.take(number, clock.now(), &epoll, notice);
        }
    }
    Ok(())
}

/// Opens the sockets of a transfer in its hosts: the one that listens, and one for each connection.
fn open(
    at: (&Topology, &[Arc<Host>]),
    traffic: &TransferTraffic,
    target: SocketAddr,
) -> Result<(TcpListener, Vec<OwnedFd>), TrafficError> {
    let TransferTraffic { model, dscp, .. } = traffic;
    let socket = || stream_socket(target, model.congestion, *dscp);
    let listener = || {
        let listener = socket()?;
        setsockopt(&listener, ReuseAddr, &true)?;
        bind(listener.as_raw_fd(), &SockaddrStorage::from(target))?;
        listen(&listener, Backlog::new(BACKLOG)?)?;
        Ok(TcpListener::from(listener))
    };
    let sockets = || (0..model.flows).map(|_| socket()).collect::<io::Result<Vec<_>>>();
    let name = |id: NodeId| (traffic.name.as_str(), id);
    Ok((within(at, name(traffic.to), &listener)?, within(at, name(traffic.from), &sockets)?))
}

/// A socket of the family of `target` that does not block.
fn stream_socket(target: SocketAddr, congestion: CongestionControl, dscp: u8) -> io::Result<OwnedFd> {
    let family = if target.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Stream, flags, None)?;
    let name = congestion.name();
    set_congestion(socket.as_fd(), name)
        .map_err(|error| io::Error::new(error.kind(), format!("congestion control {name}: {error}")))?;
    let class = i32::from(dscp) << 2;
    match target.is_ipv4() {
        true => setsockopt(&socket, Ipv4Tos, &class)?,
        false => setsockopt(&socket, Ipv6TClass, &class)?,
    }
    Ok(socket)
}
