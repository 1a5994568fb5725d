//! The limits of a switch.

/// The most bytes of `userdata` of a `controller` action. A packet-in has at most 65,535 bytes, and
/// all of it but `userdata` and the frame takes less than 512.
pub const USERDATA_MAX: usize = u16::MAX as usize - 512;

/// The limits of a switch. A request beyond them is refused with the protocol's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Tables, 1 to 254.
    pub tables: u8,
    /// Flows in one table.
    pub flows: usize,
    /// Groups.
    pub groups: usize,
    /// Buckets of one group.
    pub buckets: usize,
    /// Groups in a chain, by packets or by liveness; each takes stack.
    pub chain: usize,
    /// Meters.
    pub meters: usize,
    /// Bands of one meter.
    pub bands: usize,
    /// Actions of one list.
    pub actions: usize,
    /// Flows and buckets of all tables and groups, plus the actions in them: bounds memory.
    pub room: usize,
    /// Connections that are tracked.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            tables: 254,
            flows: 1 << 20,
            groups: 65_536,
            buckets: 1024,
            chain: 64,
            meters: 65_536,
            bands: 16,
            actions: 256,
            room: 1 << 22,
            connections: 1 << 20,
        }
    }
}
