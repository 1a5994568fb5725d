//! The virtio header, which a TAP or virtio device puts before a frame. It describes partial
//! checksums and super-packets (virtio 1.2 §5.1.6). Read next: `segment.rs`, `coalesce.rs`.

use crate::bytes::{be16, put16};
use crate::checksum::Sum;
use crate::{Headers, NetworkLayer, protocol, sctp};

/// The work that the sender of a frame leaves to the device: checksum and segmentation offload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VnetHeader {
    /// The position of a partial transport checksum, which holds the sum of the pseudo-header.
    pub checksum: Option<PartialChecksum>,
    /// Set if the frame is a super-packet of several segments.
    pub gso: Option<Gso>,
    /// Length of all headers in bytes. This is a hint, which this crate ignores.
    pub header_len: u16,
}

/// The position of a partial checksum: the sum from `start` to the end of the frame belongs at
/// `start + offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartialChecksum {
    /// Offset of the first summed byte in the frame.
    pub start: u16,
    /// Offset of the checksum field from `start`: 16 for TCP, 6 for UDP.
    pub offset: u16,
}

/// The rule by which a super-packet is segmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gso {
    /// The protocols of the super-packet.
    pub kind: GsoKind,
    /// Payload bytes of each segment except the last.
    pub size: u16,
    /// Set if the TCP header has CWR, which belongs on the first segment only.
    pub ecn: bool,
}

/// The protocols of a super-packet. The obsolete UDP fragmentation offload is not supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GsoKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP over IPv4 or IPv6, one datagram per segment.
    Udp,
}

/// Why a virtio header cannot be processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VnetError {
    /// The header has fewer than ten bytes.
    #[error("a virtio network header has 10 bytes, but only {0} are present")]
    Truncated(usize),
    /// The GSO type was not negotiated.
    #[error("GSO type {0:#04x} is not supported; disable that offload")]
    UnknownGso(u8),
    /// The checksum field is outside the frame.
    #[error("the checksum at {start} + {offset} is outside the frame of {len} bytes")]
    ChecksumOutside {
        /// Offset of the first summed byte.
        start: u16,
        /// Offset of the field from `start`.
        offset: u16,
        /// Length of the frame in bytes.
        len: usize,
    },
}

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

impl VnetHeader {
    /// Length of the header that a TAP uses by default, in bytes.
    pub const LEN: usize = 10;
    /// Length of the header with the `num_buffers` field, in bytes.
    pub const LEN_WITH_BUFFERS: usize = 12;

    /// Parses the first ten bytes of a little-endian header; `num_buffers` is ignored.
    pub fn parse(bytes: &[u8]) -> Result<VnetHeader, VnetError> {
        let Some(&[flags, gso_type, ref fields @ ..]) = bytes.first_chunk::<{ VnetHeader::LEN }>() else {
            return Err(VnetError::Truncated(bytes.len()));
        };
        let field = |i: usize| u16::from_le_bytes([fields[i * 2], fields[i * 2 + 1]]);
        let kind = match gso_type & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCP_V4 => Some(GsoKind::TcpV4),
            GSO_TCP_V6 => Some(GsoKind::TcpV6),
            GSO_UDP => Some(GsoKind::Udp),
            _ => return Err(VnetError::UnknownGso(gso_type)),
        };
        let checksum = PartialChecksum { start: field(2), offset: field(3) };
        Ok(VnetHeader {
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some(checksum),
            gso: kind.map(|kind| Gso { kind, size: field(1), ecn: gso_type & GSO_ECN != 0 }),
            header_len: field(0),
        })
    }

    /// Returns the little-endian header with `num_buffers` 0. Its first ten bytes are the short
    /// form.
    pub fn to_bytes(&self) -> [u8; VnetHeader::LEN_WITH_BUFFERS] {
        let flags = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        let (gso_type, size) = self.gso.map_or((GSO_NONE, 0), |gso| (gso.type_byte(), gso.size));
        let (start, offset) = self.checksum.map_or((0, 0), |sum| (sum.start, sum.offset));
        let [a, b] = self.header_len.to_le_bytes();
        let [c, d] = size.to_le_bytes();
        let [e, f] = start.to_le_bytes();
        let [g, h] = offset.to_le_bytes();
        [flags, gso_type, a, b, c, d, e, f, g, h, 0, 0]
    }
}

impl Gso {
    fn type_byte(self) -> u8 {
        let kind = match self.kind {
            GsoKind::TcpV4 => GSO_TCP_V4,
            GsoKind::TcpV6 => GSO_TCP_V6,
            GsoKind::Udp => GSO_UDP,
        };
        if self.ecn { kind | GSO_ECN } else { kind }
    }
}

/// Completes a checksum that the sender left to the device. The field of TCP and UDP holds the sum
/// of the pseudo-header; the content of SCTP's field is ignored. Linux describes an SCTP checksum
/// by its position only, so SCTP is recognised from the headers.
pub fn complete_checksum(frame: &mut [u8], checksum: PartialChecksum) -> Result<(), VnetError> {
    const UDP_FIELD: u16 = 6;
    let PartialChecksum { start, offset } = checksum;
    if usize::from(offset) == sctp::CHECKSUM.start
        && let Some(packet) = sctp_packet(frame, start.into())
    {
        let sum = sctp::checksum(packet);
        packet[sctp::CHECKSUM].copy_from_slice(&sum);
        return Ok(());
    }
    let at = usize::from(start) + usize::from(offset);
    if be16(frame, at).is_none() {
        return Err(VnetError::ChecksumOutside { start, offset, len: frame.len() });
    }
    let sum = Sum::ZERO.bytes(&frame[usize::from(start)..]);
    put16(frame, at, if offset == UDP_FIELD { sum.udp_checksum() } else { sum.checksum() });
    Ok(())
}

/// Returns the SCTP packet that begins at `start`, if there is one.
fn sctp_packet(frame: &mut [u8], start: usize) -> Option<&mut [u8]> {
    let headers = Headers::parse(frame);
    headers
        .transport
        .filter(|transport| (transport.protocol, transport.offset) == (protocol::SCTP, start))?;
    let end = match headers.network {
        NetworkLayer::Ipv4(ip) => ip.end(),
        NetworkLayer::Ipv6(ip) => ip.end(),
        _ => return None,
    };
    frame.get_mut(start..end).filter(|packet| packet.len() >= sctp::CHECKSUM.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddr;
    use crate::build::Ip;
    use crate::checksum::{ChecksumStatus, check_transport};
    use proptest::prelude::*;

    #[test]
    fn an_sctp_checksum_is_completed_as_crc32c() {
        let packet: Vec<u8> = (0..40).collect();
        let ip = Ip::between(
            (MacAddr::from_index(1), [10, 0, 0, 1].into()),
            (MacAddr::from_index(2), [10, 0, 0, 2].into()),
        );
        let mut frame = ip.packet(protocol::SCTP, &packet);
        // The padding of a short frame is not part of the packet.
        frame.extend_from_slice(&[7; 9]);
        let mut finished = frame.clone();
        complete_checksum(&mut finished, PartialChecksum { start: 34, offset: 8 }).unwrap();
        assert_eq!(finished[42..46], sctp::checksum(&packet));
        frame[42..46].copy_from_slice(&sctp::checksum(&packet));
        assert_eq!(finished, frame, "nothing else changes");
    }

    #[test]
    fn a_header_of_the_kernel_is_read_and_written() {
        // TCP over IPv4 with ECN, 66 bytes of headers, GSO size 1448, checksum at 34 + 16.
        let bytes = [1, 0x81, 66, 0, 0xa8, 0x05, 34, 0, 16, 0, 0, 0];
        let header = VnetHeader {
            checksum: Some(PartialChecksum { start: 34, offset: 16 }),
            gso: Some(Gso { kind: GsoKind::TcpV4, size: 1448, ecn: true }),
            header_len: 66,
        };
        assert_eq!(VnetHeader::parse(&bytes), Ok(header));
        assert_eq!(header.to_bytes(), bytes);
        assert_eq!(VnetHeader::parse(&[0; 10]), Ok(VnetHeader::default()));
    }

    #[test]
    fn invalid_and_unsupported_headers_are_rejected() {
        assert_eq!(VnetHeader::parse(&[0; 9]), Err(VnetError::Truncated(9)));
        assert_eq!(VnetHeader::parse(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), Err(VnetError::UnknownGso(3)));
    }

    #[test]
    fn a_partial_checksum_is_completed() {
        let end = |i| (MacAddr::from_index(i), std::net::Ipv4Addr::new(192, 0, 2, i as u8).into());
        let good = Ip::between(end(1), end(2)).udp(1, 2, b"odd");
        let mut frame = good.clone();
        let pseudo = Sum::pseudo_v4([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 17, 11).folded();
        put16(&mut frame, 40, pseudo);
        assert_eq!(check_transport(&frame, &Headers::parse(&frame)), ChecksumStatus::Bad);
        assert_eq!(complete_checksum(&mut frame, PartialChecksum { start: 34, offset: 6 }), Ok(()));
        assert_eq!(frame, good);
    }

    proptest! {
        #[test]
        fn random_headers_and_positions_never_panic(bytes: [u8; 12], len in 0usize..100) {
            if let Ok(header) = VnetHeader::parse(&bytes) {
                prop_assert_eq!(VnetHeader::parse(&header.to_bytes()), Ok(header));
                if let Some(checksum) = header.checksum {
                    let fits = usize::from(checksum.start) + usize::from(checksum.offset) + 2 <= len;
                    prop_assert_eq!(complete_checksum(&mut vec![0; len], checksum).is_ok(), fits);
                }
            }
        }
    }
}
