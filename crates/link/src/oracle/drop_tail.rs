//! Drop-tail by its definition.

use super::discipline::{AdmissionOracle, Arrival, DisciplineOracle};
use crate::packet::DropReason;
use crate::qdisc::Limit;
use fastpath_units::Rng;

pub(super) fn oracle(limit: &Limit) -> DisciplineOracle {
    DisciplineOracle::Admission(Box::new(DropTail(*limit)))
}

#[derive(Debug)]
struct DropTail(Limit);

impl AdmissionOracle for DropTail {
    fn admit(&mut self, arrival: &Arrival<'_>, _: &mut Rng) -> Result<bool, DropReason> {
        if arrival.fits(self.0) { Ok(false) } else { Err(DropReason::QueueFull) }
    }
}
