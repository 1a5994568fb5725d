//! How a time varies about its mean: not at all, or as a random variate of a law.
//!
//! ```toml
//! law = { kind = "constant" }            # the default
//! law = { kind = "exponential" }
//! law = { kind = "lognormal", cv = 1.5 } # cv: standard deviation divided by the mean
//! ```

use crate::keys::{self, FileValue};
use crate::random::{exponential, standard_normal};
use fastpath_text::fields::Field;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Duration, Rng, math};

/// The law of a random time whose mean is given elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Law {
    /// Always the mean.
    #[default]
    Constant,
    /// The time between events that know nothing of each other.
    Exponential,
    /// The exponential of a normal variate: most times short, a few long.
    Lognormal {
        /// Standard deviation divided by the mean.
        cv: f64,
    },
}

/// The kinds, in the order of [`FileValue::read`].
const KINDS: [&str; 3] = ["constant", "exponential", "lognormal"];
/// The range of `cv`. Beyond it a run of any length that can be waited for has another mean.
const CV: std::ops::RangeInclusive<f64> = 0.001..=10.0;

impl FileValue for Law {
    const EXAMPLE: &'static str = "{ kind = \"exponential\" }";
    #[cfg(test)]
    const KEYS: &'static [(&'static str, bool)] = &[("kind", true), ("cv", false)];

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Law> {
        let mut fields = keys::table(field, "law", Law::EXAMPLE, remarks)?;
        let Some(kind) = fields.get("kind") else {
            remarks.mistake(
                fields.at,
                "law has no kind",
                "write kind = \"constant\", exponential or lognormal",
            );
            return None;
        };
        let law = match kind.word("a law", &KINDS, remarks)? {
            0 => Law::Constant,
            1 => Law::Exponential,
            _ => Law::Lognormal { cv: keys::value(&mut fields, "cv", None, remarks)? },
        };
        if let Law::Lognormal { cv } = law
            && !CV.contains(&cv)
        {
            let instead = "write a number from 0.001 to 10";
            remarks.mistake(field.at, "cv of the law is out of range", instead);
            return None;
        }
        keys::finish(fields, remarks);
        Some(law)
    }
}

impl Law {
    /// A variate of this law with the given mean.
    pub(crate) fn draw(self, mean: Duration, rng: &mut Rng) -> Duration {
        match self {
            Law::Constant => mean,
            Law::Exponential => exponential(rng, mean),
            Law::Lognormal { cv } => {
                // Mean 1 and variance cv²: σ² = ln(1 + cv²), μ = −σ²/2.
                let variance = math::ln(1.0 + cv * cv);
                let factor = math::exp(variance.sqrt() * standard_normal(rng) - variance / 2.0);
                Duration::from_ps((mean.as_ps() as f64 * factor + 0.5) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of `n` variates of mean 1 µs, in µs and µs².
    fn moments(law: Law, n: u32) -> (f64, f64) {
        let mut rng = Rng::new(12);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = law.draw(Duration::from_us(1), &mut rng).as_ps() as f64 / 1e6;
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(n);
        (mean, squares / f64::from(n) - mean * mean)
    }

    /// Seed 12. An interval of 4 standard errors fails one correct law in 16 000.
    #[test]
    fn variates_have_the_moments_of_their_law() {
        assert_eq!(moments(Law::Constant, 10), (1.0, 0.0));
        let n = 1_000_000;
        let root = f64::from(n).sqrt();
        let (mean, variance) = moments(Law::Exponential, n);
        assert!((mean - 1.0).abs() < 4.0 / root && (variance - 1.0).abs() < 4.0 * 8f64.sqrt() / root);
        for cv in [0.3, 1.0f64] {
            let (mean, variance) = moments(Law::Lognormal { cv }, n);
            // The fourth central moment: σ⁴ (w⁴ + 2w³ + 3w² − 3) with w = 1 + cv².
            let w = 1.0 + cv * cv;
            let fourth = cv.powi(4) * (w.powi(4) + 2.0 * w.powi(3) + 3.0 * w * w - 3.0);
            let error = (fourth - cv.powi(4)).sqrt() / root;
            assert!((mean - 1.0).abs() < 4.0 * cv / root, "cv {cv}: mean {mean}");
            assert!((variance - cv * cv).abs() < 4.0 * error, "cv {cv}: variance {variance}");
        }
    }

    #[test]
    fn lognormal_variates_are_frozen() {
        let (mut rng, law) = (Rng::new(7), Law::Lognormal { cv: 1.5 });
        let first: Vec<u64> = (0..4).map(|_| law.draw(Duration::from_us(1), &mut rng).as_ps()).collect();
        assert_eq!(first, [98184, 198655, 1036281, 454514]);
    }
}
