//! How long connections live without a packet.

use fastpath_units::Duration;

/// What a timeout is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimeoutKind {
    /// TCP after the first packet.
    TcpFirst,
    /// TCP before both sides have acknowledged.
    TcpOpening,
    /// TCP with data.
    TcpEstablished,
    /// TCP after the first FIN.
    TcpClosing,
    /// TCP after a FIN of both sides.
    TcpFinWait,
    /// TCP after the acknowledgement of both, or a reset.
    TcpClosed,
    /// Other protocols after the first packet.
    OtherFirst,
    /// Other protocols with several packets and no reply.
    OtherMultiple,
    /// Other protocols with packets in both directions.
    OtherBoth,
    /// ICMP before a reply.
    IcmpFirst,
    /// ICMP after a reply.
    IcmpReply,
}

/// The timeout of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts([Duration; 11]);

impl Default for Timeouts {
    /// Returns those of the userspace data path of Open vSwitch (`ct_dpif_netdev_tp_def` in
    /// lib/conntrack-tp.c).
    fn default() -> Timeouts {
        // OTHER_MULTIPLE takes the policy "UDP single", OTHER_BIDIR "UDP multiple".
        Timeouts([30, 30, 24 * 3600, 900, 45, 30, 60, 60, 30, 60, 30].map(Duration::from_secs))
    }
}

impl Timeouts {
    /// Returns the timeout of a kind.
    pub fn get(&self, kind: TimeoutKind) -> Duration {
        self.0[kind as usize]
    }

    /// Changes the timeout of a kind. Connections take it with their next packet.
    pub fn set(&mut self, kind: TimeoutKind, timeout: Duration) {
        self.0[kind as usize] = timeout;
    }
}
