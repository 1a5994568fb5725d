//! Trace files of TheaterQ (<https://github.com/cs7org/TheaterQ>, "Trace File Format"): a line is an entry, kept for a
//! number of microseconds.
//!
//! ```text
//! KEEP,LATENCY,RATE,LOSS,LIMIT                                             simple
//! KEEP,LATENCY,JITTER,RATE,LOSS,LIMIT,DUP_PROB,DUP_DELAY[,ROUTE_ID]         extended
//! ```
//!
//! KEEP in µs, LATENCY and JITTER in ns, RATE in bit/s (0: unlimited), LOSS and DUP_PROB as 32 bits (4294967295: 100 %),
//! LIMIT in packets. A line that begins with anything but a digit is a comment. Its limit counts packets under delay too,
//! ours only those that wait. With a ROUTE_ID packets keep their order; that a change of it lets them overtake is not
//! emulated, nor is DUP_DELAY, which must be 0.

use super::{Builder, Pace, Steps, Values, mistake};
use crate::mistake::Mistake;
use fastpath_link::{Limit, Reorder};
use fastpath_units::{Duration, Probability, Rate};

pub(super) fn read(text: &str) -> Result<Steps, Mistake> {
    let mut steps = Builder::default();
    let mut columns = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if !line.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let cells = cells(number, line)?;
        if *columns.get_or_insert(cells.len()) != cells.len() {
            let what = format!("{} values, and the lines above have another number", cells.len());
            return Err(mistake(number, what, "write all lines in one format"));
        }
        let entry = match cells[..] {
            [keep, latency, rate, loss, limit] => {
                Entry { keep, latency, rate, loss, limit, ..Entry::default() }
            }
            [keep, latency, jitter, rate, loss, limit, duplicate, duplicate_delay, ref route @ ..]
                if route.len() <= 1 =>
            {
                let route = route.first().copied();
                Entry { keep, latency, jitter, rate, loss, limit, duplicate, duplicate_delay, route }
            }
            _ => {
                let what = format!("{} values in a line", cells.len());
                return Err(mistake(number, what, "write 5 (simple), or 8 or 9 (extended)"));
            }
        };
        let keep = scaled(number, "KEEP", entry.keep, 1_000_000)?;
        steps.push(number, keep, entry.values(number)?)?;
    }
    steps.finish()
}

fn cells(number: usize, line: &str) -> Result<Vec<u64>, Mistake> {
    let cell = |text: &str| {
        let digits = text.trim();
        let whole = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
        let what = || format!("'{}' is not a whole number", digits.chars().take(40).collect::<String>());
        whole.ok_or_else(|| mistake(number, what(), "write digits between commas"))
    };
    line.trim_end().split(',').map(cell).collect()
}

/// `value` in units of `scale` picoseconds.
fn scaled(line: usize, name: &str, value: u64, scale: u64) -> Result<Duration, Mistake> {
    let ps = value.checked_mul(scale);
    let what = || format!("{name} {value} is too long");
    ps.map(Duration::from_ps).ok_or_else(|| mistake(line, what(), "write less than 213 days"))
}

#[derive(Default)]
struct Entry {
    keep: u64,
    latency: u64,
    jitter: u64,
    rate: u64,
    loss: u64,
    limit: u64,
    duplicate: u64,
    duplicate_delay: u64,
    route: Option<u64>,
}

impl Entry {
    fn values(&self, line: usize) -> Result<Values, Mistake> {
        if self.duplicate_delay != 0 && self.duplicate != 0 {
            return Err(mistake(line, "DUP_DELAY is not emulated", "write 0"));
        }
        let rate = match self.rate {
            0 => Pace::Unlimited,
            bps => {
                let what = || format!("RATE {bps} is too fast");
                Pace::Rate(
                    Rate::from_bps(bps).ok_or_else(|| mistake(line, what(), "write up to 800 Gbit/s"))?,
                )
            }
        };
        let limit = match u32::try_from(self.limit) {
            Ok(0) => return Err(mistake(line, "with LIMIT 0 nothing passes", "write a number of packets")),
            Ok(packets) => Limit::Packets(packets),
            Err(_) => return Err(mistake(line, "LIMIT is too large", "write up to 4294967295")),
        };
        let order = if self.route.unwrap_or(0) == 0 { Reorder::Allow } else { Reorder::Never };
        Ok(Values {
            rate: Some(rate),
            delay: Some(scaled(line, "LATENCY", self.latency, 1000)?),
            loss: Some(probability(line, "LOSS", self.loss)?),
            queue: Some(limit),
            jitter: Some((scaled(line, "JITTER", self.jitter, 1000)?, order)),
            duplicate: Some(probability(line, "DUP_PROB", self.duplicate)?),
        })
    }
}

fn probability(line: usize, name: &str, value: u64) -> Result<Probability, Mistake> {
    let found = Probability::new(value as f64 / f64::from(u32::MAX));
    found.ok_or_else(|| mistake(line, format!("{name} {value} is too large"), "write up to 4294967295"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read_with_their_units() {
        let simple =
            read("# KEEP,LATENCY,RATE,LOSS,LIMIT\n1,20000000,1000000,0,10\n2500,1,0,4294967295,1\n").unwrap();
        let values = &simple.steps()[0].values;
        assert_eq!(values.rate, Some(Pace::Rate(Rate::from_bps(1_000_000).unwrap())));
        assert_eq!((values.delay, values.queue), (Some(Duration::from_ms(20)), Some(Limit::Packets(10))));
        let second = &simple.steps()[1];
        assert_eq!((second.at, simple.length), (Duration::from_us(1), Duration::from_us(2501)));
        assert_eq!(
            (second.values.rate, second.values.loss),
            (Some(Pace::Unlimited), Some(Probability::ALWAYS))
        );
        let extended = read("1000,5000000,200000,8000,0,10,0,0,1\n").unwrap();
        assert_eq!(extended.steps()[0].values.jitter, Some((Duration::from_us(200), Reorder::Never)));
        assert_eq!(extended.steps()[0].values.duplicate, Some(Probability::NEVER));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("", "1:1: the trace is empty"),
            ("1,1,1,0,1\n0,1,1,0,1\n", "2:1: the step has no length"),
            ("1,1,1,0\n", "1:1: 4 values in a line"),
            ("1,1,1,0,1\n1,1,1,1,0,1,0,0\n", "2:1: 8 values, and the lines above have another number"),
            ("1,1,1,0,x\n", "1:1: 'x' is not a whole number"),
            ("1,1,1,4294967296,1\n", "1:1: LOSS 4294967296 is too large"),
            ("1,1,1,0,0\n", "1:1: with LIMIT 0 nothing passes"),
            ("1,1,1,1,0,1,7,5\n", "1:1: DUP_DELAY is not emulated"),
            ("18446744073709551615,1,1,0,1\n", "1:1: KEEP 18446744073709551615 is too long"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
    }
}
