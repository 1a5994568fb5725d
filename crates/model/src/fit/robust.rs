//! Huber's M-estimator by iteratively reweighted least squares (Huber 1973; Huber & Ronchetti 2009,
//! ch. 7). The scale is the median absolute deviation. It suits measurements with a few disturbed
//! points. It does not protect against a point that is extreme in a term (high leverage).

use crate::linear::{self, Solution};
use fastpath_units::stats::median;

/// Tuning constant: 95 % efficient when the errors are normal.
const TUNING: f64 = 1.345;
const ROUNDS_MAX: usize = 200;
/// Median absolute deviation of the standard normal distribution.
const MAD_NORMAL: f64 = 0.674_489_750_196_081_7;
/// Weight of a point off the line when most points lie on it exactly.
const NEGLIGIBLE: f64 = 1e-12;

/// Returns the solution, the final weights, and the variance that scales (XᵀX)⁻¹ to the covariance
/// (Huber 1973 with the small-sample factor of Huber & Ronchetti §7.6).
pub(crate) fn huber<E>(
    columns: &[Vec<f64>],
    y: &[f64],
    prior: &[f64],
    solve: &impl Fn(&[f64]) -> Result<Solution, E>,
) -> Result<(Solution, Vec<f64>, f64), E> {
    let (n, k) = (y.len(), columns.len());
    let plain = solve(prior)?;
    let mut current = plain.clone();
    let mut weights = prior.to_vec();
    let mut scale = 0.0;
    let residuals = |solution: &Solution| -> Vec<f64> {
        let fitted = linear::apply(columns, &solution.coefficients, n);
        (0..n).map(|i| (y[i] - fitted[i]) * prior[i].sqrt()).collect()
    };
    for _ in 0..ROUNDS_MAX {
        let r = residuals(&current);
        scale = median(r.iter().map(|r| r.abs())) / MAD_NORMAL;
        let largest = y.iter().zip(prior).map(|(y, w)| y.abs() * w.sqrt()).fold(0.0, f64::max);
        // Most points lie on the line up to rounding: the others are outliers.
        let floor = largest * 1e-12;
        for i in 0..n {
            let share = if scale > floor {
                (TUNING * scale / r[i].abs()).min(1.0)
            } else if r[i].abs() <= floor {
                1.0
            } else {
                NEGLIGIBLE
            };
            weights[i] = prior[i] * share;
        }
        let next = solve(&weights)?;
        let moved = next
            .coefficients
            .iter()
            .zip(&current.coefficients)
            .map(|(a, b)| (a - b).abs() / (b.abs() + 1e-300));
        let done = moved.fold(0.0, f64::max) < 1e-12;
        current = next;
        if done {
            break;
        }
    }
    let r = residuals(&current);
    let inside = r.iter().filter(|r| r.abs() <= TUNING * scale).count() as f64 / n as f64;
    let psi2: f64 = r.iter().map(|r| r.abs().min(TUNING * scale).powi(2)).sum::<f64>() / (n - k) as f64;
    let variance = if inside > 0.0 && scale > 0.0 {
        let factor = 1.0 + k as f64 / n as f64 * (1.0 - inside) / inside;
        psi2 * (factor / inside).powi(2)
    } else {
        0.0
    };
    // The covariance is that of the unweighted problem times `variance`. The hat matrix is that of
    // the weighted problem.
    let solution = Solution { covariance: plain.covariance, ..current };
    Ok((solution, weights, variance))
}
