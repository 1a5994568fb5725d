//! Numbers and tables as text, for terminals.

use comfy_table::{CellAlignment, Table, TableComponent};
use fastpath_model::{Bounded, Estimate};

/// Significant digits of a computed number.
const DIGITS: i32 = 5;

/// Returns an empty table with these column titles. Columns from the second on are aligned right.
pub fn table<'t>(titles: impl IntoIterator<Item = &'t str>) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY).set_header(titles);
    // Keep only the line under the titles.
    for between_rows in [
        TableComponent::HorizontalLines,
        TableComponent::MiddleIntersections,
        TableComponent::LeftBorderIntersections,
        TableComponent::RightBorderIntersections,
    ] {
        table.remove_style(between_rows);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Aligns columns of text left.
pub fn align_left(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
}

/// Formats a number to five digits; very small and very large numbers with an exponent.
pub fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    if !x.is_finite() {
        return "–".to_owned();
    }
    let magnitude = x.abs().log10().floor() as i32;
    if !(-4..9).contains(&magnitude) {
        return format!("{x:.*e}", DIGITS as usize - 1);
    }
    let decimals = (DIGITS - 1 - magnitude).max(0) as usize;
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a value with its interval, if it has one.
pub fn estimate(e: Estimate) -> String {
    if e.low == e.high {
        return number(e.value);
    }
    format!("{} [{}, {}]", number(e.value), number(e.low), number(e.high))
}

/// Formats a value whose bounds may be unknown.
pub fn bounded(b: Bounded) -> String {
    let end = |end: Option<f64>| end.map_or("–".to_owned(), number);
    match (b.low, b.high) {
        (None, None) => format!("{} (no error bar)", number(b.value)),
        (low, high) if low == high => number(b.value),
        (low, high) => format!("{} [{}, {}]", number(b.value), end(low), end(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_five_digits() {
        let golden = [
            (0.0, "0"),
            (38.6, "38.6"),
            (0.101, "0.101"),
            (14_880_952.38, "14880952"),
            (1.0 / 3.0, "0.33333"),
            (2.126e-6, "2.1260e-6"),
            (-4.0701, "-4.0701"),
            (2e10, "2.0000e10"),
        ];
        for (x, text) in golden {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn an_interval_without_width_is_not_shown() {
        assert_eq!(estimate(Estimate::exact(2.0)), "2");
        assert_eq!(estimate(Estimate::around(2.0, 0.5)), "2 [1.5, 2.5]");
        assert_eq!(bounded(Estimate::exact(2.0).into()), "2");
        assert_eq!(bounded(Bounded { value: 2.0, low: Some(1.0), high: None }), "2 [1, –]");
        assert_eq!(bounded(Bounded::unknown(2.0)), "2 (no error bar)");
    }
}
