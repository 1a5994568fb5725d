//! Mahimahi's traces (mm-link(1)): a line for every opportunity to send 1504 bytes, its time in whole milliseconds.

use fastpath_link::{Opportunities, OpportunitiesError};
use fastpath_units::Duration;

/// More opportunities than any trace has: an hour at 12 Gbit/s.
const LINES_MAX: usize = 1 << 28;
/// The last millisecond of the range of times.
const MS_MAX: u64 = u64::MAX / 1_000_000_000;

/// Why a text is no trace. Lines are numbered from 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// A line that is not a time.
    #[error("line {line}: '{text}' is not a time in whole milliseconds: write one number a line")]
    NotATime {
        /// Which.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// Too many lines.
    #[error("more than {LINES_MAX} lines: shorten the trace, it starts over at its end")]
    TooLong,
    /// The times are no trace; an opportunity is a line.
    #[error(transparent)]
    Times(#[from] OpportunitiesError),
}

/// Reads a trace of Mahimahi.
pub fn mahimahi(text: &str) -> Result<Opportunities, TraceError> {
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if index == LINES_MAX {
            return Err(TraceError::TooLong);
        }
        let digits = line.trim_end();
        let ms =
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
        match ms.filter(|&ms| ms <= MS_MAX) {
            Some(ms) => times.push(Duration::from_ms(ms)),
            None => {
                let text = digits.chars().take(40).collect();
                return Err(TraceError::NotATime { line: index + 1, text });
            }
        }
    }
    Ok(Opportunities::new(times)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_opportunity() {
        let trace = mahimahi("0\n5\n5\r\n10\n").unwrap();
        assert_eq!(trace.times(), [0, 5, 5, 10].map(Duration::from_ms));
        assert_eq!((trace.bytes, trace.mean_bps()), (1504, 4.0 * 1504.0 * 8.0 / 0.01));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        for (text, said) in [
            ("", "the trace has no opportunity"),
            ("0\n", "the trace ends at time 0"),
            ("5\n3\n", "opportunity 2 comes before the one above it"),
            ("5\n\n6\n", "line 2: '' is not a time in whole milliseconds"),
            ("5\n1.5\n", "line 2: '1.5' is not a time"),
            ("-1\n", "line 1: '-1' is not a time"),
            ("99999999999999999999\n", "line 1: '99999999999999999999' is not a time"),
        ] {
            let error = mahimahi(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
    }
}
