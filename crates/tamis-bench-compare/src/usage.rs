//! What a process and a folder use, from the system's own files.

use std::{fs, io::Read as _, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    clock::pause,
    failure::{Failure, Result},
};

/// Bytes that one tick of the system's processor accounts stand for is not asked: ticks are compared only.
const QUIET_LOOK: Duration = Duration::from_millis(100);
/// Looks in a row without work before a process counts as quiet.
const QUIET_LOOK_COUNT: u32 = 4;
/// Looks after which waiting for quiet ends.
const LOOK_COUNT_MAX: u32 = 3000;

/// Memory of this process in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// What the process has to itself.
    pub own: u64,
    /// Mapped files, as far as they are in memory; the system takes them back when it needs to.
    pub mapped: u64,
}

/// Memory of this process.
pub fn memory() -> Memory {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kibibytes| kibibytes.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    Memory { own: bytes("RssAnon:"), mapped: bytes("RssFile:") }
}

/// Bytes that this process gave the system to write to disks.
pub fn written_bytes() -> u64 {
    let accounts = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = accounts.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Processor time of this process in ticks.
fn ticks() -> u64 {
    let accounts = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may hold anything, blanks too; behind it the fields have fixed places.
    let fields = accounts.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Waits until this process neither works nor writes: what a store does in the background is over then.
pub fn wait_for_quiet() {
    let mut quiet_count = 0;
    let mut before = (ticks(), written_bytes());
    for _ in 0..LOOK_COUNT_MAX {
        pause(QUIET_LOOK);
        let now = (ticks(), written_bytes());
        let is_quiet = now.0 <= before.0 + 1 && now.1 == before.1;
        quiet_count = if is_quiet { quiet_count + 1 } else { 0 };
        if quiet_count == QUIET_LOOK_COUNT {
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

/// Bytes that the files below a folder take on the disk.
pub fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for_each_file(folder, &mut |_, metadata| bytes += metadata.blocks() * 512);
    bytes
}

/// Reads all files below a folder once, so that they are in the page cache of the system; not there but in what lies below it (the
/// cache of a virtual machine's host, of a controller) for a store that goes past it.
pub fn warm(folder: &Path, is_direct: bool) {
    let mut buffer = vec![0; 1 << 20];
    for_each_file(folder, &mut |path, _| {
        let Ok(mut file) = fs::OpenOptions::new().read(true).open(path) else { return };
        while file.read(&mut buffer).is_ok_and(|length| length > 0) {}
        if is_direct {
            // Advice only: where it is refused, the pages go when memory is short.
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap_or_default();
        }
    });
}

/// Bytes of memory that programs can still have.
pub fn free_memory_bytes() -> Option<u64> {
    let accounts = fs::read_to_string("/proc/meminfo").ok()?;
    let line = accounts.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// Bytes that can still be written below a folder, which need not be there yet.
pub fn free_disk_bytes(folder: &Path) -> Result<u64> {
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    let status =
        rustix::fs::statvfs(existing).map_err(|error| Failure(format!("{}: {error}", existing.display())))?;
    Ok(status.f_bavail.saturating_mul(status.f_frsize))
}

/// The value of a line `name: value` of a file of the system.
fn system_value(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    value.trim_start_matches([' ', '\t', ':']).trim_end().to_owned()
}

/// The processor and its cores.
pub fn processor() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores", system_value("/proc/cpuinfo", "model name"))
}

/// What else results tell of the machine.
pub fn machine() -> serde_json::Value {
    serde_json::json!({
        "memory": system_value("/proc/meminfo", "MemTotal"),
        "kernel": system_value("/proc/sys/kernel/osrelease", ""),
    })
}
