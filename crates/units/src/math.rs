//! Logarithm, exponential and normal distribution, computed from the four operations and the square
//! root only. IEEE 754 rounds these identically everywhere. The functions of the standard library
//! may differ between machines, and runs must not.

const LN_2: f64 = std::f64::consts::LN_2;

/// Returns the natural logarithm of a positive, normal number, with a relative error of about
/// 10⁻¹⁵.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh s with |s| ≤ 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = (0..11).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 1));
    exponent as f64 * LN_2 + 2.0 * s * series
}

/// Returns the exponential with a relative error of about 10⁻¹⁴; 0 and infinity beyond ±700.
pub fn exp(x: f64) -> f64 {
    if x.abs() > 700.0 {
        return if x > 0.0 { f64::INFINITY } else { 0.0 };
    }
    let halvings = (x / LN_2).round();
    let rest = x - halvings * LN_2;
    let series = (1..18).rev().fold(1.0, |sum, i| 1.0 + sum * rest / f64::from(i));
    series * f64::from_bits(((halvings as i64 + 1023) as u64) << 52)
}

/// Returns the probability that a standard normal variable exceeds `z`.
pub fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    let density = exp(-z * z / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
    if z > 3.0 {
        // The continued fraction z + 1/(z + 2/(z + 3/(z + …))).
        return density / (1..60).rev().fold(z, |below, i| z + f64::from(i) / below);
    }
    // Φ(z) − ½ = φ(z)·(z + z³/3 + z⁵/(3·5) + …)
    let mut term = z;
    let mut sum = z;
    for i in 1..60 {
        term *= z * z / f64::from(2 * i + 1);
        sum += term;
    }
    0.5 - density * sum
}

/// Returns the standard normal quantile of `p` in (0, 1), with a relative error of 1.2·10⁻⁹: P. J.
/// Acklam's rational approximation, 2003.
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e+01,
        2.209460984245205e+02,
        -2.759285104469687e+02,
        1.38357751867269e+02,
        -3.066479806614716e+01,
        2.506628277459239e+00,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e+01,
        1.615858368580409e+02,
        -1.556989798598866e+02,
        6.680131188771972e+01,
        -1.328068155288572e+01,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e+00,
        -2.549732539343734e+00,
        4.374664141464968e+00,
        2.938163982698783e+00,
    ];
    const D: [f64; 5] =
        [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1.0];
    let polynomial = |factors: &[f64], x: f64| factors.iter().fold(0.0, |sum, factor| sum * x + factor);
    if p < 0.02425 {
        let q = (-2.0 * ln(p)).sqrt();
        polynomial(&C, q) / polynomial(&D, q)
    } else if p > 1.0 - 0.02425 {
        -normal_quantile(1.0 - p)
    } else {
        let q = p - 0.5;
        q * polynomial(&A, q * q) / polynomial(&B, q * q)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // compared with the standard library
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_agree_with_the_standard_library() {
        for i in 1..2000 {
            let x = f64::from(i) * f64::from(i) / 977.0;
            assert!((ln(x) - x.ln()).abs() <= 4e-15 * x.ln().abs().max(1.0), "ln {x}");
            let y = f64::from(i - 1000) / 3.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-13, "exp {y}");
        }
    }

    #[test]
    fn the_normal_tail_has_its_tabulated_values() {
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (1.959_963_984_540_054, 0.025),
            (3.0, 0.001_349_898_031_630_09),
            (6.0, 9.865_876_450_376_98e-10),
            (-1.0, 0.841_344_746_068_543),
        ] {
            assert!((normal_tail(z) / tail - 1.0).abs() < 1e-12, "{z}: {}", normal_tail(z));
        }
    }

    #[test]
    fn the_quantile_inverts_the_tail() {
        for i in 1..4000 {
            let p = f64::from(i) / 4000.0;
            assert!((normal_tail(normal_quantile(p)) - (1.0 - p)).abs() < 2e-9, "{p}");
        }
        assert!((normal_tail(-normal_quantile(1e-12)) / 1e-12 - 1.0).abs() < 1e-7);
    }
}
