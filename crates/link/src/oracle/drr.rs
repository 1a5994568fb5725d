//! Schedulers of classes: strict priority by its definition, deficit round robin by Figure 2 of its
//! paper.

use super::aqm::{Pkt, Twin, World, bytes};
use crate::packet::DropReason;
use crate::qdisc::{DrrSpec, Limit, PrioSpec};

fn fits(limit: Limit, len: u64, queue: &[Pkt]) -> bool {
    match limit {
        Limit::Packets(most) => queue.len() < most as usize,
        Limit::Bytes(most) => bytes(queue) + len <= most.0,
    }
}

pub(super) struct Prio {
    spec: PrioSpec,
    bands: Vec<Vec<Pkt>>,
}

impl Prio {
    pub(super) fn new(spec: PrioSpec) -> Prio {
        let bands = vec![Vec::new(); spec.bands.len()];
        Prio { spec, bands }
    }
}

impl Twin for Prio {
    fn enqueue(&mut self, packet: Pkt, world: &mut World<'_>) {
        let band = usize::from(self.spec.classes.table()[usize::from(packet.traffic_class / 4)]);
        if fits(self.spec.bands[band], packet.len, &self.bands[band]) {
            self.bands[band].push(packet);
        } else {
            world.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _: &mut World<'_>) -> Option<Pkt> {
        let band = self.bands.iter_mut().find(|band| !band.is_empty())?;
        Some(band.remove(0))
    }
}

pub(super) struct Drr {
    spec: DrrSpec,
    queues: Vec<Vec<Pkt>>,
    dc: Vec<u64>,
    active_list: Vec<usize>,
    /// The class whose turn it is, out of the list.
    turn: Option<usize>,
}

impl Drr {
    pub(super) fn new(spec: DrrSpec) -> Drr {
        let n = spec.shares.len();
        Drr { spec, queues: vec![Vec::new(); n], dc: vec![0; n], active_list: Vec::new(), turn: None }
    }
}

impl Twin for Drr {
    fn enqueue(&mut self, packet: Pkt, world: &mut World<'_>) {
        let i = usize::from(self.spec.classes.table()[usize::from(packet.traffic_class / 4)]);
        if !fits(self.spec.shares[i].limit, packet.len, &self.queues[i]) {
            return world.drop(packet, DropReason::QueueFull);
        }
        if !self.active_list.contains(&i) && self.turn != Some(i) {
            self.active_list.push(i);
            self.dc[i] = 0;
        }
        self.queues[i].push(packet);
    }

    fn dequeue(&mut self, _: &mut World<'_>) -> Option<Pkt> {
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
                return Some(packet);
            }
            self.turn = None;
            self.active_list.push(i);
        }
    }
}
