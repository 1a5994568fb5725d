//! smoltcp on virtual time: a device for each interface of a host.
//!
//! smoltcp counts microseconds. It is given the time rounded down ([`smoltcp_now`]), and an instant
//! that it asks for is exact, so it never acts before its time, and at most 1 µs of its own clock
//! after a frame has arrived.

use crate::{BindError, VirtualNetwork};
use fastpath_net::EdgeId;
use fastpath_units::{Duration, Time};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of an Ethernet header, which smoltcp counts as part of the MTU.
const ETHERNET: usize = 14;

/// Returns the time of a network for smoltcp: whole microseconds, rounded down.
pub fn smoltcp_now(network: &VirtualNetwork) -> Instant {
    Instant::from_micros((network.now().as_ps() / 1_000_000) as i64)
}

/// Returns when smoltcp wants to be polled, as it says by `Interface::poll_at`.
pub fn time_of(at: Instant) -> Time {
    Time::ZERO + Duration::from_us(at.total_micros().max(0) as u64)
}

/// An interface of a host, which smoltcp serves.
#[derive(Debug)]
pub struct SmoltcpDevice {
    network: Rc<RefCell<VirtualNetwork>>,
    edge: EdgeId,
    mtu: usize,
}

impl SmoltcpDevice {
    /// Takes over an interface of a host: `eth0` is the first.
    ///
    /// # Errors
    /// There is no such host, or it has no such interface.
    pub fn open(
        network: &Rc<RefCell<VirtualNetwork>>,
        host: &str,
        interface: &str,
    ) -> Result<SmoltcpDevice, BindError> {
        let mut borrowed = network.borrow_mut();
        let edge = borrowed.open_raw(host, interface)?;
        let topology = borrowed.network().topology();
        let node = topology
            .node_named(host)
            .and_then(|id| topology.node(id).interfaces.iter().find(|known| known.name == interface));
        let mtu = node.map_or(1500, |interface| interface.mtu as usize);
        drop(borrowed);
        Ok(SmoltcpDevice { network: Rc::clone(network), edge, mtu })
    }
}

impl Device for SmoltcpDevice {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Sending<'_>)> {
        let (_, frame) = self.network.borrow_mut().receive_frame(self.edge)?;
        Some((Arrived(frame), Sending(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + ETHERNET;
        capabilities
    }
}

/// A frame that has arrived.
#[derive(Debug)]
pub struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

/// The right to send a frame.
#[derive(Debug)]
pub struct Sending<'a>(&'a SmoltcpDevice);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut frame = vec![0; len];
        let result = fill(&mut frame);
        // A frame for which there is no memory is lost, as by a card.
        let _ = self.0.network.borrow_mut().send_frame(self.0.edge, &frame);
        result
    }
}
