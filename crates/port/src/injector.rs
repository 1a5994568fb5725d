//! A port that only sends. Frames leave by an existing interface as if this host had sent them,
//! past its queue discipline and its filters. Frames that arrive at the interface reach the host as
//! usual.
//!
//! With a filter that redirects the host's egress to a TAP, this puts a network into the egress
//! path of an interface (`fastpath netem`).

use super::af_packet::send_burst;
use super::base::PortBase;
use super::{Burst, OpenError, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_sys::interface;
use fastpath_sys::packet::PacketSocket;
use fastpath_units::Time;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

/// The egress of an interface of this host.
pub struct Injector {
    base: PortBase,
    index: u32,
    socket: PacketSocket,
}

impl Injector {
    /// Opens the egress of the interface `name` of the thread's network namespace.
    pub fn open(name: &str) -> Result<Injector, OpenError> {
        let failed = |operation| move |error| OpenError::from_os(name, operation, error);
        let index = interface::index_of(name).map_err(failed("looking for the interface"))?;
        let socket = PacketSocket::sender(index).map_err(failed("opening a packet socket"))?;
        Ok(Injector { base: PortBase::new(name), index, socket })
    }
}

impl Port for Injector {
    fn name(&self) -> &str {
        &self.base.name
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
        send_burst(&self.socket, self.index, &mut self.base, pool, frames)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        // It is never readable, so that waiting for it costs nothing.
        Some(self.socket.as_fd())
    }

    fn counters(&mut self) -> PortCounters {
        self.base.counters
    }
}
