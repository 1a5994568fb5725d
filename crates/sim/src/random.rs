//! Random variates that are the same on every computer.
//!
//! The platform's `ln` is not the same everywhere: C libraries differ in the last bit, and one bit
//! changes a whole run. The logarithm here uses only IEEE 754 operations that are exactly defined
//! (+ − × ÷ and bit patterns).
//!
//! Exponential variates come from the ziggurat (Marsaglia & Tsang, "The Ziggurat Method for
//! Generating Random Variables", 2000): the area under e^−x is cut into 256 layers of equal area, a
//! point in a layer is nearly always under the curve, and then one product is the variate. The
//! compiler computes the tables, and its arithmetic is the same everywhere.

use fastpath_units::{Duration, Rng, math};

/// Layers of the ziggurat.
const LAYERS: usize = 256;
/// Where the tail begins, for 256 layers of equal area (Marsaglia & Tsang 2000).
const TAIL: f64 = 7.697_117_470_131_05;
/// e^−TAIL.
const TAIL_DENSITY: f64 = 4.541_343_538_414_965e-4;
/// The right ends of the layers, from the bottom, and the density there. The end of the bottom
/// layer makes room for the tail.
static ENDS: [[f64; 2]; LAYERS + 1] = layers();
/// 2⁻⁵³.
const ULP: f64 = 1.0 / (1u64 << 53) as f64;

const fn layers() -> [[f64; 2]; LAYERS + 1] {
    let mut ends = [[TAIL + 1.0, 0.0]; LAYERS + 1];
    let area = (TAIL + 1.0) * TAIL_DENSITY;
    ends[1] = [TAIL, TAIL_DENSITY];
    let mut i = 2;
    while i < LAYERS {
        let density = ends[i - 1][1] + area / ends[i - 1][0];
        ends[i] = [-ln(density), density];
        i += 1;
    }
    ends[LAYERS] = [0.0, 1.0];
    ends
}

/// An exponential variate of the given mean, rounded to a picosecond.
#[inline]
pub fn exponential(rng: &mut Rng, mean: Duration) -> Duration {
    scaled(unit_exponential(rng), mean)
}

/// A stream of exponential variates, each drawn one call ahead, so that the event that needs a
/// variate does not wait for its computation.
#[derive(Clone, Debug)]
pub struct Exponential {
    rng: Rng,
    ahead: f64,
}

impl Exponential {
    /// The stream drawn from `rng`.
    pub fn new(mut rng: Rng) -> Exponential {
        let ahead = unit_exponential(&mut rng);
        Exponential { rng, ahead }
    }

    /// The next variate, of the given mean, rounded to a picosecond.
    #[inline]
    pub fn draw(&mut self, mean: Duration) -> Duration {
        let drawn = std::mem::replace(&mut self.ahead, unit_exponential(&mut self.rng));
        scaled(drawn, mean)
    }
}

/// A normal variate of mean 0 and variance 1, by inversion.
pub fn standard_normal(rng: &mut Rng) -> f64 {
    // Multiples of 2⁻⁵² in the middle of their intervals: above 0 and below 1.
    math::normal_quantile(((rng.next_u64() >> 12) as f64 + 0.5) * 2.0 * ULP)
}

#[inline]
fn scaled(variate: f64, mean: Duration) -> Duration {
    Duration::from_ps((variate * mean.as_ps() as f64 + 0.5) as u64)
}

/// An exponential variate of mean 1.
#[inline]
fn unit_exponential(rng: &mut Rng) -> f64 {
    let bits = rng.next_u64();
    // The low 8 bits choose the layer, the high 53 bits the place in it.
    let layer = bits as usize % LAYERS;
    let x = (bits >> 11) as f64 * ULP * ENDS[layer][0];
    if x < ENDS[layer + 1][0] { x } else { at_the_edge(rng, layer, x) }
}

/// Draws the 1.1 % of variates that the layers alone do not decide.
#[cold]
#[inline(never)]
fn at_the_edge(rng: &mut Rng, mut layer: usize, mut x: f64) -> f64 {
    loop {
        if layer == 0 {
            // The tail has the shape of the whole. 1 − u is in (0, 1], so the logarithm is finite.
            return TAIL - ln(1.0 - rng.unit_f64());
        }
        let [low, high] = [ENDS[layer][1], ENDS[layer + 1][1]];
        if ln(low + rng.unit_f64() * (high - low)) < -x {
            return x;
        }
        let bits = rng.next_u64();
        layer = bits as usize % LAYERS;
        x = (bits >> 11) as f64 * ULP * ENDS[layer][0];
        if x < ENDS[layer + 1][0] {
            return x;
        }
    }
}

/// The natural logarithm of a normal positive number, within 1 ulp: the algorithm of fdlibm's
/// `e_log.c` (Sun Microsystems, 1993), which reduces to `2^k (1+f)` and evaluates a polynomial in
/// `f/(2+f)`.
#[inline]
pub const fn ln(x: f64) -> f64 {
    const LN2_HI: f64 = 6.931_471_803_691_238e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    // The bits of √½, so that 1+f lies in [√½, √2).
    const SQRT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    debug_assert!(x.is_normal() && x > 0.0, "ln of a number that is not normal and positive");
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
    fn exponential_variates_follow_the_law_into_the_tail() {
        // Kolmogorov–Smirnov at 99.9 %: 1.95/√n. Then the count beyond the layers, within 4
        // standard deviations.
        let (mut stream, n) = (Exponential::new(Rng::new(4)), 1_000_000);
        let mut all: Vec<f64> =
            (0..n).map(|_| stream.draw(Duration::from_ms(1)).as_ps() as f64 / 1e9).collect();
        all.sort_by(f64::total_cmp);
        let distance =
            all.iter().enumerate().map(|(i, x)| ((i as f64 + 0.5) / n as f64 - (1.0 - (-x).exp())).abs());
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / f64::from(n).sqrt(), "{distance}");
        let (beyond, expected) =
            (all.iter().filter(|&&x| x > TAIL).count() as f64, f64::from(n) * TAIL_DENSITY);
        assert!((beyond - expected).abs() < 4.0 * expected.sqrt(), "{beyond} {expected}");
    }

    #[test]
    fn the_layers_have_equal_areas_and_close_at_the_top() {
        assert!((TAIL_DENSITY - (-TAIL).exp()).abs() < 1e-18);
        let area = |i: usize| ENDS[i][0] * (ENDS[i + 1][1] - ENDS[i][1]);
        for i in 1..LAYERS {
            assert!((area(i) / area(1) - 1.0).abs() < 1e-9, "layer {i}: {} {}", area(i), area(1));
        }
    }

    #[test]
    fn a_stream_is_the_variates_of_its_generator() {
        let (mut stream, mut rng, mean) = (Exponential::new(Rng::new(5)), Rng::new(5), Duration::from_us(3));
        assert!((0..10_000).all(|_| stream.draw(mean) == exponential(&mut rng, mean)));
    }

    #[test]
    fn variates_are_frozen() {
        let mut rng = Rng::new(7);
        let first: Vec<u64> = (0..4).map(|_| exponential(&mut rng, Duration::from_us(1)).as_ps()).collect();
        assert_eq!(first, [152512, 723457, 1329262, 1186578]);
    }
}
