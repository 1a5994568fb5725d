//! Weighted least squares by Householder QR (from `nalgebra`) on columns scaled to length 1. The
//! factors also give the leverages, the condition number, and the covariance without σ².
//!
//! The statistics are in [`crate::fit`].

use nalgebra::{DMatrix, DVector};

/// A column is a combination of the earlier ones when less than this share of its length is
/// orthogonal to them.
const DEPENDENT_BELOW: f64 = 1e-9;

/// A solved least-squares problem.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Solution {
    /// Coefficients, one per column.
    pub(crate) coefficients: Vec<f64>,
    /// (XᵀWX)⁻¹, square.
    pub(crate) covariance: Vec<Vec<f64>>,
    /// Diagonal of the hat matrix, one per row: 1 means that the row alone fixes a coefficient.
    pub(crate) leverage: Vec<f64>,
    /// Condition number of the scaled columns.
    pub(crate) condition: f64,
}

/// Why a problem has no unique solution: column `column` is (nearly) a combination of the columns
/// `on`; an empty `on` means that the column is zero everywhere.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Dependent {
    pub(crate) column: usize,
    pub(crate) on: Vec<usize>,
}

/// Minimises Σ wᵢ (yᵢ − Σⱼ bⱼ xᵢⱼ)². There must be at least as many rows as columns, and positive
/// weights.
pub(crate) fn solve(columns: &[Vec<f64>], y: &[f64], weights: &[f64]) -> Result<Solution, Dependent> {
    let (n, k) = (y.len(), columns.len());
    debug_assert!(n >= k && weights.len() == n);
    let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
    let mut x = DMatrix::from_fn(n, k, |i, j| columns[j][i] * roots[i]);
    // Divide by the largest entry first, so that squares neither overflow nor vanish.
    let length = |j: usize| {
        let largest = x.column(j).amax();
        if largest > 0.0 { largest * (x.column(j) / largest).norm() } else { 0.0 }
    };
    let lengths: Vec<f64> = (0..k).map(length).collect();
    for (j, length) in lengths.iter().enumerate() {
        if *length == 0.0 {
            return Err(Dependent { column: j, on: Vec::new() });
        }
        x.column_mut(j).unscale_mut(*length);
    }
    let (q, r) = x.qr().unpack();
    if let Some(j) = (0..k).find(|&j| r[(j, j)].abs() < DEPENDENT_BELOW) {
        return Err(Dependent { column: j, on: combination(&r, j) });
    }
    let inverse = r.solve_upper_triangular(&DMatrix::identity(k, k)).expect("the diagonal is not zero");
    let target = DVector::from_fn(n, |i, _| y[i] * roots[i]);
    let scaled = &inverse * (q.transpose() * target);
    let singular = r.singular_values();
    let product = &inverse * inverse.transpose();
    Ok(Solution {
        coefficients: (0..k).map(|j| scaled[j] / lengths[j]).collect(),
        covariance: (0..k)
            .map(|i| (0..k).map(|j| product[(i, j)] / (lengths[i] * lengths[j])).collect())
            .collect(),
        leverage: (0..n).map(|i| q.row(i).norm_squared()).collect(),
        condition: singular.max() / singular.min(),
    })
}

/// Returns the earlier columns of which column `j` is a combination.
fn combination(r: &DMatrix<f64>, j: usize) -> Vec<usize> {
    let head = r.view((0, 0), (j, j)).into_owned();
    let side = r.view((0, j), (j, 1)).into_owned();
    match head.solve_upper_triangular(&side) {
        Some(parts) => (0..j).filter(|&i| parts[i].abs() > 1e-6).collect(),
        None => (0..j).collect(),
    }
}

/// Returns Σⱼ bⱼ xᵢⱼ for every row.
pub(crate) fn apply(columns: &[Vec<f64>], coefficients: &[f64], rows: usize) -> Vec<f64> {
    (0..rows).map(|i| columns.iter().zip(coefficients).map(|(x, b)| x[i] * b).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow obvious way: normal equations by Gauss-Jordan elimination in exact integers.
    fn exact(columns: &[Vec<i64>], y: &[i64], weights: &[i64]) -> Option<Vec<f64>> {
        let k = columns.len();
        let dot = |a: &[i64], b: &[i64]| -> i128 {
            a.iter()
                .zip(b)
                .zip(weights)
                .map(|((a, b), w)| i128::from(*a) * i128::from(*b) * i128::from(*w))
                .sum()
        };
        // Bareiss: fraction-free, every division is exact.
        let mut m: Vec<Vec<i128>> = (0..k)
            .map(|i| (0..k).map(|j| dot(&columns[i], &columns[j])).chain([dot(&columns[i], y)]).collect())
            .collect();
        let mut previous = 1;
        for p in 0..k {
            let pivot = (p..k).find(|&i| m[i][p] != 0)?;
            m.swap(p, pivot);
            for i in 0..k {
                if i == p {
                    continue;
                }
                for j in (0..=k).rev() {
                    if j != p {
                        m[i][j] = (m[i][j] * m[p][p] - m[i][p] * m[p][j]) / previous;
                    }
                }
                m[i][p] = 0;
            }
            previous = m[p][p];
            for (i, row) in m.iter_mut().enumerate().take(p) {
                row[i] = previous;
            }
        }
        Some((0..k).map(|i| m[i][k] as f64 / m[i][i] as f64).collect())
    }

    proptest! {
        #[test]
        fn coefficients_equal_the_normal_equations_in_exact_integers(
            rows in prop::collection::vec((prop::array::uniform3(-20i64..20), -50i64..50, 1i64..5), 5..9)
        ) {
            let columns: Vec<Vec<i64>> = (0..3).map(|j| rows.iter().map(|r| r.0[j]).collect()).collect();
            let y: Vec<i64> = rows.iter().map(|r| r.1).collect();
            let weights: Vec<i64> = rows.iter().map(|r| r.2).collect();
            let float = |v: &[i64]| v.iter().map(|&x| x as f64).collect::<Vec<f64>>();
            let ours = solve(&columns.iter().map(|c| float(c)).collect::<Vec<_>>(), &float(&y), &float(&weights));
            match exact(&columns, &y, &weights) {
                None => prop_assert!(ours.is_err(), "the oracle calls it singular: {ours:?}"),
                Some(truth) => {
                    let ours = ours.expect("the oracle solves it");
                    for (a, b) in ours.coefficients.iter().zip(&truth) {
                        prop_assert!((a - b).abs() <= 1e-9 * ours.condition * b.abs().max(1.0), "{a} {b}");
                    }
                    // The leverages of k independent columns sum to k.
                    prop_assert!((ours.leverage.iter().sum::<f64>() - 3.0).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn a_dependent_column_is_named_with_what_it_depends_on() {
        let one = vec![1.0; 4];
        let a = vec![1.0, 2.0, 3.0, 4.0];
        let b = vec![5.0, 1.0, 2.0, 0.0];
        let sum: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let error = solve(&[one, a, b, sum], &[1.0; 4], &[1.0; 4]).unwrap_err();
        assert_eq!(error, Dependent { column: 3, on: vec![1, 2] });
        let zero = solve(&[vec![0.0; 4]], &[1.0; 4], &[1.0; 4]).unwrap_err();
        assert_eq!(zero, Dependent { column: 0, on: vec![] });
    }

    #[test]
    fn columns_of_any_magnitude_are_solved_alike() {
        for scale in [1e-200, 1.0, 1e200] {
            let x: Vec<f64> = [1.0, 2.0, 3.0].iter().map(|x| x * scale).collect();
            let solution = solve(&[x], &[2.0, 4.0, 6.0], &[1.0; 3]).expect("full rank");
            assert!((solution.coefficients[0] * scale - 2.0).abs() < 1e-12);
        }
    }

    #[test]
    fn an_ill_scaled_polynomial_is_fitted_to_twelve_digits() {
        // y = 1 + x + x² + x³ on large x: the normal equations lose it, QR must not.
        let x: Vec<f64> = (0..20).map(|i| 1000.0 + f64::from(i)).collect();
        let columns: Vec<Vec<f64>> = (0..3).map(|p| x.iter().map(|x| x.powi(p)).collect()).collect();
        let y: Vec<f64> = x.iter().map(|x| 1.0 + x + x * x).collect();
        let solution = solve(&columns, &y, &[1.0; 20]).expect("full rank");
        let fitted = apply(&columns, &solution.coefficients, 20);
        for (f, y) in fitted.iter().zip(&y) {
            assert!((f / y - 1.0).abs() < 1e-12, "{f} {y}");
        }
        assert!((solution.coefficients[2] - 1.0).abs() < 1e-6, "{:?}", solution.coefficients);
    }
}
