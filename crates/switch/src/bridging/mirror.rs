//! Mirrors: copies of chosen packets (SPAN), to a port or into a VLAN (RSPAN).
//!
//! A packet is chosen by the port on which it arrived, as it arrived, or by a port that it left by,
//! as it left; and by its VLAN there. A mirror copies a packet once, whatever chooses it. A copy
//! leaves by a port too, so that it may be chosen by another mirror.
//!
//! The copies are made of the outcomes of a packet, so that every executor makes the same.

use super::{Bridging, MIRRORS_MAX, VlanSet, VlanTag};
use crate::outcome::PacketOutcome;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mirror.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// What it copies.
    pub selection: MirrorSelection,
    /// Where the copies go.
    pub output: MirrorOutput,
    /// Most bytes of a copy; `None` for whole frames.
    pub snap_len: Option<usize>,
    /// What it has copied.
    pub counters: MirrorCounters,
}

/// The packets that a mirror copies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MirrorSelection {
    /// All packets, whatever `from` and `to` say.
    pub all: bool,
    /// Packets that arrive on these ports.
    pub from: BTreeSet<u32>,
    /// Packets that leave by these ports.
    pub to: BTreeSet<u32>,
    /// Of them, those of these VLANs; empty for all.
    pub vlans: VlanSet,
}

/// Where copies go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MirrorOutput {
    /// To this port, which is for nothing else then.
    Port(u32),
    /// Into this VLAN, to all its ports.
    Vlan(u16),
}

/// The packets that a mirror has copied, and their bytes. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct MirrorCounters(Arc<(AtomicU64, AtomicU64)>);

/// A copy of a packet for a mirror.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MirroredCopy {
    /// The port that it leaves by.
    pub port: u32,
    /// The queue of the port.
    pub queue: u32,
    /// The frame as it leaves.
    pub frame: Vec<u8>,
}

impl MirrorCounters {
    /// Returns packets and bytes.
    pub fn get(&self) -> (u64, u64) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }

    fn count(&self, bytes: usize) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.1.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl MirrorSelection {
    /// Returns whether packets that pass a port in this direction are copied.
    fn has(&self, port: u32, direction: Direction) -> bool {
        let ports = match direction {
            Direction::Arrived => &self.from,
            Direction::Left => &self.to,
        };
        self.all || ports.contains(&port)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Arrived,
    Left,
}

/// The mirrors of one packet.
struct Mirroring<'a> {
    bridging: &'a Bridging,
    /// The ports that may send, in the order of their numbers.
    ports: &'a [u32],
    /// Bytes of the packet as it arrived.
    len: usize,
    /// The mirrors that have copied it, or another one to the same place.
    done: u32,
    copies: Vec<MirroredCopy>,
}

impl Bridging {
    /// Returns the copies of a packet that arrived on `in_port` as `frame` and had these outcomes.
    /// `ports` are those that may send. A packet of a controller arrived on no port.
    pub fn mirrored(
        &self,
        in_port: u32,
        frame: &[u8],
        outcomes: &[PacketOutcome],
        ports: &[u32],
    ) -> Vec<MirroredCopy> {
        let mut mirroring =
            Mirroring { bridging: self, ports, len: frame.len(), done: 0, copies: Vec::new() };
        if in_port <= crate::port::MAX || in_port == crate::port::LOCAL {
            mirroring.pass(Direction::Arrived, in_port, 0, frame);
        }
        for outcome in outcomes {
            if let PacketOutcome::Output { port, queue, frame } = outcome {
                mirroring.pass(Direction::Left, *port, *queue, frame);
            }
        }
        mirroring.copies
    }
}

impl Mirroring<'_> {
    /// Copies a frame that passed a port.
    fn pass(&mut self, direction: Direction, port: u32, queue: u32, frame: &[u8]) {
        let bridging = self.bridging;
        let mut mirrors = (0..)
            .zip(bridging.mirrors.iter().take(MIRRORS_MAX))
            .filter(|(_, mirror)| mirror.selection.has(port, direction));
        let Some(first) = mirrors.next() else { return };
        let Some(before) = VlanTag::of(frame) else { return };
        // The VLAN of the frame as if it had arrived on this port.
        let Some(tag) = bridging.vlans_of(port).admit(before) else { return };
        for (number, mirror) in std::iter::once(first).chain(mirrors) {
            let vlans = &mirror.selection.vlans;
            let is_chosen = *vlans == VlanSet::default() || vlans.contains(tag.vlan());
            if self.done & 1 << number != 0 || !is_chosen {
                continue;
            }
            self.done |= same_output(&bridging.mirrors, mirror.output);
            mirror.counters.count(self.len);
            self.copy(mirror, queue, frame, (before, tag));
        }
    }

    /// Sends the copies of a mirror. `tags` are the tag of the frame and that inside the switch.
    fn copy(&mut self, mirror: &Mirror, queue: u32, frame: &[u8], (before, tag): (VlanTag, VlanTag)) {
        match mirror.output {
            MirrorOutput::Port(port) => self.send(mirror, (port, queue), frame, (before, tag)),
            // IEEE 802.1Q table 8-1: the reserved group addresses of bridges stay where they are.
            MirrorOutput::Vlan(vlan) if tag.vlan() != vlan && !crate::normal::is_reserved(frame) => {
                let tag = tag.with_vlan(vlan);
                for port in self.ports {
                    if self.bridging.vlans_of(*port).carries(vlan) && !self.bridging.is_mirror_output(*port) {
                        self.send(mirror, (*port, queue), frame, (before, tag));
                    }
                }
            }
            MirrorOutput::Vlan(_) => {}
        }
    }

    fn send(
        &mut self,
        mirror: &Mirror,
        (port, queue): (u32, u32),
        frame: &[u8],
        (before, tag): (VlanTag, VlanTag),
    ) {
        let mut frame = frame.to_vec();
        self.bridging.vlans_of(port).release(tag).put(&mut frame, before);
        let whole = frame.clone();
        frame.truncate(mirror.snap_len.unwrap_or(usize::MAX));
        self.copies.push(MirroredCopy { port, queue, frame });
        if self.ports.contains(&port) {
            self.pass(Direction::Left, port, queue, &whole);
        }
    }
}

/// Returns the mirrors whose copies go to this place: one of them is enough.
fn same_output(mirrors: &[Mirror], output: MirrorOutput) -> u32 {
    let same = (0..).zip(mirrors.iter().take(MIRRORS_MAX)).filter(|(_, mirror)| mirror.output == output);
    same.fold(0, |bits, (number, _): (u32, _)| bits | 1 << number)
}
