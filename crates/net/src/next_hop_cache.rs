//! Where packets to recent destinations leave a router. It holds what the router has found for
//! them: a destination that is not its own, with one next hop whose MAC address is known.

use fastpath_wire::MacAddr;
use std::net::Ipv4Addr;

/// log₂ of the destinations that have a place.
const PLACES_BITS: u32 = 7;

/// An interface, and the MAC address of the next hop there.
pub(crate) type KnownHop = (u32, MacAddr);

/// See the head of this file. It takes memory from the first destination on.
#[derive(Debug, Default)]
pub(crate) struct NextHopCache {
    places: Vec<Option<(Ipv4Addr, KnownHop)>>,
}

impl NextHopCache {
    /// Returns where packets to a destination leave.
    #[inline]
    pub(crate) fn get(&self, destination: Ipv4Addr) -> Option<KnownHop> {
        match self.places.get(place(destination)) {
            Some(Some((known, hop))) if *known == destination => Some(*hop),
            _ => None,
        }
    }

    /// Notes where packets to a destination leave.
    pub(crate) fn insert(&mut self, destination: Ipv4Addr, hop: KnownHop) {
        if self.places.is_empty() {
            self.places = vec![None; 1 << PLACES_BITS];
        }
        self.places[place(destination)] = Some((destination, hop));
    }

    /// Forgets everything: routes or neighbors have changed.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
    }
}

/// The place of a destination (Fibonacci hashing).
#[inline]
fn place(destination: Ipv4Addr) -> usize {
    (destination.to_bits().wrapping_mul(0x9e37_79b9) >> (u32::BITS - PLACES_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_known_until_another_takes_its_place_or_all_are_forgotten() {
        let mut cache = NextHopCache::default();
        let address = Ipv4Addr::from_bits;
        assert_eq!(cache.get(address(1)), None);
        for number in 0..1000 {
            cache.insert(address(number), (number, MacAddr::from_index(number)));
            assert_eq!(cache.get(address(number)), Some((number, MacAddr::from_index(number))));
        }
        for number in 0..1000 {
            assert!(cache.get(address(number)).is_none_or(|hop| hop.0 == number));
        }
        cache.clear();
        assert_eq!(cache.get(address(999)), None);
    }
}
