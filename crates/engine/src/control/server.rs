//! The HTTP server: a thread with its own runtime that serves a few clients at a time.

use super::address::HttpAddress;
use super::routes::{self, Engine};
use crate::worker_group::WorkerGroup;
use axum::Router;
use axum::http::{Request, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use fastpath_spec::Topology;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::fs::{self, Permissions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, oneshot};

/// Clients served at a time; further clients wait.
const CLIENTS_MAX: usize = 8;
/// A client that does not finish its request within this time, or is connected for longer, is
/// disconnected.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to stop accepting after the kernel refused a connection for lack of descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The listening sockets. When dropped, they close and their files are removed.
#[derive(Debug)]
pub(crate) struct Server {
    files: Vec<SocketFile>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The address of the TCP listener.
    pub(crate) tcp: Option<std::net::SocketAddr>,
}

/// A socket in the file system.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Identifies our file, in case another engine has replaced it.
    inode: u64,
    owner: u32,
}

impl Server {
    /// Listens on all of `addresses`.
    pub(crate) fn start(
        addresses: &[HttpAddress],
        topology: Arc<Topology>,
        workers: WorkerGroup,
    ) -> Result<Server, (HttpAddress, io::Error)> {
        let at = |address: &HttpAddress| {
            let address = address.clone();
            move |error| (address, error)
        };
        let (stop, stopped) = oneshot::channel();
        let mut server = Server { files: Vec::new(), stop: Some(stop), thread: None, tcp: None };
        let (mut unix, mut tcp) = (Vec::new(), Vec::new());
        for address in addresses {
            match address {
                HttpAddress::Unix(path) => {
                    let (listener, file) = listen(path).map_err(at(address))?;
                    unix.push((listener, file.owner));
                    server.files.push(file);
                }
                HttpAddress::Tcp(wanted) => {
                    let listener = std::net::TcpListener::bind(wanted).map_err(at(address))?;
                    listener.set_nonblocking(true).map_err(at(address))?;
                    server.tcp = Some(listener.local_addr().map_err(at(address))?);
                    tcp.push(listener);
                }
            }
        }
        let Some(first) = addresses.first() else { return Ok(server) };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(at(first))?;
        let app = routes::router(Engine { topology, workers });
        let serve = move || runtime.block_on(serve(unix, tcp, app, stopped));
        let thread = std::thread::Builder::new().name("fastpath-control".to_owned()).spawn(serve);
        server.thread = Some(thread.map_err(at(first))?);
        Ok(server)
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
    tcp: Vec<std::net::TcpListener>,
    app: Router,
    stopped: oneshot::Receiver<()>,
) {
    let permits = Arc::new(Semaphore::new(CLIENTS_MAX));
    for (listener, owner) in unix {
        tokio::spawn(serve_unix(listener, owner, app.clone(), Arc::clone(&permits)));
    }
    for listener in tcp {
        // A page in a browser may have its own host name resolve to this machine (DNS rebinding). A
        // request must name this machine.
        let app = match listener.local_addr() {
            Ok(address) if address.ip().is_loopback() => {
                app.clone().layer(middleware::from_fn(require_local_host))
            }
            _ => app.clone(),
        };
        tokio::spawn(serve_tcp(listener, app, Arc::clone(&permits)));
    }
    // Its sender is dropped, never used.
    let _ = stopped.await;
}

async fn serve_unix(
    listener: std::os::unix::net::UnixListener,
    owner: u32,
    app: Router,
    permits: Arc<Semaphore>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return Ok(()) };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        // The mode of the file keeps others out. This check does so until the mode is set.
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == owner || peer.uid() == 0) {
            continue;
        }
        let app = app.clone();
        tokio::spawn(async move {
            client(stream, app).await;
            drop(permit);
        });
    }
}

async fn serve_tcp(listener: std::net::TcpListener, app: Router, permits: Arc<Semaphore>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return Ok(()) };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let app = app.clone();
        tokio::spawn(async move {
            client(stream, app).await;
            drop(permit);
        });
    }
}

/// Serves a client until it disconnects or its time is over.
async fn client(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, app: Router) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(CLIENT_TIMEOUT);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    // An error concerns this client alone.
    let _ = tokio::time::timeout(CLIENT_TIMEOUT, connection).await;
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
