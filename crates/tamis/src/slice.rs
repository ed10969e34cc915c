//! Keys and values as returned to programs: they keep the memory that they refer to alive and avoid copies.

use std::{borrow::Borrow, fmt, hash, ops::Deref, sync::Arc};

use tamis_vfs::File;

use crate::coding::length_u8;

/// The longest slice that is stored inline, without an allocation.
const INLINE_LENGTH_MAX: usize = 38;

/// An owned byte string that is cheap to clone: inline if short, otherwise a part of a shared block or of a mapped table.
///
/// It dereferences to `[u8]` and compares as bytes. A slice keeps its whole block in memory; `to_vec` copies.
///
/// ```
/// let slice = tamis::Slice::from(b"abc".as_slice());
/// assert_eq!(&*slice, b"abc");
/// ```
#[derive(Clone)]
pub struct Slice {
    bytes: Bytes,
}

#[derive(Clone)]
enum Bytes {
    Inline { length: u8, bytes: [u8; INLINE_LENGTH_MAX] },
    Shared { owner: Arc<[u8]>, offset: u32, length: u32 },
    Mapped { owner: Arc<dyn File>, offset: usize, length: u32 },
}

impl Slice {
    /// A part of a block in memory; a short part is copied. A part outside `owner` is empty.
    pub(crate) fn shared(owner: &Arc<[u8]>, offset: usize, length: usize) -> Self {
        let part = offset.checked_add(length).and_then(|end| owner.get(offset..end)).unwrap_or_default();
        match (part.len() <= INLINE_LENGTH_MAX, u32::try_from(offset), u32::try_from(part.len())) {
            (false, Ok(offset), Ok(length)) => {
                Self { bytes: Bytes::Shared { owner: Arc::clone(owner), offset, length } }
            }
            _ => Self::from(part),
        }
    }

    /// A part of a mapped file; a short part is copied. A part outside the mapping is empty.
    pub(crate) fn mapped(owner: &Arc<dyn File>, offset: usize, length: usize) -> Self {
        let part = offset
            .checked_add(length)
            .and_then(|end| owner.mapping().and_then(|bytes| bytes.get(offset..end)))
            .unwrap_or_default();
        match (part.len() <= INLINE_LENGTH_MAX, u32::try_from(part.len())) {
            (false, Ok(length)) => Self { bytes: Bytes::Mapped { owner: Arc::clone(owner), offset, length } },
            _ => Self::from(part),
        }
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // The constructors checked the bounds; a slice outside of them would be empty.
        match &self.bytes {
            Bytes::Inline { length, bytes } => bytes.get(..usize::from(*length)),
            Bytes::Shared { owner, offset, length } => {
                owner.get(*offset as usize..).and_then(|rest| rest.get(..*length as usize))
            }
            Bytes::Mapped { owner, offset, length } => owner
                .mapping()
                .and_then(|bytes| bytes.get(*offset..))
                .and_then(|rest| rest.get(..*length as usize)),
        }
        .unwrap_or_default()
    }
}

/// Panics for 4 GiB or more: no key or value has as many bytes.
impl From<&[u8]> for Slice {
    #[inline]
    fn from(source: &[u8]) -> Self {
        let mut bytes = [0; INLINE_LENGTH_MAX];
        if let Some(target) = bytes.get_mut(..source.len()) {
            target.copy_from_slice(source);
            return Self { bytes: Bytes::Inline { length: length_u8(source.len()), bytes } };
        }
        let length = u32::try_from(source.len()).expect("keys and values have at most 256 MiB");
        Self { bytes: Bytes::Shared { owner: Arc::from(source), offset: 0, length } }
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "b\"{}\"", self.escape_ascii())
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Slice {}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<&T> for Slice {
    fn eq(&self, other: &&T) -> bool {
        **self == *other.as_ref()
    }
}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl hash::Hash for Slice {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
