//! Resources of the process and of folders, from `/proc` and the file system.

use std::{fs, io::Read as _, path::Path, time::Duration};

use tamis_bench::{BenchError, Row, driver::Process};

use crate::store::Result;

/// Interval between two checks for CPU time and writes of the process.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of consecutive checks without work until the process counts as idle.
const IDLE_CHECK_COUNT: u32 = 4;
/// CPU time between two checks that does not count as work: that of the check.
const IDLE_SECONDS: f64 = 0.01;
/// Maximum number of checks.
const CHECK_COUNT_MAX: u32 = 3000;

/// Adds the memory of this process: its own anonymous memory, and the resident pages of mapped files, which the operating system can
/// reclaim.
pub fn with_memory(row: Row) -> Row {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    row.with("memory_own", bytes("RssAnon:")).with("memory_mapped", bytes("RssFile:"))
}

/// Waits until this process uses no CPU time and writes nothing: the background work of the store is finished then.
#[expect(clippy::disallowed_methods, reason = "the background work of other stores sends no notification")]
pub fn wait_until_idle() {
    let mut quiet_count = 0;
    let mut before = Process::now();
    for _ in 0..CHECK_COUNT_MAX {
        std::thread::sleep(CHECK_INTERVAL);
        let since = Process::now().since(before);
        let is_quiet = since.cpu_seconds.is_none_or(|seconds| seconds <= IDLE_SECONDS)
            && since.disk_bytes_written.is_none_or(|bytes| bytes == 0);
        quiet_count = if is_quiet { quiet_count + 1 } else { 0 };
        if quiet_count == IDLE_CHECK_COUNT {
            return;
        }
        before = Process::now();
    }
}

/// Deletes a folder if it exists.
pub fn remove(folder: &Path) -> Result<()> {
    if folder.exists() { fs::remove_dir_all(folder).map_err(BenchError::io(folder)) } else { Ok(()) }
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
