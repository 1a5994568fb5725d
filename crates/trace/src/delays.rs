//! Delays from a file, for jitter: a table of which delays are drawn, or one delay for each packet.
//! CSV with one named column; a table may have two:
//!
//! ```text
//! delay_ms,count              # the unit in the name, or in the values: 1.5ms
//! 1.5,200                     # 200 times; without the column count every line has the same weight
//! 2,50
//! ```

use super::table::{Column, Heading, quantity};
use super::{each, mistake};
use fastpath_text::mistake::{Mistake, Mistakes};
use fastpath_units::Duration;

/// The most delays of a file: they are held in memory.
const DELAYS_MAX: u64 = 1 << 22;

/// Parses the delays of a table, each repeated by its count.
pub fn table(text: &str) -> Result<Vec<Duration>, Mistakes> {
    let mut delays = Vec::new();
    read(text, true, |delay, count| delays.extend(std::iter::repeat_n(delay, count)))?;
    Ok(delays)
}

/// Parses the delays of packets, in their order.
pub fn trace(text: &str) -> Result<Vec<Duration>, Mistakes> {
    let mut delays = Vec::new();
    read(text, false, |delay, _| delays.push(delay))?;
    Ok(delays)
}

/// Parses each line with its count. There is at least one line.
fn read(text: &str, counts: bool, mut give: impl FnMut(Duration, usize)) -> Result<(), Mistakes> {
    let mut lines = text.lines().enumerate().filter_map(|(index, line)| {
        let content = line.split('#').next().unwrap_or_default().trim();
        (!content.is_empty()).then_some((index + 1, content))
    });
    let Some((number, header)) = lines.next() else {
        return Err(mistake(1, "the file is empty", "begin with the name of the column: delay_ms").into());
    };
    let heading = match header.split(',').map(str::trim).collect::<Vec<_>>()[..] {
        [delay] => heading(number, delay)?,
        [delay, "count"] if counts => heading(number, delay)?,
        _ => {
            let instead = if counts { "write delay_ms, or delay_ms,count" } else { "write delay_ms" };
            return Err(mistake(number, format!("the columns '{header}' are not known"), instead).into());
        }
    };
    let columns = header.split(',').count();
    let mut total = 0u64;
    each(lines, |(number, line)| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != columns {
            let what = format!("{} values under {columns} names", cells.len());
            return Err(mistake(number, what, "write one value for each column").into());
        }
        let delay = quantity(number, &heading, cells[0])?;
        let count = match cells.get(1) {
            None => 1,
            Some(text) => text.parse::<u64>().map_err(|_| {
                mistake(
                    number,
                    format!("count '{text}' is not a whole number"),
                    "write a count, for example 3",
                )
            })?,
        };
        total = total.saturating_add(count);
        if total > DELAYS_MAX {
            let what = format!("more than {DELAYS_MAX} delays");
            return Err(mistake(number, what, "shorten the file, or divide the counts").into());
        }
        give(delay, count as usize);
        Ok(())
    })?;
    match total {
        0 => Err(mistake(number, "there are no delays below the names", "give it at least one").into()),
        _ => Ok(()),
    }
}

fn heading(number: usize, text: &str) -> Result<Heading, Mistake> {
    let heading = Heading::read(number, text)?;
    match heading.column {
        Column::Delay | Column::Jitter => Ok(heading),
        _ => Err(mistake(number, format!("'{text}' is not a column of delays"), "write delay_ms")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_with_their_units_and_counts() {
        let us = Duration::from_us;
        assert_eq!(trace("delay_ms\n1.5\n0 # none\n\n2\n"), Ok(vec![us(1500), us(0), us(2000)]));
        assert_eq!(trace("delay\n1.5ms\n7us"), Ok(vec![us(1500), us(7)]));
        assert_eq!(table("jitter [us],count\n3,2\n4,0\n1,1\n"), Ok(vec![us(3), us(3), us(1)]));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("", "1:1: the file is empty"),
            ("delay_ms\n", "1:1: there are no delays"),
            ("delay_ms,count\n1,0\n", "1:1: there are no delays"),
            ("1.5\n", "1:1: the column '1.5' is not known"),
            ("rate_mbps\n1\n", "1:1: 'rate_mbps' is not a column of delays"),
            ("delay_ms,weight\n", "1:1: the columns 'delay_ms,weight' are not known"),
            ("delay_ms\n1\n-2\n", "3:1: delay '-2': "),
            ("delay_ms\n1,2\n", "2:1: 2 values under 1 names"),
            ("delay_ms,count\n1,x\n", "2:1: count 'x' is not a whole number"),
            ("delay_ms,count\n1,5000000\n", "2:1: more than 4194304 delays"),
            ("delay\n1\n", "2:1: delay '1': the unit is missing"),
        ] {
            let error = table(text).unwrap_err()[0].to_string();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
        assert!(trace("delay_ms,count\n1,1\n").unwrap_err()[0].to_string().starts_with("1:1: the columns"));
    }
}
