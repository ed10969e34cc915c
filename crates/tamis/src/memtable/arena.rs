//! A bump allocator whose memory is freed all at once.
//!
//! The arena is a list of chunks. Small allocations increment the counter of the current chunk, without a lock. The thread
//! that finds the chunk full adds the next one under a lock. Chunks double from 4 KiB to 2 MiB, so that a memtable of 64
//! KiB wastes little. An allocation above a quarter of the largest chunk gets its own chunk and leaves the current one as
//! it is.
//!
//! Invariants: (1) two allocations never overlap; (2) an allocation does not move until the arena is dropped; (3) each
//! returned pointer is derived from the pointer of its whole chunk, never from a reference to a part.

use std::{ptr::NonNull, sync::Arc};

use super::{
    chunk::{CHUNK_SIZE_MAX, ChunkMemory, ChunkPool},
    sync::{AtomicPtr, AtomicUsize, Mutex, Ordering},
};

/// Alignment of every allocation.
pub(super) const ALLOCATION_ALIGNMENT: usize = 8;

struct Chunk {
    memory: ChunkMemory,
    size: usize,
    /// Allocated bytes, or more than the chunk's size once an allocation did not fit.
    used: AtomicUsize,
}

impl Chunk {
    /// A chunk owned by the raw pointer; `used` of its bytes are already allocated.
    fn allocate(pool: &ChunkPool, size: usize, used: usize) -> *mut Self {
        let memory = ChunkMemory::take(pool, size);
        Box::into_raw(Box::new(Self { memory, size, used: AtomicUsize::new(used) }))
    }
}

pub(super) struct Arena {
    /// The chunk for new allocations; one of `chunks`.
    current: AtomicPtr<Chunk>,
    chunks: Mutex<Vec<*mut Chunk>>,
    /// Bytes of all chunks but the current one, including the unused bytes at their ends.
    filled_bytes: AtomicUsize,
    pool: Arc<ChunkPool>,
}

// SAFETY: the arena owns its chunks; threads share only their atomics and memory that is allocated once.
unsafe impl Send for Arena {}
// SAFETY: as above; `chunks` is behind a lock.
unsafe impl Sync for Arena {}

impl Arena {
    pub(super) fn new(pool: &Arc<ChunkPool>) -> Self {
        let chunk = Chunk::allocate(pool, 4 << 10, 0);
        Self {
            current: AtomicPtr::new(chunk),
            chunks: Mutex::new(vec![chunk]),
            filled_bytes: AtomicUsize::new(0),
            pool: Arc::clone(pool),
        }
    }

    /// Allocated bytes, including padding and the unused ends of full chunks. While another thread adds a chunk they may be
    /// counted twice for a moment.
    pub(super) fn bytes(&self) -> usize {
        // SAFETY: `current` is always a chunk of `chunks`, which are freed only when the arena is dropped.
        let current = unsafe { &*self.current.load(Ordering::Acquire) };
        let used = current.used.load(Ordering::Relaxed).min(current.size);
        self.filled_bytes.load(Ordering::Relaxed) + used
    }

    /// `size` bytes, not initialized, aligned to [`ALLOCATION_ALIGNMENT`], that live as long as the arena.
    #[inline]
    pub(super) fn allocate(&self, size: usize) -> NonNull<u8> {
        let size = size.max(1).next_multiple_of(ALLOCATION_ALIGNMENT);
        if size > CHUNK_SIZE_MAX / 4 {
            return self.allocate_alone(size);
        }
        loop {
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: `current` is always a chunk of `chunks`, which are freed only when the arena is dropped.
            let chunk = unsafe { &*current };
            let offset = chunk.used.fetch_add(size, Ordering::Relaxed);
            if offset + size <= chunk.size {
                // SAFETY: offset + size is within the chunk.
                return unsafe { chunk.memory.base.add(offset) };
            }
            if let Some(allocation) = self.grow(current, size) {
                return allocation;
            }
        }
    }

    /// A chunk for this allocation only.
    #[cold]
    fn allocate_alone(&self, size: usize) -> NonNull<u8> {
        let chunk = Chunk::allocate(&self.pool, size, size);
        self.chunks.lock().push(chunk);
        self.filled_bytes.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the chunk was made above and is freed only when the arena is dropped.
        unsafe { (*chunk).memory.base }
    }

    /// Makes the next chunk current, unless another thread did, and takes `size` bytes of it.
    #[cold]
    fn grow(&self, full: *mut Chunk, size: usize) -> Option<NonNull<u8>> {
        let mut chunks = self.chunks.lock();
        if self.current.load(Ordering::Acquire) != full {
            return None;
        }
        // SAFETY: `full` is a chunk of `chunks`.
        let full_size = unsafe { (*full).size };
        // Large entries are often several: a chunk has room for at least four.
        let next_size = (full_size * 2).max((size * 4).next_power_of_two()).min(CHUNK_SIZE_MAX);
        let chunk = Chunk::allocate(&self.pool, next_size, size);
        chunks.push(chunk);
        self.filled_bytes.fetch_add(full_size, Ordering::Relaxed);
        self.current.store(chunk, Ordering::Release);
        // SAFETY: the chunk was made above with its first `size` bytes taken.
        Some(unsafe { (*chunk).memory.base })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for &chunk in self.chunks.get_mut().iter() {
            // SAFETY: each pointer came from `Box::into_raw` in `Chunk::allocate` and is freed once, here.
            let chunk = unsafe { Box::from_raw(chunk) };
            // SAFETY: nothing borrowed from the arena outlives it.
            unsafe { chunk.memory.release(&self.pool) };
        }
    }
}
