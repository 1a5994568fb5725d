//! The byte stream of a connection, plain or through TLS. No call blocks.

use super::local::ControlSocket;
use super::tls::{self, Connection};
use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};

/// Most plain bytes that TLS buffers before they are encrypted and sent.
const TLS_BUFFER: usize = 64 << 10;

/// Bytes read at a time.
pub(super) const READ_MAX: usize = 64 << 10;

/// See the head of this file.
pub(super) struct Stream {
    socket: ControlSocket,
    tls: Option<Box<Connection>>,
    /// Where bytes are received: to make room at the end of the input takes longer than to copy a
    /// few messages there.
    received: Box<[u8]>,
}

/// The result of an attempt to move bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moved {
    /// Some bytes were moved; there may be more.
    Some,
    /// Every byte that had arrived was moved. The socket becomes ready with the next one.
    All,
    /// The socket must become ready first.
    Blocked,
    /// The peer has closed the connection.
    Closed,
}

impl Stream {
    pub(super) fn new(socket: ControlSocket, tls: Option<Connection>) -> Stream {
        // Messages are small, and the peer waits for them.
        if let ControlSocket::Tcp(socket) = &socket {
            let _ = socket.set_nodelay(true);
        }
        let tls = tls.map(|mut tls| {
            tls.set_buffer_limit(Some(TLS_BUFFER));
            Box::new(tls)
        });
        Stream { socket, tls, received: vec![0; READ_MAX].into() }
    }

    /// Returns the result of connecting, once the socket is writable; `None` while it is in
    /// progress.
    pub(super) fn connected(&self) -> io::Result<Option<()>> {
        match self.socket.connected() {
            Ok(()) => Ok(Some(())),
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Appends received bytes to `input`, at most [`READ_MAX`].
    pub(super) fn read(&mut self, input: &mut Vec<u8>) -> io::Result<Moved> {
        let Stream { socket, tls, received } = self;
        let Some(session) = tls else {
            let before = input.len();
            let moved = read_into(socket, input, received)?;
            // epoll(7): a read of a stream that returns less than it could has emptied it.
            let is_all = moved == Moved::Some && (1..READ_MAX).contains(&(input.len() - before));
            return Ok(if is_all { Moved::All } else { moved });
        };
        loop {
            match read_into(&mut session.reader(), input, received)? {
                Moved::Blocked => {}
                moved => return Ok(moved),
            }
            match session.read_tls(socket) {
                Ok(0) => return Ok(Moved::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Moved::Blocked),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            let done = session.process_new_packets();
            if let Err(error) = done {
                // The alert with the reason is sent if the socket accepts it.
                let _ = session.write_tls(socket);
                return Err(io::Error::new(ErrorKind::InvalidData, tls::explained(&error)));
            }
        }
    }

    /// Sends bytes from the front of `output` and removes them.
    pub(super) fn write(&mut self, output: &mut Vec<u8>) -> io::Result<Moved> {
        let Stream { socket, tls, .. } = self;
        let Some(tls) = tls else { return write_from(socket, output) };
        loop {
            let before = output.len();
            if !tls.is_handshaking() {
                write_from(&mut tls.writer(), output)?;
            }
            if !tls.wants_write() {
                return Ok(if output.is_empty() || tls.is_handshaking() {
                    Moved::Blocked
                } else {
                    Moved::Some
                });
            }
            match tls.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(if output.len() < before { Moved::Some } else { Moved::Blocked });
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether it is encrypted.
    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether encrypted bytes wait to be sent.
    pub(super) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }
}

fn read_into(from: &mut impl Read, input: &mut Vec<u8>, received: &mut [u8]) -> io::Result<Moved> {
    match from.read(received) {
        Ok(0) => Ok(Moved::Closed),
        Ok(len) => {
            input.extend_from_slice(&received[..len]);
            Ok(Moved::Some)
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => Ok(Moved::Blocked),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Moved::Some),
        Err(error) => Err(error),
    }
}

fn write_from(to: &mut impl Write, output: &mut Vec<u8>) -> io::Result<Moved> {
    let mut sent = 0;
    let result = loop {
        if sent == output.len() {
            break Ok(Moved::Blocked);
        }
        match to.write(&output[sent..]) {
            Ok(0) => break Ok(Moved::Blocked),
            Ok(len) => sent += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(Moved::Blocked),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    output.drain(..sent);
    result
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.socket.register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.socket.reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.deregister(registry)
    }
}
