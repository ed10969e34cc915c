//! Resources of the process and of folders, from `/proc` and the file system.

use std::{fs, io::Read as _, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use crate::clock::pause;

/// Interval between two checks for CPU time and writes of the process.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of consecutive checks without work until the process counts as idle.
const IDLE_CHECK_COUNT: u32 = 4;
/// Maximum number of checks.
const CHECK_COUNT_MAX: u32 = 3000;

/// Memory of this process in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Anonymous memory of the process.
    pub own: u64,
    /// Resident pages of mapped files, which the operating system can reclaim.
    pub mapped: u64,
}

/// Reads the memory of this process.
pub fn memory() -> Memory {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kibibytes| kibibytes.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    Memory { own: bytes("RssAnon:"), mapped: bytes("RssFile:") }
}

/// Bytes that this process wrote to disk.
pub fn written_bytes() -> u64 {
    let accounts = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = accounts.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// CPU time of this process in ticks; ticks are only compared, so their length does not matter.
fn ticks() -> u64 {
    let accounts = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name can contain any character; the fields after it are at fixed positions.
    let fields = accounts.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Waits until this process uses no CPU time and writes nothing: the background work of the store is finished then.
pub fn wait_until_idle() {
    let mut quiet_count = 0;
    let mut before = (ticks(), written_bytes());
    for _ in 0..CHECK_COUNT_MAX {
        pause(CHECK_INTERVAL);
        let now = (ticks(), written_bytes());
        let is_quiet = now.0 <= before.0 + 1 && now.1 == before.1;
        quiet_count = if is_quiet { quiet_count + 1 } else { 0 };
        if quiet_count == IDLE_CHECK_COUNT {
            return;
        }
        before = now;
    }
}

/// Calls `visit` for every file below a folder.
fn for_each_file(folder: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => for_each_file(&path, visit),
            Ok(metadata) => visit(&path, &metadata),
            Err(_) => {}
        }
    }
}

/// Bytes on disk of the files below a folder.
pub fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for_each_file(folder, &mut |_, metadata| bytes += metadata.blocks() * 512);
    bytes
}

/// Reads all files below a folder once, so that they are in the page cache; with direct I/O only in the caches below it (the
/// host of a virtual machine, a disk controller).
pub fn warm(folder: &Path, is_direct: bool) {
    let mut buffer = vec![0; 1 << 20];
    for_each_file(folder, &mut |path, _| {
        let Ok(mut file) = fs::OpenOptions::new().read(true).open(path) else { return };
        while file.read(&mut buffer).is_ok_and(|length| length > 0) {}
        if is_direct {
            // Only advice: if it fails, the pages are reclaimed when memory is short.
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap_or_default();
        }
    });
}
