//! CUBIC (RFC 9438) and HyStart (Ha and Rhee, Computer Networks 55, 2011), with the constants of
//! Linux. Windows are in segments, times in seconds. All operations are exact IEEE 754 ones, so
//! that results are the same on every machine.

use crate::growth::Growth;
use fastpath_units::{Duration, Time};

/// The scale of the cubic function, segments/s³ (RFC 9438 §5).
const C: f64 = 0.4;
/// What a loss leaves of the window: 717/1024 in Linux.
const BETA: f64 = 717.0 / 1024.0;
/// The window grows at most by a segment for this many.
const SEGMENTS_MIN: u64 = 2;
/// Without a known maximum the window grows at least by a segment for this many.
const SEGMENTS_MAX_UNKNOWN: u64 = 20;
/// HyStart does not look at windows below, segments.
const LOW_WINDOW: u64 = 16;
/// Acknowledgements this near to each other are of one train.
const TRAIN_GAP: Duration = Duration::from_ms(2);
/// Samples of a round before its delay is looked at.
const SAMPLES: u32 = 8;
/// The bounds of the growth of delay that ends slow start: an eighth of the least.
const DELAY_GROWTH: (Duration, Duration) = (Duration::from_ms(4), Duration::from_ms(16));
/// For how long after a reduction round trips are not looked at.
const UNSETTLED: Duration = Duration::from_secs(1);
/// For how long a new growth is not recomputed while the window stays the same.
const RECOMPUTED_AFTER: Duration = Duration::from_us(31_250);

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// The window before the last reduction; 0: not known.
    max_before: u64,
    epoch: Option<Epoch>,
    delay_min: Option<Duration>,
    round: Round,
    is_hystart_over: bool,
}

/// Congestion avoidance since a reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// The window at which the cubic function is flat.
    origin: f64,
    /// When it is reached, s after the start.
    k: f64,
    /// What Reno would have.
    reno: f64,
    /// Segments acknowledged and not counted for it.
    counted: u64,
    /// The last result, for this window, and when.
    last: (u64, u64, Time),
}

/// A round of slow start.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start: Time,
    end: u64,
    last: Time,
    least: Option<Duration>,
    samples: u32,
}

impl Cubic {
    /// Takes a round trip. Returns whether HyStart ends slow start.
    pub(crate) fn measure(&mut self, growth: Growth, rtt: Duration, is_slow_start: bool, size: u64) -> bool {
        let Growth { now, una, next, .. } = growth;
        if self.epoch.is_some_and(|epoch| now.since(epoch.start) < UNSETTLED) {
            return false;
        }
        self.delay_min = Some(self.delay_min.map_or(rtt, |least| least.min(rtt)));
        if self.is_hystart_over || !is_slow_start {
            return false;
        }
        if una > self.round.end || self.round.end == 0 {
            self.round = Round { start: now, end: next, last: now, least: None, samples: 0 };
        }
        if size < LOW_WINDOW {
            return false;
        }
        let least = self.delay_min.unwrap_or(rtt);
        let round = &mut self.round;
        let mut is_over = false;
        if now.since(round.last) <= TRAIN_GAP {
            round.last = now;
            // Half the least round trip: forward and back take the same.
            let half = (least.as_ps() + self.train_slack(growth, size)) / 2;
            is_over |= now.since(self.round.start).as_ps() > half;
        }
        let round = &mut self.round;
        round.least = Some(round.least.map_or(rtt, |known| known.min(rtt)));
        if round.samples < SAMPLES {
            round.samples += 1;
        } else {
            let eighth = Duration::from_ps(least.as_ps() / 8).max(DELAY_GROWTH.0).min(DELAY_GROWTH.1);
            is_over |= round.least > Some(least.saturating_add(eighth));
        }
        self.is_hystart_over = is_over;
        is_over
    }

    /// What a host may add to the train by sending super-packets: the time of four of 64 KiB at the
    /// rate of the window, at most 1 ms, ps.
    fn train_slack(&self, growth: Growth, size: u64) -> u64 {
        let Some(smoothed) = growth.smoothed else { return 0 };
        // In slow start Linux paces at twice the window per round trip.
        let bytes = size.max(1) as f64 * 1448.0 * 2.0;
        let ps = 4.0 * 65_536.0 / bytes * smoothed.as_ps() as f64;
        (ps as u64).min(Duration::from_ms(1).as_ps())
    }

    /// Returns for how many acknowledged segments the window grows by one.
    pub(crate) fn segments_to_grow(&mut self, now: Time, size: u64, acked: u64) -> u64 {
        let max_before = self.max_before;
        let epoch = self.epoch.get_or_insert_with(|| {
            let (k, origin) = match max_before > size {
                true => (cube_root((max_before - size) as f64 / C), max_before as f64),
                false => (0.0, size as f64),
            };
            Epoch { start: now, origin, k, reno: size as f64, counted: 0, last: (0, 0, Time::ZERO) }
        });
        epoch.counted += acked;
        let (last_size, last_segments, last_at) = epoch.last;
        if last_size == size && now.since(last_at) <= RECOMPUTED_AFTER {
            return last_segments;
        }
        let delay = self.delay_min.unwrap_or(Duration::ZERO);
        let t = now.since(epoch.start).saturating_add(delay).as_secs_f64() - epoch.k;
        let window = size as f64;
        let target = epoch.origin + C * t * t * t;
        let mut segments = if target > window { window / (target - window) } else { 100.0 * window };
        if max_before == 0 {
            segments = segments.min(SEGMENTS_MAX_UNKNOWN as f64);
        }
        // RFC 9438 §4.3: what Reno with this β would have, one segment each `step` acknowledged
        // ones.
        let step = (window * (1.0 + BETA) / (1.0 - BETA) / 3.0).max(1.0);
        let whole = (epoch.counted as f64 / step) as u64;
        epoch.reno += whole as f64;
        epoch.counted -= (whole as f64 * step) as u64;
        if epoch.reno > window {
            segments = segments.min(window / (epoch.reno - window));
        }
        let segments = (segments as u64).max(SEGMENTS_MIN);
        epoch.last = (size, segments, now);
        segments
    }

    /// Returns the threshold after a loss in a window of this size (RFC 9438 §4.6, §4.7).
    pub(crate) fn reduce(&mut self, size: u64) -> u64 {
        self.epoch = None;
        self.max_before = match size < self.max_before {
            true => (size as f64 * (1.0 + BETA) / 2.0) as u64,
            false => size,
        };
        (size as f64 * BETA) as u64
    }

    /// Forgets everything, after a timeout.
    pub(crate) fn reset(&mut self) {
        *self = Cubic { delay_min: self.delay_min, ..Cubic::default() };
    }

    /// Moves the epoch by an idle time: the window does not grow in it (RFC 9438 §4.2 item 5).
    pub(crate) fn resume(&mut self, since: Time, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start.saturating_add(now.since(since)).min(now);
        }
    }
}

/// The cube root of a number from 0 on, by Newton's method.
fn cube_root(of: f64) -> f64 {
    if of <= 0.0 {
        return 0.0;
    }
    let mut root = if of > 1.0 { of } else { 1.0 };
    for _ in 0..200 {
        let next = (2.0 * root + of / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::cube_root;

    #[test]
    fn cube_roots() {
        for of in [0.0, 1e-6, 0.3, 1.0, 2.0, 27.0, 1e9] {
            let root = cube_root(of);
            assert!((root * root * root - of).abs() <= 1e-9 * of.max(1.0), "{of}: {root}");
        }
    }
}
