//! Ports as tables see them: numbers, configuration, link state, counters.

use std::ops::AddAssign;

/// Highest number of an ordinary port (OFPP_MAX).
pub const MAX: u32 = 0xffff_ff00;
/// The port of entry.
pub const IN_PORT: u32 = 0xffff_fff8;
/// The start of the tables; in packet-outs only.
pub const TABLE: u32 = 0xffff_fff9;
/// Forwarding by learned addresses: see [`normal`](crate::normal).
pub const NORMAL: u32 = 0xffff_fffa;
/// All ports except the port of entry and those that do not flood.
pub const FLOOD: u32 = 0xffff_fffb;
/// All ports except the port of entry.
pub const ALL: u32 = 0xffff_fffc;
/// The controllers.
pub const CONTROLLER: u32 = 0xffff_fffd;
/// The network stack of the switch's own machine, if a port of this number leads to it.
pub const LOCAL: u32 = 0xffff_fffe;
/// No port: the output of an action set without one (OFPP_UNSET).
pub const UNSET: u32 = 0xffff_fff7;
/// No port, or any port, in requests.
pub const ANY: u32 = 0xffff_ffff;
/// The length that stands for whole frames in packet-ins (OFPCML_NO_BUFFER).
pub const NO_BUFFER: u16 = 0xffff;

/// Configuration bits (OFPPC_).
pub mod config {
    /// Administratively down.
    pub const PORT_DOWN: u32 = 1 << 0;
    /// Received frames are dropped.
    pub const NO_RECV: u32 = 1 << 2;
    /// Frames forwarded to this port are dropped.
    pub const NO_FWD: u32 = 1 << 5;
    /// A received frame that misses in a table causes no packet-in (§7.2.1).
    pub const NO_PACKET_IN: u32 = 1 << 6;
}

/// One port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Configuration, bits of [`config`].
    pub config: u32,
    /// The state of the link.
    pub link: LinkState,
    /// The counters.
    pub counters: PortCounters,
}

/// The state of a port's link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// Frames can pass.
    Up,
    /// Nothing is connected.
    Down,
}

/// The counters of a port.
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
    /// Frames that arrived but were not accepted.
    pub rx_dropped: u64,
    /// Frames that could not be sent.
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
    /// Returns a port in use, with its link up.
    pub fn up() -> Port {
        Port { config: 0, link: LinkState::Up, counters: PortCounters::default() }
    }

    /// Returns whether a fast-failover group that watches the port may use it.
    pub fn is_live(&self) -> bool {
        self.link == LinkState::Up && self.config & config::PORT_DOWN == 0
    }

    /// Returns whether the port may send frames.
    pub fn may_send(&self) -> bool {
        self.is_live() && self.config & config::NO_FWD == 0
    }

    /// Returns whether the port may receive frames.
    pub fn may_receive(&self) -> bool {
        self.config & (config::PORT_DOWN | config::NO_RECV) == 0
    }
}

/// Returns the port of a number of 16 bits, as registers and OpenFlow 1.0 have them: the highest
/// are
/// the reserved ones.
pub fn of_16_bits(number: u32) -> u32 {
    if (0xff00..=0xffff).contains(&number) { number | 0xffff_0000 } else { number }
}
