//! The VLANs of a port (IEEE 802.1Q §8.4 and §8.8; `vlan_mode` of Open vSwitch): which frames it
//! admits, the VLAN that a frame belongs to, and the tag that a frame has when it leaves.

/// The EtherTypes of VLAN tags: customer and service tags.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// The VLAN id in a tag.
const ID: u16 = 0x0fff;
/// The priority in a tag.
const PRIORITY: u16 = 0xe000;

/// The VLANs that a port carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortVlans {
    /// How frames look on the port.
    pub mode: VlanMode,
    /// The VLAN of frames without a tag; not used in the mode `Trunk`.
    pub tag: u16,
    /// The VLANs that a port carries with tags; `None` for all. Not used in the mode `Access`.
    pub trunks: Option<VlanSet>,
}

/// How frames of VLANs look on a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VlanMode {
    /// One VLAN, without tags. Frames with a tag are not admitted.
    Access,
    /// Several VLANs, with tags. A frame without a tag is of VLAN 0.
    Trunk,
    /// As [`VlanMode::Trunk`]; a frame that arrives without a tag is of the VLAN `tag`.
    NativeTagged,
    /// As [`VlanMode::NativeTagged`]; a frame of the VLAN `tag` leaves without a tag.
    NativeUntagged,
}

/// A set of VLAN ids, 0 to 4095.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct VlanSet(Box<[u64]>);

/// The outermost VLAN tag of a frame, or the one that it has inside the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VlanTag {
    /// The EtherType of the tag; 0 if the frame has none.
    pub ethertype: u16,
    /// Priority, drop eligible indicator and VLAN id.
    pub tci: u16,
}

impl VlanSet {
    /// Returns whether a VLAN is in the set.
    pub fn contains(&self, vlan: u16) -> bool {
        self.0.get(usize::from(vlan / 64)).is_some_and(|bits| bits & 1 << (vlan % 64) != 0)
    }
}

impl FromIterator<u16> for VlanSet {
    /// Ids above 4095 are ignored.
    fn from_iter<I: IntoIterator<Item = u16>>(ids: I) -> VlanSet {
        let mut bits = vec![0; 64];
        ids.into_iter().filter(|id| *id <= ID).for_each(|id| bits[usize::from(id / 64)] |= 1 << (id % 64));
        if bits.iter().all(|bits| *bits == 0) { VlanSet::default() } else { VlanSet(bits.into()) }
    }
}

impl std::fmt::Debug for VlanSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries((0..=ID).filter(|id| self.contains(*id))).finish()
    }
}

impl PortVlans {
    /// Returns those of a port that carries all VLANs with tags.
    pub const fn all() -> PortVlans {
        PortVlans { mode: VlanMode::Trunk, tag: 0, trunks: None }
    }

    /// Returns whether frames with the tag of a VLAN pass. A port always carries its native VLAN,
    /// and VLAN 0 is not another one beside it, as in Open vSwitch.
    fn trunks(&self, vlan: u16) -> bool {
        let is_listed = self.trunks.as_ref().is_none_or(|trunks| trunks.contains(vlan));
        match self.mode {
            VlanMode::Access => false,
            VlanMode::NativeTagged | VlanMode::NativeUntagged if self.tag != 0 => {
                vlan == self.tag || vlan != 0 && is_listed
            }
            VlanMode::Trunk | VlanMode::NativeTagged | VlanMode::NativeUntagged => is_listed,
        }
    }

    /// Returns whether frames of a VLAN leave by the port.
    pub fn carries(&self, vlan: u16) -> bool {
        if self.mode == VlanMode::Access { vlan == self.tag } else { self.trunks(vlan) }
    }

    /// Returns the tag inside the switch of a frame that arrives with `tag`, which names its VLAN;
    /// `None` if the port does not admit the frame. A tag with VLAN id 0 has only a priority: the
    /// frame counts as untagged.
    pub fn admit(&self, tag: VlanTag) -> Option<VlanTag> {
        let native = VlanTag { tci: tag.tci & !ID | self.tag, ..tag };
        match (self.mode, tag.vlan()) {
            (VlanMode::Access | VlanMode::NativeTagged | VlanMode::NativeUntagged, 0) => Some(native),
            (VlanMode::Access, _) => None,
            (_, vlan) => self.trunks(vlan).then_some(tag),
        }
    }

    /// Returns the tag with which a frame leaves by the port, given its tag inside the switch.
    pub fn release(&self, tag: VlanTag) -> VlanTag {
        match self.mode {
            VlanMode::Access => VlanTag::NONE,
            VlanMode::NativeUntagged if tag.vlan() == self.tag => VlanTag::NONE,
            VlanMode::Trunk | VlanMode::NativeTagged | VlanMode::NativeUntagged => tag,
        }
    }
}

impl VlanTag {
    /// No tag.
    pub const NONE: VlanTag = VlanTag { ethertype: 0, tci: 0 };

    /// Returns the tag of a frame; `None` if the frame ends in it or before it.
    pub fn of(frame: &[u8]) -> Option<VlanTag> {
        let number = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let ethertype = number(12)?;
        if !TAGS.contains(&ethertype) {
            return Some(VlanTag::NONE);
        }
        // The type of what follows belongs to the tag.
        number(16)?;
        Some(VlanTag { ethertype, tci: number(14)? })
    }

    /// Returns the VLAN id.
    pub fn vlan(self) -> u16 {
        self.tci & ID
    }

    /// Returns the tag with another VLAN id.
    pub fn with_vlan(self, vlan: u16) -> VlanTag {
        VlanTag { tci: self.tci & !ID | vlan & ID, ..self }
    }

    /// Returns whether a frame that leaves has no such tag: VLAN id and priority say nothing.
    pub fn is_empty(self) -> bool {
        self.tci & (ID | PRIORITY) == 0
    }

    /// Gives a frame with the tag `before` this one instead.
    pub fn put(self, frame: &mut Vec<u8>, before: VlanTag) {
        if self == before && (self.ethertype == 0 || !self.is_empty()) {
            return;
        }
        if before.ethertype != 0 {
            frame.drain(12..16);
        }
        if !self.is_empty() {
            let ethertype = if self.ethertype == 0 { TAGS[0] } else { self.ethertype };
            let [a, b] = ethertype.to_be_bytes();
            let [c, d] = self.tci.to_be_bytes();
            frame.splice(12..12, [a, b, c, d]);
        }
    }
}
