//! The places of the addresses that a description gives a node, for mistakes about them.

use crate::address::AddressError;
use crate::path::SpecPath;
use crate::topology::NodeId;
use std::net::IpAddr;

/// Where the addresses of a node were given.
#[derive(Default)]
pub(super) struct Placements {
    /// By interface and IP address, `None` for its hardware address.
    pub(super) placed: Vec<(usize, Option<IpAddr>, SpecPath)>,
    /// By the next router.
    pub(super) routes: Vec<(IpAddr, SpecPath)>,
    /// The interfaces whose hardware address was given.
    pub(super) macs: Vec<(NodeId, usize)>,
}

impl Placements {
    /// Returns the place in the description that `error` is about.
    pub(super) fn path(&self, interface: usize, error: &AddressError) -> Option<SpecPath> {
        if let AddressError::NoGateway(via) = error {
            return self.routes.iter().find(|(gateway, _)| gateway == via).map(|(_, path)| path.clone());
        }
        let same = |placed: &&(usize, Option<IpAddr>, SpecPath)| {
            placed.0 == interface && placed.1 == error.address()
        };
        // The last of equal addresses is the mistake, because it repeats an earlier one.
        self.placed.iter().rev().find(same).map(|(_, _, path)| path.clone())
    }
}
