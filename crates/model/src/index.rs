//! SCION's router performance index (Hugly 2024): I = (1/score + M·8·L/C + N) · rate. It is meant
//! to be the same for one program on every platform, so that it predicts the rate on another
//! platform. M weighs copying against computing; N is a fixed time per packet.
//!
//! 1/rate is linear in (1/I, M/I, N/I), so M and N are fitted by least squares on relative errors.
//! With as many unknowns as platforms such a fit proves nothing; a warning says so. The intervals
//! of I, M, N and of another platform's rate are those of the regression: quotients by Fieller
//! (1954), predictions as of one further point.

use crate::dist::t_quantile;
use crate::linear::{self, Solution};
use crate::platform::{Platform, ScoreKind};
use crate::{Bounded, Estimate};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Packet length in the worked figures of Hugly 2024, bytes (its text also says 152).
pub const LENGTH_BYTES: f64 = 172.0;
/// M of the document's second proposal.
pub const M_TUNED: f64 = 400.0;
/// The fixed time per packet in SCION's benchmark program, seconds.
pub const N_PROGRAM_S: f64 = 1e-6;

/// How M and N are chosen.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// M = 1, N = 0: the document's first proposal.
    Plain,
    /// M = 400, N = 0: its second proposal.
    Tuned,
    /// M = 400, N = 1 µs: as in SCION's benchmark program.
    Program,
    /// M and N are given.
    Given {
        /// M, without unit.
        m: f64,
        /// N in seconds.
        n_s: f64,
    },
    /// M fitted, N = 0; needs two platforms or more.
    FitM,
    /// M and N fitted; needs three platforms or more.
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

    /// Returns the number of unknowns in addition to I.
    fn unknowns(self) -> usize {
        match self {
            Variant::FitM => 1,
            Variant::FitMN => 2,
            _ => 0,
        }
    }
}

/// The index over a set of platforms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Index {
    /// How M and N were chosen.
    pub variant: Variant,
    /// M: exact if given, with its 95 % interval if fitted.
    pub m: Bounded,
    /// N in seconds: exact if given, with its 95 % interval if fitted.
    pub n_s: Bounded,
    /// Packet length in bytes.
    pub length_bytes: f64,
    /// Mean of the platforms' indices, or the index fitted with M and N, with its 95 % Student
    /// interval. Without bounds if there are as many unknowns as platforms.
    pub index: Bounded,
    /// The platforms one by one.
    pub platforms: Vec<PlatformIndex>,
    /// Range of the error when one platform predicts another, in %; `None` for one platform.
    pub pairwise_error_pct: Option<(f64, f64)>,
    /// Reasons to doubt the result.
    pub warnings: Vec<String>,
}

/// The index of one platform.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlatformIndex {
    /// Its name.
    pub name: String,
    /// Its own index.
    pub index: f64,
    /// The index without the factor 8 from bytes to bits. If this is the expected value, the copy
    /// rate is in bytes/s.
    pub index_without_factor_8: f64,
    /// Error of the rate that the other platforms predict (with M and N fitted to them), in %;
    /// `None` if there are too few others.
    pub left_out_error_pct: Option<f64>,
}

/// Why there is no index.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Fewer platforms than unknowns.
    #[error("{platforms} platform(s) for {unknowns} unknowns (I{}{}): measure more platforms, or give M and N", if *.unknowns > 1 { ", M" } else { "" }, if *.unknowns > 2 { ", N" } else { "" })]
    TooFew {
        /// Usable platforms.
        platforms: usize,
        /// Unknowns.
        unknowns: usize,
    },
    /// The platforms' scores are of two kinds.
    #[error("`{first}` and `{second}` carry scores of different kinds: measure both with the same benchmark")]
    MixedScores {
        /// One platform.
        first: String,
        /// The other.
        second: String,
    },
    /// Two packet lengths.
    #[error(
        "packets of {length} bytes ({first}) and of {other} bytes ({second}): an index applies to one packet length: give the measured length, or select platforms"
    )]
    Length {
        /// Source of the first length.
        first: String,
        /// The first length, bytes.
        length: f64,
        /// Source of the other length.
        second: String,
        /// The other length, bytes.
        other: f64,
    },
    /// A number is missing, not finite, or not above 0.
    #[error("platform `{platform}`: {what} must be a number above 0: correct the record")]
    BadNumber {
        /// The platform.
        platform: String,
        /// Which number.
        what: &'static str,
    },
    /// The platforms are too similar to determine M (or N).
    #[error(
        "the platforms' scores and copy rates are proportional: M and N cannot be separated from I; add a platform with another ratio of score to copy rate"
    )]
    Alike,
}

/// Returns the cost of a packet in index units: 1/score + M·8·L/C + N.
fn cost(platform: &Platform, length: f64, m: f64, n_s: f64) -> f64 {
    1.0 / platform.score + m * 8.0 * length / platform.copy_bits_per_s + n_s
}

/// Returns the index of one platform for given M and N (seconds); `None` if its rate is not known.
pub fn index_of(platform: &Platform, length_bytes: f64, m: f64, n_s: f64) -> Option<f64> {
    Some(cost(platform, length_bytes, m, n_s) * platform.rate_pps?)
}

/// Returns the packet length to use: the one that was measured, where the platforms say it,
/// otherwise `given` or [`LENGTH_BYTES`].
///
/// # Errors
/// [`IndexError::Length`] when two of them differ.
pub fn common_length(platforms: &[Platform], given: Option<f64>) -> Result<f64, IndexError> {
    let measured = platforms.iter().filter_map(|p| Some((format!("`{}`", p.name), p.packet_bytes?)));
    let mut all = given.map(|length| ("--length".to_owned(), length)).into_iter().chain(measured);
    let Some((first, length)) = all.next() else { return Ok(LENGTH_BYTES) };
    match all.find(|(_, other)| *other != length) {
        None => Ok(length),
        Some((second, other)) => Err(IndexError::Length { first, length, second, other }),
    }
}

/// Computes the index over measured platforms. Each platform is also predicted by the others.
///
/// # Errors
/// [`IndexError`] for fewer platforms than unknowns, scores of different kinds, and bad numbers.
pub fn index(platforms: &[Platform], length_bytes: f64, variant: Variant) -> Result<Index, IndexError> {
    check(platforms)?;
    let usable = not_wire_limited(platforms, length_bytes);
    let mut warnings = left_out_warnings(platforms, length_bytes);
    let basis = Basis::of(&usable, length_bytes, variant)?;
    let (m, n_s) = (basis.m(), basis.n_s());
    let own = |p: &Platform| index_of(p, length_bytes, m.value, n_s.value).unwrap_or(f64::NAN);
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
    warn(&mut warnings, usable.len(), variant, m.value, n_s.value);
    Ok(Index {
        variant,
        m,
        n_s,
        length_bytes,
        index: basis.index(),
        platforms: rows,
        pairwise_error_pct: pairwise(&indices),
        warnings,
    })
}

/// Predicts the rate on a platform that was not measured, packets/s. The interval is that of one
/// further platform; without bounds if there are as many unknowns as `platforms`.
///
/// # Errors
/// [`IndexError`] as [`index`].
pub fn predict_rate(
    platforms: &[Platform],
    length_bytes: f64,
    variant: Variant,
    other: &Platform,
) -> Result<Bounded, IndexError> {
    check(platforms)?;
    let usable = not_wire_limited(platforms, length_bytes);
    Ok(Basis::of(&usable, length_bytes, variant)?.rate(other, length_bytes))
}

/// Returns the platforms whose processor, not the wire, limits the rate.
fn not_wire_limited(platforms: &[Platform], length_bytes: f64) -> Vec<&Platform> {
    platforms.iter().filter(|p| !is_wire_limited(p, length_bytes)).collect()
}

fn left_out_warnings(platforms: &[Platform], length_bytes: f64) -> Vec<String> {
    let limited = platforms.iter().filter(|p| is_wire_limited(p, length_bytes));
    limited.map(|p| format!("`{}` left out: the wire limits its rate, not the processor", p.name)).collect()
}

/// What the measured platforms determine.
#[derive(Clone, PartialEq, Debug)]
enum Basis {
    /// M and N are given, so each platform has an index.
    Given { m: f64, n_s: f64, indices: Vec<f64> },
    /// M and N are fitted.
    Fitted(Regression),
}

impl Basis {
    fn of(platforms: &[&Platform], length: f64, variant: Variant) -> Result<Basis, IndexError> {
        let unknowns = 1 + variant.unknowns();
        if platforms.len() < unknowns {
            return Err(IndexError::TooFew { platforms: platforms.len(), unknowns });
        }
        let Some((m, n_s)) = variant.given() else {
            return Regression::of(platforms, length, unknowns).map(Basis::Fitted);
        };
        let indices = platforms.iter().filter_map(|p| index_of(p, length, m, n_s)).collect();
        Ok(Basis::Given { m, n_s, indices })
    }

    fn m(&self) -> Bounded {
        match self {
            Basis::Given { m, .. } => Estimate::exact(*m).into(),
            Basis::Fitted(regression) => regression.quotient(1),
        }
    }

    fn n_s(&self) -> Bounded {
        match self {
            Basis::Given { n_s, .. } => Estimate::exact(*n_s).into(),
            Basis::Fitted(regression) => regression.quotient(2),
        }
    }

    fn index(&self) -> Bounded {
        match self {
            // An index is not below 0.
            Basis::Given { indices, .. } => {
                let Bounded { value, low, high } = mean(indices);
                Bounded { value, low: low.map(|low| low.max(0.0)), high }
            }
            Basis::Fitted(regression) => regression.index(),
        }
    }

    fn rate(&self, platform: &Platform, length: f64) -> Bounded {
        match self {
            Basis::Given { m, n_s, indices } => {
                // The interval of one further index; an index is not below 0.
                let wider = (indices.len() as f64 + 1.0).sqrt();
                let Bounded { value, low, .. } = mean(indices);
                let index = low.map_or(Bounded::unknown(value), |low| {
                    let half = (value - low) * wider;
                    Estimate { low: (value - half).max(0.0), ..Estimate::around(value, half) }.into()
                });
                index.scaled(1.0 / cost(platform, length, *m, *n_s))
            }
            Basis::Fitted(regression) => regression.rate(platform, length),
        }
    }
}

/// The regression of 1/rate on the parts of a packet's cost. The coefficients are 1/I, M/I and N/I.
#[derive(Clone, PartialEq, Debug)]
struct Regression {
    solution: Solution,
    /// Half-width of an interval for a relative variance of 1: Student's quantile times the
    /// standard deviation of the residuals. None if no degree of freedom is left.
    width: Option<f64>,
}

impl Regression {
    fn of(platforms: &[&Platform], length: f64, unknowns: usize) -> Result<Regression, IndexError> {
        // rate/score·(1/I) + 8·L·rate/C·(M/I) + rate·(N/I) = 1: relative errors of the rate.
        let column = |part: usize| {
            let of = |p: &&Platform| p.rate_pps.unwrap_or(f64::NAN) * parts(p, length)[part];
            platforms.iter().map(of).collect::<Vec<f64>>()
        };
        let columns: Vec<Vec<f64>> = (0..unknowns).map(column).collect();
        let ones = vec![1.0; platforms.len()];
        let solution = linear::solve(&columns, &ones, &ones).map_err(|_| IndexError::Alike)?;
        let fitted = linear::apply(&columns, &solution.coefficients, platforms.len());
        let freedom = (platforms.len() - unknowns) as f64;
        let width = (freedom > 0.0).then(|| {
            let left: f64 = fitted.iter().map(|fitted| (1.0 - fitted).powi(2)).sum();
            t_quantile(0.975, freedom) * (left / freedom).sqrt()
        });
        Ok(Regression { solution, width })
    }

    /// Returns coefficient `j` over the first one: M or N. A coefficient that was not fitted is 0.
    fn quotient(&self, j: usize) -> Bounded {
        let Solution { coefficients: b, covariance: c, .. } = &self.solution;
        let Some(&over) = b.get(j) else { return Estimate::exact(0.0).into() };
        let unknown = Bounded::unknown(over / b[0]);
        let Some(width) = self.width else { return unknown };
        // Fieller: the x for which |over − x·b0| is within its own half-width, the roots of x²·a −
        // 2·x·h + d.
        let squared = width * width;
        let a = b[0] * b[0] - squared * c[0][0];
        let h = b[0] * over - squared * c[0][j];
        let d = over * over - squared * c[j][j];
        if a <= 0.0 {
            // 1/I may be 0.
            return unknown;
        }
        let root = (h * h - a * d).max(0.0).sqrt();
        Bounded { low: Some((h - root) / a), high: Some((h + root) / a), ..unknown }
    }

    fn index(&self) -> Bounded {
        inverse(self.solution.coefficients[0], self.width.map(|w| w * self.solution.covariance[0][0].sqrt()))
    }

    fn rate(&self, platform: &Platform, length: f64) -> Bounded {
        let Solution { coefficients: b, covariance: c, .. } = &self.solution;
        let x = parts(platform, length);
        let time: f64 = b.iter().zip(x).map(|(b, x)| b * x).sum();
        let row = |i: usize| c[i].iter().zip(x).map(|(c, x)| c * x).sum::<f64>();
        let variance: f64 = (0..b.len()).map(|i| x[i] * row(i)).sum();
        // The uncertainty of the line, and the distance of one further platform from it.
        inverse(time, self.width.map(|w| w * (time * time + variance.max(0.0)).sqrt()))
    }
}

/// Returns the factors of 1/I, M/I and N/I.
fn parts(platform: &Platform, length: f64) -> [f64; 3] {
    [1.0 / platform.score, 8.0 * length / platform.copy_bits_per_s, 1.0]
}

/// Returns 1/x for x = `value` ± `half`, above 0. Without an upper bound if x may be 0.
fn inverse(value: f64, half: Option<f64>) -> Bounded {
    let end = |half: f64| (value + half > 0.0).then(|| 1.0 / (value + half));
    Bounded { value: 1.0 / value, low: half.and_then(end), high: half.and_then(|half| end(-half)) }
}

/// Returns the mean of indices with its Student interval; one index has no interval.
fn mean(indices: &[f64]) -> Bounded {
    let n = indices.len() as f64;
    let mean = indices.iter().sum::<f64>() / n;
    if indices.len() < 2 {
        return Bounded::unknown(mean);
    }
    let variance = indices.iter().map(|i| (i - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Estimate::around(mean, t_quantile(0.975, n - 1.0) * (variance / n).sqrt()).into()
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

/// Returns whether the wire needs at least the measured time per packet.
fn is_wire_limited(platform: &Platform, length_bytes: f64) -> bool {
    let wire_s = platform.wire.map(|wire| wire.transmission_s(length_bytes));
    wire_s.zip(platform.rate_pps).is_some_and(|(wire_s, rate)| wire_s * rate >= 1.0)
}

/// Predicts platform `i` from the others.
fn left_out(platforms: &[&Platform], i: usize, length: f64, variant: Variant) -> Option<f64> {
    let others: Vec<&Platform> =
        platforms.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, p)| *p).collect();
    let basis = Basis::of(&others, length, variant).ok()?;
    Some(100.0 * (basis.rate(platforms[i], length).value / platforms[i].rate_pps? - 1.0))
}

fn pairwise(indices: &[f64]) -> Option<(f64, f64)> {
    let low = indices.iter().copied().fold(f64::INFINITY, f64::min);
    let high = indices.iter().copied().fold(0.0, f64::max);
    (indices.len() > 1).then(|| (100.0 * (low / high - 1.0), 100.0 * (high / low - 1.0)))
}

fn warn(warnings: &mut Vec<String>, platforms: usize, variant: Variant, m: f64, n_s: f64) {
    const WORDS: [&str; 4] = ["no", "one", "two", "three"];
    let word = |n: usize| WORDS.get(n).map_or_else(|| n.to_string(), |w| (*w).to_owned());
    let free = variant.unknowns();
    if platforms == 1 {
        warnings.push("one platform: the index has no error bar and cannot be checked".to_owned());
    }
    if platforms == free + 1 && free > 0 {
        warnings.push("as many unknowns as platforms: the fit is exact and has no error bar".to_owned());
    }
    if free > 0 && platforms <= free + 2 {
        warnings.push(format!(
            "{} free parameter{}, {} points: the fit forces the indices to agree; measure more platforms",
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
            "M = {m:.3}, N = {:.3} µs: a negative cost has no meaning; the model does not hold for these platforms",
            n_s * 1e6
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publications::scion::{platforms, platforms_exact};
    use crate::testing::normal;
    use fastpath_units::Rng;

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
    fn the_index_without_the_factor_8_is_shown_too() {
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
        // An error bar of zero width would claim that M and N are certain.
        for bar in [
            fitted.m,
            fitted.n_s,
            fitted.index,
            predict_rate(&platforms(), LENGTH_BYTES, Variant::FitMN, &platforms()[0])
                .expect("three platforms"),
        ] {
            assert_eq!(bar, Bounded::unknown(bar.value));
        }
        let json = serde_json::to_value(fitted.m).expect("serialisable");
        assert!(json["value"].is_f64() && json["low"].is_null() && json["high"].is_null(), "{json}");
        let given = index(&platforms(), LENGTH_BYTES, Variant::Tuned).expect("three platforms");
        assert_eq!(given.m, Estimate::exact(400.0).into());
    }

    /// A platform on which index 30, M = 250 and N = 2 µs hold.
    fn made(name: &str, score: f64, copy_bits_per_s: f64) -> Platform {
        let name = name.to_owned();
        let p = Platform { name, score, copy_bits_per_s, wire: None, ..platforms()[0].clone() };
        Platform { rate_pps: Some(30.0 / cost(&p, 172.0, 250.0, 2e-6)), ..p }
    }

    fn five() -> [Platform; 5] {
        [
            made("a", 3e3, 2e9),
            made("b", 3e4, 3e10),
            made("c", 2e4, 9e10),
            made("d", 5e4, 5e9),
            made("e", 1e4, 1e10),
        ]
    }

    #[test]
    fn fitted_m_n_and_index_and_the_rate_of_another_platform_lie_in_their_intervals_as_often_as_stated() {
        // 4000 trials at 95 %, rates off by 1 %: σ = 0.34 %, so ±1.4 % is 4 σ.
        const TRIALS: u32 = 4000;
        let mut rng = Rng::new(77);
        let mut off = |p: Platform| {
            let rate = p.rate_pps.expect("made") * (1.0 + 0.01 * normal(&mut rng));
            Platform { rate_pps: Some(rate), ..p }
        };
        let mut covered = [0u32; 4];
        for _ in 0..TRIALS {
            let measured = five().map(&mut off);
            let found = index(&measured, 172.0, Variant::FitMN).expect("five platforms");
            // Far from the others, so that the uncertainty of M and N counts.
            let fresh = off(made("f", 1e5, 1e11));
            let rate = fresh.rate_pps.expect("made");
            let is_in = [
                found.m.covers(250.0),
                found.n_s.covers(2e-6),
                found.index.covers(30.0),
                predict_rate(&measured, 172.0, Variant::FitMN, &fresh).expect("five platforms").covers(rate),
            ];
            covered.iter_mut().zip(is_in).for_each(|(count, is_in)| *count += u32::from(is_in));
        }
        for count in covered {
            let share = f64::from(count) / f64::from(TRIALS);
            assert!((share - 0.95).abs() < 0.014, "{covered:?} of {TRIALS}");
        }
    }

    #[test]
    fn a_known_m_and_n_are_found_again() {
        let all = five();
        let found = index(&all, 172.0, Variant::FitMN).expect("five platforms");
        assert!((found.m.value - 250.0).abs() < 1e-6 && (found.n_s.value - 2e-6).abs() < 1e-14, "{found:?}");
        assert!(found.platforms.iter().all(|p| p.left_out_error_pct.is_some_and(|e| e.abs() < 1e-6)));
        let fresh = made("f", 4e4, 4e10);
        let predicted = predict_rate(&all, 172.0, Variant::FitMN, &fresh).expect("five platforms");
        assert!((predicted.value / fresh.rate_pps.expect("made") - 1.0).abs() < 1e-9);
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
    fn a_length_that_contradicts_the_one_measured_is_refused() {
        let sized = |bytes| Platform { packet_bytes: bytes, ..made("a", 3e3, 2e9) };
        assert_eq!(common_length(&[sized(None)], None), Ok(LENGTH_BYTES));
        assert_eq!(common_length(&[sized(None)], Some(64.0)), Ok(64.0));
        assert_eq!(common_length(&[sized(Some(512.0)), sized(None)], None), Ok(512.0));
        let error = common_length(&[sized(Some(512.0))], Some(172.0)).unwrap_err().to_string();
        assert!(error.starts_with("packets of 172 bytes (--length) and of 512 bytes (`a`)"), "{error}");
        assert!(common_length(&[sized(Some(512.0)), sized(Some(64.0))], None).is_err());
    }

    #[test]
    fn the_interval_of_an_index_ends_at_zero() {
        let apart = [made("a", 3e3, 2e9), Platform { rate_pps: Some(1.0), ..made("b", 3e4, 3e10) }];
        let found = index(&apart, LENGTH_BYTES, Variant::Plain).expect("two platforms");
        assert_eq!(found.index.low, Some(0.0), "{:?}", found.index);
        assert!(found.index.high.is_some_and(|high| high > found.index.value));
    }

    #[test]
    fn scores_of_two_kinds_are_refused() {
        let mut all = platforms();
        all[2].score_kind = ScoreKind::Own;
        assert!(matches!(index(&all, LENGTH_BYTES, Variant::Plain), Err(IndexError::MixedScores { .. })));
    }
}
