//! Where the memory of arenas comes from, and where it waits for the next one.
//!
//! Chunks of [`CHUNK_SIZE_MAX`] are huge pages where the system has them: the steps of a search go all over the memory, and
//! with small pages most of them miss the processor's address tables too. Such a page is dear to get: the system clears it,
//! and on a virtual machine its host may have to find it first. So the chunks of a memtable that is gone are kept for the next
//! ones ([`ChunkPool`]), up to [`KEPT_BYTES_MAX`] in a database. Smaller chunks come from the heap and go back to it.

use std::{
    alloc::{self, Layout},
    ptr::NonNull,
    sync::Arc,
};

use memmap2::MmapMut;

use super::sync::Mutex;

/// The size of chunks that are kept.
pub(super) const CHUNK_SIZE_MAX: usize = 2 << 20;
/// Chunks begin on a cache line.
const CHUNK_ALIGNMENT: usize = 64;
/// Bytes that a pool keeps at most: a memtable's, as it is set by default.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Chunks of memtables that are gone, for the next memtables of the same database.
#[derive(Debug)]
pub(crate) struct ChunkPool {
    kept: Mutex<Vec<MmapMut>>,
}

impl ChunkPool {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { kept: Mutex::new(Vec::new()) })
    }

    fn take(&self) -> Option<MmapMut> {
        self.kept.lock().pop()
    }

    fn give_back(&self, mapping: MmapMut) {
        let mut kept = self.kept.lock();
        if kept.len() < KEPT_BYTES_MAX / CHUNK_SIZE_MAX {
            kept.push(mapping);
        }
    }

    /// Chunks that wait for a memtable.
    #[cfg(all(test, not(loom)))]
    pub(super) fn kept_count(&self) -> usize {
        self.kept.lock().len()
    }
}

/// The memory of a chunk; what is in it is not known.
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
            Layout::from_size_align(size, CHUNK_ALIGNMENT).expect("sizes are far below the address space");
        // SAFETY: the layout's size is not zero: chunks have room for at least one entry.
        let base = unsafe { alloc::alloc(layout) };
        let Some(base) = NonNull::new(base) else { alloc::handle_alloc_error(layout) };
        Self { base, origin: Origin::Heap(layout) }
    }

    /// Gives the memory to the pool or to the system.
    ///
    /// # Safety
    ///
    /// Nothing borrowed from it is used any more.
    pub(super) unsafe fn give_back(self, pool: &ChunkPool) {
        match self.origin {
            // SAFETY: `base` was allocated with this layout; the caller's promise.
            Origin::Heap(layout) => unsafe { alloc::dealloc(self.base.as_ptr(), layout) },
            Origin::Mapped(mapping) => pool.give_back(mapping),
        }
    }
}

/// Memory of its own for a chunk of the greatest size; `None` for others, or where there is none to be had.
fn map_huge(pool: &ChunkPool, size: usize) -> Option<ChunkMemory> {
    if cfg!(miri) || size != CHUNK_SIZE_MAX {
        return None;
    }
    let mut mapping = match pool.take() {
        Some(mapping) => mapping,
        None => {
            let mapping = MmapMut::map_anon(size).ok()?;
            #[cfg(target_os = "linux")]
            // A hint: what the system answers changes nothing.
            let _ = mapping.advise(memmap2::Advice::HugePage);
            mapping
        }
    };
    let base = NonNull::new(mapping.as_mut_ptr())?;
    Some(ChunkMemory { base, origin: Origin::Mapped(mapping) })
}
