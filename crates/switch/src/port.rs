//! Ports as tables see them: numbers, what the administrator set, whether the link is up, counters.

use std::ops::AddAssign;

/// Highest number of an ordinary port (OFPP_MAX).
pub const MAX: u32 = 0xffff_ff00;
/// Back out of the port of entry.
pub const IN_PORT: u32 = 0xffff_fff8;
/// Through the tables again; in packet-out only.
pub const TABLE: u32 = 0xffff_fff9;
/// Traditional forwarding: see [`normal`](crate::normal).
pub const NORMAL: u32 = 0xffff_fffa;
/// All ports but that of entry and those that do not flood.
pub const FLOOD: u32 = 0xffff_fffb;
/// All ports but that of entry.
pub const ALL: u32 = 0xffff_fffc;
/// The controllers.
pub const CONTROLLER: u32 = 0xffff_fffd;
/// The network stack of the machine the switch is on, where a port of this number leads to it.
pub const LOCAL: u32 = 0xffff_fffe;
/// No port, or any, in requests.
pub const ANY: u32 = 0xffff_ffff;
/// The length that asks for whole frames in packet-ins (OFPCML_NO_BUFFER).
pub const NO_BUFFER: u16 = 0xffff;

/// Configuration bits (OFPPC_).
pub mod config {
    /// Administratively down.
    pub const PORT_DOWN: u32 = 1 << 0;
    /// What arrives is dropped.
    pub const NO_RECV: u32 = 1 << 2;
    /// What is forwarded here is dropped.
    pub const NO_FWD: u32 = 1 << 5;
    /// No packet-ins for what arrived here.
    pub const NO_PACKET_IN: u32 = 1 << 6;
}

/// One port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Configuration, bits of [`config`].
    pub config: u32,
    /// Whether there is a link.
    pub link: Link,
    /// What passed.
    pub counters: PortCounters,
}

/// The state of a port's link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Frames can pass.
    Up,
    /// Nothing is connected.
    Down,
}

/// What passed a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounters {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames that arrived but were not taken.
    pub rx_dropped: u64,
    /// Frames that should have left but could not.
    pub tx_dropped: u64,
}

impl AddAssign for PortCounters {
    fn add_assign(&mut self, other: PortCounters) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.rx_dropped += other.rx_dropped;
        self.tx_dropped += other.tx_dropped;
    }
}

impl Port {
    /// A port in use, with its link up.
    pub fn up() -> Port {
        Port { config: 0, link: Link::Up, counters: PortCounters::default() }
    }

    /// Whether a fast-failover group that watches the port may use it.
    pub fn is_live(&self) -> bool {
        self.link == Link::Up && self.config & config::PORT_DOWN == 0
    }

    /// Whether frames may be sent.
    pub fn may_send(&self) -> bool {
        self.is_live() && self.config & config::NO_FWD == 0
    }

    /// Whether frames are taken.
    pub fn may_receive(&self) -> bool {
        self.config & (config::PORT_DOWN | config::NO_RECV) == 0
    }
}
