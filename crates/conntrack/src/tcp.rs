//! TCP as an observer between the two peers sees it: who has sent and acknowledged what.
//!
//! ```text
//!   sender of the segment            receiver
//!     low    highest seq it sent       window  largest it announced, unscaled
//!     high   highest seq it may send = what the receiver acknowledged + its window
//! ```
//!
//! A segment is valid if it ends at or below `high`, begins at most one window of the receiver
//! below `low`, and acknowledges near what the receiver sent. Connections whose beginning was not
//! seen are taken up (`tcp-loose` of Linux): until both sides have sent, any window is possible.
//!
//! Read first: Guido van Rooij, "Real Stateful TCP Packet Filtering in IP Filter" (2001), §4.

use crate::timeouts::TimeoutKind;
use crate::view::{TcpSegment, tcp_flags};

use tcp_flags::{ACK, FIN, RST, SYN};

/// The largest shift of a window (RFC 7323 §2.3).
const SCALE_MAX: u8 = 14;
/// How far an acknowledgement, or a segment of a connection that was taken up, may be away: the
/// largest window without scaling, and a frame.
const SLACK: u32 = 0xffff + 1500;

/// The state of one peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum TcpPhase {
    /// It has sent nothing.
    #[default]
    Closed,
    /// It has sent a SYN, or the first segment that was seen.
    SynSent,
    /// That was acknowledged.
    Established,
    /// It has sent a FIN.
    Closing,
    /// That was acknowledged.
    FinWait2,
    /// Either side reset the connection.
    TimeWait,
}

impl TcpPhase {
    /// Returns the name as Open vSwitch prints it.
    pub const fn name(self) -> &'static str {
        match self {
            TcpPhase::Closed => "CLOSED",
            TcpPhase::SynSent => "SYN_SENT",
            TcpPhase::Established => "ESTABLISHED",
            TcpPhase::Closing => "CLOSING",
            TcpPhase::FinWait2 => "FIN_WAIT_2",
            TcpPhase::TimeWait => "TIME_WAIT",
        }
    }
}

/// What is known of the scale of a peer's windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum WindowScale {
    /// It does not scale.
    #[default]
    None,
    /// It scales by this shift.
    Shift(u8),
    /// Its SYN was not seen: anything is possible.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct TcpPeer {
    low: u32,
    high: u32,
    window: u32,
    scale: WindowScale,
    phase: TcpPhase,
}

/// `high` of a peer of which nothing is known. Open vSwitch compares it as any other number: what a
/// peer acknowledges before the other has sent sets `high` only if it is at most 2^31 further.
/// Whether the first answer may be anywhere depends on that, so it is done here too.
const HIGH_UNKNOWN: u32 = 1;

/// The state of a connection: of the peer that sent the first packet, then of the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TcpTracker {
    low: [u32; 2],
    high: [u32; 2],
    window: [u32; 2],
    scale: [PackedScale; 2],
    phase: [TcpPhase; 2],
}

/// A [`WindowScale`] in one byte, so that a connection takes one cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct PackedScale(u8);

impl PackedScale {
    const NONE: u8 = 0;
    const UNKNOWN: u8 = 1;
    /// Shifts are from here on.
    const SHIFT: u8 = 2;

    fn of(scale: WindowScale) -> PackedScale {
        PackedScale(match scale {
            WindowScale::None => PackedScale::NONE,
            WindowScale::Unknown => PackedScale::UNKNOWN,
            WindowScale::Shift(shift) => PackedScale::SHIFT + shift,
        })
    }

    fn get(self) -> WindowScale {
        match self.0 {
            PackedScale::NONE => WindowScale::None,
            PackedScale::UNKNOWN => WindowScale::Unknown,
            shift => WindowScale::Shift(shift - PackedScale::SHIFT),
        }
    }
}

/// What a segment does to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TcpVerdict {
    /// It belongs to it.
    Valid,
    /// It repeats its beginning.
    StillNew,
    /// It belongs to none.
    Invalid,
    /// The connection is over, and this begins another.
    Restart,
}

/// Returns whether a segment may begin a connection: a SYN, or one of a connection that is taken
/// up. A SYN with ACK only answers.
pub(crate) fn may_begin(segment: &TcpSegment) -> bool {
    segment.has_valid_flags() && !segment.has(SYN | ACK)
}

fn is_at_least(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

fn scale_of(segment: &TcpSegment) -> WindowScale {
    segment.scale.map_or(WindowScale::None, |shift| WindowScale::Shift(shift.min(SCALE_MAX)))
}

impl WindowScale {
    fn shift(self) -> u8 {
        if let WindowScale::Shift(shift) = self { shift } else { 0 }
    }
}

impl TcpTracker {
    /// Begins a connection.
    pub(crate) fn new(first: &TcpSegment) -> TcpTracker {
        let is_syn = first.has(SYN);
        let unseen = if is_syn { WindowScale::None } else { WindowScale::Unknown };
        let scale = if is_syn { scale_of(first) } else { unseen };
        let window = u32::from(first.window).max(1).div_ceil(1 << scale.shift());
        let sender = TcpPeer {
            low: first.seq,
            high: first.end().wrapping_add(1),
            window,
            scale,
            phase: TcpPhase::SynSent,
        };
        let receiver = TcpPeer { high: HIGH_UNKNOWN, window: 1, scale: unseen, ..TcpPeer::default() };
        let mut tracker = TcpTracker::default();
        tracker.set(0, sender);
        tracker.set(1, receiver);
        tracker
    }

    fn peer(&self, at: usize) -> TcpPeer {
        TcpPeer {
            low: self.low[at],
            high: self.high[at],
            window: self.window[at],
            scale: self.scale[at].get(),
            phase: self.phase[at],
        }
    }

    fn set(&mut self, at: usize, peer: TcpPeer) {
        self.low[at] = peer.low;
        self.high[at] = peer.high;
        self.window[at] = peer.window;
        self.scale[at] = PackedScale::of(peer.scale);
        self.phase[at] = peer.phase;
    }

    /// Returns the phases of the peers: of the one that began, and of the other.
    pub(crate) fn phases(&self) -> (TcpPhase, TcpPhase) {
        (self.phase[0], self.phase[1])
    }

    /// Takes over a segment. Returns the timeout from now on; `None` leaves the deadline as it is.
    pub(crate) fn update(
        &mut self,
        segment: &TcpSegment,
        is_reply: bool,
    ) -> (TcpVerdict, Option<TimeoutKind>) {
        if !segment.has_valid_flags() {
            return (TcpVerdict::Invalid, None);
        }
        let (own, other) = (usize::from(is_reply), usize::from(!is_reply));
        let (mut src, mut dst) = (self.peer(own), self.peer(other));
        let (verdict, timeout) = take(&mut src, &mut dst, segment);
        self.set(own, src);
        self.set(other, dst);
        (verdict, timeout)
    }
}

/// Takes over a segment from `src` to `dst`.
fn take(src: &mut TcpPeer, dst: &mut TcpPeer, segment: &TcpSegment) -> (TcpVerdict, Option<TimeoutKind>) {
    if segment.has(SYN) && !segment.has(ACK) {
        if src.phase >= TcpPhase::FinWait2 && dst.phase >= TcpPhase::FinWait2 {
            return (TcpVerdict::Restart, None);
        }
        if src.phase <= TcpPhase::SynSent {
            src.phase = TcpPhase::SynSent;
            return (TcpVerdict::StillNew, Some(TimeoutKind::TcpFirst));
        }
    }
    let (mut src_shift, mut dst_shift) = match (src.scale, dst.scale) {
        _ if segment.has(SYN) => (0, 0),
        (WindowScale::Shift(a), WindowScale::Shift(b)) => (a, b),
        (WindowScale::Unknown, WindowScale::Unknown) => (SCALE_MAX, SCALE_MAX),
        _ => (0, 0),
    };
    let mut window = u32::from(segment.window);
    let is_first = src.phase < TcpPhase::SynSent;
    let mut checks_ack = true;
    if is_first {
        if segment.has(SYN)
            && let WindowScale::Shift(shift) = dst.scale
        {
            src.scale = scale_of(segment);
            match src.scale {
                WindowScale::Shift(own) => {
                    (src_shift, dst_shift) = (own, shift);
                    window = window.div_ceil(1 << own);
                }
                // RFC 7323 §2.2: without the option of both sides, neither scales.
                _ => {
                    dst.window <<= shift;
                    dst.scale = WindowScale::None;
                }
            }
        }
        checks_ack = !begin(src, dst, segment, dst_shift);
        src.window = src.window.max(window);
    }
    let place = SegmentPlace::of(src, dst, segment);
    if place.fits(src, dst, (src_shift, dst_shift), checks_ack) {
        advance(src, dst, &place, window << src_shift, window);
        return (TcpVerdict::Valid, Some(follow(src, dst, segment)));
    }
    let is_loose =
        dst.phase < TcpPhase::SynSent || dst.phase >= TcpPhase::FinWait2 || src.phase >= TcpPhase::FinWait2;
    // A connection that is taken up, and one that has ended: the deadline stays, so that such
    // packets do not keep it alive.
    if is_loose
        && is_at_least(src.high.wrapping_add(SLACK), place.end)
        && is_at_least(place.seq, src.low.wrapping_sub(SLACK))
    {
        advance(src, dst, &place, window << src_shift, window);
        close(src, dst, segment);
        return (TcpVerdict::Valid, None);
    }
    (TcpVerdict::Invalid, None)
}

/// Notes the first segment of a peer. Returns whether it sets what the peer may send.
fn begin(src: &mut TcpPeer, dst: &TcpPeer, segment: &TcpSegment, dst_shift: u8) -> bool {
    src.low = segment.seq;
    src.phase = TcpPhase::SynSent;
    let most = segment.end().wrapping_add((dst.window << dst_shift).max(1));
    let sets = src.high == HIGH_UNKNOWN || is_at_least(most, src.high);
    if sets {
        src.high = most;
    }
    sets
}

/// Where a segment lies.
struct SegmentPlace {
    seq: u32,
    end: u32,
    ack: u32,
    reset: Option<u32>,
}

impl SegmentPlace {
    fn of(src: &TcpPeer, dst: &TcpPeer, segment: &TcpSegment) -> SegmentPlace {
        let is_silent = !segment.has(ACK) || segment.ack == 0 && segment.has(RST);
        let ack = if is_silent { dst.low } else { segment.ack };
        let (mut seq, mut end) = (segment.seq, segment.end());
        // A segment without data may have any number.
        if seq == end {
            (seq, end) = (src.low, src.low);
        }
        SegmentPlace { seq, end, ack, reset: segment.has(RST).then_some(segment.seq) }
    }

    fn fits(&self, src: &TcpPeer, dst: &TcpPeer, (src_shift, dst_shift): (u8, u8), checks_ack: bool) -> bool {
        // Positive: an old acknowledgement.
        let skew = if checks_ack { i64::from(dst.low.wrapping_sub(self.ack) as i32) } else { 0 };
        let slack = i64::from(SLACK);
        is_at_least(src.high, self.end)
            && is_at_least(self.seq, src.low.wrapping_sub(dst.window << dst_shift))
            && (-slack..=slack << src_shift).contains(&skew)
            // RFC 5961 §3: a reset is exact, give or take one.
            && self.reset.is_none_or(|seq| src.low.wrapping_sub(seq).wrapping_add(1) <= 2)
    }
}

/// Moves what both peers may send.
fn advance(src: &mut TcpPeer, dst: &mut TcpPeer, place: &SegmentPlace, scaled: u32, window: u32) {
    src.window = src.window.max(window);
    if !is_at_least(src.low, place.end) {
        src.low = place.end;
    }
    if is_at_least(place.ack.wrapping_add(scaled), dst.high) {
        dst.high = place.ack.wrapping_add(scaled.max(1));
    }
}

/// Moves the phases. Returns the timeout of the phase.
fn follow(src: &mut TcpPeer, dst: &mut TcpPeer, segment: &TcpSegment) -> TimeoutKind {
    if segment.has(FIN) && src.phase < TcpPhase::Closing {
        src.phase = TcpPhase::Closing;
    }
    if segment.has(ACK) {
        match dst.phase {
            TcpPhase::SynSent => dst.phase = TcpPhase::Established,
            TcpPhase::Closing => dst.phase = TcpPhase::FinWait2,
            _ => {}
        }
    }
    close(src, dst, segment);
    let (less, more) = (src.phase.min(dst.phase), src.phase.max(dst.phase));
    if less >= TcpPhase::FinWait2 {
        TimeoutKind::TcpClosed
    } else if less >= TcpPhase::Closing {
        TimeoutKind::TcpFinWait
    } else if less < TcpPhase::Established {
        TimeoutKind::TcpOpening
    } else if more >= TcpPhase::Closing {
        TimeoutKind::TcpClosing
    } else {
        TimeoutKind::TcpEstablished
    }
}

fn close(src: &mut TcpPeer, dst: &mut TcpPeer, segment: &TcpSegment) {
    if segment.has(FIN) && src.phase < TcpPhase::Closing {
        src.phase = TcpPhase::Closing;
    }
    if segment.has(RST) {
        (src.phase, dst.phase) = (TcpPhase::TimeWait, TcpPhase::TimeWait);
    }
}
