//! A part of bytes that somebody else owns, together with what keeps them alive.
//!
//! Finding the bytes may take a call that cannot be foreseen (a mapping behind a trait object). It is made once: from then on
//! a reader has an address and a length, two loads and no call, however it is compiled.

use core::{any::Any, fmt, ptr::NonNull};
use std::sync::Arc;

/// Bytes that live as long as this value does. Clones share the owner.
#[derive(Clone)]
pub struct OwnedSlice {
    bytes: NonNull<[u8]>,
    owner: Arc<dyn Any + Send + Sync>,
}

impl OwnedSlice {
    /// What `of` finds in the owner.
    pub fn new<O: Send + Sync + 'static>(owner: Arc<O>, of: impl FnOnce(&O) -> &[u8]) -> Self {
        Self { bytes: NonNull::from(of(&owner)), owner }
    }

    /// The same without the first `count` bytes; nothing where there are no more.
    #[must_use]
    pub fn skip(self, count: usize) -> Self {
        let bytes = NonNull::from(self.as_ref().get(count..).unwrap_or_default());
        Self { bytes, owner: self.owner }
    }
}

impl AsRef<[u8]> for OwnedSlice {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `of` made the slice out of a shared borrow of the owner and works for every lifetime, so it is valid for as long as
        // the owner is borrowed. It may be taken as borrowed while `owner` is held: an `Arc` keeps its value in
        // place, and nobody gets it as `&mut`, since this `Arc` is never handed out and others are not the only one.
        unsafe { self.bytes.as_ref() }
    }
}

// SAFETY: the bytes are only read, and belong to an owner that may be sent and shared.
unsafe impl Send for OwnedSlice {}
// SAFETY: as for `Send`.
unsafe impl Sync for OwnedSlice {}

impl fmt::Debug for OwnedSlice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OwnedSlice({} bytes)", self.as_ref().len())
    }
}

#[cfg(test)]
mod tests;
