//! Drop-tail by time, by its definition: what the link sends in the longest time is the byte limit
//! of the packets before an arrival.

use super::discipline::{AdmissionOracle, Arrival, DisciplineOracle};
use super::exact::PS_PER_S;
use crate::packet::DropReason;
use fastpath_units::{Duration, Rng};

pub(super) fn oracle(longest: &Duration) -> DisciplineOracle {
    DisciplineOracle::Admission(Box::new(DropTailTime(*longest)))
}

#[derive(Debug)]
struct DropTailTime(Duration);

impl AdmissionOracle for DropTailTime {
    fn admit(&mut self, arrival: &Arrival<'_>, _: &mut Rng) -> Result<bool, DropReason> {
        let limit = arrival.rate.map(|rate| u128::from(self.0.as_ps()) * u128::from(rate.as_bps()));
        let before = u128::from(arrival.queue.iter().sum::<u64>()) * 8 * PS_PER_S;
        if limit.is_none_or(|limit| before <= limit) { Ok(false) } else { Err(DropReason::QueueFull) }
    }
}
