//! A learning switch (IEEE 802.1D-2004 clause 7): forwards by the MAC addresses it has seen, floods
//! the rest.
//!
//! What it is not: a spanning-tree speaker. Loops are cut when the network is built (`segment.rs`),
//! by blocking the interfaces a spanning tree would block.

use crate::fate::{Act, Reason};
use crate::pool::{Frame, FramePool};
use fastpath_units::{Duration, Time};
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;

/// Addresses a switch remembers; a full table learns nothing new and floods instead.
const TABLE_MAX: usize = 16_384;
/// How long an address is believed (802.1D-2004 table 7-5).
const AGEING: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Bridge {
    /// Whether each interface forwards; false where the spanning tree cuts a loop.
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

    pub(crate) fn receive(
        &mut self,
        at: Time,
        interface: usize,
        frame: Frame,
        pool: &mut FramePool,
        acts: &mut Vec<Act>,
    ) {
        let Some((destination, source)) = addresses(pool.bytes(&frame)) else {
            return acts.push(Act::Drop(frame, Reason::Malformed));
        };
        if !self.forwarding[interface] {
            return acts.push(Act::Drop(frame, Reason::Filtered));
        }
        self.learn(at, interface, source);
        match self.lookup(at, destination) {
            Some(out) if out == interface => acts.push(Act::Drop(frame, Reason::Filtered)),
            Some(out) => acts.push(Act::Forward { interface: out, frame }),
            None => self.flood(interface, frame, pool, acts),
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
            // Rare: the table is full. Forget what has aged, then there may be room the next time.
            self.table.retain(|_, learned| at.since(learned.at) <= AGEING);
        }
    }

    fn lookup(&self, at: Time, destination: MacAddr) -> Option<usize> {
        let known = self.table.get(&destination)?;
        (at.since(known.at) <= AGEING).then_some(known.interface)
    }

    /// A copy to every other forwarding interface; the last of them gets the frame itself.
    fn flood(&self, from: usize, frame: Frame, pool: &mut FramePool, acts: &mut Vec<Act>) {
        let mut targets = (0..self.forwarding.len()).filter(|&i| i != from && self.forwarding[i]);
        let Some(first) = targets.next() else {
            return acts.push(Act::Drop(frame, Reason::Filtered));
        };
        for interface in targets {
            acts.push(match pool.duplicate(&frame) {
                Some(frame) => Act::Originate { interface, frame },
                None => Act::Starve,
            });
        }
        acts.push(Act::Forward { interface: first, frame });
    }
}

/// Destination and source of a frame; `None` if it is too short to have them.
fn addresses(frame: &[u8]) -> Option<(MacAddr, MacAddr)> {
    let (destination, rest) = frame.split_first_chunk()?;
    let (source, _) = rest.split_first_chunk()?;
    Some((MacAddr(*destination), MacAddr(*source)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn frame(pool: &mut FramePool, destination: u8, source: u8) -> Frame {
        pool.insert(&[[2, 0, 0, 0, 0, destination], [2, 0, 0, 0, 0, source]].concat()).unwrap()
    }

    /// Runs one frame through and says what came of it, freeing everything.
    fn answer(bridge: &mut Bridge, pool: &mut FramePool, at: Duration, port: usize, frame: Frame) -> String {
        let mut acts = Vec::new();
        bridge.receive(Time::ZERO + at, port, frame, pool, &mut acts);
        let say = |act| match act {
            Act::Forward { interface, frame } | Act::Originate { interface, frame } => {
                pool.free(frame);
                interface.to_string()
            }
            Act::Drop(frame, reason) => {
                pool.free(frame);
                reason.name().to_owned()
            }
            other => format!("{other:?}"),
        };
        let mut words: Vec<String> = acts.into_iter().map(say).collect();
        words.sort();
        words.join(" ")
    }

    #[test]
    fn a_switch_floods_learns_filters_and_forgets() {
        let mut pool = FramePool::new(NonZeroUsize::new(1 << 20).unwrap());
        let mut bridge = Bridge::new(vec![true, true, true, false]);
        // (time, port, destination, source) and the ports it leaves by.
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
            let said = answer(&mut bridge, &mut pool, Duration::from_secs(seconds), port, frame);
            assert_eq!(said, expected, "at {seconds} s");
        }
        assert_eq!(pool.live(), 0);
    }

    #[test]
    fn a_full_table_floods_and_takes_new_addresses_once_old_ones_age() {
        let mut bridge = Bridge::new(vec![true, true]);
        let learn = |bridge: &mut Bridge, at, index: u32| {
            bridge.learn(Time::ZERO + Duration::from_secs(at), 0, MacAddr::from_index(index));
            bridge.table.contains_key(&MacAddr::from_index(index))
        };
        assert!((0..TABLE_MAX as u32).all(|i| learn(&mut bridge, 0, i)));
        assert!(!learn(&mut bridge, 1, 1 << 20));
        assert!(!learn(&mut bridge, 400, 1 << 20), "this one makes room");
        assert!(learn(&mut bridge, 400, 1 << 20));
    }
}
