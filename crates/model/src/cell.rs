//! One cell of a table: a number as people and spreadsheets write it, a word, or nothing.
//!
//! `14 880 952`, `14,880,952` and `14'880'952` have separators of thousands; `0,5` has a decimal
//! comma. [`Comma::of_table`] decides from the whole table which of the two a comma is. Where the
//! table leaves it open, nothing is guessed.

use crate::column_unit::ColumnUnit;

/// What a comma between digits separates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comma {
    /// Thousands.
    Thousands,
    /// Decimals.
    Decimal,
    /// Thousands or decimals: `1,234` could be either.
    Unknown,
}

/// The content of a cell.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Cell {
    /// A number.
    Number(f64),
    /// A number followed by its unit, like `64 B`.
    Quantity(f64, String),
    /// Empty, `NaN`, `inf`, `-` or the like.
    Missing(String),
    /// A number with a comma that could separate thousands or decimals.
    Ambiguous(String),
    /// Anything else.
    Text(String),
}

impl Comma {
    /// Decides what commas separate in a table of these cells with columns separated by
    /// `delimiter`.
    pub(crate) fn of_table<'a>(cells: impl Iterator<Item = &'a str>, delimiter: u8) -> Comma {
        let mut found = if delimiter == b',' { Comma::Thousands } else { Comma::Unknown };
        for cell in cells {
            let number = cell.split(|c: char| c.is_alphabetic() || c == '%').next().unwrap_or("").trim();
            let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let unsigned = number.trim_start_matches(['-', '+']);
            let parts: Vec<&str> = unsigned.split(',').collect();
            match parts[..] {
                [whole, decimals]
                    if is_digits(decimals) && decimals.len() != 3 && is_digits(&whole.replace('.', "")) =>
                {
                    return Comma::Decimal;
                }
                // A point after the last comma, several commas, or a decimal point anywhere.
                [_, _, _, ..] => found = Comma::Thousands,
                _ if unsigned
                    .split_once('.')
                    .is_some_and(|(a, b)| is_digits(&a.replace(',', "")) && is_digits(b)) =>
                {
                    found = Comma::Thousands;
                }
                _ => {}
            }
        }
        found
    }
}

impl Cell {
    pub(crate) fn read(text: &str, comma: Comma) -> Cell {
        const MISSING: [&str; 13] =
            ["", "-", "?", "nan", "-nan", "na", "n/a", "null", "none", "inf", "+inf", "-inf", "infinity"];
        if MISSING.contains(&text.to_lowercase().as_str()) {
            return Cell::Missing(text.to_owned());
        }
        let is_unit = |c: char| c == '%' || c.is_alphabetic() && c != 'e' && c != 'E';
        let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
        match (plain(number.trim(), comma), ColumnUnit::parse(unit)) {
            (Some(Ok(x)), _) if unit.is_empty() && x.is_finite() => Cell::Number(x),
            (Some(Ok(_)), _) if unit.is_empty() => Cell::Missing(text.to_owned()),
            (Some(Ok(x)), Some(_)) if x.is_finite() => Cell::Quantity(x, unit.to_owned()),
            (Some(Err(Unclear)), _) => Cell::Ambiguous(text.to_owned()),
            _ => Cell::Text(text.to_owned()),
        }
    }

    /// Returns whether the cell is a word: a category (`IMIX`) or, below the header, a unit
    /// (`[ns]`). Text that starts like a number is a mistyped number.
    pub(crate) fn is_word(&self) -> bool {
        matches!(self, Cell::Text(text) if text.trim_start_matches(['[', '(']).starts_with(char::is_alphabetic))
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Cell::Number(x) => x.to_string(),
            Cell::Quantity(x, unit) => format!("{x} {unit}"),
            Cell::Missing(text) | Cell::Ambiguous(text) | Cell::Text(text) => text.clone(),
        }
    }

    pub(crate) fn reads(&self, text: &str) -> bool {
        match self {
            Cell::Number(x) => text.parse() == Ok(*x),
            other => other.text() == text,
        }
    }
}

/// The comma may separate thousands or decimals.
struct Unclear;

/// Parses a number in any style; none if the text is not a number.
fn plain(text: &str, comma: Comma) -> Option<Result<f64, Unclear>> {
    if let Ok(x) = text.parse::<f64>() {
        // With decimal commas, 1.234 is 1234, but 14.5 can only be 14.5.
        let is_grouped = comma == Comma::Decimal && grouped(text, '.').is_some();
        return Some(Ok(if is_grouped { grouped(text, '.')?.parse().ok()? } else { x }));
    }
    let separators = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '’', '_'];
    if let Some(separator) = separators.into_iter().find(|separator| text.contains(*separator)) {
        return plain(&grouped(text, separator)?, comma);
    }
    if !text.contains(',') {
        return None;
    }
    match comma {
        Comma::Thousands => grouped(text, ',')?.parse().ok().map(Ok),
        Comma::Decimal => {
            let (whole, decimals) = text.split_once(',')?;
            let whole = if whole.contains('.') { grouped(whole, '.')? } else { whole.to_owned() };
            format!("{whole}.{decimals}").parse().ok().map(Ok)
        }
        Comma::Unknown => grouped(text, ',').map(|_| Err(Unclear)),
    }
}

/// Removes separators of thousands, if they are at the right positions.
fn grouped(text: &str, separator: char) -> Option<String> {
    let ends = |c: char| c != separator && ['.', ',', 'e', 'E'].contains(&c);
    let (whole, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
    let mut groups = whole.trim_start_matches(['-', '+']).split(separator);
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next()?;
    let mut more = groups.peekable();
    let fits = (1..=3).contains(&first.len()) && digits(first) && more.peek().is_some();
    (fits && more.all(|group| group.len() == 3 && digits(group))).then(|| whole.replace(separator, "") + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str, comma: Comma) -> Option<f64> {
        match Cell::read(text, comma) {
            Cell::Number(x) | Cell::Quantity(x, _) => Some(x),
            _ => None,
        }
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let golden = [
            ("14,880,952", Comma::Thousands, 14_880_952.0),
            ("1,234.5", Comma::Thousands, 1234.5),
            ("14 880 952", Comma::Unknown, 14_880_952.0),
            ("14\u{202f}880\u{202f}952,5", Comma::Decimal, 14_880_952.5),
            ("14'880'952", Comma::Thousands, 14_880_952.0),
            ("0,5", Comma::Decimal, 0.5),
            ("1.234.567,8", Comma::Decimal, 1_234_567.8),
            ("1.234", Comma::Decimal, 1234.0),
            ("14.5", Comma::Decimal, 14.5),
            ("1.234", Comma::Thousands, 1.234),
            ("-1,234", Comma::Thousands, -1234.0),
            ("2e3", Comma::Unknown, 2000.0),
            ("99.5%", Comma::Unknown, 99.5),
            ("99,5 %", Comma::Decimal, 99.5),
            ("1,024 B", Comma::Thousands, 1024.0),
        ];
        for (text, comma, expected) in golden {
            assert_eq!(number(text, comma), Some(expected), "{text}");
        }
        for text in ["1,23", "12,34,567", "1 23", "1,234,5", "1_2", "1..2", "5 apples", "1,2"] {
            assert_eq!(number(text, Comma::Thousands), None, "{text}");
        }
        assert_eq!(Cell::read("1,234", Comma::Unknown), Cell::Ambiguous("1,234".to_owned()));
    }

    #[test]
    fn the_table_decides_what_a_comma_separates() {
        let comma = |cells: &[&str], delimiter| Comma::of_table(cells.iter().copied(), delimiter);
        assert_eq!(comma(&["64", "1,5", "1,234"], b';'), Comma::Decimal);
        assert_eq!(comma(&["64", "1,234", "7.5"], b';'), Comma::Thousands);
        assert_eq!(comma(&["64", "1,234,567", "1,234"], b'\t'), Comma::Thousands);
        assert_eq!(comma(&["64", "1,234"], b';'), Comma::Unknown);
        assert_eq!(comma(&["64", "1,234"], b','), Comma::Thousands);
        assert_eq!(comma(&["64", "1.234,56"], b','), Comma::Decimal);
    }
}
