//! A table of measurements: named columns, one row per point. It is read from CSV text or built
//! from typed rows. Columns of text may stand next to columns of numbers; only the columns that a
//! model uses are checked.
//!
//! Not a data frame: it is read and passed to [`crate::fit`].

use crate::cell::{Cell, Comma};
use crate::column_unit::{ColumnUnit, cannot_be_negative};
use std::collections::BTreeMap;
use thiserror::Error;

/// Maximum number of rows.
pub const ROWS_MAX: usize = 1_000_000;

/// Mean frame of the simple IMIX, in bytes with FCS: (7·64 + 4·570 + 1518)/12, as the published VPP
/// tables use it.
pub const IMIX_MEAN_BYTES: f64 = (7.0 * 64.0 + 4.0 * 570.0 + 1518.0) / 12.0;

/// Column with the difference in percent between repeated measurements of each point.
pub const SPREAD: &str = "spread_pct";

/// Measurements by column. Each row keeps the line it came from, for error texts.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    names: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, PartialEq, Debug)]
struct Row {
    line: u64,
    cells: Vec<Cell>,
}

/// A cell of a table that is built from typed rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Scalar {
    /// A number.
    Number(f64),
    /// A word. Text like `5us` is read as a number with its unit, as in CSV.
    Word(String),
}

/// What is wrong with a table, where, and what to do about it.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The text is not CSV.
    #[error("line {line}: not CSV: {reason}")]
    NotCsv {
        /// Line of the text, from 1.
        line: u64,
        /// The CSV reader's message.
        reason: String,
    },
    /// A row has more or fewer cells than the header.
    #[error(
        "line {line}: {found} cells where the header names {expected} columns: complete or remove the row"
    )]
    Ragged {
        /// Line of the text, from 1.
        line: u64,
        /// Cells of the row.
        found: u64,
        /// Columns of the header.
        expected: u64,
    },
    /// No header, or no row below it.
    #[error("the table is empty: it needs a header line and at least one row")]
    Empty,
    /// More rows than [`ROWS_MAX`].
    #[error("more than {ROWS_MAX} rows: use fewer")]
    TooLong,
    /// A column without a name.
    #[error("column {position} of the header has no name: name it")]
    Unnamed {
        /// Column, from 1.
        position: usize,
    },
    /// Two columns with one name.
    #[error("two columns are called `{name}`: rename one")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A requested column is missing.
    #[error("no column `{name}` (have: {have}): correct the name or the header")]
    NoColumn {
        /// The requested name.
        name: String,
        /// The names in the table.
        have: String,
    },
    /// A cell that must be a number is not one.
    #[error("line {line}, column `{column}`: `{text}` is not a finite number: {}", remedy(text))]
    NotANumber {
        /// Line of the text, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// A comma that could separate thousands or decimals.
    #[error(
        "line {line}, column `{column}`: the comma in `{text}` may separate thousands or decimals: write a decimal point, or no comma"
    )]
    Ambiguous {
        /// Line of the text, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// A time, size, rate or count below zero.
    #[error(
        "line {line}, column `{column}`: {value} is negative; a time, size, rate or count cannot be: correct or remove the row"
    )]
    Negative {
        /// Line of the text, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The cell.
        value: f64,
    },
    /// Cells of one column, or columns of one kind, have different units.
    #[error("{place}: units are mixed, `{first}` and `{second}`: convert to one unit")]
    MixedUnits {
        /// The line or the columns.
        place: String,
        /// One unit.
        first: String,
        /// The other.
        second: String,
    },
}

impl Table {
    /// Reads CSV text. Columns are separated by comma, semicolon or tab, whichever the header line
    /// has most of, or aligned by spaces; Markdown tables are read too. `#` starts a comment line,
    /// which may be the header. Cells are trimmed. Numbers may have separators of thousands or a
    /// decimal comma.
    ///
    /// # Errors
    /// [`TableError`] unless the text is a rectangular table with distinct column names.
    pub fn from_csv(text: &str) -> Result<Table, TableError> {
        let (text, delimiter) = laid_out(text);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        // A name may span several lines.
        let in_one_line = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut names: Vec<String> =
            reader.headers().map_err(from_csv_error)?.iter().map(in_one_line).collect();
        let mut lines: Vec<(u64, Vec<String>)> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(from_csv_error)?;
            if lines.len() == ROWS_MAX {
                return Err(TableError::TooLong);
            }
            // Spreadsheets write empty rows.
            if record.iter().any(|cell| !cell.is_empty()) || names.len() == 1 {
                let line = record.position().map_or(0, csv::Position::line);
                lines.push((line, record.iter().map(str::to_owned).collect()));
            }
        }
        // And empty columns at the end.
        while names.len() > 1
            && names.last().is_some_and(String::is_empty)
            && lines.iter().all(|(_, cells)| cells[names.len() - 1].is_empty())
        {
            names.pop();
        }
        check_names(&names)?;
        let comma =
            Comma::of_table(lines.iter().flat_map(|(_, cells)| cells.iter().map(String::as_str)), delimiter);
        let rows: Vec<Row> = lines
            .into_iter()
            .map(|(line, cells)| Row {
                line,
                cells: cells[..names.len()].iter().map(|cell| Cell::read(cell, comma)).collect(),
            })
            .collect();
        if rows.is_empty() { Err(TableError::Empty) } else { Ok(Table { names, rows }) }
    }

    /// Builds a table of numbers. Panics if the columns differ in length.
    ///
    /// # Errors
    /// [`TableError`] unless the names are distinct and not empty.
    pub fn from_columns(columns: &[(&str, &[f64])]) -> Result<Table, TableError> {
        let names: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        check_names(&names)?;
        let n = columns[0].1.len();
        assert!(columns.iter().all(|(_, v)| v.len() == n), "columns of different lengths");
        let cell = |x: f64| if x.is_finite() { Cell::Number(x) } else { Cell::Missing(x.to_string()) };
        let rows = (0..n)
            .map(|i| Row { line: i as u64 + 2, cells: columns.iter().map(|(_, v)| cell(v[i])).collect() })
            .collect();
        Ok(Table { names, rows })
    }

    /// Builds a table from typed rows, one cell per name; none is an empty cell. Panics if a row
    /// has another number of cells than there are names.
    ///
    /// # Errors
    /// [`TableError`] unless there is a row, and the names are distinct and not empty.
    pub fn from_rows(names: Vec<String>, rows: Vec<Vec<Option<Scalar>>>) -> Result<Table, TableError> {
        check_names(&names)?;
        if rows.is_empty() {
            return Err(TableError::Empty);
        }
        if rows.len() > ROWS_MAX {
            return Err(TableError::TooLong);
        }
        let cell = |scalar| match scalar {
            Some(Scalar::Number(x)) if f64::is_finite(x) => Cell::Number(x),
            Some(Scalar::Number(x)) => Cell::Missing(x.to_string()),
            Some(Scalar::Word(text)) => Cell::read(text.trim(), Comma::Thousands),
            None => Cell::Missing(String::new()),
        };
        let row = |(i, cells): (usize, Vec<Option<Scalar>>)| {
            assert_eq!(cells.len(), names.len(), "cells of row {i}");
            Row { line: i as u64 + 2, cells: cells.into_iter().map(cell).collect() }
        };
        let rows = rows.into_iter().enumerate().map(row).collect();
        Ok(Table { names, rows })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there is no row, as after [`Table::keep`] of none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the names of the columns in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the line of the text that row `row` was read from.
    pub fn line(&self, row: usize) -> u64 {
        self.rows[row].line
    }

    /// Returns the numbered rows, in the given order.
    pub fn keep(&self, rows: &[usize]) -> Table {
        Table { names: self.names.clone(), rows: rows.iter().map(|&i| self.rows[i].clone()).collect() }
    }

    /// Returns the numbers of the rows whose cell in `column` equals `text`.
    ///
    /// # Errors
    /// [`TableError::NoColumn`].
    pub fn rows_where(&self, column: &str, text: &str) -> Result<Vec<usize>, TableError> {
        let c = self.position(column)?;
        Ok((0..self.rows.len()).filter(|&i| self.rows[i].cells[c].reads(text)).collect())
    }

    /// Returns the table without the rows in which a used column holds a word instead of a number,
    /// and a note for each column with such rows. `IMIX` is read as [`IMIX_MEAN_BYTES`] instead.
    ///
    /// # Errors
    /// [`TableError::NoColumn`]; [`TableError::NotANumber`] when a column holds nothing but words.
    pub fn without_words(&self, used: &[&str]) -> Result<(Table, Vec<String>), TableError> {
        let positions = used.iter().map(|name| self.position(name)).collect::<Result<Vec<_>, _>>()?;
        let mut table = self.clone();
        let mut notes = Vec::new();
        for c in positions {
            let mut mixes = 0;
            for row in &mut table.rows {
                if matches!(&row.cells[c], Cell::Text(t) if t.eq_ignore_ascii_case("imix")) {
                    row.cells[c] = Cell::Number(IMIX_MEAN_BYTES);
                    mixes += 1;
                }
            }
            if mixes > 0 {
                let name = &self.names[c];
                notes.push(format!(
                    "{mixes} rows with `{name}` = IMIX read as {IMIX_MEAN_BYTES:.2} B, the mean of 7 × 64, 4 × 570 and 1 × 1518 B"
                ));
            }
            let words: Vec<usize> = (0..table.len()).filter(|&i| table.rows[i].cells[c].is_word()).collect();
            if let Some(&first) = words.first() {
                let text = table.rows[first].cells[c].text();
                if words.len() == table.len() {
                    return Err(self.not_a_number(table.rows[first].line, c, text));
                }
                notes.push(format!(
                    "{} rows left out: `{}` is not a number there (first: `{text}`, line {})",
                    words.len(),
                    self.names[c],
                    table.rows[first].line
                ));
                table.rows.retain(|row| !row.cells[c].is_word());
            }
        }
        Ok((table, notes))
    }

    /// Returns column `name` as numbers.
    ///
    /// # Errors
    /// [`TableError`] for a missing column, a cell that is not a finite number, a negative time,
    /// size, rate or count, and cells in different units.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, TableError> {
        let c = self.position(name)?;
        self.check_one_unit(c)?;
        let mut numbers = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let value = match &row.cells[c] {
                Cell::Number(x) | Cell::Quantity(x, _) => *x,
                Cell::Ambiguous(text) => {
                    let column = name.to_owned();
                    return Err(TableError::Ambiguous { line: row.line, column, text: text.clone() });
                }
                other => return Err(self.not_a_number(row.line, c, other.text())),
            };
            if value < 0.0 && cannot_be_negative(name) {
                return Err(TableError::Negative { line: row.line, column: name.to_owned(), value });
            }
            numbers.push(value);
        }
        Ok(numbers)
    }

    /// Refuses used columns of one kind (two times, two sizes) in different units.
    ///
    /// # Errors
    /// [`TableError::MixedUnits`] naming both columns.
    pub fn check_units(&self, used: &[&str]) -> Result<(), TableError> {
        for (i, a) in used.iter().enumerate() {
            for b in &used[i + 1..] {
                let (Some(ua), Some(ub)) = (ColumnUnit::of_column(a), ColumnUnit::of_column(b)) else {
                    continue;
                };
                if ua.dimension == ub.dimension && ua.scale != ub.scale {
                    return Err(TableError::MixedUnits {
                        place: "columns of one kind".to_owned(),
                        first: (*a).to_owned(),
                        second: (*b).to_owned(),
                    });
                }
            }
        }
        // A column called `unit` or `NAME_unit` gives the unit of each row.
        for (c, name) in self.names.iter().enumerate() {
            let lower = name.to_lowercase();
            let companion = ["unit", "units"].contains(&lower.as_str())
                || used.iter().any(|u| lower == format!("{}_unit", u.to_lowercase()));
            let Some(first) = self.rows.first().filter(|_| companion) else { continue };
            if let Some(row) = self.rows.iter().find(|row| row.cells[c] != first.cells[c]) {
                return Err(TableError::MixedUnits {
                    place: format!("line {}, column `{name}`", row.line),
                    first: first.cells[c].text(),
                    second: row.cells[c].text(),
                });
            }
        }
        Ok(())
    }

    /// Returns the unit of column `name`: that of its name, or that of the first cell with a unit.
    ///
    /// # Errors
    /// [`TableError::NoColumn`].
    pub(crate) fn unit(&self, name: &str) -> Result<Option<ColumnUnit>, TableError> {
        let c = self.position(name)?;
        let of_cell = |row: &Row| match &row.cells[c] {
            Cell::Quantity(_, unit) => ColumnUnit::parse(unit),
            _ => None,
        };
        Ok(ColumnUnit::of_column(name).or_else(|| self.rows.iter().find_map(of_cell)))
    }

    /// Returns the cells of column `name` as text.
    ///
    /// # Errors
    /// [`TableError::NoColumn`].
    pub fn texts(&self, name: &str) -> Result<Vec<String>, TableError> {
        let c = self.position(name)?;
        Ok(self.rows.iter().map(|row| row.cells[c].text()).collect())
    }

    /// Returns the cells of column `name` that are numbers (or `IMIX`), for columns that are not
    /// fitted.
    pub(crate) fn numbers_if_any(&self, name: &str) -> Result<Vec<Option<f64>>, TableError> {
        let c = self.position(name)?;
        let number = |row: &Row| match &row.cells[c] {
            Cell::Number(x) | Cell::Quantity(x, _) => Some(*x),
            Cell::Text(t) if t.eq_ignore_ascii_case("imix") => Some(IMIX_MEAN_BYTES),
            _ => None,
        };
        Ok(self.rows.iter().map(number).collect())
    }

    /// Returns a group number per row. Rows share a number when they agree in every column that
    /// `counts` accepts.
    pub(crate) fn groups(&self, counts: &dyn Fn(&str) -> bool) -> Vec<usize> {
        let mut seen: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        let used: Vec<usize> = (0..self.names.len()).filter(|&c| counts(&self.names[c])).collect();
        let key = |row: &Row| used.iter().map(|&c| row.cells[c].text()).collect::<Vec<_>>();
        self.rows
            .iter()
            .map(|row| {
                let next = seen.len();
                *seen.entry(key(row)).or_insert(next)
            })
            .collect()
    }

    fn position(&self, name: &str) -> Result<usize, TableError> {
        let found = self.names.iter().position(|n| n == name);
        found.ok_or_else(|| TableError::NoColumn { name: name.to_owned(), have: self.names.join(", ") })
    }

    /// Refuses cells with different units. Cells like `5us` must all carry one unit, the header's
    /// if it has one. Numbers without a unit have the header's.
    fn check_one_unit(&self, c: usize) -> Result<(), TableError> {
        let header = ColumnUnit::of_column(&self.names[c]);
        let described = |cell: &Cell| match cell {
            Cell::Quantity(_, unit) => unit.clone(),
            _ => "no unit".to_owned(),
        };
        let unit_of = |cell: &Cell| match cell {
            Cell::Quantity(_, unit) => ColumnUnit::parse(unit),
            _ => header,
        };
        if let (Some(header), Some(row)) =
            (header, self.rows.iter().find(|row| matches!(row.cells[c], Cell::Quantity(..))))
            && unit_of(&row.cells[c]) != Some(header)
        {
            return Err(TableError::MixedUnits {
                place: format!("line {}", row.line),
                first: self.names[c].clone(),
                second: described(&row.cells[c]),
            });
        }
        let numeric: Vec<&Row> =
            self.rows.iter().filter(|r| matches!(r.cells[c], Cell::Number(_) | Cell::Quantity(..))).collect();
        let Some(first) = numeric.first() else { return Ok(()) };
        match numeric.iter().find(|row| unit_of(&row.cells[c]) != unit_of(&first.cells[c])) {
            None => Ok(()),
            Some(row) => Err(TableError::MixedUnits {
                place: format!("lines {} and {}, column `{}`", first.line, row.line, self.names[c]),
                first: described(&first.cells[c]),
                second: described(&row.cells[c]),
            }),
        }
    }

    fn not_a_number(&self, line: u64, c: usize, text: String) -> TableError {
        TableError::NotANumber { line, column: self.names[c].clone(), text }
    }
}

/// Returns what to do about a cell that should be a number.
fn remedy(text: &str) -> &'static str {
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok_and(f64::is_finite);
    if text.contains(['±', '∓']) {
        "write the deviation as a column of its own"
    } else if text.strip_suffix(['k', 'K', 'M', 'G', 'T']).is_some_and(is_number) {
        "write it out, or name the unit in the header, such as rate (Mpps)"
    } else {
        "give a value or remove the row"
    }
}

/// Converts a Markdown table to columns separated by tabs, line by line, so that line numbers stay.
/// Returns none for a text that is not a Markdown table.
fn from_markdown(text: &str) -> Option<String> {
    let inside = |line: &str| {
        Some(line.trim().strip_prefix('|')?.strip_suffix('|')?.replace('\t', " ").replace('|', "\t"))
    };
    let mut rows = text.lines().filter(|line| !line.trim().is_empty());
    let (header, rule) = (inside(rows.next()?)?, inside(rows.next()?)?);
    let is_rule = !rule.is_empty() && rule.chars().all(|c| "-: \t".contains(c));
    if !is_rule || header.is_empty() {
        return None;
    }
    // The rule below the header becomes an empty row, which is left out later.
    let row = |line: &str| {
        let row = inside(line).unwrap_or_else(|| line.to_owned());
        if row.chars().all(|c| "-: \t".contains(c)) { row.replace(['-', ':'], "") } else { row }
    };
    Some(text.lines().map(row).collect::<Vec<_>>().join("\n"))
}

/// Returns the text with `\n` between lines, a header that is not a comment, and one delimiter
/// between columns; and that delimiter.
fn laid_out(text: &str) -> (String, u8) {
    // With CR LF the CSV reader would count lines wrongly.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    if let Some(table) = from_markdown(&text) {
        return (table, b'\t');
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let is_row = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let first = lines.iter().position(|line| is_row(line)).unwrap_or(0);
    // gnuplot and numpy write the header as a comment.
    let is_numbers = |line: &str| cells(line).iter().all(|cell| cell.parse::<f64>().is_ok());
    if let Some(row) = lines.get(first).copied().filter(|row| is_numbers(row)) {
        let title = |line: &str| line.trim_start_matches('#').trim().to_owned();
        let above = lines[..first].iter().rposition(|line| cells(&title(line)).len() == cells(row).len());
        if let Some(header) = above.filter(|&above| !is_numbers(&title(lines[above]))) {
            lines[header] = lines[header].trim_start_matches('#').trim_start();
        }
    }
    let mut rows = lines.iter().copied().filter(|line| is_row(line));
    let (header, next) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
    let delimiter = delimiter(header);
    let spaced = |line: &str| line.split_whitespace().count();
    if delimiter.is_none() && !header.contains('"') && spaced(header) > 1 && spaced(header) == spaced(next) {
        let line = |line: &&str| {
            if is_row(line) {
                line.split_whitespace().collect::<Vec<_>>().join("\t")
            } else {
                (*line).to_owned()
            }
        };
        return (lines.iter().map(line).collect::<Vec<_>>().join("\n"), b'\t');
    }
    (lines.join("\n"), delimiter.unwrap_or(b','))
}

/// Splits a line into cells, without regard to quotes.
fn cells(line: &str) -> Vec<&str> {
    match delimiter(line) {
        Some(delimiter) => line.split(char::from(delimiter)).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

/// Returns the most frequent delimiter of a line, if it has one.
fn delimiter(line: &str) -> Option<u8> {
    let outside: String = line.split('"').step_by(2).collect();
    let count = |delimiter: &u8| outside.bytes().filter(|byte| byte == delimiter).count();
    [b'\t', b';', b','].into_iter().max_by_key(count).filter(|most| count(most) > 0)
}

fn check_names(names: &[String]) -> Result<(), TableError> {
    if names.is_empty() || names == [""] {
        return Err(TableError::Empty);
    }
    for (i, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(TableError::Unnamed { position: i + 1 });
        }
        if names[..i].contains(name) {
            return Err(TableError::Duplicate { name: name.clone() });
        }
    }
    Ok(())
}

fn from_csv_error(error: csv::Error) -> TableError {
    let line = error.position().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            TableError::Ragged { line, found: *len, expected: *expected_len }
        }
        _ => TableError::NotCsv { line, reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(text: &str, column: &str) -> Result<Vec<f64>, String> {
        Table::from_csv(text).and_then(|t| t.numbers(column)).map_err(|e| e.to_string())
    }

    #[test]
    fn numbers_come_out_by_column() {
        assert_eq!(numbers("p,h\n64, 0\n# a comment\n128,2e1\n", "h"), Ok(vec![0.0, 20.0]));
        assert_eq!(numbers("p;h\n64;0\n", "p"), Ok(vec![64.0]));
        assert_eq!(numbers("t\n5us\n6 us\n", "t"), Ok(vec![5.0, 6.0]));
    }

    #[test]
    fn numbers_with_scale_letters_or_deviations_are_refused_with_a_remedy() {
        let said = |cell: &str| numbers(&format!("rate\n{cell}\n"), "rate").unwrap_err();
        assert!(
            said("15.950M").ends_with("name the unit in the header, such as rate (Mpps)"),
            "{}",
            said("15.950M")
        );
        assert!(said("15.95 ± 0.01").ends_with("a column of its own"), "{}", said("15.95 ± 0.01"));
        assert!(said("5 apples").ends_with("give a value or remove the row"));
        // Lines are counted as they stand in the text.
        let markdown = "| p | T_ns |\n|---|---|\n| 64 | 5 |\n| 64 | x1 |\n";
        assert!(numbers(markdown, "T_ns").unwrap_err().starts_with("line 4, column `T_ns`: `x1`"));
    }

    #[test]
    fn tables_of_spreadsheets_and_papers_are_read() {
        let golden = [
            // A byte order mark, CR LF, semicolons, decimal commas, rows and a column of nothing.
            ("\u{feff}p;T_ns;\r\n64;45,5;\r\n;;\r\n1518;1.191,25;\r\n", "T_ns", vec![45.5, 1191.25]),
            // A comma in a name among semicolons.
            (
                "size (B);\"rate, both ways (pps)\"\n64;14 880 952\n",
                "rate, both ways (pps)",
                vec![14_880_952.0],
            ),
            ("p,rate_pps\n64,\"14,880,952\"\n128,\"8,445\"\n", "rate_pps", vec![14_880_952.0, 8445.0]),
            ("p\tload\n64\t99.5%\n128\t 98 %\n", "load", vec![99.5, 98.0]),
            // As reports have it: Markdown, and names broken over lines.
            (
                "| size | T (ns) |\n|-----:|:------|\n| 64 | 45.5 |\n| 1518 | 190 |\n",
                "T (ns)",
                vec![45.5, 190.0],
            ),
            ("\"Test\",\"NDR\n[Mpps]\"\n\"1c-ip4\",14.2\n", "NDR [Mpps]", vec![14.2]),
        ];
        for (text, column, expected) in golden {
            assert_eq!(numbers(text, column), Ok(expected), "{text:?}");
        }
        let table = Table::from_csv("p,h,,\n1,2,,\n").expect("two columns");
        assert_eq!(table.names(), ["p", "h"]);
    }

    #[test]
    fn typed_rows_make_the_table_that_their_text_makes() {
        let word = |text: &str| Some(Scalar::Word(text.to_owned()));
        let rows = vec![
            vec![Some(Scalar::Number(64.0)), word("a, b"), word("5us")],
            vec![Some(Scalar::Number(f64::NAN)), None, word("6 us")],
        ];
        let names = ["p", "program", "t"].map(str::to_owned).to_vec();
        let table = Table::from_rows(names.clone(), rows).expect("two rows");
        let text = Table::from_csv("p,program,t\n64,\"a, b\",5us\nNaN,,6 us\n").expect("a table");
        assert_eq!(table, text);
        assert_eq!(Table::from_rows(names, vec![]), Err(TableError::Empty));
    }

    #[test]
    fn lines_are_counted_alike_with_either_line_end() {
        let unix = numbers("p,h\n1,2\n3,nan\n", "h").unwrap_err();
        assert!(unix.starts_with("line 3,"), "{unix}");
        assert_eq!(numbers("p,h\r\n1,2\r\n3,nan\r\n", "h").unwrap_err(), unix);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-c1-9,;.\"#\\-\n\r \tµ]{0,60}") {
            if let Ok(table) = Table::from_csv(&text) {
                let names: Vec<String> = table.names().to_vec();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let _ = table.without_words(&names);
                for name in names {
                    let _ = table.numbers(name);
                }
            }
        }
    }

    #[test]
    fn wrong_tables_get_one_clear_error() {
        let golden = [
            ("p,h\n1,2\n3\n", "line 3: 1 cells where the header names 2 columns: complete or remove the row"),
            ("", "the table is empty: it needs a header line and at least one row"),
            ("p,h\n", "the table is empty: it needs a header line and at least one row"),
            ("p,p\n1,2\n", "two columns are called `p`: rename one"),
            ("p,\n1,2\n", "column 2 of the header has no name: name it"),
            ("q\n1\n", "no column `p` (have: q): correct the name or the header"),
            (
                "p\n1\nNaN\n",
                "line 3, column `p`: `NaN` is not a finite number: give a value or remove the row",
            ),
            ("p\ninf\n", "line 2, column `p`: `inf` is not a finite number: give a value or remove the row"),
            ("x,p\n1,\n", "line 2, column `p`: `` is not a finite number: give a value or remove the row"),
            ("p\n1o4\n", "line 2, column `p`: `1o4` is not a finite number: give a value or remove the row"),
            (
                "p\n5us\n7ns\n",
                "lines 2 and 3, column `p`: units are mixed, `us` and `ns`: convert to one unit",
            ),
            (
                "q;p\n1;1,234\n",
                "line 2, column `p`: the comma in `1,234` may separate thousands or decimals: write a decimal point, or no comma",
            ),
            (
                "p\n5%\n7\n",
                "lines 2 and 3, column `p`: units are mixed, `%` and `no unit`: convert to one unit",
            ),
            (
                "p\n5us\n7\n",
                "lines 2 and 3, column `p`: units are mixed, `us` and `no unit`: convert to one unit",
            ),
        ];
        for (text, error) in golden {
            assert_eq!(numbers(text, "p").unwrap_err(), error, "{text:?}");
        }
    }

    #[test]
    fn a_negative_time_is_refused_and_a_negative_offset_is_not() {
        let error = numbers("T_ns\n4\n-5\n", "T_ns").unwrap_err();
        assert!(error.starts_with("line 3, column `T_ns`: -5 is negative"), "{error}");
        assert_eq!(numbers("offset\n-5\n", "offset"), Ok(vec![-5.0]));
    }

    #[test]
    fn a_cell_whose_unit_contradicts_the_header_is_refused() {
        let error = numbers("T_ns\n5us\n", "T_ns").unwrap_err();
        assert_eq!(error, "line 2: units are mixed, `T_ns` and `us`: convert to one unit");
    }

    #[test]
    fn columns_of_one_kind_must_share_a_unit() {
        let table = Table::from_csv("a_ns,b_us,p\n1,2,3\n").expect("rectangular");
        assert!(table.check_units(&["a_ns", "b_us"]).is_err());
        assert!(table.check_units(&["a_ns", "p"]).is_ok());
        let rows = Table::from_csv("t,unit\n1,ns\n2,us\n").expect("rectangular");
        assert!(rows.check_units(&["t"]).unwrap_err().to_string().contains("`ns` and `us`"));
    }

    #[test]
    fn rows_with_words_are_left_out_and_imix_is_its_mean_frame() {
        let table = Table::from_csv("size,t\n64,1\nIMIX,2\njumbo,3\n").expect("rectangular");
        let (kept, notes) = table.without_words(&["size", "t"]).expect("numbers remain");
        assert_eq!(kept.numbers("size").expect("numbers"), vec![64.0, IMIX_MEAN_BYTES]);
        assert_eq!(notes.len(), 2);
        assert!(notes[1].contains("first: `jumbo`, line 4"), "{notes:?}");
        assert!(table.rows_where("size", "64").expect("a column") == [0]);
        let words = Table::from_csv("size\nbig\nsmall\n").expect("rectangular");
        assert!(words.without_words(&["size"]).is_err());
    }
}
