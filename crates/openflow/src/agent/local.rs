//! Sockets of the file system on which programs of this machine may connect, as `ovs-ofctl` does
//! when it is given the name of a bridge.

use mio::event::Source;
use mio::net::{TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a socket of the file system is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalService {
    /// Controllers connect there.
    Management,
    /// A copy of all messages is served there (`ovs-ofctl snoop`).
    Snoop,
}

/// A socket of the file system that accepts connections. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct LocalListener {
    pub(super) socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket.
    made: Option<(u64, u64)>,
    pub(super) service: LocalService,
}

/// A path at which the socket could not be created yet.
#[derive(Debug)]
pub(super) struct Unserved {
    pub(super) path: PathBuf,
    pub(super) service: LocalService,
    /// The last reason.
    pub(super) why: String,
}

impl LocalListener {
    /// Creates the socket, in place of one on which nothing listens any more.
    pub(super) fn new(path: PathBuf, service: LocalService) -> io::Result<LocalListener> {
        let socket = match UnixListener::bind(&path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_deserted(&path) => {
                fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            bound => bound?,
        };
        let made = identity(&path);
        Ok(LocalListener { socket, path, made, service })
    }

    /// Returns its path as text.
    pub(super) fn name(&self) -> String {
        format!("punix:{}", self.path.display())
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        // Another program may have put its own there.
        if self.made.is_some() && identity(&self.path) == self.made {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn is_deserted(path: &Path) -> bool {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        return false;
    }
    let connected = std::os::unix::net::UnixStream::connect(path);
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// A connected socket.
#[derive(Debug)]
pub(super) enum ControlSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ControlSocket {
    /// Returns whether it is connected, and takes its error.
    pub(super) fn connected(&self) -> io::Result<()> {
        match self {
            ControlSocket::Tcp(socket) => {
                socket.take_error()?.map_or(Ok(()), Err)?;
                socket.peer_addr().map(|_| ())
            }
            ControlSocket::Unix(socket) => {
                socket.take_error()?.map_or(Ok(()), Err)?;
                socket.peer_addr().map(|_| ())
            }
        }
    }
}

impl Read for ControlSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            ControlSocket::Tcp(socket) => socket.read(bytes),
            ControlSocket::Unix(socket) => socket.read(bytes),
        }
    }
}

impl Write for ControlSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ControlSocket::Tcp(socket) => socket.write(bytes),
            ControlSocket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ControlSocket::Tcp(socket) => socket.flush(),
            ControlSocket::Unix(socket) => socket.flush(),
        }
    }
}

impl Source for ControlSocket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            ControlSocket::Tcp(socket) => socket.register(registry, token, interests),
            ControlSocket::Unix(socket) => socket.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            ControlSocket::Tcp(socket) => socket.reregister(registry, token, interests),
            ControlSocket::Unix(socket) => socket.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            ControlSocket::Tcp(socket) => socket.deregister(registry),
            ControlSocket::Unix(socket) => socket.deregister(registry),
        }
    }
}
