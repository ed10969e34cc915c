//! The memory of a build of a sorted view is bounded: the allocator of this program counts the bytes in use.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

use tamis::{Db, Filters, KeyspaceOptions, Options, Views};

/// The memory that a build may take.
const BOUND: usize = 64 << 20;
/// Memory of the store besides the build.
const STORE: usize = 8 << 20;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with counts of bytes.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator provides all memory and meets the contract; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    /// # Safety
    ///
    /// As for [`GlobalAlloc::alloc`].
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: the caller guarantees the layout.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    ///
    /// As for [`GlobalAlloc::dealloc`].
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer comes from `alloc`, and so from the system's allocator, with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

/// The greatest number of bytes that a task has in use at a time, in addition to those before.
fn peak_of<T>(task: impl FnOnce() -> T) -> (usize, T) {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = task();
    (PEAK.load(Ordering::Relaxed) - before, result)
}

/// Spreads numbers over all keys of 16 bytes.
fn key(number: u64) -> [u8; 16] {
    (u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)).to_be_bytes()
}

/// Eight runs that take more than the bound; the view is built after the second open.
#[test]
fn the_memory_of_building_a_view_is_bounded() {
    const COUNT: u64 = 640_000;
    let folder = tempfile::tempdir().unwrap();
    // The cache is for the sampled queries: blocks are mapped.
    let options = Options::default().workers(0).cache_bytes(4 << 20);
    let default_keyspace = KeyspaceOptions::default()
        .memtable_bytes(256 << 20)
        .level0_runs(64)
        .filters(Filters::none())
        .views(Views::Off);
    let db = Db::open_with(folder.path(), options.clone().default_keyspace(default_keyspace)).unwrap();
    for run in 0..8 {
        for number in (run..COUNT).step_by(8) {
            db.put(key(number), [run as u8; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let (peak, db) = peak_of(|| {
        let db = Db::open_with(folder.path(), options).unwrap();
        let keyspace = db.default_keyspace();
        keyspace.set_options(keyspace.options().views(Views::On)).unwrap();
        db
    });
    assert_eq!(db.statistics().views_built, 1);
    assert!(peak <= BOUND + STORE, "{peak} bytes");
}
