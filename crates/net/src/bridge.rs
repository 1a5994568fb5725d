//! A learning switch (IEEE 802.1D-2004 clause 7): forwards frames by learned MAC addresses and
//! floods frames with unknown destinations.
//!
//! It does not speak the Spanning Tree Protocol. The interfaces that a spanning tree would block
//! are blocked when the network is built (`fastpath_spec::segment`).

use crate::fate::{NodeAction, Reason};
use crate::pool::{Frame, FramePool};
use fastpath_units::{Duration, Time};
use fastpath_wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of learned addresses. With a full table, frames to new addresses are flooded.
const TABLE_MAX: usize = 16_384;
/// The ageing time of a learned address (802.1D-2004 table 7-5).
const AGEING: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Bridge {
    /// By interface: whether it forwards. False for interfaces that the spanning tree blocks.
    forwarding: Vec<bool>,
    table: BTreeMap<MacAddr, Learned>,
}

#[derive(Debug)]
struct Learned {
    interface: usize,
    at: Time,
}

impl Bridge {
    pub(crate) fn new(forwarding: Vec<bool>) -> Bridge {
        Bridge { forwarding, table: BTreeMap::new() }
    }

    /// Takes over the addresses that `old`, the same switch before a change of the topology, has
    /// learned. `place` returns the number of a former interface. The addresses in `moved` are not
    /// where they were.
    pub(crate) fn take_over(
        &mut self,
        old: &mut Bridge,
        place: impl Fn(usize) -> Option<usize>,
        moved: &BTreeSet<MacAddr>,
    ) {
        self.table = std::mem::take(&mut old.table);
        self.table.retain(|mac, learned| {
            let interface = place(learned.interface).filter(|_| !moved.contains(mac));
            learned.interface = interface.unwrap_or_default();
            interface.is_some()
        });
    }

    pub(crate) fn receive(
        &mut self,
        at: Time,
        interface: usize,
        frame: Frame,
        pool: &mut FramePool,
        actions: &mut Vec<NodeAction>,
    ) {
        let Some((destination, source)) = addresses(pool.bytes(&frame)) else {
            return actions.push(NodeAction::Drop(frame, Reason::Malformed));
        };
        if !self.forwarding[interface] {
            return actions.push(NodeAction::Drop(frame, Reason::Filtered));
        }
        self.learn(at, interface, source);
        match self.lookup(at, destination) {
            Some(out) if out == interface => actions.push(NodeAction::Drop(frame, Reason::Filtered)),
            Some(out) => actions.push(NodeAction::Forward { interface: out, frame }),
            None => self.flood(interface, frame, pool, actions),
        }
    }

    fn learn(&mut self, at: Time, interface: usize, source: MacAddr) {
        if source.is_multicast() {
            return;
        }
        if let Some(known) = self.table.get_mut(&source) {
            *known = Learned { interface, at };
        } else if self.table.len() < TABLE_MAX {
            self.table.insert(source, Learned { interface, at });
        } else {
            // The table is full, which is rare. Remove aged addresses to make room for later ones.
            self.table.retain(|_, learned| at.since(learned.at) <= AGEING);
        }
    }

    fn lookup(&self, at: Time, destination: MacAddr) -> Option<usize> {
        let known = self.table.get(&destination)?;
        (at.since(known.at) <= AGEING).then_some(known.interface)
    }

    /// Sends the frame on every other forwarding interface: the original on the first, copies on
    /// the others.
    fn flood(&self, from: usize, frame: Frame, pool: &mut FramePool, actions: &mut Vec<NodeAction>) {
        let mut targets = (0..self.forwarding.len()).filter(|&i| i != from && self.forwarding[i]);
        let Some(first) = targets.next() else {
            return actions.push(NodeAction::Drop(frame, Reason::Filtered));
        };
        for interface in targets {
            actions.push(match pool.duplicate(&frame) {
                Some(frame) => NodeAction::Originate { interface, frame },
                None => NodeAction::NoBuffer,
            });
        }
        actions.push(NodeAction::Forward { interface: first, frame });
    }
}

/// Returns destination and source of a frame, or `None` if the frame is too short.
fn addresses(frame: &[u8]) -> Option<(MacAddr, MacAddr)> {
    let (destination, rest) = frame.split_first_chunk()?;
    let (source, _) = rest.split_first_chunk()?;
    Some((MacAddr(*destination), MacAddr(*source)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(pool: &mut FramePool, destination: u8, source: u8) -> Frame {
        pool.insert(&[[2, 0, 0, 0, 0, destination], [2, 0, 0, 0, 0, source]].concat()).unwrap()
    }

    /// Passes one frame to the bridge and returns its output ports or the drop reason. Frees all
    /// frames.
    fn outputs(bridge: &mut Bridge, pool: &mut FramePool, at: Duration, port: usize, frame: Frame) -> String {
        let mut actions = Vec::new();
        bridge.receive(Time::ZERO + at, port, frame, pool, &mut actions);
        let describe = |action| match action {
            NodeAction::Forward { interface, frame } | NodeAction::Originate { interface, frame } => {
                pool.free(frame);
                interface.to_string()
            }
            NodeAction::Drop(frame, reason) => {
                pool.free(frame);
                reason.name().to_owned()
            }
            other => format!("{other:?}"),
        };
        let mut outputs: Vec<String> = actions.into_iter().map(describe).collect();
        outputs.sort();
        outputs.join(" ")
    }

    #[test]
    fn a_switch_floods_learns_filters_and_forgets() {
        let mut pool = FramePool::default();
        let mut bridge = Bridge::new(vec![true, true, true, false]);
        // (time, port, destination, source, output ports)
        let table = [
            (0, 0, 0xb, 0xa, "1 2"),
            (1, 1, 0xa, 0xb, "0"),
            (2, 0, 0xb, 0xa, "1"),
            (3, 1, 0xb, 0xc, "filtered"),
            (4, 3, 0xa, 0xd, "filtered"),
            (5, 2, 0xa, 0xa, "filtered"),
            (6, 1, 0xa, 0xb, "2"),
            (310, 2, 0xb, 0xd, "0 1"),
        ];
        for (seconds, port, destination, source, expected) in table {
            let frame = frame(&mut pool, destination, source);
            let found = outputs(&mut bridge, &mut pool, Duration::from_secs(seconds), port, frame);
            assert_eq!(found, expected, "at {seconds} s");
        }
        assert_eq!(pool.live(), 0);
    }

    #[test]
    fn a_full_table_learns_again_after_addresses_have_aged() {
        let mut bridge = Bridge::new(vec![true, true]);
        let learn = |bridge: &mut Bridge, at, index: u32| {
            bridge.learn(Time::ZERO + Duration::from_secs(at), 0, MacAddr::from_index(index));
            bridge.table.contains_key(&MacAddr::from_index(index))
        };
        assert!((0..TABLE_MAX as u32).all(|i| learn(&mut bridge, 0, i)));
        assert!(!learn(&mut bridge, 1, 1 << 20));
        assert!(!learn(&mut bridge, 400, 1 << 20), "this frame removes aged addresses");
        assert!(learn(&mut bridge, 400, 1 << 20));
    }
}
