//! Jitter: a delay that varies from packet to packet, by a law, with memory, and with or without
//! reordering.
//!
//! Memory is a Gaussian copula: a standard normal z follows an autoregressive process, z′ = ρ·z +
//! √(1−ρ²)·ε with ρ = 2^(−dt/half-life) in time or a constant from packet to packet, and the law's
//! quantile function turns it into a delay. So the law holds exactly, however packets are spaced
//! and whatever ρ is.

use crate::math;
use fastpath_units::{Duration, Probability, Rng, Time};
use std::sync::Arc;

/// How the delay varies: what is added to [`PipeSpec::delay`](crate::PipeSpec::delay).
#[derive(Clone, PartialEq, Debug)]
pub struct JitterSpec {
    /// The distribution.
    pub law: JitterLaw,
    /// How much a packet's delay has to do with those before.
    pub correlation: JitterCorrelation,
    /// What happens to packets that would overtake others.
    pub order: Reorder,
}

/// How the delays of packets depend on each other.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum JitterCorrelation {
    /// Every packet draws independently.
    #[default]
    None,
    /// After this time the correlation of the underlying normal process has halved.
    HalfLife(Duration),
    /// The correlation of the underlying normal process from each packet to the next, as the
    /// correlation of tc's `delay` is meant. (The kernel mixes uniform numbers and takes the mix
    /// modulo the width of the law: that keeps neither the law nor much of the correlation.)
    PerPacket(Probability),
}

/// A distribution of delays. Where the sum with the pipe's delay would be negative it is zero.
#[derive(Clone, PartialEq, Debug)]
pub enum JitterLaw {
    /// Anything from −`half_width` to +`half_width`.
    Uniform {
        /// Half the width.
        half_width: Duration,
    },
    /// Normal, with mean zero.
    Normal {
        /// Standard deviation.
        sd: Duration,
    },
    /// Lognormal: positive, with a long tail.
    Lognormal {
        /// Mean, above zero.
        mean: Duration,
        /// Standard deviation.
        sd: Duration,
    },
    /// Pareto: at least mean·(shape − 1)/shape, with a tail that falls as a power.
    Pareto {
        /// Mean.
        mean: Duration,
        /// The power, above 1; up to 2 the variance is infinite.
        shape: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Duration,
    },
    /// One of these values in picoseconds, which may be negative, all equally likely. In ascending
    /// order, at least one.
    Table(Arc<[i64]>),
    /// These, packet by packet, from the start again after the last. At least one. Has no use for
    /// memory.
    Trace(Arc<[Duration]>),
}

/// What becomes of the order of packets under jitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reorder {
    /// Order is kept: every delay drawn makes an exit, and whoever is first takes the next exit.
    /// The mean is that of what was drawn, exactly; what is lost is variation faster than packets
    /// can follow without overtaking. With a half-life of ten standard deviations the standard
    /// deviation falls short by less than 1 % (uniform, normal), 2 % (exponential) or 8 %
    /// (lognormal with a standard deviation as large as its mean) at any packet rate; with
    /// independent draws it shrinks as packets come closer than it.
    /// [`Pipe::delays`](crate::Pipe::delays) tells what it has become.
    #[default]
    Never,
    /// Packets overtake, as in netem.
    Allow,
    /// Packets overtake, and one that leaves after a packet sent later is dropped there.
    Drop,
}

impl JitterSpec {
    /// Jitter by `law` that keeps order and nearly all of the law's spread: with a half-life of ten
    /// standard deviations.
    pub fn in_order(law: JitterLaw) -> JitterSpec {
        let half_life = law.sd().map(|sd| Duration::from_ps(sd.as_ps().saturating_mul(10)));
        JitterSpec {
            correlation: half_life.map_or(JitterCorrelation::None, JitterCorrelation::HalfLife),
            law,
            order: Reorder::Never,
        }
    }
}

impl JitterLaw {
    /// The mean of what is added, seconds.
    pub fn mean_secs(&self) -> f64 {
        match self {
            JitterLaw::Uniform { .. } | JitterLaw::Normal { .. } => 0.0,
            JitterLaw::Lognormal { mean, .. }
            | JitterLaw::Pareto { mean, .. }
            | JitterLaw::Exponential { mean } => mean.as_secs_f64(),
            JitterLaw::Table(values) => mean(values.iter().map(|ps| *ps as f64 / 1e12)),
            JitterLaw::Trace(values) => mean(values.iter().map(|value| value.as_secs_f64())),
        }
    }

    /// The standard deviation; `None` where it is infinite.
    pub fn sd(&self) -> Option<Duration> {
        let spread = |values: &mut dyn Iterator<Item = f64>| {
            let about = self.mean_secs();
            mean(values.map(|value| (value - about) * (value - about))).sqrt()
        };
        let secs = match self {
            JitterLaw::Uniform { half_width } => half_width.as_secs_f64() / 3f64.sqrt(),
            JitterLaw::Normal { sd } | JitterLaw::Lognormal { sd, .. } => return Some(*sd),
            JitterLaw::Pareto { shape, .. } if *shape <= 2.0 => return None,
            JitterLaw::Pareto { mean, shape } => mean.as_secs_f64() / (shape * (shape - 2.0)).sqrt(),
            JitterLaw::Exponential { mean } => return Some(*mean),
            JitterLaw::Table(values) => spread(&mut values.iter().map(|ps| *ps as f64 / 1e12)),
            JitterLaw::Trace(values) => spread(&mut values.iter().map(|value| value.as_secs_f64())),
        };
        Some(Duration::from_secs_f64(secs))
    }

    /// The delay that a share `q` of packets do not exceed where the constant part is `base`.
    pub fn quantile(&self, base: Duration, q: f64) -> Option<Duration> {
        let q = q.clamp(1e-12, 1.0 - 1e-12);
        let beyond = match self {
            JitterLaw::Trace(values) => {
                let mut sorted = values.to_vec();
                sorted.sort_unstable();
                sorted.get((q * sorted.len() as f64) as usize)?.as_ps() as f64
            }
            law => law.at_score(math::normal_quantile(q)),
        };
        Some(Duration::from_ps((base.as_ps() as f64 + beyond).max(0.0).round() as u64))
    }

    /// The value, in picoseconds, that a variable of this law exceeds as often as a normal one
    /// exceeds `z`.
    fn at_score(&self, z: f64) -> f64 {
        let ps = |span: &Duration| span.as_ps() as f64;
        match self {
            JitterLaw::Uniform { half_width } => ps(half_width) * (1.0 - 2.0 * math::normal_tail(z)),
            JitterLaw::Normal { sd } => ps(sd) * z,
            JitterLaw::Lognormal { mean, sd } => {
                let ratio = ps(sd) / ps(mean);
                let variance = math::ln(1.0 + ratio * ratio);
                ps(mean) * math::exp(variance.sqrt() * z - variance / 2.0)
            }
            JitterLaw::Pareto { mean, shape } => {
                let least = ps(mean) * (shape - 1.0) / shape;
                least * math::exp(-math::ln(math::normal_tail(z)) / shape)
            }
            JitterLaw::Exponential { mean } => -ps(mean) * math::ln(math::normal_tail(z)),
            JitterLaw::Table(values) => {
                let place = (1.0 - math::normal_tail(z)) * values.len() as f64;
                values[(place as usize).min(values.len() - 1)] as f64
            }
            JitterLaw::Trace(_) => 0.0,
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

/// Jitter at work.
#[derive(Debug)]
pub(crate) struct Jitter {
    spec: JitterSpec,
    /// The process z as it was last looked at, and when.
    last: Option<(Time, f64)>,
    /// How many delays of a trace have been used.
    used: usize,
}

impl Jitter {
    pub(crate) fn new(spec: JitterSpec) -> Jitter {
        Jitter { spec, last: None, used: 0 }
    }

    pub(crate) fn spec(&self) -> &JitterSpec {
        &self.spec
    }

    /// The delay of a packet that leaves the queue at `now` where `base` is the constant part. One
    /// draw.
    pub(crate) fn draw(&mut self, now: Time, base: Duration, rng: &mut Rng) -> Duration {
        if let JitterLaw::Trace(values) = &self.spec.law {
            let value = values[self.used % values.len()];
            self.used += 1;
            return base.saturating_add(value);
        }
        // In the middle of one of 2⁵³ equal steps, never 0 or 1.
        let uniform = rng.unit_f64() + 0.5 / (1u64 << 53) as f64;
        let fresh = math::normal_quantile(uniform.min(1.0 - f64::EPSILON / 2.0));
        let rho_z = self.last.and_then(|(then, z)| match self.spec.correlation {
            JitterCorrelation::HalfLife(half_life) if !half_life.is_zero() => {
                let halvings = now.since(then).as_ps() as f64 / half_life.as_ps() as f64;
                Some((math::exp(-halvings * std::f64::consts::LN_2), z))
            }
            JitterCorrelation::PerPacket(correlation) => Some((correlation.get(), z)),
            JitterCorrelation::None | JitterCorrelation::HalfLife(_) => None,
        });
        let z = rho_z.map_or(fresh, |(rho, z)| rho * z + (1.0 - rho * rho).sqrt() * fresh);
        self.last = Some((now, z));
        let total = base.as_ps() as f64 + self.spec.law.at_score(z);
        Duration::from_ps(total.round() as u64)
    }
}
