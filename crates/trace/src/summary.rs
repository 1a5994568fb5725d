//! The summary of a trace in a sentence: its length, and the range and mean over time of each
//! value.

use super::{Steps, Timeline, TraceRate, TraceStep, Values};
use fastpath_link::Limit;
use fastpath_units::Duration;

pub(crate) fn describe(timeline: &Timeline) -> String {
    match timeline {
        Timeline::Opportunities(opportunities) => format!(
            "{} of {} in {}, on average {}",
            counted(opportunities.times().len(), "opportunity", "opportunities"),
            counted(opportunities.bytes as usize, "byte", "bytes"),
            span(opportunities.period()),
            rate(opportunities.mean_bps()),
        ),
        Timeline::Steps(steps) => describe_steps(steps),
    }
}

fn describe_steps(steps: &Steps) -> String {
    let time = |ms: f64| format!("{}ms", rounded(ms));
    let percent = |p: f64| format!("{}%", rounded(100.0 * p));
    let pace = |values: &Values| {
        Some(match values.rate? {
            TraceRate::Paused => 0.0,
            TraceRate::Rate(rate) => rate.as_bps() as f64,
            TraceRate::Unlimited => f64::INFINITY,
        })
    };
    let limit = |values: &Values| {
        Some(match values.queue? {
            Limit::Packets(packets) => f64::from(packets),
            Limit::Bytes(bytes) => bytes.0 as f64,
        })
    };
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let parts = [
        part("rate", steps, pace, rate),
        part("delay", steps, |values| values.delay.map(ms), time),
        part("loss", steps, |values| Some(values.loss?.get()), percent),
        part("queue", steps, limit, rounded),
        part("jitter", steps, |values| Some(ms(values.jitter?.0)), time),
        part("duplicate", steps, |values| Some(values.duplicate?.0.get()), percent),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let count = counted(steps.steps.len(), "step", "steps");
    format!("{count} in {}: {}", span(steps.length), parts.join("; "))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `rate 1Mbit to 24Mbit, on average 12.5Mbit`; `None` if the trace does not set it.
fn part(
    name: &str,
    steps: &Steps,
    value: impl Fn(&Values) -> Option<f64>,
    print: impl Fn(f64) -> String,
) -> Option<String> {
    let (mut least, mut most, mut sum, mut time) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0);
    let mut now = None;
    for (index, TraceStep { at, values }) in steps.steps.iter().enumerate() {
        now = value(values).or(now);
        let Some(value) = now else { continue };
        let end = steps.steps.get(index + 1).map_or(steps.length, |next| next.at);
        let seconds = end.saturating_sub(*at).as_secs_f64();
        (least, most) = (least.min(value), most.max(value));
        (sum, time) = (sum + value * seconds, time + seconds);
    }
    now?;
    if least == most {
        return Some(format!("{name} {}", print(most)));
    }
    Some(format!("{name} {} to {}, on average {}", print(least), print(most), print(sum / time)))
}

fn rate(bps: f64) -> String {
    match bps {
        _ if bps.is_infinite() => "unlimited".to_owned(),
        _ if bps >= 1e9 => format!("{}Gbit", rounded(bps / 1e9)),
        _ if bps >= 1e6 => format!("{}Mbit", rounded(bps / 1e6)),
        _ if bps >= 1e3 => format!("{}kbit", rounded(bps / 1e3)),
        _ => format!("{}bit", rounded(bps)),
    }
}

/// Formats a time with a suitable unit and up to three decimals.
fn span(span: Duration) -> String {
    let [s, ms, us] = [1e-12, 1e-9, 1e-6].map(|unit| span.as_ps() as f64 * unit);
    match () {
        _ if s >= 1.0 => format!("{}s", rounded(s)),
        _ if ms >= 1.0 => format!("{}ms", rounded(ms)),
        _ => format!("{}us", rounded(us)),
    }
}

/// Formats with up to three decimals.
fn rounded(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use crate::{Format, Timeline};
    use fastpath_units::Duration;

    #[test]
    fn a_trace_is_summed_up_over_time() {
        let text = "duration_ms,rate_mbps,delay_ms,loss_%\n300,0,20,1\n100,8,,\n";
        assert_eq!(
            Timeline::read(Format::Csv, text).unwrap().describe(),
            "2 steps in 400ms: rate 0bit to 8Mbit, on average 2Mbit; delay 20ms; loss 1%"
        );
        assert_eq!(
            Timeline::read(Format::Mahimahi, "0\n5\n10\n").unwrap().describe(),
            "3 opportunities of 1504 bytes in 10ms, on average 3.61Mbit"
        );
        assert_eq!(
            Timeline::read(Format::Mahimahi, "20\n").unwrap().describe(),
            "1 opportunity of 1504 bytes in 20ms, on average 601.6kbit"
        );
        assert_eq!(super::span(Duration::from_ps(59_958_110_163_654)), "59.958s");
        assert_eq!(super::span(Duration::from_ps(1_500_000)), "1.5us");
    }
}
