//! The memory of arenas, and the pool of free chunks.
//!
//! Chunks of [`CHUNK_SIZE_MAX`] are huge pages if the system has them: the steps of a search access random memory, and with
//! small pages most of them miss the TLB, too. Such a page is expensive: the system clears it, and a virtual machine's host
//! may have to allocate it first. So the chunks of dropped memtables are kept for the next ones ([`ChunkPool`]), up to
//! [`POOLED_BYTES_MAX`] per database. Smaller chunks are allocated on the heap and freed.

use std::{
    alloc::{self, Layout},
    ptr::NonNull,
    sync::Arc,
};

use memmap2::MmapMut;

use super::sync::Mutex;

/// The size of chunks that are pooled.
pub(super) const CHUNK_SIZE_MAX: usize = 2 << 20;
/// The most bytes in a pool: those of a memtable with default options.
const POOLED_BYTES_MAX: usize = 64 << 20;

/// Free chunks of dropped memtables, for the next memtables of the same database.
#[derive(Debug)]
pub(crate) struct ChunkPool {
    free: Mutex<Vec<MmapMut>>,
}

impl ChunkPool {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(Vec::new()) })
    }

    fn take(&self) -> Option<MmapMut> {
        self.free.lock().pop()
    }

    fn release(&self, mapping: MmapMut) {
        let mut free = self.free.lock();
        if free.len() < POOLED_BYTES_MAX / CHUNK_SIZE_MAX {
            free.push(mapping);
        }
    }

    /// Number of free chunks.
    #[cfg(all(test, not(loom)))]
    pub(super) fn free_count(&self) -> usize {
        self.free.lock().len()
    }
}

/// The memory of a chunk; its contents are unknown.
pub(super) struct ChunkMemory {
    pub(super) base: NonNull<u8>,
    origin: Origin,
}

enum Origin {
    Heap(Layout),
    Mapped(MmapMut),
}

impl ChunkMemory {
    /// `size` bytes, aligned to cache lines.
    pub(super) fn take(pool: &ChunkPool, size: usize) -> Self {
        if let Some(mapped) = map_huge(pool, size) {
            return mapped;
        }
        let layout =
            // Chunks begin on a cache line.
            Layout::from_size_align(size, 64).expect("sizes are far below the address space");
        // SAFETY: the layout's size is not zero: chunks have room for at least one entry.
        let base = unsafe { alloc::alloc(layout) };
        let Some(base) = NonNull::new(base) else { alloc::handle_alloc_error(layout) };
        Self { base, origin: Origin::Heap(layout) }
    }

    /// Returns the memory to the pool or to the system.
    ///
    /// # Safety
    ///
    /// No reference into it is used any more.
    pub(super) unsafe fn release(self, pool: &ChunkPool) {
        match self.origin {
            // SAFETY: `base` was allocated with this layout, and no reference is left by the caller's promise.
            Origin::Heap(layout) => unsafe { alloc::dealloc(self.base.as_ptr(), layout) },
            Origin::Mapped(mapping) => pool.release(mapping),
        }
    }
}

/// A mapping for a chunk of the greatest size; `None` for other sizes, or if the system has no memory.
fn map_huge(pool: &ChunkPool, size: usize) -> Option<ChunkMemory> {
    if cfg!(miri) || size != CHUNK_SIZE_MAX {
        return None;
    }
    let mut mapping = match pool.take() {
        Some(mapping) => mapping,
        None => {
            let mapping = MmapMut::map_anon(size).ok()?;
            #[cfg(target_os = "linux")]
            // A hint: its result does not matter.
            let _ = mapping.advise(memmap2::Advice::HugePage);
            mapping
        }
    };
    let base = NonNull::new(mapping.as_mut_ptr())?;
    Some(ChunkMemory { base, origin: Origin::Mapped(mapping) })
}
