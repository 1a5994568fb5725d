//! Distributions of times: gaps between arrivals, services, times of thinking.

use fastpath_units::Rng;
use fastpath_units::math;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The shape of a distribution of times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LawSpread {
    /// Always the mean.
    Constant,
    /// The sum of this many exponential phases: less variable than one.
    Erlang(u32),
    /// Exponential.
    Exponential,
    /// Hyperexponential with two phases of balanced means, and this squared coefficient of
    /// variation above 1.
    Hyper(f64),
    /// Any distribution with this squared coefficient of variation.
    Variation(f64),
}

/// Independent times of one distribution.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Times {
    /// The mean, in any unit of time.
    pub mean: f64,
    /// The shape.
    pub spread: LawSpread,
}

impl LawSpread {
    /// Returns the squared coefficient of variation: 0 for constant times, 1 for exponential ones.
    pub fn variation(self) -> f64 {
        match self {
            LawSpread::Constant => 0.0,
            LawSpread::Erlang(phases) => 1.0 / f64::from(phases),
            LawSpread::Exponential => 1.0,
            LawSpread::Hyper(variation) | LawSpread::Variation(variation) => variation,
        }
    }

    /// Returns whether times can be drawn: not of a variation alone.
    pub fn is_distribution(self) -> bool {
        !matches!(self, LawSpread::Variation(_))
    }

    /// Returns the phases of a hyperexponential distribution of mean 1: probability, and mean time.
    pub(super) fn hyper_phases(self) -> [(f64, f64); 2] {
        let p = first_phase(self.variation().max(1.0));
        [p, 1.0 - p].map(|p| (p, 0.5 / p))
    }

    /// Returns Kendall's letter.
    pub(super) fn letter(self) -> String {
        match self {
            LawSpread::Constant => "D".to_owned(),
            LawSpread::Erlang(phases) => format!("E{phases}"),
            LawSpread::Exponential => "M".to_owned(),
            LawSpread::Hyper(_) => "H2".to_owned(),
            LawSpread::Variation(_) => "G".to_owned(),
        }
    }
}

/// The probability of the first phase of a hyperexponential distribution of balanced means.
fn first_phase(variation: f64) -> f64 {
    f64::midpoint(1.0, ((variation - 1.0) / (variation + 1.0)).sqrt())
}

impl Times {
    /// Exponential times.
    pub fn exponential(mean: f64) -> Times {
        Times { mean, spread: LawSpread::Exponential }
    }

    /// Returns whether the times are exponential.
    pub(super) fn is_exponential(self) -> bool {
        self.spread.variation() == 1.0 && self.spread != LawSpread::Variation(1.0)
    }

    /// Returns the second moment.
    pub(super) fn second_moment(self) -> f64 {
        self.mean * self.mean * (1.0 + self.spread.variation())
    }

    /// Returns the Laplace transform E[exp(−s·T)]. NaN where only the variation is known.
    pub(super) fn transform(self, s: f64) -> f64 {
        let x = s * self.mean;
        match self.spread {
            LawSpread::Constant => (-x).exp(),
            LawSpread::Exponential => 1.0 / (1.0 + x),
            LawSpread::Erlang(phases) => (1.0 + x / f64::from(phases)).powf(-f64::from(phases)),
            LawSpread::Hyper(_) => {
                self.spread.hyper_phases().iter().map(|(p, mean)| p / (1.0 + mean * x)).sum()
            }
            LawSpread::Variation(_) => f64::NAN,
        }
    }

    /// Draws a time. A variation alone gives its mean.
    pub(super) fn draw(self, rng: &mut Rng) -> f64 {
        // 1 − u is in (0, 1], so the logarithm is finite.
        let mut exponential = || -math::ln(1.0 - rng.unit_f64());
        match self.spread {
            LawSpread::Constant | LawSpread::Variation(_) => self.mean,
            LawSpread::Exponential => self.mean * exponential(),
            LawSpread::Erlang(phases) => {
                let sum: f64 = (0..phases).map(|_| exponential()).sum();
                self.mean * sum / f64::from(phases)
            }
            LawSpread::Hyper(_) => {
                let time = exponential();
                let [(p, first), (_, second)] = self.spread.hyper_phases();
                self.mean * time * if rng.unit_f64() < p { first } else { second }
            }
        }
    }
}

impl fmt::Display for LawSpread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LawSpread::Constant => f.write_str("constant"),
            LawSpread::Erlang(phases) => write!(f, "erlang:{phases}"),
            LawSpread::Exponential => f.write_str("exponential"),
            LawSpread::Hyper(variation) => write!(f, "hyper:{variation}"),
            LawSpread::Variation(variation) => write!(f, "cv2:{variation}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LawSpread; 4] =
        [LawSpread::Constant, LawSpread::Erlang(3), LawSpread::Exponential, LawSpread::Hyper(4.0)];

    #[test]
    fn drawn_times_have_the_mean_and_the_variation() {
        for spread in ALL {
            let (times, mut rng) = (Times { mean: 2.0, spread }, Rng::new(7));
            let drawn: Vec<f64> = (0..200_000).map(|_| times.draw(&mut rng)).collect();
            let mean = drawn.iter().sum::<f64>() / 2e5;
            let second = drawn.iter().map(|t| t * t).sum::<f64>() / 2e5;
            // Five standard errors of the mean; the fourth moment widens that of the second.
            let error = 5.0 * 2.0 * (spread.variation() / 2e5).sqrt();
            assert!((mean - 2.0).abs() <= error + 1e-9, "{spread}: {mean}");
            assert!((second / times.second_moment() - 1.0).abs() < 0.06, "{spread}: {second}");
        }
    }

    #[test]
    fn transforms_have_the_moments_as_derivatives() {
        for spread in ALL {
            let times = Times { mean: 2.0, spread };
            let h = 1e-4;
            let [low, middle, high] = [-h, 0.0, h].map(|s| times.transform(s));
            assert!((middle - 1.0).abs() < 1e-12);
            assert!(((low - high) / (2.0 * h) - 2.0).abs() < 1e-5, "{spread}");
            assert!(
                ((low - 2.0 * middle + high) / (h * h) / times.second_moment() - 1.0).abs() < 1e-4,
                "{spread}"
            );
        }
    }
}
