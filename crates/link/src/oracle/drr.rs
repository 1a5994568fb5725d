//! Deficit round robin by Figure 2 of its paper.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::DrrSpec;

pub(super) fn oracle(spec: &DrrSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(Drr::new(spec.clone())))
}

struct Drr {
    spec: DrrSpec,
    queues: Vec<Vec<OraclePacket>>,
    dc: Vec<u64>,
    active_list: Vec<usize>,
    /// The class in service, which is not in the list.
    turn: Option<usize>,
    /// The class of the packet that was sent last.
    sent: usize,
}

impl Drr {
    fn new(spec: DrrSpec) -> Drr {
        let n = spec.shares.len();
        Drr {
            spec,
            queues: vec![Vec::new(); n],
            dc: vec![0; n],
            active_list: Vec::new(),
            turn: None,
            sent: 0,
        }
    }
}

impl QueueOracle for Drr {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        let i = usize::from(self.spec.classes.table()[usize::from(packet.traffic_class / 4)]);
        if !context.fits_class(self.spec.shares[i].limit, packet, &self.queues[i], i == self.sent) {
            return context.drop(packet, DropReason::QueueFull);
        }
        if !self.active_list.contains(&i) && self.turn != Some(i) {
            self.active_list.push(i);
            self.dc[i] = 0;
        }
        self.queues[i].push(packet);
    }

    fn dequeue(&mut self, _: &mut OracleContext<'_>) -> Option<OraclePacket> {
        loop {
            let i = match self.turn {
                Some(i) => i,
                None if self.active_list.is_empty() => return None,
                None => {
                    let i = self.active_list.remove(0);
                    self.dc[i] += self.spec.shares[i].quantum.0;
                    i
                }
            };
            if self.queues[i][0].len <= self.dc[i] {
                let packet = self.queues[i].remove(0);
                self.dc[i] -= packet.len;
                self.turn = (!self.queues[i].is_empty()).then_some(i);
                self.sent = i;
                return Some(packet);
            }
            self.turn = None;
            self.active_list.push(i);
        }
    }
}
