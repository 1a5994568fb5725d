//! The socket of a session: dials, reads and writes, and dials again after a failure.
//!
//! A thread of its own dials, so that neither a name that is looked up nor a server that does not
//! accept stops the caller.

use crate::remote::Remote;
use crate::replica::Replica;
use crate::row_update::RowUpdate;
use crate::session::{Event, Session};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The first and the longest wait before the server is dialled again. It doubles each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// The longest wait for a TCP connection, and for a server to take what is sent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes read at once.
const READ_LEN: usize = 1 << 16;
/// Bytes read before the caller has a turn again.
const READ_MAX: usize = 1 << 24;

/// What happened to a client.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientEvent {
    /// The server was reached. Its rows follow.
    Connected,
    /// The connection ended, or could not be made; and when it is tried again.
    Disconnected {
        /// Why.
        why: String,
        /// The wait before the next attempt.
        again_in: Duration,
    },
    /// An event of the session.
    Session(Event),
}

/// Bytes in both directions: a session of TLS over a socket. It reads and writes the socket when it
/// is read and written, and passes on that the socket would block.
pub trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

type Begin = dyn Fn(TcpStream, &str) -> io::Result<Box<dyn Duplex>> + Send + Sync;

/// Begins a session of TLS: its arguments are a socket that blocks, and the name or address that
/// the certificate of the server has to be for.
#[derive(Clone)]
pub struct Secure(Arc<Begin>);

impl Secure {
    /// Begins sessions by this function. It returns after the handshake.
    pub fn new(
        begin: impl Fn(TcpStream, &str) -> io::Result<Box<dyn Duplex>> + Send + Sync + 'static,
    ) -> Secure {
        Secure(Arc::new(begin))
    }
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secure")
    }
}

/// A client of one database server. It never gives up.
#[derive(Debug)]
pub struct Client {
    remote: Remote,
    /// For servers with TLS.
    secure: Option<Secure>,
    state: ClientState,
    backoff: Duration,
    buffer: Box<[u8]>,
}

#[derive(Debug)]
enum ClientState {
    Waiting { until: Instant },
    Dialling(Receiver<io::Result<Socket>>),
    Up(Socket, Box<Session>),
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// The socket, to set how it waits, and the session over it.
    Tls(TcpStream, Box<dyn Duplex>),
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Socket::Unix(_) => "Unix",
            Socket::Tcp(_) => "Tcp",
            Socket::Tls(..) => "Tls",
        })
    }
}

impl Client {
    /// A client that dials at once. A server with TLS is reached by `secure`.
    pub fn new(remote: Remote, secure: Option<Secure>) -> Client {
        let state = ClientState::Waiting { until: Instant::now() };
        Client { remote, secure, state, backoff: BACKOFF_FIRST, buffer: vec![0; READ_LEN].into() }
    }

    /// The rows, while the server is connected and has sent them.
    pub fn replica(&self) -> Option<&Replica> {
        self.session()?.replica()
    }

    /// Whether this program drives the switches of the database.
    pub fn has_lock(&self) -> bool {
        self.session().is_some_and(Session::has_lock)
    }

    /// Whether the reply to a transaction is awaited.
    pub fn is_transacting(&self) -> bool {
        self.session().is_some_and(Session::is_transacting)
    }

    /// Writes columns, all or none: see [`Session::transact`]. They are sent by the next
    /// [`Client::turn`].
    pub fn transact(&mut self, updates: &[RowUpdate]) -> bool {
        match &mut self.state {
            ClientState::Up(_, session) => session.transact(updates),
            _ => false,
        }
    }

    /// Does what is to be done, and waits at most `wait` for something to happen.
    pub fn turn(&mut self, wait: Duration) -> Vec<ClientEvent> {
        match &mut self.state {
            ClientState::Waiting { until } => {
                let left = until.saturating_duration_since(Instant::now());
                if left > wait {
                    std::thread::sleep(wait);
                    return Vec::new();
                }
                std::thread::sleep(left);
                self.dial()
            }
            ClientState::Dialling(dialled) => match dialled.recv_timeout(wait) {
                Ok(Ok(socket)) => {
                    self.state = ClientState::Up(socket, Box::new(Session::new(Instant::now())));
                    vec![ClientEvent::Connected]
                }
                Ok(Err(error)) => vec![self.fail(&error)],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(error @ RecvTimeoutError::Disconnected) => vec![self.fail(&error)],
            },
            ClientState::Up(socket, session) => match serve(socket, session, wait, &mut self.buffer) {
                Ok(events) => {
                    // Only a server that answers is one: a connection alone may be a queue.
                    if session.replica().is_some() {
                        self.backoff = BACKOFF_FIRST;
                    }
                    events.into_iter().map(ClientEvent::Session).collect()
                }
                Err(why) => vec![self.fail(&why)],
            },
        }
    }

    fn session(&self) -> Option<&Session> {
        match &self.state {
            ClientState::Up(_, session) => Some(session),
            _ => None,
        }
    }

    fn dial(&mut self) -> Vec<ClientEvent> {
        let (sender, dialled) = mpsc::channel();
        let (remote, secure) = (self.remote.clone(), self.secure.clone());
        // It fails when the client is gone.
        let dial = move || drop(sender.send(Socket::connect(&remote, secure.as_ref())));
        match std::thread::Builder::new().name("fastpath-ovsdb".to_owned()).spawn(dial) {
            Ok(_) => {
                self.state = ClientState::Dialling(dialled);
                Vec::new()
            }
            Err(error) => vec![self.fail(&error)],
        }
    }

    fn fail(&mut self, why: &dyn std::fmt::Display) -> ClientEvent {
        let again_in = self.backoff;
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        self.state = ClientState::Waiting { until: Instant::now() + again_in };
        ClientEvent::Disconnected { why: format!("{}: {why}", self.remote), again_in }
    }
}

/// Sends what waits, and reads what has arrived, at most [`READ_MAX`] bytes. `Err` says why the
/// connection has ended.
fn serve(
    socket: &mut Socket,
    session: &mut Session,
    wait: Duration,
    buffer: &mut [u8],
) -> Result<Vec<Event>, String> {
    let text = |error: io::Error| error.to_string();
    session.check(Instant::now()).map_err(|error| error.to_string())?;
    socket.send(&session.take_output()).map_err(text)?;
    let (mut events, mut read) = (Vec::new(), 0);
    let mut wait = Some(wait);
    while read < READ_MAX {
        let len = match socket.receive(buffer, wait.take()) {
            Ok(0) => return Err("the server has closed the connection".to_owned()),
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => break,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => return Err(error.to_string()),
        };
        read += len;
        let received = session.receive(Instant::now(), &buffer[..len]);
        events.extend(received.map_err(|error| error.to_string())?);
        socket.send(&session.take_output()).map_err(text)?;
    }
    Ok(events)
}

impl Socket {
    fn connect(remote: &Remote, secure: Option<&Secure>) -> io::Result<Socket> {
        match remote {
            Remote::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Ok(Socket::Unix(socket))
            }
            Remote::Tcp { host, port } => Ok(Socket::Tcp(connect_tcp(host, *port)?)),
            Remote::Ssl { host, port } => {
                let Some(Secure(begin)) = secure else {
                    return Err(io::Error::other(
                        "ssl needs a private key, a certificate and a CA certificate",
                    ));
                };
                let socket = connect_tcp(host, *port)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                Ok(Socket::Tls(socket.try_clone()?, begin(socket, host)?))
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.set_nonblocking(false)?;
        match self {
            Socket::Unix(socket) => socket.write_all(bytes),
            Socket::Tcp(socket) => socket.write_all(bytes),
            Socket::Tls(_, session) => {
                session.write_all(bytes)?;
                session.flush()
            }
        }
    }

    /// Reads what is there. Waits for it if `wait` says so.
    fn receive(&mut self, buffer: &mut [u8], wait: Option<Duration>) -> io::Result<usize> {
        self.set_nonblocking(wait.is_none())?;
        // A timeout of zero is refused by the standard library.
        let wait = wait.map(|wait| wait.max(Duration::from_millis(1)));
        match self {
            Socket::Unix(socket) => {
                socket.set_read_timeout(wait)?;
                socket.read(buffer)
            }
            Socket::Tcp(socket) => {
                socket.set_read_timeout(wait)?;
                socket.read(buffer)
            }
            Socket::Tls(socket, session) => {
                socket.set_read_timeout(wait)?;
                session.read(buffer)
            }
        }
    }

    fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        match self {
            Socket::Unix(socket) => socket.set_nonblocking(is_nonblocking),
            Socket::Tcp(socket) | Socket::Tls(socket, _) => socket.set_nonblocking(is_nonblocking),
        }
    }
}

/// Connects to the first address of a name that accepts.
fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
