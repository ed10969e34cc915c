//! The lock of a folder: `flock` on a descriptor of the folder itself.
//!
//! The lock has no name that could be removed, and all names of the folder lead to it. A shared lock needs only
//! the permission to read the folder. Linux keeps the locks of folders of some network file systems on this machine:
//! they are refused, because another machine would not see the lock. On Linux, `/proc/locks` contains the processes that have the folder locked.

#[cfg(target_os = "linux")]
use std::io::Read as _;
use std::{
    fs,
    io::{self, ErrorKind},
};

use crate::{Lock, LockMode, fork};

/// The lock of an open folder. It is released explicitly: a forked child may also have the folder open and would
/// keep the lock until it exits.
#[derive(Debug)]
pub(super) struct OsLock {
    directory: fs::File,
    process: fork::Process,
}

impl OsLock {
    /// See [`crate::Vfs::lock`].
    pub(super) fn take(directory: fs::File, mode: LockMode) -> io::Result<Self> {
        if is_shared_by_machines(&directory) {
            let text = "a network file system locks folders for one machine only";
            return Err(io::Error::new(ErrorKind::Unsupported, text));
        }
        let locked = match mode {
            LockMode::Shared => directory.try_lock_shared(),
            LockMode::Exclusive => directory.try_lock(),
        };
        match locked {
            Ok(()) => Ok(Self { directory, process: fork::Process::current() }),
            Err(fs::TryLockError::WouldBlock) => {
                Err(io::Error::new(ErrorKind::WouldBlock, holders(&directory)))
            }
            Err(fs::TryLockError::Error(error)) => Err(io::Error::new(ErrorKind::Unsupported, error)),
        }
    }
}

impl Lock for OsLock {}

/// See [`crate::Vfs::is_locked`].
pub(super) fn is_locked(file: &fs::File) -> io::Result<bool> {
    if is_shared_by_machines(file) {
        return Err(ErrorKind::Unsupported.into());
    }
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(fs::TryLockError::WouldBlock) => Ok(true),
        Err(fs::TryLockError::Error(error)) => Err(io::Error::new(ErrorKind::Unsupported, error)),
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Closing the file also releases the lock, unless a child has it open. A child must not release the lock
        // of its parent.
        if self.process.is_current() {
            let _ = self.directory.unlock();
        }
    }
}

/// Network file systems, by their `statfs` number, whose folders are locked on this machine only: NFS, SMB (three
/// numbers), 9P.
#[cfg(target_os = "linux")]
const ONE_MACHINE_LOCKS: [u32; 5] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997];

#[cfg(target_os = "linux")]
fn is_shared_by_machines(directory: &fs::File) -> bool {
    // The numbers have 32 bits; the type of the field depends on the processor.
    rustix::fs::fstatfs(directory).is_ok_and(|status| ONE_MACHINE_LOCKS.contains(&(status.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_shared_by_machines(_directory: &fs::File) -> bool {
    false
}

/// The most that Linux returns of a table in one read.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 4096;

/// The processes that have the folder locked, in words.
#[cfg(target_os = "linux")]
fn holders(directory: &fs::File) -> String {
    let found = rustix::fs::fstat(directory).map_err(io::Error::from).and_then(|folder| {
        let (major, minor) = (rustix::fs::major(folder.st_dev), rustix::fs::minor(folder.st_dev));
        let id = format!("{major:02x}:{minor:02x}:{}", folder.st_ino);
        Ok(processes(&lock_table()?, &id))
    });
    let found = found.unwrap_or_default();
    if found.is_empty() { "by an unknown process".to_owned() } else { found.join(", ") }
}

/// The table of all locks. A read of a page shows one state of the table; between short reads, entries move as other locks are released, and
/// some would be missed.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "no file of a store")]
fn lock_table() -> io::Result<String> {
    let mut file = fs::File::open("/proc/locks")?;
    let (mut table, mut page) = (Vec::new(), vec![0; PAGE_BYTES]);
    loop {
        let length = file.read(&mut page)?;
        if length == 0 {
            return String::from_utf8(table).map_err(io::Error::other);
        }
        table.extend_from_slice(page.get(..length).unwrap_or_default());
    }
}

#[cfg(not(target_os = "linux"))]
fn holders(_directory: &fs::File) -> String {
    "by an unknown process".to_owned()
}

/// The processes that have the file of this device and number locked. A line of the table:
/// `1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF`.
#[cfg(target_os = "linux")]
fn processes(table: &str, id: &str) -> Vec<String> {
    let fields = table.lines().map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>());
    let mut found: Vec<String> = fields
        .filter_map(|fields| match *fields.as_slice() {
            ["FLOCK", _, mode, process, file, ..] if file == id => {
                let purpose = if mode == "READ" { "reading" } else { "writing" };
                let process: u32 = process.parse().ok().filter(|process| *process > 0)?;
                let own = if process == std::process::id() { "this process, " } else { "" };
                Some(format!("for {purpose} by {own}process {process}"))
            }
            _ => None,
        })
        .collect();
    found.dedup();
    found
}
