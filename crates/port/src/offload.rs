//! Completes what the sending kernel left undone: super-packets (GSO) and unfinished checksums.
//!
//! Every frame comes with a virtio-net header that says what is missing (virtio 1.2, §5.1.6). This
//! module completes it, so that the network receives the frames that would have been on a wire, one
//! by one. A super-packet may stay in one piece in the pool as long as no part of the network reads
//! its segments.

use super::{Burst, PortCounters};
use fastpath_net::{Frame, FramePool};
use fastpath_wire::checksum::Sum;
use fastpath_wire::segment::{SuperPacket, segment};
use fastpath_wire::vnet::{Gso, GsoKind, PartialChecksum, VnetHeader};
use fastpath_wire::{Headers, NetworkLayer, protocol, sctp};

/// Bytes of the header before each frame.
pub(super) const HEADER_LEN: usize = VnetHeader::LEN;

/// Bytes of the two MAC addresses, and of a VLAN tag.
const MACS: usize = 12;
const TAG: usize = 4;

/// Memory for a frame while it is edited, reused from frame to frame.
#[derive(Default)]
pub(super) struct Scratch {
    frame: Vec<u8>,
    segment: Vec<u8>,
}

/// The receiver of frames.
pub(super) struct RxSink<'a> {
    pub(super) pool: &'a mut FramePool,
    pub(super) burst: &'a mut Burst,
    pub(super) counters: &'a mut PortCounters,
}

impl RxSink<'_> {
    /// Takes a frame, or the segments that it stands for, with correct checksums.
    pub(super) fn take(&mut self, header: &[u8; HEADER_LEN], frame: &[u8], scratch: &mut Scratch) {
        match VnetHeader::parse(header) {
            Ok(VnetHeader { checksum: None, gso: None, .. }) => self.insert(frame),
            Ok(header) => self.cut(&header, frame, &mut scratch.segment),
            Err(_) => self.counters.rx_malformed += 1,
        }
    }

    /// As [`RxSink::take`], for a frame from which the kernel removed a VLAN tag. Protocol and
    /// control information are restored behind the MAC addresses.
    pub(super) fn take_tagged(
        &mut self,
        header: &[u8; HEADER_LEN],
        frame: &[u8],
        tag: [u16; 2],
        scratch: &mut Scratch,
    ) {
        let (Ok(mut header), Some((macs, rest))) = (VnetHeader::parse(header), frame.split_at_checked(MACS))
        else {
            self.counters.rx_malformed += 1;
            return;
        };
        let [protocol, control] = tag.map(u16::to_be_bytes);
        scratch.frame.clear();
        for part in [macs, &protocol, &control, rest] {
            scratch.frame.extend_from_slice(part);
        }
        // Offsets from the start of the frame move with the tag.
        if let Some(checksum) = &mut header.checksum {
            checksum.start = checksum.start.saturating_add(TAG as u16);
        }
        self.cut(&header, &scratch.frame, &mut scratch.segment);
    }

    /// Takes a frame after completing what the header says is missing.
    pub(super) fn finish(&mut self, header: &VnetHeader, frame: &[u8], scratch: &mut Scratch) {
        if header.checksum.is_none() && header.gso.is_none() {
            return self.insert(frame);
        }
        self.cut(header, frame, &mut scratch.segment);
    }

    /// Takes a super-packet that is in a slot of the pool. Its segments are copied out when their
    /// bytes are needed.
    pub(super) fn take_whole(&mut self, gso: Gso, frame: Frame, scratch: &mut Scratch) {
        match self.pool.keep_super_packet(frame, gso) {
            Ok(segments) => segments.for_each(|segment| self.keep(Some(segment))),
            Err(frame) => {
                scratch.frame.clear();
                scratch.frame.extend_from_slice(self.pool.bytes(&frame));
                self.pool.free(frame);
                let header = VnetHeader { gso: Some(gso), ..VnetHeader::default() };
                self.cut(&header, &scratch.frame, &mut scratch.segment);
            }
        }
    }

    /// As [`RxSink::take_whole`], for a super-packet that is not in the pool yet.
    pub(super) fn take_copied(&mut self, gso: Gso, bytes: &[u8], scratch: &mut Scratch) {
        match self.pool.alloc_super_packet() {
            Some(mut frame) => {
                self.pool.truncate(&mut frame, bytes.len());
                self.pool.bytes_mut(&mut frame).copy_from_slice(bytes);
                self.take_whole(gso, frame, scratch);
            }
            None => {
                let header = VnetHeader { gso: Some(gso), ..VnetHeader::default() };
                self.cut(&header, bytes, &mut scratch.segment);
            }
        }
    }

    fn cut(&mut self, header: &VnetHeader, frame: &[u8], buffer: &mut Vec<u8>) {
        if let Some(gso) = header.gso {
            match SuperPacket::new(frame, gso) {
                Ok(packet) => (0..packet.count()).for_each(|i| self.insert_segment(&packet, i)),
                Err(_) => self.counters.rx_malformed += 1,
            }
            return;
        }
        if segment(frame, header, buffer, |bytes| self.insert(bytes)).is_err() {
            self.counters.rx_malformed += 1;
        }
    }

    /// Takes a segment, written directly to its slot.
    fn insert_segment(&mut self, packet: &SuperPacket<'_>, i: usize) {
        let mut frame = self.pool.alloc(packet.len_of(i));
        if let Some(frame) = &mut frame {
            packet.write(i, self.pool.bytes_mut(frame));
        }
        self.keep(frame);
    }

    /// Takes a complete frame.
    pub(super) fn insert(&mut self, bytes: &[u8]) {
        let frame = self.pool.insert(bytes);
        self.keep(frame);
    }

    /// Takes a frame, if the pool had room for it.
    fn keep(&mut self, frame: Option<Frame>) {
        let Some(frame) = frame else {
            self.counters.rx_no_memory += 1;
            return;
        };
        let len = frame.len() as u64;
        match self.burst.push(frame) {
            Ok(()) => {
                self.counters.rx_frames += 1;
                self.counters.rx_bytes += len;
            }
            Err(frame) => {
                self.counters.rx_no_memory += 1;
                self.pool.free(frame);
            }
        }
    }
}

/// Infers what is missing of a frame without a virtio-net header. An unfinished checksum is the sum
/// over the pseudo-header alone. (A finished checksum with the same value, one in 65 536, is
/// computed again with the same result.) A TCP packet longer than the MTU is a super-packet. Every
/// packet but the last of a transfer fills the MTU, or the receiver's smaller limit where one is
/// configured; then the segments are longer than the sender's.
pub(super) fn infer(frame: &[u8], mtu: usize) -> VnetHeader {
    let headers = Headers::parse(frame);
    let (protocol, start, end, kind) = match headers.network {
        NetworkLayer::Ipv4(ip) if !ip.is_fragment() => {
            (ip.protocol, ip.payload_offset(), ip.end(), GsoKind::TcpV4)
        }
        NetworkLayer::Ipv6(ip) if !ip.is_fragment() => {
            (ip.protocol, ip.payload_offset, ip.end(), GsoKind::TcpV6)
        }
        _ => return VnetHeader::default(),
    };
    let offset = match protocol {
        protocol::TCP => 16,
        protocol::UDP => 6,
        protocol::SCTP => return infer_sctp(frame, start),
        _ => return VnetHeader::default(),
    };
    let len = end.saturating_sub(start) as u32;
    let pseudo = match headers.network {
        NetworkLayer::Ipv4(ip) => Sum::pseudo_v4(ip.src, ip.dst, protocol, len),
        NetworkLayer::Ipv6(ip) => Sum::pseudo_v6(ip.src, ip.dst, protocol, len),
        _ => return VnetHeader::default(),
    };
    let field = frame.get(start + offset..start + offset + 2);
    let field = field.map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let is_unfinished = field == Some(pseudo.folded());
    let checksum = is_unfinished.then_some(PartialChecksum { start: start as u16, offset: offset as u16 });
    let tcp_len = frame.get(start + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    let header_len = start + tcp_len;
    let room = (headers.l2_len + mtu).saturating_sub(header_len);
    let is_super = protocol == protocol::TCP && end > headers.l2_len + mtu && room > 0;
    let gso = is_super.then_some(Gso { kind, size: room.min(u16::MAX.into()) as u16, ecn: false });
    VnetHeader { checksum, gso, header_len: header_len as u16 }
}

/// As [`infer`], for SCTP: an unfinished checksum is zero.
fn infer_sctp(frame: &[u8], start: usize) -> VnetHeader {
    let field = frame.get(start..).and_then(|packet| packet.get(sctp::CHECKSUM));
    let is_unfinished = field.is_some_and(|bytes| bytes == [0; 4]);
    let checksum =
        is_unfinished.then_some(PartialChecksum { start: start as u16, offset: sctp::CHECKSUM.start as u16 });
    VnetHeader { checksum, ..VnetHeader::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_wire::MacAddr;
    use fastpath_wire::build::{Ip, Tcp};
    use fastpath_wire::checksum::{ChecksumStatus, check_transport};

    /// Returns the frames that result from a frame with a header and perhaps a tag, and how many
    /// were malformed. A super-packet in a slot of the pool yields the same.
    fn taken(header: VnetHeader, frame: &[u8], tag: Option<[u16; 2]>) -> (Vec<Vec<u8>>, u64) {
        let mut pool = FramePool::default();
        let (mut burst, mut counters, mut scratch) =
            (Burst::new(), PortCounters::default(), Scratch::default());
        let mut arrivals = RxSink { pool: &mut pool, burst: &mut burst, counters: &mut counters };
        let bytes = header.to_bytes();
        let bytes = bytes.first_chunk().unwrap();
        match tag {
            Some(tag) => arrivals.take_tagged(bytes, frame, tag, &mut scratch),
            None => arrivals.take(bytes, frame, &mut scratch),
        }
        let frames = bytes_of(&mut burst, &mut pool);
        if let (Some(gso), None) = (header.gso, tag) {
            let mut arrivals = RxSink { pool: &mut pool, burst: &mut burst, counters: &mut counters };
            let slot = arrivals.pool.insert(frame).unwrap();
            arrivals.take_whole(gso, slot, &mut scratch);
            let kept = bytes_of(&mut burst, &mut pool);
            assert_eq!((&kept, counters.rx_malformed % 2), (&frames, 0));
            assert_eq!(counters.rx_frames, 2 * frames.len() as u64);
            counters.rx_malformed /= 2;
        }
        assert_eq!(pool.live(), 0);
        (frames, counters.rx_malformed)
    }

    fn bytes_of(burst: &mut Burst, pool: &mut FramePool) -> Vec<Vec<u8>> {
        let bytes = |mut frame: Frame| {
            assert!(pool.copy_out(&mut frame));
            let bytes = pool.bytes(&frame).to_vec();
            pool.free(frame);
            bytes
        };
        burst.drain().map(bytes).collect()
    }

    /// A TCP frame with an unfinished checksum, as the kernel leaves it.
    fn unfinished(payload: usize) -> (VnetHeader, Vec<u8>) {
        let end = |i: u8| (MacAddr([2, 0, 0, 0, 0, i]), std::net::IpAddr::from([10, 0, 0, i]));
        let mut frame = Ip::between(end(1), end(2)).tcp(&Tcp::default(), &vec![0x5a; payload]);
        frame[34 + 16..34 + 18].copy_from_slice(&[0, 0]);
        let checksum = Some(PartialChecksum { start: 34, offset: 16 });
        (VnetHeader { checksum, gso: None, header_len: 54 }, frame)
    }

    #[test]
    fn a_super_packet_comes_in_segments_with_right_checksums_tagged_or_not() {
        let (header, frame) = unfinished(3000);
        let header = VnetHeader { gso: Some(Gso { kind: GsoKind::TcpV4, size: 1400, ecn: false }), ..header };
        for (tag, tag_len) in [(None, 0), (Some([0x8100, 0x2005]), 4)] {
            let (frames, malformed) = taken(header, &frame, tag);
            let lens: Vec<usize> = frames.iter().map(Vec::len).collect();
            assert_eq!((lens, malformed), ([1454, 1454, 254].map(|len| len + tag_len).to_vec(), 0));
            for frame in &frames {
                assert_eq!(check_transport(frame, &Headers::parse(frame)), ChecksumStatus::Good);
                assert!(tag.is_none() || frame[12..16] == [0x81, 0, 0x20, 5]);
            }
        }
    }

    #[test]
    fn a_header_that_contradicts_its_frame_is_counted() {
        let (header, frame) = unfinished(100);
        let gso = |size, kind| Some(Gso { kind, size, ecn: false });
        let outside = Some(PartialChecksum { start: 60_000, offset: 16 });
        for header in [
            VnetHeader { gso: gso(0, GsoKind::TcpV4), ..header },
            VnetHeader { gso: gso(100, GsoKind::TcpV6), ..header },
            VnetHeader { checksum: outside, ..header },
        ] {
            assert_eq!(taken(header, &frame, None), (Vec::new(), 1), "{header:?}");
            assert_eq!(taken(header, &frame[..20], None), (Vec::new(), 1), "{header:?}");
            assert_eq!(taken(header, &frame[..5], Some([0x8100, 1])), (Vec::new(), 1), "{header:?}");
        }
    }

    #[test]
    fn more_segments_than_a_burst_holds_are_counted() {
        let (header, frame) = unfinished(Burst::MAX + 10);
        let header = VnetHeader { gso: Some(Gso { kind: GsoKind::TcpV4, size: 1, ecn: false }), ..header };
        let (frames, _) = taken(header, &frame, None);
        assert_eq!(frames.len(), Burst::MAX);
    }

    #[test]
    fn what_is_missing_is_inferred_from_the_frame_alone() {
        let end = |i: u8| (MacAddr([2, 0, 0, 0, 0, i]), std::net::IpAddr::from([10, 0, 0, i]));
        let whole = Ip::between(end(1), end(2)).tcp(&Tcp::default(), &[0x5a; 100]);
        assert_eq!(infer(&whole, 1500), VnetHeader { header_len: 54, ..VnetHeader::default() });
        let mut long = Ip::between(end(1), end(2)).tcp(&Tcp::default(), &[0x5a; 3000]);
        let pseudo = Sum::pseudo_v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), protocol::TCP, 3020);
        long[34 + 16..34 + 18].copy_from_slice(&pseudo.folded().to_be_bytes());
        let header = infer(&long, 1500);
        assert_eq!(header.gso, Some(Gso { kind: GsoKind::TcpV4, size: 1460, ecn: false }));
        assert_eq!(header.checksum, Some(PartialChecksum { start: 34, offset: 16 }));
        let (frames, malformed) = taken(header, &long, None);
        let lens: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!((lens, malformed), (vec![1514, 1514, 54 + 3000 - 2 * 1460], 0));
        for frame in &frames {
            assert_eq!(check_transport(frame, &Headers::parse(frame)), ChecksumStatus::Good);
        }
        for cut in 0..70 {
            infer(&long[..cut], 1500);
        }
        assert_eq!(infer(&[0xff; 60], 1500), VnetHeader::default());
    }
}
