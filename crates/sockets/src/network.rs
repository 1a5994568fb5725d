//! The network with its hosts: what sockets send enters it, and what arrives at a host goes to the
//! socket of its address and port.
//!
//! Hosts answer for their addresses (ARP, Neighbor Discovery) and know their neighbours, as in all
//! of fastpath; they send no ICMP errors. Datagrams are not fragmented.

use crate::capture::{HostCapture, NamedInterface, Way};
use crate::error::{BindError, LinkChangeError, SendError, TimeRunsBack};
use crate::socket::{Bound, Datagram, Socket, SocketId, WAITING_MAX};
use crate::timers::Timers;
use fastpath_link::Change;
use fastpath_net::{Delivery, Edge, EdgeId, Fib, HostPath, Network, NoPath, Observer, Options, Routes};
use fastpath_spec::{Direction, LinkId, NodeId, Topology};
use fastpath_units::Time;
use fastpath_wire::arp::{Arp, ArpOperation};
use fastpath_wire::build::Ip;
use fastpath_wire::checksum::{ChecksumStatus, check_transport};
use fastpath_wire::nd::{Neighbor, Role};
use fastpath_wire::{Headers, MacAddr, NetworkLayer, protocol};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

/// The first port that a host gives out by itself (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;
/// Bytes of a UDP header.
const UDP: usize = 8;

/// What has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A datagram waits in a socket.
    Arrived {
        /// The socket.
        socket: SocketId,
    },
    /// A frame waits at a raw interface.
    Frame {
        /// The interface.
        edge: EdgeId,
    },
    /// A timer has gone off.
    Timer {
        /// What it was set with.
        key: u64,
    },
}

/// Packets that reached a host and no socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Discarded {
    /// No socket has the port, or it is not UDP.
    pub no_socket: u64,
    /// A wrong checksum: a link has flipped a bit.
    pub bad_checksum: u64,
    /// Frames for other interfaces.
    pub not_ours: u64,
    /// The socket had no room.
    pub full: u64,
}

/// What a host knows about one of its interfaces.
#[derive(Clone, Debug)]
struct HostInterface {
    edge: Edge,
    mac: Option<MacAddr>,
    addresses: Vec<IpAddr>,
    /// Frames that have arrived, if a stack of its own serves the interface.
    raw: Option<VecDeque<(Time, Vec<u8>)>>,
}

/// What is the same for all interfaces of a host.
#[derive(Clone, Debug, Default)]
struct HostState {
    addresses: Vec<IpAddr>,
    /// Made when it first sends.
    fib: Option<Fib>,
    /// The sockets of each port, in the order of binding.
    ports: BTreeMap<u16, Vec<SocketId>>,
}

/// A network with hosts, sockets and timers in virtual time. `O` observes the network: a packet
/// log, or nothing.
#[derive(Debug)]
pub struct VirtualNetwork<O: Observer = ()> {
    network: Network<O>,
    now: Time,
    /// By edge.
    interfaces: Vec<HostInterface>,
    hosts: BTreeMap<NodeId, HostState>,
    routes: Routes,
    sockets: Vec<Option<Socket>>,
    timers: Timers,
    events: VecDeque<Event>,
    arrived: Vec<Delivery>,
    captures: Vec<HostCapture>,
    discarded: Discarded,
}

impl VirtualNetwork {
    /// Creates the network of a spec (TOML), with one seed for all that is random in it.
    ///
    /// # Errors
    /// All mistakes in the spec.
    pub fn from_spec(spec: &str, seed: u64) -> Result<VirtualNetwork, fastpath_spec::Mistakes> {
        let (topology, _) = fastpath_spec::parse(spec)?;
        Ok(VirtualNetwork::new(topology, seed))
    }

    /// Creates the network of a topology.
    pub fn new(topology: Topology, seed: u64) -> VirtualNetwork {
        VirtualNetwork::observed(topology, seed, ())
    }
}

impl<O: Observer> VirtualNetwork<O> {
    /// Creates the network of a topology, with an observer.
    pub fn observed(topology: Topology, seed: u64, observer: O) -> VirtualNetwork<O> {
        let routes = Routes::compute(&topology);
        let network = Network::observed(topology, Options::with_seed(seed), observer);
        let interface = |edge: Edge| {
            let interface = &network.topology().node(edge.node).interfaces[edge.interface];
            let addresses = interface.addresses.iter().map(|net| net.addr()).collect();
            HostInterface { edge, mac: interface.mac, addresses, raw: None }
        };
        let interfaces: Vec<HostInterface> = network.edges().map(interface).collect();
        let mut hosts = BTreeMap::<NodeId, HostState>::new();
        for interface in &interfaces {
            hosts.entry(interface.edge.node).or_default().addresses.extend(&interface.addresses);
        }
        VirtualNetwork {
            interfaces,
            hosts,
            network,
            now: Time::ZERO,
            routes,
            sockets: Vec::new(),
            timers: Timers::default(),
            events: VecDeque::new(),
            arrived: Vec::new(),
            captures: Vec::new(),
            discarded: Discarded::default(),
        }
    }

    /// Returns the network, to read counters and queues.
    pub fn network(&self) -> &Network<O> {
        &self.network
    }

    /// Returns the network, to change links. Whoever moves its time moves it under the hosts.
    pub fn network_mut(&mut self) -> &mut Network<O> {
        &mut self.network
    }

    /// Changes values of a link now: in the direction that begins at the node `from`, or in both.
    ///
    /// # Errors
    /// See [`LinkChangeError`]. Nothing has changed.
    pub fn change_link(
        &mut self,
        link: &str,
        from: Option<&str>,
        change: &Change,
    ) -> Result<(), LinkChangeError> {
        let topology = self.network.topology();
        let Some(id) = topology.link_named(link) else {
            let have = topology.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(LinkChangeError::NoLink { link: link.to_owned(), have });
        };
        let ends = topology.link(id).ends.map(|(node, _)| topology.node(node).name.as_str());
        let direction = match from {
            None => Direction::Both,
            Some(from) if from == ends[0] => Direction::Forward,
            Some(from) if from == ends[1] => Direction::Backward,
            Some(from) => {
                let (link, from) = (link.to_owned(), from.to_owned());
                return Err(LinkChangeError::NoEnd { link, from, ends: ends.join(", ") });
            }
        };
        if let Some(traced) = self.traced(id, direction, change) {
            return Err(LinkChangeError::Traced { traced });
        }
        self.network.apply(self.now, id, direction, change);
        Ok(())
    }

    /// Returns what active trace of a link would undo a change.
    fn traced(&self, link: LinkId, direction: Direction, change: &Change) -> Option<String> {
        let topology = self.network.topology();
        let before = (0..link.0).map(LinkId).flat_map(|link| [(link, 0), (link, 1)]);
        let mut starts = self.network.trace_starts();
        before.for_each(|(link, pipe)| {
            starts.by_ref().take(topology.tracks_of(link, pipe).len()).for_each(drop)
        });
        for pipe in 0..2 {
            let own: Vec<Option<Time>> = starts.by_ref().take(topology.tracks_of(link, pipe).len()).collect();
            let traced = topology.traced((link, pipe), change, self.now, own.into_iter());
            if let Some(traced) = traced.first().filter(|_| direction.pipes().contains(&pipe)) {
                return Some(format!("{traced}: {}", traced.instead()));
            }
        }
        None
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns what reached a host and no socket so far.
    pub fn discarded(&self) -> Discarded {
        self.discarded
    }

    /// Binds a socket to a port of a host and all its addresses; port 0: one that is free.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(&mut self, host: &str, port: u16) -> Result<SocketId, BindError> {
        self.bind_to(host, None, port)
    }

    /// As [`VirtualNetwork::bind`], to one address. `0.0.0.0` is every IPv4 address of the host,
    /// `::` every address of both families, as in Linux.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind_to(&mut self, host: &str, address: Option<IpAddr>, port: u16) -> Result<SocketId, BindError> {
        let node = self.host(host)?;
        let state = self.hosts.entry(node).or_default();
        let bound = Bound::of(address);
        // IPv4 before IPv6, as names are resolved in hosts.
        let own = state.addresses.iter().copied().filter(|own| bound.accepts(*own));
        let Some(shown) = own.min_by_key(IpAddr::is_ipv6) else {
            let own = &state.addresses;
            let wanted = address.map_or("to bind to".to_owned(), |address| address.to_string());
            let has = own.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
            return Err(BindError::NoAddress { host: host.to_owned(), wanted, has });
        };
        let (sockets, ports) = (&self.sockets, &state.ports);
        let is_taken = |port: u16| {
            let others = ports.get(&port).into_iter().flatten();
            let mut others = others.filter_map(|id| sockets[id.0 as usize].as_ref());
            others.any(|other| other.bound.overlaps(bound))
        };
        let port = match port {
            0 => (FIRST_PORT..=u16::MAX)
                .find(|port| !is_taken(*port))
                .ok_or_else(|| BindError::NoPort { host: host.to_owned() })?,
            port if is_taken(port) => return Err(BindError::InUse { host: host.to_owned(), port }),
            port => port,
        };
        let id = SocketId(self.sockets.len() as u32);
        let address_of = SocketAddr::new(shown, port);
        self.sockets.push(Some(Socket {
            host: node,
            bound,
            address: address_of,
            waiting: VecDeque::new(),
            bytes: 0,
            paths: BTreeMap::new(),
        }));
        state.ports.entry(port).or_default().push(id);
        Ok(id)
    }

    /// Closes a socket. What waits in it is lost.
    pub fn close(&mut self, socket: SocketId) {
        if let Some(closed) = self.sockets.get_mut(socket.0 as usize).and_then(Option::take)
            && let Some(state) = self.hosts.get_mut(&closed.host)
            && let Some(ids) = state.ports.get_mut(&closed.address.port())
        {
            ids.retain(|id| *id != socket);
        }
    }

    /// Returns the address of a socket, by which others reach it.
    ///
    /// # Panics
    /// The socket is closed, or of another network.
    pub fn address(&self, socket: SocketId) -> SocketAddr {
        self.socket(socket).address
    }

    /// Sends a datagram now.
    ///
    /// # Errors
    /// See [`SendError`]. What the network loses is not an error.
    ///
    /// # Panics
    /// The socket is closed, or of another network.
    pub fn send(&mut self, socket: SocketId, to: SocketAddr, payload: &[u8]) -> Result<(), SendError> {
        self.send_marked(socket, to, 0, payload)
    }

    /// As [`VirtualNetwork::send`], with the ECN field of the IP header, 0 to 3.
    ///
    /// # Errors
    /// See [`SendError`].
    ///
    /// # Panics
    /// The socket is closed, or of another network.
    pub fn send_marked(
        &mut self,
        socket: SocketId,
        to: SocketAddr,
        ecn: u8,
        payload: &[u8],
    ) -> Result<(), SendError> {
        let (edge, path) = self.path(socket, to.ip())?;
        let interface = &self.network.topology().node(self.socket(socket).host).interfaces[path.interface];
        let headers = UDP + if to.is_ipv4() { 20 } else { 40 };
        let max = (interface.mtu as usize).saturating_sub(headers);
        if payload.len() > max {
            return Err(SendError::TooLong { len: payload.len(), max, interface: interface.name.clone() });
        }
        let mut ip = Ip::between(path.from, path.to);
        ip.traffic_class = ecn & 3;
        let frame = ip.udp(self.socket(socket).address.port(), to.port(), payload);
        self.push(edge, &frame)
    }

    /// Takes the next datagram out of a socket.
    ///
    /// # Panics
    /// The socket is of another network.
    pub fn receive(&mut self, socket: SocketId) -> Option<Datagram> {
        let socket = self.sockets[socket.0 as usize].as_mut()?;
        let datagram = socket.waiting.pop_front()?;
        socket.bytes -= datagram.payload.len();
        Some(datagram)
    }

    /// Sets a timer: [`Event::Timer`] with `key` comes at `at`, or at once if that is over.
    pub fn set_timer(&mut self, at: Time, key: u64) {
        self.timers.set(at.max(self.now), key);
    }

    /// Cancels the timer with this key, if it has not gone off. Only one timer may have the key.
    pub fn cancel_timer(&mut self, key: u64) {
        self.timers.cancel(key);
    }

    /// Serves an interface by a stack of its own: frames that arrive there wait as they are, and
    /// the host answers nothing.
    ///
    /// # Errors
    /// There is no such host, or it has no such interface.
    pub fn open_raw(&mut self, host: &str, interface: &str) -> Result<EdgeId, BindError> {
        let node = self.host(host)?;
        let interfaces = &self.network.topology().node(node).interfaces;
        let index = interfaces.iter().position(|known| known.name == interface);
        let found = self
            .interfaces
            .iter_mut()
            .enumerate()
            .find(|(_, own)| own.edge.node == node && Some(own.edge.interface) == index);
        let Some((edge, found)) = found else {
            let has = interfaces.iter().map(|known| known.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(BindError::NoAddress { host: host.to_owned(), wanted: interface.to_owned(), has });
        };
        found.raw.get_or_insert_default();
        Ok(EdgeId(edge as u32))
    }

    /// Sends a frame by a raw interface now.
    ///
    /// # Errors
    /// The memory for packets in flight is full.
    pub fn send_frame(&mut self, edge: EdgeId, frame: &[u8]) -> Result<(), SendError> {
        self.push(edge, frame)
    }

    /// Takes the next frame that has arrived at a raw interface, and when.
    pub fn receive_frame(&mut self, edge: EdgeId) -> Option<(Time, Vec<u8>)> {
        self.interfaces[edge.0 as usize].raw.as_mut()?.pop_front()
    }

    /// Starts a capture of all interfaces of `hosts`, or of every host if there are none: frames as
    /// they pass there, both ways, written to `out` as pcapng (see `capture.rs` for names and
    /// times). The first error of `out` ends it, and [`VirtualNetwork::end_captures`] returns it.
    ///
    /// ```
    /// # let spec = "[host.client]\n[host.server]\n[[link]]\nbetween = ['client', 'server']";
    /// # let mut network = fastpath_sockets::VirtualNetwork::from_spec(spec, 1)?;
    /// let file = std::env::temp_dir().join("client.pcapng");
    /// network.capture(&["client"], std::fs::File::create(&file)?)?;
    /// // Bind sockets, send, advance.
    /// network.end_captures()?;
    /// # std::fs::remove_file(&file)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such host.
    pub fn capture(&mut self, hosts: &[&str], out: impl Write + Send + 'static) -> Result<(), BindError> {
        let hosts = hosts.iter().map(|host| self.host(host)).collect::<Result<Vec<NodeId>, _>>()?;
        let topology = self.network.topology();
        let named = |HostInterface { edge: Edge { node, interface }, .. }: &HostInterface| {
            if !hosts.is_empty() && !hosts.contains(node) {
                return None;
            }
            let host = topology.node(*node);
            let own = &host.interfaces[*interface].name;
            let name = match host.interfaces.len() {
                1 => host.name.clone(),
                _ => format!("{}:{own}", host.name),
            };
            Some(NamedInterface { name, description: format!("interface {own} of host {}", host.name) })
        };
        let named: Vec<Option<NamedInterface>> = self.interfaces.iter().map(named).collect();
        self.captures.push(HostCapture::new(Box::new(out), &named));
        Ok(())
    }

    /// Flushes all captures: their files are complete up to now.
    ///
    /// # Errors
    /// The first error of writing one of them.
    pub fn flush_captures(&mut self) -> io::Result<()> {
        let flushed: Vec<io::Result<()>> = self.captures.iter_mut().map(HostCapture::flush).collect();
        flushed.into_iter().collect()
    }

    /// Ends all captures and flushes their files.
    ///
    /// # Errors
    /// The first error of writing one of them.
    pub fn end_captures(&mut self) -> io::Result<()> {
        let flushed = self.flush_captures();
        self.captures.clear();
        flushed
    }

    /// Returns when something happens next: a packet moves or a timer goes off. `None` if nothing
    /// will.
    pub fn next_at(&self) -> Option<Time> {
        let timer = self.timers.next_at().map(|at| at.max(self.now));
        [self.network.next_at(), timer].into_iter().flatten().min()
    }

    /// Moves the time to `to` and collects what happens by then. A stack that is to answer at the
    /// instant of an arrival goes from one [`VirtualNetwork::next_at`] to the next.
    ///
    /// # Errors
    /// `to` is over. Nothing has changed.
    pub fn advance(&mut self, to: Time) -> Result<(), TimeRunsBack> {
        if to < self.now {
            return Err(TimeRunsBack { now: self.now, asked: to });
        }
        // Events come in the order of their times, timers before packets of the same instant.
        while let Some(at) = self.next_at().filter(|at| *at <= to) {
            self.now = at;
            while let Some(key) = self.timers.pop(at) {
                self.events.push_back(Event::Timer { key });
            }
            self.take_arrivals();
        }
        self.now = to;
        Ok(())
    }

    /// Takes the next event that has happened by now.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn take_arrivals(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        self.network.pop_burst(self.now, usize::MAX, &mut arrived);
        for Delivery { at, edge, frame } in arrived.drain(..) {
            let bytes = self.network.pool().bytes(&frame).to_vec();
            self.network.pool_mut().free(frame);
            self.arrive(at, edge, bytes);
        }
        self.arrived = arrived;
    }

    fn arrive(&mut self, at: Time, edge: EdgeId, bytes: Vec<u8>) {
        self.captures.iter_mut().for_each(|capture| capture.take(Way::Received, at, edge, &bytes));
        let interface = &mut self.interfaces[edge.0 as usize];
        if let Some(raw) = &mut interface.raw {
            raw.push_back((at, bytes));
            self.events.push_back(Event::Frame { edge });
            return;
        }
        let headers = Headers::parse(&bytes);
        if let Some(answer) = answer(interface, &bytes, &headers) {
            // A host whose answer finds no memory asks again.
            let _ = self.push(edge, &answer);
            return;
        }
        if interface.mac.is_some_and(|mac| mac != headers.dst && !headers.dst.is_multicast()) {
            self.discarded.not_ours += 1;
            return;
        }
        let node = interface.edge.node;
        match datagram(at, bytes, &headers) {
            Ok(datagram) => self.deliver(node, datagram),
            Err(count) => *count(&mut self.discarded) += 1,
        }
    }

    fn deliver(&mut self, node: NodeId, datagram: Datagram) {
        let found = self.hosts.get(&node).filter(|state| state.addresses.contains(&datagram.to.ip()));
        let ids = found.and_then(|state| state.ports.get(&datagram.to.port()));
        let open = |id: &&SocketId| {
            let socket = self.sockets[id.0 as usize].as_ref();
            socket.is_some_and(|socket| socket.bound.accepts(datagram.to.ip()))
        };
        let Some(&id) = ids.and_then(|ids| ids.iter().find(open)) else {
            self.discarded.no_socket += 1;
            return;
        };
        let Some(socket) = self.sockets[id.0 as usize].as_mut() else { return };
        if socket.bytes + datagram.payload.len() > WAITING_MAX {
            self.discarded.full += 1;
            return;
        }
        socket.bytes += datagram.payload.len();
        socket.waiting.push_back(datagram);
        self.events.push_back(Event::Arrived { socket: id });
    }

    fn push(&mut self, edge: EdgeId, frame: &[u8]) -> Result<(), SendError> {
        let stored = self.network.pool_mut().insert(frame).ok_or(SendError::PoolFull)?;
        self.captures.iter_mut().for_each(|capture| capture.take(Way::Sent, self.now, edge, frame));
        self.network.push(self.now, edge, stored);
        Ok(())
    }

    /// Returns the way of a socket to an address.
    fn path(&mut self, id: SocketId, to: IpAddr) -> Result<(EdgeId, HostPath), SendError> {
        let socket = self.socket(id);
        if let Some(known) = socket.paths.get(&to) {
            return Ok(*known);
        }
        let (node, bound) = (socket.host, socket.bound);
        let state = self.hosts.entry(node).or_default();
        let fib = state.fib.get_or_insert_with(|| Fib::new(self.routes.of(node)));
        let topology = self.network.topology();
        let host = || topology.node(node).name.clone();
        let mut path = HostPath::to_address(topology, fib, node, to).map_err(|error| match error {
            NoPath::NoRoute => SendError::NoRoute { host: host(), to },
            NoPath::NoNeighbor => SendError::NoNeighbor { host: host(), to },
        })?;
        if let Bound::One(own) = bound
            && own.is_ipv4() == to.is_ipv4()
        {
            path.from.1 = own;
        }
        let edge = self.network.edge_of(node, path.interface);
        let edge = edge.ok_or_else(|| SendError::NoRoute { host: host(), to })?;
        if let Some(socket) = &mut self.sockets[id.0 as usize] {
            socket.paths.insert(to, (edge, path));
        }
        Ok((edge, path))
    }

    fn socket(&self, id: SocketId) -> &Socket {
        let socket = self.sockets.get(id.0 as usize).and_then(Option::as_ref);
        socket.expect("an open socket of this network")
    }

    fn host(&self, name: &str) -> Result<NodeId, BindError> {
        let topology = self.network.topology();
        let found = topology.hosts().find(|(_, node)| node.name == name).map(|(id, _)| id);
        found.ok_or_else(|| {
            let have = topology.hosts().map(|(_, node)| node.name.as_str()).collect::<Vec<_>>().join(", ");
            BindError::NoHost { host: name.to_owned(), have }
        })
    }
}

/// Returns the answer of a host to a question for one of its addresses.
fn answer(interface: &HostInterface, bytes: &[u8], headers: &Headers) -> Option<Vec<u8>> {
    let mac = interface.mac?;
    if let Some(arp) = Arp::parse(bytes, headers) {
        let is_asked =
            arp.operation == ArpOperation::Request && interface.addresses.contains(&arp.target_ip.into());
        return is_asked.then(|| arp.answer(mac).to_frame());
    }
    match Neighbor::parse(bytes, headers)? {
        Neighbor::Solicitation(asked) if interface.addresses.contains(&asked.target.into()) => {
            Some(asked.answer(mac, Role::Host))
        }
        _ => None,
    }
}

/// The counter of a packet that is not delivered.
type Counter = fn(&mut Discarded) -> &mut u64;

/// Returns the datagram in a frame, or what it counts as.
fn datagram(at: Time, mut bytes: Vec<u8>, headers: &Headers) -> Result<Datagram, Counter> {
    const NO_SOCKET: Counter = |discarded| &mut discarded.no_socket;
    const BAD: Counter = |discarded| &mut discarded.bad_checksum;
    let (is_udp, start, end) = match headers.network {
        NetworkLayer::Ipv4(ip) => {
            (ip.protocol == protocol::UDP && !ip.is_fragment(), ip.payload_offset(), ip.end())
        }
        NetworkLayer::Ipv6(ip) => {
            (ip.protocol == protocol::UDP && !ip.is_fragment(), ip.payload_offset, ip.end())
        }
        _ => return Err(NO_SOCKET),
    };
    let (true, Some((src, dst)), Some(ports)) = (is_udp, headers.addresses(), headers.transport) else {
        return Err(NO_SOCKET);
    };
    let is_right = headers.ipv4_checksum_ok(&bytes) != Some(false)
        && matches!(check_transport(&bytes, headers), ChecksumStatus::Good | ChecksumStatus::Absent);
    if !is_right {
        return Err(BAD);
    }
    let len = u16::from_be_bytes([bytes[start + 4], bytes[start + 5]]);
    bytes.truncate((start + usize::from(len)).min(end));
    let payload = bytes.split_off((start + UDP).min(bytes.len()));
    Ok(Datagram {
        at,
        from: SocketAddr::new(src, ports.src_port),
        to: SocketAddr::new(dst, ports.dst_port),
        ecn: headers.traffic_class() & 3,
        payload,
    })
}
