//! Deterministic loss: packets by number, by the bytes of their flow, or all during outages.

use crate::content::PacketFilter;
use crate::packet::Packet;
use fastpath_units::{Duration, Time};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The largest number of flows with counted bytes. Packets of further flows pass.
const FLOWS_MAX: usize = 1 << 16;

/// Which packets are lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LossPlan {
    /// These packets, counted from 1 where the loss is applied.
    Numbers {
        /// The numbers, in ascending order.
        numbers: Arc<[u64]>,
        /// The packets that are counted.
        of: PacketFilter,
    },
    /// The packets of each flow that carry these bytes, counted from 0 over its frames. In
    /// ascending order.
    Bytes(Arc<[u64]>),
    /// All packets during an outage.
    Outage(Outage),
}

/// Times in which no packet passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// The start of the first outage, from the start of the run.
    pub at: Duration,
    /// The length of each outage; its end is excluded.
    pub span: Duration,
    /// The time from start to start; `None` for a single outage.
    pub every: Option<Duration>,
}

impl Outage {
    fn covers(&self, now: Time) -> bool {
        let start = Time::ZERO.saturating_add(self.at);
        if now < start {
            return false;
        }
        let since = now.since(start);
        let since = match self.every {
            Some(every) if !every.is_zero() => Duration::from_ps(since.as_ps() % every.as_ps()),
            _ => since,
        };
        since < self.span
    }
}

impl LossPlan {
    /// Returns the share of time lost to outages; 0 for plans with a finite number of packets.
    pub fn share(&self) -> f64 {
        match self {
            LossPlan::Outage(Outage { span, every: Some(every), .. }) if !every.is_zero() => {
                (span.as_secs_f64() / every.as_secs_f64()).min(1.0)
            }
            _ => 0.0,
        }
    }
}

impl fmt::Display for LossPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossPlan::Numbers { numbers, of: PacketFilter::All } => {
                write!(f, "{} packets by number", numbers.len())
            }
            LossPlan::Numbers { numbers, of: PacketFilter::Udp } => {
                write!(f, "{} UDP packets by number", numbers.len())
            }
            LossPlan::Bytes(offsets) => write!(f, "{} bytes of each flow", offsets.len()),
            LossPlan::Outage(Outage { at, span, every: None }) => write!(f, "outage of {span} at {at}"),
            LossPlan::Outage(Outage { at, span, every: Some(every) }) => {
                write!(f, "outage of {span} every {every} from {at}")
            }
        }
    }
}

/// The state of a loss plan.
#[derive(Debug)]
pub(crate) struct LossPlanState {
    plan: LossPlan,
    /// Packets counted so far.
    packets: u64,
    /// Bytes so far, by flow.
    bytes: BTreeMap<u32, u64>,
}

impl LossPlanState {
    pub(crate) fn new(plan: LossPlan) -> LossPlanState {
        LossPlanState { plan, packets: 0, bytes: BTreeMap::new() }
    }

    /// Returns true if a packet is lost at `now`. Its data is ignored.
    pub(crate) fn draw(&mut self, now: Time, Packet { len, flow, content, .. }: Packet<()>) -> bool {
        match &self.plan {
            LossPlan::Outage(outage) => outage.covers(now),
            LossPlan::Numbers { of, .. } if !of.takes(content) => false,
            LossPlan::Numbers { numbers, .. } => {
                self.packets += 1;
                numbers.binary_search(&self.packets).is_ok()
            }
            LossPlan::Bytes(offsets) => {
                if self.bytes.len() >= FLOWS_MAX && !self.bytes.contains_key(&flow) {
                    return false;
                }
                let sent = self.bytes.entry(flow).or_default();
                let from = *sent;
                *sent += u64::from(len);
                let next = offsets.partition_point(|offset| *offset < from);
                offsets.get(next).is_some_and(|offset| *offset < *sent)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::PacketContent;

    fn packet(flow: u32, len: u32) -> Packet<()> {
        Packet { flow, ..Packet::new(len, ()) }
    }

    fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    #[test]
    fn packets_that_come_during_an_outage_are_lost() {
        let lost = |every: Option<u64>| -> Vec<u64> {
            let outage = Outage { at: ms(10), span: ms(3), every: every.map(ms) };
            let mut planned = LossPlanState::new(LossPlan::Outage(outage));
            (0..40).filter(|i| planned.draw(Time::ZERO + ms(*i), packet(0, 1))).collect()
        };
        assert_eq!(lost(None), [10, 11, 12]);
        assert_eq!(lost(Some(20)), [10, 11, 12, 30, 31, 32]);
        let half = Outage { at: ms(0), span: ms(5), every: Some(ms(10)) };
        assert_eq!(LossPlan::Outage(half).share(), 0.5);
    }

    #[test]
    fn packets_are_lost_by_number() {
        let plan = LossPlan::Numbers { numbers: [1, 4, 5].into(), of: PacketFilter::All };
        let mut planned = LossPlanState::new(plan);
        let lost: Vec<bool> = (0..6).map(|_| planned.draw(Time::ZERO, packet(0, 9))).collect();
        assert_eq!(lost, [true, false, false, true, true, false]);
    }

    #[test]
    fn a_filter_counts_only_its_packets() {
        let plan = LossPlan::Numbers { numbers: [1, 3].into(), of: PacketFilter::Udp };
        let mut planned = LossPlanState::new(plan);
        let (udp, other) = (PacketContent::Udp, PacketContent::Other);
        let lost = [other, udp, other, udp, PacketContent::VersionNegotiation, udp]
            .map(|content| planned.draw(Time::ZERO, Packet { content, ..packet(0, 9) }));
        assert_eq!(lost, [false, true, false, false, true, false]);
    }

    #[test]
    fn packets_are_lost_by_the_bytes_of_their_flow() {
        let mut planned = LossPlanState::new(LossPlan::Bytes([0, 250, 260, 700].into()));
        // Flow 1 sends 0…99, 100…199, 200…299, then 300…799; flow 2 counts from its own 0.
        let lost: Vec<bool> = [(1, 100), (1, 100), (2, 200), (1, 100), (2, 100), (1, 400), (1, 100), (1, 0)]
            .map(|(flow, len)| planned.draw(Time::ZERO, packet(flow, len)))
            .to_vec();
        assert_eq!(lost, [true, false, true, true, true, false, true, false]);
    }
}
