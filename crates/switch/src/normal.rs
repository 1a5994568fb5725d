//! What OFPP_NORMAL stands for: a learning switch (IEEE 802.1Q §8.6 to §8.8) with one table of
//! addresses per VLAN.
//!
//! The table is of fixed size, in sets of [`WAYS`]: where a set is full, whoever was heard least
//! recently is forgotten. So neither memory nor time grows with what stations claim to be. Every
//! port carries every VLAN. There is one table for a switch, whoever executes its packets: clones
//! of a [`Normal`] are copies, [`Normal::share`] is the same table again.
//!
//! Time is an argument. An address counts for [`AGE_MAX`] after its last frame, as IEEE 802.1Q
//! recommends (table 8-6).

use crate::plan::hash::mix;
use crate::port;
use fastpath_units::{Duration, Time};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sets of addresses.
const SETS: usize = 2048;
/// Addresses of a set.
const WAYS: usize = 4;
/// After so much silence an address is forgotten.
const AGE_MAX: Duration = Duration::from_secs(300);

/// The addresses that a switch has learned.
#[derive(Debug, Default)]
pub struct Normal(Arc<Mutex<Addresses>>);

/// Empty until something is learned.
#[derive(Clone, Debug, Default)]
struct Addresses {
    slots: Vec<[Option<Station>; WAYS]>,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    /// VLAN and address.
    key: u64,
    port: u32,
    heard: Time,
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardingDecision {
    /// Out of this port.
    Port(u32),
    /// Out of all ports but that of entry.
    Flood,
    /// Nowhere: the station is behind the port of entry, or bridges keep such frames to themselves.
    Filter,
}

impl Clone for Normal {
    /// A copy, which learns for itself.
    fn clone(&self) -> Normal {
        Normal(Arc::new(Mutex::new(self.lock().clone())))
    }
}

impl Normal {
    /// The same table again.
    pub fn share(&self) -> Normal {
        Normal(Arc::clone(&self.0))
    }

    /// Learns from a frame that came in by `in_port`, and says where it goes. A station behind a
    /// port that cannot send (`may_send`) is looked for everywhere. Frames are whole Ethernet
    /// headers at least.
    pub fn forward(
        &self,
        now: Time,
        in_port: u32,
        frame: &[u8],
        may_send: impl Fn(u32) -> bool,
    ) -> ForwardingDecision {
        let Some((to, from)) = keys(frame) else { return ForwardingDecision::Filter };
        let mut addresses = self.lock();
        let is_port = in_port <= port::MAX || in_port == port::LOCAL;
        if is_port && from & MULTICAST == 0 {
            addresses.learn(Station { key: from, port: in_port, heard: now });
        }
        // IEEE 802.1Q table 8-1: the group addresses of bridges themselves.
        if to & ADDRESS & !0xf == 0x0180_c200_0000 {
            return ForwardingDecision::Filter;
        }
        match addresses.find(to, now) {
            Some(behind) if behind == in_port => ForwardingDecision::Filter,
            Some(behind) if may_send(behind) => ForwardingDecision::Port(behind),
            _ => ForwardingDecision::Flood,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Addresses> {
        // The table is whole between calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address in a key, and its bit for groups.
const ADDRESS: u64 = (1 << 48) - 1;
const MULTICAST: u64 = 1 << 40;

/// Destination and source of a frame, each with the VLAN above.
fn keys(frame: &[u8]) -> Option<(u64, u64)> {
    let header = frame.first_chunk::<14>()?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let is_tagged = matches!(header[12..14], [0x81, 0x00] | [0x88, 0xa8]);
    // A tag without a VLAN id is a priority: such frames are those without a tag.
    let vlan = if is_tagged { frame.get(14..16).map_or(0, number) & 0xfff } else { 0 };
    Some((vlan << 48 | number(&header[..6]), vlan << 48 | number(&header[6..12])))
}

impl Addresses {
    fn learn(&mut self, station: Station) {
        if self.slots.is_empty() {
            self.slots = vec![[None; WAYS]; SETS];
        }
        let set = &mut self.slots[place(station.key)];
        let known = set.iter().position(|slot| slot.is_some_and(|other| other.key == station.key));
        // A free place is the least recently heard of all.
        let oldest = || (0..WAYS).min_by_key(|way| set[*way].map(|other| other.heard));
        if let Some(way) = known.or_else(oldest) {
            set[way] = Some(station);
        }
    }

    fn find(&self, key: u64, now: Time) -> Option<u32> {
        let set = self.slots.get(place(key))?;
        let known = set.iter().flatten().find(|station| station.key == key)?;
        (now.since(known.heard) <= AGE_MAX).then_some(known.port)
    }
}

fn place(key: u64) -> usize {
    mix(&[key]) as usize & (SETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u64, from: u64, vlan: Option<u16>) -> Vec<u8> {
        let mut frame = [&to.to_be_bytes()[2..], &from.to_be_bytes()[2..]].concat();
        if let Some(id) = vlan {
            frame.extend([0x81, 0]);
            frame.extend(id.to_be_bytes());
        }
        frame.extend([8, 0]);
        frame.resize(60, 0);
        frame
    }

    fn at(second: u64) -> Time {
        Time::ZERO + Duration::from_secs(second)
    }

    #[test]
    fn a_station_is_looked_for_everywhere_until_it_is_heard_and_again_when_it_is_silent() {
        let normal = Normal::default();
        let send =
            |second, in_port, to, from| normal.forward(at(second), in_port, &frame(to, from, None), |_| true);
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
    fn a_station_has_a_place_in_each_vlan_and_none_behind_a_dead_port() {
        let normal = Normal::default();
        normal.forward(at(0), 1, &frame(0xb, 0xa, Some(10)), |_| true);
        let to_a = |vlan, is_up: bool| normal.forward(at(1), 2, &frame(0xa, 0xc, vlan), |_| is_up);
        assert_eq!(to_a(Some(10), true), ForwardingDecision::Port(1));
        assert_eq!(
            to_a(Some(0x600a), true),
            ForwardingDecision::Port(1),
            "the priority is no part of the VLAN"
        );
        assert_eq!(to_a(Some(11), true), ForwardingDecision::Flood);
        assert_eq!(to_a(None, true), ForwardingDecision::Flood);
        assert_eq!(to_a(Some(10), false), ForwardingDecision::Flood);
    }

    #[test]
    fn what_a_controller_injects_and_what_groups_claim_to_send_is_not_learned() {
        let normal = Normal::default();
        normal.forward(at(0), port::CONTROLLER, &frame(0xb, 0xa, None), |_| true);
        normal.forward(at(0), 1, &frame(0xb, 0x0100_0000_000a, None), |_| true);
        assert!(normal.lock().slots.is_empty());
    }

    #[test]
    fn a_million_claimed_addresses_take_the_room_of_eight_thousand_and_the_newest_are_known() {
        let normal = Normal::default();
        let last = 1_000_000;
        for station in 0..last {
            normal.forward(Time::from_ps(station), 1, &frame(0, 0x0200_0000_0000 + station, None), |_| true);
        }
        assert_eq!(normal.lock().slots.len() * WAYS, 8192);
        let known = (0..last).filter(|station| {
            let to = frame(0x0200_0000_0000 + station, 0xa, None);
            normal.forward(Time::from_ps(last), 2, &to, |_| true) == ForwardingDecision::Port(1)
        });
        // The station that asks takes one place.
        let known: Vec<u64> = known.collect();
        assert!(known.len() >= 8191, "{}", known.len());
        assert_eq!(known.last(), Some(&(last - 1)));
    }

    #[test]
    fn a_copy_learns_for_itself_and_a_share_does_not() {
        let normal = Normal::default();
        let (copy, share) = (normal.clone(), normal.share());
        normal.forward(at(0), 1, &frame(0xb, 0xa, None), |_| true);
        let to_a = |normal: &Normal| normal.forward(at(0), 2, &frame(0xa, 0xb, None), |_| true);
        assert_eq!((to_a(&copy), to_a(&share)), (ForwardingDecision::Flood, ForwardingDecision::Port(1)));
    }
}
