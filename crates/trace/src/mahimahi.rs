//! Traces of Mahimahi (mm-link(1)): each line is the time of an opportunity to send 1504 bytes, in
//! whole milliseconds.

use super::{each, mistake};
use fastpath_link::{Opportunities, OpportunitiesError};
use fastpath_text::mistake::Mistakes;
use fastpath_units::Duration;

/// The most opportunities of a trace: an hour at 12 Gbit/s.
const LINES_MAX: usize = 1 << 28;
/// The last millisecond of the range of `Time`.
const MS_MAX: u64 = u64::MAX / 1_000_000_000;

/// Parses a trace of Mahimahi. The error is a list of at most [`super::MISTAKES_MAX`] mistakes.
pub(crate) fn mahimahi(text: &str) -> Result<Opportunities, Mistakes> {
    let mut times = Vec::new();
    if text.lines().nth(LINES_MAX).is_some() {
        let what = format!("more than {LINES_MAX} lines");
        return Err(mistake(LINES_MAX + 1, what, "shorten the trace: it starts over at its end").into());
    }
    each((1..).zip(text.lines()), |(number, line)| {
        let digits = line.trim_end();
        let ms =
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
        match ms.filter(|&ms| ms <= MS_MAX) {
            Some(ms) => times.push(Duration::from_ms(ms)),
            None => {
                let text: String = digits.chars().take(40).collect();
                let what = format!("'{text}' is not a time in whole milliseconds");
                return Err(mistake(number, what, "write one number a line").into());
            }
        }
        Ok(())
    })?;
    let last = times.len().max(1);
    let wrong = |error| match error {
        OpportunitiesError::Empty => mistake(1, "the trace has no opportunity", "write at least one line"),
        OpportunitiesError::OutOfOrder { number } => {
            let what = "the opportunity comes before the one above it";
            mistake(number, what, "put the times in ascending order")
        }
        OpportunitiesError::NoDuration => {
            let what = "the trace ends at time 0";
            mistake(last, what, "write a later last time: it is the length of the trace")
        }
    };
    Ok(Opportunities::new(times).map_err(wrong)?)
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
            ("", "1:1: the trace has no opportunity"),
            ("0\n", "1:1: the trace ends at time 0"),
            ("5\n3\n", "2:1: the opportunity comes before the one above it"),
            ("5\n\n6\n", "2:1: '' is not a time in whole milliseconds"),
            ("5\n1.5\n", "2:1: '1.5' is not a time"),
            ("-1\n", "1:1: '-1' is not a time"),
            ("99999999999999999999\n", "1:1: '99999999999999999999' is not a time"),
        ] {
            let error = mahimahi(text).unwrap_err()[0].to_string();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
    }
}
