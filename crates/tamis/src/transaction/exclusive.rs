//! The thread that has an exclusive transaction open: a write that it makes past the transaction would wait for itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

thread_local! {
    /// Its address tells threads apart.
    static MARK: u8 = const { 0 };
}

/// A number that no other running thread has.
pub(crate) fn thread_number() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveThread(AtomicUsize);

impl ExclusiveThread {
    /// Records that the calling thread uses the exclusive transaction.
    pub(crate) fn enter(&self) {
        self.0.store(thread_number(), Ordering::Relaxed);
    }

    /// Records that the exclusive transaction has ended.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// # Errors
    /// [`Error::ExclusiveTransaction`] on the thread that has it.
    #[inline]
    pub(crate) fn refuse(&self) -> Result<()> {
        let thread = self.0.load(Ordering::Relaxed);
        if thread != 0 && thread == thread_number() { Err(Error::ExclusiveTransaction) } else { Ok(()) }
    }
}
