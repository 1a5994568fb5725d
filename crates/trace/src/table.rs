//! CSV with named columns, times exact.
//!
//! ```text
//! # units in the names, or in the values: 0s,10Mbit,25ms,1%
//! time_s,rate_mbps,delay (ms),loss [%]
//! 0,24,30,0
//! 0.1,12.5,35,1
//! 0.2                                           # an empty last line gives the end of the trace
//! ```
//!
//! `time` is the start of a step; the first is 0. Without an empty last line the last step is as
//! long as the one before. `duration` (also `keep`) is the length of a step. Both together must
//! leave no gap. An empty value keeps the previous one. At rate 0 queued packets wait. `queue` is a
//! number of packets (`50p`) or bytes (`64KiB`).

use super::{Builder, Steps, TraceRate, Values, each, mistake};
use fastpath_link::{Limit, Reorder};
use fastpath_text::mistake::{Mistake, Mistakes, nearest};
use fastpath_units::{Bytes, Duration, Probability, Rate};
use std::str::FromStr;

/// The known columns and their units.
const COLUMNS: [(&str, Column); 14] = [
    ("time", Column::Time),
    ("duration", Column::Duration),
    ("keep", Column::Duration),
    ("rate", Column::Rate),
    ("bandwidth", Column::Rate),
    ("bw", Column::Rate),
    ("throughput", Column::Rate),
    ("delay", Column::Delay),
    ("latency", Column::Delay),
    ("loss", Column::Loss),
    ("queue", Column::Queue),
    ("limit", Column::Queue),
    ("jitter", Column::Jitter),
    ("duplicate", Column::Duplicate),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    Time,
    Duration,
    Rate,
    Delay,
    Loss,
    Queue,
    Jitter,
    Duplicate,
}

pub(crate) fn read(text: &str) -> Result<Steps, Mistakes> {
    let mut lines = text.lines().enumerate().filter_map(|(index, line)| {
        let content = line.split('#').next().unwrap_or_default().trim();
        (!content.is_empty()).then_some((index + 1, content))
    });
    let Some((number, header)) = lines.next() else {
        let instead = "begin with the names of the columns: time_s,rate_mbps";
        return Err(mistake(1, "the trace is empty", instead).into());
    };
    let mut columns = Vec::new();
    each(header.split(','), |name| {
        columns.push(Heading::read(number, name)?);
        Ok(())
    })?;
    check(number, &columns)?;
    let mut rows = Vec::new();
    // One line more than there are steps may give the end of the trace.
    each(lines.take(super::STEPS_MAX + 2), |(number, line)| {
        if rows.len() > super::STEPS_MAX {
            let what = format!("more than {} steps", super::STEPS_MAX);
            return Err(mistake(number, what, "shorten the trace").into());
        }
        rows.push(TableRow::read(number, line, &columns)?);
        Ok(())
    })?;
    let has = |column| columns.iter().any(|heading| heading.column == column);
    let (by_time, by_both) = (has(Column::Time), has(Column::Time) && has(Column::Duration));
    let mut mistakes = Vec::new();
    while mistakes.len() < super::MISTAKES_MAX {
        let wrong = match assemble(&rows, by_time) {
            Ok(steps) if mistakes.is_empty() => return Ok(steps),
            Ok(_) => break,
            Err(wrong) => wrong,
        };
        // The other lines are checked as if this one were right, unless each begins where the one
        // above ends.
        rows.retain(|row| row.number != wrong.line);
        mistakes.push(wrong);
        if by_both || rows.len() < 2 {
            break;
        }
    }
    Err(Mistakes(mistakes))
}

fn check(number: usize, columns: &[Heading]) -> Result<(), Mistake> {
    let has = |column| columns.iter().filter(|heading| heading.column == column).count();
    for (index, heading) in columns.iter().enumerate() {
        if columns[..index].iter().any(|other| other.column == heading.column) {
            let what = format!("a second column of {}", heading.name);
            return Err(mistake(number, what, "keep one of them"));
        }
    }
    if has(Column::Time) + has(Column::Duration) == 0 {
        return Err(mistake(
            number,
            "there is no column time or duration",
            "write for example time_s,rate_mbps",
        ));
    }
    if columns.len() == has(Column::Time) + has(Column::Duration) {
        return Err(mistake(number, "no column has values", "write for example time_s,rate_mbps"));
    }
    Ok(())
}

/// A column and the unit of its numbers.
pub(crate) struct Heading {
    pub(crate) column: Column,
    name: &'static str,
    /// Empty if every value has its own unit.
    unit: String,
}

impl Heading {
    /// `rate`, `rate_mbps`, `rate (Mbit/s)`, `rate [Mbit]`, `Rate Mbit`.
    pub(crate) fn read(number: usize, text: &str) -> Result<Heading, Mistake> {
        let text = text.trim().trim_matches('"');
        let word_end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, unit) = text.split_at(word_end);
        let word = word.to_ascii_lowercase();
        let unit = unit.trim_matches(|c: char| " _([)]-".contains(c));
        let Some(&(name, column)) = COLUMNS.iter().find(|(name, _)| *name == word) else {
            let names = COLUMNS.map(|(name, _)| name);
            let instead = match nearest(&word, names) {
                Some(meant) => format!("write {meant}"),
                None => "write time, duration, rate, delay, loss, queue, jitter or duplicate".to_owned(),
            };
            return Err(mistake(number, format!("the column '{text}' is not known"), instead));
        };
        let unit = canonical(column, unit).ok_or_else(|| {
            let what = format!("'{unit}' is not a unit of {name}");
            mistake(number, what, format!("write for example {}", column.example()))
        })?;
        Ok(Heading { column, name, unit: unit.to_owned() })
    }
}

/// Returns the unit as the parsers of quantities name it. `None` if the column has no such unit.
fn canonical(column: Column, unit: &str) -> Option<&str> {
    if unit.is_empty() {
        return Some("");
    }
    let lower = unit.to_ascii_lowercase();
    Some(match column {
        Column::Rate => match lower.as_str() {
            "bps" | "bit" | "bit/s" => "bit",
            "kbps" | "kbit" | "kbit/s" => "kbit",
            "mbps" | "mbit" | "mbit/s" => "Mbit",
            "gbps" | "gbit" | "gbit/s" => "Gbit",
            _ => return None,
        },
        Column::Time | Column::Duration | Column::Delay | Column::Jitter => match lower.as_str() {
            "s" | "sec" | "seconds" => "s",
            "ms" => "ms",
            "us" | "µs" | "μs" => "us",
            "ns" => "ns",
            _ => return None,
        },
        Column::Loss | Column::Duplicate => match lower.as_str() {
            "%" | "percent" | "pct" => "%",
            _ => return None,
        },
        Column::Queue => match lower.as_str() {
            "p" | "packets" | "pkts" => "p",
            "b" | "bytes" => "B",
            "kib" => "KiB",
            _ => return None,
        },
    })
}

impl Column {
    fn example(self) -> &'static str {
        match self {
            Column::Time => "time_s",
            Column::Duration => "duration_ms",
            Column::Rate => "rate_mbps",
            Column::Delay => "delay_ms",
            Column::Loss => "loss_%",
            Column::Queue => "queue_packets",
            Column::Jitter => "jitter_ms",
            Column::Duplicate => "duplicate_%",
        }
    }
}

/// A line.
struct TableRow {
    number: usize,
    time: Option<Duration>,
    duration: Option<Duration>,
    values: Values,
}

impl TableRow {
    fn read(number: usize, line: &str, columns: &[Heading]) -> Result<TableRow, Mistakes> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() > columns.len() {
            let what = format!("{} values under {} names", cells.len(), columns.len());
            return Err(mistake(number, what, "write one value for each column").into());
        }
        let mut row = TableRow { number, time: None, duration: None, values: Values::default() };
        let cells = columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        each(cells, |(heading, cell)| Ok(row.set(heading, cell)?))?;
        Ok(row)
    }

    fn set(&mut self, heading: &Heading, cell: &str) -> Result<(), Mistake> {
        let line = self.number;
        let values = &mut self.values;
        match heading.column {
            Column::Time => self.time = Some(quantity(line, heading, cell)?),
            Column::Duration => self.duration = Some(quantity(line, heading, cell)?),
            Column::Delay => values.delay = Some(quantity(line, heading, cell)?),
            Column::Jitter => values.jitter = Some((quantity(line, heading, cell)?, Reorder::Never)),
            Column::Loss => values.loss = Some(probability(line, heading, cell)?),
            Column::Duplicate => values.duplicate = Some((probability(line, heading, cell)?, Duration::ZERO)),
            Column::Rate => {
                values.rate = Some(match cell {
                    "unlimited" => TraceRate::Unlimited,
                    _ if is_zero(cell) => TraceRate::Paused,
                    _ => TraceRate::Rate(quantity::<Rate>(line, heading, cell)?),
                });
            }
            Column::Queue => values.queue = Some(limit(line, heading, cell)?),
        }
        Ok(())
    }

    /// Returns whether the line only gives the end of the trace.
    fn is_end(&self) -> bool {
        self.values == Values::default() && self.duration.is_none()
    }
}

/// Parses the number with its unit, exactly.
pub(crate) fn quantity<T: FromStr<Err = fastpath_units::ParseError>>(
    line: usize,
    heading: &Heading,
    cell: &str,
) -> Result<T, Mistake> {
    format!("{cell}{}", heading.unit).parse().map_err(|error: fastpath_units::ParseError| {
        let what = format!("{} '{cell}': {}", heading.name, error.reason);
        mistake(line, what, format!("write for example {}", error.example))
    })
}

fn probability(line: usize, heading: &Heading, cell: &str) -> Result<Probability, Mistake> {
    let percent = cell.ends_with('%') || heading.unit == "%";
    let number = cell.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let found = number.map(|number| if percent { number / 100.0 } else { number }).and_then(Probability::new);
    // A 1 may be meant as a percentage.
    found.filter(|found| percent || *found != Probability::ALWAYS).ok_or_else(|| {
        let what = format!("{} '{cell}' is not a probability", heading.name);
        mistake(line, what, "write for example 1% or 0.01; 100% is always")
    })
}

fn limit(line: usize, heading: &Heading, cell: &str) -> Result<Limit, Mistake> {
    let text = format!("{cell}{}", heading.unit);
    let found = match text.strip_suffix('p') {
        Some(packets) => packets.trim_end().parse().ok().map(Limit::Packets),
        None => text.parse::<Bytes>().ok().map(Limit::Bytes),
    };
    let passes = |limit: &Limit| !matches!(limit, Limit::Packets(0) | Limit::Bytes(Bytes(0)));
    found.filter(passes).ok_or_else(|| {
        let what = format!("{} '{cell}' is not the size of a queue", heading.name);
        mistake(line, what, "write for example 50p or 64KiB, at least one")
    })
}

/// 0 with or without a unit.
fn is_zero(cell: &str) -> bool {
    let end = cell.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(cell.len());
    end > 0 && cell[..end].bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

fn assemble(rows: &[TableRow], by_time: bool) -> Result<Steps, Mistake> {
    let mut steps = Builder::default();
    for (index, row) in rows.iter().enumerate() {
        let line = row.number;
        let next = rows.get(index + 1);
        if by_time {
            let at =
                row.time.ok_or_else(|| mistake(line, "there is no time", "write when the step begins"))?;
            begins(line, at, steps.length, index == 0)?;
        }
        if next.is_none() && index > 0 && by_time && row.is_end() {
            break;
        }
        let until_next = next.and_then(|next| next.time).map(|next| next.saturating_sub(steps.length));
        let before = steps.steps.last().map(|step| steps.length.saturating_sub(step.at));
        let length = match (row.duration, by_time) {
            (Some(duration), _) => duration,
            (None, false) => {
                return Err(mistake(line, "there is no duration", "write how long the step lasts"));
            }
            (None, true) => match until_next {
                Some(length) if next.is_some() => length,
                // The next line is checked later, in its turn.
                _ if next.is_some() => super::STEP_MIN,
                _ => before.ok_or_else(|| {
                    mistake(
                        line,
                        "it is not known how long the only step lasts",
                        "add a line with the time of the end",
                    )
                })?,
            },
        };
        // Two lines with one time, or out of order: reported at the second.
        if let Some(next) = next.filter(|next| length.is_zero() && next.time.is_some()) {
            begins(next.number, next.time.unwrap_or(Duration::ZERO), steps.length, false)?;
            return Err(mistake(
                next.number,
                "the line is at the same time as the one above it",
                "keep one of them",
            ));
        }
        steps.push(line, length, row.values.clone())?;
    }
    steps.finish()
}

/// Checks that a line at `at` follows the previous step, which ended at `end`.
fn begins(line: usize, at: Duration, end: Duration, first: bool) -> Result<(), Mistake> {
    match at.cmp(&end) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => {
            let what = format!("the time {at} is before that of the line above, or within its step");
            Err(mistake(line, what, "sort the lines by time"))
        }
        std::cmp::Ordering::Greater if first => {
            let what = format!("the first step begins at {at}, and there are no values before");
            Err(mistake(line, what, "begin at 0: subtract the first time from all"))
        }
        std::cmp::Ordering::Greater => {
            let what = format!("there is a gap: the step above ends at {end}, and this one begins at {at}");
            Err(mistake(line, what, "let each step begin where the one above ends"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bps: u64) -> Option<TraceRate> {
        Some(TraceRate::Rate(Rate::from_bps(bps).unwrap()))
    }

    #[test]
    fn units_stand_in_the_names_or_in_the_values() {
        for text in [
            "time_s,rate_mbps,delay (ms),loss [%],queue\n0,24,30,0,50p\n0.1,12.5,35,1,\n0.2,,,,\n",
            "time,rate,delay,loss,queue\n0s,24Mbit,30ms,0%,50p\n100ms,12.5Mbit,35ms,0.01,\n200ms\n",
            "# two steps\nduration_ms,bandwidth_kbps,latency_us,loss,limit_packets\n100,24000,30000,0,50\n100,12500,35000,0.01,\n",
        ] {
            let steps = read(text).unwrap();
            assert_eq!(steps.length, Duration::from_ms(200), "{text}");
            let [first, second] = steps.steps() else { panic!("{text}") };
            assert_eq!((first.at, first.values.rate), (Duration::ZERO, rate(24_000_000)));
            assert_eq!(
                (first.values.delay, first.values.queue),
                (Some(Duration::from_ms(30)), Some(Limit::Packets(50)))
            );
            assert_eq!((second.at, second.values.rate), (Duration::from_ms(100), rate(12_500_000)));
            assert_eq!((second.values.loss, second.values.queue), (Probability::new(0.01), None));
        }
    }

    #[test]
    fn the_last_step_is_as_long_as_the_one_before_it() {
        let steps = read("time_us,rate_mbps\n0,1\n3,0\n5,unlimited\n").unwrap();
        assert_eq!(steps.length, Duration::from_us(7));
        let rates: Vec<_> = steps.steps().iter().map(|step| step.values.rate.unwrap()).collect();
        assert_eq!(rates[1..], [TraceRate::Paused, TraceRate::Unlimited]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("", "1:1: the trace is empty"),
            ("\n# nothing\n", "1:1: the trace is empty"),
            ("time_s,rate_mbps\n", "1:1: the trace is empty"),
            ("time_s,rtae_mbps\n0,1\n", "1:1: the column 'rtae_mbps' is not known; write rate"),
            ("time_s,colour\n0,1\n", "1:1: the column 'colour' is not known; write time, duration"),
            ("time_s,rate_ms\n0,1\n", "1:1: 'ms' is not a unit of rate; write for example rate_mbps"),
            ("time_s,rate_mbps,rate_kbps\n0,1,1\n", "1:1: a second column of rate"),
            ("rate_mbps,delay_ms\n1,1\n", "1:1: there is no column time or duration"),
            ("time_s\n1\n", "1:1: no column has values"),
            ("time_s,rate_mbps\n0,1\n1,2,3\n", "3:1: 3 values under 2 names"),
            ("time_s,rate_mbps\n0,1\n1,x\n", "3:1: rate 'x': there is no number"),
            ("time_s,rate\n0,1\n", "2:1: rate '1': the unit is missing"),
            (
                "time_s,rate_mbps\n0,1\n0.0000000000001,2\n",
                "3:1: time '0.0000000000001': it is finer than the resolution",
            ),
            ("time_s,rate_mbps\n1,1\n2,2\n", "2:1: the first step begins at 1s"),
            ("time_s,rate_mbps\n0,1\n2,2\n1,3\n", "4:1: the time 1s is before that of the line above"),
            ("time_s,rate_mbps\n0,1\n1,2\n1,3\n", "4:1: the line is at the same time as the one above it"),
            ("time_s,rate_mbps\n0,1\n", "2:1: it is not known how long the only step lasts"),
            ("time_s,rate_mbps\n0,1\n,2\n", "3:1: there is no time"),
            ("duration_s,rate_mbps\n1,1\n0,2\n", "3:1: the step has no length"),
            ("duration_ns,rate_mbps\n999,1\n", "2:1: the step lasts 999ns, and 1us is the shortest"),
            ("duration_s,rate_mbps\n1,1\n,2\n", "3:1: there is no duration"),
            ("time_s,duration_s,rate_mbps\n0,1,1\n2,1,2\n", "3:1: there is a gap: the step above ends at 1s"),
            ("time_s,duration_s,rate_mbps\n0,2,1\n1,1,2\n", "3:1: the time 1s is before"),
            ("time_s,loss_%\n0,101\n1,0\n", "2:1: loss '101' is not a probability"),
            ("time_s,queue\n0,0p\n1,1p\n", "2:1: queue '0p' is not the size of a queue"),
        ] {
            let errors = read(text).expect_err(text);
            assert!(errors[0].to_string().starts_with(said), "{text:?}: {errors:?}");
            assert_eq!(errors.len(), 1, "{text:?}: {errors:?}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let said = |text: &str| -> Vec<String> {
            read(text)
                .unwrap_err()
                .iter()
                .map(|mistake| format!("{}: {}", mistake.line, mistake.what))
                .collect()
        };
        assert_eq!(
            said("tmie_s,rtae_mbps\n0,1\n"),
            ["1: the column 'tmie_s' is not known", "1: the column 'rtae_mbps' is not known"]
        );
        assert_eq!(
            said("time_s,rate_mbps,loss\n0,1,1\n1,x,2%\n2,3,4,5\n3,-1,200%\n"),
            [
                "2: loss '1' is not a probability",
                "3: rate 'x': there is no number",
                "4: 4 values under 3 names",
                "5: rate '-1': it cannot be negative",
                "5: loss '200%' is not a probability",
            ]
        );
        // Lines out of order do not make those below them wrong.
        assert_eq!(
            said("time_s,rate_mbps\n0,1\n2,2\n1,3\n3,4\n3,5\n4,6\n"),
            [
                "4: the time 1s is before that of the line above, or within its step",
                "6: the line is at the same time as the one above it",
            ]
        );
        let many = format!("time_s,rate_mbps\n{}", "0,x\n".repeat(1000));
        assert_eq!(said(&many).len(), super::super::MISTAKES_MAX);
    }

    proptest::proptest! {
        #[test]
        fn random_text_is_read_or_refused(text in "(time_s|duration_ms|rate_mbps|loss|,|\n|[0-9.]{1,4}|\\PC{0,3}){0,20}") {
            let _ = read(&text);
        }
    }
}
