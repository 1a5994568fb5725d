//! Random variates that are the same on every machine.
//!
//! The platform's `ln` is not: C libraries differ in the last bit, and one bit changes a whole run. So the
//! logarithm here uses only IEEE 754 operations that are exactly defined (+ − × ÷ and bit patterns).

use fastpath_units::{Duration, Rng};

/// An exponential variate of the given mean, rounded to a picosecond.
#[inline]
pub fn exponential(rng: &mut Rng, mean: Duration) -> Duration {
    // 1 − u is in (0, 1], so the logarithm is finite; at most 36.7 means.
    let span = -ln(1.0 - rng.unit_f64()) * mean.as_ps() as f64;
    Duration::from_ps((span + 0.5) as u64)
}

/// The natural logarithm of a normal positive number, within 1 ulp: the algorithm of fdlibm's `e_log.c`
/// (Sun Microsystems, 1993), which reduces to `2^k (1+f)` and evaluates a polynomial in `f/(2+f)`.
#[inline]
pub fn ln(x: f64) -> f64 {
    const LN2_HI: f64 = 6.931_471_803_691_238e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    // The bits of √½, so that 1+f lies in [√½, √2).
    const SQRT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    debug_assert!(x.is_normal() && x > 0.0, "ln({x})");
    let bits = x.to_bits().wrapping_sub(SQRT_HALF);
    let k = (bits as i64 >> 52) as f64;
    let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + SQRT_HALF) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (0.399_999_999_994_094_2 + w * (0.222_221_984_321_497_84 + w * 0.153_138_376_992_093_73));
    let t2 = z
        * (0.666_666_666_666_673_5
            + w * (0.285_714_287_436_623_9 + w * (0.181_835_721_616_180_5 + w * 0.147_981_986_051_165_86)));
    let hfsq = 0.5 * f * f;
    k * LN2_HI - ((hfsq - (s * (hfsq + t1 + t2) + k * LN2_LO)) - f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_agrees_with_the_platforms_to_two_ulp() {
        let mut rng = Rng::new(1);
        for i in 0..100_000 {
            let x = if i % 2 == 0 { rng.unit_f64() + 1e-300 } else { 1.0 + 1e-9 * rng.unit_f64() };
            let (ours, theirs) = (ln(x), x.ln());
            assert!((ours - theirs).abs() <= 2.0 * f64::EPSILON * theirs.abs(), "ln({x}): {ours} {theirs}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn exponential_variates_have_the_moments_of_the_distribution() {
        // n = 10⁶: the mean within 4 σ/√n of 1, the second moment within 4·√20/√n of 2.
        let (mut rng, n, mean) = (Rng::new(2), 1_000_000, Duration::from_us(1));
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = exponential(&mut rng, mean).as_ps() as f64 / 1e6;
            sum += x;
            squares += x * x;
        }
        let n = f64::from(n);
        assert!((sum / n - 1.0).abs() < 4.0 / n.sqrt(), "{}", sum / n);
        assert!((squares / n - 2.0).abs() < 4.0 * 20f64.sqrt() / n.sqrt(), "{}", squares / n);
    }

    #[test]
    fn variates_are_frozen() {
        let mut rng = Rng::new(7);
        let first: Vec<u64> = (0..4).map(|_| exponential(&mut rng, Duration::from_us(1)).as_ps()).collect();
        assert_eq!(first, [56952, 188882, 1264346, 557236]);
    }
}
