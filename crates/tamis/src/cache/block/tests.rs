//! The block cache stays within its budget and caches what fits.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::error::Error;

fn block(length: usize) -> CachedBlock {
    CachedBlock { bytes: vec![7; length].into(), start: 16, length: length as u32 - 16 }
}

#[test]
fn a_block_is_loaded_once_and_an_error_is_not_cached() {
    let cache = BlockCache::new(1 << 20);
    assert!(cache.get_or_load(1, 0, || Err(Error::Closed)).is_err());
    assert_eq!(cache.get_or_load(1, 0, || Ok(block(4096))).unwrap().content().len(), 4080);
    let again = cache.get_or_load(1, 0, || panic!("loaded twice"));
    assert_eq!(again.unwrap().content().len(), 4080);
    assert!(cache.get(1, 4096).is_none() && cache.get(2, 0).is_none());
}

#[test]
fn the_cache_stays_within_its_budget_and_returns_blocks_that_do_not_fit() {
    let cache = BlockCache::new(1 << 20);
    for offset in 0..1000 {
        cache.get_or_load(1, offset * 4096, || Ok(block(4096))).unwrap();
        assert!(cache.bytes() <= 1 << 20);
    }
    assert!(cache.bytes() > 900 << 10, "most of the budget is used: {}", cache.bytes());
    assert_eq!(cache.get_or_load(2, 0, || Ok(block(2 << 20))).unwrap().bytes.len(), 2 << 20);
    assert!(cache.bytes() <= 1 << 20);
}

#[test]
fn a_block_of_several_mib_fits_a_large_cache() {
    let cache = BlockCache::new(256 << 20);
    cache.get_or_load(3, 0, || Ok(block(7 << 20))).unwrap();
    assert!(cache.get(3, 0).is_some());
}
