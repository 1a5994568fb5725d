//! The criteria by which an observation agrees with what the spec implies.

/// RTT: 1 % and 0.3 ms.
const RTT_RELATIVE: f64 = 0.01;
const RTT_ABSOLUTE_MS: f64 = 0.3;
/// Rate of the path: 1 %.
const RATE_RELATIVE: f64 = 0.01;
/// Quantile of the normal distribution for two-sided 99.9 %.
const NORMAL_999: f64 = 3.2905;
/// Probability that a correct link fails by chance, on each side.
const TAIL: f64 = 0.0005;

/// Quantile of Student's t for two-sided 99.9 % with 15 degrees of freedom: 16 networks of the
/// model.
const STUDENT_999: f64 = 4.0728;

/// The mean and the scatter of a figure in the networks of the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Scatter {
    pub(crate) mean: f64,
    /// The largest distance of one more value from the mean, in 999 of 1000 cases.
    reach: f64,
    variance: f64,
}

impl Scatter {
    /// Of one value for each network.
    pub(crate) fn of(values: impl ExactSizeIterator<Item = f64> + Clone) -> Scatter {
        let n = values.len().max(1) as f64;
        let mean = values.clone().sum::<f64>() / n;
        let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Scatter { mean, variance, reach: STUDENT_999 * (variance * (1.0 + 1.0 / n)).sqrt() }
    }

    /// Whether a round-trip time, milliseconds, agrees with those of the model.
    pub(crate) fn rtt_agrees(&self, observed_ms: f64) -> bool {
        let tolerance = self.mean * RTT_RELATIVE + RTT_ABSOLUTE_MS + self.reach;
        (observed_ms - self.mean).abs() <= tolerance
    }

    /// Whether a rate agrees with those of the model.
    pub(crate) fn rate_agrees(&self, observed: f64) -> bool {
        (observed - self.mean).abs() <= self.mean * RATE_RELATIVE + self.reach
    }
}

/// Returns the range of losses among `sent` packets that agrees with those of the model. A packet
/// more or less, and 1 %, is the time of its entry into the network. Where the model loses nothing,
/// nothing may be lost.
pub(crate) fn modelled_loss_interval(sent: u64, losses: &Scatter) -> (u64, u64) {
    let mean = losses.mean;
    if mean <= 0.0 || sent == 0 {
        return (0, 0);
    }
    let tolerance = 1.0 + mean * RATE_RELATIVE + losses.reach;
    let p = (mean / sent as f64).min(1.0);
    // A variance of 16 values may be far too small. Random losses have at least that of the
    // binomial distribution; losses by time or by order have none.
    let (low, high) = match losses.variance > 0.0 {
        true => bursty_loss_interval(sent, p, losses.variance / (mean * (1.0 - p)).max(f64::EPSILON)),
        false => (sent, 0),
    };
    let within = |value: f64| value.clamp(0.0, sent as f64) as u64;
    (low.min(within((mean - tolerance).floor())), high.max(within((mean + tolerance).ceil())))
}

/// Whether a round-trip time agrees with the configured one. It is a median, or a mean of `replies`
/// with a standard deviation of `sd_ms` each.
pub fn rtt_agrees(configured_ms: f64, observed_ms: f64, sd_ms: f64, replies: usize) -> bool {
    let scatter = NORMAL_999 * sd_ms / (replies.max(1) as f64).sqrt();
    (observed_ms - configured_ms).abs() <= configured_ms * RTT_RELATIVE + RTT_ABSOLUTE_MS + scatter
}

/// Whether a rate agrees with the expected one. `loss` is the random loss behind the bottleneck: it
/// scatters the `packets` observed with `inflation` times the binomial variance.
pub fn rate_agrees(expected: f64, observed: f64, loss: f64, inflation: f64, packets: u64) -> bool {
    let scatter =
        NORMAL_999 * (inflation * loss / ((1.0 - loss).max(f64::EPSILON) * packets.max(1) as f64)).sqrt();
    (observed / expected - 1.0).abs() <= RATE_RELATIVE + scatter
}

/// Returns the range of losses, both ends included, that a link with loss `p` has among `sent`
/// packets in 999 of 1000 runs.
pub fn loss_interval(sent: u64, p: f64) -> (u64, u64) {
    if p <= 0.0 {
        return (0, 0);
    }
    if p >= 1.0 {
        return (sent, sent);
    }
    let n = sent as f64;
    interval(sent, n * (1.0 - p).ln(), |k| ((n - k) / (k + 1.0)).ln() + (p / (1.0 - p)).ln())
}

/// The same for bursts of losses: their number has `inflation` times the variance. It is modelled
/// as negative binomial (many bursts of geometric length) with that mean and variance.
pub fn bursty_loss_interval(sent: u64, p: f64, inflation: f64) -> (u64, u64) {
    let mean = sent as f64 * p;
    let variance = mean * (1.0 - p) * inflation;
    if variance <= mean || p >= 1.0 {
        return loss_interval(sent, p);
    }
    let r = mean * mean / (variance - mean);
    interval(sent, r * (mean / variance).ln(), |k| ((k + r) / (k + 1.0) * (1.0 - mean / variance)).ln())
}

/// Returns the 99.9 % interval of a distribution over 0 … `most`, from the logarithm of the
/// probability of 0 and the logarithms of the ratios of successive probabilities. Logarithms do not
/// underflow.
fn interval(most: u64, log_of_none: f64, log_ratio: impl Fn(f64) -> f64) -> (u64, u64) {
    let mut log_mass = log_of_none;
    let (mut below, mut low) = (0.0, None);
    for k in 0..=most {
        let through = below + log_mass.exp();
        if low.is_none() && through > TAIL {
            low = Some(k);
        }
        if 1.0 - through <= TAIL {
            return (low.unwrap_or(k), k);
        }
        below = through;
        log_mass += log_ratio(k as f64);
    }
    (low.unwrap_or(most), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_losses_is_the_binomial_one() {
        // Reference: exact rational tails of Binomial(n, p), computed independently with integers.
        for (sent, p, interval) in
            [(1000, 0.01, (2, 22)), (500, 0.07, (18, 55)), (100, 0.5, (34, 66)), (10, 0.001, (0, 1))]
        {
            assert_eq!(loss_interval(sent, p), interval, "{sent} at {p}");
        }
        assert_eq!(loss_interval(1000, 0.0), (0, 0));
        assert_eq!(loss_interval(1000, 1.0), (1000, 1000));
        assert_eq!(loss_interval(0, 0.5), (0, 0));
    }

    #[test]
    fn losses_in_bursts_may_be_many_more_or_none() {
        assert_eq!(bursty_loss_interval(1000, 0.01, 1.0), loss_interval(1000, 0.01));
        assert_eq!(bursty_loss_interval(1000, 0.0, 9.0), (0, 0));
        assert_eq!(bursty_loss_interval(1000, 1.0, 9.0), (1000, 1000));
        // Variance 9 times that of Binomial(1000, 1 %): 89.1, so r = 100/79.1. Reference: the same
        // tails summed in exact rationals around r by Python's fractions and lgamma.
        assert_eq!(bursty_loss_interval(1000, 0.01, 9.0), (0, 69));
    }

    #[test]
    fn the_scatter_of_the_model_widens_what_agrees() {
        let steady = Scatter::of([100.0; 16].into_iter());
        assert!(steady.rate_agrees(100.99) && !steady.rate_agrees(101.01));
        assert!(steady.rtt_agrees(101.29) && !steady.rtt_agrees(101.31));
        // Losses by order: 1 % and one packet.
        assert_eq!(modelled_loss_interval(1000, &steady), (98, 102));
        assert_eq!(modelled_loss_interval(1000, &Scatter::of([0.0; 16].into_iter())), (0, 0));
        // Values 90 and 110: a deviation of √(1600/15) = 10.33, and 4.0728·√(17/16) times that.
        let scattered = Scatter::of((0..16).map(|i| if i % 2 == 0 { 90.0 } else { 110.0 }));
        assert!(scattered.rate_agrees(144.3) && !scattered.rate_agrees(144.5));
        let (low, high) = modelled_loss_interval(1000, &scattered);
        assert!((54..=56).contains(&low) && (144..=147).contains(&high), "{low} {high}");
    }

    #[test]
    fn agreement_ends_at_the_stated_tolerance() {
        let steady = |configured, median| rtt_agrees(configured, median, 0.0, 20);
        assert!(steady(240.0, 242.69) && !steady(240.0, 242.71) && steady(0.0, 0.3));
        // 3.29·4/√16 ms more.
        assert!(rtt_agrees(240.0, 245.9, 4.0, 16) && !rtt_agrees(240.0, 246.1, 4.0, 16));
        assert!(rate_agrees(10.0, 9.91, 0.0, 1.0, 1000) && !rate_agrees(10.0, 9.89, 0.0, 1.0, 1000));
        assert!(rate_agrees(10.0, 9.7, 0.05, 1.0, 1000) && !rate_agrees(10.0, 9.0, 0.05, 1.0, 1000));
    }
}
