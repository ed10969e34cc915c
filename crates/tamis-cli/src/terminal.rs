//! Formats tables and numbers for people.

use comfy_table::{Cell, CellAlignment, Table, presets::UTF8_FULL_CONDENSED};

#[cfg(test)]
mod tests;

/// A table whose first `text_columns` columns are text; the others are numbers, right-aligned.
pub(crate) fn table(
    text_columns: usize,
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Table {
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
pub(crate) fn count(number: u64) -> String {
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

/// `1 file`, `1,234 files`.
pub(crate) fn amount(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `12.3 MiB`.
pub(crate) fn bytes(number: u64) -> String {
    let mut size = number as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{number} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

/// `1.23 s`, `4.56 ms`, `7.89 us`.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.2} us", seconds * 1e6)
    }
}

/// `1,234,567/s`.
pub(crate) fn rate(number: u64, seconds: f64) -> String {
    format!("{}/s", count((number as f64 / seconds.max(1e-9)) as u64))
}
