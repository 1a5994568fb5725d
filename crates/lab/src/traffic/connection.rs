//! One connection of a transfer over two sockets of the kernel, with its programs.

use fastpath_sys::tcp::{TcpCounts, abort_on_close, counts};
use fastpath_traffic::{TransferProgram, TransferSide};
use fastpath_units::{Distribution, Time};
use nix::errno::Errno;
use nix::sys::socket::{SockaddrStorage, connect};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes read or written by one system call.
const CHUNK: usize = 64 << 10;
/// Calls in a row for one socket, before others have their turn.
const CALLS: usize = 16;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct LiveConnection {
    program: TransferProgram,
    /// What the first host sends first: the number of the connection.
    number: Option<[u8; 2]>,
    target: SocketAddr,
    /// The socket of the first host before it connects.
    idle: Option<OwnedFd>,
    /// The sockets of both hosts.
    ends: [Option<LiveEnd>; 2],
    /// Bytes that the programs have written and the kernel has not taken.
    waiting: [u64; 2],
    /// Bytes that the kernel has taken.
    written: [u64; 2],
    received: [u64; 2],
    /// Whether the programs write no more.
    closes: bool,
    /// The counts of ends that were closed.
    closed: [Option<TcpCounts>; 2],
    /// Why it broke, if programs still had something to write.
    broken: Option<io::Error>,
    has_failed: bool,
}

/// A socket at a host.
#[derive(Debug)]
struct LiveEnd {
    stream: TcpStream,
    /// Whether it is reported when it can be written.
    awaits_room: bool,
    is_shut: bool,
}

/// What a socket is to be watched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    /// From now on.
    Watch,
    /// Whether also when it can be written.
    Write(bool),
}

impl LiveConnection {
    /// A connection to `target` by a socket of the first host. With a number, its first two bytes
    /// are this number.
    pub(super) fn new(
        program: TransferProgram,
        socket: OwnedFd,
        target: SocketAddr,
        number: Option<u16>,
    ) -> LiveConnection {
        LiveConnection {
            program,
            number: number.map(u16::to_be_bytes),
            target,
            idle: Some(socket),
            ends: [None, None],
            waiting: [0; 2],
            written: [0; 2],
            received: [0; 2],
            closes: false,
            closed: [None; 2],
            broken: None,
            has_failed: false,
        }
    }

    pub(super) fn program(&self) -> &TransferProgram {
        &self.program
    }

    /// When the programs do something next, if nothing arrives.
    pub(super) fn next_at(&self) -> Option<Time> {
        if self.has_failed { None } else { self.program.next_at() }
    }

    /// Whether nothing more happens.
    pub(super) fn is_over(&self) -> bool {
        self.has_failed || self.program.is_complete()
    }

    /// Has a socket that was accepted, of which `received` bytes are read.
    pub(super) fn accept(&mut self, stream: TcpStream, received: u64) {
        if !self.has_failed && self.ends[TransferSide::To as usize].is_none() {
            self.ends[TransferSide::To as usize] = Some(LiveEnd::new(stream));
            self.received[TransferSide::To as usize] = received;
        }
    }

    /// Lets the programs do what they can, and writes. `watch` has sockets watched.
    ///
    /// # Errors
    /// The connection cannot be made, or breaks.
    pub(super) fn work(
        &mut self,
        now: Time,
        answers: &mut Distribution,
        mut watch: impl FnMut(usize, Wish, BorrowedFd) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.has_failed {
            return Ok(());
        }
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        if let Some(socket) = self.idle.take() {
            match connect(socket.as_raw_fd(), &SockaddrStorage::from(self.target)) {
                Ok(()) | Err(Errno::EINPROGRESS) => {}
                Err(error) => return Err(error.into()),
            }
            watch(0, Wish::Watch, socket.as_fd())?;
            self.ends[0] = Some(LiveEnd::new(socket.into()));
        }
        let writes = self.program.advance(now, self.received, answers);
        self.closes |= writes.closes;
        for side in 0..2 {
            self.waiting[side] += writes.bytes[side];
            self.write(side, &mut watch)?;
        }
        Ok(())
    }

    /// Writes what the kernel takes at a side.
    fn write(
        &mut self,
        side: usize,
        watch: &mut impl FnMut(usize, Wish, BorrowedFd) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(end) = &mut self.ends[side] else { return Ok(()) };
        if let Some(error) = end.stream.take_error()? {
            return Err(error);
        }
        let mut is_full = false;
        for _ in 0..CALLS {
            if self.waiting[side] == 0 {
                break;
            }
            let number = self.number.as_ref().filter(|_| side == 0);
            let first = number.and_then(|number| number.get(self.written[side] as usize..));
            let bytes = first.filter(|bytes| !bytes.is_empty()).unwrap_or(&[0; CHUNK]);
            let len = usize::try_from(self.waiting[side]).unwrap_or(CHUNK).min(bytes.len());
            match end.stream.write(&bytes[..len]) {
                Ok(count) => {
                    self.waiting[side] -= count as u64;
                    self.written[side] += count as u64;
                }
                Err(error) if is_later(&error) => {
                    is_full = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        // What is left after these calls is written in the next turn.
        let awaits_room = is_full || self.waiting[side] > 0;
        if awaits_room != end.awaits_room {
            end.awaits_room = awaits_room;
            watch(side, Wish::Write(awaits_room), end.stream.as_fd())?;
        }
        // An end that writes nothing closes when the other has closed.
        if self.closes && self.waiting[side] == 0 && self.written[side] > 0 && !end.is_shut {
            end.is_shut = true;
            match end.stream.shutdown(Shutdown::Write) {
                // The other end has reset it.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Reads what has arrived at a side.
    pub(super) fn receive(&mut self, side: usize) {
        let Some(end) = &mut self.ends[side] else { return };
        let mut buffer = [0; CHUNK];
        let mut ended = None;
        for _ in 0..CALLS {
            match end.stream.read(&mut buffer) {
                Ok(0) => {
                    ended = Some((io::Error::from(io::ErrorKind::ConnectionReset), false));
                    break;
                }
                Ok(count) => self.received[side] += count as u64,
                Err(error) if is_later(&error) => break,
                Err(error) => {
                    ended = Some((error, true));
                    break;
                }
            }
        }
        if let Some((error, is_error)) = ended {
            // An end of data is orderly once the programs write no more; an error is not.
            let breaks = is_error || self.waiting[side] > 0 || !self.closes;
            self.broken = breaks.then_some(error).filter(|_| !self.program.is_complete());
            self.close(side);
        }
    }

    /// Has nothing more sent. `writer`: the side of the data, which ends; the other takes what is
    /// on its way.
    pub(super) fn stop(&mut self, writer: usize) {
        self.abort(writer);
        self.waiting = [0; 2];
    }

    /// Ends the connection at a side, and drops what it has not sent.
    fn abort(&mut self, side: usize) {
        if let Some(end) = &self.ends[side] {
            // Else what waits is sent, late.
            _ = abort_on_close(end.stream.as_fd());
        }
        self.idle = None;
        self.close(side);
    }

    /// Gives the connection up.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
        self.end();
    }

    /// Closes both ends. What has not arrived is dropped.
    pub(super) fn end(&mut self) {
        let is_whole = self.program.is_complete();
        for side in 0..2 {
            if is_whole { self.close(side) } else { self.abort(side) }
        }
    }

    fn close(&mut self, side: usize) {
        if let Some(end) = self.ends[side].take() {
            self.closed[side] = counts(end.stream.as_fd()).ok();
        }
    }

    /// What the ends have counted that were ever open.
    pub(super) fn counts(&self) -> impl Iterator<Item = TcpCounts> {
        let of_side = |side: usize| match &self.ends[side] {
            Some(end) => counts(end.stream.as_fd()).ok(),
            None => self.closed[side],
        };
        [0, 1].map(of_side).into_iter().flatten()
    }
}

impl LiveEnd {
    fn new(stream: TcpStream) -> LiveEnd {
        LiveEnd { stream, awaits_room: false, is_shut: false }
    }
}

/// Whether a call is to be made again later.
fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
