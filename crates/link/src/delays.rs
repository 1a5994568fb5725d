//! Measured delays of a pipe, for reports next to the configured ones.

use fastpath_units::{Duration, Time};

/// Buckets of the sketch per octave: quantiles are accurate to 1.6 %.
const PER_OCTAVE: u32 = 32;
/// Delays below 2¹⁰ ps share the lowest bucket.
const LOWEST: u32 = 10;

/// Delays of delivered packets between leaving the queue and leaving the pipe: number, mean,
/// standard deviation, extremes, and a sketch of the distribution in constant memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Delays {
    count: u64,
    mean: f64,
    squares: f64,
    min: Duration,
    max: Duration,
    sketch: Box<[u64]>,
}

/// The delays of packets that left the queue from an instant on.
#[derive(Debug)]
pub(crate) struct MeasuredDelays {
    since: Time,
    delays: Delays,
}

impl MeasuredDelays {
    pub(crate) fn from(since: Time) -> MeasuredDelays {
        MeasuredDelays { since, delays: Delays::default() }
    }

    pub(crate) fn delays(&self) -> &Delays {
        &self.delays
    }

    /// Adds a packet that left the queue at `departed` and the pipe at `at`.
    #[inline]
    pub(crate) fn add(&mut self, departed: Time, at: Time) {
        if departed >= self.since {
            self.delays.add(at.since(departed));
        }
    }
}

impl Default for Delays {
    fn default() -> Delays {
        let buckets = ((64 - LOWEST) * PER_OCTAVE) as usize;
        Delays {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            min: Duration::MAX,
            max: Duration::ZERO,
            sketch: vec![0; buckets].into_boxed_slice(),
        }
    }
}

impl Delays {
    /// Returns the number of packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean; zero without packets.
    pub fn mean(&self) -> Duration {
        Duration::from_ps(self.mean.round() as u64)
    }

    /// Returns the standard deviation of the sample; zero below two packets.
    pub fn sd(&self) -> Duration {
        if self.count < 2 {
            return Duration::ZERO;
        }
        Duration::from_ps((self.squares / (self.count - 1) as f64).sqrt().round() as u64)
    }

    /// Returns the shortest delay; `None` without packets.
    pub fn min(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the longest delay; `None` without packets.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the `q`-quantile, accurate to 1.6 %; `None` without packets.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = self.sketch.iter().position(|n| {
            below += n;
            below >= rank
        })?;
        (self.count > 0).then(|| Duration::from_ps(middle(bucket as u32)).clamp(self.min, self.max))
    }

    pub(crate) fn add(&mut self, delay: Duration) {
        let ps = delay.as_ps() as f64;
        self.count += 1;
        // Welford's recurrence.
        let distance = ps - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (ps - self.mean);
        self.min = self.min.min(delay);
        self.max = self.max.max(delay);
        self.sketch[bucket(delay.as_ps()) as usize] += 1;
    }
}

/// Returns the bucket of a delay: buckets are linear within each octave.
fn bucket(ps: u64) -> u32 {
    let octave = (63 - (ps | 1).leading_zeros()).max(LOWEST);
    let within = ps.saturating_sub(1 << octave) >> (octave - PER_OCTAVE.trailing_zeros());
    (octave - LOWEST) * PER_OCTAVE + within as u32
}

/// Returns the middle of a bucket.
fn middle(bucket: u32) -> u64 {
    let octave = LOWEST + bucket / PER_OCTAVE;
    let width = 1u64 << (octave - PER_OCTAVE.trailing_zeros());
    (1 << octave) + u64::from(bucket % PER_OCTAVE) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_spread_and_quantiles_of_a_known_sample() {
        let mut delays = Delays::default();
        assert_eq!((delays.min(), delays.quantile(0.5)), (None, None));
        (1..=1000u64).for_each(|i| delays.add(Duration::from_us(i)));
        assert_eq!((delays.count(), delays.mean()), (1000, Duration::from_ns(500_500)));
        // √(n(n+1)/12)
        assert!((delays.sd().as_secs_f64() - 288.819_4e-6).abs() < 1e-9);
        assert_eq!((delays.min(), delays.max()), (Some(Duration::from_us(1)), Some(Duration::from_us(1000))));
        for (q, us) in [(0.01, 10.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = delays.quantile(q).expect("there are packets").as_secs_f64() * 1e6;
            assert!((got / us - 1.0).abs() < 0.017, "{q}: {got}");
        }
    }

    #[test]
    fn every_delay_has_a_bucket_near_it() {
        for ps in (0..64).flat_map(|i| [1u64 << i, (1u64 << i) - 1, (1u64 << i) + (1u64 << i) / 3]) {
            let middle = middle(bucket(ps)) as f64;
            assert!(ps < 2048 || (middle / ps as f64 - 1.0).abs() < 0.017, "{ps} {middle}");
        }
    }
}
