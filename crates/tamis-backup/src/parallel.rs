//! Several requests at the same time.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use crate::error::Result;

/// Requests at the same time. Each has a part in memory.
pub(crate) const REQUESTS: usize = 4;

/// Applies `work` to all items, several at the same time; returns the results in order, or the first error.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::new());
    let lock = || results.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..REQUESTS.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    lock().push((index, result));
                }
            });
        }
    });
    let mut results = std::mem::take(&mut *lock());
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests;
