//! The agent's thread: waits, serves each connection in turn, sends asynchronous messages, and runs
//! timers.

use super::connection::{ASYNC_MAX, Connection, Kind, State};
use super::event::Event;
use super::local::{ControlSocket, LocalListener, LocalService, Unserved};
use super::order::{AgentState, Dial, Order, SharedWithAgent};
use super::requests;
use super::standalone;
use super::statistics;
use super::stream::Stream;
use super::switch_state::{EncodedEvent, SwitchState};
use super::table_mods;
use super::tls::Tls;
use super::{FailMode, Listen, Options, Security, StartError, Target};
use crate::message::Role;
use fastpath_engine::switching::Control;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The token of the doorbell.
pub(super) const WAKE: Token = Token(0);
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// Interval between reads of the link states.
const LINKS_EVERY: Duration = Duration::from_millis(200);
/// Interval between checks for silent connections.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The first wait before a controller is dialled again. It doubles each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// See the head of this file.
pub(super) struct EventLoop {
    pub(super) poll: Poll,
    pub(super) switch: SwitchState,
    pub(super) options: Options,
    pub(super) tls: Option<Tls>,
    /// By token.
    pub(super) listeners: BTreeMap<usize, Listener>,
    /// Those of the file system, by token.
    local: BTreeMap<usize, LocalListener>,
    /// Those that could not be created yet.
    pub(super) unserved: Vec<Unserved>,
    pub(super) targets: Vec<Dialled>,
    pub(super) connections: BTreeMap<usize, Connection>,
    next_token: usize,
    pub(super) is_standalone: bool,
    pub(super) orders: Receiver<Order>,
    pub(super) state: Arc<Mutex<AgentState>>,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    links_at: Instant,
    check_at: Instant,
}

/// A socket that accepts connections.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) listen: Listen,
    /// The kind of connections that are accepted here.
    pub(super) kind: Kind,
}

/// A controller to dial.
pub(super) struct Dialled {
    pub(super) dial: Dial,
    /// Its connection, or when to dial next.
    pub(super) state: Result<usize, Instant>,
    /// Delivers its addresses once its name is resolved, which may take long.
    lookup: Option<Receiver<io::Result<Vec<SocketAddr>>>>,
    backoff: Duration,
    has_failed: bool,
    /// Why the last connection ended, or could not be made.
    pub(super) failure: Option<String>,
}

impl EventLoop {
    pub(super) fn new(
        control: Control,
        poll: Poll,
        options: Options,
        shared: SharedWithAgent,
    ) -> Result<EventLoop, StartError> {
        let SharedWithAgent { orders, state, stop, waker } = shared;
        let tls = options.tls.as_ref().map(Tls::load).transpose()?;
        let listen = options.listen.iter().map(|listen| (*listen, Kind::Answered));
        let listen: Vec<(Listen, Kind)> =
            listen.chain(options.snoop.iter().map(|listen| (*listen, Kind::Snoop))).collect();
        let needs_tls = listen.iter().filter(|(listen, _)| listen.security == Security::Tls);
        let needs_tls = needs_tls.map(|(listen, _)| listen.to_string());
        let dialled = options.connect.iter().filter(|target| target.security == Security::Tls);
        if let (None, Some(address)) = (&tls, needs_tls.chain(dialled.map(ToString::to_string)).next()) {
            return Err(StartError::NoTls { address });
        }
        let now = Instant::now();
        let mut event_loop = EventLoop {
            switch: SwitchState::new(control, options.datapath_id, options.ports.clone()),
            poll,
            tls,
            listeners: BTreeMap::new(),
            local: BTreeMap::new(),
            unserved: Vec::new(),
            targets: Vec::new(),
            connections: BTreeMap::new(),
            next_token: 1,
            is_standalone: false,
            orders,
            state,
            stop,
            waker,
            links_at: now,
            check_at: now,
            options,
        };
        for (listen, kind) in listen {
            event_loop.listen(listen, kind).map_err(|source| StartError::Listen { listen, source })?;
        }
        let Options { connect, probe_every, backoff_max, .. } = &event_loop.options;
        let dial =
            |target: &Target| Dial::new(target.clone()).probe_every(*probe_every).backoff_max(*backoff_max);
        event_loop.targets = connect.iter().map(|target| Dialled::new(dial(target), now)).collect();
        if event_loop.targets.is_empty() && event_loop.options.fail_mode == FailMode::Standalone {
            standalone::by_default(&event_loop.switch.control);
        }
        Ok(event_loop)
    }

    pub(super) fn listen(&mut self, listen: Listen, kind: Kind) -> io::Result<()> {
        let mut socket = TcpListener::bind(listen.at)?;
        self.poll.registry().register(&mut socket, Token(self.next_token), Interest::READABLE)?;
        self.listeners.insert(self.next_token, Listener { socket, listen, kind });
        self.next_token += 1;
        Ok(())
    }

    /// Tries to accept connections at the sockets of the file system where it does not yet. Each
    /// reason is said once.
    pub(super) fn serve_at_paths(&mut self) {
        for one in std::mem::take(&mut self.unserved) {
            let Err(error) = self.serve_at(one.path.clone(), one.service) else { continue };
            let why = error.to_string();
            if why != one.why {
                self.options.notice.send(&format!("punix:{}: {why}; trying again", one.path.display()));
            }
            self.unserved.push(Unserved { why, ..one });
        }
        let unserved = self.unserved.iter().map(|one| (one.path.clone(), one.why.clone())).collect();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).unserved = unserved;
    }

    /// Accepts connections at a socket of the file system.
    fn serve_at(&mut self, path: PathBuf, service: LocalService) -> io::Result<()> {
        let mut listener = LocalListener::new(path, service)?;
        self.poll.registry().register(&mut listener.socket, Token(self.next_token), Interest::READABLE)?;
        self.local.insert(self.next_token, listener);
        self.next_token += 1;
        Ok(())
    }

    pub(super) fn listening(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.values().map(|listener| listener.socket.local_addr()).collect()
    }

    /// Runs until it is stopped.
    pub(super) fn run(&mut self) {
        let mut events = Events::with_capacity(128);
        while !self.stop.load(Ordering::Acquire) {
            let wait = self.wait();
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != ErrorKind::Interrupted
            {
                self.options.notice.send(&format!("the agent ends: waiting for its sockets failed: {error}"));
                return;
            }
            for event in &events {
                match event.token() {
                    WAKE => {}
                    Token(token) if self.listeners.contains_key(&token) => self.accept(token),
                    Token(token) if self.local.contains_key(&token) => self.accept_local(token),
                    Token(token) => {
                        if let Some(connection) = self.connections.get_mut(&token) {
                            connection.ready(event);
                        }
                    }
                }
            }
            for token in self.connections.keys().copied().collect::<Vec<_>>() {
                self.serve(token);
            }
            self.housekeep();
            let are_wanted = self.connections.values().any(Connection::wants_misses);
            self.switch.want_misses(are_wanted);
            self.switch.are_flows_monitored = self.connections.values().any(|one| !one.monitors.is_empty());
            self.send_events();
        }
        // The last replies, if the sockets accept them at once.
        for connection in self.connections.values_mut() {
            let _ = connection.send();
        }
    }

    /// Returns how long there is nothing to do.
    fn wait(&self) -> Duration {
        let control = &self.switch.control;
        let is_behind = control.is_behind();
        let has_work = |one: &Connection| {
            let has_messages = one.delivered < self.switch.async_messages.end()
                && one.receives_async()
                && one.has_room_for_async();
            has_messages || one.has_work() && !(is_behind && one.has_changed)
        };
        if self.connections.values().any(has_work) {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let waiting = self.targets.iter().filter(|dialled| dialled.lookup.is_none());
        let dial = waiting.filter_map(|dialled| dialled.state.as_ref().err().copied());
        let links = self.options.links.is_some().then_some(self.links_at);
        let until = dial.chain(links).chain([self.check_at]).min().unwrap_or(now);
        let wait = until.saturating_duration_since(now);
        match control.next_at() {
            Some(at) => wait.min(at.since(control.now()).to_std()),
            None => wait,
        }
    }

    fn accept(&mut self, token: usize) {
        while let Some(listener) = self.listeners.get(&token) {
            let (kind, security) = (listener.kind, listener.listen.security);
            let (socket, peer) = match listener.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // No more connections, or none that could be served now.
                Err(_) => return,
            };
            if !self.has_room_for(&peer.to_string()) {
                continue;
            }
            let tls = match (&self.tls, security) {
                (Some(tls), Security::Tls) => match tls.answered() {
                    Ok(session) => Some(session),
                    Err(error) => {
                        self.options.notice.send(&format!("{peer}: {error}"));
                        continue;
                    }
                },
                _ => None,
            };
            let versions = self.options.versions;
            let connection = Connection::new(
                Stream::new(ControlSocket::Tcp(socket), tls),
                peer.to_string(),
                kind,
                State::Greeting,
                versions,
            );
            self.add(connection);
        }
    }

    fn accept_local(&mut self, token: usize) {
        while let Some(listener) = self.local.get(&token) {
            let peer = listener.name();
            let kind = match listener.service {
                LocalService::Management => Kind::Answered,
                LocalService::Snoop => Kind::Snoop,
            };
            let socket = match listener.socket.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if self.has_room_for(&peer) {
                let (stream, versions) =
                    (Stream::new(ControlSocket::Unix(socket), None), self.options.versions);
                self.add(Connection::new(stream, peer, kind, State::Greeting, versions));
            }
        }
    }

    /// Returns whether another connection may be open, and says so otherwise.
    fn has_room_for(&mut self, peer: &str) -> bool {
        let has_room = self.connections.len() < CONNECTIONS_MAX || self.close_silent();
        if !has_room {
            self.options.notice.send(&format!("{peer}: refused: {CONNECTIONS_MAX} connections are open"));
        }
        has_room
    }

    /// Makes room: closes the connection that has waited longest for its hello. Returns false if
    /// every peer has sent one.
    fn close_silent(&mut self) -> bool {
        let is_silent = |one: &Connection| one.state == State::Greeting;
        let silent = self.connections.iter().filter(|(_, one)| is_silent(one)).map(|(token, _)| *token);
        for token in silent.collect::<Vec<_>>() {
            // Its hello may have arrived and not been read yet.
            self.serve(token);
            match self.connections.get(&token) {
                Some(one) if !is_silent(one) => {}
                Some(_) => {
                    self.close_at(token, "no hello arrived");
                    return true;
                }
                None => return true,
            }
        }
        false
    }

    /// Adds a connection. Returns its token, unless the system refuses to watch it.
    fn add(&mut self, mut connection: Connection) -> Option<usize> {
        let token = self.next_token;
        let both = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut connection.stream, Token(token), both) {
            self.options.notice.send(&format!("{}: {error}", connection.peer));
            return None;
        }
        self.next_token += 1;
        (connection.id, connection.delivered) = (token, self.switch.async_messages.end());
        self.connections.insert(token, connection);
        Some(token)
    }

    /// Serves one connection.
    fn serve(&mut self, token: usize) {
        let Some(mut connection) = self.connections.remove(&token) else { return };
        match self.serve_one(&mut connection) {
            Ok(()) => drop(self.connections.insert(token, connection)),
            Err(why) => self.close(connection, &why),
        }
    }

    /// Serves one connection. `Err` says why it has ended.
    fn serve_one(&mut self, connection: &mut Connection) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        if connection.state == State::Connecting {
            match connection.stream.connected().map_err(text)? {
                Some(()) => connection.greet(),
                None => return Ok(()),
            }
        }
        let has_snoop = self.connections.values().any(|other| other.kind == Kind::Snoop);
        let mut copied = Vec::new();
        // A controller that changes rules faster than lookup structures can be built is not read
        // for now.
        let is_deferred = connection.has_changed && self.switch.control.is_behind();
        if is_deferred {
            connection.defer_reading();
        } else {
            let copy = |bytes: &[u8]| {
                if has_snoop {
                    copied.extend_from_slice(bytes);
                }
            };
            connection.receive(copy).map_err(text)?;
        }
        let before = connection.output().len();
        let mut open = true;
        if connection.kind == Kind::Snoop {
            // Its messages are not answered; the first of them is its hello.
            if connection.waiting.drain(..).next().is_some() {
                connection.state = State::Up;
            }
        } else {
            open = is_deferred || self.handle_messages(connection);
            while connection.dump.is_some() && connection.may_serve() {
                statistics::page(&self.switch, connection);
            }
        }
        if has_snoop && connection.kind != Kind::Snoop {
            copied.extend_from_slice(&connection.output()[before..]);
            self.send_to_snoops(&copied);
        }
        connection.send().map_err(text)?;
        if open && !connection.is_finished() { Ok(()) } else { Err("closed".to_owned()) }
    }

    /// Handles the messages that wait. Returns false when the connection has ended.
    fn handle_messages(&mut self, connection: &mut Connection) -> bool {
        if connection.state == State::Greeting {
            let Some(first) = connection.waiting.pop_front() else { return true };
            if connection.take_hello(&first).is_err() {
                return false;
            }
            if connection.wants_misses() {
                self.switch.want_misses(true);
            }
            if let Kind::Dialled(index) = connection.kind {
                self.targets[index].backoff = BACKOFF_FIRST;
                self.options.notice.send(&format!("{}: connected", connection.peer));
            }
        }
        for _election in requests::handle(&mut self.switch, connection) {
            for other in self.connections.values_mut().filter(|other| other.role == Role::Master) {
                other.depose(self.switch.generation_id.unwrap_or(u64::MAX));
            }
        }
        true
    }

    /// Sends bytes to snoop connections.
    fn send_to_snoops(&mut self, bytes: &[u8]) {
        for snoop in self.connections.values_mut().filter(|other| other.kind == Kind::Snoop) {
            if snoop.state == State::Up || snoop.state == State::Greeting {
                snoop.send_event(bytes);
            }
        }
    }

    fn close(&mut self, mut connection: Connection, why: &str) {
        let _ = connection.send();
        let _ = self.poll.registry().deregister(&mut connection.stream);
        if connection.missed > 0 {
            let missed = connection.missed;
            self.options.notice.send(&format!(
                "{}: {missed} asynchronous messages were dropped: the controller did not read them",
                connection.peer
            ));
        }
        if let Kind::Dialled(index) = connection.kind {
            let dialled = &mut self.targets[index];
            if !dialled.has_failed || connection.state == State::Up {
                self.options.notice.send(&format!("{}: {why}; dialling again", connection.peer));
            }
            dialled.fail(why);
        } else if connection.state == State::Greeting && connection.stream.is_tls() && why != "closed" {
            self.options.notice.send(&format!("{}: {why}", connection.peer));
        }
    }

    fn close_at(&mut self, token: usize, why: &str) {
        if let Some(connection) = self.connections.remove(&token) {
            self.close(connection, why);
        }
    }

    /// Does what a switch does without a request: expiry, link changes, dialling, checks.
    fn housekeep(&mut self) {
        self.carry_out_orders();
        let now = Instant::now();
        let control = self.switch.control.clone();
        if control.next_at().is_some_and(|at| at <= control.now()) {
            let removed = control.expire();
            self.switch.note_removed(removed);
            self.switch.keep_misses();
        }
        table_mods::note(&mut self.switch);
        if let Some(links) = self.options.links.as_ref().filter(|_| now >= self.links_at) {
            links.states().for_each(|(number, link)| control.set_link(number, link));
            self.links_at = now + LINKS_EVERY;
        }
        for number in control.take_link_changes() {
            self.switch.async_messages.push(Event::PortStatus(number));
        }
        for index in 0..self.targets.len() {
            if self.targets[index].state.is_err_and(|at| at <= now) {
                self.dial(index);
            }
        }
        if now >= self.check_at {
            self.check_at = now + CHECK_EVERY;
            if !self.unserved.is_empty() {
                self.serve_at_paths();
            }
            for token in self.connections.keys().copied().collect::<Vec<_>>() {
                let Some(connection) = self.connections.get_mut(&token) else { continue };
                let probe_every = match connection.kind {
                    Kind::Dialled(index) => self.targets[index].dial.probe_every,
                    Kind::Answered | Kind::Snoop => self.options.probe_every,
                };
                let checked = connection.check(now, probe_every);
                if let Err(why) = checked {
                    self.close_at(token, why);
                }
            }
        }
        self.choose_mode();
        self.publish_state();
    }

    /// Fail-standalone begins when every controller has failed to connect, and ends when one is
    /// connected. A switch that dials none is in it from the start.
    fn choose_mode(&mut self) {
        if self.options.fail_mode == FailMode::Secure || self.targets.is_empty() {
            return;
        }
        let is_up = |one: &Connection| one.state == State::Up && matches!(one.kind, Kind::Dialled(_));
        let has_controller = self.connections.values().any(is_up);
        let control = &self.switch.control;
        if self.is_standalone && has_controller {
            standalone::end(control);
            self.is_standalone = false;
        } else if !self.is_standalone
            && !has_controller
            && self.targets.iter().all(|dialled| dialled.has_failed)
        {
            self.options.notice.send("no controller: forwarding by learned addresses");
            standalone::begin(control);
            self.is_standalone = true;
        }
    }

    fn dial(&mut self, index: usize) {
        let target = self.targets[index].dial.target.clone();
        let dialled = self.try_dial(index, &target);
        match dialled {
            Ok(Some(token)) => self.targets[index].state = Ok(token),
            Ok(None) if self.targets[index].lookup.is_some() => {}
            Ok(None) => self.targets[index].fail("the system refuses to watch the connection"),
            Err(why) => {
                if !self.targets[index].has_failed {
                    self.options.notice.send(&format!("{target}: {why}; dialling again"));
                }
                self.targets[index].fail(&why);
            }
        }
    }

    fn try_dial(&mut self, index: usize, target: &Target) -> Result<Option<usize>, String> {
        if target.security == Security::Tls && self.tls.is_none() {
            return Err("TLS needs a private key, a certificate and a CA certificate".to_owned());
        }
        let address = match target.host.parse::<IpAddr>() {
            Ok(address) => (address, target.port).into(),
            Err(_) => match self.look_up(index, target).map_err(|error| error.to_string())? {
                Some(addresses) => *addresses.first().ok_or("the name has no address")?,
                None => return Ok(None),
            },
        };
        let socket = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let tls = match (&self.tls, target.security) {
            (Some(tls), Security::Tls) => Some(tls.dialled(&target.host).map_err(|error| error.to_string())?),
            _ => None,
        };
        let stream = Stream::new(ControlSocket::Tcp(socket), tls);
        let kind = Kind::Dialled(index);
        let versions = self.options.versions;
        Ok(self.add(Connection::new(stream, target.to_string(), kind, State::Connecting, versions)))
    }

    /// Resolves a name; `None` while a thread of its own does so. A name is resolved again each
    /// time it is dialled, because controllers move.
    fn look_up(&mut self, index: usize, target: &Target) -> io::Result<Option<Vec<SocketAddr>>> {
        let lookup = &mut self.targets[index].lookup;
        let Some(answer) = lookup else {
            let (sender, receiver) = mpsc::channel();
            let (host, port, waker) = (target.host.clone(), target.port, Arc::clone(&self.waker));
            let resolve = move || {
                let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
                // They fail when the agent has ended.
                let _ = sender.send(addresses);
                let _ = waker.wake();
            };
            std::thread::Builder::new().name("fastpath-lookup".to_owned()).spawn(resolve)?;
            *lookup = Some(receiver);
            return Ok(None);
        };
        match answer.try_recv() {
            Ok(addresses) => {
                *lookup = None;
                addresses.map(Some)
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                *lookup = None;
                Err(io::Error::other("the name could not be resolved"))
            }
        }
    }

    /// Sends packet-ins and asynchronous messages to the controllers.
    fn send_events(&mut self) {
        for packet in self.switch.control.take_packet_ins() {
            let event = Event::PacketIn(Box::new(packet));
            let mut encoded = EncodedEvent::new(&event);
            for connection in self.connections.values_mut().filter(|one| one.wants(&event)) {
                match encoded.bytes(&self.switch, connection.event_form(&event)) {
                    Some(bytes) => connection.send_event(bytes),
                    None => connection.missed += 1,
                }
            }
            if let Some(bytes) = encoded.first() {
                self.send_to_snoops(&bytes);
            }
        }
        self.send_async_messages();
        for token in self.connections.keys().copied().collect::<Vec<_>>() {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            let mut sent = connection.send();
            if sent.is_ok() && connection.output().is_empty() && connection.monitors.held.is_some() {
                self.switch.tell_held(connection);
                sent = connection.send();
            }
            if let Err(error) = sent {
                self.close_at(token, &error.to_string());
            }
        }
    }
}

impl EventLoop {
    /// Sends asynchronous messages. Snoop connections receive each once, when the first controller
    /// does.
    fn send_async_messages(&mut self) {
        let now = Instant::now();
        let mut shown = Vec::new();
        for connection in self.connections.values_mut() {
            let mut first = self.switch.async_messages.shown;
            self.switch.async_messages.deliver(connection, now, ASYNC_MAX, |number, form, event| {
                let bytes = self.switch.encode(form, event)?;
                if number >= first {
                    shown.extend_from_slice(&bytes);
                    first = number + 1;
                }
                Some(bytes)
            });
            self.switch.async_messages.shown = first;
        }
        self.send_to_snoops(&shown);
        self.switch.async_messages.tidy(self.connections.values_mut());
        let missed: u64 = self.connections.values_mut().map(Connection::take_missed).sum();
        if missed > 0 {
            self.switch.control.note_missed(missed);
        }
    }
}

impl Dialled {
    /// A controller that is dialled from `at` on.
    pub(super) fn new(dial: Dial, at: Instant) -> Dialled {
        let backoff = BACKOFF_FIRST;
        Dialled { dial, state: Err(at), lookup: None, backoff, has_failed: false, failure: None }
    }

    fn fail(&mut self, why: &str) {
        self.has_failed = true;
        self.failure = Some(why.to_owned());
        self.state = Err(Instant::now() + self.backoff);
        self.backoff = (self.backoff * 2).min(self.dial.backoff_max);
    }
}
