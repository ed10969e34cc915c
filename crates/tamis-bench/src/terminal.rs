//! Formats tables and numbers for people.

use comfy_table::{Cell, CellAlignment, Table, presets::UTF8_FULL_CONDENSED};

/// A table whose first `text_columns` columns are text; the others are numbers, right-aligned.
pub fn table(text_columns: usize, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let align = |(column, text): (usize, String)| {
        let alignment = if column < text_columns { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(text).set_alignment(alignment)
    };
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(header.iter().map(|&text| text.to_owned()).enumerate().map(align));
    table.add_rows(rows.into_iter().map(|row| row.into_iter().enumerate().map(align).collect::<Vec<_>>()));
    table
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
