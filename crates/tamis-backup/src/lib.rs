//! Incremental backups of Tamis stores, in a folder or an S3 bucket.
//!
//! ```
//! use tamis_backup::{BackupOptions, RestoreOptions, Source, Target, backup, restore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = |name| folder.path().join(name);
//! let db = tamis::Db::open(path("store"))?;
//! let target = Target::folder(path("backups")); // or Target::open("s3://bucket/path")?
//! db.put("apple", "red")?;
//! backup(Source::Db(&db), &target, &BackupOptions::default())?;
//! db.put("apple", "green")?;
//! backup(Source::Db(&db), &target, &BackupOptions::default())?; // uploads the new bytes of the log
//!
//! let mut options = RestoreOptions::default();
//! options.to = Some("1".to_owned());
//! restore(&target, path("restored"), &options)?;
//! assert_eq!(tamis::Db::open(path("restored"))?.get("apple")?.as_deref(), Some(b"red".as_slice()));
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! 1. **A backup in the list is complete.** Its description is written after all other objects, each of which is written completely or not at all.
//!    It restores exactly the state of its sequence number.
//! 2. **A backup does not depend on others.** It shares objects with them, and no object is ever changed. Each prune leaves what the remaining backups need.
//! 3. **Any operation can be killed.** A killed backup leaves objects that the next one uses, a killed restore a folder that is no store, a killed prune
//!    objects that the next one removes.
//! 4. **Operations can run at the same time**, in several processes and machines. Two backups get different descriptions. A prune waits for running backups, restores
//!    and verifications, and they wait for a prune: see `docs/format/backup.md`, "Leases". A reader without permission to write has no lease: it
//!    reports an object that a prune has removed.
//! 5. **Order is by number.** Times are for people: a clock that jumps changes no order and loses nothing.
//! 6. **Every byte has a digest** (SHA-256), which a restore and [`verify()`] check.
//!
//! The bytes of a target are defined in `docs/format/backup.md`. All calls block.

#![forbid(unsafe_code)]

mod backup;
mod backup_list;
mod checkpoint;
mod digest;
mod error;
mod follow;
mod format;
mod lease;
mod objects;
mod parallel;
mod progress;
mod prune;
mod restore;
#[cfg(feature = "s3")]
mod s3;
mod target;
mod time;
mod upload;
mod verify;

pub use backup::{BackupOptions, BackupReport, backup};
pub use backup_list::BackupList;
pub use checkpoint::Source;
pub use error::{Error, Result};
pub use follow::{Round, follow};
pub use format::{Backup, Kind};
pub use objects::{FolderObjects, Object, Objects};
pub use progress::{NoProgress, Progress};
pub use prune::{Keep, PruneReport, prune};
pub use restore::{RestoreOptions, restore};
pub use target::{LeaseTimes, Target};
pub use verify::{ObjectFault, VerifyReport, verify};
