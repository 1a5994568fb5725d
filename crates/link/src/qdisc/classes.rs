//! Classes of traffic by the DSCP of the IP header (RFC 2474).

use std::fmt;
use std::sync::Arc;

/// The class of each DSCP. Frames without an IP header have DSCP 0.
#[derive(Clone, PartialEq, Eq)]
pub struct Classes {
    of: Arc<[u8; 64]>,
}

impl Classes {
    /// Puts all DSCPs into one class.
    pub fn all_in(class: u8) -> Classes {
        Classes { of: Arc::new([class; 64]) }
    }

    /// Puts `dscps` into `class`. Values above 63 are ignored.
    pub fn with(mut self, class: u8, dscps: impl IntoIterator<Item = u8>) -> Classes {
        let of = Arc::make_mut(&mut self.of);
        dscps.into_iter().for_each(|dscp| {
            if let Some(entry) = of.get_mut(usize::from(dscp)) {
                *entry = class;
            }
        });
        self
    }

    /// Returns the class of a packet, at most `classes` − 1.
    pub(crate) fn of(&self, traffic_class: u8, classes: usize) -> usize {
        usize::from(self.of[usize::from(traffic_class >> 2)]).min(classes.saturating_sub(1))
    }

    /// Returns the class of each DSCP.
    pub fn table(&self) -> &[u8; 64] {
        &self.of
    }
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.of.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_packet_depends_on_its_dscp_and_not_on_its_ecn_field() {
        // EF is 46, CS1 is 8.
        let classes = Classes::all_in(1).with(0, [46]).with(2, [8, 64]);
        for (traffic_class, class) in [(46 << 2, 0), (46 << 2 | 3, 0), (8 << 2 | 1, 2), (0, 1), (255, 1)] {
            assert_eq!(classes.of(traffic_class, 3), class, "{traffic_class}");
        }
        assert_eq!(classes.of(8 << 2, 2), 1, "a class beyond the last is the last");
    }
}
