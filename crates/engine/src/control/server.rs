//! The HTTP server: a thread with its own runtime that serves a few clients of each listener at a
//! time.

use super::address::HttpAddress;
use super::capture::OpenCaptures;
use super::change;
use super::history::{History, Made};
use super::routes::{self, Behind, Engine};
use super::streaming::Streams;
use super::web::{self, Dashboard};
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use fastpath_net::LinkChange;
use fastpath_spec::{Topology, TraceAction};
use fastpath_units::Time;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Clients of a listener served at a time. One more disconnects the oldest, so that slow clients
/// exclude no other, and those of one listener do not concern the others.
const CLIENTS_MAX: usize = 16;
/// Fixes the token, for scripts and Prometheus. Without it the token is random.
const TOKEN_VARIABLE: &str = "FASTPATH_HTTP_TOKEN";
/// A client that does not finish its request within this time, or is connected for longer, is
/// disconnected, unless it receives an answer without an end.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to stop accepting after the kernel refused a connection for lack of descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The listening sockets. When dropped, they close and their files are removed.
#[derive(Debug)]
pub(crate) struct Server {
    files: Vec<SocketFile>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    history: Arc<Mutex<History>>,
    /// The TCP listener of the control interface.
    pub(crate) tcp: Option<HttpEndpoint>,
    /// The TCP listener of the dashboard.
    pub(crate) dashboard: Option<HttpEndpoint>,
}

/// A TCP address on which the control interface listens, and how to use it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpEndpoint {
    /// The address.
    pub address: std::net::SocketAddr,
    /// What requests must show as `Authorization: Bearer TOKEN` (RFC 6750); `None`: nothing.
    pub token: Option<String>,
}

impl HttpEndpoint {
    /// Returns the address of the dashboard for a browser, with the token.
    pub(crate) fn page(&self) -> String {
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("#token={token}"));
        format!("http://{}/{token}", self.address)
    }
}

impl fmt::Display for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}/", self.address)?;
        match &self.token {
            Some(token) => write!(f, ", for requests with the header authorization: Bearer {token}"),
            None => f.write_str(", for every client"),
        }
    }
}

/// A socket in the file system.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Identifies our file, in case another engine has replaced it.
    inode: u64,
    owner: u32,
}

/// The sockets of the server: in the file system with their owners, and TCP with their tokens.
type Listeners = (Vec<(std::os::unix::net::UnixListener, u32)>, Vec<(std::net::TcpListener, Option<String>)>);

/// Makes an error that of an address.
fn at(address: &HttpAddress) -> impl FnOnce(io::Error) -> (HttpAddress, io::Error) {
    let address = address.clone();
    move |error| (address, error)
}

impl Server {
    /// Listens on all of `addresses`, and on that of `dashboard`.
    pub(crate) fn start(
        addresses: &[HttpAddress],
        dashboard: Option<&Dashboard>,
        behind: Behind,
    ) -> Result<Server, (HttpAddress, io::Error)> {
        let engine = Engine::new(behind);
        let captures = engine.captures.clone();
        let history = Arc::clone(&engine.history);
        let own = dashboard.map(|dashboard| (&dashboard.address, true));
        let all: Vec<_> = addresses.iter().map(|address| (address, false)).chain(own).collect();
        Server::run(&all, routes::router(engine), history, captures)
    }

    /// Serves a page at `address`, and nothing else.
    pub(super) fn of_page(address: &HttpAddress, app: Router) -> Result<Server, (HttpAddress, io::Error)> {
        Server::run(&[(address, true)], app, Arc::default(), OpenCaptures::default())
    }

    /// Serves `app` at all addresses; true stands for that of the dashboard.
    fn run(
        all: &[(&HttpAddress, bool)],
        app: Router,
        history: Arc<Mutex<History>>,
        captures: OpenCaptures,
    ) -> Result<Server, (HttpAddress, io::Error)> {
        let (stop, stopped) = oneshot::channel();
        let mut server =
            Server { files: Vec::new(), stop: Some(stop), thread: None, history, tcp: None, dashboard: None };
        let (unix, tcp) = server.open(all)?;
        let Some(&(first, _)) = all.first() else { return Ok(server) };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(at(first))?;
        let serve = move || {
            runtime.block_on(async {
                serve(unix, tcp, app, stopped).await;
                captures.finish().await;
            });
        };
        let thread = std::thread::Builder::new().name("fastpath-control".to_owned()).spawn(serve);
        server.thread = Some(thread.map_err(at(first))?);
        Ok(server)
    }

    /// Opens the sockets of all addresses; true stands for that of the dashboard.
    fn open(&mut self, all: &[(&HttpAddress, bool)]) -> Result<Listeners, (HttpAddress, io::Error)> {
        let (mut unix, mut tcp) = (Vec::new(), Vec::new());
        // One token for all addresses.
        let mut shared_token = None;
        for &(address, is_dashboard) in all {
            match address {
                HttpAddress::Unix(path) => {
                    let (listener, file) = listen(path).map_err(at(address))?;
                    unix.push((listener, file.owner));
                    self.files.push(file);
                }
                HttpAddress::Tcp(wanted) | HttpAddress::Open(wanted) => {
                    let listener = std::net::TcpListener::bind(wanted).map_err(at(address))?;
                    listener.set_nonblocking(true).map_err(at(address))?;
                    let own = listener.local_addr().map_err(at(address))?;
                    let is_open = matches!(address, HttpAddress::Open(_));
                    if !is_open && shared_token.is_none() {
                        shared_token = Some(token().map_err(at(address))?);
                    }
                    let token = shared_token.clone().filter(|_| !is_open);
                    tcp.push((listener, token.clone()));
                    let endpoint = Some(HttpEndpoint { address: own, token });
                    *if is_dashboard { &mut self.dashboard } else { &mut self.tcp } = endpoint;
                }
            }
        }
        Ok((unix, tcp))
    }
}

impl Server {
    /// Returns the changes made up to now, as `GET /changes` has them.
    pub(crate) fn changes(&self) -> serde_json::Value {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).to_json()
    }

    /// Lists changes of links that this process has made itself.
    pub(crate) fn record(&self, topology: &Topology, at: Time, changes: &[LinkChange]) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        changes.iter().for_each(|changed| history.add(at, Made::Set(change::setting(topology, changed))));
    }

    /// Lists the start or the end of the traces of a group by this process itself.
    pub(crate) fn record_traces(&self, at: Time, group: &str, action: TraceAction) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.add(at, Made::Traces(group.to_owned(), action));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to close.
            let _ = thread.join();
        }
        for file in &self.files {
            if fs::symlink_metadata(&file.path).is_ok_and(|found| found.ino() == file.inode) {
                let _ = fs::remove_file(&file.path);
            }
        }
    }
}

/// Creates a socket at `path` for this user and root only. A socket left by an engine that died is
/// replaced.
fn listen(path: &Path) -> io::Result<(std::os::unix::net::UnixListener, SocketFile)> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another engine listens on this socket"));
    }
    if fs::symlink_metadata(path).is_ok_and(|found| found.mode() & libc::S_IFMT == libc::S_IFSOCK) {
        fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let found = fs::metadata(path)?;
    Ok((listener, SocketFile { path: path.to_owned(), inode: found.ino(), owner: found.uid() }))
}

async fn serve(
    unix: Vec<(std::os::unix::net::UnixListener, u32)>,
    tcp: Vec<(std::net::TcpListener, Option<String>)>,
    app: Router,
    stopped: oneshot::Receiver<()>,
) {
    for (listener, owner) in unix {
        tokio::spawn(serve_unix(listener, owner, app.clone()));
    }
    for (listener, token) in tcp {
        let mut app = app.clone();
        if let Some(token) = token {
            let token: Arc<str> = token.into();
            app = app.layer(middleware::from_fn(move |request, next| {
                require_token(Arc::clone(&token), request, next)
            }));
        }
        // A page in a browser may have its own host name resolve to this machine (DNS rebinding). A
        // request must name this machine.
        if listener.local_addr().is_ok_and(|address| address.ip().is_loopback()) {
            app = app.layer(middleware::from_fn(require_local_host));
        }
        app = app.layer(middleware::from_fn(require_same_origin));
        tokio::spawn(serve_tcp(listener, app));
    }
    // Its sender is dropped, never used.
    let _ = stopped.await;
}

async fn serve_unix(listener: std::os::unix::net::UnixListener, owner: u32, app: Router) -> io::Result<()> {
    let (listener, mut clients) = (UnixListener::from_std(listener)?, Clients::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        // The mode of the file keeps others out. This check does so until the mode is set.
        if stream.peer_cred().is_ok_and(|peer| peer.uid() == owner || peer.uid() == 0) {
            clients.serve(stream, app.clone());
        }
    }
}

async fn serve_tcp(listener: std::net::TcpListener, app: Router) -> io::Result<()> {
    let (listener, mut clients) = (TcpListener::from_std(listener)?, Clients::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => clients.serve(stream, app.clone()),
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// The clients of a listener, the oldest first: at most [`CLIENTS_MAX`].
#[derive(Default)]
struct Clients(VecDeque<AbortHandle>);

impl Clients {
    fn serve(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, app: Router) {
        self.0.retain(|client| !client.is_finished());
        if self.0.len() >= CLIENTS_MAX
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(tokio::spawn(client(stream, app)).abort_handle());
    }
}

/// Serves a client until it disconnects or its time is over.
async fn client(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, app: Router) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(CLIENT_TIMEOUT);
    let streams = Streams::default();
    let app = app.layer(Extension(streams.clone()));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)));
    // An answer without an end ends with its client. An error concerns this client alone.
    while tokio::time::timeout(CLIENT_TIMEOUT, connection.as_mut()).await.is_err() && streams.is_open() {}
}

/// Returns 128 random bits as text, or the token that the environment fixes.
fn token() -> io::Result<String> {
    if let Some(fixed) = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()) {
        return Ok(fixed);
    }
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Refuses requests of pages from elsewhere: a browser names the origin of the page (RFC 6454 §7).
async fn require_same_origin(request: Request<axum::body::Body>, next: Next) -> Response {
    if is_of_this_site(request.headers()) {
        return next.run(request).await;
    }
    let error = "pages from other origins are not served".to_owned();
    (StatusCode::FORBIDDEN, axum::Json(super::Failure { error })).into_response()
}

/// Whether a request names no origin, or the one that it is sent to.
fn is_of_this_site(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, rest)| rest);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    authority.is_some() && authority == host
}

/// Refuses requests without the token, except for the files of the dashboard.
async fn require_token(token: Arc<str>, request: Request<axum::body::Body>, next: Next) -> Response {
    if web::is_file(request.uri().path()) {
        return next.run(request).await;
    }
    let shown = request.headers().get(header::AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
    let shown = shown.strip_prefix(b"Bearer ").unwrap_or_default();
    // The time of the comparison does not depend on where the first difference is.
    let differences = shown.iter().zip(token.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    if shown.len() == token.len() && differences == 0 {
        return next.run(request).await;
    }
    let error = "this address needs the header authorization: Bearer TOKEN; the token was printed when \
                 the engine started"
        .to_owned();
    let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, scheme, axum::Json(super::Failure { error })).into_response()
}

/// Refuses requests that name another host.
async fn require_local_host(request: Request<axum::body::Body>, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let ours = name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if ours {
        return next.run(request).await;
    }
    let error = format!("the host '{}' is not served here: use localhost", name.escape_debug());
    (StatusCode::MISDIRECTED_REQUEST, axum::Json(super::Failure { error })).into_response()
}
