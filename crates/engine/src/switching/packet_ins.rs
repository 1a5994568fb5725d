//! Packet-ins that wait for the agent, bounded in number, bytes and rate. No traffic can overload
//! the agent or its memory.

use super::accounting::Counts;
use fastpath_switch::execute::PacketInHead;
use fastpath_units::Time;
use std::collections::VecDeque;

/// Packet-ins that may wait for the agent.
const COUNT_MAX: usize = 1024;
/// Bytes of the packet-ins that wait.
const BYTES_MAX: usize = 4 << 20;
/// Picoseconds in a second.
const PS_PER_S: u64 = 1_000_000_000_000;

/// A packet-in that waits for the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuedPacketIn {
    /// Everything except the frame.
    pub head: PacketInHead,
    /// The whole frame.
    pub frame: Vec<u8>,
}

/// The rate limit of packet-ins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketInLimit {
    /// Packet-ins per second, on average; 0 for no limit.
    pub per_second: u32,
    /// Size of a burst.
    pub burst: u32,
}

impl Default for PacketInLimit {
    fn default() -> PacketInLimit {
        PacketInLimit { per_second: 20_000, burst: 2_000 }
    }
}

/// The ring and its token bucket.
#[derive(Debug)]
pub(super) struct PacketIns {
    limit: PacketInLimit,
    /// Tokens × [`PS_PER_S`].
    tokens: u128,
    filled_at: Time,
    ring: VecDeque<QueuedPacketIn>,
    bytes: usize,
}

impl PacketIns {
    pub(super) fn new(limit: PacketInLimit) -> PacketIns {
        let tokens = u128::from(limit.burst) * u128::from(PS_PER_S);
        PacketIns { limit, tokens, filled_at: Time::ZERO, ring: VecDeque::new(), bytes: 0 }
    }

    /// Adds a packet-in, or counts why it was dropped. Returns true if it is the first that waits.
    pub(super) fn push(&mut self, now: Time, head: PacketInHead, frame: &[u8], counts: &mut Counts) -> bool {
        if self.limit.per_second > 0 {
            let most = u128::from(self.limit.burst) * u128::from(PS_PER_S);
            let more = u128::from(now.since(self.filled_at).as_ps()) * u128::from(self.limit.per_second);
            self.filled_at = self.filled_at.max(now);
            self.tokens = (self.tokens + more).min(most);
            let Some(rest) = self.tokens.checked_sub(PS_PER_S.into()) else {
                counts.packet_in_limit += 1;
                return false;
            };
            self.tokens = rest;
        }
        let bytes = frame.len() + head.userdata.len();
        if self.ring.len() == COUNT_MAX || self.bytes + bytes > BYTES_MAX {
            counts.packet_in_full += 1;
            return false;
        }
        self.bytes += bytes;
        self.ring.push_back(QueuedPacketIn { head, frame: frame.to_vec() });
        self.ring.len() == 1
    }

    pub(super) fn take(&mut self) -> VecDeque<QueuedPacketIn> {
        self.bytes = 0;
        std::mem::take(&mut self.ring)
    }

    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::key::PipelineFields;
    use fastpath_switch::outcome::PacketInReason;
    use fastpath_units::Duration;

    #[test]
    fn packet_ins_are_bounded_in_rate_and_in_number_and_every_loss_is_counted() {
        let head = PacketInHead {
            reason: PacketInReason::Action,
            table_id: 0,
            cookie: 0,
            max_len: 0xffff,
            context: PipelineFields::default(),
            controller: 0,
            userdata: Vec::new(),
            continuation: None,
        };
        let mut counts = Counts::default();
        let mut packets = PacketIns::new(PacketInLimit { per_second: 10, burst: 5 });
        for _ in 0..8 {
            packets.push(Time::ZERO, head.clone(), &[0; 60], &mut counts);
        }
        packets.push(Time::ZERO + Duration::from_ms(100), head.clone(), &[0; 60], &mut counts);
        assert_eq!((packets.take().len(), counts.packet_in_limit), (6, 3));
        let mut packets = PacketIns::new(PacketInLimit { per_second: 0, burst: 0 });
        let firsts =
            (0..COUNT_MAX + 7).filter(|_| packets.push(Time::ZERO, head.clone(), &[], &mut counts)).count();
        assert_eq!((firsts, packets.len(), counts.packet_in_full), (1, COUNT_MAX, 7));
    }
}
