//! Times in UTC: `2026-11-30T09:20:00Z`.

use std::time::{Duration, UNIX_EPOCH};

use humantime::{format_rfc3339_seconds, parse_rfc3339_weak};

/// The last millisecond of the year 9999.
const MILLISECONDS_MAX: u64 = 253_402_300_799_999;

/// Formats milliseconds since 1970, up to the year 9999.
pub(crate) fn format(milliseconds: u64) -> String {
    let since = Duration::from_millis(milliseconds.min(MILLISECONDS_MAX));
    format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

/// Parses `2026-11-30`, `2026-11-30T09:20`, `2026-11-30 09:20:00Z`; a time without seconds or hours means its last millisecond.
/// Returns milliseconds since 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let &[year, month, day] = numbers(date, '-')?.as_slice() else { return None };
    let (hour, minute, second) = match time.map(|time| numbers(time, ':')) {
        None => (23, 59, 59),
        Some(time) => match *time?.as_slice() {
            [hour, minute] => (hour, minute, 59),
            // Leap seconds are refused.
            [hour, minute, second] if second < 60 => (hour, minute, second),
            _ => return None,
        },
    };
    let exact = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.999");
    let since = parse_rfc3339_weak(&exact).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

fn numbers(text: &str, separator: char) -> Option<Vec<u64>> {
    let is_number = |part: &&str| part.bytes().all(|digit| digit.is_ascii_digit());
    text.split(separator).map(|part| Some(part).filter(is_number)?.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
