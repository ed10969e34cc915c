//! Counters of stores and of the process: blocks, bytes, time.

/// Counters of a store since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks that reads loaded.
    pub blocks_read: Option<u64>,
    /// Bytes of these blocks.
    pub bytes_read: Option<u64>,
    /// Blocks that reads found in the cache.
    pub cache_hits: Option<u64>,
    /// Blocks of the tables that flushes and compactions wrote.
    pub blocks_written: Option<u64>,
    /// Bytes written to log, tables and compactions.
    pub bytes_written: Option<u64>,
    /// Bytes that compactions read.
    pub compaction_bytes_read: Option<u64>,
    /// Nanoseconds of write stalls.
    pub stall_ns: Option<u64>,
}

impl Counters {
    /// The difference to `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let minus = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before.unwrap_or(0)));
        Self {
            blocks_read: minus(self.blocks_read, before.blocks_read),
            bytes_read: minus(self.bytes_read, before.bytes_read),
            cache_hits: minus(self.cache_hits, before.cache_hits),
            blocks_written: minus(self.blocks_written, before.blocks_written),
            bytes_written: minus(self.bytes_written, before.bytes_written),
            compaction_bytes_read: minus(self.compaction_bytes_read, before.compaction_bytes_read),
            stall_ns: minus(self.stall_ns, before.stall_ns),
        }
    }
}

/// Counters of the operating system for this process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    /// CPU time of all threads in seconds, if the system reports it (not on Windows).
    pub cpu_seconds: Option<f64>,
    /// Bytes read from disk, if the system reports them.
    pub disk_bytes_read: Option<u64>,
    /// Bytes written to disk, if the system reports them.
    pub disk_bytes_written: Option<u64>,
}

impl Process {
    /// Reads the current counters.
    pub fn now() -> Self {
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let of = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Self {
            cpu_seconds: cpu_seconds(),
            disk_bytes_read: of("read_bytes:"),
            disk_bytes_written: of("write_bytes:"),
        }
    }

    /// The difference to `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let minus = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Self {
            cpu_seconds: self.cpu_seconds.zip(before.cpu_seconds).map(|(now, before)| now - before),
            disk_bytes_read: minus(self.disk_bytes_read, before.disk_bytes_read),
            disk_bytes_written: minus(self.disk_bytes_written, before.disk_bytes_written),
        }
    }
}

#[cfg(unix)]
fn cpu_seconds() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

#[cfg(not(unix))]
fn cpu_seconds() -> Option<f64> {
    None
}
