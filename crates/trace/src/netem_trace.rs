//! The JSON in which rattan's crate `netem-trace` writes its models (<https://docs.rs/netem-trace>,
//! feature `serde`, with and without `human`): one parameter of a link, a static value or a pattern
//! of them.
//!
//! ```text
//! {"RepeatedBwPatternConfig":
//!   {"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s"}}, …],"count":2}}
//! {"StaticDelayConfig":{"delay":{"secs":0,"nanos":10000000},"duration":{"secs":1,"nanos":0}}}
//! {"TraceBwConfig":[[1000.0,[12.0,24.0]], …]}                    milliseconds each, Mbit/s
//! ```
//!
//! The defaults are those of the crate: 12 Mbit/s, 10 ms, 1 s. A pattern with count 0 repeats for
//! ever: it becomes one period of a trace that repeats. Models with random values depend on the
//! generator of that crate and are refused. So are losses that depend on earlier losses.

use super::{Builder, Steps, TraceRate, Values, mistake};
use fastpath_text::mistake::{Mistake, Mistakes};
use fastpath_units::{Duration, Probability, Rate};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Config {
    #[serde(rename = "StaticBwConfig")]
    Bw(StaticBw),
    #[serde(rename = "TraceBwConfig")]
    BwTable(Vec<(Milliseconds, Vec<Megabits>)>),
    #[serde(rename = "StaticDelayConfig")]
    Delay(StaticDelay),
    #[serde(rename = "StaticLossConfig")]
    Loss(StaticLoss),
    #[serde(rename = "StaticDuplicateConfig")]
    Duplicate(StaticDuplicate),
    #[serde(
        rename = "RepeatedBwPatternConfig",
        alias = "RepeatedDelayPatternConfig",
        alias = "RepeatedLossPatternConfig",
        alias = "RepeatedDuplicatePatternConfig"
    )]
    Repeated(Repeated),
}

/// A value for a time. Each kind has its own type because the name of the field differs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StaticBw {
    bw: Option<Bandwidth>,
    #[serde(default)]
    duration: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StaticDelay {
    delay: Option<Span>,
    #[serde(default)]
    duration: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StaticLoss {
    loss: Option<Vec<f64>>,
    #[serde(default)]
    duration: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StaticDuplicate {
    duplicate: Option<Vec<f64>>,
    #[serde(default)]
    duration: Span,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Repeated {
    pattern: Vec<Config>,
    count: usize,
}

impl Default for Repeated {
    fn default() -> Repeated {
        Repeated { pattern: Vec::new(), count: 1 }
    }
}

pub(crate) fn read(text: &str) -> Result<Steps, Mistakes> {
    let config: Config = serde_json::from_str(text).map_err(|error| {
        let what = error.to_string();
        let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what).to_owned();
        let (line, column) = (error.line().max(1), error.column().max(1));
        Mistake { line, column, what, instead: "write JSON as the crate netem-trace does".to_owned() }
    })?;
    let mut steps = Builder::default();
    // An endless pattern is one period: the track repeats it.
    play(&config, true, &mut steps)?;
    Ok(steps.finish()?)
}

fn play(config: &Config, outermost: bool, steps: &mut Builder) -> Result<(), Mistake> {
    let wrong = |what: &str, instead: &str| Err(mistake(1, what, instead));
    match config {
        Config::Bw(StaticBw { bw, duration }) => {
            let usual = TraceRate::Rate(Rate::from_bps(12_000_000).expect("a rate"));
            let rate = bw.as_ref().map_or(usual, |bw| bw.0);
            steps.push(1, duration.0, Values { rate: Some(rate), ..Values::default() })
        }
        Config::BwTable(rows) => {
            for (duration, rates) in rows {
                for rate in rates {
                    steps.push(1, duration.0, Values { rate: Some(rate.0), ..Values::default() })?;
                }
            }
            Ok(())
        }
        Config::Delay(StaticDelay { delay, duration }) => {
            let delay = delay.as_ref().map_or(Duration::from_ms(10), |delay| delay.0);
            steps.push(1, duration.0, Values { delay: Some(delay), ..Values::default() })
        }
        Config::Loss(StaticLoss { loss, duration }) => {
            let loss = Some(independent(loss.as_deref(), "loss")?);
            steps.push(1, duration.0, Values { loss, ..Values::default() })
        }
        Config::Duplicate(StaticDuplicate { duplicate, duration }) => {
            let duplicate = Some((independent(duplicate.as_deref(), "duplicate")?, Duration::ZERO));
            steps.push(1, duration.0, Values { duplicate, ..Values::default() })
        }
        Config::Repeated(Repeated { count: 0, .. }) if !outermost => wrong(
            "a pattern within a pattern has no end, so what follows is never reached",
            "give it a count",
        ),
        Config::Repeated(Repeated { pattern, count }) => {
            // Repeating an empty pattern adds no step, so the limit on steps would not bound the
            // work.
            let rounds = if pattern.is_empty() { 0 } else { (*count).max(1) };
            for _ in 0..rounds {
                let before = steps.steps.len();
                pattern.iter().try_for_each(|config| play(config, false, steps))?;
                if steps.steps.len() == before {
                    break;
                }
            }
            Ok(())
        }
    }
}

/// Returns the probability of a pattern that does not depend on earlier losses.
fn independent(pattern: Option<&[f64]>, name: &str) -> Result<Probability, Mistake> {
    match pattern {
        Some([]) => Ok(Probability::NEVER),
        Some(&[p]) => Probability::new(p).ok_or_else(|| {
            mistake(1, format!("{name} {p} is not a probability"), "write a number from 0 to 1")
        }),
        _ => Err(mistake(
            1,
            format!("{name} depends on the packets before, which is not emulated"),
            format!("write one number: \"{name}\":[0.01]"),
        )),
    }
}

/// `"12Mbps"`, `"1Gbps 200Mbps"`, or `{"gbps":0,"bps":12000000}`.
struct Bandwidth(TraceRate);
/// `"1s"`, `"1s 500ms"`, or `{"secs":1,"nanos":0}`.
struct Span(Duration);
struct Milliseconds(Duration);
struct Megabits(TraceRate);

impl Default for Span {
    fn default() -> Span {
        Span(Duration::from_secs(1))
    }
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum BandwidthForm {
    Text(String),
    Numbers { gbps: u64, bps: u64 },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum SpanForm {
    Text(String),
    Numbers { secs: u64, nanos: u64 },
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bandwidth, D::Error> {
        let bps = match BandwidthForm::deserialize(deserializer)? {
            BandwidthForm::Numbers { gbps, bps } => {
                gbps.checked_mul(1_000_000_000).and_then(|g| g.checked_add(bps))
            }
            BandwidthForm::Text(text) => sum(&text, |word| {
                let word = word.replace("bps", "bit");
                if is_zero(&word) { Some(0) } else { word.parse::<Rate>().ok().map(Rate::as_bps) }
            }),
        };
        bps.and_then(pace)
            .map(Bandwidth)
            .ok_or_else(|| D::Error::custom("not a bandwidth such as \"12Mbps\""))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let ps = match SpanForm::deserialize(deserializer)? {
            SpanForm::Numbers { secs, nanos } => {
                secs.checked_mul(1_000_000_000_000).and_then(|ps| ps.checked_add(nanos.checked_mul(1000)?))
            }
            SpanForm::Text(text) => sum(&text, |word| word.parse::<Duration>().ok().map(Duration::as_ps)),
        };
        ps.map(|ps| Span(Duration::from_ps(ps))).ok_or_else(|| D::Error::custom("not a time such as \"1s\""))
    }
}

impl<'de> Deserialize<'de> for Milliseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Milliseconds, D::Error> {
        // The shortest decimal of the number is the one in the file.
        let ms = f64::deserialize(deserializer)?;
        let found = format!("{ms}ms").parse().ok().map(Milliseconds);
        found.ok_or_else(|| D::Error::custom(format!("{ms} is not a time in milliseconds")))
    }
}

impl<'de> Deserialize<'de> for Megabits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Megabits, D::Error> {
        let mbit = f64::deserialize(deserializer)?;
        let bps = (mbit * 1e6).round();
        let found = (bps >= 0.0).then(|| pace(bps as u64)).flatten();
        found.map(Megabits).ok_or_else(|| D::Error::custom(format!("{mbit} is not a rate in Mbit/s")))
    }
}

fn pace(bps: u64) -> Option<TraceRate> {
    if bps == 0 { Some(TraceRate::Paused) } else { Rate::from_bps(bps).map(TraceRate::Rate) }
}

fn is_zero(word: &str) -> bool {
    word.starts_with('0')
        && word.trim_start_matches(['0', '.']).starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the sum of the quantities in a text such as `1s 500ms`.
fn sum(text: &str, read: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let mut words = text.split_whitespace().peekable();
    words.peek()?;
    words.try_fold(0u64, |sum, word| sum.checked_add(read(word)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(text: &str) -> Vec<(u64, u64)> {
        let steps = read(text).unwrap();
        let rate = |values: &Values| match values.rate {
            Some(TraceRate::Rate(rate)) => rate.as_bps(),
            _ => 0,
        };
        steps.steps().iter().map(|step| (step.at.as_ns() / 1_000_000, rate(&step.values))).collect()
    }

    #[test]
    fn the_documented_examples_are_read_alike_in_both_writings() {
        // From the crate's documentation: 12 and 24 Mbit/s for a second each, twice.
        let human = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s"}},{"StaticBwConfig":{"bw":"24Mbps","duration":"1s"}}],"count":2}}"#;
        let numbers = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":{"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":0}}},{"StaticBwConfig":{"bw":{"gbps":0,"bps":24000000},"duration":{"secs":1,"nanos":0}}}],"count":2}}"#;
        let expected = [(0, 12_000_000), (1000, 24_000_000), (2000, 12_000_000), (3000, 24_000_000)];
        assert_eq!((rates(human), rates(numbers)), (expected.to_vec(), expected.to_vec()));
        let table = r#"{"TraceBwConfig":[[25.0,[1.0,0.25]],[0.5,[10]]]}"#;
        assert_eq!(rates(table), [(0, 1_000_000), (25, 250_000), (50, 10_000_000)]);
    }

    #[test]
    fn delays_losses_and_defaults_are_read() {
        let delay = r#"{"RepeatedDelayPatternConfig":{"pattern":[{"StaticDelayConfig":{"delay":"10ms","duration":"1s 500ms"}},{"StaticDelayConfig":{}}],"count":0}}"#;
        let steps = read(delay).unwrap();
        assert_eq!(steps.length, Duration::from_ms(2500));
        assert_eq!(steps.steps()[1].values.delay, Some(Duration::from_ms(10)));
        let loss = read(r#"{"StaticLossConfig":{"loss":[0.1],"duration":{"secs":0,"nanos":1000}}}"#).unwrap();
        assert_eq!((loss.length, loss.steps()[0].values.loss), (Duration::from_us(1), Probability::new(0.1)));
        let pause = read(r#"{"StaticBwConfig":{"bw":"0bps","duration":"1s"}}"#).unwrap();
        assert_eq!(pause.steps()[0].values.rate, Some(TraceRate::Paused));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, said) in [
            ("{", "1:1: EOF while parsing"),
            (r#"{"NormalizedBwConfig":{}}"#, "1:21: unknown variant `NormalizedBwConfig`"),
            ("{\"StaticBwConfig\":\n{\"bw\":\"12Mbqs\"}}", "2:"),
            (r#"{"StaticBwConfig":{"bq":"1Mbps"}}"#, "1:23: unknown field `bq`, expected `bw` or `duration`"),
            (r#"{"StaticDelayConfig":{"delay":"1ms","jitter":"1ms"}}"#, "1:44: unknown field `jitter`"),
            (r#"{"StaticLossConfig":{"bw":"1Mbps"}}"#, "1:25: unknown field `bw`"),
            (r#"{"StaticDuplicateConfig":{"duplicat":[0.1]}}"#, "1:36: unknown field `duplicat`"),
            (r#"{"StaticBwConfig":{"bw":{"gbps":0,"bps":1000,"kbps":1}}}"#, "1:"),
            (
                r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"duration":"1s","bv":1}}]}}"#,
                "1:",
            ),
            (r#"{"StaticBwConfig":{"bw":"1Mbps","duration":"0s"}}"#, "1:1: the step has no length"),
            (r#"{"StaticLossConfig":{"loss":[0.1,0.2]}}"#, "1:1: loss depends on the packets before"),
            (r#"{"RepeatedBwPatternConfig":{"pattern":[],"count":5}}"#, "1:1: the trace is empty"),
            (
                r#"{"RepeatedBwPatternConfig":{"pattern":[{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{}}],"count":0}}],"count":1}}"#,
                "1:1: a pattern within a pattern has no end",
            ),
            (
                r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{}}],"count":99999999999}}"#,
                "1:1: more than 2097152 steps",
            ),
        ] {
            let error = read(text).expect_err(text)[0].to_string();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
