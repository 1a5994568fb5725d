//! What the ports of a switch are to a bridge: the VLANs that they carry, and the mirrors that copy
//! their packets.
//!
//! Both are set from outside, not by OpenFlow. The VLANs of a port count where packets are
//! forwarded by addresses (OFPP_NORMAL) and for mirrors. An output to a port that an action names
//! leaves as it is, as in Open vSwitch.
//!
//! ```text
//!  frame ─▶ VLAN of the frame on its port (vlan.rs) ─▶ addresses of the VLAN (normal.rs)
//!        ─▶ each port that carries the VLAN: the tag that the frame has there
//!  outcomes ─▶ copies for the mirrors (mirror.rs)
//! ```
//!
//! Read first: `vlan.rs`, then `mirror.rs`.

mod mirror;
mod vlan;

pub use mirror::{Mirror, MirrorCounters, MirrorOutput, MirrorSelection, MirroredCopy};
pub use vlan::{PortVlans, VlanMode, VlanSet, VlanTag};

use std::collections::BTreeMap;

/// The VLANs of ports, and the mirrors.
#[derive(Clone, Debug, Default)]
pub struct Bridging {
    /// The VLANs of ports; those of other ports carry all of them, with tags.
    pub vlans: BTreeMap<u32, PortVlans>,
    /// VLANs in which no addresses are learned.
    pub flood_vlans: VlanSet,
    /// The mirrors, at most [`MIRRORS_MAX`]; further ones copy nothing.
    pub mirrors: Vec<Mirror>,
}

/// Most mirrors of a switch.
pub const MIRRORS_MAX: usize = 32;

impl Bridging {
    /// Returns whether every port carries all VLANs, and there is no mirror.
    pub fn is_plain(&self) -> bool {
        self.vlans.is_empty() && self.mirrors.is_empty() && self.flood_vlans == VlanSet::default()
    }

    /// Returns the VLANs of a port.
    pub fn vlans_of(&self, port: u32) -> &PortVlans {
        static ALL: PortVlans = PortVlans::all();
        self.vlans.get(&port).unwrap_or(&ALL)
    }

    /// Returns whether a port only sends the copies of a mirror: nothing else is forwarded to it by
    /// addresses, and what it receives is dropped.
    pub fn is_mirror_output(&self, port: u32) -> bool {
        self.mirrors.iter().any(|mirror| mirror.output == MirrorOutput::Port(port))
    }
}

#[cfg(test)]
mod tests;
