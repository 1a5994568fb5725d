//! A port that only sends: frames leave by an existing interface as if the machine had sent them,
//! past its queue discipline and its filters. What arrives there goes on to the machine as ever.
//!
//! With a filter that takes what the machine sends to a TAP, this puts a network in the way out of
//! an interface (`fastpath netem`).

use super::{BURST, Burst, OpenError, Port, PortCounters, PortError};
use crate::sys::interface;
use crate::sys::packet::PacketSocket;
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

/// The way out of an interface of this machine.
pub struct Injector {
    name: String,
    index: u32,
    socket: PacketSocket,
    counters: PortCounters,
}

impl Injector {
    /// Opens the way out of the interface `name` of the thread's network namespace.
    pub fn open(name: &str) -> Result<Injector, OpenError> {
        let failed = |operation| move |error| OpenError::from_os(name, operation, error);
        let index = interface::index_of(name).map_err(failed("looking for the interface"))?;
        let socket = PacketSocket::sender(index).map_err(failed("opening a packet socket"))?;
        Ok(Injector { name: name.to_owned(), index, socket, counters: PortCounters::default() })
    }
}

impl Port for Injector {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx_burst(&mut self, _now: Time, _pool: &mut FramePool, _burst: &mut Burst) -> Result<(), PortError> {
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        while !frames.is_empty() {
            match self.socket.send(frames.iter().take(BURST).map(|frame| pool.bytes(frame))) {
                Ok(count) => {
                    for frame in frames.drain(..count) {
                        self.counters.tx_frames += 1;
                        self.counters.tx_bytes += frame.len() as u64;
                        pool.free(frame);
                    }
                    return Ok(());
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => return Ok(()),
                    Some(libc::ENETDOWN) if self.socket.has_interface(self.index) => {
                        self.counters.tx_down += 1
                    }
                    Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                        return Err(PortError::Gone { name: self.name.clone() });
                    }
                    Some(libc::EINVAL | libc::EMSGSIZE) => self.counters.tx_refused += 1,
                    _ => {
                        let (name, operation) = (self.name.clone(), "sending");
                        return Err(PortError::System { name, operation, source: error });
                    }
                },
            }
            pool.free(frames.pop_front().expect("the frame just refused"));
        }
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        // It is never readable, so that waiting for it costs nothing.
        Some(self.socket.as_fd())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}
