//! Numbers as tc writes them (tc(8), "PARAMETERS"): C's `strtod` and a suffix, case ignored.

use fastpath_units::{Duration, Probability, Rate};

/// A time in nanoseconds; a number without a unit counts `bare` of them.
pub(super) fn time(text: &str, bare: f64) -> Option<Duration> {
    let (number, unit) = number(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" => bare,
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    // tc keeps whole nanoseconds.
    let ns = (number * scale).floor();
    ((0.0..=u64::MAX as f64 / 1000.0).contains(&ns)).then(|| Duration::from_ps(ns as u64 * 1000))
}

/// A percentage, with or without its sign.
pub(super) fn percent(text: &str) -> Option<Probability> {
    let (number, unit) = number(text)?;
    if !matches!(unit, "" | "%") {
        return None;
    }
    Probability::new(number / 100.0)
}

/// Bits per second: `bit` without a suffix, `Bps` is bytes, a binary prefix has an `i`. `None`
/// inside is 0, which netem takes for no limit.
pub(super) fn rate(text: &str) -> Option<Option<Rate>> {
    let (number, unit) = number(text)?;
    let unit = unit.to_ascii_lowercase();
    let (unit, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 8.0),
        None => (unit.strip_suffix("bit").or(unit.is_empty().then_some(""))?, 1.0),
    };
    let scale = match unit {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1048576.0,
        "gi" => 1073741824.0,
        "ti" => 1099511627776.0,
        _ => return None,
    };
    let bps = (number * scale * bits).round();
    if bps == 0.0 {
        return Some(None);
    }
    (bps > 0.0 && bps <= Rate::MAX.as_bps() as f64).then(|| Rate::from_bps(bps as u64))
}

/// A size: `k`, `m`, `g` are powers of 1024, and a `bit` unit is an eighth.
pub(super) fn size(text: &str) -> Option<u32> {
    let (number, unit) = number(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1048576.0,
        "g" | "gb" => 1073741824.0,
        "kbit" => 128.0,
        "mbit" => 131072.0,
        "gbit" => 134217728.0,
        _ => return None,
    };
    let size = (number * scale).floor();
    (0.0..=f64::from(u32::MAX)).contains(&size).then_some(size as u32)
}

/// A whole number as C's `strtol` with base 0 reads it: decimal, `0x…`, or octal with a leading 0.
pub(super) fn whole(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hexadecimal) => (16, hexadecimal),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    // Another sign would be read by the standard library, but not by strtol.
    let value =
        digits.starts_with(|c: char| c.is_digit(radix)).then(|| i64::from_str_radix(digits, radix))?;
    value.ok().map(|value| if negative { -value } else { value })
}

/// A number that is not negative, as C's `strtod` finds it at the start, and what follows.
fn number(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if let Some(rest) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        let len = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let value = u64::from_str_radix(&rest[..len], 16).ok()?;
        return Some((value as f64, &rest[len..]));
    }
    let mut len = digits(0);
    if bytes.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if !bytes[..len].iter().any(u8::is_ascii_digit) {
        return None;
    }
    if let Some(b'e' | b'E') = bytes.get(len) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits((len + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    let number: f64 = text[..len].parse().ok()?;
    number.is_finite().then_some((number, &text[len..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_tc_sends_to_the_kernel() {
        // `tc qdisc add … netem rate X` of iproute2 6.1, decoded from its netlink message, times 8.
        for (text, bits) in [
            ("1kibit", 1024),
            ("1KiBps", 8192),
            ("1.5mbit", 1_500_000),
            ("10Mbit", 10_000_000),
            ("1mbps", 8_000_000),
            ("800", 800),
        ] {
            assert_eq!(rate(text), Some(Rate::from_bps(bits)), "{text}");
        }
        assert_eq!(rate("0"), Some(None));
        for text in ["", "1k", "mbit", "-1mbit", "1mbits", "1e30gbit"] {
            assert_eq!(rate(text), None, "{text}");
        }
    }

    #[test]
    fn times_sizes_and_whole_numbers_are_c_s() {
        assert_eq!(time("1e2ms", 1e3), Some(Duration::from_ms(100)));
        assert_eq!(time(".5ms", 1e3), Some(Duration::from_us(500)));
        assert_eq!(time("100", 1e3), Some(Duration::from_us(100)));
        assert_eq!((time("1 ms", 1.0), time("-1ms", 1.0), time("ms", 1.0)), (None, None, None));
        assert_eq!(
            (size("10k"), size("0x10"), size("8kbit"), size("1x")),
            (Some(10240), Some(16), Some(1024), None)
        );
        assert_eq!(
            (whole("-14"), whole("0x10"), whole("010"), whole("1k"), whole("--1")),
            (Some(-14), Some(16), Some(8), None, None)
        );
        assert_eq!((percent("5"), percent("0.5%")), (Probability::new(0.05), Probability::new(0.005)));
        assert_eq!((percent("101%"), percent("1%2"), percent("-1%")), (None, None, None));
    }
}
