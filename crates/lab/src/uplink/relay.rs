//! Carries connections and datagrams between this machine and the lab: forwarded ports inwards,
//! queries for names outwards. It reads nothing of what it carries.
//!
//! One thread serves all sockets of an uplink. A socket stays in the network namespace in which it
//! was made, so a relay joins two of them.

use super::names;
use crate::host::Host;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

/// The most connections of one port at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 128;
/// The most senders of datagrams of one port at once; one more ends the oldest.
const SENDERS_MAX: usize = 128;
/// Time for a connection to be established.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Time without datagrams after which a sender is forgotten.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Interval after a failure to accept, which may come from too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
const DNS: u16 = super::DNS;

/// What a relay does with one socket.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) listener: Listener,
    pub(super) to: Targets,
    pub(super) from: Side,
}

/// A socket that receives.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(std::net::TcpListener),
    Udp(std::net::UdpSocket),
}

/// Where to. The first one that answers is taken.
#[derive(Clone, Debug)]
pub(super) enum Targets {
    These(Vec<SocketAddr>),
    /// The name servers of this machine at the time.
    NameServers,
}

/// The network namespace whose sockets send.
#[derive(Clone, Debug)]
pub(super) enum Side {
    /// In the network namespace of this process.
    Machine,
    /// In a namespace of the lab.
    Inside(Arc<Host>),
}

/// The thread of a relay. It ends on drop, and all its connections with it.
#[derive(Debug)]
pub(super) struct Relay {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub(super) fn start(rules: Vec<Rule>) -> io::Result<Relay> {
        for rule in &rules {
            match &rule.listener {
                Listener::Tcp(socket) => socket.set_nonblocking(true)?,
                Listener::Udp(socket) => socket.set_nonblocking(true)?,
            }
        }
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("uplink".to_owned()).spawn(move || {
            let tasks = LocalSet::new();
            for rule in rules {
                tasks.spawn_local(serve(rule));
            }
            // An error means that the sender is gone.
            let _ = tasks.block_on(&runtime, stopped);
        })?;
        Ok(Relay { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Targets {
    fn now(&self) -> Vec<SocketAddr> {
        match self {
            Targets::These(all) => all.clone(),
            Targets::NameServers => {
                let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
                names::servers(&text).into_iter().map(|server| SocketAddr::new(server, DNS)).collect()
            }
        }
    }
}

impl Side {
    fn make<T: Send>(&self, make: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        match self {
            Side::Machine => make(),
            Side::Inside(host) => host.namespace.within(make)?,
        }
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = self.make(|| if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() })?;
        timeout(CONNECT_MAX, socket.connect(to)).await?
    }

    fn datagrams(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = self.make(|| {
            let socket = std::net::UdpSocket::bind(any)?;
            socket.connect(to)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        })?;
        UdpSocket::from_std(socket)
    }
}

async fn serve(rule: Rule) {
    let Rule { listener, to, from } = rule;
    // The sockets do not block, and the runtime has its drivers.
    match listener {
        Listener::Tcp(socket) => {
            if let Ok(listener) = TcpListener::from_std(socket) {
                serve_tcp(listener, to, from).await;
            }
        }
        Listener::Udp(socket) => {
            if let Ok(socket) = UdpSocket::from_std(socket) {
                serve_udp(Rc::new(socket), to, from).await;
            }
        }
    }
}

async fn serve_tcp(listener: TcpListener, to: Targets, from: Side) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let near = match listener.accept().await {
            Ok((near, _)) => near,
            Err(_) => {
                sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let (to, from) = (to.now(), from.clone());
        spawn_local(async move {
            for target in to {
                // A target that does not answer: the next one. Without any the connection is
                // closed.
                if let Ok(far) = from.connect(target).await {
                    carry(near, far).await;
                    break;
                }
            }
            drop(permit);
        });
    }
}

/// Carries both directions of a connection until both have ended.
async fn carry(near: TcpStream, far: TcpStream) {
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let there = spawn_local(copy(near_in, far_out));
    copy(far_in, near_out).await;
    let _ = there.await;
}

/// Copies one direction. On drop the write half ends its direction.
async fn copy(from: OwnedReadHalf, to: OwnedWriteHalf) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let len = match from.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match from.readable().await {
                Ok(()) => continue,
                Err(_) => return,
            },
            Err(_) => return,
        };
        let mut rest = &buffer[..len];
        while !rest.is_empty() {
            match to.try_write(rest) {
                Ok(len) => rest = &rest[len..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match to.writable().await {
                    Ok(()) => {}
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
    }
}

/// A sender of datagrams.
struct Sender {
    socket: Rc<UdpSocket>,
    /// Carries the answers.
    answers: AbortHandle,
    target: usize,
    /// Whether the last datagram has been answered.
    is_answered: bool,
    /// Counts datagrams of all senders: the least is the oldest.
    last: u64,
}

type Senders = Rc<RefCell<BTreeMap<SocketAddr, Sender>>>;

async fn serve_udp(near: Rc<UdpSocket>, to: Targets, from: Side) {
    let senders: Senders = Rc::default();
    let mut buffer = vec![0; 1 << 16];
    for count in 0.. {
        let Ok((len, sender)) = near.recv_from(&mut buffer).await else { continue };
        let far = senders.borrow_mut().get_mut(&sender).map(|known| {
            let is_answered = std::mem::replace(&mut known.is_answered, false);
            known.last = count;
            (Rc::clone(&known.socket), known.target, is_answered)
        });
        let socket = match far {
            Some((socket, _, true)) => Some(socket),
            // A question that is repeated goes to the next target.
            other => {
                let targets = to.now();
                let place = other.as_ref().map_or(0, |(_, place, _)| place + 1) % targets.len().max(1);
                let same = other.filter(|_| targets.len() == 1).map(|(socket, ..)| socket);
                let make = || begin(&senders, &near, sender, (place, *targets.get(place)?), &from, count);
                same.or_else(make)
            }
        };
        if let Some(socket) = socket {
            // A datagram may be lost.
            let _ = socket.send(&buffer[..len]).await;
        }
    }
}

/// Makes the socket for a sender, and carries what comes back.
fn begin(
    senders: &Senders,
    near: &Rc<UdpSocket>,
    sender: SocketAddr,
    (target, address): (usize, SocketAddr),
    from: &Side,
    count: u64,
) -> Option<Rc<UdpSocket>> {
    let socket = Rc::new(from.datagrams(address).ok()?);
    let answers = spawn_local(answer(Rc::clone(senders), Rc::clone(near), sender, Rc::clone(&socket)));
    let answers = answers.abort_handle();
    let begun = Sender { socket: Rc::clone(&socket), answers, target, is_answered: false, last: count };
    let mut all = senders.borrow_mut();
    if let Some(former) = all.insert(sender, begun) {
        former.answers.abort();
    }
    if all.len() > SENDERS_MAX {
        let oldest = all.iter().min_by_key(|(_, sender)| sender.last).map(|(address, _)| *address);
        if let Some(oldest) = oldest.and_then(|address| all.remove(&address)) {
            oldest.answers.abort();
        }
    }
    Some(socket)
}

async fn answer(senders: Senders, near: Rc<UdpSocket>, sender: SocketAddr, far: Rc<UdpSocket>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match timeout(IDLE_MAX, far.recv(&mut buffer)).await {
            Ok(Ok(len)) => {
                if let Some(known) = senders.borrow_mut().get_mut(&sender) {
                    known.is_answered = true;
                }
                let _ = near.send_to(&buffer[..len], sender).await;
            }
            // An ICMP error: the target may listen later.
            Ok(Err(_)) => {}
            Err(_) => break,
        }
    }
    senders.borrow_mut().remove(&sender);
}
