//! Super-packets in the pool: a super-packet from the kernel of a host stays in one slot, and the
//! network forwards handles of its segments.
//!
//! ```text
//!   slot of 64 KiB:   headers │ payload ……………………………………………………………
//!   frames:                   │  0  │  1  │  2  │  3  │  4  │   handles: (super-packet, segment)
//! ```
//!
//! A link counts, delays and loses each segment separately. Segments that leave together to a
//! kernel leave as one packet with one set of headers; their payload is not copied inside the pool
//! ([`FramePool::segment_run`]). A segment whose bytes are needed is copied out to its own slot
//! ([`FramePool::copy_out`]). So local TCP costs two copies of its payload, into the slot and out
//! of it. A super-packet that fits a smaller slot is copied once more, into that slot.

use super::{Frame, FramePool};
use fastpath_wire::segment::SuperPacket;
use fastpath_wire::vnet::{Gso, VnetHeader};
use std::num::NonZeroU32;

/// The class number in the handles of segments, which no slot class has.
const CLASS: u32 = (1 << (u32::BITS - super::SLOT_BITS)) - 1;
/// The bits of a segment number: the slot number of a segment is super-packet × 2¹¹ + segment.
const SEGMENT_BITS: u32 = 11;
/// A super-packet must have fewer segments. So the handle after its last one is unused, and a run
/// of consecutive handles never spans two super-packets.
const SEGMENTS_MAX: usize = 1 << SEGMENT_BITS;
/// The maximum number of super-packets in a pool.
const SUPER_PACKETS_MAX: usize = (1 << (super::SLOT_BITS - SEGMENT_BITS)) - 1;
/// Super-packets take at most this fraction (1/4) of the limit of the pool. The reason: one waiting
/// segment keeps the slot of its whole super-packet.
const SHARE: usize = 4;

/// The super-packets of a pool, by number.
#[derive(Debug, Default)]
pub(super) struct SuperPackets {
    all: Vec<KeptSuperPacket>,
    free: Vec<u32>,
    /// The memory of their slots, in bytes.
    kept: usize,
    /// A buffer for the segment that is being copied out.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct KeptSuperPacket {
    /// `None` while the number is free.
    frame: Option<Frame>,
    gso: Gso,
    /// The number of segments that have not been freed.
    alive: u32,
}

/// The segments of a super-packet as frames, in order. The caller must free each of them.
#[derive(Debug)]
#[must_use = "segments that are not freed keep their super-packet"]
pub struct SegmentFrames {
    super_packet: u32,
    next: usize,
    count: usize,
    header_len: usize,
    payload_len: usize,
    size: usize,
}

/// Segments that leave together, as one packet.
#[derive(PartialEq, Eq, Debug)]
pub struct SegmentRun<'a> {
    /// The number of segments.
    pub count: usize,
    /// The virtio header for the receiving kernel.
    pub vnet: VnetHeader,
    /// The payload, which follows the headers.
    pub payload: &'a [u8],
}

impl Frame {
    /// Returns whether the frame has its own bytes. False for a segment inside a super-packet: it
    /// can only be moved and freed, until it is [copied out](FramePool::copy_out).
    #[inline]
    pub fn has_own_bytes(&self) -> bool {
        self.slot() >> super::SLOT_BITS != CLASS
    }

    /// Returns the numbers of super-packet and segment of a frame without its own bytes.
    fn numbers(&self) -> (usize, usize) {
        let number = self.slot() as usize & ((1 << super::SLOT_BITS) - 1);
        (number >> SEGMENT_BITS, number & (SEGMENTS_MAX - 1))
    }
}

impl Iterator for SegmentFrames {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let i = self.next;
        if i == self.count {
            return None;
        }
        self.next += 1;
        let slot = CLASS << super::SLOT_BITS | self.super_packet << SEGMENT_BITS | i as u32;
        let len = self.header_len + self.size.min(self.payload_len - i * self.size);
        Some(Frame { handle: NonZeroU32::MIN.saturating_add(slot), len: len as u32 })
    }
}

impl FramePool {
    /// Allocates a frame of [`FRAME_MAX`](super::FRAME_MAX) bytes, into which a super-packet can be
    /// received. Returns `None` if super-packets take their share of the pool, or if the limit of
    /// the pool is reached.
    pub fn alloc_super_packet(&mut self) -> Option<Frame> {
        let is_full = self.super_packets.kept + super::FRAME_MAX > self.limit / SHARE;
        if is_full { None } else { self.alloc(super::FRAME_MAX) }
    }

    /// Keeps a super-packet in its slot and returns its segments. Returns the frame if it is not a
    /// valid super-packet, or if the pool has too many of them.
    pub fn keep_super_packet(&mut self, frame: Frame, gso: Gso) -> Result<SegmentFrames, Frame> {
        if self.super_packets.free.is_empty() && self.super_packets.all.len() == SUPER_PACKETS_MAX {
            return Err(frame);
        }
        let packet = SuperPacket::new(self.bytes(&frame), gso).ok();
        let Some(packet) = packet.filter(|packet| packet.count() < SEGMENTS_MAX) else { return Err(frame) };
        let (count, header_len, payload_len) = (packet.count(), packet.header_len(), packet.payload_len());
        let frame = self.fit(frame);
        self.super_packets.kept += self.classes[frame.class()].size;
        // The segments replace the frame as live frames.
        self.live += count - 1;
        let kept = KeptSuperPacket { frame: Some(frame), gso, alive: count as u32 };
        let number = match self.super_packets.free.pop() {
            Some(number) => {
                self.super_packets.all[number as usize] = kept;
                number
            }
            None => {
                self.super_packets.all.push(kept);
                self.super_packets.all.len() as u32 - 1
            }
        };
        Ok(SegmentFrames {
            super_packet: number,
            next: 0,
            count,
            header_len,
            payload_len,
            size: gso.size.into(),
        })
    }

    /// Merges the longest run of consecutive segments of one super-packet at the front of `frames`
    /// into one packet. Replaces the content of `headers` by the headers of that packet. Returns
    /// `None` if `frames` is empty or its first frame has its own bytes.
    pub fn segment_run<'f>(
        &self,
        mut frames: impl Iterator<Item = &'f Frame>,
        headers: &mut Vec<u8>,
    ) -> Option<SegmentRun<'_>> {
        let first = frames.next().filter(|frame| !frame.has_own_bytes())?;
        // Consecutive segments of a super-packet have consecutive slot numbers.
        let count =
            1 + frames.zip(first.slot() + 1..).take_while(|(frame, slot)| frame.slot() == *slot).count();
        let (number, from) = first.numbers();
        let (vnet, payload) = self.super_packet(number).part(from..from + count, headers);
        Some(SegmentRun { count, vnet, payload })
    }

    /// Copies a segment out of its super-packet to its own slot, with correct checksums. Does
    /// nothing to a frame with its own bytes. Returns false if the limit of the pool is reached;
    /// the frame is then unchanged.
    #[must_use = "a segment inside a super-packet has no bytes of its own"]
    #[inline]
    pub fn copy_out(&mut self, frame: &mut Frame) -> bool {
        frame.has_own_bytes() || self.copy_segment_out(frame)
    }

    #[inline(never)]
    fn copy_segment_out(&mut self, frame: &mut Frame) -> bool {
        let Some(mut own) = self.alloc(frame.len()) else { return false };
        let (number, i) = frame.numbers();
        let mut bytes = std::mem::take(&mut self.super_packets.scratch);
        bytes.resize(frame.len(), 0);
        self.super_packet(number).write(i, &mut bytes);
        self.bytes_mut(&mut own).copy_from_slice(&bytes);
        self.super_packets.scratch = bytes;
        self.free(std::mem::replace(frame, own));
        true
    }

    /// Appends the first `len_max` bytes of a frame to `out`, with correct checksums. A segment
    /// stays in its super-packet.
    pub fn append_to(&self, frame: &Frame, len_max: usize, out: &mut Vec<u8>) {
        let (from, len) = (out.len(), frame.len().min(len_max));
        if frame.has_own_bytes() {
            return out.extend_from_slice(&self.bytes(frame)[..len]);
        }
        let (number, i) = frame.numbers();
        out.resize(from + frame.len(), 0);
        self.super_packet(number).write(i, &mut out[from..]);
        out.truncate(from + len);
    }

    /// Returns bytes that start with the addresses and ports of a frame: the bytes of the frame, or
    /// those of its super-packet.
    pub fn headers(&self, frame: &Frame) -> &[u8] {
        if frame.has_own_bytes() {
            self.bytes(frame)
        } else {
            self.bytes(self.super_packet_frame(frame.numbers().0))
        }
    }

    /// Frees a segment, and the super-packet with its last segment.
    pub(super) fn free_segment(&mut self, frame: &Frame) {
        let (number, _) = frame.numbers();
        let kept = &mut self.super_packets.all[number];
        kept.alive -= 1;
        if kept.alive == 0
            && let Some(frame) = kept.frame.take()
        {
            self.super_packets.free.push(number as u32);
            let class = &mut self.classes[frame.class()];
            self.super_packets.kept -= class.size;
            class.free.push(frame.slot());
        }
    }

    /// Moves a frame to the smallest slot that fits, if it is in a larger one.
    fn fit(&mut self, frame: Frame) -> Frame {
        if FramePool::class_of(frame.len()) == Some(frame.class()) {
            return frame;
        }
        let Some(fitting) = self.duplicate(&frame) else { return frame };
        self.free(frame);
        fitting
    }

    fn super_packet_frame(&self, number: usize) -> &Frame {
        self.super_packets.all[number].frame.as_ref().expect("a super-packet with live segments")
    }

    fn super_packet(&self, number: usize) -> SuperPacket<'_> {
        let frame = self.super_packet_frame(number);
        let packet = SuperPacket::new(self.bytes(frame), self.super_packets.all[number].gso);
        packet.expect("the super-packet was valid when it was kept")
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

    /// A TCP frame: IPv6 in a VLAN if `fill` is odd, otherwise IPv4.
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

    /// Keeps a super-packet and returns its segments, each with its expected bytes.
    fn keep(pool: &mut FramePool, payload: usize, size: u16, fill: u8) -> Option<Vec<(Frame, Vec<u8>)>> {
        let (bytes, gso) = (frame(payload, fill), gso(fill, size));
        let mut slot = pool.alloc_super_packet()?;
        pool.truncate(&mut slot, bytes.len());
        pool.bytes_mut(&mut slot).copy_from_slice(&bytes);
        let segments = pool.keep_super_packet(slot, gso).expect("a super-packet");
        let packet = SuperPacket::new(&bytes, gso).expect("a super-packet");
        let cut = |i| {
            let mut segment = vec![0; packet.len_of(i)];
            packet.write(i, &mut segment);
            segment
        };
        Some(segments.zip((0..packet.count()).map(cut)).collect())
    }

    #[test]
    fn invalid_super_packets_are_returned() {
        let mut pool = FramePool::new(LIMIT);
        let many = frame(60_000, 1);
        for (bytes, size) in [(&many[..], 29), (&many[..], 0), (&[0; 60][..], 100)] {
            let slot = pool.insert(bytes).unwrap();
            let back = pool.keep_super_packet(slot, gso(1, size)).unwrap_err();
            assert_eq!(pool.bytes(&back), bytes);
            pool.free(back);
        }
        assert_eq!((pool.live(), pool.super_packets.kept), (0, 0));
    }

    #[test]
    fn super_packets_take_only_their_share_of_the_pool() {
        let mut pool = FramePool::new(LIMIT);
        let kept: Vec<_> = std::iter::from_fn(|| keep(&mut pool, 64_000, 1448, 7)).collect();
        assert_eq!(kept.len(), 15, "slots of more than 64 KiB in a share of 1 MiB");
        // A small super-packet takes a small slot.
        kept.into_iter().flatten().for_each(|(frame, _)| pool.free(frame));
        let kept: Vec<_> = std::iter::from_fn(|| keep(&mut pool, 2896, 1448, 7)).collect();
        assert_eq!(kept.len(), ((1 << 20) - super::super::FRAME_MAX) / 4096 + 1);
        // No segment can be copied out while the pool is full; each can be after a frame was freed.
        let mut segments: Vec<_> = kept.into_iter().flatten().collect();
        let mut others: Vec<_> = std::iter::from_fn(|| pool.alloc(segments[0].0.len())).collect();
        assert!(!pool.copy_out(&mut segments[0].0) && !segments[0].0.has_own_bytes());
        for (mut frame, expected) in segments {
            pool.free(others.pop().unwrap());
            assert!(pool.copy_out(&mut frame));
            assert_eq!(pool.bytes(&frame), expected);
            pool.free(frame);
        }
        others.into_iter().for_each(|frame| pool.free(frame));
        assert_eq!((pool.live(), pool.super_packets.kept), (0, 0));
        assert!(pool.reserved() <= LIMIT.get());
    }

    proptest! {
        #[test]
        fn segments_keep_their_bytes_whatever_happens_to_other_frames(
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
                        let (frame, bytes) = index.get_mut(&mut alive);
                        let mut copied = vec![1, 2];
                        pool.append_to(frame, len % 3000, &mut copied);
                        prop_assert_eq!(&copied[2..], &bytes[..bytes.len().min(len % 3000)]);
                        prop_assert_eq!(pool.copy_out(frame), frame.has_own_bytes());
                    }
                    4 => {
                        let (frame, bytes) = index.get_mut(&mut alive);
                        if pool.copy_out(frame) && let Some(copy) = pool.duplicate(frame) {
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
            // Read the frames as a port does: runs of segments, and frames with their own bytes.
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
            prop_assert_eq!((pool.live(), pool.super_packets.kept), (0, 0));
        }
    }
}
