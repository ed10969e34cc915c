//! What a result was measured with: the program, the machine, the moment; and what the machine has left.
//!
//! Everything here comes from the system's own files; what a system does not tell is left empty.

use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// The program that measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Its version.
    pub version: String,
    /// The commit it was built from; `+changes` where the sources differed from it.
    pub commit: String,
    /// The compiler.
    pub compiler: String,
    /// `release` or `debug`: times of the latter mean nothing.
    pub profile: String,
    /// Instructions that the compiler was allowed to use.
    pub target_features: String,
}

impl Configuration {
    /// Of this program.
    pub fn here() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("TAMIS_COMMIT").to_owned(),
            compiler: env!("TAMIS_COMPILER").to_owned(),
            profile: env!("TAMIS_PROFILE").to_owned(),
            target_features: env!("TAMIS_TARGET_FEATURES").to_owned(),
        }
    }
}

/// The machine that is measured on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many threads run at once.
    pub core_count: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The operating system's kernel.
    pub kernel: String,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let processor =
            processor.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
        Self {
            processor: processor.trim_start_matches([' ', '\t', ':']).to_owned(),
            core_count: std::thread::available_parallelism().map_or(0, |count| count.get() as u64),
            memory_bytes: kibibytes_of("/proc/meminfo", "MemTotal:").unwrap_or(0),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// Bytes of memory that programs can still have.
pub(crate) fn free_memory_bytes() -> Option<u64> {
    kibibytes_of("/proc/meminfo", "MemAvailable:")
}

/// Bytes that can still be written below a folder.
pub(crate) fn free_disk_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|path| path.exists())?;
    let status = rustix::fs::statvfs(existing).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

/// Bytes of memory that this process holds now.
fn resident_bytes() -> Option<u64> {
    kibibytes_of("/proc/self/status", "VmRSS:")
}

/// The most that this process held since [`forget_peak`].
fn peak_resident_bytes() -> Option<u64> {
    kibibytes_of("/proc/self/status", "VmHWM:")
}

/// Sets the peak back to what is held now.
fn forget_peak() -> Option<()> {
    std::fs::write("/proc/self/clear_refs", "5").ok()
}

/// What this process holds beyond what it held at a moment, where the system tells it (Linux).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    before: Option<u64>,
    /// Whether the peak is known: the system forgot the one before.
    has_peak: bool,
}

impl Memory {
    /// From now on.
    pub(crate) fn start() -> Self {
        Self { before: resident_bytes(), has_peak: forget_peak().is_some() }
    }

    /// The peak begins anew; what was held at the start stays what it was.
    pub(crate) fn forget_peak(&mut self) {
        self.has_peak = forget_peak().is_some();
    }

    /// Bytes held now.
    pub(crate) fn now(&self) -> Option<u64> {
        Some(resident_bytes()?.saturating_sub(self.before?))
    }

    /// The most that was held.
    pub(crate) fn peak(&self) -> Option<u64> {
        Some(peak_resident_bytes().filter(|_| self.has_peak)?.saturating_sub(self.before?))
    }
}

/// A line `name  1234 kB` of a file of the system, in bytes.
fn kibibytes_of(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The date and time in UTC, `2026-01-31T12:00:00Z`.
pub(crate) fn date() -> String {
    date_of(clock_gettime(ClockId::Realtime).tv_sec)
}

/// The same of seconds since 1970.
fn date_of(seconds: i64) -> String {
    let (mut days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        (days, year) = (days - length, year + 1);
    }
    let mut month = 1;
    for length in [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        (days, month) = (days - length, month + 1);
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}
