//! Packed byte strings: the length in four bytes, little-endian, then the bytes. `packed.js` is the other side.

use crate::error::Fault;

/// The length that marks an absent value.
const ABSENT: u32 = u32::MAX;

/// Appends a byte string.
#[inline]
pub(crate) fn push(packed: &mut Vec<u8>, bytes: &[u8]) {
    // The engine has no longer keys and values.
    let length = u32::try_from(bytes.len()).unwrap_or(ABSENT);
    packed.extend_from_slice(&length.to_le_bytes());
    packed.extend_from_slice(bytes);
}

/// Appends a mark for an absent value.
pub(crate) fn push_absent(packed: &mut Vec<u8>) {
    packed.extend_from_slice(&ABSENT.to_le_bytes());
}

/// Reads packed byte strings.
#[derive(Debug)]
pub(crate) struct Unpacker<'a>(&'a [u8]);

impl<'a> Unpacker<'a> {
    pub(crate) const fn new(packed: &'a [u8]) -> Self {
        Self(packed)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A single byte, such as the kind of an operation.
    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.0.split_first().ok_or_else(truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    /// A byte string.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let (length, rest) = self.0.split_first_chunk::<4>().ok_or_else(truncated)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| truncated())?;
        let (bytes, rest) = rest.split_at_checked(length).ok_or_else(truncated)?;
        self.0 = rest;
        Ok(bytes)
    }
}

/// The first `length` bytes of a buffer that JavaScript fills.
pub(crate) fn filled(buffer: &[u8], length: u32) -> Result<&[u8], Fault> {
    let length = usize::try_from(length).map_err(|_| truncated())?;
    buffer.get(..length).ok_or_else(truncated)
}

/// Only other callers than the JavaScript files of the package cause it.
#[cold]
fn truncated() -> Fault {
    Fault::new("LEVEL_INVALID_ARGUMENT", "the packed bytes are truncated; call the methods of the package")
}
