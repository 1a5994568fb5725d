//! SCION's router performance index: I = (1/score + M·8·L/C + N) · rate, meant to be the same for one
//! program on every platform, so that it predicts the rate on the next. M weighs copying against computing,
//! N is a fixed time per packet. (Hugly, "Router benchmark observations and predictive model", 2024.)
//!
//! 1/rate is linear in (1/I, M/I, N/I), so M and N are fitted by least squares on relative errors. With as
//! many unknowns as platforms such a fit proves nothing, and says so.

use crate::Estimate;
use crate::dist::t_quantile;
use crate::linear;
use crate::platform::{Platform, ScoreKind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Packet length of every worked figure of the document, bytes (its text also says 152).
pub const LENGTH_BYTES: f64 = 172.0;
/// The M of the document's second proposal.
pub const M_TUNED: f64 = 400.0;
/// The fixed time per packet in the benchmark program SCION runs, seconds.
pub const N_PROGRAM_S: f64 = 1e-6;

/// Which M and N are used.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// M = 1, N = 0: the document's first proposal.
    Plain,
    /// M = 400, N = 0: its second.
    Tuned,
    /// M = 400, N = 1 µs: what its program computes.
    Program,
    /// Both given.
    Given {
        /// M, without unit.
        m: f64,
        /// N in seconds.
        n_s: f64,
    },
    /// M fitted, N = 0; two platforms at least.
    FitM,
    /// M and N fitted; three platforms at least.
    FitMN,
}

impl Variant {
    fn given(self) -> Option<(f64, f64)> {
        match self {
            Variant::Plain => Some((1.0, 0.0)),
            Variant::Tuned => Some((M_TUNED, 0.0)),
            Variant::Program => Some((M_TUNED, N_PROGRAM_S)),
            Variant::Given { m, n_s } => Some((m, n_s)),
            Variant::FitM | Variant::FitMN => None,
        }
    }

    /// Unknowns besides I.
    fn unknowns(self) -> usize {
        match self {
            Variant::FitM => 1,
            Variant::FitMN => 2,
            _ => 0,
        }
    }
}

/// The index over a set of platforms.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Index {
    /// Which M and N were used.
    pub variant: Variant,
    /// M.
    pub m: f64,
    /// N in seconds.
    pub n_s: f64,
    /// Packet length in bytes.
    pub length_bytes: f64,
    /// Mean of the platforms' indices with its 95 % Student interval; without width where there are as many
    /// unknowns as platforms.
    pub index: Estimate,
    /// Platform by platform.
    pub platforms: Vec<PlatformIndex>,
    /// Range of the error when one platform predicts another, in %; `None` for one platform.
    pub pairwise_error_pct: Option<(f64, f64)>,
    /// What the reader should know.
    pub warnings: Vec<String>,
}

/// One platform's part.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlatformIndex {
    /// Its name.
    pub name: String,
    /// Its own index.
    pub index: f64,
    /// The index with the factor 8 from bytes to bits forgotten: if this is what you expected, the copy
    /// rate was meant in bytes/s.
    pub index_without_factor_8: f64,
    /// Predicted over measured rate − 1 in %, when the other platforms (and M, N fitted to them) predict
    /// it; `None` where too few others are left.
    pub left_out_error_pct: Option<f64>,
}

/// Why there is no index.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum IndexError {
    /// Fewer platforms than unknowns.
    #[error("{platforms} platform(s) for {unknowns} unknowns (I{}{}): measure more platforms, or give M and N", if *.unknowns > 1 { ", M" } else { "" }, if *.unknowns > 2 { ", N" } else { "" })]
    TooFew {
        /// Usable platforms.
        platforms: usize,
        /// Unknowns.
        unknowns: usize,
    },
    /// Scores of two kinds.
    #[error("`{first}` and `{second}` carry scores of different kinds: measure both with the same")]
    MixedScores {
        /// One platform.
        first: String,
        /// The other.
        second: String,
    },
    /// A number that is missing, not finite, or not above 0.
    #[error("platform `{platform}`: {what} must be a number above 0: correct the record")]
    BadNumber {
        /// The platform.
        platform: String,
        /// Which number.
        what: &'static str,
    },
    /// The platforms are too alike to tell M (or N).
    #[error(
        "the platforms' scores and copy rates are proportional: M and N cannot be told apart from I; add a platform of another balance"
    )]
    Alike,
}

/// The cost of a packet in index units: 1/score + M·8·L/C + N.
fn cost(platform: &Platform, length: f64, m: f64, n_s: f64) -> f64 {
    1.0 / platform.score + m * 8.0 * length / platform.copy_bits_per_s + n_s
}

/// The index of one measured platform for given M and N (seconds). `rate_pps` of the platform must be known.
pub fn index_of(platform: &Platform, length_bytes: f64, m: f64, n_s: f64) -> Option<f64> {
    Some(cost(platform, length_bytes, m, n_s) * platform.rate_pps?)
}

/// The index over measured platforms, cross-validated by leaving each out.
///
/// # Errors
/// [`IndexError`]: one platform for two unknowns is refused, as are scores of different kinds.
pub fn index(platforms: &[Platform], length_bytes: f64, variant: Variant) -> Result<Index, IndexError> {
    check(platforms)?;
    let mut warnings = Vec::new();
    let usable: Vec<&Platform> = platforms
        .iter()
        .filter(|p| match wire_share(p, length_bytes) {
            Some(share) if share >= 1.0 => {
                warnings.push(format!(
                    "`{}` left out: it forwards at the wire's rate, not the processor's",
                    p.name
                ));
                false
            }
            _ => true,
        })
        .collect();
    let (m, n_s) = parameters(&usable, length_bytes, variant)?;
    let own = |p: &Platform| index_of(p, length_bytes, m, n_s).unwrap_or(f64::NAN);
    let indices: Vec<f64> = usable.iter().map(|p| own(p)).collect();
    let rows = usable
        .iter()
        .enumerate()
        .map(|(i, p)| PlatformIndex {
            name: p.name.clone(),
            index: indices[i],
            index_without_factor_8: own(&Platform {
                copy_bits_per_s: p.copy_bits_per_s * 8.0,
                ..(*p).clone()
            }),
            left_out_error_pct: left_out(&usable, i, length_bytes, variant),
        })
        .collect();
    warn(&mut warnings, usable.len(), variant, m, n_s);
    Ok(Index {
        variant,
        m,
        n_s,
        length_bytes,
        index: mean(&indices, variant.unknowns()),
        platforms: rows,
        pairwise_error_pct: pairwise(&indices),
        warnings,
    })
}

impl Index {
    /// The rate on a platform not measured, packets/s: the interval is that of one further platform, from
    /// the spread of the indices (none for a single platform).
    pub fn predict(&self, platform: &Platform) -> Estimate {
        let n = self.platforms.len() as f64;
        let half = (self.index.high - self.index.low) / 2.0 * (n + 1.0).sqrt();
        let cost = cost(platform, self.length_bytes, self.m, self.n_s);
        let index = Estimate::around(self.index.value, half);
        Estimate { low: index.low.max(0.0), ..index }.map(|i| i / cost)
    }
}

fn check(platforms: &[Platform]) -> Result<(), IndexError> {
    for p in platforms {
        let good = |x: f64| x.is_finite() && x > 0.0;
        let bad = |what| IndexError::BadNumber { platform: p.name.clone(), what };
        if !good(p.score) {
            return Err(bad("the score"));
        }
        if !good(p.copy_bits_per_s) {
            return Err(bad("the copy rate"));
        }
        if !p.rate_pps.is_some_and(good) {
            return Err(bad("the measured rate"));
        }
        let kind = |p: &Platform| -> ScoreKind { p.score_kind };
        if kind(p) != kind(&platforms[0]) {
            return Err(IndexError::MixedScores { first: platforms[0].name.clone(), second: p.name.clone() });
        }
    }
    Ok(())
}

/// The wire's time per packet over the measured one: 1 and above means the wire was the limit.
fn wire_share(platform: &Platform, length_bytes: f64) -> Option<f64> {
    Some(platform.wire?.transmission_s(length_bytes) * platform.rate_pps?)
}

/// M and N, given or fitted.
fn parameters(platforms: &[&Platform], length: f64, variant: Variant) -> Result<(f64, f64), IndexError> {
    let unknowns = 1 + variant.unknowns();
    if platforms.len() < unknowns {
        return Err(IndexError::TooFew { platforms: platforms.len(), unknowns });
    }
    if let Some(given) = variant.given() {
        return Ok(given);
    }
    // rate/score·(1/I) + 8·L·rate/C·(M/I) + rate·(N/I) = 1: relative errors of the rate.
    let rate = |p: &Platform| p.rate_pps.unwrap_or(f64::NAN);
    let by = |part: &dyn Fn(&Platform) -> f64| platforms.iter().map(|p| part(p)).collect::<Vec<f64>>();
    let mut columns = vec![by(&|p| rate(p) / p.score), by(&|p| 8.0 * length * rate(p) / p.copy_bits_per_s)];
    if variant == Variant::FitMN {
        columns.push(by(&rate));
    }
    let ones = vec![1.0; platforms.len()];
    let solution = linear::solve(&columns, &ones, &ones).map_err(|_| IndexError::Alike)?;
    let b = &solution.coefficients;
    Ok((b[1] / b[0], b.get(2).map_or(0.0, |n| n / b[0])))
}

/// Predicts platform `i` from the others.
fn left_out(platforms: &[&Platform], i: usize, length: f64, variant: Variant) -> Option<f64> {
    let others: Vec<&Platform> =
        platforms.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, p)| *p).collect();
    let (m, n_s) = parameters(&others, length, variant).ok()?;
    let indices: Vec<f64> = others.iter().filter_map(|p| index_of(p, length, m, n_s)).collect();
    let index = indices.iter().sum::<f64>() / indices.len() as f64;
    Some(100.0 * (index / cost(platforms[i], length, m, n_s) / platforms[i].rate_pps? - 1.0))
}

fn pairwise(indices: &[f64]) -> Option<(f64, f64)> {
    let low = indices.iter().copied().fold(f64::INFINITY, f64::min);
    let high = indices.iter().copied().fold(0.0, f64::max);
    (indices.len() > 1).then(|| (100.0 * (low / high - 1.0), 100.0 * (high / low - 1.0)))
}

/// Each fitted parameter takes a degree of freedom.
fn mean(indices: &[f64], fitted: usize) -> Estimate {
    let n = indices.len() as f64;
    let mean = indices.iter().sum::<f64>() / n;
    if indices.len() < 2 + fitted {
        return Estimate::exact(mean);
    }
    let freedom = n - 1.0 - fitted as f64;
    let variance = indices.iter().map(|i| (i - mean).powi(2)).sum::<f64>() / freedom;
    Estimate::around(mean, t_quantile(0.975, freedom) * (variance / n).sqrt())
}

fn warn(warnings: &mut Vec<String>, platforms: usize, variant: Variant, m: f64, n_s: f64) {
    const WORDS: [&str; 4] = ["no", "one", "two", "three"];
    let word = |n: usize| WORDS.get(n).map_or_else(|| n.to_string(), |w| (*w).to_owned());
    let free = variant.unknowns();
    if platforms == 1 {
        warnings
            .push("one platform: the index has no error bar and nothing to be checked against".to_owned());
    }
    if platforms == free + 1 && free > 0 {
        warnings.push("as many unknowns as platforms: the fit is exact and has no error bar".to_owned());
    }
    if free > 0 && platforms <= free + 2 {
        warnings.push(format!(
            "{} free parameter{}, {} points: the agreement of the indices is bought, not found; measure more platforms",
            word(free),
            if free == 1 { "" } else { "s" },
            word(platforms)
        ));
    }
    if matches!(variant, Variant::Tuned | Variant::Program) {
        warnings.push("M = 400 was tuned by its authors on three platforms, with N a second free parameter: two free parameters, three points".to_owned());
    }
    if m < 0.0 || n_s < 0.0 {
        warnings.push(format!(
            "M = {m:.3}, N = {:.3} µs: a negative cost has no meaning; the model does not hold here",
            n_s * 1e6
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::scion::{platforms, platforms_exact};

    fn indices(variant: Variant) -> Vec<f64> {
        let found = index(&platforms(), LENGTH_BYTES, variant).expect("three platforms");
        found.platforms.iter().map(|p| p.index).collect()
    }

    fn close(ours: &[f64], printed: [f64; 3], tolerance: f64) {
        for (a, b) in ours.iter().zip(printed) {
            assert!((a - b).abs() <= tolerance, "{ours:?} {printed:?}");
        }
    }

    #[test]
    fn the_document_s_variants_come_out() {
        close(&indices(Variant::Plain), [14.94, 21.46, 25.71], 0.005);
        close(&indices(Variant::Tuned), [28.05, 32.79, 32.03], 0.005);
        let exact = index(&platforms_exact(), LENGTH_BYTES, Variant::Program).expect("three platforms");
        close(&exact.platforms.iter().map(|p| p.index).collect::<Vec<_>>(), [26.96, 32.76, 32.39], 0.005);
        assert!(exact.warnings.iter().any(|w| w.contains("two free parameters, three points")));
    }

    #[test]
    fn forgetting_the_factor_8_is_shown_beside_the_index() {
        let plain = index(&platforms(), LENGTH_BYTES, Variant::Plain).expect("three platforms");
        let trap: Vec<f64> = plain.platforms.iter().map(|p| p.index_without_factor_8).collect();
        close(&trap, [14.91, 21.44, 25.70], 0.005);
    }

    #[test]
    fn one_platform_predicting_another_errs_as_known() {
        let plain = index(&platforms_exact(), LENGTH_BYTES, Variant::Plain).expect("three platforms");
        let (low, high) = plain.pairwise_error_pct.expect("three platforms");
        assert!((low + 42.0).abs() < 0.5 && (high - 72.0).abs() < 0.5, "{low} {high}");
        let tuned = index(&platforms_exact(), LENGTH_BYTES, Variant::Tuned).expect("three platforms");
        let (low, high) = tuned.pairwise_error_pct.expect("three platforms");
        assert!((low + 16.0).abs() < 0.5 && (high - 19.0).abs() < 0.5, "{low} {high}");
    }

    #[test]
    fn one_platform_for_two_unknowns_is_refused() {
        let error = index(&platforms()[..1], LENGTH_BYTES, Variant::FitM).unwrap_err().to_string();
        assert_eq!(error, "1 platform(s) for 2 unknowns (I, M): measure more platforms, or give M and N");
        let error = index(&platforms()[..2], LENGTH_BYTES, Variant::FitMN).unwrap_err().to_string();
        assert_eq!(error, "2 platform(s) for 3 unknowns (I, M, N): measure more platforms, or give M and N");
    }

    #[test]
    fn two_free_parameters_on_three_points_are_called_that() {
        let fitted = index(&platforms(), LENGTH_BYTES, Variant::FitMN).expect("three platforms");
        assert!(fitted.warnings.iter().any(|w| w.starts_with("two free parameters, three points")));
        assert!(fitted.warnings.iter().any(|w| w.contains("no error bar")), "{:?}", fitted.warnings);
        assert!(fitted.platforms.iter().all(|p| p.left_out_error_pct.is_none()));
    }

    #[test]
    fn a_known_m_and_n_are_found_again() {
        let made = |name: &str, score: f64, copy: f64| {
            let mut p = Platform {
                name: name.to_owned(),
                score,
                copy_bits_per_s: copy,
                rate_pps: None,
                ..platforms()[0].clone()
            };
            p.wire = None;
            p.rate_pps = Some(30.0 / cost(&p, 172.0, 250.0, 2e-6));
            p
        };
        let all = [
            made("a", 3e3, 2e9),
            made("b", 3e4, 3e10),
            made("c", 2e4, 9e10),
            made("d", 5e4, 5e9),
            made("e", 1e4, 1e10),
        ];
        let found = index(&all, 172.0, Variant::FitMN).expect("five platforms");
        assert!((found.m - 250.0).abs() < 1e-6 && (found.n_s - 2e-6).abs() < 1e-14, "{found:?}");
        assert!(found.platforms.iter().all(|p| p.left_out_error_pct.is_some_and(|e| e.abs() < 1e-6)));
        let fresh = made("f", 4e4, 4e10);
        assert!((found.predict(&fresh).value / fresh.rate_pps.expect("made") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_platform_on_its_wire_s_limit_is_left_out() {
        let mut all = platforms();
        let wire = all[0].wire.expect("the APU2's wire is known");
        all[0].rate_pps = Some(1.0 / wire.transmission_s(LENGTH_BYTES));
        let found = index(&all, LENGTH_BYTES, Variant::Tuned).expect("two left");
        assert_eq!(found.platforms.len(), 2);
        assert!(found.warnings[0].contains("`APU2` left out"));
    }

    #[test]
    fn scores_of_two_kinds_are_refused() {
        let mut all = platforms();
        all[2].score_kind = ScoreKind::Own;
        assert!(matches!(index(&all, LENGTH_BYTES, Variant::Plain), Err(IndexError::MixedScores { .. })));
    }
}
