//! A part of bytes, together with the owner that keeps them alive.
//!
//! Getting the bytes may take an indirect call (a mapping behind a trait object). It happens once: afterwards a reader
//! has an address and a length, two loads and no call.

use core::{any::Any, fmt, ptr::NonNull};
use std::sync::Arc;

/// Bytes that live as long as this value. Clones share the owner.
#[derive(Clone)]
pub struct OwnedSlice {
    bytes: NonNull<[u8]>,
    owner: Arc<dyn Any + Send + Sync>,
}

impl OwnedSlice {
    /// The slice that `of` returns from the owner.
    pub fn new<O: Send + Sync + 'static>(owner: Arc<O>, of: impl FnOnce(&O) -> &[u8]) -> Self {
        Self { bytes: NonNull::from(of(&owner)), owner }
    }

    /// The same without the first `count` bytes; empty if there are no more.
    #[must_use]
    pub fn skip(self, count: usize) -> Self {
        let bytes = NonNull::from(self.as_ref().get(count..).unwrap_or_default());
        Self { bytes, owner: self.owner }
    }
}

impl AsRef<[u8]> for OwnedSlice {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `of` made the slice from a shared borrow of the owner and works for every lifetime, so it is valid
        // as long as the owner is borrowed. The owner counts as borrowed while `owner` is held: an `Arc` keeps its
        // value in place, and no code gets it as `&mut`, since this `Arc` is never handed out and other clones are not
        // unique.
        unsafe { self.bytes.as_ref() }
    }
}

// SAFETY: the bytes are only read, and their owner is `Send` and `Sync`.
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
