//! Byte buffers aligned to cache lines, so that 64-byte lines within them cost one cache miss each.

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// An owned byte buffer that begins at a multiple of 64. Filters read from a file are stored in one.
#[derive(Clone)]
pub struct AlignedBytes {
    lines: Vec<Line>,
    length: usize,
}

impl AlignedBytes {
    /// A buffer of zeros.
    pub fn zeroed(length: usize) -> Self {
        Self { lines: vec![Line([0; 64]); length.div_ceil(64)], length }
    }

    /// The bytes, to be filled by a read.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `Line` is `repr(C)` around 64 bytes with size 64 and no padding, so the vector's lines are
        // `64 * lines.len()` initialised bytes in one allocation; `length` is at most that. The borrow is unique.
        unsafe { core::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<u8>(), self.length) }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as in `as_mut_slice`, with a shared borrow.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr().cast::<u8>(), self.length) }
    }
}

impl From<&[u8]> for AlignedBytes {
    fn from(bytes: &[u8]) -> Self {
        let mut aligned = Self::zeroed(bytes.len());
        aligned.as_mut_slice().copy_from_slice(bytes);
        aligned
    }
}

impl core::fmt::Debug for AlignedBytes {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "AlignedBytes({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests;
