//! Times in UTC: `2026-11-30T09:20:00Z`.

const DAY_SECONDS: u64 = 86_400;

/// Formats milliseconds since 1970.
pub(crate) fn format(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (year, month, day) = date_of(seconds / DAY_SECONDS);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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
    if !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=days_in(year, month)).contains(&day)
    {
        return None;
    }
    let start = days_before(year, month, day) * DAY_SECONDS * 1000;
    let Some(time) = time else { return Some(start + DAY_SECONDS * 1000 - 1) };
    let (hour, minute, second, last) = match *numbers(time, ':')?.as_slice() {
        [hour, minute] => (hour, minute, 0, 59_999),
        [hour, minute, second] => (hour, minute, second, 999),
        _ => return None,
    };
    let is_valid = hour < 24 && minute < 60 && second < 60;
    is_valid.then_some(start + (hour * 3600 + minute * 60 + second) * 1000 + last)
}

fn numbers(text: &str, separator: char) -> Option<Vec<u64>> {
    let is_number = |part: &&str| part.bytes().all(|digit| digit.is_ascii_digit());
    text.split(separator).map(|part| Some(part).filter(is_number)?.parse().ok()).collect()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_in_year(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

/// Days from 1970 to a date.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let years: u64 = (1970..year).map(days_in_year).sum();
    years + (1..month).map(|month| days_in(year, month)).sum::<u64>() + day - 1
}

/// The date after so many days since 1970.
fn date_of(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= days_in_year(year) && year < 9999 {
        days -= days_in_year(year);
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days >= days_in(year, month) {
        days -= days_in(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests;
