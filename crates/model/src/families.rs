//! How well fits predict costs of known shape: families of cost functions, samples of several sizes
//! with noise, and points that were not fitted.
//!
//! The intervals of a fit should hold as often as they state, and be no wider than needed. Real
//! grids show one shape and one size. These families show many, those that no term has included.

use crate::Table;
use crate::check::{Check, CheckVerdict};
use crate::fit::{FitError, FitOptions, Weighting, fit};
use crate::model::ModelError;
use fastpath_units::Rng;
use fastpath_units::math::normal_quantile;
use fastpath_units::stats::{median, quantile, sorted};
use serde::{Deserialize, Serialize};

/// Frame sizes of the points.
const SIZES: [f64; 14] =
    [64.0, 96.0, 128.0, 192.0, 256.0, 320.0, 384.0, 512.0, 640.0, 768.0, 1024.0, 1152.0, 1280.0, 1518.0];
/// Steps of the points.
const STEPS: [f64; 9] = [0.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0];
/// Sizes of the samples.
pub const SAMPLES: [usize; 3] = [16, 32, 64];
/// The terms that the points choose.
pub const CHOSEN: &str = "auto:p,h";
/// The fixed terms that are compared with them.
pub const FIXED: &str = "const,p,h";
/// Standard deviation of the noise, relative to the cost.
pub const NOISE: f64 = 0.005;
/// Share of new points in the intervals of chosen terms: the bounds that pass.
pub const COVERED: [f64; 2] = [0.90, 0.99];

/// A shape of costs: ns by frame size and steps.
#[derive(Clone, Copy)]
pub struct TermFamily {
    /// Its name.
    pub name: &'static str,
    /// The cost.
    pub cost: fn(f64, f64) -> f64,
}

fn beyond(x: f64, bend: f64) -> f64 {
    (x - bend).max(0.0)
}

/// The families.
pub const FAMILIES: [TermFamily; 8] = [
    TermFamily { name: "straight", cost: |p, h| 38.6 + 0.101 * p + 4.07 * h },
    TermFamily { name: "bend", cost: |p, h| 30.0 + 0.2 * p - 0.15 * beyond(p, 256.0) + 4.0 * h },
    TermFamily { name: "product", cost: |p, h| 30.0 + 0.1 * p + 4.0 * h + 0.002 * p * h },
    TermFamily { name: "cache lines", cost: |p, h| 20.0 + 5.0 * (p / 64.0).ceil() + 4.0 * h },
    TermFamily {
        name: "logarithm",
        cost: |p, h| 20.0 + 9.0 * (p / 64.0).ln() + 0.05 * p + 4.0 * h.powf(0.8),
    },
    TermFamily { name: "power", cost: |p, h| 15.0 + 1.2 * p.powf(0.6) + 5.0 * h.powf(0.9) },
    TermFamily {
        name: "cache step",
        cost: |p, h| 30.0 + 0.1 * p + 4.0 * h + if h > 15.0 { 25.0 } else { 0.0 },
    },
    TermFamily {
        name: "saturation",
        cost: |p, h| 25.0 + 80.0 * p / (p + 400.0) + 6.0 * h / (1.0 + h / 60.0),
    },
];

/// How well fits to samples of one size predict the new points of a family.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FamilyFigure {
    /// The family.
    pub family: String,
    /// Number of points of a sample.
    pub sample: usize,
    /// With chosen terms, [`CHOSEN`]. It holds if the coverage is in [`COVERED`].
    pub chosen: Check,
    /// With fixed terms, [`FIXED`].
    pub fixed: Check,
}

/// Fits `samples` samples of each size of each family, and compares with the points that are left.
///
/// # Errors
/// As [`fit`].
pub fn families(samples: u64, seed: u64) -> Result<Vec<FamilyFigure>, FitError> {
    let mut figures = Vec::new();
    for (i, family) in FAMILIES.iter().enumerate() {
        for sample in SAMPLES {
            let [mut chosen, mut fixed] = [CoverageTally::default(), CoverageTally::default()];
            for trial in 0..samples {
                let mut rng = Rng::stream(seed, ((i as u64) << 32) | (trial << 8) | sample as u64);
                let [fitted, new] = draw(family, sample, &mut rng)?;
                chosen.add(&fitted, &new, CHOSEN)?;
                fixed.add(&fitted, &new, FIXED)?;
            }
            let [chosen, fixed] = [chosen.check(), fixed.check()];
            figures.push(FamilyFigure { family: family.name.to_owned(), sample, chosen, fixed });
        }
    }
    Ok(figures)
}

/// Draws a sample, and as many new points of the same grid as are left, all with noise.
fn draw(family: &TermFamily, sample: usize, rng: &mut Rng) -> Result<[Table; 2], FitError> {
    let mut grid: Vec<(f64, f64)> = SIZES.iter().flat_map(|p| STEPS.iter().map(move |h| (*p, *h))).collect();
    for i in (1..grid.len()).rev() {
        grid.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let mut table = |points: &[(f64, f64)]| {
        let (p, h): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let noisy = |(p, h): &(f64, f64)| {
            // A uniform number in (0, 1), so that the quantile is finite.
            let u = (rng.unit_f64() + f64::EPSILON / 2.0).min(1.0 - f64::EPSILON);
            (family.cost)(*p, *h) * (1.0 + NOISE * normal_quantile(u))
        };
        let t: Vec<f64> = points.iter().map(noisy).collect();
        Table::from_columns(&[("p", &p), ("h", &h), ("T_ns", &t)])
    };
    Ok([table(&grid[..sample])?, table(&grid[sample..])?])
}

/// What was seen of some terms.
#[derive(Default)]
struct CoverageTally {
    inside: usize,
    widths: Vec<f64>,
    errors: Vec<f64>,
}

impl CoverageTally {
    fn add(&mut self, fitted: &Table, new: &Table, terms: &str) -> Result<(), FitError> {
        let options = FitOptions { weighting: Weighting::Relative, ..FitOptions::default() };
        let model = fit(fitted, "T_ns", terms, &options)?.model();
        let (p, h, t) = (new.numbers("p")?, new.numbers("h")?, new.numbers("T_ns")?);
        for row in 0..t.len() {
            let value = |name: &str| Some(if name == "p" { p[row] } else { h[row] });
            let predicted: Result<_, ModelError> = model.predict(value);
            let Ok(predicted) = predicted else { continue };
            let single = predicted.single;
            self.inside += usize::from(single.covers(t[row]));
            self.widths.push(100.0 * (single.high - single.low) / single.value);
            self.errors.push(100.0 * (single.value / t[row] - 1.0).abs());
        }
        Ok(())
    }

    fn check(self) -> Check {
        let errors = sorted(self.errors);
        let covered = self.inside as f64 / errors.len() as f64;
        let is_stated = (COVERED[0]..=COVERED[1]).contains(&covered);
        Check {
            n: errors.len(),
            capped: 0,
            median_pct: quantile(&errors, 0.5),
            p95_pct: quantile(&errors, 0.95),
            max_pct: quantile(&errors, 1.0),
            covered,
            width_pct: median(self.widths),
            repeat: None,
            verdict: if is_stated { CheckVerdict::Holds } else { CheckVerdict::Misses },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_chosen_terms_hold_on_every_family_and_are_narrow() {
        let figures = families(6, 11).expect("fits");
        let of_all =
            |share: fn(&FamilyFigure) -> f64| figures.iter().map(share).sum::<f64>() / figures.len() as f64;
        let covered = of_all(|figure| figure.chosen.covered);
        assert!((COVERED[0]..=COVERED[1]).contains(&covered), "{covered}");
        for FamilyFigure { family, sample, chosen, fixed } in &figures {
            // Six samples of 16 points: the coverage itself has an error of a few percent.
            assert!(chosen.covered >= 0.85, "{family} {sample}: {chosen:?}");
            // Where a straight line does not fit, chosen terms are narrower and nearer.
            if fixed.median_pct > 2.0 && *sample >= 32 {
                assert!(chosen.width_pct < 0.4 * fixed.width_pct, "{family} {sample}: {chosen:?} {fixed:?}");
                assert!(chosen.median_pct < 0.4 * fixed.median_pct, "{family} {sample}: {chosen:?}");
            }
            // Where it does, the choice costs little.
            if family == "straight" {
                assert!(chosen.width_pct < 1.3 * fixed.width_pct, "{sample}: {chosen:?} {fixed:?}");
            }
        }
    }
}
