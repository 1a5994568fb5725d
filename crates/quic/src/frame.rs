//! The datagrams of QUIC as frames, and back.

use fastpath_wire::build::Ip;
use fastpath_wire::{Headers, protocol};
use std::net::SocketAddr;

const UDP: usize = 8;

/// A UDP datagram in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivedDatagram<'f> {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// The bits of ECN in its IP header.
    pub(crate) ecn: u8,
    pub(crate) payload: &'f [u8],
}

impl<'f> ArrivedDatagram<'f> {
    /// Reads a frame. `None` if it has no whole UDP datagram.
    pub(crate) fn parse(frame: &'f [u8]) -> Option<ArrivedDatagram<'f>> {
        let headers = Headers::parse(frame);
        let udp = headers.transport.filter(|transport| transport.protocol == protocol::UDP)?;
        let (from, to) = headers.addresses()?;
        let len = frame.get(udp.offset + 4..udp.offset + 6)?;
        let end = udp.offset + usize::from(u16::from_be_bytes([len[0], len[1]]));
        if headers.packet_end()? < end {
            return None;
        }
        Some(ArrivedDatagram {
            from: SocketAddr::new(from, udp.src_port),
            to: SocketAddr::new(to, udp.dst_port),
            ecn: headers.traffic_class() & 3,
            payload: frame.get(udp.offset + UDP..end)?,
        })
    }
}

/// Returns the frame of a datagram from a port to a port.
pub(crate) fn datagram(ip: Ip, ports: [u16; 2], ecn: u8, payload: &[u8]) -> Vec<u8> {
    let ip = Ip { traffic_class: ip.traffic_class & !3 | ecn, ..ip };
    ip.udp(ports[0], ports[1], payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_wire::MacAddr;
    use fastpath_wire::checksum::{ChecksumStatus, check_transport};

    #[test]
    fn frames_and_back() {
        for addresses in [["10.0.0.1", "10.0.0.2"], ["2001:db8::1", "2001:db8::2"]] {
            let [from, to] = addresses.map(|address| (MacAddr([2, 0, 0, 0, 0, 1]), address.parse().unwrap()));
            let ip = Ip { traffic_class: 46 << 2, ..Ip::between(from, to) };
            let mut frame = datagram(ip, [49_152, 5001], 2, b"hello");
            assert_eq!(check_transport(&frame, &Headers::parse(&frame)), ChecksumStatus::Good);
            assert_eq!(Headers::parse(&frame).traffic_class(), 46 << 2 | 2);
            // As Ethernet pads.
            frame.extend_from_slice(&[0; 9]);
            let read = ArrivedDatagram::parse(&frame).unwrap();
            assert_eq!((read.payload, read.ecn), (&b"hello"[..], 2));
            assert_eq!((read.from.ip(), read.from.port()), (from.1, 49_152));
            assert_eq!((read.to, ip.destination()), (SocketAddr::new(to.1, 5001), to.1));
            assert!(ArrivedDatagram::parse(&frame[..frame.len() - 10]).is_none());
        }
    }
}
