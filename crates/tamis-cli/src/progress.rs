//! Progress bars on standard error: position, rate, remaining time. Nothing is drawn if standard error is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Interval between two redraws without progress.
const TICK: Duration = Duration::from_millis(200);

/// A bar for `length` bytes of input, or a spinner if the length is unknown.
pub(crate) fn bytes(length: Option<u64>) -> ProgressBar {
    match length {
        Some(length) => bar(
            ProgressBar::new(length),
            "{wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left, {msg}",
        ),
        None => bar(ProgressBar::new_spinner(), "{spinner} {binary_bytes}, {binary_bytes_per_sec}, {msg}"),
    }
}

/// A bar for `count` items, or a spinner if the count is unknown.
pub(crate) fn items(count: Option<u64>) -> ProgressBar {
    match count {
        Some(count) => {
            bar(ProgressBar::new(count), "{msg} {wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} left")
        }
        None => bar(ProgressBar::new_spinner(), "{msg} {spinner} {human_pos}, {per_sec}"),
    }
}

fn bar(bar: ProgressBar, template: &str) -> ProgressBar {
    // Falls back to the default style of the library if the template is invalid.
    let bar = match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    };
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
    }
    bar
}
