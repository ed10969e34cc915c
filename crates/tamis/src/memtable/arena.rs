//! Memory that grows by bumping a counter and is given back all at once.
//!
//! The arena is a list of chunks. Small allocations bump the counter of the current chunk, without a lock; the thread
//! that finds the chunk full adds the next one under a lock. Chunks double from 4 KiB to 2 MiB, so that a memtable of
//! 64 KiB holds little that it does not use; an allocation above a quarter of a chunk gets a chunk of its own and
//! leaves the current one in place.
//!
//! The chunks of 2 MiB are huge pages where the system has them: the steps of a search go all over the memory, and with
//! small pages most of them miss the processor's address tables too.
//!
//! Invariants: (1) two allocations never overlap; (2) an allocation stays where it is until the arena is dropped;
//! (3) each pointer given out is derived from the pointer of its whole chunk, never from a reference to a part.

use std::{
    alloc::{self, Layout},
    ptr::NonNull,
};

use memmap2::MmapMut;

use super::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering};

/// Alignment of every allocation.
pub(super) const ALLOCATION_ALIGNMENT: usize = 8;

/// Chunks begin on a cache line.
const CHUNK_ALIGNMENT: usize = 64;
const CHUNK_SIZE_FIRST: usize = 4 << 10;
const CHUNK_SIZE_MAX: usize = 2 << 20;

struct Chunk {
    base: NonNull<u8>,
    size: usize,
    memory: Memory,
    /// Bytes given out, or more than the chunk's size once an allocation did not fit.
    used: AtomicUsize,
}

/// Where a chunk's memory comes from.
enum Memory {
    Heap(Layout),
    /// Held, and given back when it is dropped.
    Mapped {
        _mapping: MmapMut,
    },
}

/// A chunk's memory of its own, in huge pages where the system has them; `None` where there is none to be had.
fn map_huge(size: usize) -> Option<(NonNull<u8>, Memory)> {
    if cfg!(miri) || size != CHUNK_SIZE_MAX {
        return None;
    }
    let mut mapping = MmapMut::map_anon(size).ok()?;
    #[cfg(target_os = "linux")]
    // A hint: what the system answers changes nothing.
    let _ = mapping.advise(memmap2::Advice::HugePage);
    let base = NonNull::new(mapping.as_mut_ptr())?;
    Some((base, Memory::Mapped { _mapping: mapping }))
}

impl Chunk {
    /// A chunk on the heap, owned by the raw pointer; `used` of its bytes are taken already.
    fn allocate(size: usize, used: usize) -> *mut Self {
        let (base, memory) = map_huge(size).unwrap_or_else(|| {
            let layout = Layout::from_size_align(size, CHUNK_ALIGNMENT)
                .expect("sizes are far below the address space");
            // SAFETY: the layout's size is not zero: chunks have at least `CHUNK_SIZE_FIRST` bytes or hold one entry.
            let base = unsafe { alloc::alloc(layout) };
            let Some(base) = NonNull::new(base) else { alloc::handle_alloc_error(layout) };
            (base, Memory::Heap(layout))
        });
        Box::into_raw(Box::new(Self { base, size, memory, used: AtomicUsize::new(used) }))
    }
}

pub(super) struct Arena {
    /// The chunk that is bumped; one of `chunks`.
    current: AtomicPtr<Chunk>,
    chunks: Mutex<Vec<*mut Chunk>>,
    bytes: AtomicUsize,
}

// SAFETY: the arena owns its chunks; what threads share of them are atomics and memory that is handed out once.
unsafe impl Send for Arena {}
// SAFETY: as above; `chunks` is behind a lock.
unsafe impl Sync for Arena {}

impl Arena {
    pub(super) fn new() -> Self {
        let chunk = Chunk::allocate(CHUNK_SIZE_FIRST, 0);
        Self { current: AtomicPtr::new(chunk), chunks: Mutex::new(vec![chunk]), bytes: AtomicUsize::new(0) }
    }

    /// Bytes given out, padding included; what is unused in chunks does not count.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// `size` bytes, not initialised, aligned to [`ALLOCATION_ALIGNMENT`], that live as long as the arena.
    #[inline]
    pub(super) fn allocate(&self, size: usize) -> NonNull<u8> {
        let size = size.max(1).next_multiple_of(ALLOCATION_ALIGNMENT);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        if size > CHUNK_SIZE_MAX / 4 {
            return self.allocate_alone(size);
        }
        loop {
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: `current` is always a chunk of `chunks`, which are freed only when the arena is dropped.
            let chunk = unsafe { &*current };
            let offset = chunk.used.fetch_add(size, Ordering::Relaxed);
            if offset + size <= chunk.size {
                // SAFETY: offset + size lies inside the chunk.
                return unsafe { chunk.base.add(offset) };
            }
            if let Some(allocation) = self.grow(current, size) {
                return allocation;
            }
        }
    }

    /// A chunk for this allocation only.
    #[cold]
    fn allocate_alone(&self, size: usize) -> NonNull<u8> {
        let chunk = Chunk::allocate(size, size);
        self.chunks.lock().push(chunk);
        // SAFETY: the chunk was made above and is freed only when the arena is dropped.
        unsafe { (*chunk).base }
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
        let next_size = (full_size * 2).min(CHUNK_SIZE_MAX);
        let is_alone = size > next_size / 4;
        let chunk = Chunk::allocate(if is_alone { size } else { next_size }, size);
        chunks.push(chunk);
        if !is_alone {
            self.current.store(chunk, Ordering::Release);
        }
        // SAFETY: the chunk was made above with its first `size` bytes taken.
        Some(unsafe { (*chunk).base })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for &chunk in self.chunks.get_mut().iter() {
            // SAFETY: each pointer came from `Box::into_raw` in `Chunk::allocate` and is freed once, here.
            let chunk = unsafe { Box::from_raw(chunk) };
            if let Memory::Heap(layout) = chunk.memory {
                // SAFETY: `base` was allocated with this layout, and nothing borrowed from the arena outlives it.
                unsafe { alloc::dealloc(chunk.base.as_ptr(), layout) };
            }
        }
    }
}
