//! Jitter: a delay that varies from packet to packet, with a distribution, correlation, and with or
//! without reordering.
//!
//! Correlation is a Gaussian copula: a standard normal z follows an autoregressive process, z′ =
//! ρ·z + √(1−ρ²)·ε, where ρ = 2^(−dt/half-life) or a constant from packet to packet. The quantile
//! function of the distribution turns z into a delay. So the distribution holds exactly for any
//! spacing of packets and any ρ.

use fastpath_units::{Duration, Probability, Rng, Time, math};
use std::sync::Arc;

/// The variation of the delay, which is added to [`PipeSpec::delay`](crate::PipeSpec::delay).
#[derive(Clone, PartialEq, Debug)]
pub struct JitterSpec {
    /// The distribution.
    pub law: JitterLaw,
    /// The correlation with the delays of packets before.
    pub correlation: JitterCorrelation,
    /// The treatment of packets that would overtake others.
    pub order: Reorder,
}

/// The correlation between the delays of successive packets.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum JitterCorrelation {
    /// Every packet draws independently.
    #[default]
    None,
    /// The time in which the correlation of the underlying normal process halves.
    HalfLife(Duration),
    /// The correlation of the underlying normal process from each packet to the next: the intent of
    /// the correlation of tc's `delay`. (The kernel mixes uniform numbers and takes the mix modulo
    /// the width of the distribution, which preserves neither the distribution nor much
    /// correlation.)
    PerPacket(Probability),
}

/// A distribution of delays. A negative sum with the delay of the pipe becomes zero.
#[derive(Clone, PartialEq, Debug)]
pub enum JitterLaw {
    /// Uniform from −`half_width` to +`half_width`.
    Uniform {
        /// Half the width.
        half_width: Duration,
    },
    /// Normal, with mean zero.
    Normal {
        /// Standard deviation.
        sd: Duration,
    },
    /// Lognormal.
    Lognormal {
        /// Mean, above zero.
        mean: Duration,
        /// Standard deviation.
        sd: Duration,
    },
    /// Pareto: at least mean·(shape − 1)/shape, with a power-law tail.
    Pareto {
        /// Mean.
        mean: Duration,
        /// The shape, above 1. Up to 2 the variance is infinite.
        shape: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Duration,
    },
    /// One of these values in picoseconds, all equally likely. Values may be negative. In ascending
    /// order, at least one.
    Table(Arc<[i64]>),
    /// These values in order, repeated after the last. At least one. Correlation is ignored.
    Trace(Arc<[Duration]>),
}

/// The treatment of packet order under jitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reorder {
    /// Order is kept: every draw yields an exit time, and the first packet in order takes the next
    /// exit time. The mean equals the mean of the draws exactly. Variation faster than packets can
    /// follow without overtaking is lost. With a half-life of ten standard deviations the standard
    /// deviation falls short by less than 1 % (uniform, normal), 2 % (exponential) or 8 %
    /// (lognormal with a standard deviation as large as its mean) at any packet rate. With
    /// independent draws it shrinks when packets are closer together than the standard deviation.
    /// [`Pipe::delays`](crate::Pipe::delays) has the measured delays.
    #[default]
    Never,
    /// Packets overtake, as in netem.
    Allow,
    /// Packets overtake. A packet that would leave after a packet sent later is dropped then.
    Drop,
}

impl JitterSpec {
    /// Returns jitter that keeps order and nearly all of the standard deviation: with a half-life
    /// of ten standard deviations.
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
    /// Returns the mean of the variation in seconds, before negative delays become zero.
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

    /// Returns the standard deviation; `None` if it is infinite.
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

    /// Returns the share of delays with the constant part `base` that would be negative and are
    /// zero.
    pub fn cut_share(&self, base: Duration) -> f64 {
        let base_s = base.as_secs_f64();
        match self {
            JitterLaw::Uniform { half_width } if *half_width > base => {
                (half_width.as_secs_f64() - base_s) / (2.0 * half_width.as_secs_f64())
            }
            JitterLaw::Normal { sd } if *sd > Duration::ZERO => math::normal_tail(base_s / sd.as_secs_f64()),
            JitterLaw::Table(values) => {
                let least = -i128::from(base.as_ps());
                values.iter().filter(|value| i128::from(**value) < least).count() as f64 / values.len() as f64
            }
            _ => 0.0,
        }
    }

    /// Returns the mean in seconds and the standard deviation of the delay with the constant part
    /// `base`, after negative delays have become zero; `None` if the deviation is infinite.
    pub fn moments(&self, base: Duration) -> (f64, Option<Duration>) {
        let about = base.as_secs_f64();
        let (first, second) = match self {
            _ if self.cut_share(base) == 0.0 => return (about + self.mean_secs(), self.sd()),
            JitterLaw::Uniform { half_width } => {
                let (most, width) = (about + half_width.as_secs_f64(), 2.0 * half_width.as_secs_f64());
                (most * most / (2.0 * width), most * most * most / (3.0 * width))
            }
            JitterLaw::Normal { sd } => {
                let sd = sd.as_secs_f64();
                let z = about / sd;
                let density = math::exp(-z * z / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
                let above = 1.0 - math::normal_tail(z);
                let second = (about * about + sd * sd) * above + about * sd * density;
                (about * above + sd * density, second)
            }
            JitterLaw::Table(values) => {
                let delay = |ps: &i64| (about + *ps as f64 / 1e12).max(0.0);
                (mean(values.iter().map(delay)), mean(values.iter().map(|ps| delay(ps) * delay(ps))))
            }
            _ => return (about + self.mean_secs(), self.sd()),
        };
        (first, Some(Duration::from_secs_f64((second - first * first).max(0.0).sqrt())))
    }

    /// Returns the `q`-quantile of the delay with the constant part `base`.
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

    /// Returns the value in picoseconds with the tail probability of a standard normal `z`.
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
                let index = (1.0 - math::normal_tail(z)) * values.len() as f64;
                values[(index as usize).min(values.len() - 1)] as f64
            }
            JitterLaw::Trace(_) => 0.0,
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

/// The state of jitter.
#[derive(Debug)]
pub(crate) struct Jitter {
    spec: JitterSpec,
    /// The time of the last draw and the value of z then.
    last: Option<(Time, f64)>,
    /// Number of values of a trace used so far.
    used: usize,
}

impl Jitter {
    pub(crate) fn new(spec: JitterSpec) -> Jitter {
        Jitter { spec, last: None, used: 0 }
    }

    pub(crate) fn spec(&self) -> &JitterSpec {
        &self.spec
    }

    /// Draws the delay of a packet that leaves the queue at `now`, with the constant part `base`.
    /// One draw, none for a trace.
    pub(crate) fn draw(&mut self, now: Time, base: Duration, rng: &mut Rng) -> Duration {
        if let JitterLaw::Trace(values) = &self.spec.law {
            let value = values[self.used % values.len()];
            self.used += 1;
            return base.saturating_add(value);
        }
        // The middle of one of 2⁵³ equal intervals: never 0 or 1.
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
