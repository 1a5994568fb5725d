//! Segments into super-packets, the inverse of `segment.rs`: consecutive TCP segments of one flow
//! become one frame that a kernel takes in one write.
//!
//! Exact: cutting what comes out gives back the very frames that went in, so nobody can tell, and a
//! frame whose checksum is wrong is passed on alone and stays wrong.

use crate::bytes::{be16, be32};
use crate::checksum::{Check, check_transport};
use crate::segment::{GsoTransport, IpVersion, Layout};
use crate::vnet::{Gso, GsoKind, VnetHeader};
use crate::{Headers, build::tcp_flags};

/// Takes a frame and those that continue it. Full at 65 535 bytes of IP packet. It keeps no
/// payload: the frames are written from where they are.
///
/// ```
/// # use fastpath_wire::coalesce::Coalescer;
/// # let due: Vec<Vec<u8>> = vec![vec![0; 60], vec![0; 60]];
/// # let (mut rest, mut writes) = (&due[..], 0);
/// let mut coalescer = Coalescer::default();
/// while !rest.is_empty() {
///     let count = rest.iter().take_while(|frame| coalescer.append(frame)).count();
///     let joined = coalescer.take().expect("an empty coalescer takes any frame");
///     // Write joined.vnet, joined.headers, and from each of these frames what is behind joined.skip bytes.
///     rest = &rest[count..];
///     # writes += 1;
/// }
/// # assert_eq!(writes, 2);
/// ```
#[derive(Debug, Default)]
pub struct Coalescer {
    /// Those of the first frame, while it may be continued or has been.
    headers: Vec<u8>,
    /// Bytes of the packet so far.
    len: usize,
    held: Held,
}

/// Frames as one packet: `headers`, then the bytes of each frame but its first `skip`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined<'a> {
    /// What the receiving kernel has to know.
    pub vnet: VnetHeader,
    /// Headers for all of them; empty for a single frame, which goes as it is.
    pub headers: &'a [u8],
    /// Bytes of headers of each frame.
    pub skip: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Held {
    /// No frame.
    #[default]
    Nothing,
    /// A frame that nothing can continue.
    Closed(Option<Run>),
    /// A frame that may be continued.
    Open(Run),
}

/// The segments in the packet so far.
#[derive(Clone, Copy, Debug)]
struct Run {
    layout: Layout,
    /// Payload bytes of each segment but perhaps the last.
    size: usize,
    segments: u16,
}

impl Coalescer {
    /// Takes the frame if nothing is held or if it continues what is held; otherwise
    /// [`Coalescer::take`] first.
    #[must_use = "a frame that was not taken must be offered again"]
    pub fn append(&mut self, frame: &[u8]) -> bool {
        match self.held {
            Held::Nothing => {
                self.hold_first(frame);
                true
            }
            Held::Closed(_) => false,
            Held::Open(run) => self.append_to(run, frame),
        }
    }

    /// What is held, as one packet; `None` when nothing is.
    pub fn take(&mut self) -> Option<Joined<'_>> {
        let run = match std::mem::take(&mut self.held) {
            Held::Nothing => return None,
            Held::Closed(run) => run,
            Held::Open(run) => Some(run),
        };
        let Some(run) = run.filter(|run| run.segments > 1) else {
            return Some(Joined { vnet: VnetHeader::default(), headers: &[], skip: 0 });
        };
        run.layout.set_lengths(&mut self.headers, self.len);
        let kind = match run.layout.kind.network {
            IpVersion::V4 => {
                run.layout.set_header_checksum(&mut self.headers);
                GsoKind::TcpV4
            }
            IpVersion::V6 => GsoKind::TcpV6,
        };
        run.layout.start_checksum(&mut self.headers, self.len);
        let gso = Gso { kind, size: run.size as u16, ecn: false };
        Some(Joined {
            vnet: run.layout.vnet_header(Some(gso)),
            headers: &self.headers,
            skip: self.headers.len(),
        })
    }

    fn hold_first(&mut self, frame: &[u8]) {
        self.len = frame.len();
        self.headers.clear();
        self.held = match mergeable(frame) {
            Some(layout) => {
                self.headers.extend_from_slice(&frame[..layout.header_len]);
                let size = frame.len() - layout.header_len;
                after(frame, Run { layout, size, segments: 1 }, size)
            }
            None => Held::Closed(None),
        };
    }

    fn append_to(&mut self, run: Run, frame: &[u8]) -> bool {
        let Some(layout) = mergeable(frame) else { return false };
        let payload = frame.len() - layout.header_len;
        let ip_len = self.len - run.layout.ip + payload;
        let data_len = (self.len - run.layout.header_len) as u32;
        if payload > run.size
            || ip_len > usize::from(u16::MAX)
            || !continues(&self.headers, data_len, &run, frame, &layout)
        {
            return false;
        }
        self.len += payload;
        let flags = run.layout.transport + 13;
        self.headers[flags] |= frame[flags] & tcp_flags::PSH;
        self.held = after(frame, Run { segments: run.segments + 1, ..run }, payload);
        true
    }
}

/// A run after a frame with `len` bytes of payload: PSH and a short segment end it.
fn after(frame: &[u8], run: Run, len: usize) -> Held {
    let pushed = frame[run.layout.transport + 13] & tcp_flags::PSH != 0;
    if pushed || len < run.size { Held::Closed(Some(run)) } else { Held::Open(run) }
}

/// The layout of a frame that may be part of a super-packet: plain TCP data with nothing to say but
/// ACK and PSH, no IP options or extension headers, no padding, every checksum right.
fn mergeable(frame: &[u8]) -> Option<Layout> {
    let headers = Headers::parse(frame);
    let layout = Layout::of(frame, &headers)?;
    let plain_header_len = match layout.kind.network {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    let has_data = layout.header_len < frame.len();
    let is_plain = layout.kind.transport == GsoTransport::Tcp
        && layout.transport - layout.ip == plain_header_len
        && Some(frame.len()) == headers.packet_end()
        && frame[layout.transport + 13] & !tcp_flags::PSH == tcp_flags::ACK;
    let is_right =
        || headers.ipv4_checksum_ok(frame) != Some(false) && check_transport(frame, &headers) == Check::Good;
    (has_data && is_plain && is_right()).then_some(layout)
}

/// Whether `frame` is the next segment of a packet with these headers and `data_len` bytes of
/// payload: the next sequence number and IPv4 identification, and all other headers the same but
/// for lengths, checksums and PSH.
fn continues(packet: &[u8], data_len: u32, run: &Run, frame: &[u8], layout: &Layout) -> bool {
    if *layout != run.layout {
        return false;
    }
    let same = |from: usize, to: usize| packet[from..to] == frame[from..to];
    let (ip, tcp) = (layout.ip, layout.transport);
    let same_ip = match layout.kind.network {
        // Version to TOS, flags to protocol, addresses.
        IpVersion::V4 => same(0, ip + 2) && same(ip + 6, ip + 10) && same(ip + 12, ip + 20),
        // Version to flow label, next header to addresses.
        IpVersion::V6 => same(0, ip + 4) && same(ip + 6, ip + 40),
    };
    let next_id = match layout.kind.network {
        IpVersion::V4 => be16(packet, ip + 4).map(|id| id.wrapping_add(run.segments)) == be16(frame, ip + 4),
        IpVersion::V6 => true,
    };
    let next_seq = be32(packet, tcp + 4).map(|seq| seq.wrapping_add(data_len)) == be32(frame, tcp + 4);
    // Ports; acknowledgement and data offset; window; urgent pointer and options.
    let same_tcp = same(tcp, tcp + 4)
        && same(tcp + 8, tcp + 13)
        && same(tcp + 14, tcp + 16)
        && same(tcp + 18, layout.header_len);
    same_ip && next_id && next_seq && same_tcp
}
