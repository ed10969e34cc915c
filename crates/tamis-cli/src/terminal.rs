//! Formats tables and numbers for people.

pub(crate) use tamis_bench::terminal::{count, table};

#[cfg(test)]
mod tests;

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

/// The name of a keyspace, cut to a part of a line.
pub(crate) fn name(name: &str) -> String {
    const LENGTH_MAX: usize = 24;
    let shown: String = name.chars().take(LENGTH_MAX).flat_map(char::escape_debug).take(LENGTH_MAX).collect();
    if name.chars().count() > LENGTH_MAX { format!("{shown}...") } else { shown }
}
