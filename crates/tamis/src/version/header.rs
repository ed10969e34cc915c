//! The header of the manifest, and the whole of `CURRENT`: magic, version, two numbers, and a checksum of them.

use std::path::Path;

use crate::{
    coding::{Decoder, checksum, put_u32, put_u64},
    error::{Error, Result},
};

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;

/// A kind of header.
pub(super) struct HeaderKind {
    pub(super) magic: u32,
    pub(super) version: u32,
    /// For errors.
    pub(super) name: &'static str,
}

impl HeaderKind {
    pub(super) fn encode(&self, numbers: [u64; 2]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        put_u32(&mut bytes, self.magic);
        put_u32(&mut bytes, self.version);
        numbers.into_iter().for_each(|number| put_u64(&mut bytes, number));
        let sum = checksum(0, &bytes);
        put_u64(&mut bytes, sum);
        bytes
    }

    /// The numbers of the header at the front of `bytes`.
    ///
    /// # Errors
    /// [`Error::Corruption`]; [`Error::UnknownFormat`] for another version.
    pub(super) fn decode(&self, bytes: &[u8], file: &Path) -> Result<[u64; 2]> {
        let damage = |offset, expected, got| Err(self.damage(file, offset, expected, got));
        let mut fields = Decoder::new(bytes.get(..HEADER_BYTES).unwrap_or_default());
        let (Some(magic), Some(version), Some(first), Some(second), Some(sum)) =
            (fields.take_u32(), fields.take_u32(), fields.take_u64(), fields.take_u64(), fields.take_u64())
        else {
            return damage(0, format!("{HEADER_BYTES} bytes"), format!("{} bytes", bytes.len()));
        };
        let expected = checksum(0, bytes.get(..HEADER_BYTES - size_of_val(&sum)).unwrap_or_default());
        if sum != expected {
            return damage(24, format!("checksum {expected:#018x}"), format!("{sum:#018x}"));
        }
        if magic != self.magic {
            return damage(0, format!("magic {:#010x}", self.magic), format!("{magic:#010x}"));
        }
        if version != self.version {
            return Err(Error::UnknownFormat {
                file: file.to_path_buf(),
                found: version,
                known: self.version,
            });
        }
        Ok([first, second])
    }

    /// The error for a header with a wrong field.
    pub(super) fn damage(&self, file: &Path, offset: u64, expected: String, got: String) -> Error {
        Error::corruption(file, offset, self.name, expected, got)
    }
}
