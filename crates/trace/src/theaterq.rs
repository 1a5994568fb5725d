//! Trace files of TheaterQ (<https://github.com/cs7org/TheaterQ>, "Trace File Format"): each line
//! is valid for a number of microseconds.
//!
//! ```text
//! KEEP,LATENCY,RATE,LOSS,LIMIT                                             simple
//! KEEP,LATENCY,JITTER,RATE,LOSS,LIMIT,DUP_PROB,DUP_DELAY[,ROUTE_ID[,QUEUE_ID]]      extended
//! ```
//!
//! KEEP in µs, LATENCY and JITTER in ns, RATE in bit/s (-1: unlimited, 0: nothing is sent), LOSS
//! and DUP_PROB as 32 bits (4294967295: 100 %), LIMIT in packets (0: none), DUP_DELAY in ns: how
//! much later the copy leaves. A line that begins with anything but a digit is a comment.
//! Differences:
//!
//! - A copy leaves DUP_DELAY after its packet. In TheaterQ the packet waits for DUP_DELAY, and the
//!   copy is queued and delayed separately.
//! - JITTER is the standard deviation of a normal law, as the format says; the kernel module draws
//!   uniformly.
//! - With a ROUTE_ID packets keep their order. In TheaterQ packets may overtake when ROUTE_ID
//!   changes. There is one queue, so QUEUE_ID must not change.

use super::{Builder, Steps, TraceRate, Values, each, mistake};
use fastpath_link::{Limit, Reorder};
use fastpath_text::mistake::{Mistake, Mistakes};
use fastpath_units::{Duration, Probability, Rate};

pub(crate) fn read(text: &str) -> Result<Steps, Mistakes> {
    let mut steps = Builder::default();
    let mut columns = None;
    let mut queue = None;
    each((1..).zip(text.lines()), |(number, line)| {
        if !line.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(());
        }
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if *columns.get_or_insert(cells.len()) != cells.len() {
            let what = format!("{} values; the lines above have another number of values", cells.len());
            return Err(mistake(number, what, "write all lines in one format").into());
        }
        let (keep, entry) = match cells[..] {
            [keep, latency, rate, loss, limit] => (keep, Entry { latency, rate, loss, limit, ..SIMPLE }),
            [keep, latency, jitter, rate, loss, limit, duplicate, later, ref ids @ ..] if ids.len() <= 2 => {
                let route = ids.first().copied().unwrap_or("0");
                let queue_id = whole(number, "QUEUE_ID", ids.get(1).copied().unwrap_or("0"))?;
                if *queue.get_or_insert(queue_id) != queue_id {
                    let what = "the QUEUE_ID changes, and a link has one queue";
                    return Err(mistake(number, what, "write the same one in every line").into());
                }
                (keep, Entry { latency, jitter, rate, loss, limit, duplicate, later, route })
            }
            _ => {
                let what = format!("{} values in a line", cells.len());
                return Err(mistake(number, what, "write 5 (simple), or 8 to 10 (extended)").into());
            }
        };
        Ok(steps.push(number, scaled(number, "KEEP", keep, 1_000_000)?, entry.values(number)?)?)
    })?;
    Ok(steps.finish()?)
}

/// The cells of a line without KEEP and QUEUE_ID.
struct Entry<'t> {
    latency: &'t str,
    jitter: &'t str,
    rate: &'t str,
    loss: &'t str,
    limit: &'t str,
    duplicate: &'t str,
    later: &'t str,
    route: &'t str,
}

/// The values that the simple format does not have.
const SIMPLE: Entry<'_> = Entry {
    latency: "0",
    jitter: "0",
    rate: "0",
    loss: "0",
    limit: "0",
    duplicate: "0",
    later: "0",
    route: "0",
};

impl Entry<'_> {
    fn values(&self, line: usize) -> Result<Values, Mistake> {
        let order = if whole(line, "ROUTE_ID", self.route)? == 0 { Reorder::Allow } else { Reorder::Never };
        let later = scaled(line, "DUP_DELAY", self.later, 1000)?;
        Ok(Values {
            rate: Some(pace(line, self.rate)?),
            delay: Some(scaled(line, "LATENCY", self.latency, 1000)?),
            loss: Some(probability(line, "LOSS", self.loss)?),
            queue: Some(limit(line, self.limit)?),
            jitter: Some((scaled(line, "JITTER", self.jitter, 1000)?, order)),
            duplicate: Some((probability(line, "DUP_PROB", self.duplicate)?, later)),
        })
    }
}

fn whole(line: usize, name: &str, cell: &str) -> Result<u64, Mistake> {
    let digits = cell.bytes().all(|byte| byte.is_ascii_digit());
    let what = || format!("{name} '{}' is not a whole number", cell.chars().take(40).collect::<String>());
    digits
        .then(|| cell.parse().ok())
        .flatten()
        .ok_or_else(|| mistake(line, what(), "write digits between commas"))
}

/// Parses `cell` in units of `scale` picoseconds.
fn scaled(line: usize, name: &str, cell: &str, scale: u64) -> Result<Duration, Mistake> {
    let ps = whole(line, name, cell)?.checked_mul(scale);
    let what = || format!("{name} {cell} is too long");
    ps.map(Duration::from_ps).ok_or_else(|| mistake(line, what(), "write less than 213 days"))
}

fn pace(line: usize, cell: &str) -> Result<TraceRate, Mistake> {
    if cell == "-1" {
        return Ok(TraceRate::Unlimited);
    }
    match whole(line, "RATE", cell)? {
        0 => Ok(TraceRate::Paused),
        bps => {
            let what = || format!("RATE {bps} is too fast");
            let rate = Rate::from_bps(bps).ok_or_else(|| mistake(line, what(), "write up to 200 Tbit/s"))?;
            Ok(TraceRate::Rate(rate))
        }
    }
}

fn limit(line: usize, cell: &str) -> Result<Limit, Mistake> {
    match u32::try_from(whole(line, "LIMIT", cell)?) {
        Ok(0) => Ok(Limit::Packets(u32::MAX)),
        Ok(packets) => Ok(Limit::Packets(packets)),
        Err(_) => Err(mistake(line, "LIMIT is too large", "write up to 4294967295")),
    }
}

fn probability(line: usize, name: &str, cell: &str) -> Result<Probability, Mistake> {
    let found = Probability::new(whole(line, name, cell)? as f64 / f64::from(u32::MAX));
    found.ok_or_else(|| mistake(line, format!("{name} {cell} is too large"), "write up to 4294967295"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read_with_their_units() {
        let simple = read(
            "# KEEP,LATENCY,RATE,LOSS,LIMIT\n1,20000000,1000000,0,10\n2500,1,-1,4294967295,1\n1,1,0,0,0\n",
        )
        .unwrap();
        let values = &simple.steps()[0].values;
        assert_eq!(values.rate, Some(TraceRate::Rate(Rate::from_bps(1_000_000).unwrap())));
        assert_eq!((values.delay, values.queue), (Some(Duration::from_ms(20)), Some(Limit::Packets(10))));
        let second = &simple.steps()[1];
        assert_eq!((second.at, simple.length), (Duration::from_us(1), Duration::from_us(2502)));
        assert_eq!(
            (second.values.rate, second.values.loss),
            (Some(TraceRate::Unlimited), Some(Probability::ALWAYS))
        );
        let third = &simple.steps()[2].values;
        assert_eq!((third.rate, third.queue), (Some(TraceRate::Paused), Some(Limit::Packets(u32::MAX))));
        let extended = read("1000,5000000,200000,8000,0,10,4294967295,7000,1,3\n").unwrap();
        assert_eq!(extended.steps()[0].values.jitter, Some((Duration::from_us(200), Reorder::Never)));
        assert_eq!(extended.steps()[0].values.duplicate, Some((Probability::ALWAYS, Duration::from_us(7))));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("", "1:1: the trace is empty"),
            ("1,1,1,0,1\n0,1,1,0,1\n", "2:1: the step has no length"),
            ("1,1,1,0\n", "1:1: 4 values in a line"),
            ("1,1,1,0,1\n1,1,1,1,0,1,0,0\n", "2:1: 8 values; the lines above have another number of values"),
            ("1,1,1,0,x\n", "1:1: LIMIT 'x' is not a whole number"),
            ("1,1,-2,0,1\n", "1:1: RATE '-2' is not a whole number"),
            ("1,-1,1,0,1\n", "1:1: LATENCY '-1' is not a whole number"),
            ("1,1,1,4294967296,1\n", "1:1: LOSS 4294967296 is too large"),
            ("1,1,1,0,4294967296\n", "1:1: LIMIT is too large"),
            ("1,1,1,1,0,1,0,18446744073709551615\n", "1:1: DUP_DELAY 18446744073709551615 is too long"),
            ("1,1,1,1,0,1,0,0,0,1\n1,1,1,1,0,1,0,0,0,2\n", "2:1: the QUEUE_ID changes"),
            ("18446744073709551615,1,1,0,1\n", "1:1: KEEP 18446744073709551615 is too long"),
        ] {
            let error = read(text).unwrap_err()[0].to_string();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
    }
}
