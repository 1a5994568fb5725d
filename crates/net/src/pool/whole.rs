//! Super-packets kept whole: what a host's kernel hands over in one piece stays in one piece, and
//! only its segments' numbers walk the network.
//!
//! ```text
//!   slot of 64 KiB:   headers │ payload ……………………………………………………………
//!   frames:                   │  0  │  1  │  2  │  3  │  4  │      each a handle: super-packet and number
//! ```
//!
//! A link counts, delays and loses every segment by itself. Those that leave together for a kernel
//! leave as one packet, with one set of headers, from where they are ([`FramePool::segment_run`]);
//! a segment whose bytes somebody wants is cut ([`FramePool::cut`]). So local TCP costs two copies
//! of its payload, into the slot and out of it; one more if that is not half as long as the slot,
//! which is then one of its size.

use super::{Frame, FramePool};
use fastpath_wire::segment::SuperPacket;
use fastpath_wire::vnet::{Gso, VnetHeader};
use std::num::NonZeroU32;

/// The class of handles that are segments, beyond those of slots.
const CLASS: u32 = (1 << (u32::BITS - super::SLOT_BITS)) - 1;
/// Such a handle is class, super-packet × 2¹¹ + segment; one more than that, as all are.
const SEGMENT_BITS: u32 = 11;
/// A super-packet has fewer segments, so that no handle follows its last one's; and there are fewer
/// of these than fit.
const SEGMENTS_MAX: usize = 1 << SEGMENT_BITS;
const WHOLES_MAX: usize = (1 << (super::SLOT_BITS - SEGMENT_BITS)) - 1;
/// The share of the pool's limit that may be kept whole: a single segment that stays keeps all of
/// its super-packet's slot.
const SHARE: usize = 4;

/// The super-packets, by number.
#[derive(Debug, Default)]
pub(super) struct Wholes {
    all: Vec<Whole>,
    free: Vec<u32>,
    /// Bytes of their slots.
    kept: usize,
    /// A segment being cut.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Whole {
    /// `None` while the number is free.
    frame: Option<Frame>,
    gso: Gso,
    /// Segments that have not been freed.
    alive: u32,
}

/// The segments of a super-packet, in order; every one of them is to be freed.
#[derive(Debug)]
#[must_use = "segments that are not freed keep their super-packet"]
pub struct Segments {
    whole: u32,
    next: usize,
    count: usize,
    header_len: usize,
    payload_len: usize,
    size: usize,
}

/// Segments that leave together, as the packet that stands for them.
#[derive(PartialEq, Eq, Debug)]
pub struct SegmentRun<'a> {
    /// How many segments.
    pub count: usize,
    /// What the receiving kernel has to know.
    pub vnet: VnetHeader,
    /// What comes behind the headers.
    pub payload: &'a [u8],
}

impl Frame {
    /// False for a segment of a super-packet that is kept whole: until [`FramePool::cut`] it has no
    /// bytes of its own, and is only moved and freed.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.slot() >> super::SLOT_BITS != CLASS
    }

    /// Super-packet and segment of one that is not cut.
    fn numbers(&self) -> (usize, usize) {
        let number = self.slot() as usize & ((1 << super::SLOT_BITS) - 1);
        (number >> SEGMENT_BITS, number & (SEGMENTS_MAX - 1))
    }
}

impl Iterator for Segments {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let i = self.next;
        if i == self.count {
            return None;
        }
        self.next += 1;
        let slot = CLASS << super::SLOT_BITS | self.whole << SEGMENT_BITS | i as u32;
        let len = self.header_len + self.size.min(self.payload_len - i * self.size);
        Some(Frame { place: NonZeroU32::MIN.saturating_add(slot), len: len as u32 })
    }
}

impl FramePool {
    /// A frame of [`FRAME_MAX`](super::FRAME_MAX) bytes for what may become a super-packet to keep;
    /// `None` if enough are kept, or the pool's limit is reached.
    pub fn alloc_whole(&mut self) -> Option<Frame> {
        let is_full = self.wholes.kept + super::FRAME_MAX > self.limit / SHARE;
        if is_full { None } else { self.alloc(super::FRAME_MAX) }
    }

    /// Keeps a super-packet whole and gives its segments; the frame back if it is none, or too many
    /// are kept.
    pub fn keep_whole(&mut self, frame: Frame, gso: Gso) -> Result<Segments, Frame> {
        if self.wholes.free.is_empty() && self.wholes.all.len() == WHOLES_MAX {
            return Err(frame);
        }
        let packet = SuperPacket::new(self.bytes(&frame), gso).ok();
        let Some(packet) = packet.filter(|packet| packet.count() < SEGMENTS_MAX) else { return Err(frame) };
        let (count, header_len, payload_len) = (packet.count(), packet.header_len(), packet.payload_len());
        let frame = self.fit(frame);
        self.wholes.kept += self.classes[frame.class()].size;
        // The segments are alive, no longer the frame.
        self.live += count - 1;
        let whole = Whole { frame: Some(frame), gso, alive: count as u32 };
        let number = match self.wholes.free.pop() {
            Some(number) => {
                self.wholes.all[number as usize] = whole;
                number
            }
            None => {
                self.wholes.all.push(whole);
                self.wholes.all.len() as u32 - 1
            }
        };
        Ok(Segments { whole: number, next: 0, count, header_len, payload_len, size: gso.size.into() })
    }

    /// The longest run of segments at the front of `frames` that are one part of a super-packet:
    /// the headers of the packet that stands for them go to `headers`. `None` if the first is no
    /// such segment, or there is none.
    pub fn segment_run<'f>(
        &self,
        mut frames: impl Iterator<Item = &'f Frame>,
        headers: &mut Vec<u8>,
    ) -> Option<SegmentRun<'_>> {
        let first = frames.next().filter(|frame| !frame.is_cut())?;
        // Neighbors in a super-packet are neighbors in number.
        let count =
            1 + frames.zip(first.slot() + 1..).take_while(|(frame, slot)| frame.slot() == *slot).count();
        let (number, from) = first.numbers();
        let (vnet, payload) = self.super_packet(number).part(from..from + count, headers);
        Some(SegmentRun { count, vnet, payload })
    }

    /// Gives a segment bytes of its own, all checksums right, if it has none yet; its slot is
    /// another one then. False if the pool's limit is reached: then it stays as it is.
    #[must_use = "a segment that is not cut has no bytes"]
    #[inline]
    pub fn cut(&mut self, frame: &mut Frame) -> bool {
        frame.is_cut() || self.cut_now(frame)
    }

    #[inline(never)]
    fn cut_now(&mut self, frame: &mut Frame) -> bool {
        let Some(mut own) = self.alloc(frame.len()) else { return false };
        let (number, i) = frame.numbers();
        let mut bytes = std::mem::take(&mut self.wholes.scratch);
        bytes.resize(frame.len(), 0);
        self.super_packet(number).write(i, &mut bytes);
        self.bytes_mut(&mut own).copy_from_slice(&bytes);
        self.wholes.scratch = bytes;
        self.free(std::mem::replace(frame, own));
        true
    }

    /// The bytes of a frame, or of the super-packet it is a segment of, which begins with the same
    /// addresses and ports.
    pub fn headers(&self, frame: &Frame) -> &[u8] {
        if frame.is_cut() { self.bytes(frame) } else { self.bytes(self.whole(frame.numbers().0)) }
    }

    /// Forgets a segment, and its super-packet with the last of them.
    pub(super) fn free_segment(&mut self, frame: &Frame) {
        let (number, _) = frame.numbers();
        let whole = &mut self.wholes.all[number];
        whole.alive -= 1;
        if whole.alive == 0
            && let Some(frame) = whole.frame.take()
        {
            self.wholes.free.push(number as u32);
            let class = &mut self.classes[frame.class()];
            self.wholes.kept -= class.size;
            class.free.push(frame.slot());
        }
    }

    /// Moves a frame to a slot of its size, if that is a smaller one.
    fn fit(&mut self, frame: Frame) -> Frame {
        if FramePool::class_of(frame.len()) == Some(frame.class()) {
            return frame;
        }
        let Some(fitting) = self.duplicate(&frame) else { return frame };
        self.free(frame);
        fitting
    }

    fn whole(&self, number: usize) -> &Frame {
        self.wholes.all[number].frame.as_ref().expect("a super-packet with segments alive")
    }

    fn super_packet(&self, number: usize) -> SuperPacket<'_> {
        let packet = SuperPacket::new(self.bytes(self.whole(number)), self.wholes.all[number].gso);
        packet.expect("it was one when it came")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_wire::MacAddr;
    use fastpath_wire::build::{Ip, Tcp};
    use fastpath_wire::vnet::GsoKind;
    use proptest::prelude::*;
    use std::net::IpAddr;
    use std::num::NonZeroUsize;

    const LIMIT: NonZeroUsize = NonZeroUsize::new(4 << 20).unwrap();

    /// IPv4 or, of odd `fill`, IPv6 in a VLAN.
    fn frame(payload: usize, fill: u8) -> Vec<u8> {
        let address = |i: u8| match fill % 2 {
            0 => IpAddr::from([10, 0, 0, i]),
            _ => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(i)]),
        };
        let end = |i: u8| (MacAddr([2, 0, 0, 0, 0, i]), address(i));
        let mut frame = Ip::between(end(1), end(2)).tcp(&Tcp::default(), &vec![fill; payload]);
        if fill % 2 == 1 {
            frame.splice(12..12, [0x81, 0, 0, 7]);
        }
        frame
    }

    fn gso(fill: u8, size: u16) -> Gso {
        Gso { kind: if fill % 2 == 1 { GsoKind::TcpV6 } else { GsoKind::TcpV4 }, size, ecn: false }
    }

    /// The segments of a super-packet that is kept, each with what it is to be when cut.
    fn keep(pool: &mut FramePool, payload: usize, size: u16, fill: u8) -> Option<Vec<(Frame, Vec<u8>)>> {
        let (bytes, gso) = (frame(payload, fill), gso(fill, size));
        let mut slot = pool.alloc_whole()?;
        pool.truncate(&mut slot, bytes.len());
        pool.bytes_mut(&mut slot).copy_from_slice(&bytes);
        let segments = pool.keep_whole(slot, gso).expect("a super-packet");
        let packet = SuperPacket::new(&bytes, gso).expect("a super-packet");
        let cut = |i| {
            let mut segment = vec![0; packet.len_of(i)];
            packet.write(i, &mut segment);
            segment
        };
        Some(segments.zip((0..packet.count()).map(cut)).collect())
    }

    #[test]
    fn what_is_no_super_packet_comes_back() {
        let mut pool = FramePool::new(LIMIT);
        let many = frame(60_000, 1);
        for (bytes, size) in [(&many[..], 29), (&many[..], 0), (&[0; 60][..], 100)] {
            let slot = pool.insert(bytes).unwrap();
            let back = pool.keep_whole(slot, gso(1, size)).unwrap_err();
            assert_eq!(pool.bytes(&back), bytes);
            pool.free(back);
        }
        assert_eq!((pool.live(), pool.wholes.kept), (0, 0));
    }

    #[test]
    fn only_a_share_of_the_pool_is_kept_whole() {
        let mut pool = FramePool::new(LIMIT);
        let kept: Vec<_> = std::iter::from_fn(|| keep(&mut pool, 64_000, 1448, 7)).collect();
        assert_eq!(kept.len(), 15, "64 KiB and some of 1 MiB");
        // Less takes less: a slot of its size.
        kept.into_iter().flatten().for_each(|(frame, _)| pool.free(frame));
        let kept: Vec<_> = std::iter::from_fn(|| keep(&mut pool, 2896, 1448, 7)).collect();
        assert_eq!(kept.len(), ((1 << 20) - super::super::FRAME_MAX) / 4096 + 1);
        // None can be cut while the pool is full, and all of them once it is not.
        let mut segments: Vec<_> = kept.into_iter().flatten().collect();
        let mut others: Vec<_> = std::iter::from_fn(|| pool.alloc(segments[0].0.len())).collect();
        assert!(!pool.cut(&mut segments[0].0) && !segments[0].0.is_cut());
        for (mut frame, expected) in segments {
            pool.free(others.pop().unwrap());
            assert!(pool.cut(&mut frame));
            assert_eq!(pool.bytes(&frame), expected);
            pool.free(frame);
        }
        others.into_iter().for_each(|frame| pool.free(frame));
        assert_eq!((pool.live(), pool.wholes.kept), (0, 0));
        assert!(pool.reserved() <= LIMIT.get());
    }

    proptest! {
        #[test]
        fn segments_are_themselves_whatever_becomes_of_others(
            ops in prop::collection::vec((0u8..6, any::<prop::sample::Index>(), 1usize..65_000, 30u16..2000), 1..60),
        ) {
            let mut pool = FramePool::new(LIMIT);
            let mut alive: Vec<(Frame, Vec<u8>)> = Vec::new();
            for (number, (op, index, len, size)) in ops.into_iter().enumerate() {
                match op {
                    0 | 1 => {
                        let size = size.max((len / 2000) as u16);
                        alive.extend(keep(&mut pool, len, size, number as u8).into_iter().flatten());
                    }
                    2 => {
                        let bytes = frame(len.min(9000), number as u8);
                        alive.extend(pool.insert(&bytes).map(|frame| (frame, bytes)));
                    }
                    _ if alive.is_empty() => {}
                    3 => {
                        let (frame, _) = index.get_mut(&mut alive);
                        prop_assert_eq!(pool.cut(frame), frame.is_cut());
                    }
                    4 => {
                        let (frame, bytes) = index.get_mut(&mut alive);
                        if pool.cut(frame) && let Some(copy) = pool.duplicate(frame) {
                            let bytes = bytes.clone();
                            alive.push((copy, bytes));
                        }
                    }
                    _ => {
                        let at = index.index(alive.len());
                        let freed = alive.drain(at..alive.len().min(at + len % 50));
                        freed.for_each(|(frame, _)| pool.free(frame));
                    }
                }
                prop_assert_eq!(pool.live(), alive.len());
            }
            // As a port sends them: runs of segments, and frames.
            let (mut rest, mut headers) = (&alive[..], Vec::new());
            while let Some((first, bytes)) = rest.first() {
                prop_assert_eq!(&pool.headers(first)[..14], &bytes[..14]);
                let frames = rest.iter().map(|(frame, _)| frame);
                let count = match pool.segment_run(frames, &mut headers) {
                    Some(run) => {
                        let (whole, mut segments) = ([&headers[..], run.payload].concat(), Vec::new());
                        fastpath_wire::segment::segment(&whole, &run.vnet, &mut Vec::new(), |segment| {
                            segments.push(segment.to_vec());
                        }).expect("a super-packet or a segment");
                        let expected: Vec<_> = rest[..run.count].iter().map(|(_, bytes)| bytes.clone()).collect();
                        prop_assert_eq!(segments, expected);
                        run.count
                    }
                    None => {
                        prop_assert_eq!(pool.bytes(first), &bytes[..]);
                        1
                    }
                };
                rest = &rest[count..];
            }
            alive.into_iter().for_each(|(frame, _)| pool.free(frame));
            prop_assert_eq!((pool.live(), pool.wholes.kept), (0, 0));
        }
    }
}
