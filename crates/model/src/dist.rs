//! Quantiles of the distributions behind the intervals. `statrs` computes them; the tests compare
//! them with printed tables.

use statrs::distribution::{Beta, ChiSquared, ContinuousCDF, Normal, StudentsT};

/// Returns quantile `p` (in 0 … 1, ends excluded) of the standard normal distribution.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Returns quantile `p` of Student's t with `df` > 0 degrees of freedom.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are positive").inverse_cdf(p)
}

/// Returns quantile `p` of chi-square with `df` > 0 degrees of freedom.
pub fn chi2_quantile(p: f64, df: f64) -> f64 {
    ChiSquared::new(df).expect("degrees of freedom are positive").inverse_cdf(p)
}

/// Returns quantile `p` of the beta distribution with shapes `a`, `b` > 0.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    Beta::new(a, b).expect("shapes are positive").inverse_cdf(p)
}

/// Returns the interval of a probability after `hits` in `n` trials, by Clopper and Pearson (1934):
/// exact, never too narrow. `level` is 0.95 for 95 %. Panics if `n` is 0 or `hits` is above `n`.
pub fn binomial_interval(hits: u64, n: u64, level: f64) -> (f64, f64) {
    assert!(hits <= n && n > 0, "{hits} hits of {n} trials");
    let tail = (1.0 - level) / 2.0;
    let (x, m) = (hits as f64, (n - hits) as f64);
    let low = if hits == 0 { 0.0 } else { beta_quantile(tail, x, m + 1.0) };
    let high = if hits == n { 1.0 } else { beta_quantile(1.0 - tail, x + 1.0, m) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz & Stegun (1964), tables 26.10 (t), 26.1 (normal), 26.8 (chi-square).
    #[test]
    fn t_quantiles_agree_with_the_printed_table() {
        let table = [
            (1.0, 0.975, 12.706),
            (2.0, 0.975, 4.303),
            (3.0, 0.975, 3.182),
            (4.0, 0.975, 2.776),
            (5.0, 0.975, 2.571),
            (10.0, 0.975, 2.228),
            (20.0, 0.975, 2.086),
            (30.0, 0.975, 2.042),
            (60.0, 0.975, 2.000),
            (120.0, 0.975, 1.980),
            (1.0, 0.95, 6.314),
            (5.0, 0.95, 2.015),
            (5.0, 0.995, 4.032),
            (30.0, 0.995, 2.750),
            (9.0, 0.9995, 4.781),
        ];
        for (df, p, printed) in table {
            let ours = t_quantile(p, df);
            assert!((ours - printed).abs() <= 0.0006, "t({p}; {df}) = {ours}, printed {printed}");
            assert!((t_quantile(1.0 - p, df) + ours).abs() < 1e-6 * ours.abs().max(1.0), "symmetry at {df}");
        }
    }

    #[test]
    fn normal_quantiles_agree_with_the_printed_table() {
        for (p, printed) in [(0.5, 0.0), (0.9, 1.281_552), (0.975, 1.959_964), (0.995, 2.575_829)] {
            assert!((normal_quantile(p) - printed).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn chi_square_quantiles_agree_with_the_printed_table() {
        let table = [
            (1.0, 0.95, 3.841),
            (2.0, 0.95, 5.991),
            (10.0, 0.95, 18.307),
            (30.0, 0.99, 50.892),
            (5.0, 0.05, 1.145),
        ];
        for (df, p, printed) in table {
            let ours = chi2_quantile(p, df);
            assert!((ours - printed).abs() <= 0.0006, "chi2({p}; {df}) = {ours}, printed {printed}");
        }
    }

    #[test]
    fn beta_quantiles_agree_with_closed_forms() {
        // Beta(1, b): 1 − (1 − p)^(1/b); Beta(a, 1): p^(1/a).
        for p in [0.025, 0.3, 0.975] {
            assert!((beta_quantile(p, 1.0, 7.0) - (1.0 - (1.0 - p).powf(1.0 / 7.0))).abs() < 1e-8);
            assert!((beta_quantile(p, 5.0, 1.0) - p.powf(0.2)).abs() < 1e-8);
        }
    }

    #[test]
    fn the_exact_binomial_interval_agrees_with_the_published_one() {
        // 15 of 148: 5.8 % … 16.2 %, R's binom.test(15, 148).
        let (low, high) = binomial_interval(15, 148, 0.95);
        assert!((low - 0.0578).abs() < 1e-3 && (high - 0.1617).abs() < 1e-3, "{low} {high}");
        assert_eq!(binomial_interval(0, 10, 0.95).0, 0.0);
        assert_eq!(binomial_interval(10, 10, 0.95).1, 1.0);
    }
}
