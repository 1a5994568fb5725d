//! A program bound to a machine: the legs of a packet's way through the units, and the operations
//! of each leg.
//!
//! ```text
//! Route ─▶ Leg (one unit) ─▶ OpGroup (once per packet, or once per chunk) ─▶ Op × times
//! ```
//!
//! `program.rs` makes a route from a file. Units walk a leg with a [`Cursor`].

use crate::keys::read_word;
use crate::memory::Access;
use crate::scheduler::Tag;
use crate::spec::PerByte;
use fastpath_units::{Bytes, Duration, Probability, Rng};

/// A program bound to a machine.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) legs: Vec<Leg>,
    pub(crate) regions: Vec<Region>,
    pub(crate) locks: Vec<String>,
    /// Bytes per chunk.
    pub(crate) chunk: u32,
}

/// Memory that is touched behind a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    /// Its size; `None`: the bytes of the packet, where a bus has written them.
    pub(crate) size: Option<Bytes>,
    /// The number of the cache.
    pub(crate) cache: usize,
}

impl Route {
    pub(crate) fn chunks(&self, size: u32) -> u32 {
        size.div_ceil(self.chunk).max(1)
    }
}

/// What a packet does at one unit before it moves on.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) unit: usize,
    pub(crate) tag: Tag,
    /// The way of some packets past the next legs.
    pub(crate) skip: Option<Skip>,
    /// Bytes that are taken from the packet, and bytes that are added to it, at the end.
    pub(crate) strip: u32,
    pub(crate) add: u32,
    pub(crate) groups: Vec<OpGroup>,
}

impl Leg {
    /// A leg without scheduling that does `ops` once per packet.
    pub(crate) fn of(ops: Vec<(Op, u32)>) -> Leg {
        let groups = vec![OpGroup { per_chunk: false, over: 0, ops }];
        Leg { unit: 0, tag: Tag::Parallel, skip: None, strip: 0, add: 0, groups }
    }

    /// The size of a packet of `size` bytes after the leg; at least a byte.
    #[inline]
    pub(crate) fn resized(&self, size: u32) -> u32 {
        size.saturating_sub(self.strip).saturating_add(self.add).max(1)
    }
}

/// A series of operations, each with its number of repetitions, done once per packet or once per
/// chunk.
#[derive(Clone, Debug)]
pub(crate) struct OpGroup {
    pub(crate) per_chunk: bool,
    /// Only packets of more bytes than this.
    pub(crate) over: u32,
    pub(crate) ops: Vec<(Op, u32)>,
}

/// One operation of a thread or core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    Compute {
        fixed: Duration,
        per_byte: PerByte,
    },
    /// A reference to memory number `memory`.
    Access {
        memory: u16,
        access: Access,
        bytes: u32,
    },
    /// A reference into region number `region`, behind a cache.
    Touch {
        region: u16,
    },
    Enter(u16),
    Leave(u16),
}

/// The population to which the share of a skip refers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SkipPer {
    /// Each packet is drawn independently.
    #[default]
    Packet,
    /// All packets of a flow take the same way.
    Flow,
}

read_word!(SkipPer as "what a share refers to": ["packet" => SkipPer::Packet, "flow" => SkipPer::Flow]);

/// A way past some legs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip {
    pub(crate) share: Probability,
    pub(crate) per: SkipPer,
    /// The leg where the way ends. One past the last leg: the packet leaves.
    pub(crate) to: usize,
}

impl Skip {
    /// The next leg of a packet of `flow`, if the packet takes this way.
    pub(crate) fn target(&self, flow: u32, rng: &mut Rng) -> Option<usize> {
        let taken = match self.per {
            SkipPer::Packet => self.share.draw(rng),
            // Multiples of the golden ratio fill 0 … 1 evenly, so any number of flows has its share
            // on every port.
            SkipPer::Flow => {
                let place = (u64::from(flow) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                ((place >> 11) as f64 / (1u64 << 53) as f64) < self.share.get()
            }
        };
        taken.then_some(self.to)
    }
}

/// The position of a thread in a leg.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    group: u32,
    round: u32,
    op: u32,
    repeat: u32,
}

impl Cursor {
    /// The next operation in `leg` for a packet of `size` bytes in `chunks` chunks; `None` at the
    /// end of the leg.
    #[inline]
    pub(crate) fn next(&mut self, leg: &Leg, size: u32, chunks: u32) -> Option<Op> {
        loop {
            let group = leg.groups.get(self.group as usize)?;
            if group.over > 0 && size <= group.over {
                self.group += 1;
                continue;
            }
            match group.ops.get(self.op as usize) {
                Some(&(op, times)) if self.repeat < times => {
                    self.repeat += 1;
                    return Some(op);
                }
                Some(_) => {
                    self.op += 1;
                    self.repeat = 0;
                }
                None => {
                    self.op = 0;
                    self.round += 1;
                    if self.round == if group.per_chunk { chunks } else { 1 } {
                        self.round = 0;
                        self.group += 1;
                    }
                }
            }
        }
    }
}
