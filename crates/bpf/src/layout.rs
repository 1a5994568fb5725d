//! The values of the maps that programs and processes share: their offsets for programs, their
//! encodings for processes.

use fastpath_link::instant::{ChanceBounds, InstantLoss, InstantSpec, bound};
use fastpath_link::{Chance, Counters, DropReason, GilbertElliott, Volume};
use fastpath_units::Rng;

/// Counters of a pipe, for each CPU: eight bytes each. Bytes follow the frames that have them.
pub(crate) mod counter {
    pub(crate) const PUSHED: i16 = 0;
    pub(crate) const DELIVERED: i16 = 16;
    pub(crate) const LOST: i16 = 32;
    pub(crate) const DOWN: i16 = 48;
    pub(crate) const MARKED: i16 = 64;
    pub(crate) const CORRUPTED: i16 = 72;
    pub(crate) const DUPLICATED: i16 = 80;
    /// Delivered, but the interface of the receiver is down.
    pub(crate) const PORT_DOWN: i16 = 96;
    /// Delivered, but the interface of the receiver refused them: too long for its MTU, or too many
    /// at once.
    pub(crate) const PORT_REFUSED: i16 = 112;
    /// Super-packets that a law took as one frame.
    pub(crate) const WHOLE: i16 = 128;
    pub(crate) const SIZE: u32 = 136;
}

/// Counters of a switch, for each CPU.
pub(crate) mod node {
    pub(crate) const FILTERED: i16 = 0;
    pub(crate) const MALFORMED: i16 = 8;
    /// Frames from an address that was not learned, because the table was full.
    pub(crate) const NOT_LEARNED: i16 = 16;
    pub(crate) const SIZE: u32 = 32;
}

/// An interface, by its index.
pub(crate) mod port {
    pub(crate) const ROLE: i16 = 0;
    /// The index of the interface to which frames go on: of the TAP, where they go to user space.
    pub(crate) const ASIDE: i16 = 4;
    /// The switch.
    pub(crate) const NODE: i16 = 8;
    pub(crate) const PIPE_IN: i16 = 12;
    pub(crate) const PIPE_OUT: i16 = 16;
    /// Of a wire or a TAP: the index of the interface to which frames go.
    pub(crate) const OUT: i16 = 20;
    /// Not 0: the other end is in another namespace, so that frames go straight to it.
    pub(crate) const IS_PEER: i16 = 24;
    pub(crate) const IS_BLOCKED: i16 = 28;
    /// Not 0: the other end is down.
    pub(crate) const IS_DOWN: i16 = 32;
    /// The members of the switch: the first, and their number.
    pub(crate) const FIRST: i16 = 36;
    pub(crate) const COUNT: i16 = 40;
    /// The address of the other end, at a multiple of four; zero: not known.
    pub(crate) const ADDRESS: i16 = 44;
    pub(crate) const SIZE: u32 = 56;

    /// In place of a pipe: frames from the interface have passed theirs.
    pub(crate) const NO_PIPE: u32 = u32::MAX;
}

/// What a frame from an interface is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PortRole {
    /// The other end of a link.
    Wire = 1,
    /// A switch.
    Switch = 2,
    /// User space.
    User = 3,
    /// A host, from user space.
    Tap = 4,
}

/// The law of a pipe and its state. A spin lock comes first.
pub(crate) mod law {
    pub(crate) const RNG: i16 = 8;
    pub(crate) const FLAGS: i16 = 40;
    pub(crate) const LOSS: i16 = 48;
    pub(crate) const EGRESS: i16 = 88;
    pub(crate) const DUPLICATE: i16 = 128;
    pub(crate) const CORRUPT: i16 = 152;
    /// What the draws of the current frame have decided: the verifier does not follow it here.
    pub(crate) const DECIDED: i16 = 176;
    pub(crate) const SIZE: u32 = 184;

    pub(crate) const DOWN: i32 = 1;
    pub(crate) const MARKS: i32 = 2;
    pub(crate) const LOSS_CHANCE: i32 = 4;
    pub(crate) const LOSS_CHANNEL: i32 = 8;
    pub(crate) const EGRESS_CHANCE: i32 = 16;
    pub(crate) const EGRESS_CHANNEL: i32 = 32;
    pub(crate) const DUPLICATES: i32 = 64;
    pub(crate) const CORRUPTS: i32 = 128;
}

/// A chance in a law: its bound, the weight of the mix before, and that mix.
pub(crate) mod chance {
    pub(crate) const BELOW: i16 = 0;
    pub(crate) const WEIGHT: i16 = 8;
    pub(crate) const LAST: i16 = 16;
}

/// A channel of Gilbert and Elliott in a law.
pub(crate) mod channel {
    pub(crate) const TO_BAD: i16 = 0;
    pub(crate) const TO_GOOD: i16 = 8;
    pub(crate) const LOSS_IN_BAD: i16 = 16;
    pub(crate) const LOSS_IN_GOOD: i16 = 24;
    /// 0: good. 1: bad.
    pub(crate) const STATE: i16 = 32;
}

/// An address that a switch has learned: the key and the value.
pub(crate) mod learned {
    pub(crate) const KEY_SIZE: u32 = 12;
    pub(crate) const TIME: i16 = 0;
    pub(crate) const PORT: i16 = 8;
    pub(crate) const SIZE: u32 = 16;
}

/// A record of the per-packet log.
pub(crate) mod record {
    pub(crate) const TIME: i16 = 0;
    pub(crate) const ENTERED: i16 = 8;
    pub(crate) const MADE: i16 = 16;
    pub(crate) const LOCATION: i16 = 24;
    pub(crate) const OUTCOME: i16 = 28;
    pub(crate) const LEN: i16 = 32;
    /// The tag that is not in the bytes: its type, then its value; 0: none.
    pub(crate) const TAG: i16 = 36;
    pub(crate) const BYTES: i16 = 40;
    pub(crate) const SNAP: i32 = 256;
    pub(crate) const SIZE: i32 = BYTES as i32 + SNAP;
    /// In a location: a switch, not a pipe.
    pub(crate) const IS_NODE: u32 = 1 << 31;
}

/// What happened to a packet: bits.
pub(crate) mod outcome {
    pub(crate) const LOST: i32 = 1;
    pub(crate) const DOWN: i32 = 2;
    pub(crate) const MARKED: i32 = 4;
    pub(crate) const CORRUPTED: i32 = 8;
    pub(crate) const DUPLICATED: i32 = 16;
    pub(crate) const FILTERED: i32 = 32;
    pub(crate) const MALFORMED: i32 = 64;
    /// Dropped behind the queue.
    pub(crate) const AT_EXIT: i32 = 128;
}

/// Puts numbers where a program expects them.
fn put(value: &mut [u8], at: i16, number: u64) {
    let at = usize::try_from(at).expect("an offset in a value");
    value[at..at + 8].copy_from_slice(&number.to_ne_bytes());
}

/// Returns a number of eight bytes.
pub(crate) fn get(value: &[u8], at: i16) -> u64 {
    let at = usize::try_from(at).expect("an offset in a value");
    value.get(at..at + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
}

/// Returns the value of a law at its beginning.
pub(crate) fn law_value(spec: &InstantSpec, rng: &Rng) -> Vec<u8> {
    let mut value = vec![0; law::SIZE as usize];
    for (place, word) in (0..).zip(rng.state()) {
        put(&mut value, law::RNG + 8 * place, word);
    }
    let mut flags = if spec.is_down { law::DOWN } else { 0 } | if spec.marks { law::MARKS } else { 0 };
    let losses = [
        (&spec.loss, law::LOSS, [law::LOSS_CHANCE, law::LOSS_CHANNEL]),
        (&spec.egress_loss, law::EGRESS, [law::EGRESS_CHANCE, law::EGRESS_CHANNEL]),
    ];
    for (loss, at, [chance, channel]) in losses {
        match loss {
            InstantLoss::Never => {}
            InstantLoss::Chance(law) => {
                flags |= chance;
                put_chance(&mut value, at, *law);
            }
            InstantLoss::GilbertElliott(law) => {
                flags |= channel;
                put_channel(&mut value, at, law);
            }
        }
    }
    for (chance, at, flag) in
        [(spec.duplicate, law::DUPLICATE, law::DUPLICATES), (spec.corrupt, law::CORRUPT, law::CORRUPTS)]
    {
        if let Some(chance) = chance {
            flags |= flag;
            put_chance(&mut value, at, chance);
        }
    }
    put(&mut value, law::FLAGS, flags as u64);
    value
}

/// Returns the value of a law after a change: the generator goes on, and what stays the same keeps
/// its state, as in a pipe.
pub(crate) fn changed_law(current: &[u8], from: &InstantSpec, to: &InstantSpec) -> Vec<u8> {
    let mut value = law_value(to, &Rng::new(0));
    let mut keep = |at: i16, bytes: i16| {
        let range = at as usize..(at + bytes) as usize;
        value[range.clone()].copy_from_slice(&current[range]);
    };
    keep(law::RNG, 32);
    let same = [
        (from.loss == to.loss, law::LOSS, 40),
        (from.egress_loss == to.egress_loss, law::EGRESS, 40),
        (from.duplicate == to.duplicate, law::DUPLICATE, 24),
        (from.corrupt == to.corrupt, law::CORRUPT, 24),
    ];
    for (is_same, at, bytes) in same {
        if is_same {
            keep(at, bytes);
        }
    }
    value
}

fn put_chance(value: &mut [u8], at: i16, chance: Chance) {
    let ChanceBounds { below, weight } = chance.into();
    put(value, at + chance::BELOW, below);
    put(value, at + chance::WEIGHT, weight);
}

fn put_channel(value: &mut [u8], at: i16, law: &GilbertElliott) {
    put(value, at + channel::TO_BAD, bound(law.to_bad));
    put(value, at + channel::TO_GOOD, bound(law.to_good));
    put(value, at + channel::LOSS_IN_BAD, bound(law.loss_in_bad));
    put(value, at + channel::LOSS_IN_GOOD, bound(law.loss_in_good));
}

/// What the program has counted of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipeCounts {
    /// As those of a pipe.
    pub counters: Counters,
    /// The copies in [`Counters::duplicated`].
    pub duplicated: Volume,
    /// Delivered frames that were lost because the interface of the receiver was down.
    pub port_down: Volume,
    /// Delivered frames that the interface of the receiver refused.
    pub port_refused: Volume,
    /// Super-packets that a law took as one frame.
    pub whole: u64,
}

impl PipeCounts {
    /// Adds up what each CPU has counted.
    pub(crate) fn of(values: &[u8]) -> PipeCounts {
        let mut counts = PipeCounts::default();
        for value in values.chunks_exact(counter::SIZE as usize) {
            let volume = |at: i16| Volume { packets: get(value, at), bytes: get(value, at + 8) };
            let counters = &mut counts.counters;
            counters.pushed += volume(counter::PUSHED);
            counters.delivered += volume(counter::DELIVERED);
            counters.add_drops(DropReason::Loss, volume(counter::LOST));
            counters.add_drops(DropReason::Down, volume(counter::DOWN));
            counters.marked += get(value, counter::MARKED);
            counters.corrupted += get(value, counter::CORRUPTED);
            counters.duplicated += get(value, counter::DUPLICATED);
            counts.duplicated += volume(counter::DUPLICATED);
            counts.port_down += volume(counter::PORT_DOWN);
            counts.port_refused += volume(counter::PORT_REFUSED);
            counts.whole += get(value, counter::WHOLE);
        }
        counts
    }
}

/// What the program has counted in a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchCounts {
    /// Frames whose destination is where they come from, or for which there is no other port.
    pub filtered: u64,
    /// Frames shorter than two addresses.
    pub malformed: u64,
    /// Frames from an address that was not learned, because the table was full.
    pub not_learned: u64,
}

impl SwitchCounts {
    pub(crate) fn of(values: &[u8]) -> SwitchCounts {
        let mut counts = SwitchCounts::default();
        for value in values.chunks_exact(node::SIZE as usize) {
            counts.filtered += get(value, node::FILTERED);
            counts.malformed += get(value, node::MALFORMED);
            counts.not_learned += get(value, node::NOT_LEARNED);
        }
        counts
    }
}
