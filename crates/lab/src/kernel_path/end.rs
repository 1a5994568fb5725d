//! An interface of a host on the kernel's data path, and the port of the engine behind it.

use crate::host::HostEnd;
use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::{LinkParameters, Netlink};
use fastpath_engine::port::{Burst, Port, PortCounters, PortError, TapPort};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An interface of a host of a lab.
pub(crate) enum LabEnd {
    /// A TAP of the engine.
    Tap(TapPort),
    /// A veth pair to the path's namespace.
    Veth(VethEnd),
}

/// An interface of a host whose peer is in the path's namespace, where a TAP waits for frames that
/// move to user space.
pub(crate) struct VethEnd {
    tap: TapPort,
    /// The interface of the host.
    name: String,
    /// The index of the peer.
    peer: u32,
    namespace: Arc<Namespace>,
    /// Whether the interface is down or gone. The TAP takes frames for it all the same.
    is_down: Arc<AtomicBool>,
    /// Frames that were lost for that.
    lost: u64,
}

impl VethEnd {
    pub(crate) fn new(
        tap: TapPort,
        (name, peer): (&str, u32),
        namespace: &Arc<Namespace>,
        is_down: Arc<AtomicBool>,
    ) -> VethEnd {
        let (name, namespace) = (name.to_owned(), Arc::clone(namespace));
        VethEnd { tap, name, peer, namespace, is_down, lost: 0 }
    }

    /// Gives the host's interface a carrier, or takes it.
    fn show(&self, is_on: bool) -> io::Result<()> {
        let peer = self.peer;
        self.namespace.within(move || {
            let mut netlink = Netlink::open()?;
            match is_on {
                true => netlink.bring_up(peer, LinkParameters::default()),
                false => netlink.take_down(peer),
            }
        })?
    }
}

impl HostEnd for LabEnd {
    fn set_carrier(&mut self, is_on: bool) -> io::Result<()> {
        match self {
            LabEnd::Tap(tap) => tap.set_carrier(is_on),
            LabEnd::Veth(veth) => veth.show(is_on),
        }
    }

    fn discard_waiting(&mut self) -> io::Result<()> {
        match self {
            LabEnd::Tap(tap) => tap.discard_waiting(),
            // Nothing takes frames from its peer yet.
            LabEnd::Veth(_) => Ok(()),
        }
    }
}

impl LabEnd {
    pub(crate) fn into_port(self) -> Box<dyn Port> {
        match self {
            LabEnd::Tap(tap) => Box::new(tap),
            LabEnd::Veth(veth) => Box::new(veth),
        }
    }
}

impl Port for VethEnd {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> String {
        "veth, TAP".to_owned()
    }

    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        self.tap.rx_burst(now, pool, burst)
    }

    fn tx_burst(
        &mut self,
        now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        if self.is_down.load(Ordering::Relaxed) {
            self.lost += frames.len() as u64;
            frames.drain(..).for_each(|frame| pool.free(frame));
            return Ok(());
        }
        self.tap.tx_burst(now, pool, frames)
    }

    fn allow_whole(&mut self) -> bool {
        self.tap.allow_whole()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.tap.fd()
    }

    fn link_fd(&self) -> Option<BorrowedFd<'_>> {
        self.tap.link_fd()
    }

    fn show_carrier(&mut self, is_on: bool) -> bool {
        self.show(is_on).is_ok()
    }

    fn counters(&mut self) -> PortCounters {
        let counters = self.tap.counters();
        PortCounters { tx_down: counters.tx_down + self.lost, ..counters }
    }
}
