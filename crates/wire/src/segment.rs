//! Super-packets into segments: what a network card does to a TSO or USO frame, done right here, so that a
//! link can count, delay and lose every segment by itself.
//!
//! The hosts' kernels hand over TCP in frames of up to 64 KiB. [`segment`] writes out each segment;
//! [`SuperPacket`] also tells their lengths without writing, and writes a run of them as a smaller super-packet.
//! Only the outermost IP header is understood: no tunnels, no IPv6 extension headers before the transport
//! header other than those `Headers` skips. Read first: `vnet.rs`.

use crate::bytes::{be16, be32, put16, put32};
use crate::checksum::{self, Sum};
use crate::vnet::{Gso, GsoKind, PartialChecksum, VnetError, VnetHeader, complete_checksum};
use crate::{Headers, Network, build::tcp_flags, protocol};
use std::ops::Range;

/// Why a super-packet cannot be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SegmentError {
    /// The headers are not those its virtio header says, or are not all there.
    #[error("the super-packet is not a whole {0:?} packet")]
    Mismatch(GsoKind),
    /// Segments without payload.
    #[error("the super-packet says zero bytes a segment")]
    ZeroSize,
    /// The checksum to finish is outside the frame.
    #[error(transparent)]
    Checksum(#[from] VnetError),
}

/// A super-packet, ready to be cut into segments numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct SuperPacket<'a> {
    layout: Layout,
    gso: Gso,
    headers: &'a [u8],
    payload: &'a [u8],
}

/// Where the fields are that differ from segment to segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Offset of the IP header.
    pub(crate) ip: usize,
    /// Offset of the transport header.
    pub(crate) transport: usize,
    /// Bytes of all headers.
    pub(crate) header_len: usize,
    /// Which fields there are.
    pub(crate) kind: Kind,
    /// The pseudo-header but for its length.
    pseudo: Sum,
}

/// Network and transport protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) network: IpVersion,
    pub(crate) transport: GsoTransport,
}

/// Version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IpVersion {
    V4,
    V6,
}

/// Transports that can be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GsoTransport {
    Tcp,
    Udp,
}

/// Writes what a frame from a TAP stands for: its segments when it is a super-packet, otherwise the frame itself
/// with its checksum finished. Each goes through `scratch` (reused, so nothing is allocated once it has grown)
/// to `emit`, in order. At most 65 535 segments.
pub fn segment(
    frame: &[u8],
    header: &VnetHeader,
    scratch: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8]),
) -> Result<(), SegmentError> {
    if let Some(gso) = header.gso {
        let packet = SuperPacket::new(frame, gso)?;
        for i in 0..packet.count() {
            packet.write_segment(i, scratch);
            emit(scratch);
        }
    } else {
        scratch.clear();
        scratch.extend_from_slice(frame);
        if let Some(checksum) = header.checksum {
            complete_checksum(scratch, checksum)?;
        }
        emit(scratch);
    }
    Ok(())
}

impl<'a> SuperPacket<'a> {
    /// Checks that `frame` is what its virtio header says. Whatever the checksum fields hold is not used.
    pub fn new(frame: &'a [u8], gso: Gso) -> Result<SuperPacket<'a>, SegmentError> {
        let headers = Headers::parse(frame);
        let layout = Layout::of(frame, &headers).filter(|layout| layout.kind.is(gso.kind));
        let layout = layout.ok_or(SegmentError::Mismatch(gso.kind))?;
        if gso.size == 0 {
            return Err(SegmentError::ZeroSize);
        }
        let end = match headers.network {
            Network::Ipv4(ip) => ip.end(),
            Network::Ipv6(ip) => ip.end(),
            _ => return Err(SegmentError::Mismatch(gso.kind)),
        };
        let (headers, payload) = frame[..end].split_at(layout.header_len);
        Ok(SuperPacket { layout, gso, headers, payload })
    }

    /// How many segments it has, at least one.
    pub fn count(&self) -> usize {
        self.payload.len().div_ceil(self.gso.size.into()).max(1)
    }

    /// Bytes of the `i`-th segment as a frame.
    pub fn segment_len(&self, i: usize) -> usize {
        self.headers.len() + self.payload_of(i..i + 1).len()
    }

    /// Writes the `i`-th segment, all checksums right, in place of what `out` holds.
    pub fn write_segment(&self, i: usize, out: &mut Vec<u8>) {
        self.write(i..i + 1, out);
        self.layout.complete_checksum(out);
    }

    /// Writes a run of segments as a super-packet of its own, in place of what `out` holds, its transport checksum
    /// left unfinished as the header says.
    pub fn write_segments(&self, range: Range<usize>, out: &mut Vec<u8>) -> VnetHeader {
        self.write(range.clone(), out);
        self.layout.start_checksum(out);
        let ecn = self.gso.ecn && range.start == 0;
        let gso = (range.len() > 1).then_some(Gso { ecn, ..self.gso });
        self.layout.vnet_header(gso)
    }

    /// Headers and payload of a run of segments, transport checksum not yet.
    fn write(&self, range: Range<usize>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.headers);
        out.extend_from_slice(self.payload_of(range.clone()));
        let layout = &self.layout;
        layout.set_lengths(out);
        if layout.kind.network == IpVersion::V4 {
            let id = be16(out, layout.ip + 4).unwrap_or(0);
            put16(out, layout.ip + 4, id.wrapping_add(range.start as u16));
            layout.set_header_checksum(out);
        }
        if layout.kind.transport == GsoTransport::Tcp {
            let seq = be32(out, layout.transport + 4).unwrap_or(0);
            let skipped = range.start * usize::from(self.gso.size);
            put32(out, layout.transport + 4, seq.wrapping_add(skipped as u32));
            // RFC 3168 §6.1.2: CWR says something once. FIN and PSH belong to the last byte.
            let not_first = if range.start > 0 { tcp_flags::CWR } else { 0 };
            let not_last = if range.end < self.count() { tcp_flags::FIN | tcp_flags::PSH } else { 0 };
            out[layout.transport + 13] &= !(not_first | not_last);
        }
    }

    fn payload_of(&self, range: Range<usize>) -> &'a [u8] {
        let at = |i: usize| (i * usize::from(self.gso.size)).min(self.payload.len());
        &self.payload[at(range.start)..at(range.end)]
    }
}

impl Kind {
    fn is(self, gso: GsoKind) -> bool {
        matches!(
            (gso, self.network, self.transport),
            (GsoKind::TcpV4, IpVersion::V4, GsoTransport::Tcp)
                | (GsoKind::TcpV6, IpVersion::V6, GsoTransport::Tcp)
                | (GsoKind::Udp, _, GsoTransport::Udp)
        )
    }
}

impl Layout {
    /// The layout of a whole TCP or UDP packet; `None` for anything else.
    pub(crate) fn of(frame: &[u8], headers: &Headers) -> Option<Layout> {
        let (network, ip, end, is_fragment) = match headers.network {
            Network::Ipv4(ip) => (IpVersion::V4, ip.offset, ip.end(), ip.is_fragment()),
            Network::Ipv6(ip) => (IpVersion::V6, ip.offset, ip.end(), ip.is_fragment()),
            Network::Arp | Network::Other | Network::Malformed(_) => return None,
        };
        let transport = headers.transport?;
        let (kind, len) = match transport.protocol {
            protocol::TCP => (GsoTransport::Tcp, usize::from(frame.get(transport.offset + 12)? >> 4) * 4),
            protocol::UDP => (GsoTransport::Udp, 8),
            _ => return None,
        };
        let len_min = if kind == GsoTransport::Tcp { 20 } else { 8 };
        let header_len = transport.offset + len;
        if is_fragment || len < len_min || header_len > end || end > frame.len() {
            return None;
        }
        let pseudo = match headers.network {
            Network::Ipv4(ip) => Sum::pseudo_v4(ip.src, ip.dst, transport.protocol, 0),
            Network::Ipv6(ip) => Sum::pseudo_v6(ip.src, ip.dst, transport.protocol, 0),
            _ => return None,
        };
        let kind = Kind { network, transport: kind };
        Some(Layout { ip, transport: transport.offset, header_len, kind, pseudo })
    }

    /// The virtio header of a packet of this layout whose transport checksum is unfinished.
    pub(crate) fn vnet_header(&self, gso: Option<Gso>) -> VnetHeader {
        let checksum =
            PartialChecksum { start: self.transport as u16, offset: self.checksum_offset() as u16 };
        VnetHeader { checksum: Some(checksum), gso, header_len: self.header_len as u16 }
    }

    /// Makes the length fields of IP and UDP those of the frame.
    pub(crate) fn set_lengths(&self, frame: &mut [u8]) {
        let len = frame.len();
        match self.kind.network {
            IpVersion::V4 => put16(frame, self.ip + 2, (len - self.ip) as u16),
            IpVersion::V6 => put16(frame, self.ip + 4, (len - self.ip - 40) as u16),
        }
        if self.kind.transport == GsoTransport::Udp {
            put16(frame, self.transport + 4, (len - self.transport) as u16);
        }
    }

    /// Computes the IPv4 header checksum anew.
    pub(crate) fn set_header_checksum(&self, frame: &mut [u8]) {
        let header = &mut frame[self.ip..self.transport];
        put16(header, 10, 0);
        let sum = checksum::of(header);
        put16(header, 10, sum);
    }

    /// Puts the sum of the pseudo-header in the transport checksum field, the rest to be done by a device.
    pub(crate) fn start_checksum(&self, frame: &mut [u8]) {
        let len = (frame.len() - self.transport) as u32;
        put16(frame, self.transport + self.checksum_offset(), self.pseudo.word32(len).folded());
    }

    fn complete_checksum(&self, frame: &mut [u8]) {
        self.start_checksum(frame);
        let sum = Sum::ZERO.bytes(&frame[self.transport..]);
        let sum = match self.kind.transport {
            GsoTransport::Tcp => sum.checksum(),
            GsoTransport::Udp => sum.udp_checksum(),
        };
        put16(frame, self.transport + self.checksum_offset(), sum);
    }

    fn checksum_offset(&self) -> usize {
        match self.kind.transport {
            GsoTransport::Tcp => 16,
            GsoTransport::Udp => 6,
        }
    }
}
