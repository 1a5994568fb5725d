//! Percentiles of waiting and sojourn times whose distributions are known.

use super::finite::{StateSeen, md1_states};

/// Number of service times up to which the waits of M/D/1 are summed.
const STEPS_MAX: usize = 20_000;

/// Returns the time that is exceeded with probability `1 − p`, given how likely it is that a time
/// is exceeded (falling in t). `scale` is any time of the order of the result.
pub(super) fn quantile(p: f64, scale: f64, exceeded: impl Fn(f64) -> f64) -> f64 {
    let tail = 1.0 - p;
    if exceeded(0.0) <= tail {
        return 0.0;
    }
    let mut high = scale;
    while exceeded(high) > tail {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if exceeded(middle) > tail { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The probability that the sojourn in M/M/c exceeds `t`; `waits` is Erlang's C, `spare` is cμ − λ.
pub(super) fn mmc_sojourn_exceeds(t: f64, waits: f64, spare: f64, service: f64) -> f64 {
    let rest = spare - service;
    let later = if (rest * t).abs() < 1e-9 { service * t } else { -(-rest * t).exp_m1() * service / rest };
    (-service * t).exp() * (1.0 + waits * later)
}

/// The probabilities that an arrival that sees the states `seen` waits longer than `t`, and stays
/// longer than `t`, with exponential services in order of arrival.
///
/// While an arrival waits, all servers are busy, so departures are a Poisson process of rate c·μ.
/// The wait is a number of its steps; the own service ends at each step with probability 1/c.
pub(super) struct Tails {
    rate: f64,
    /// That more than j steps pass before the service begins.
    waiting: Vec<f64>,
    /// That more than j steps pass before the service ends.
    staying: Vec<f64>,
    stays_on: f64,
}

impl Tails {
    pub(super) fn new(seen: &StateSeen, service: f64) -> Tails {
        let c = f64::from(seen.servers);
        let first_busy = seen.servers as usize;
        // steps[m]: the probability that m services end before the own one begins.
        let mut steps = vec![seen.probabilities.iter().take(first_busy).sum::<f64>()];
        steps.extend(seen.probabilities.iter().skip(first_busy));
        let stays_on = 1.0 - 1.0 / c;
        let (mut waiting, mut staying) = (Vec::new(), Vec::new());
        let (mut left, mut in_service) = (steps.iter().sum::<f64>(), 0.0);
        for step in &steps {
            left -= step;
            in_service += step;
            waiting.push(left.max(0.0));
            staying.push(left.max(0.0) + in_service);
            in_service *= stays_on;
        }
        Tails { rate: c * service, waiting, staying, stays_on }
    }

    pub(super) fn wait_exceeds(&self, t: f64) -> f64 {
        poisson_sum(self.rate * t, |j| self.waiting.get(j).copied().unwrap_or(0.0))
    }

    pub(super) fn sojourn_exceeds(&self, t: f64) -> f64 {
        let last = self.staying.len() - 1;
        poisson_sum(self.rate * t, |j| match self.staying.get(j) {
            Some(staying) => *staying,
            None => self.staying[last] * self.stays_on.powf((j - last) as f64),
        })
    }
}

/// Returns Σ P(N = j)·f(j) for Poisson N of this mean, over all j that matter.
fn poisson_sum(mean: f64, f: impl Fn(usize) -> f64) -> f64 {
    if mean <= 0.0 {
        return f(0);
    }
    let spread = 12.0 * mean.sqrt() + 40.0;
    let (from, to) = ((mean - spread).max(0.0) as usize, (mean + spread) as usize);
    let mut log = -mean + from as f64 * mean.ln() - statrs::function::gamma::ln_gamma(from as f64 + 1.0);
    let mut sum = 0.0;
    for j in from..=to {
        sum += log.exp() * f(j);
        log += (mean / (j as f64 + 1.0)).ln();
    }
    sum
}

/// Waiting times of M/D/1 in order of arrival (Franx, Oper. Res. Letters 29, 2001): sums of
/// positive terms, so nothing cancels. `load` is below 1; times are in service times.
pub(super) struct Md1Waits {
    load: f64,
    /// That at most j wait.
    at_most: Vec<f64>,
}

impl Md1Waits {
    /// `None` where the load is so high that too many states matter for a percentile `p`.
    pub(super) fn new(load: f64, p: f64) -> Option<Md1Waits> {
        // The tail falls by more than exp(−2(1−ρ)/ρ)·ρ per service time.
        let steps = (1.0 - p).ln().abs() / (2.0 * (1.0 - load) / load) * 1.5 + 50.0;
        if steps > STEPS_MAX as f64 {
            return None;
        }
        let states = md1_states(load, steps as usize + 2);
        let mut sum = states[0];
        let at_most = states[1..].iter().map(|p| {
            sum += p;
            sum
        });
        Some(Md1Waits { load, at_most: at_most.collect() })
    }

    pub(super) fn exceeds(&self, t: f64) -> f64 {
        let k = t.floor() as usize + 1;
        if k > self.at_most.len() {
            return 0.0;
        }
        1.0 - poisson_sum(self.load * (k as f64 - t), |j| if j < k { self.at_most[k - 1 - j] } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::finite::mmck;
    use crate::queueing::mmc;

    #[test]
    fn tails_by_steps_are_those_of_the_closed_form_where_places_abound() {
        for (servers, load) in [(1, 0.7), (4, 0.8), (16, 0.6)] {
            let (arrival, service) = (load * f64::from(servers) * 2.0, 2.0);
            let exact = mmc(arrival, service, servers).expect("stable");
            let finite = mmck(arrival, service, servers, servers + 400).expect("in range");
            let tails = Tails::new(&finite.seen, service);
            let spare = f64::from(servers) * service - arrival;
            for t in [0.0, 0.1, 0.5, 1.0, 3.0] {
                let wait = exact.waits * (-spare * t).exp();
                assert!((tails.wait_exceeds(t) - wait).abs() < 1e-9, "{servers} {t}");
                let sojourn = mmc_sojourn_exceeds(t, exact.waits, spare, service);
                assert!((tails.sojourn_exceeds(t) - sojourn).abs() < 1e-9, "{servers} {t}");
            }
        }
    }

    #[test]
    fn waits_of_m_d_1_have_the_mean_of_pollaczek_and_khinchine() {
        for load in [0.3, 0.8, 0.95] {
            let waits = Md1Waits::new(load, 1.0 - 1e-9).expect("not too high");
            let h = 1.0 / 64.0;
            // The trapezoidal rule over smooth pieces of one service time.
            let mean: f64 = (0..64 * 400)
                .map(|i| {
                    h * f64::midpoint(
                        waits.exceeds(f64::from(i) * h),
                        waits.exceeds(f64::from(i + 1) * h - 1e-12),
                    )
                })
                .sum();
            let exact = load / (2.0 * (1.0 - load));
            assert!((mean / exact - 1.0).abs() < 2e-4, "{load}: {mean} {exact}");
            assert!((waits.exceeds(0.0) - load).abs() < 1e-12);
        }
    }
}
