//! The half of a connection that sends: how much may be in flight, what is lost, and when to send
//! without an acknowledgement.
//!
//! ```text
//!           marked, ECE                 una ≥ high
//!   Open ───────────────▶ Reduced ────────────────▶ Open
//!     │ lost (RACK)                                   ▲
//!     ├──────────────────▶ Recovery ─── una ≥ high ───┤
//!     │ timeout                                       │
//!     └──────────────────▶ Loss ─────── una ≥ high ───┘
//! ```
//!
//! Sources: RFC 5681, RFC 6298, RFC 8985 (RACK-TLP), RFC 6937 (PRR), RFC 3168 (ECN), RFC 3522
//! (Eifel detection by timestamps), RFC 2861 (windows that are not used); where they leave a
//! choice, Linux.

use crate::congestion::{CongestionControl, Window};
use crate::growth::Growth;
use crate::rtt::RoundTrip;
use crate::scoreboard::{Acked, Scoreboard};
use crate::segment::{Segment, StreamRange};
use fastpath_units::{Duration, Time};

/// The initial window, segments (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Segments that are sacked before a hole counts as a loss without further wait (RFC 5681 §3.2).
const DUPLICATES: u64 = 3;
/// What a probe waits beyond two round trips: for the clock, and for a delayed acknowledgement of a
/// single segment (RFC 8985 §7.2).
const PROBE_SLACK: Duration = Duration::from_ms(2);
const PROBE_SLACK_SINGLE: Duration = Duration::from_ms(200);
const PROBE_INITIAL: Duration = Duration::from_secs(1);
/// Timeouts in a row after which a sender gives up, and before the connection is open (Linux:
/// `tcp_retries2`, `tcp_syn_retries`).
const TIMEOUTS_MAX: u32 = 15;
const TIMEOUTS_MAX_SYN: u32 = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    Reduced,
    Recovery,
    Loss,
}

/// Why the sender wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alarm {
    /// Nothing has arrived for too long.
    Timeout,
    /// A probe of the tail (RFC 8985 §7).
    Probe,
    /// A segment that may only be late is lost then (RFC 8985 §6.2).
    Reordering,
}

/// Proportional rate reduction (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    prior: u64,
    delivered: u64,
    out: u64,
}

/// What is restored if a retransmission turns out needless.
#[derive(Clone, Copy, Debug)]
struct Undo {
    window: u64,
    threshold: u64,
}

/// What a sender has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounts {
    /// Segments with data, copies among them.
    pub segments: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Probes of the tail.
    pub probes: u64,
    /// Reductions of the window by marks.
    pub marked: u64,
    /// Reductions of the window by losses, timeouts not among them.
    pub recoveries: u64,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    mss: u64,
    has_ecn: bool,
    board: Scoreboard,
    window: Window,
    rtt: RoundTrip,
    phase: Phase,
    /// The end of the phase.
    high: u64,
    reduction: Reduction,
    undo: Option<Undo>,
    /// The timestamp of the first retransmission that may be on its way, ms.
    again_at: Option<u32>,
    una: u64,
    next: u64,
    /// The position after all that is to be sent.
    end: u64,
    has_fin: bool,
    /// How far the receiver takes bytes.
    allowed: u64,
    alarm: Option<(Time, Alarm)>,
    is_reordering: bool,
    /// The end of what was out when the tail was probed, and whether by a copy.
    probed: Option<(u64, bool)>,
    /// The next segment is sent although the window is full.
    forced: bool,
    must_say_reduced: bool,
    usage: Usage,
    last_sent: Time,
    has_given_up: bool,
    counts: SenderCounts,
}

/// Whether the window is used (RFC 7661 in the manner of Linux).
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    is_limited: bool,
    most_out: u64,
    until: u64,
    used: u64,
    since: Time,
}

impl Sender {
    pub(crate) fn new(control: CongestionControl, mss: u32) -> Sender {
        Sender {
            mss: u64::from(mss),
            has_ecn: false,
            board: Scoreboard::default(),
            window: Window::new(control, INITIAL_WINDOW),
            rtt: RoundTrip::default(),
            phase: Phase::Open,
            high: 0,
            reduction: Reduction::default(),
            undo: None,
            again_at: None,
            una: 0,
            next: 0,
            end: 1,
            has_fin: false,
            allowed: 1,
            alarm: None,
            is_reordering: false,
            probed: None,
            forced: false,
            must_say_reduced: false,
            usage: Usage::default(),
            last_sent: Time::ZERO,
            has_given_up: false,
            counts: SenderCounts::default(),
        }
    }

    pub(crate) fn use_ecn(&mut self) {
        self.has_ecn = true;
    }

    pub(crate) fn has_ecn(&self) -> bool {
        self.has_ecn
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        debug_assert!(!self.has_fin, "nothing follows a FIN");
        self.end += bytes;
    }

    pub(crate) fn finish(&mut self) {
        if !self.has_fin {
            self.has_fin = true;
            self.end += 1;
        }
    }

    fn unsent(&self) -> u64 {
        self.end - self.next
    }

    /// The position that is sent next.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// Whether the SYN is in flight, and not lost.
    pub(crate) fn is_opening(&self) -> bool {
        self.una == 0 && self.next == 1 && self.board.next_lost().is_none()
    }

    /// Whether the FIN is at this position.
    pub(crate) fn is_fin(&self, from: u64) -> bool {
        self.has_fin && from + 1 == self.end
    }

    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// Whether all is acknowledged, the FIN too.
    pub(crate) fn is_done(&self) -> bool {
        self.has_fin && self.una == self.end
    }

    pub(crate) fn counts(&self) -> SenderCounts {
        self.counts
    }

    pub(crate) fn rtt(&self) -> &RoundTrip {
        &self.rtt
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.alarm.map(|(at, _)| at)
    }

    /// Takes an acknowledgement.
    pub(crate) fn acknowledge(&mut self, now: Time, segment: &Segment) {
        let Some(ack) = segment.ack.filter(|ack| *ack <= self.next) else { return };
        let advances = ack > self.una;
        let is_twice = segment.sacked().any(|(from, _)| from < ack);
        self.una = self.una.max(ack);
        self.allowed = self.allowed.max(ack + segment.window);
        let mut sack = segment.sack;
        sack.sort_unstable();
        let sack = sack.into_iter().filter(|(from, to)| from < to && *to <= self.next);
        let acked = self.board.acknowledge(now, self.una, sack, self.rtt.min());
        if let Some(rtt) = acked.rtt_of_first {
            self.rtt.measure(rtt);
        }
        self.is_reordering |= acked.reordered;
        if advances {
            self.find_needless(segment.echo);
        }
        let (newly_lost, late) = self.board.detect(now, self.tolerance());
        self.judge_probe(ack, is_twice, advances);
        self.change_phase(segment.ece && !segment.syn);
        self.adapt(now, acked, (advances, newly_lost));
        if acked.segments > 0 || advances {
            self.set_alarm(now);
        }
        if let Some(at) = late {
            self.alarm = Some((at, Alarm::Reordering));
        }
    }

    /// How long a segment may be late before it is lost (RFC 8985 §6.2 step 4).
    fn tolerance(&self) -> Duration {
        let recovers = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if !self.is_reordering && (recovers || self.board.sacked() >= DUPLICATES) {
            return Duration::ZERO;
        }
        let quarter = self.rtt.min().map_or(Duration::ZERO, |min| Duration::from_ps(min.as_ps() / 4));
        quarter.min(self.rtt.smoothed().unwrap_or(quarter))
    }

    /// An acknowledgement that echoes a time before the first retransmission is of the first
    /// transmission: nothing was lost (RFC 3522).
    fn find_needless(&mut self, echo: u32) {
        let Some(undo) = self.undo else { return };
        if !matches!(self.phase, Phase::Recovery | Phase::Loss) || self.again_at.is_none_or(|at| echo >= at) {
            return;
        }
        self.window.size = self.window.size.max(undo.window);
        self.window.threshold = self.window.threshold.max(undo.threshold);
        self.board.unmark();
        self.undo = None;
        self.phase = Phase::Open;
        self.is_reordering = true;
    }

    /// After a probe: one that was a copy and was needed stands for a loss (RFC 8985 §7.4).
    fn judge_probe(&mut self, ack: u64, is_twice: bool, advances: bool) {
        let Some((end, is_copy)) = self.probed.filter(|(end, _)| ack >= *end) else { return };
        if is_copy && !is_twice && ack > end {
            self.probed = None;
            if self.phase == Phase::Open {
                self.reduce();
                self.window.size = self.window.threshold;
            }
        } else if !is_copy || is_twice || !advances {
            self.probed = None;
        }
    }

    fn change_phase(&mut self, is_marked: bool) {
        let is_over = match self.phase {
            Phase::Open => false,
            Phase::Reduced => self.una > self.high || self.una == self.end,
            Phase::Recovery | Phase::Loss => self.una >= self.high,
        };
        if is_over {
            if self.phase != Phase::Loss {
                self.window.size = self.window.threshold;
            }
            self.phase = Phase::Open;
            self.undo = None;
        }
        if self.phase == Phase::Open && !self.board.has_again() {
            self.again_at = None;
        }
        if self.board.has_lost() && matches!(self.phase, Phase::Open | Phase::Reduced) {
            if self.phase == Phase::Open {
                self.reduce();
            }
            self.counts.recoveries += 1;
            self.phase = Phase::Recovery;
            self.high = self.next;
        } else if is_marked && self.phase == Phase::Open {
            self.reduce();
            self.undo = None;
            self.counts.marked += 1;
            self.phase = Phase::Reduced;
        }
    }

    /// Begins to reduce the window.
    fn reduce(&mut self) {
        let (window, threshold) = (self.window.size, self.window.threshold);
        self.undo = Some(Undo { window, threshold });
        self.reduction = Reduction { prior: window, delivered: 0, out: 0 };
        self.window.threshold = self.window.threshold_after_loss();
        self.high = self.next;
        self.must_say_reduced = self.has_ecn;
        self.probed = None;
    }

    /// Lets the window follow what has arrived.
    fn adapt(&mut self, now: Time, acked: Acked, (advances, newly_lost): (bool, u64)) {
        let growth = Growth {
            now,
            acked: acked.segments,
            rtt: acked.rtt_of_last,
            una: self.una,
            next: self.next,
            smoothed: self.rtt.smoothed(),
        };
        if matches!(self.phase, Phase::Reduced | Phase::Recovery) {
            self.reduce_in_proportion(acked.segments, advances && newly_lost == 0);
            return;
        }
        self.window.measure(growth);
        if acked.cumulative > 0 && self.is_limited() {
            self.window.grow(growth);
        }
    }

    /// RFC 6937 §3, with the reduction bound by slow start.
    fn reduce_in_proportion(&mut self, arrived: u64, is_progress: bool) {
        if arrived == 0 {
            return;
        }
        let (in_flight, threshold) = (self.board.in_flight(), self.window.threshold);
        let reduction = &mut self.reduction;
        reduction.delivered += arrived;
        let may_send = if in_flight > threshold {
            (threshold * reduction.delivered).div_ceil(reduction.prior.max(1)).saturating_sub(reduction.out)
        } else {
            let owed =
                reduction.delivered.saturating_sub(reduction.out).max(arrived) + u64::from(is_progress);
            owed.min(threshold - in_flight)
        };
        // The first copy leaves at once.
        self.window.size = in_flight + may_send.max(u64::from(reduction.out == 0));
    }

    fn is_limited(&self) -> bool {
        self.usage.is_limited || (self.window.is_slow_start() && self.window.size < 2 * self.usage.most_out)
    }

    /// Sets the alarm again: a probe where there may be one, else the timeout.
    fn set_alarm(&mut self, now: Time) {
        let Some(first) = self.board.first() else {
            self.alarm = None;
            return;
        };
        let timeout = first.sent_at.saturating_add(self.rtt.timeout());
        let may_probe = self.una > 0
            && self.probed.is_none()
            && matches!(self.phase, Phase::Open | Phase::Reduced)
            && self.board.sacked() == 0;
        if !may_probe {
            self.alarm = Some((timeout.max(now), Alarm::Timeout));
            return;
        }
        let wait = match self.rtt.smoothed() {
            None => PROBE_INITIAL,
            Some(smoothed) => {
                let slack = if self.board.outstanding() == 1 { PROBE_SLACK_SINGLE } else { PROBE_SLACK };
                smoothed.saturating_add(smoothed).saturating_add(slack)
            }
        };
        let probe = now.saturating_add(wait);
        self.alarm = Some(match probe < timeout {
            true => (probe, Alarm::Probe),
            false => (timeout.max(now), Alarm::Timeout),
        });
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, now: Time) {
        let Some((_, alarm)) = self.alarm.filter(|(at, _)| *at <= now) else { return };
        match alarm {
            Alarm::Reordering => {
                let (_, late) = self.board.detect(now, self.tolerance());
                self.change_phase(false);
                if self.phase == Phase::Recovery {
                    self.window.size =
                        self.window.size.max(self.board.in_flight() + u64::from(self.reduction.out == 0));
                }
                self.set_alarm(now);
                if let Some(at) = late {
                    self.alarm = Some((at, Alarm::Reordering));
                }
            }
            Alarm::Probe => {
                self.counts.probes += 1;
                let has_new = self.unsent() > 0 && self.next < self.allowed;
                self.probed = Some((self.next, !has_new));
                self.forced = true;
                let timeout = now.saturating_add(self.rtt.timeout());
                self.alarm = Some((timeout, Alarm::Timeout));
            }
            Alarm::Timeout => self.time_out(now),
        }
    }

    fn time_out(&mut self, now: Time) {
        self.counts.timeouts += 1;
        self.probed = None;
        if self.phase != Phase::Loss || self.una >= self.high {
            let (window, threshold) = (self.window.size, self.window.threshold);
            self.undo = Some(Undo { window, threshold });
            self.window.threshold = self.window.threshold_after_loss();
            self.window.time_out();
            self.must_say_reduced = self.has_ecn;
        }
        self.board.time_out(now, self.tolerance());
        self.phase = Phase::Loss;
        self.high = self.next;
        self.window.size = self.board.in_flight() + 1;
        self.rtt.back_off();
        let most = if self.una == 0 { TIMEOUTS_MAX_SYN } else { TIMEOUTS_MAX };
        if self.rtt.timeouts() > most {
            self.has_given_up = true;
            self.alarm = None;
            return;
        }
        self.alarm = Some((now.saturating_add(self.rtt.timeout()), Alarm::Timeout));
    }

    /// Returns the bytes that are sent now; `None` if none may be. `timestamp`: ms.
    pub(crate) fn transmit(&mut self, now: Time, timestamp: u32) -> Option<(StreamRange, bool)> {
        if self.has_given_up {
            return None;
        }
        let in_flight = self.board.in_flight();
        if in_flight >= self.window.size && !self.forced {
            self.note_usage(now, true);
            return None;
        }
        if let Some((_, true)) = self.probed.filter(|_| self.forced) {
            self.forced = false;
            let last = self.board.last()?;
            self.send_again(last, now, timestamp);
            return Some((last, true));
        }
        if let Some(lost) = self.board.next_lost() {
            self.send_again(lost, now, timestamp);
            return Some((lost, true));
        }
        let from = self.next;
        let to = self.segment_end(from);
        if to == from {
            self.forced = false;
            self.note_usage(now, false);
            return None;
        }
        if in_flight == 0 && from > 0 {
            self.resume(now);
        }
        self.forced = false;
        self.board.send((from, to), now);
        self.next = to;
        self.last_sent = now;
        self.reduction.out += 1;
        self.counts.segments += u64::from(from > 0 && !self.is_fin(from));
        match self.alarm {
            // The probe comes after the last segment.
            Some((_, Alarm::Probe)) | None => self.set_alarm(now),
            Some(_) => {}
        }
        Some(((from, to), false))
    }

    /// The end of the segment that may begin at `from`; `from` if there is none.
    fn segment_end(&self, from: u64) -> u64 {
        if from == 0 {
            return 1; // The SYN.
        }
        let to = self.end.min(self.allowed).min(from + self.mss);
        // A FIN is alone: it has no data to share a segment with that is kept apart here.
        let data = self.end - u64::from(self.has_fin);
        if from < data { to.min(data) } else { to.max(from) }
    }

    fn send_again(&mut self, range: StreamRange, now: Time, timestamp: u32) {
        self.board.send_again(range, now);
        self.reduction.out += 1;
        self.last_sent = now;
        let has_data = range.0 > 0 && !self.is_fin(range.0);
        self.counts.segments += u64::from(has_data);
        self.counts.retransmitted += u64::from(has_data);
        self.again_at.get_or_insert(timestamp);
        if self.alarm.is_none() {
            self.set_alarm(now);
        }
    }

    /// Whether the next segment with new data says that the window is reduced.
    pub(crate) fn says_reduced(&mut self) -> bool {
        std::mem::take(&mut self.must_say_reduced)
    }

    /// A window that was not used for a timeout decays (RFC 2861 §3.1).
    fn resume(&mut self, now: Time) {
        let timeout = self.rtt.timeout();
        let mut idle = now.since(self.last_sent);
        if idle > timeout {
            self.window.threshold = self.threshold_now();
            let least = INITIAL_WINDOW.min(self.window.size);
            while idle > timeout && self.window.size > least {
                self.window.size = (self.window.size / 2).max(least);
                idle = idle.saturating_sub(timeout);
            }
        }
        self.window.resume(self.last_sent, now);
    }

    fn threshold_now(&self) -> u64 {
        self.window.threshold.max(self.window.size / 4 * 3)
    }

    /// Notes whether the window or the application ends a burst.
    fn note_usage(&mut self, now: Time, is_limited: bool) {
        let out = self.board.outstanding();
        let usage = &mut self.usage;
        if self.una >= usage.until || is_limited || (!usage.is_limited && out > usage.most_out) {
            *usage = Usage { is_limited, most_out: out, until: self.next, ..*usage };
        }
        if self.is_limited() {
            (self.usage.used, self.usage.since) = (0, now);
            return;
        }
        self.usage.used = self.usage.used.max(out);
        if now.since(self.usage.since) >= self.rtt.timeout() && self.phase == Phase::Open {
            let used = self.usage.used.max(INITIAL_WINDOW);
            if used < self.window.size {
                self.window.threshold = self.threshold_now();
                self.window.size = self.window.size.midpoint(used);
            }
            (self.usage.used, self.usage.since) = (0, now);
        }
    }
}
