//! Packets of captures without Ethernet headers as Ethernet frames: those of tunnels and
//! [`WireGuard`], of `tcpdump -i any`, loopback interfaces of BSD and macOS, and PPP.
//!
//! The link types and their headers are those of <https://www.tcpdump.org/linktypes.html>. What is
//! put in front is a header from 02:00:00:00:00:01 to 02:00:00:00:00:02.
//!
//! [`WireGuard`]: https://www.wireguard.com

use super::{LINKTYPE_ETHERNET, Packet};

/// Addresses of the header that is put in front, destination first.
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Smaller numbers in the place of an EtherType are lengths or kinds of Linux's own.
const ETHERTYPE_MIN: u16 = 0x0600;

impl Packet<'_> {
    /// Puts the Ethernet frame of the packet in `frame`, and returns its length on the wire, at
    /// least that of `frame`. A packet of a link type without Ethernet headers gets a header.
    /// `None`, and nothing in `frame`, for what is neither Ethernet nor a network-layer packet.
    pub fn ethernet(&self, frame: &mut Vec<u8>) -> Option<usize> {
        frame.clear();
        let orig_len = self.orig_len as usize;
        if self.link_type == LINKTYPE_ETHERNET {
            frame.extend_from_slice(self.data);
            return Some(orig_len);
        }
        let (skipped, ethertype) = network_layer(self.link_type, self.data)?;
        frame.extend_from_slice(&ADDRESSES);
        frame.extend_from_slice(&ethertype.to_be_bytes());
        frame.extend_from_slice(&self.data[skipped..]);
        Some((orig_len.saturating_sub(skipped) + ADDRESSES.len() + 2).max(frame.len()))
    }
}

/// Returns where the packet of the network layer starts, and its EtherType.
fn network_layer(link_type: u16, data: &[u8]) -> Option<(usize, u16)> {
    let be16 = |at: usize| Some(u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?));
    let be32 = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
    let (skipped, ethertype) = match link_type {
        // NULL: the address family in the byte order of its machine.
        0 => (4, of_family(be32(0)?).or_else(|| of_family(be32(0)?.swap_bytes()))?),
        // LOOP of OpenBSD.
        108 => (4, of_family(be32(0)?)?),
        // PPP with or without its HDLC-like framing (RFC 1662 §3.1).
        9 | 50 => {
            let start = if data.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
            match be16(start)? {
                0x0021 => (start + 2, IPV4),
                0x0057 => (start + 2, IPV6),
                _ => return None,
            }
        }
        // RAW, with the numbers of BSDs.
        12 | 14 | 101 => match data.first()? >> 4 {
            4 => (0, IPV4),
            6 => (0, IPV6),
            _ => return None,
        },
        // Linux cooked capture.
        113 => (16, be16(14)?),
        228 => (0, IPV4),
        229 => (0, IPV6),
        // Linux cooked capture v2.
        276 => (20, be16(0)?),
        _ => return None,
    };
    (skipped <= data.len() && ethertype >= ETHERTYPE_MIN).then_some((skipped, ethertype))
}

/// The EtherType of an address family: AF_INET, and AF_INET6 of BSDs, macOS and Linux.
fn of_family(family: u32) -> Option<u16> {
    match family {
        2 => Some(IPV4),
        10 | 24 | 28 | 30 => Some(IPV6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(link_type: u16, data: &[u8]) -> Option<(usize, Vec<u8>)> {
        let mut frame = vec![9];
        let orig_len = data.len() as u32 + 100;
        let packet = Packet { ns: None, orig_len, interface: 0, link_type, data };
        let len = packet.ethernet(&mut frame);
        assert!(len.is_some() || frame.is_empty());
        Some((len?, frame))
    }

    #[test]
    fn packets_of_the_network_layer_get_a_header() {
        let (v4, v6) = ([0x45, 1, 2, 3], [0x60, 1, 2, 3]);
        let sll = [&[0; 14][..], &[8, 0]].concat();
        let sll2 = [&[0x86, 0xdd][..], &[0; 18]].concat();
        let cases: [(u16, &[u8], &[u8; 4], u16); 14] = [
            (0, &[2, 0, 0, 0], &v4, IPV4),
            (0, &[0, 0, 0, 2], &v4, IPV4),
            (0, &[30, 0, 0, 0], &v6, IPV6),
            (108, &[0, 0, 0, 24], &v6, IPV6),
            (9, &[0xff, 3, 0, 0x21], &v4, IPV4),
            (9, &[0, 0x57], &v6, IPV6),
            (50, &[0xff, 3, 0, 0x57], &v6, IPV6),
            (12, &[], &v4, IPV4),
            (101, &[], &v4, IPV4),
            (101, &[], &v6, IPV6),
            (113, &sll, &v4, IPV4),
            (228, &[], &v4, IPV4),
            (229, &[], &v6, IPV6),
            (276, &sll2, &v6, IPV6),
        ];
        for (link_type, before, packet, ethertype) in cases {
            let (len, frame) = frame(link_type, &[before, packet].concat()).expect("a frame");
            let header = [&ADDRESSES[..], &ethertype.to_be_bytes()].concat();
            assert_eq!(frame, [&header[..], packet].concat(), "link type {link_type}");
            assert_eq!(len, 14 + 4 + 100, "link type {link_type}");
        }
    }

    #[test]
    fn ethernet_stays_and_other_packets_are_none() {
        assert_eq!(frame(LINKTYPE_ETHERNET, &[1, 2, 3]), Some((103, vec![1, 2, 3])));
        // 802.11, LCP of PPP, a raw packet of no version, a length in the place of an EtherType.
        for (link_type, data) in [
            (105, &[0x45; 40][..]),
            (9, &[0xc0, 0x21, 1]),
            (101, &[0x10; 20]),
            (113, &[0; 16]),
            (276, &[8, 0]),
            (0, &[]),
        ] {
            assert_eq!(frame(link_type, data), None, "link type {link_type}");
        }
    }
}
