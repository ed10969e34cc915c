//! Transactions for languages without lifetimes: several threads share one, and one of them ends it.
//!
//! The end also ends its scans: what they have passed is recorded before the commit, and later calls of transaction and scans fail with
//! [`Code::TransactionEnded`]. Calls hold a shared lock, for which the end waits; the commit itself holds none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};

use tamis::{Isolation, Keyspace, Scan, Transaction, TransactionScan};

use crate::{
    Code, Failure,
    columns::{ChunkLimit, Columns, Filled, Parts},
    scan::{Direction, Selection, Steps, borrow},
};

/// A scan until its transaction ends.
type ScanSlot = Mutex<Option<TransactionScan<'static>>>;

/// A transaction and its scans. Dropping it rolls it back.
#[derive(Debug)]
pub struct SharedTransaction {
    /// `None`: it has ended.
    open: RwLock<Option<Transaction>>,
    scans: Mutex<Vec<Weak<ScanSlot>>>,
}

impl Drop for SharedTransaction {
    fn drop(&mut self) {
        drop(self.end());
    }
}

impl SharedTransaction {
    /// Shares an open transaction.
    pub fn new(transaction: Transaction) -> Self {
        Self { open: RwLock::new(Some(transaction)), scans: Mutex::default() }
    }

    fn open(&self) -> RwLockReadGuard<'_, Option<Transaction>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.open().is_some()
    }

    /// Runs `work` with the transaction.
    ///
    /// # Errors
    /// [`Code::TransactionEnded`]; those of `work`.
    pub fn with<R>(&self, work: impl FnOnce(&Transaction) -> Result<R, Failure>) -> Result<R, Failure> {
        work(self.open().as_ref().ok_or_else(ended)?)
    }

    /// Creates a scan, positioned at the start of its direction.
    ///
    /// # Errors
    /// [`Code::TransactionEnded`].
    pub fn scan(
        &self,
        keyspace: &Keyspace,
        selection: &Selection,
        direction: Direction,
    ) -> Result<SharedScan, Failure> {
        self.with(|transaction| {
            let mut scan = match selection {
                Selection::Range(lower, upper) => {
                    transaction.detached_range(keyspace, (borrow(lower), borrow(upper)))
                }
                Selection::Prefix(prefix) => transaction.detached_prefix(keyspace, prefix),
            };
            if direction == Direction::Backward {
                scan.seek_to_last();
            }
            let scan = Arc::new(Mutex::new(Some(scan)));
            let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
            // The list is as long as twice the number of open scans at most.
            if scans.len() == scans.capacity() {
                scans.retain(|scan| scan.strong_count() > 0);
            }
            scans.push(Arc::downgrade(&scan));
            Ok(SharedScan(scan))
        })
    }

    /// Commits it. It has ended afterwards, whether the commit succeeded or not.
    ///
    /// # Errors
    /// [`Code::TransactionEnded`]; as [`Transaction::commit`].
    pub fn commit(&self) -> Result<(), Failure> {
        Ok(self.end().ok_or_else(ended)?.commit()?)
    }

    /// Ends it and its scans; a transaction that is dropped is rolled back. `None` if it has ended before.
    pub fn end(&self) -> Option<Transaction> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let scans = std::mem::take(&mut *self.scans.lock().unwrap_or_else(PoisonError::into_inner));
        for scan in scans.iter().filter_map(Weak::upgrade) {
            scan.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        open.take()
    }
}

/// A scan of a transaction, until the transaction ends.
#[derive(Debug)]
pub struct SharedScan(Arc<ScanSlot>);

impl Drop for SharedScan {
    fn drop(&mut self) {
        // While the end of the transaction still finds the scan, and waits for it.
        drop(self.lock().take());
    }
}

impl SharedScan {
    fn lock(&self) -> MutexGuard<'_, Option<TransactionScan<'static>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scan of the store or of a transaction.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most scans are of the store; a box would cost each an allocation"
)]
pub enum AnyScan {
    /// Of a keyspace or a snapshot.
    Store(Scan),
    /// Of a transaction.
    Transaction(SharedScan),
}

impl AnyScan {
    /// Runs `work` with the scan.
    ///
    /// # Errors
    /// [`Code::TransactionEnded`]; those of `work`.
    pub fn with<R>(&mut self, work: impl FnOnce(&mut dyn Steps) -> Result<R, Failure>) -> Result<R, Failure> {
        match self {
            Self::Store(scan) => work(scan),
            Self::Transaction(scan) => work(scan.lock().as_mut().ok_or_else(ended)?),
        }
    }

    /// Appends the next entries to columns; see [`Columns::fill`].
    ///
    /// # Errors
    /// As [`AnyScan::with`] and [`Columns::fill`].
    pub fn fill(
        &mut self,
        columns: &mut Columns,
        direction: Direction,
        parts: Parts,
        limit: ChunkLimit,
    ) -> Result<Filled, Failure> {
        Ok(match self {
            Self::Store(scan) => columns.fill(scan, direction, parts, limit)?,
            Self::Transaction(scan) => {
                columns.fill(scan.lock().as_mut().ok_or_else(ended)?, direction, parts, limit)?
            }
        })
    }

    /// # Errors
    /// [`Code::TransactionEnded`] after the end of its transaction.
    pub fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Transaction(scan) if scan.lock().is_none() => Err(ended()),
            _ => Ok(()),
        }
    }
}

/// The isolation of a name.
///
/// # Errors
/// [`Code::InvalidArgument`] with the valid names.
pub fn isolation(name: &str) -> Result<Isolation, Failure> {
    match name {
        "serializable" => Ok(Isolation::Serializable),
        "snapshot" => Ok(Isolation::Snapshot),
        _ => {
            Err(Failure::argument(format!("isolation: {name:?} is not valid; give serializable or snapshot")))
        }
    }
}

/// The failure of calls after the end of their transaction.
#[cold]
pub fn ended() -> Failure {
    Failure::new(Code::TransactionEnded, "the transaction has ended; begin another one")
}
