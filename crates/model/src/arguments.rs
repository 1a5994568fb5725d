//! Numbers and points as people write them on command lines. Errors say what to write.

use crate::Estimate;
use crate::budget::PacketCycles;
use std::str::FromStr;

/// Parses the values of columns at one point: `p=64,h=10`.
///
/// # Errors
/// The part that is wrong, and what to write.
pub fn point(text: &str) -> Result<Vec<(String, f64)>, String> {
    let values = text.split(',').map(|part| {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}`: write COLUMN=VALUE,…, such as p=64,h=10"))?;
        let number: f64 =
            value.trim().parse().map_err(|error| format!("`{part}`: `{value}` is not a number: {error}"))?;
        if !number.is_finite() {
            return Err(format!("`{part}`: give a finite number"));
        }
        Ok((name.trim().to_owned(), number))
    });
    values.collect()
}

/// Parses `COLUMN=TEXT`.
///
/// # Errors
/// What to write.
pub fn column_text(text: &str) -> Result<(String, String), &'static str> {
    let (column, value) = text.split_once('=').ok_or("write COLUMN=TEXT")?;
    Ok((column.trim().to_owned(), value.trim().to_owned()))
}

/// Parses `2.5GHz`, `2500 MHz` or `2500000000`, as Hz.
///
/// # Errors
/// What to write.
pub fn clock_hz(text: &str) -> Result<f64, &'static str> {
    let lower = text.trim().to_lowercase();
    let (number, scale) = [("ghz", 1e9), ("mhz", 1e6), ("khz", 1e3), ("hz", 1.0)]
        .into_iter()
        .find_map(|(unit, scale)| Some((lower.strip_suffix(unit)?, scale)))
        .unwrap_or((&lower, 1.0));
    let hz = number.trim().parse().map(|x: f64| x * scale).ok();
    hz.filter(|hz| hz.is_finite() && *hz > 0.0).ok_or("write a frequency such as 2.5GHz")
}

/// Parses a number of bytes, 0 or more.
///
/// # Errors
/// What to write.
pub fn bytes(text: &str) -> Result<f64, &'static str> {
    let bytes = text.parse().ok().filter(|bytes: &f64| bytes.is_finite() && *bytes >= 0.0);
    bytes.ok_or("write a number of bytes, 0 or more")
}

impl FromStr for PacketCycles {
    type Err = String;

    /// `290:470` or `135..165:515`
    fn from_str(text: &str) -> Result<PacketCycles, String> {
        let (compute, memory) = text.split_once(':').ok_or("write COMPUTE:MEMORY, such as 290:470")?;
        let number = |text: &str| -> Result<f64, String> {
            let parsed = text.trim().parse();
            let value: f64 = parsed.map_err(|error| format!("`{text}` is not a number: {error}"))?;
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(format!("`{text}`: cycles are finite and not negative"))
            }
        };
        let compute = match compute.split_once("..") {
            None => Estimate::exact(number(compute)?),
            Some((low, high)) => {
                let (low, high) = (number(low)?, number(high)?);
                if low > high {
                    return Err(format!("`{compute}`: write the smaller number first"));
                }
                Estimate { value: f64::midpoint(low, high), low, high }
            }
        };
        Ok(PacketCycles { compute, memory: number(memory)? })
    }
}
