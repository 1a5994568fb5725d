//! The measured delays behind the queue of a link, next to the configured ones.

use fastpath_link::{Delays, PipeSpec, Reorder};
use fastpath_units::Duration;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The configured and the measured delay of a direction with jitter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DelayReport {
    /// Packets measured: those that left the queue since the law and the delay were last set.
    pub packets: u64,
    /// The treatment of packets that would overtake: `never`, `allow` or `drop`.
    pub reorder: String,
    /// Configured, by the law. Delays that would be negative are zero.
    pub asked: DelayFigures,
    /// Measured.
    pub realised: DelayFigures,
    /// The bias: measured minus configured. Keeping the order (`never`) preserves the mean and
    /// reduces the spread; the reduction is larger for packets that follow each other closely.
    /// The other cause of a bias is chance.
    pub bias: DelayBias,
}

/// A distribution in a few figures, in milliseconds. A figure that does not exist is left out.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DelayFigures {
    /// Mean.
    pub mean_ms: f64,
    /// Standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd_ms: Option<f64>,
    /// 10th percentile.
    pub p10_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

/// How far the measured distribution is from the configured one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DelayBias {
    /// Of the mean, in milliseconds.
    pub mean_ms: f64,
    /// Of the standard deviation, relative to the configured one: −0.1 is a tenth too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
}

impl DelayReport {
    /// For a pipe of `spec`; `None` without jitter or before the first packet.
    pub fn of(spec: &PipeSpec, delays: &Delays) -> Option<DelayReport> {
        let jitter = spec.jitter.as_deref()?;
        let (mean_s, sd) = jitter.law.moments(spec.delay);
        let asked = figures(mean_s * 1e3, sd, |share| jitter.law.quantile(spec.delay, share))?;
        let realised = figures(delays.mean().as_ms_f64(), Some(delays.sd()), |share| delays.quantile(share))?;
        let sd = asked.sd_ms.zip(realised.sd_ms).filter(|(asked, _)| *asked > 0.0);
        Some(DelayReport {
            packets: delays.count(),
            reorder: match jitter.order {
                Reorder::Never => "never",
                Reorder::Allow => "allow",
                Reorder::Drop => "drop",
            }
            .to_owned(),
            asked,
            realised,
            bias: DelayBias {
                mean_ms: realised.mean_ms - asked.mean_ms,
                sd: sd.map(|(asked, realised)| realised / asked - 1.0),
            },
        })
    }
}

fn figures(
    mean_ms: f64,
    sd: Option<Duration>,
    quantile: impl Fn(f64) -> Option<Duration>,
) -> Option<DelayFigures> {
    let ms = |share| quantile(share).map(Duration::as_ms_f64);
    Some(DelayFigures {
        mean_ms,
        sd_ms: sd.map(Duration::as_ms_f64),
        p10_ms: ms(0.1)?,
        p50_ms: ms(0.5)?,
        p90_ms: ms(0.9)?,
        p99_ms: ms(0.99)?,
    })
}

impl fmt::Display for DelayReport {
    /// Writes one line for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DelayReport { packets, reorder, asked, realised, bias } = self;
        write!(f, "delay of {packets} packets {realised} ms, configured {asked}")?;
        if let Some(sd) = bias.sd {
            write!(f, "; sd {:+.1} % with reorder = \"{reorder}\"", sd * 100.0)?;
        }
        Ok(())
    }
}

impl fmt::Display for DelayFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {:.3}", self.mean_ms)?;
        if let Some(sd) = self.sd_ms {
            write!(f, " sd {sd:.3}")?;
        }
        write!(
            f,
            " p10 {:.3} p50 {:.3} p90 {:.3} p99 {:.3}",
            self.p10_ms, self.p50_ms, self.p90_ms, self.p99_ms
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_link::{JitterLaw, JitterSpec, Packet, Pipe};
    use fastpath_units::{Rng, Time};

    fn report(reorder: Reorder, gap: Duration) -> DelayReport {
        let law = JitterLaw::Exponential { mean: Duration::from_ms(5) };
        let jitter = JitterSpec { order: reorder, ..JitterSpec::in_order(law) };
        let spec =
            PipeSpec { delay: Duration::from_ms(20), jitter: Some(Box::new(jitter)), ..PipeSpec::default() };
        let mut pipe = Pipe::new(&spec, Rng::new(1));
        for i in 0..20_000 {
            let now = Time::ZERO + gap * i;
            while pipe.pop(now).is_some() {}
            let _ = pipe.push(now, Packet::new(1, ()));
        }
        while pipe.pop(Time::MAX).is_some() {}
        DelayReport::of(&pipe.spec(), pipe.delays().expect("recorded")).expect("there is jitter")
    }

    fn values(figures: DelayFigures) -> [f64; 6] {
        let DelayFigures { mean_ms, sd_ms, p10_ms, p50_ms, p90_ms, p99_ms } = figures;
        [mean_ms, sd_ms.expect("it exists"), p10_ms, p50_ms, p90_ms, p99_ms]
    }

    #[test]
    fn delays_cut_at_zero_are_part_of_what_is_configured() {
        let ms = Duration::from_ms;
        for (law, mean_ms, sd_ms) in [
            // Of N(1, 4): 1·Φ(½) + 2·φ(½), and the deviation by its second moment.
            (JitterLaw::Normal { sd: ms(2) }, 1.395_593, 1.487_872),
            // Uniform from −2 to 4: 16/12, and 64/18 − (16/12)².
            (JitterLaw::Uniform { half_width: ms(3) }, 4.0 / 3.0, (32.0f64 / 18.0).sqrt()),
            (JitterLaw::Table([-3_000_000_000, 1_000_000_000].into()), 1.0, 1.0),
        ] {
            let jitter = JitterSpec { law, correlation: Default::default(), order: Reorder::Allow };
            let spec = PipeSpec { delay: ms(1), jitter: Some(Box::new(jitter)), ..PipeSpec::default() };
            let mut pipe = Pipe::new(&spec, Rng::new(1));
            for i in 0..40_000 {
                let now = Time::ZERO + ms(100) * i;
                while pipe.pop(now).is_some() {}
                let _ = pipe.push(now, Packet::new(1, ()));
            }
            while pipe.pop(Time::MAX).is_some() {}
            let report = DelayReport::of(&pipe.spec(), pipe.delays().expect("recorded")).expect("jitter");
            let [mean, sd, ..] = values(report.asked);
            assert!((mean - mean_ms).abs() < 1e-3 && (sd - sd_ms).abs() < 1e-3, "{report:?}");
            // A mean of 40 000 has a deviation of 0.007 ms.
            assert!(report.bias.mean_ms.abs() < 0.025 && report.bias.sd.unwrap().abs() < 0.02, "{report:?}");
        }
    }

    #[test]
    fn the_measured_delay_stands_next_to_the_configured_one() {
        let report = report(Reorder::Allow, Duration::from_ms(10));
        assert_eq!((report.packets, report.reorder.as_str()), (20_000, "allow"));
        // −5 ln(1 − q) beyond 20 ms.
        let exact = [25.0, 5.0, 20.526_803, 23.465_736, 31.512_925, 43.025_851];
        for (got, exact) in values(report.asked).into_iter().zip(exact) {
            assert!((got - exact).abs() < 1e-4, "{got} {exact}");
        }
        // The sketch is good to 1.6 %, the sample (correlated over 50 ms) to some more.
        for (got, exact) in values(report.realised).into_iter().zip(exact) {
            assert!((got / exact - 1.0).abs() < 0.15, "{got} {exact}");
        }
        assert_eq!(report.bias.mean_ms, report.realised.mean_ms - 25.0);
    }

    #[test]
    fn the_spread_that_order_costs_is_reported() {
        let [free, kept] =
            [Reorder::Allow, Reorder::Never].map(|order| report(order, Duration::from_us(100)));
        assert!((kept.bias.mean_ms - free.bias.mean_ms).abs() < 1e-6, "{kept} {free}");
        let [free, lost] = [&free, &kept].map(|report| report.bias.sd.expect("the law has one"));
        assert!(lost < free, "{lost} {free}");
        assert!(kept.to_string().ends_with("% with reorder = \"never\""), "{kept}");
    }

    #[test]
    fn a_pipe_without_jitter_has_nothing_to_report() {
        assert!(Pipe::<()>::new(&PipeSpec::default(), Rng::new(1)).delays().is_none());
    }
}
