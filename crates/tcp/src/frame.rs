//! Segments as frames, and back. The payload is zero, and so costs nothing in checksums.
//!
//! ```text
//!  Ethernet │ IP │ TCP: options NOP NOP TS, SACK; in a SYN: MSS, SACK permitted, TS, NOP WS │ 0 0 0 …
//! ```

use crate::segment::{SACK_BLOCKS, Segment};
use fastpath_wire::build::{Addresses, Ip, tcp_flags};
use fastpath_wire::checksum::{self, Sum};
use fastpath_wire::{ethertype, protocol};
use std::net::IpAddr;

const ETHERNET: usize = 14;
const TCP: usize = 20;
/// Bytes of the longest option part.
const OPTIONS_MAX: usize = 40;
/// Windows are in units of 128 bytes, but in a SYN (RFC 7323 §2).
const WINDOW_SCALE: u8 = 7;
/// Kinds of options (RFC 9293 §3.2, RFC 2018, RFC 7323).
const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMP: u8 = 8;

/// The frames of one end of a connection.
#[derive(Clone, Debug)]
pub struct FrameForm {
    ip: Ip,
    ports: [u16; 2],
    mss: u32,
    initial: [u32; 2],
    /// A frame; behind its headers all is zero.
    frame: Vec<u8>,
    ip_len: usize,
}

impl FrameForm {
    /// Frames with these addresses, from a port to a port. `initial`: the sequence numbers of the
    /// SYNs of this end and of the other.
    ///
    /// # Panics
    /// The segments are longer than an IP packet.
    pub fn new(ip: Ip, ports: [u16; 2], mss: u32, initial: [u32; 2]) -> FrameForm {
        let ip_len = ip.header_len();
        let mut frame = ip.packet(protocol::TCP, &vec![0; TCP + OPTIONS_MAX + mss as usize]);
        frame.resize(ETHERNET + ip_len + TCP + OPTIONS_MAX + mss as usize, 0);
        FrameForm { ip, ports, mss, initial, frame, ip_len }
    }

    /// Returns the address they are sent to.
    pub fn destination(&self) -> IpAddr {
        self.ip.destination()
    }

    /// Returns the frame of a segment.
    pub fn write(&mut self, segment: &Segment) -> &[u8] {
        let (options, options_len) = self.options(segment);
        let tcp_at = ETHERNET + self.ip_len;
        let header = TCP + options_len;
        let len = header + segment.len as usize;
        self.write_ip(len, segment.ecn);
        let flags = [
            (segment.fin, tcp_flags::FIN),
            (segment.syn, tcp_flags::SYN),
            (segment.ack.is_some(), tcp_flags::ACK),
            (segment.ece, tcp_flags::ECE),
            (segment.cwr, tcp_flags::CWR),
        ];
        let flags = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
        let scale = if segment.syn { 0 } else { WINDOW_SCALE };
        let window = (segment.window >> scale).min(u64::from(u16::MAX)) as u16;
        let ack = segment.ack.map_or(0, |ack| (ack as u32).wrapping_add(self.initial[1]));
        let tcp = &mut self.frame[tcp_at..];
        tcp[..2].copy_from_slice(&self.ports[0].to_be_bytes());
        tcp[2..4].copy_from_slice(&self.ports[1].to_be_bytes());
        tcp[4..8].copy_from_slice(&(segment.seq as u32).wrapping_add(self.initial[0]).to_be_bytes());
        tcp[8..12].copy_from_slice(&ack.to_be_bytes());
        tcp[12..14].copy_from_slice(&[(header as u8 / 4) << 4, flags]);
        tcp[14..16].copy_from_slice(&window.to_be_bytes());
        tcp[16..20].fill(0);
        tcp[TCP..TCP + OPTIONS_MAX].copy_from_slice(&options);
        let sum = match self.ip.addresses {
            Addresses::V4 { src, dst } => Sum::pseudo_v4(src, dst, protocol::TCP, len as u32),
            Addresses::V6 { src, dst } => Sum::pseudo_v6(src, dst, protocol::TCP, len as u32),
        };
        let sum = sum.bytes(&tcp[..header]).checksum();
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        &self.frame[..tcp_at + len]
    }

    /// Writes the fields of the IP header that differ between segments.
    fn write_ip(&mut self, len: usize, ecn: u8) {
        let class = self.ip.traffic_class & !3 | ecn;
        let ip = &mut self.frame[ETHERNET..ETHERNET + self.ip_len];
        match self.ip.addresses {
            Addresses::V4 { .. } => {
                ip[1] = class;
                ip[2..4].copy_from_slice(&((20 + len) as u16).to_be_bytes());
                ip[10..12].fill(0);
                let sum = checksum::of(ip);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            Addresses::V6 { .. } => {
                ip[..4].copy_from_slice(&(6 << 28 | u32::from(class) << 20).to_be_bytes());
                ip[4..6].copy_from_slice(&(len as u16).to_be_bytes());
            }
        }
    }

    /// Returns the first bytes of the frame that was written last.
    pub fn written(&self, len: usize) -> &[u8] {
        &self.frame[..len]
    }

    fn options(&self, segment: &Segment) -> ([u8; OPTIONS_MAX], usize) {
        let (mut options, mut len) = ([0; OPTIONS_MAX], 0);
        let mut put = |bytes: &[u8]| {
            options[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        if segment.syn {
            // Without timestamps, as an MTU counts (RFC 6691).
            let [high, low] = ((self.mss + 12).min(u32::from(u16::MAX)) as u16).to_be_bytes();
            put(&[MSS, 4, high, low, SACK_PERMITTED, 2]);
        } else {
            put(&[NOP, NOP]);
        }
        put(&[TIMESTAMP, 10]);
        put(&segment.timestamp.to_be_bytes());
        put(&segment.echo.to_be_bytes());
        if segment.syn {
            put(&[NOP, SCALE, 3, WINDOW_SCALE]);
        }
        let blocks = segment.sacked().count();
        if blocks > 0 && !segment.syn {
            put(&[NOP, NOP, SACK, 2 + 8 * blocks as u8]);
            for (from, to) in segment.sacked() {
                put(&(from as u32).wrapping_add(self.initial[1]).to_be_bytes());
                put(&(to as u32).wrapping_add(self.initial[1]).to_be_bytes());
            }
        }
        (options, len)
    }
}

/// Reads the segment of a frame whose TCP header is at `at`, with `len` bytes of header and data.
/// `initial`: the sequence numbers of the SYNs of its sender and of the other end. `near`:
/// positions near its own one and near that which it acknowledges, for the bits above 32. `None`
/// if the header is cut or contradicts its length.
pub fn parse_segment(
    frame: &[u8],
    (at, len): (usize, usize),
    initial: [u32; 2],
    (near_seq, near_ack): (u64, u64),
) -> Option<Segment> {
    let tcp = frame.get(at..at + len)?;
    let header = usize::from(*tcp.get(12)? >> 4) * 4;
    if header < TCP || header > tcp.len() {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
    let flags = tcp[13];
    let has = |flag: u8| flags & flag != 0;
    let syn = has(tcp_flags::SYN);
    let window = u64::from(u16::from_be_bytes([tcp[14], tcp[15]]));
    let mut segment = Segment {
        seq: unwrapped(word(4).wrapping_sub(initial[0]), near_seq),
        len: (tcp.len() - header) as u32,
        syn,
        fin: has(tcp_flags::FIN),
        ack: has(tcp_flags::ACK).then(|| unwrapped(word(8).wrapping_sub(initial[1]), near_ack)),
        window: if syn { window } else { window << WINDOW_SCALE },
        ece: has(tcp_flags::ECE),
        cwr: has(tcp_flags::CWR),
        ecn: ecn_of(frame),
        ..Segment::default()
    };
    parse_options(&tcp[TCP..header], (initial[1], near_ack), &mut segment);
    Some(segment)
}

fn parse_options(mut options: &[u8], (initial, near): (u32, u64), segment: &mut Segment) {
    while let [kind, rest @ ..] = options {
        if *kind == NOP {
            options = rest;
            continue;
        }
        let Some(len) =
            rest.first().map(|len| usize::from(*len)).filter(|len| (2..=options.len()).contains(len))
        else {
            return;
        };
        let (body, after) = (&options[2..len], &options[len..]);
        let mut words =
            body.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        match *kind {
            TIMESTAMP => {
                segment.timestamp = words.next().unwrap_or(0);
                segment.echo = words.next().unwrap_or(0);
            }
            SACK => {
                for place in segment.sack.iter_mut().take(SACK_BLOCKS) {
                    let (Some(from), Some(to)) = (words.next(), words.next()) else { break };
                    *place = [from, to].map(|end| unwrapped(end.wrapping_sub(initial), near)).into();
                }
            }
            _ => {}
        }
        options = after;
    }
}

/// The position with these low 32 bits that is nearest to another.
fn unwrapped(low: u32, near: u64) -> u64 {
    let forward = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(forward))
}

fn ecn_of(frame: &[u8]) -> u8 {
    match u16::from_be_bytes([frame[12], frame[13]]) {
        ethertype::IPV4 => frame[15] & 3,
        ethertype::IPV6 => frame[15] >> 4 & 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_wire::checksum::{ChecksumStatus, check_transport};
    use fastpath_wire::{Headers, MacAddr, NetworkLayer};
    use proptest::prelude::*;

    fn segments() -> impl Strategy<Value = Segment> {
        let ranges = prop::array::uniform3((0..2000_u64, 0..500_u64));
        let bits = prop::array::uniform4(any::<bool>());
        (
            (1 << 32) - 5000..(1_u64 << 32) + 5000,
            0..1400_u32,
            bits,
            ranges,
            any::<u32>(),
            any::<u32>(),
            0..4_u8,
        )
            .prop_map(|(seq, len, [fin, ack, ece, cwr], ranges, timestamp, echo, ecn)| {
                let mut sack = ranges.map(|(from, len)| (seq + from, seq + from + len));
                // A frame has no empty ranges.
                sack.sort_by_key(|(from, to)| from == to);
                let sack = sack.map(|(from, to)| if from == to { (0, 0) } else { (from, to) });
                let ack = ack.then_some(seq + 7);
                let window = u64::from(timestamp & 0xffff) << WINDOW_SCALE;
                Segment { seq, len, syn: false, fin, ack, window, sack, ece, cwr, ecn, timestamp, echo }
            })
    }

    proptest! {
        #[test]
        fn frames_and_back(segment in segments(), is_v6 in any::<bool>()) {
            let addresses = if is_v6 { ["2001:db8::1", "2001:db8::2"] } else { ["10.0.0.1", "10.0.0.2"] };
            let [from, to] = addresses.map(|address| (MacAddr([2, 0, 0, 0, 0, 1]), address.parse().unwrap()));
            let mut form = FrameForm::new(Ip::between(from, to), [4000, 80], 1400, [7, u32::MAX]);
            // What was written before leaves nothing behind.
            form.write(&Segment { sack: [(1, 2); 3], len: 1400, ..segment });
            let frame = form.write(&segment).to_vec();
            let headers = Headers::parse(&frame);
            prop_assert_eq!(check_transport(&frame, &headers), ChecksumStatus::Good);
            prop_assert_ne!(headers.ipv4_checksum_ok(&frame), Some(false));
            let len = match headers.network {
                NetworkLayer::Ipv4(ip) => usize::from(ip.total_len) - ip.header_len,
                NetworkLayer::Ipv6(ip) => usize::from(ip.payload_len),
                other => panic!("{other:?}"),
            };
            let at = headers.transport.unwrap().offset;
            let near = segment.seq + 1_000_000;
            let read = parse_segment(&frame, (at, len), [7, u32::MAX], (near, segment.seq)).unwrap();
            prop_assert_eq!(Segment { window: 0, ..read }, Segment { window: 0, ..segment });
            prop_assert_eq!(read.window, segment.window);
        }
    }
}
