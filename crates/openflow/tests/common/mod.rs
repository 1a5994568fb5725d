//! A switch with three memory ports and a local one, an agent, and controllers for it.

use fastpath_engine::Notice;
use fastpath_engine::port::{Memory, MemoryEnd, Port};
use fastpath_engine::switching::{Control, Datapath, PacketInLimit, SwitchAccounting, SwitchRunning, serve};
use fastpath_openflow::agent::{
    Agent, Doorbell, FailMode, Listen, Options, PortInfo, Security, Target, TlsFiles, Versions,
};
use fastpath_openflow::message::{Codec, Hello, Message, frame_len};
use fastpath_plan::Planned;
use fastpath_switch::execute::{BackgroundJob, OutboxEntry};
use fastpath_switch::outcome::DropReason;
use fastpath_switch::{Executor, FlowMod, Limits, Outbox, Switch, Verdict, Version, port};
use fastpath_units::Time;
use fastpath_wire::MacAddr;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::any::Any;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No step takes longer, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

const PORTS: [u32; 4] = [1, 2, 3, port::LOCAL];

/// A running switch. The agent is dropped before its switch.
pub(crate) struct Harness {
    agent: Agent,
    running: SwitchRunning,
    ends: Vec<MemoryEnd>,
    control: Control,
}

impl Harness {
    /// A switch that listens.
    pub(crate) fn new() -> Harness {
        Harness::holding(Limits::default())
    }

    /// A switch that listens and has these versions only.
    pub(crate) fn of_versions(versions: Versions) -> Harness {
        Harness::of_versions_holding(versions, Limits::default())
    }

    /// A switch that listens and has these versions only, with these limits.
    pub(crate) fn of_versions_holding(versions: Versions, limits: Limits) -> Harness {
        let mut switch = Switch::new(limits);
        let executor = Box::new(Planned::new(&mut switch));
        let listen = vec![listen(Security::Plain)];
        Harness::failing(FailMode::Secure, versions, executor, switch, listen, Vec::new(), None)
    }

    /// A switch that listens, with these limits.
    pub(crate) fn holding(limits: Limits) -> Harness {
        Harness::with(limits, vec![listen(Security::Plain)], Vec::new(), None)
    }

    /// A switch that dials the returned listener, and learns addresses while that is closed.
    pub(crate) fn dialling() -> (Harness, TcpListener) {
        // By name, where the name resolves.
        let first = ("localhost", 0).to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        let named = first.and_then(|address| TcpListener::bind(address).ok());
        let host = if named.is_some() { "localhost" } else { "127.0.0.1" };
        let listener = named.unwrap_or_else(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let port = listener.local_addr().unwrap().port();
        let target = Target { security: Security::Plain, host: host.to_owned(), port };
        (Harness::with(Limits::default(), Vec::new(), vec![target], None), listener)
    }

    /// A switch that dials a controller on this port of this machine, and has no flows without it.
    pub(crate) fn dialling_to(port: u16) -> Harness {
        let target = Target { security: Security::Plain, host: "127.0.0.1".to_owned(), port };
        let mut switch = Switch::new(Limits::default());
        let executor = Box::new(Planned::new(&mut switch));
        let versions = Versions::default();
        Harness::failing(FailMode::Secure, versions, executor, switch, Vec::new(), vec![target], None)
    }

    /// A switch that dials no controller, in standalone mode, with these rules from the start.
    pub(crate) fn standalone(rules: &[FlowMod]) -> Harness {
        let mut switch = Switch::new(Limits::default());
        rules.iter().for_each(|rule| drop(switch.flow_mod(Time::ZERO, rule).unwrap()));
        let executor = Box::new(Planned::new(&mut switch));
        let listen = vec![listen(Security::Plain)];
        let versions = Versions::default();
        Harness::failing(FailMode::Standalone, versions, executor, switch, listen, Vec::new(), None)
    }

    /// A switch that listens with TLS.
    pub(crate) fn tls() -> Harness {
        let files = TlsFiles {
            private_key: pem("switch.key"),
            certificate: pem("switch.crt"),
            ca_certificate: pem("ca.crt"),
        };
        Harness::with(Limits::default(), vec![listen(Security::Tls)], Vec::new(), Some(files))
    }

    /// A switch that listens and has this many further ports, by which no frame leaves.
    pub(crate) fn with_more_ports(count: u32) -> Harness {
        let mut switch = Switch::new(Limits::default());
        (1000..1000 + count).for_each(|number| switch.set_port(number, fastpath_switch::Port::up()));
        let executor = Box::new(Planned::new(&mut switch));
        Harness::executed_by(executor, switch, vec![listen(Security::Plain)], Vec::new(), None)
    }

    /// A switch whose lookup structures are built one at a time, for each message on `go`.
    pub(crate) fn patient(go: Receiver<()>) -> Harness {
        let executor = Patient { go: Arc::new(Mutex::new(go)), is_due: false };
        let listen = vec![listen(Security::Plain)];
        Harness::executed_by(Box::new(executor), Switch::new(Limits::default()), listen, Vec::new(), None)
    }

    fn with(limits: Limits, listen: Vec<Listen>, connect: Vec<Target>, tls: Option<TlsFiles>) -> Harness {
        let mut switch = Switch::new(limits);
        let executor = Box::new(Planned::new(&mut switch));
        Harness::executed_by(executor, switch, listen, connect, tls)
    }

    fn executed_by(
        executor: Box<dyn Executor>,
        switch: Switch,
        listen: Vec<Listen>,
        connect: Vec<Target>,
        tls: Option<TlsFiles>,
    ) -> Harness {
        let fail_mode = if connect.is_empty() { FailMode::Secure } else { FailMode::Standalone };
        Harness::failing(fail_mode, Versions::default(), executor, switch, listen, connect, tls)
    }

    fn failing(
        fail_mode: FailMode,
        versions: Versions,
        executor: Box<dyn Executor>,
        mut switch: Switch,
        listen: Vec<Listen>,
        connect: Vec<Target>,
        tls: Option<TlsFiles>,
    ) -> Harness {
        let (mut ports, mut ends, mut info): (Vec<(u32, Box<dyn Port>)>, _, _) =
            (Vec::new(), Vec::new(), std::collections::BTreeMap::new());
        for number in PORTS {
            let name = if number == port::LOCAL { "local".to_owned() } else { format!("p{number}") };
            let (port, end) = Memory::new(&name, 1 << 20);
            ports.push((number, Box::new(port)));
            ends.push(end);
            switch.set_port(number, fastpath_switch::Port::up());
            info.insert(number, PortInfo { name, hw_addr: MacAddr::from_index(number) });
        }
        let doorbell = Doorbell::new().unwrap();
        let control = Control::new(switch, executor, PacketInLimit::default(), doorbell.ringer()).unwrap();
        let memory = NonZeroUsize::new(16 << 20).unwrap();
        let running = serve(&control, Datapath::new(&control, ports, memory, Notice::none())).unwrap();
        let options = Options {
            versions,
            datapath_id: 42,
            ports: info,
            listen,
            snoop: Vec::new(),
            connect,
            tls,
            fail_mode,
            probe_every: Duration::from_secs(30),
            backoff_max: Duration::from_secs(1),
            links: None,
            notice: Notice::none(),
        };
        Harness { agent: Agent::start(&control, doorbell, options).unwrap(), running, ends, control }
    }

    /// A controller after the exchange of hellos.
    pub(crate) fn controller(&self) -> Peer {
        let mut peer = self.stranger();
        peer.greet();
        peer
    }

    /// A controller of OpenFlow 1.0 after the exchange of hellos.
    pub(crate) fn controller_10(&self) -> Peer {
        let mut peer = self.stranger();
        peer.greet_in(Version::V10);
        peer
    }

    /// Returns the address on which the switch listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.agent.listening()[0]
    }

    /// A connection before the exchange of hellos.
    pub(crate) fn stranger(&self) -> Peer {
        Peer::new(Box::new(connect(self.address())))
    }

    /// A connection through TLS with the certificate of this name; `None` when the handshake fails.
    pub(crate) fn tls_controller(&self, name: &str) -> Option<Peer> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(pem("ca.crt")).unwrap()).unwrap();
        let chain = vec![CertificateDer::from_pem_file(pem(&format!("{name}.crt"))).unwrap()];
        let key = PrivateKeyDer::from_pem_file(pem(&format!("{name}.key"))).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap();
        let server = "127.0.0.1".to_owned().try_into().unwrap();
        let mut session = rustls::ClientConnection::new(Arc::new(config), server).unwrap();
        let mut socket = connect(self.address());
        session.complete_io(&mut socket).ok()?;
        Some(Peer::new(Box::new(rustls::StreamOwned::new(session, socket))))
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    pub(crate) fn hw_addr(&self, number: u32) -> MacAddr {
        MacAddr::from_index(number)
    }

    /// Returns how many flows table 0 has, those of the agent included.
    pub(crate) fn flow_count(&self) -> usize {
        self.control.peek(|switch| switch.tables()[0].flows().len())
    }

    /// The data path finds the link of a port down, or up.
    pub(crate) fn set_link(&self, number: u32, link: port::LinkState) {
        self.control.set_link(number, link);
    }

    /// A frame arrives on a port.
    pub(crate) fn send(&self, number: u32, frame: &[u8]) {
        assert_eq!(self.end(number).send([frame]), 1);
    }

    fn end(&self, number: u32) -> &MemoryEnd {
        &self.ends[PORTS.iter().position(|other| *other == number).unwrap()]
    }

    /// Returns the next frame that leaves by a port.
    pub(crate) fn receive(&self, number: u32) -> Vec<u8> {
        until(|| self.try_receive(number))
    }

    fn try_receive(&self, number: u32) -> Option<Vec<u8>> {
        let mut found = None;
        self.end(number).recv(1, |frame| found = Some(frame.to_vec()));
        found
    }

    /// Sends a frame repeatedly until one leaves by another port.
    pub(crate) fn send_until(&self, from: u32, frame: &[u8], to: u32) -> Vec<u8> {
        let mut turns = 0u64;
        until(|| {
            if turns.is_multiple_of(1000) {
                self.send(from, frame);
            }
            turns += 1;
            self.try_receive(to)
        })
    }

    pub(crate) fn stop(self) -> SwitchAccounting {
        drop(self.agent);
        self.running.stop()
    }
}

/// An executor that forwards nothing and builds new structures after every change.
struct Patient {
    go: Arc<Mutex<Receiver<()>>>,
    is_due: bool,
}

impl Executor for Patient {
    fn update(&mut self, _: &mut Switch) {
        self.is_due = true;
    }

    fn execute(&mut self, _: &mut Switch, _: Time, _: u32, _: &mut [u8], out: &mut Outbox) -> Verdict {
        out.push(OutboxEntry::Drop(DropReason::TableMiss), &[]);
        Verdict::Done
    }

    fn job(&mut self, _: &Switch) -> Option<BackgroundJob> {
        let go = Arc::clone(&self.go);
        // When the sender is gone, the job does not wait.
        let job = move || Box::new(go.lock().unwrap().recv().is_ok()) as Box<dyn Any + Send>;
        self.is_due.then(|| Box::new(job) as BackgroundJob)
    }

    fn finish(&mut self, _: &mut Switch, _: Box<dyn Any + Send>) {
        self.is_due = false;
    }

    fn is_behind(&self) -> bool {
        self.is_due
    }
}

/// Polls `ask` and yields the processor in between.
pub(crate) fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "nothing came");
        std::thread::yield_now();
    }
}

fn listen(security: Security) -> Listen {
    Listen { security, at: (Ipv4Addr::LOCALHOST, 0).into() }
}

fn connect(at: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(at).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket.set_write_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pem").join(name)
}

trait ByteStream: Read + Write {}
impl<T: Read + Write> ByteStream for T {}

/// A controller's end of a connection.
pub(crate) struct Peer {
    stream: Box<dyn ByteStream>,
    codec: Codec,
    input: Vec<u8>,
    xid: u32,
}

impl Peer {
    fn new(stream: Box<dyn ByteStream>) -> Peer {
        Peer { stream, codec: Codec::new(Version::V13), input: Vec::new(), xid: 100 }
    }

    /// Connects to a switch that listens.
    pub(crate) fn connect(at: SocketAddr) -> Peer {
        Peer::new(Box::new(connect(at)))
    }

    /// Accepts the next connection of the switch.
    pub(crate) fn answer(listener: &TcpListener) -> Peer {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Peer::new(Box::new(socket))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    pub(crate) fn say(&mut self, message: &Message) {
        self.xid += 1;
        let mut bytes = Vec::new();
        self.codec.encode(self.xid, message, &mut bytes);
        self.codec.note(message);
        self.write(&bytes);
    }

    /// Returns the next message except hellos and echo requests.
    pub(crate) fn hear(&mut self) -> Message {
        loop {
            match self.next().expect("the connection is open") {
                Message::Hello(_) | Message::EchoRequest(_) => {}
                message => return message,
            }
        }
    }

    pub(crate) fn greet(&mut self) {
        self.greet_in(Version::V13);
    }

    /// Says hello in a version, and that it has no other.
    pub(crate) fn greet_in(&mut self, version: Version) {
        self.codec = Codec::new(version);
        self.say(&Message::Hello(Hello::of(Versions::only(version))));
    }

    /// Waits until everything sent is in force.
    pub(crate) fn barrier(&mut self) {
        self.say(&Message::BarrierRequest);
        assert_eq!(self.hear(), Message::BarrierReply);
    }

    /// Returns type and code of the next message, which must be an error.
    pub(crate) fn refusal(&mut self) -> (u16, u16) {
        match self.hear() {
            Message::Error(error) => (error.kind, error.code),
            other => panic!("no error: {other:?}"),
        }
    }

    /// Returns whether the switch ends the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        loop {
            match self.next() {
                None => return true,
                Some(Message::Hello(_) | Message::EchoRequest(_)) => {}
                Some(_) => return false,
            }
        }
    }

    fn next(&mut self) -> Option<Message> {
        loop {
            if let Ok(Some(len)) = frame_len(&self.input)
                && len <= self.input.len()
            {
                let message = self.codec.decode(&self.input[..len]).expect("the switch speaks well").1;
                self.input.drain(..len);
                return Some(message);
            }
            let mut bytes = [0; 65_536];
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(len) => self.input.extend_from_slice(&bytes[..len]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("nothing came"),
                // TLS and TCP end in different ways.
                Err(_) => return None,
            }
        }
    }
}
