//! What ports on interfaces share: a name, counters, and the meaning of the kernel's errors.

use super::{PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use std::io;

/// The name and the counters of a port.
#[derive(Debug)]
pub(super) struct PortBase {
    pub(super) name: String,
    pub(super) counters: PortCounters,
}

impl PortBase {
    /// A port of this name that has moved no frame.
    pub(super) fn new(name: &str) -> PortBase {
        PortBase { name: name.to_owned(), counters: PortCounters::default() }
    }

    /// Returns the error for an interface that was removed.
    pub(super) fn gone(&self) -> PortError {
        PortError::Gone { name: self.name.clone() }
    }

    /// Returns the error for a system call that failed in a way that no retry mends. ENXIO and
    /// ENODEV mean that the interface was removed. A removed TAP answers EBADFD
    /// (drivers/net/tun.c).
    pub(super) fn failure(&self, operation: &'static str, source: io::Error) -> PortError {
        match source.raw_os_error() {
            Some(libc::ENXIO | libc::ENODEV | libc::EBADFD) => self.gone(),
            _ => PortError::System { name: self.name.clone(), operation, source },
        }
    }

    /// Counts frames as sent and frees them.
    #[inline]
    pub(super) fn sent(&mut self, frames: impl Iterator<Item = Frame>, pool: &mut FramePool) {
        for frame in frames {
            self.counters.tx_frames += 1;
            self.counters.tx_bytes += frame.len() as u64;
            pool.free(frame);
        }
    }
}
