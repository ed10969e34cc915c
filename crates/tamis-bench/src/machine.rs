//! The program, the machine and the date of a measurement, and the free disk and memory.
//!
//! The values come from `/proc`; values that a system does not report are empty.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use humantime::format_rfc3339_seconds;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// The measuring program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Version.
    pub version: String,
    /// The commit that it was built from, with the suffix `+changes-...` if the sources differed.
    pub commit: String,
    /// The compiler.
    pub compiler: String,
    /// `release` or `debug`; times of a debug build are not meaningful.
    pub profile: String,
    /// Instruction set extensions that the compiler could use.
    pub target_features: String,
}

impl Configuration {
    /// The configuration of this program.
    pub fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("TAMIS_COMMIT").to_owned(),
            compiler: env!("TAMIS_COMPILER").to_owned(),
            profile: env!("TAMIS_PROFILE").to_owned(),
            target_features: env!("TAMIS_TARGET_FEATURES").to_owned(),
        }
    }
}

/// The machine of the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// Number of hardware threads.
    pub core_count: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Version of the kernel.
    pub kernel: String,
}

impl Machine {
    /// This machine.
    pub fn current() -> Self {
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

/// Bytes of available memory.
pub(crate) fn free_memory_bytes() -> Option<u64> {
    kibibytes_of("/proc/meminfo", "MemAvailable:")
}

/// Free bytes of the file system of a folder.
#[cfg(unix)]
pub(crate) fn free_disk_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|path| path.exists())?;
    let status = rustix::fs::statvfs(existing).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

#[cfg(not(unix))]
pub(crate) fn free_disk_bytes(_folder: &Path) -> Option<u64> {
    None
}

/// Resident memory of this process in bytes.
fn resident_bytes() -> Option<u64> {
    kibibytes_of("/proc/self/status", "VmRSS:")
}

/// Peak of the resident memory since [`reset_peak`].
fn peak_resident_bytes() -> Option<u64> {
    kibibytes_of("/proc/self/status", "VmHWM:")
}

/// Resets the peak to the current resident memory.
fn reset_peak() -> Option<()> {
    std::fs::write("/proc/self/clear_refs", "5").ok()
}

/// Growth of the resident memory since a start, if the system reports it (Linux).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    before: Option<u64>,
    /// Whether the peak is valid: the system could reset it.
    has_peak: bool,
}

impl Memory {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self { before: resident_bytes(), has_peak: reset_peak().is_some() }
    }

    /// Resets the peak; the start value stays.
    pub(crate) fn reset_peak(&mut self) {
        self.has_peak = reset_peak().is_some();
    }

    /// Current growth in bytes.
    pub(crate) fn now(&self) -> Option<u64> {
        Some(resident_bytes()?.saturating_sub(self.before?))
    }

    /// Peak growth in bytes.
    pub(crate) fn peak(&self) -> Option<u64> {
        Some(peak_resident_bytes().filter(|_| self.has_peak)?.saturating_sub(self.before?))
    }
}

/// Reads a line `name  1234 kB` of a file in `/proc`; returns bytes.
fn kibibytes_of(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The date and time in UTC, `2026-01-31T12:00:00Z`.
#[expect(clippy::disallowed_methods, reason = "the date of a measurement, which no store sees")]
pub fn date() -> String {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    date_of(since_1970.as_secs())
}

/// The date and time of a number of seconds since 1970.
fn date_of(seconds: u64) -> String {
    format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}
