//! What stands for TLS in a build without it: no session exists, and files of keys are refused.

use super::tls_files::TlsFiles;
use std::convert::Infallible;
use std::io;
use std::net::TcpStream;

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The feature `tls` is not in this build.
    #[error("this build has no TLS; connect by tcp:, or build fastpath with --features tls")]
    NotBuilt,
}

/// The configuration of TLS sessions: there is none.
#[derive(Clone)]
pub(super) enum Tls {}

impl Tls {
    pub(super) fn load(_files: &TlsFiles) -> Result<Tls, TlsError> {
        Err(TlsError::NotBuilt)
    }

    pub(super) fn over(&self, _socket: TcpStream, _host: &str) -> io::Result<TcpStream> {
        match *self {}
    }

    pub(super) fn dialled(&self, _host: &str) -> Result<Connection, TlsError> {
        match *self {}
    }

    pub(super) fn answered(&self) -> Result<Connection, TlsError> {
        match *self {}
    }
}

/// A TLS session: there is none.
pub(super) enum Connection {}

impl Connection {
    pub(super) fn set_buffer_limit(&mut self, _limit: Option<usize>) {
        match *self {}
    }

    pub(super) fn reader(&mut self) -> io::Empty {
        match *self {}
    }

    pub(super) fn writer(&mut self) -> io::Sink {
        match *self {}
    }

    pub(super) fn read_tls(&mut self, _from: &mut impl io::Read) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn write_tls(&mut self, _to: &mut impl io::Write) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn process_new_packets(&mut self) -> Result<(), Infallible> {
        match *self {}
    }

    pub(super) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(super) fn wants_write(&self) -> bool {
        match *self {}
    }
}

/// Returns the text of an error of a session.
pub(super) fn explained(error: &Infallible) -> String {
    match *error {}
}
