//! OFPP_NORMAL: a learning switch (IEEE 802.1Q §8.6 to §8.8) with one table of addresses per VLAN.
//!
//! The table has a fixed size, in sets of four addresses. In a full set the address that was heard
//! least recently is replaced. So neither memory nor time grows with the addresses that hosts
//! claim. `bridging/` has the VLANs that a port carries. A switch has one table, whichever executor
//! runs its packets: a clone of a [`Normal`] is a copy, and [`Normal::share`] is the same table.
//!
//! Time is an argument. An address is valid for 300 s after its last frame, as IEEE 802.1Q
//! recommends (table 8-6).

use crate::mix::mix;
use crate::port;
use fastpath_units::{Duration, Time};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sets of addresses.
const SETS: usize = 2048;
/// Addresses of a set.
const WAYS: usize = 4;
/// The time without a frame after which an address is forgotten.
const AGE_MAX: Duration = Duration::from_secs(300);

/// The addresses that a switch has learned.
#[derive(Debug, Default)]
pub struct Normal(Arc<Mutex<Addresses>>);

/// Empty until something is learned.
#[derive(Clone, Debug, Default)]
struct Addresses {
    slots: Vec<[Option<LearnedAddress>; WAYS]>,
}

#[derive(Clone, Copy, Debug)]
struct LearnedAddress {
    /// VLAN and address.
    key: u64,
    port: u32,
    heard: Time,
}

/// The ports to which a frame is forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardingDecision {
    /// To this port.
    Port(u32),
    /// To all ports except the port of entry.
    Flood,
    /// Nowhere: the destination is behind the port of entry, or bridges do not forward its address.
    Filter,
}

impl Clone for Normal {
    /// Returns a copy that learns independently.
    fn clone(&self) -> Normal {
        Normal(Arc::new(Mutex::new(self.lock().clone())))
    }
}

impl Normal {
    /// Returns another handle to the same table.
    pub fn share(&self) -> Normal {
        Normal(Arc::clone(&self.0))
    }

    /// Learns the source address of a frame of a VLAN that arrived on `in_port`, and decides where
    /// the frame is forwarded. A destination behind a port that cannot send (`may_send`) is
    /// flooded. The frame must hold a whole Ethernet header.
    pub fn forward(
        &self,
        now: Time,
        in_port: u32,
        vlan: u16,
        frame: &[u8],
        may_send: impl Fn(u32) -> bool,
    ) -> ForwardingDecision {
        let Some((to, from)) = keys(vlan, frame) else { return ForwardingDecision::Filter };
        let mut addresses = self.lock();
        let is_port = in_port <= port::MAX || in_port == port::LOCAL;
        if is_port && from & MULTICAST == 0 {
            addresses.learn(LearnedAddress { key: from, port: in_port, heard: now });
        }
        if is_reserved(frame) {
            return ForwardingDecision::Filter;
        }
        match addresses.find(to, now) {
            Some(behind) if behind == in_port => ForwardingDecision::Filter,
            Some(behind) if may_send(behind) => ForwardingDecision::Port(behind),
            _ => ForwardingDecision::Flood,
        }
    }

    /// Forgets all addresses.
    pub(crate) fn forget(&self) {
        self.lock().slots.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Addresses> {
        // The table is consistent between calls, also after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the destination of a frame is one of the reserved group addresses of bridges
/// (IEEE 802.1Q table 8-1).
pub fn is_reserved(frame: &[u8]) -> bool {
    frame.starts_with(&[0x01, 0x80, 0xc2, 0, 0]) && frame.get(5).is_some_and(|last| *last < 0x10)
}

/// The group bit of the address in a key.
const MULTICAST: u64 = 1 << 40;

/// Returns the destination and source of a frame, each with the VLAN id above it.
fn keys(vlan: u16, frame: &[u8]) -> Option<(u64, u64)> {
    let (header, vlan) = (frame.first_chunk::<14>()?, u64::from(vlan));
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some((vlan << 48 | number(&header[..6]), vlan << 48 | number(&header[6..12])))
}

impl Addresses {
    fn learn(&mut self, address: LearnedAddress) {
        if self.slots.is_empty() {
            self.slots = vec![[None; WAYS]; SETS];
        }
        let set = &mut self.slots[index(address.key)];
        let known = set.iter().position(|slot| slot.is_some_and(|other| other.key == address.key));
        // A free entry is older than every used one.
        let oldest = || (0..WAYS).min_by_key(|way| set[*way].map(|other| other.heard));
        if let Some(way) = known.or_else(oldest) {
            set[way] = Some(address);
        }
    }

    fn find(&self, key: u64, now: Time) -> Option<u32> {
        let set = self.slots.get(index(key))?;
        let known = set.iter().flatten().find(|address| address.key == key)?;
        (now.since(known.heard) <= AGE_MAX).then_some(known.port)
    }
}

fn index(key: u64) -> usize {
    mix(&[key]) as usize & (SETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u64, from: u64) -> Vec<u8> {
        let mut frame = [&to.to_be_bytes()[2..], &from.to_be_bytes()[2..]].concat();
        frame.extend([8, 0]);
        frame.resize(60, 0);
        frame
    }

    fn at(second: u64) -> Time {
        Time::ZERO + Duration::from_secs(second)
    }

    #[test]
    fn an_unknown_destination_is_flooded_and_so_is_one_that_has_aged_out() {
        let normal = Normal::default();
        let send =
            |second, in_port, to, from| normal.forward(at(second), in_port, 0, &frame(to, from), |_| true);
        assert_eq!(send(0, 1, 0xb, 0xa), ForwardingDecision::Flood);
        assert_eq!(send(1, 2, 0xa, 0xb), ForwardingDecision::Port(1));
        assert_eq!(send(2, 1, 0xb, 0xa), ForwardingDecision::Port(2));
        assert_eq!(send(3, 2, 0xb, 0xc), ForwardingDecision::Filter, "both are behind port 2");
        assert_eq!(send(4, 3, 0xa, 0xb), ForwardingDecision::Port(1));
        assert_eq!(send(5, 1, 0xb, 0xa), ForwardingDecision::Port(3), "it has moved");
        assert_eq!(send(305, 1, 0xb, 0xa), ForwardingDecision::Flood, "301 s after its last frame");
        assert_eq!(send(306, 1, 0xffff_ffff_ffff, 0xa), ForwardingDecision::Flood);
        assert_eq!(send(307, 1, 0x0180_c200_000e, 0xa), ForwardingDecision::Filter);
    }

    #[test]
    fn an_address_has_an_entry_in_each_vlan_and_none_behind_a_dead_port() {
        let normal = Normal::default();
        normal.forward(at(0), 1, 10, &frame(0xb, 0xa), |_| true);
        let to_a = |vlan, is_up: bool| normal.forward(at(1), 2, vlan, &frame(0xa, 0xc), |_| is_up);
        assert_eq!(to_a(10, true), ForwardingDecision::Port(1));
        assert_eq!(to_a(11, true), ForwardingDecision::Flood);
        assert_eq!(to_a(0, true), ForwardingDecision::Flood);
        assert_eq!(to_a(10, false), ForwardingDecision::Flood);
    }

    #[test]
    fn sources_of_packet_outs_and_group_addresses_are_not_learned() {
        let normal = Normal::default();
        normal.forward(at(0), port::CONTROLLER, 0, &frame(0xb, 0xa), |_| true);
        normal.forward(at(0), 1, 0, &frame(0xb, 0x0100_0000_000a), |_| true);
        assert!(normal.lock().slots.is_empty());
    }

    #[test]
    fn a_million_addresses_take_the_room_of_eight_thousand_and_the_newest_are_known() {
        let normal = Normal::default();
        let last = 1_000_000;
        for station in 0..last {
            normal.forward(Time::from_ps(station), 1, 0, &frame(0, 0x0200_0000_0000 + station), |_| true);
        }
        assert_eq!(normal.lock().slots.len() * WAYS, 8192);
        let known = (0..last).filter(|station| {
            let to = frame(0x0200_0000_0000 + station, 0xa);
            normal.forward(Time::from_ps(last), 2, 0, &to, |_| true) == ForwardingDecision::Port(1)
        });
        // The last frames' source address takes one entry.
        let known: Vec<u64> = known.collect();
        assert!(known.len() >= 8191, "{}", known.len());
        assert_eq!(known.last(), Some(&(last - 1)));
    }

    #[test]
    fn a_copy_learns_independently_and_a_share_does_not() {
        let normal = Normal::default();
        let (copy, share) = (normal.clone(), normal.share());
        normal.forward(at(0), 1, 0, &frame(0xb, 0xa), |_| true);
        let to_a = |normal: &Normal| normal.forward(at(0), 2, 0, &frame(0xa, 0xb), |_| true);
        assert_eq!((to_a(&copy), to_a(&share)), (ForwardingDecision::Flood, ForwardingDecision::Port(1)));
    }
}
