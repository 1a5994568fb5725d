//! Positions by serial number.

use std::collections::BTreeMap;

/// A position for each of some serial numbers. Most come in rising order, and are then noted in the
/// time of an addition to a list.
#[derive(Debug, Default)]
pub(crate) struct Serials {
    rising: Vec<(u64, u32)>,
    others: BTreeMap<u64, u32>,
}

impl Serials {
    /// Returns the position of a serial number.
    pub(crate) fn get(&self, serial: u64) -> Option<u32> {
        let is_new = self.rising.last().is_none_or(|(last, _)| serial > *last);
        if is_new {
            return None;
        }
        match self.rising.binary_search_by_key(&serial, |(known, _)| *known) {
            Ok(found) => Some(self.rising[found].1),
            Err(_) => self.others.get(&serial).copied(),
        }
    }

    /// Notes the position of a serial number that has none.
    pub(crate) fn add(&mut self, serial: u64, position: u32) {
        match self.rising.last() {
            Some((last, _)) if serial < *last => drop(self.others.insert(serial, position)),
            _ => self.rising.push((serial, position)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_a_map() {
        let mut random = fastpath_units::Rng::new(7);
        let (mut serials, mut map) = (Serials::default(), BTreeMap::new());
        for position in 0u32..4000 {
            let serial = if random.below(3) == 0 {
                random.below(2 * u64::from(position) + 1)
            } else {
                2 * u64::from(position)
            };
            assert_eq!(serials.get(serial), map.get(&serial).copied());
            map.entry(serial).or_insert_with(|| {
                serials.add(serial, position);
                position
            });
        }
        assert!(serials.others.len() > 100 && serials.rising.len() > 1000);
        assert!((0..9000).all(|serial| serials.get(serial) == map.get(&serial).copied()));
    }
}
