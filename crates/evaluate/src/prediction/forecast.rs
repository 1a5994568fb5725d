//! The time that is left, from the measurements done. It is a range: platforms differ in speed, and
//! so does a machine from minute to minute.

/// While some platform was not measured yet, it may take this many times as long as the slowest so
/// far.
const UNSEEN: f64 = 2.0;

/// The measurements of a run, and how long those done took.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Forecast {
    platforms: usize,
    total: usize,
    seconds: Vec<f64>,
}

impl Forecast {
    /// Nothing is done of `rounds` over `platforms`.
    pub(super) fn new(platforms: usize, rounds: usize) -> Forecast {
        Forecast { platforms, total: platforms * rounds, seconds: Vec::new() }
    }

    /// Adds a measurement that took `seconds`.
    pub(super) fn done(&mut self, seconds: f64) {
        self.seconds.push(seconds);
    }

    /// Returns the least and the most seconds that are left. `None` before the first measurement.
    pub(super) fn left_s(&self) -> Option<(f64, f64)> {
        let least = self.seconds.iter().copied().reduce(f64::min)?;
        let most = self.seconds.iter().copied().fold(0.0, f64::max);
        let left = self.total.saturating_sub(self.seconds.len());
        let unseen = self.platforms.saturating_sub(self.seconds.len()).min(left);
        let seen = left - unseen;
        Some((left as f64 * least, (seen as f64 + UNSEEN * unseen as f64) * most))
    }

    /// Returns the time left in words.
    pub(super) fn words(&self) -> String {
        match self.left_s() {
            None => format!("the time is known after the first of {} measurements", self.total),
            Some((least, most)) => format!("{} to {} left", minutes(least), minutes(most)),
        }
    }
}

fn minutes(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_bounded_by_the_measurements_done() {
        let mut forecast = Forecast::new(3, 5);
        assert_eq!(forecast.words(), "the time is known after the first of 15 measurements");
        forecast.done(40.0);
        // 14 are left, two of platforms that were not measured yet.
        assert_eq!(forecast.left_s(), Some((560.0, 640.0)));
        assert_eq!(forecast.words(), "9 min to 11 min left");
        forecast.done(64.0);
        forecast.done(44.0);
        assert_eq!(forecast.left_s(), Some((480.0, 768.0)));
        for _ in 0..11 {
            forecast.done(50.0);
        }
        assert_eq!(forecast.words(), "40 s to 64 s left");
        forecast.done(50.0);
        assert_eq!(forecast.left_s(), Some((0.0, 0.0)));
    }
}
