//! The objects that describe backups, as JSON: `docs/format/backup.md` defines them. Here is their decoding, which checks each field.

use serde::{Deserialize, Serialize};

use crate::{
    digest::{self, digest},
    time,
};

/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// Bytes of a new part.
pub(crate) const PART_BYTES: u64 = 16 << 20;
/// The largest part that a reader accepts.
const PART_BYTES_MAX: u64 = 256 << 20;
/// Digits of the digest in the name of a backup.
const NAME_DIGITS: usize = 16;

/// The object that identifies a target.
pub(crate) const TARGET_OBJECT: &str = "tamis-backup.json";
/// The folders of a target.
pub(crate) const BACKUPS: &str = "backups";
pub(crate) const OBJECTS: &str = "objects";
pub(crate) const LEASES: &str = "leases";

/// The content of [`TARGET_OBJECT`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TargetHeader {
    pub(crate) format: u32,
    /// The id of the store, 16 digits.
    pub(crate) store: String,
}

/// Consecutive bytes of a file: an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

impl Part {
    /// The part with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { sha256: digest(bytes), bytes: bytes.len() as u64 }
    }

    pub(crate) fn object(&self) -> String {
        let fan = self.sha256.get(..2).unwrap_or_default();
        format!("{OBJECTS}/{fan}/{}", self.sha256)
    }

    fn check(&self) -> Result<(), String> {
        let is_valid = digest::is_digest(&self.sha256) && self.bytes <= PART_BYTES_MAX;
        if is_valid {
            Ok(())
        } else {
            Err(format!("a part of {} bytes with the digest {:?}", self.bytes, self.sha256))
        }
    }
}

/// A file of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// Tables: the digest of the last 4 KiB, which contain the footer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<String>,
    pub(crate) parts: Vec<Part>,
}

impl FileEntry {
    fn check(&self) -> Result<(), String> {
        self.parts.iter().try_for_each(Part::check)?;
        let sum = self.parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.bytes));
        if sum != Some(self.bytes) || !is_file_name(&self.name) {
            return Err(format!(
                "the file {:?} of {} bytes, whose parts have {sum:?}",
                self.name, self.bytes
            ));
        }
        Ok(())
    }
}

/// Whether the name is that of a file in the folder of a store: a number and a kind, or `CURRENT`.
fn is_file_name(name: &str) -> bool {
    let is_numbered = name.split_once('.').is_some_and(|(number, kind)| {
        number.bytes().all(|digit| digit.is_ascii_digit())
            && ["table", "filter", "view", "log", "manifest"].contains(&kind)
            && !number.is_empty()
    });
    is_numbered || name == "CURRENT"
}

/// Whether a file never changes and is named by the manifest of the store.
pub(crate) fn is_immutable(name: &str) -> bool {
    [".table", ".filter", ".view"].iter().any(|kind| name.ends_with(kind))
}

/// The immutable files of a store: an object that backups share as long as they are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileList {
    pub(crate) files: Vec<FileEntry>,
}

impl FileList {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let list: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        list.files.iter().try_for_each(FileEntry::check)?;
        Ok(list)
    }
}

/// The kind of the uploaded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Tables and log.
    Whole,
    /// Only log: its tables are those of an earlier backup.
    Log,
}

/// A backup: the object `backups/NUMBER-DIGEST.json`. It has everything to restore the store at its sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub(crate) format: u32,
    pub(crate) store: String,
    /// One more than that of the newest backup before. Backups are ordered by it, not by their times.
    pub number: u64,
    /// When the content was fixed, by the clock of the process that made it: milliseconds since 1970.
    pub time_milliseconds: u64,
    /// The sequence number of the last write in it.
    pub sequence: u64,
    /// The kind of the uploaded bytes.
    pub kind: Kind,
    /// The first backup with the same tables; its own number if it is that.
    pub base: u64,
    /// Bytes that were uploaded for it.
    pub uploaded_bytes: u64,
    /// Bytes of the restored store.
    pub store_bytes: u64,
    /// Digest of the settings, tables and keyspaces in the manifest of the store, without its counters.
    pub(crate) catalog: String,
    /// The object with the list of immutable files.
    pub(crate) tables: Part,
    /// The log, the manifest and `CURRENT` of the store.
    pub(crate) files: Vec<FileEntry>,
    #[serde(skip)]
    pub(crate) object: String,
}

impl Backup {
    /// Returns the name of the object and its bytes. The name contains a digest of the bytes.
    pub(crate) fn encode(&self) -> (String, Vec<u8>) {
        let bytes = encode(self);
        (object_name(self.number, &bytes), bytes)
    }

    /// Decodes the object of this name.
    pub(crate) fn decode(object: &str, bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let number = number_of(object).ok_or("not a name of a backup")?;
        if object != object_name(number, bytes) {
            return Err(format!("its bytes have the digest {}", digest(bytes)));
        }
        let versioned: Versioned = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if versioned.format != VERSION {
            return Err(format!("unknown format version {}", versioned.format));
        }
        let mut backup: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        backup.tables.check()?;
        backup.files.iter().try_for_each(FileEntry::check)?;
        if backup.number != number {
            return Err(format!("it has the number {}", backup.number));
        }
        object.clone_into(&mut backup.object);
        Ok(backup)
    }

    /// The number and the digest of its object: `12-9f3a01c2b4d5e6f7`.
    pub fn id(&self) -> String {
        let digits = self.object.rsplit_once('-').and_then(|(_, rest)| rest.strip_suffix(".json"));
        format!("{}-{}", self.number, digits.unwrap_or_default())
    }

    /// The time in UTC: `2026-11-30T09:20:00Z`.
    pub fn time(&self) -> String {
        time::format(self.time_milliseconds)
    }
}

fn object_name(number: u64, bytes: &[u8]) -> String {
    let digest = digest(bytes);
    format!("{BACKUPS}/{number:010}-{}.json", digest.get(..NAME_DIGITS).unwrap_or_default())
}

/// The number in the name of a backup.
pub(crate) fn number_of(object: &str) -> Option<u64> {
    object.strip_prefix(BACKUPS)?.strip_prefix('/')?.split_once('-')?.0.parse().ok()
}

/// JSON of a value of this file: it has only texts, numbers and lists, which always have a form in JSON.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests;
