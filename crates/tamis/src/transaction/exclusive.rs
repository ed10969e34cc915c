//! The threads that have used the open exclusive transaction: a write that one of them makes past the transaction would wait for itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{
    error::{Error, Result},
    sync::Mutex,
};

/// The number of the next thread.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static NUMBER: u64 = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
}

/// A number that no other thread has, before or after.
pub(crate) fn thread_number() -> u64 {
    NUMBER.with(|number| *number)
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveThreads {
    is_open: AtomicBool,
    threads: Mutex<Vec<u64>>,
}

impl ExclusiveThreads {
    /// Records that the calling thread uses the exclusive transaction.
    pub(crate) fn enter(&self) {
        let (mut threads, number) = (self.threads.lock(), thread_number());
        if !threads.contains(&number) {
            threads.push(number);
        }
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Records that the exclusive transaction has ended.
    pub(crate) fn end(&self) {
        self.threads.lock().clear();
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// # Errors
    /// [`Error::ExclusiveTransaction`] on a thread that has used it.
    #[inline]
    pub(crate) fn refuse(&self) -> Result<()> {
        if self.is_open.load(Ordering::Relaxed) { self.refuse_users() } else { Ok(()) }
    }

    #[cold]
    fn refuse_users(&self) -> Result<()> {
        let is_user = self.threads.lock().contains(&thread_number());
        if is_user { Err(Error::ExclusiveTransaction) } else { Ok(()) }
    }
}
