//! The header a TAP or virtio device puts before a frame: unfinished checksums and super-packets
//! (virtio 1.2 §5.1.6). Read next: `segment.rs`, `coalesce.rs`.

use crate::bytes::{be16, put16};
use crate::checksum::Sum;
use crate::{Headers, Network, protocol, sctp};

/// What the sender left for the device to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VnetHeader {
    /// A transport checksum that holds only the sum of its pseudo-header so far.
    pub checksum: Option<PartialChecksum>,
    /// The frame is many segments in one.
    pub gso: Option<Gso>,
    /// Bytes of all headers, as a hint; nothing here relies on it.
    pub header_len: u16,
}

/// Where an unfinished checksum is: the sum from `start` to the end of the frame goes to `start +
/// offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartialChecksum {
    /// First byte summed, from the start of the frame.
    pub start: u16,
    /// The field, in bytes from `start`: 16 for TCP, 6 for UDP.
    pub offset: u16,
}

/// How a super-packet is to be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gso {
    /// The protocol whose header every segment repeats.
    pub kind: GsoKind,
    /// Payload bytes of every segment but the last.
    pub size: u16,
    /// CWR is set and belongs on the first segment alone.
    pub ecn: bool,
}

/// The protocol of a super-packet. The obsolete UDP fragmentation offload is not among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GsoKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP over either, one datagram per segment.
    Udp,
}

/// Why a virtio header cannot be honoured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VnetError {
    /// Fewer than ten bytes.
    #[error("a virtio network header has 10 bytes, here are {0}")]
    Truncated(usize),
    /// A sort of super-packet that was not negotiated.
    #[error("gso type {0:#04x} is not known; leave that offload off")]
    UnknownGso(u8),
    /// The checksum field is not inside the frame.
    #[error("the checksum at {start} + {offset} is outside the frame of {len} bytes")]
    ChecksumOutside {
        /// First byte summed.
        start: u16,
        /// The field, from there.
        offset: u16,
        /// Bytes of the frame.
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
    /// Bytes of the header a TAP uses by default.
    pub const LEN: usize = 10;
    /// Bytes of the header with the `num_buffers` field.
    pub const LEN_WITH_BUFFERS: usize = 12;

    /// Reads a little-endian header from its first ten bytes; `num_buffers` is not needed.
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

    /// The little-endian header with `num_buffers` 0; the first ten bytes are the short form.
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

/// Finishes a checksum that the sender left to the device: the field holds the sum of the
/// pseudo-header, or is of no meaning if it is SCTP's. (Linux says of that too only where it
/// stands.)
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

/// The SCTP packet that begins at `start`, if there is one.
fn sctp_packet(frame: &mut [u8], start: usize) -> Option<&mut [u8]> {
    let headers = Headers::parse(frame);
    headers
        .transport
        .filter(|transport| (transport.protocol, transport.offset) == (protocol::SCTP, start))?;
    let end = match headers.network {
        Network::Ipv4(ip) => ip.end(),
        Network::Ipv6(ip) => ip.end(),
        _ => return None,
    };
    frame.get_mut(start..end).filter(|packet| packet.len() >= sctp::CHECKSUM.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddr;
    use crate::build::Ip;
    use crate::checksum::{Check, check_transport};
    use proptest::prelude::*;

    #[test]
    fn sctp_has_its_own_checksum() {
        let packet: Vec<u8> = (0..40).collect();
        let ip = Ip::between(
            (MacAddr::from_index(1), [10, 0, 0, 1].into()),
            (MacAddr::from_index(2), [10, 0, 0, 2].into()),
        );
        let mut frame = ip.packet(protocol::SCTP, &packet);
        // What pads a short frame is not of the packet.
        frame.extend_from_slice(&[7; 9]);
        let mut finished = frame.clone();
        complete_checksum(&mut finished, PartialChecksum { start: 34, offset: 8 }).unwrap();
        assert_eq!(finished[42..46], sctp::checksum(&packet));
        frame[42..46].copy_from_slice(&sctp::checksum(&packet));
        assert_eq!(finished, frame, "nothing else changes");
    }

    #[test]
    fn a_header_of_the_kernel_is_read_and_written() {
        // TCPv4 super-packet with ECN, 66 bytes of headers, 1448 a segment, checksum at 34 + 16.
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
    fn headers_that_cannot_be_honoured_are_refused() {
        assert_eq!(VnetHeader::parse(&[0; 9]), Err(VnetError::Truncated(9)));
        assert_eq!(VnetHeader::parse(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), Err(VnetError::UnknownGso(3)));
    }

    #[test]
    fn an_unfinished_checksum_is_finished() {
        let end = |i| (MacAddr::from_index(i), std::net::Ipv4Addr::new(192, 0, 2, i as u8).into());
        let good = Ip::between(end(1), end(2)).udp(1, 2, b"odd");
        let mut frame = good.clone();
        let pseudo = Sum::pseudo_v4([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 17, 11).folded();
        put16(&mut frame, 40, pseudo);
        assert_eq!(check_transport(&frame, &Headers::parse(&frame)), Check::Bad);
        assert_eq!(complete_checksum(&mut frame, PartialChecksum { start: 34, offset: 6 }), Ok(()));
        assert_eq!(frame, good);
    }

    proptest! {
        #[test]
        fn random_headers_and_places_never_panic(bytes: [u8; 12], len in 0usize..100) {
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
