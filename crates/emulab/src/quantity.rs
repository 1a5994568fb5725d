//! Quantities as ns-2 and Emulab write them: `1.5Mb`, `100ms`, `0.05`, `1h2m`.

use crate::outcome::{Interrupt, mistake};
use fastpath_units::{Duration, Probability, Rate, Time};

/// Bits per second; `*` is unlimited. Units are decimal, `b` is bits and `B` bytes, none is bits.
pub(crate) fn rate(text: &str) -> Result<Option<Rate>, Interrupt> {
    if matches!(text.trim(), "*" | "~") {
        return Ok(None);
    }
    let Some((number, unit)) = number(text) else { return unknown(text, "bandwidth", "10Mb") };
    let (scale, rest) = match unit.chars().next() {
        Some('k' | 'K') => (1e3, &unit[1..]),
        Some('m' | 'M') => (1e6, &unit[1..]),
        Some('g' | 'G') => (1e9, &unit[1..]),
        _ => (1.0, unit),
    };
    let bits = match rest {
        "" | "b" | "bps" | "bit" => number * scale,
        "B" | "Bps" => number * scale * 8.0,
        _ => return unknown(text, "bandwidth", "10Mb"),
    };
    match Rate::from_bps(bits.round() as u64) {
        Some(rate) => Ok(Some(rate)),
        None => mistake(format!("a bandwidth of {text} is not from 1b to 800Gb"), "write for example 10Mb"),
    }
}

/// A delay; without a unit in `bare` seconds (1 in `duplex-link`, 0.001 in events).
pub(crate) fn delay(text: &str, bare: f64) -> Result<Duration, Interrupt> {
    let Some((number, unit)) = number(text) else { return unknown(text, "delay", "10ms") };
    let picoseconds = match unit {
        "" => number * (bare * 1e12),
        "s" => number * 1e12,
        "ms" => number * 1e9,
        "us" => number * 1e6,
        "ns" => number * 1e3,
        _ => return unknown(text, "delay", "10ms"),
    };
    if picoseconds >= u64::MAX as f64 {
        return unknown(text, "delay", "10ms");
    }
    Ok(Duration::from_ps(picoseconds.round() as u64))
}

/// A loss rate from 0 to 1.
pub(crate) fn loss(text: &str) -> Result<Probability, Interrupt> {
    match text.trim().parse().ok().and_then(Probability::new) {
        Some(probability) => Ok(probability),
        None => mistake(format!("'{text}' is not a loss rate from 0 to 1"), "write for example 0.05"),
    }
}

/// The time of an event: seconds, or `1h2m3s`.
pub(crate) fn time(text: &str) -> Result<Time, Interrupt> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    let mut bare = false;
    while !rest.is_empty() && !bare {
        let Some((number, unit)) = number(rest) else { return unknown(text, "time", "10.0") };
        let scale = match unit.chars().next() {
            None => {
                bare = true;
                1.0
            }
            Some('h') => 3600.0,
            Some('m') => 60.0,
            Some('s') => 1.0,
            _ => return unknown(text, "time", "10.0"),
        };
        seconds += number * scale;
        rest = unit.get(1..).unwrap_or_default();
    }
    if text.trim().is_empty() || seconds * 1e12 >= u64::MAX as f64 {
        return unknown(text, "time", "10.0");
    }
    Ok(Time::ZERO + Duration::from_secs_f64(seconds))
}

/// The delay of a member's link: half of the delay of its lan.
pub(crate) fn half(delay: Duration) -> Duration {
    Duration::from_ps(delay.as_ps() / 2)
}

/// The loss of each of the two links between members for a total of `loss`.
pub(crate) fn root(loss: Probability) -> Probability {
    Probability::new(1.0 - (1.0 - loss.get()).sqrt()).expect("a root of a probability is one")
}

/// A decimal number that is not negative, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let exponent = |i: usize| {
        let sign = matches!(bytes.get(i + 1), Some(b'+' | b'-'));
        bytes.get(i + 1 + usize::from(sign)).is_some_and(u8::is_ascii_digit)
    };
    let mut length = 0;
    while let Some(&byte) = bytes.get(length) {
        match byte {
            b'0'..=b'9' | b'.' => length += 1,
            b'e' | b'E' if length > 0 && exponent(length) => length += 2,
            _ => break,
        }
    }
    let number: f64 = text[..length].parse().ok()?;
    number.is_finite().then_some((number, text[length..].trim()))
}

fn unknown<T>(text: &str, what: &str, example: &str) -> Result<T, Interrupt> {
    mistake(format!("'{text}' is not a {what}"), format!("write for example {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_are_decimal_bits() {
        for (text, bits) in [
            ("1.5Mb", 1_500_000),
            ("100Mb", 100_000_000),
            ("1e6", 1_000_000),
            ("64kb", 64_000),
            ("64Kbps", 64_000),
            ("2G", 2_000_000_000),
            ("1MB", 8_000_000),
            ("15.0Mb", 15_000_000),
            ("3.3333333333333335Mb", 3_333_333),
        ] {
            assert_eq!(rate(text).unwrap(), Rate::from_bps(bits), "{text}");
        }
        assert_eq!(rate("*").unwrap(), None);
        for text in ["", "Mb", "0Mb", "-1Mb", "10Mbyte", "300000Gb", "1..5Mb", "e", "1e999"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn delays_without_a_unit_are_seconds_except_in_events() {
        for (text, ps) in [
            ("100ms", 100_000_000_000),
            ("0.1ms", 100_000_000),
            ("2", 2_000_000_000_000),
            ("30us", 30_000_000),
        ] {
            assert_eq!(delay(text, 1.0).unwrap(), Duration::from_ps(ps), "{text}");
        }
        assert_eq!(delay("20", 0.001).unwrap(), Duration::from_ms(20));
        assert!(delay("5 parsecs", 1.0).is_err());
        assert!(delay("1e30", 1.0).is_err());
    }

    #[test]
    fn times_are_seconds_or_hours_minutes_seconds() {
        let seconds = |s| Time::ZERO + Duration::from_secs(s);
        for (text, s) in [("20", 20), ("2m", 120), ("1h20m3s", 4803), ("0", 0)] {
            assert_eq!(time(text).unwrap(), seconds(s), "{text}");
        }
        for text in ["", "soon", "1x", "-1", "1e30"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
