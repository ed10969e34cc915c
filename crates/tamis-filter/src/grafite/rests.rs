//! The keys of a filter without the bytes that they share.

/// The most bytes of a window of bytes.
const BYTES_MAX: usize = 8;

/// The keys without the bytes that they share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rests {
    pub(crate) shared_bytes: usize,
    /// The lengths of the shortest and of the longest key without these bytes.
    pub(crate) shortest: usize,
    pub(crate) longest: usize,
    /// The most bytes of a window.
    pub(crate) window_max: usize,
}

impl Rests {
    /// Of keys of some lengths, the shortest and the longest.
    pub(crate) fn of((shortest, longest): (usize, usize), shared_bytes: usize, window_max: usize) -> Self {
        let [shortest, longest] = [shortest, longest].map(|length| length.saturating_sub(shared_bytes));
        Self { shared_bytes, shortest, longest, window_max }
    }

    /// Bytes of a window of bytes.
    pub(super) fn byte_count(&self) -> usize {
        self.longest.min(self.window_max).min(BYTES_MAX)
    }
}
