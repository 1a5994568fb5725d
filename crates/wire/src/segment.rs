//! Splits super-packets into segments, as a network card does with a TSO or USO frame. A link can
//! then count, delay and lose each segment separately.
//!
//! The kernels of the hosts send TCP in frames of up to 64 KiB. Only the outermost IP header is
//! parsed: tunnels are not supported. Read first: `vnet.rs`.

use crate::bytes::{be16, be32, put16, put32};
use crate::checksum::{self, Sum};
use crate::vnet::{Gso, GsoKind, PartialChecksum, VnetError, VnetHeader, complete_checksum};
use crate::{Headers, NetworkLayer, build::tcp_flags, protocol};
use std::ops::Range;

/// Why a super-packet cannot be segmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The headers contradict the virtio header, or are incomplete.
    #[error("the frame is not a complete {0:?} super-packet")]
    Mismatch(GsoKind),
    /// The GSO size is zero.
    #[error("the super-packet has a GSO size of zero")]
    ZeroSize,
    /// The checksum to complete is outside the frame.
    #[error(transparent)]
    Checksum(#[from] VnetError),
}

/// A validated super-packet. Its segments are numbered from 0; each can be written to any buffer.
pub struct SuperPacket<'a> {
    layout: Layout,
    kind: GsoKind,
    size: usize,
    headers: &'a [u8],
    payload: &'a [u8],
}

/// The positions of the fields that differ between segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Offset of the IP header.
    pub(crate) ip: usize,
    /// Offset of the transport header.
    pub(crate) transport: usize,
    /// Length of all headers in bytes.
    pub(crate) header_len: usize,
    /// Network and transport protocol.
    pub(crate) kind: Kind,
    /// The sum of the pseudo-header without its length field.
    pseudo: Sum,
}

/// The network and transport protocol of a super-packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) network: IpVersion,
    pub(crate) transport: GsoTransport,
}

/// The version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IpVersion {
    V4,
    V6,
}

/// The transport protocols that can be segmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GsoTransport {
    Tcp,
    Udp,
}

/// Splits a frame read from a TAP. Calls `emit` for each segment of a super-packet in order, or
/// once for any other frame, with its checksum completed. `scratch` is a buffer for one segment; it
/// allocates only until it has its final size. A super-packet has at most 65 535 segments.
pub fn segment(
    frame: &[u8],
    header: &VnetHeader,
    scratch: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8]),
) -> Result<(), SegmentError> {
    if let Some(gso) = header.gso {
        let packet = SuperPacket::new(frame, gso)?;
        for i in 0..packet.count() {
            scratch.resize(packet.len_of(i), 0);
            packet.write(i, scratch);
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
    /// Validates that `frame` matches `gso` of its virtio header. The checksum fields are ignored.
    pub fn new(frame: &'a [u8], gso: Gso) -> Result<SuperPacket<'a>, SegmentError> {
        if gso.size == 0 {
            return Err(SegmentError::ZeroSize);
        }
        let parsed = Headers::parse(frame);
        let layout = Layout::of(frame, &parsed).filter(|layout| layout.kind.is(gso.kind));
        let (Some(layout), Some(end)) = (layout, parsed.packet_end()) else {
            return Err(SegmentError::Mismatch(gso.kind));
        };
        let (headers, payload) = frame[..end].split_at(layout.header_len);
        Ok(SuperPacket { layout, kind: gso.kind, size: gso.size.into(), headers, payload })
    }

    /// Returns the number of segments, at least one.
    #[inline]
    pub fn count(&self) -> usize {
        self.payload.len().div_ceil(self.size).max(1)
    }

    /// Returns the length of the headers, which each segment repeats, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        self.headers.len()
    }

    /// Returns the length of the whole payload in bytes.
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// Returns the length of the `i`-th segment in bytes.
    #[inline]
    pub fn len_of(&self, i: usize) -> usize {
        let from = i * self.size;
        self.headers.len() + self.payload.len().min(from + self.size) - from
    }

    /// Writes the `i`-th segment with correct checksums to `out`, which must have the length of the
    /// segment ([`SuperPacket::len_of`]).
    #[inline]
    pub fn write(&self, i: usize, out: &mut [u8]) {
        let payload = self.payload_of(i..i + 1);
        let len = self.headers.len();
        out[..len].copy_from_slice(self.headers);
        out[len..].copy_from_slice(payload);
        self.set_fields(i..i + 1, out, len + payload.len());
        self.layout.complete_checksum(out);
    }

    /// Returns a range of segments, at least one, as a packet: its virtio header for the receiving
    /// kernel, and its payload, which is not copied. Replaces the content of `headers` by the
    /// headers of that packet.
    #[inline]
    pub fn part(&self, segments: Range<usize>, headers: &mut Vec<u8>) -> (VnetHeader, &'a [u8]) {
        let payload = self.payload_of(segments.clone());
        headers.clear();
        headers.extend_from_slice(self.headers);
        self.set_fields(segments.clone(), headers, self.headers.len() + payload.len());
        let ecn = self.layout.has_flag(headers, tcp_flags::CWR);
        let gso = Gso { kind: self.kind, size: self.size as u16, ecn };
        (self.layout.vnet_header((segments.len() > 1).then_some(gso)), payload)
    }

    fn payload_of(&self, segments: Range<usize>) -> &'a [u8] {
        &self.payload[segments.start * self.size..self.payload.len().min(segments.end * self.size)]
    }

    /// Turns a copy of the super-packet's headers into the headers of a packet of `len` bytes that
    /// consists of `segments`. Its transport checksum field holds the sum of the pseudo-header.
    fn set_fields(&self, segments: Range<usize>, headers: &mut [u8], len: usize) {
        let layout = &self.layout;
        layout.set_lengths(headers, len);
        if layout.kind.network == IpVersion::V4 {
            let id = be16(headers, layout.ip + 4).unwrap_or(0);
            put16(headers, layout.ip + 4, id.wrapping_add(segments.start as u16));
            layout.set_header_checksum(headers);
        }
        if layout.kind.transport == GsoTransport::Tcp {
            let seq = be32(headers, layout.transport + 4).unwrap_or(0);
            put32(headers, layout.transport + 4, seq.wrapping_add((segments.start * self.size) as u32));
            // RFC 3168 §6.1.2: CWR is set on the first segment only. FIN and PSH apply to the last
            // byte.
            let not_first = if segments.start > 0 { tcp_flags::CWR } else { 0 };
            let not_last = if segments.end < self.count() { tcp_flags::FIN | tcp_flags::PSH } else { 0 };
            headers[layout.transport + 13] &= !(not_first | not_last);
        }
        layout.start_checksum(headers, len);
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
    /// Returns the layout of a complete TCP or UDP packet, or `None` for other frames.
    pub(crate) fn of(frame: &[u8], headers: &Headers) -> Option<Layout> {
        let (transport, end) = (headers.transport?, headers.packet_end()?);
        let (network, ip, is_fragment, pseudo) = match headers.network {
            NetworkLayer::Ipv4(ip) => (
                IpVersion::V4,
                ip.offset,
                ip.is_fragment(),
                Sum::pseudo_v4(ip.src, ip.dst, transport.protocol, 0),
            ),
            NetworkLayer::Ipv6(ip) => (
                IpVersion::V6,
                ip.offset,
                ip.is_fragment(),
                Sum::pseudo_v6(ip.src, ip.dst, transport.protocol, 0),
            ),
            NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => return None,
        };
        let (kind, len, len_min) = match transport.protocol {
            protocol::TCP => (GsoTransport::Tcp, usize::from(frame.get(transport.offset + 12)? >> 4) * 4, 20),
            protocol::UDP => (GsoTransport::Udp, 8, 8),
            _ => return None,
        };
        let header_len = transport.offset + len;
        if is_fragment || len < len_min || header_len > end || end > frame.len() {
            return None;
        }
        let kind = Kind { network, transport: kind };
        Some(Layout { ip, transport: transport.offset, header_len, kind, pseudo })
    }

    /// Returns the virtio header of a packet with this layout and a partial transport checksum.
    pub(crate) fn vnet_header(&self, gso: Option<Gso>) -> VnetHeader {
        let checksum =
            PartialChecksum { start: self.transport as u16, offset: self.checksum_offset() as u16 };
        VnetHeader { checksum: Some(checksum), gso, header_len: self.header_len as u16 }
    }

    /// Returns whether a TCP flag is set in `headers`.
    fn has_flag(&self, headers: &[u8], flag: u8) -> bool {
        self.kind.transport == GsoTransport::Tcp && headers[self.transport + 13] & flag != 0
    }

    /// Sets the length fields of IP and UDP for a frame of `len` bytes. `frame` holds the headers.
    pub(crate) fn set_lengths(&self, frame: &mut [u8], len: usize) {
        match self.kind.network {
            IpVersion::V4 => put16(frame, self.ip + 2, (len - self.ip) as u16),
            IpVersion::V6 => put16(frame, self.ip + 4, (len - self.ip - 40) as u16),
        }
        if self.kind.transport == GsoTransport::Udp {
            put16(frame, self.transport + 4, (len - self.transport) as u16);
        }
    }

    /// Computes the IPv4 header checksum from scratch.
    pub(crate) fn set_header_checksum(&self, frame: &mut [u8]) {
        let header = &mut frame[self.ip..self.transport];
        put16(header, 10, 0);
        let sum = checksum::of(header);
        put16(header, 10, sum);
    }

    /// Writes the sum of the pseudo-header to the transport checksum field of a frame of `len`
    /// bytes. A device completes the checksum.
    pub(crate) fn start_checksum(&self, frame: &mut [u8], len: usize) {
        let len = (len - self.transport) as u32;
        put16(frame, self.transport + self.checksum_offset(), self.pseudo.word32(len).folded());
    }

    fn complete_checksum(&self, frame: &mut [u8]) {
        let len = frame.len();
        self.start_checksum(frame, len);
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
