//! Merges segments into super-packets, as GRO does: consecutive TCP segments of one flow become one
//! frame, which a kernel accepts in one write. This is the inverse of `segment.rs`.
//!
//! The merge is lossless: segmenting a super-packet gives exactly the frames that were merged. A
//! frame with a wrong checksum is not merged and stays wrong.

use crate::bytes::{be16, be32};
use crate::checksum::{ChecksumStatus, check_transport};
use crate::segment::{GsoTransport, IpVersion, Layout};
use crate::vnet::{Gso, GsoKind, VnetHeader};
use crate::{Headers, build::tcp_flags};

/// Merges a frame with the frames that continue it, up to 65 535 bytes of IP packet. The coalescer
/// copies headers only: the caller writes the payloads from the frames themselves.
///
/// ```
/// # use fastpath_wire::coalesce::Coalescer;
/// # let due: Vec<Vec<u8>> = vec![vec![0; 60], vec![0; 60]];
/// # let (mut rest, mut writes) = (&due[..], 0);
/// let mut coalescer = Coalescer::default();
/// while !rest.is_empty() {
///     let count = rest.iter().take_while(|frame| coalescer.append(frame)).count();
///     let joined = coalescer.take().expect("an empty coalescer takes any frame");
///     // Write joined.vnet and joined.headers; then each of these frames from joined.skip on.
///     rest = &rest[count..];
///     # writes += 1;
/// }
/// # assert_eq!(writes, 2);
/// ```
#[derive(Debug, Default)]
pub struct Coalescer {
    /// The headers of the first frame, if it can be merged.
    headers: Vec<u8>,
    /// Length of the merged packet so far, in bytes.
    len: usize,
    state: MergeState,
}

/// Frames merged into one packet: `headers`, then each frame without its first `skip` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined<'a> {
    /// The virtio header for the receiving kernel.
    pub vnet: VnetHeader,
    /// The headers of the merged packet; empty for a single frame, which is written unchanged.
    pub headers: &'a [u8],
    /// Length of the headers of each frame, in bytes.
    pub skip: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum MergeState {
    /// There is no frame.
    #[default]
    Empty,
    /// No further frame can be merged.
    Closed(Option<SegmentTrain>),
    /// Further frames can be merged.
    Open(SegmentTrain),
}

/// The segments merged so far.
#[derive(Clone, Copy, Debug)]
struct SegmentTrain {
    layout: Layout,
    /// Payload bytes of each segment; the last one can have fewer.
    size: usize,
    segments: u16,
}

impl Coalescer {
    /// Adds a frame if the coalescer is empty or the frame continues the merged packet. Returns
    /// false otherwise: call [`Coalescer::take`], then append the frame again.
    #[must_use = "a frame that was not appended must be appended again after `take`"]
    pub fn append(&mut self, frame: &[u8]) -> bool {
        match self.state {
            MergeState::Empty => {
                self.hold_first(frame);
                true
            }
            MergeState::Closed(_) => false,
            MergeState::Open(train) => self.append_to(train, frame),
        }
    }

    /// Returns whether a frame is never part of a super-packet. Cheap: no checksum is read.
    pub fn stands_alone(frame: &[u8]) -> bool {
        plain_data(frame, &Headers::parse(frame)).is_none()
    }

    /// Returns the appended frames as one packet, or `None` if there are none. The coalescer is
    /// empty afterwards.
    pub fn take(&mut self) -> Option<Joined<'_>> {
        let train = match std::mem::take(&mut self.state) {
            MergeState::Empty => return None,
            MergeState::Closed(train) => train,
            MergeState::Open(train) => Some(train),
        };
        let Some(train) = train.filter(|train| train.segments > 1) else {
            return Some(Joined { vnet: VnetHeader::default(), headers: &[], skip: 0 });
        };
        train.layout.set_lengths(&mut self.headers, self.len);
        let kind = match train.layout.kind.network {
            IpVersion::V4 => {
                train.layout.set_header_checksum(&mut self.headers);
                GsoKind::TcpV4
            }
            IpVersion::V6 => GsoKind::TcpV6,
        };
        train.layout.start_checksum(&mut self.headers, self.len);
        let gso = Gso { kind, size: train.size as u16, ecn: false };
        Some(Joined {
            vnet: train.layout.vnet_header(Some(gso)),
            headers: &self.headers,
            skip: self.headers.len(),
        })
    }

    fn hold_first(&mut self, frame: &[u8]) {
        self.len = frame.len();
        self.headers.clear();
        self.state = match mergeable(frame) {
            Some(layout) => {
                self.headers.extend_from_slice(&frame[..layout.header_len]);
                let size = frame.len() - layout.header_len;
                after(frame, SegmentTrain { layout, size, segments: 1 }, size)
            }
            None => MergeState::Closed(None),
        };
    }

    fn append_to(&mut self, train: SegmentTrain, frame: &[u8]) -> bool {
        let Some(layout) = mergeable(frame) else { return false };
        let payload = frame.len() - layout.header_len;
        let ip_len = self.len - train.layout.ip + payload;
        let data_len = (self.len - train.layout.header_len) as u32;
        if payload > train.size
            || ip_len > usize::from(u16::MAX)
            || !continues(&self.headers, data_len, &train, frame, &layout)
        {
            return false;
        }
        self.len += payload;
        let flags = train.layout.transport + 13;
        self.headers[flags] |= frame[flags] & tcp_flags::PSH;
        self.state = after(frame, SegmentTrain { segments: train.segments + 1, ..train }, payload);
        true
    }
}

/// Returns the state after `frame`, which has `len` bytes of payload. PSH and a short segment end a
/// super-packet.
fn after(frame: &[u8], train: SegmentTrain, len: usize) -> MergeState {
    let pushed = frame[train.layout.transport + 13] & tcp_flags::PSH != 0;
    if pushed || len < train.size { MergeState::Closed(Some(train)) } else { MergeState::Open(train) }
}

/// Returns the layout of a frame that can be part of a super-packet: TCP data with no flags except
/// ACK and PSH, without IP options, extension headers or padding, and with correct checksums.
fn mergeable(frame: &[u8]) -> Option<Layout> {
    let headers = Headers::parse(frame);
    let layout = plain_data(frame, &headers)?;
    let is_right = headers.ipv4_checksum_ok(frame) != Some(false)
        && check_transport(frame, &headers) == ChecksumStatus::Good;
    is_right.then_some(layout)
}

/// As [`mergeable`], whatever the checksums.
fn plain_data(frame: &[u8], headers: &Headers) -> Option<Layout> {
    let layout = Layout::of(frame, headers)?;
    let plain_header_len = match layout.kind.network {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    let has_data = layout.header_len < frame.len();
    let is_plain = layout.kind.transport == GsoTransport::Tcp
        && layout.transport - layout.ip == plain_header_len
        && Some(frame.len()) == headers.packet_end()
        && frame[layout.transport + 13] & !tcp_flags::PSH == tcp_flags::ACK;
    (has_data && is_plain).then_some(layout)
}

/// Returns whether `frame` is the next segment of a packet with the headers `packet` and `data_len`
/// bytes of payload. Sequence number and IPv4 identification must be the next ones. All other
/// header fields must be equal, except lengths, checksums and PSH.
fn continues(packet: &[u8], data_len: u32, train: &SegmentTrain, frame: &[u8], layout: &Layout) -> bool {
    if *layout != train.layout {
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
        IpVersion::V4 => {
            be16(packet, ip + 4).map(|id| id.wrapping_add(train.segments)) == be16(frame, ip + 4)
        }
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
