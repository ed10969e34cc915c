//! The parts of the engine behind a Python object, with the checks that precede each use: the process owns them, the database is
//! open, the snapshot is not closed, the transaction has not ended.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tamis::{Db, KEY_LENGTH_MAX, Keyspace, Slice, Snapshot};
use tamis_bindings_common::{
    Code, Failure,
    fork::Guarded,
    scan::{Direction, Selection, scan},
    transaction::{AnyScan, SharedTransaction},
};

use crate::transaction::OpenTransaction;

/// Whether a database is closed; shared by all its objects.
pub(crate) type ClosedFlag = Arc<AtomicBool>;

/// A database and one of its keyspaces, now, at a snapshot or in a transaction.
#[derive(Debug)]
pub(crate) struct Handle {
    parts: Guarded<Parts>,
    is_closed: ClosedFlag,
    view: View,
}

/// The state that reads see.
#[derive(Debug)]
enum View {
    Current,
    /// `None`: it is closed.
    Snapshot(Mutex<Option<Guarded<Snapshot>>>),
    Transaction(Arc<OpenTransaction>),
}

/// The parts that all processes but the owner must leave alone.
#[derive(Debug, Clone)]
struct Parts {
    db: Db,
    keyspace: Keyspace,
}

/// Whether a key may be in a keyspace. A mapping has no other keys, and a question for one is no error.
#[inline]
const fn can_exist(key: &[u8]) -> bool {
    !key.is_empty() && key.len() <= KEY_LENGTH_MAX
}

/// The inputs of a read.
#[derive(Debug)]
pub(crate) struct ReadPoint<'a> {
    keyspace: &'a Keyspace,
    view: OpenView<'a>,
}

/// An open [`View`].
#[derive(Debug)]
enum OpenView<'a> {
    Current,
    Snapshot(Snapshot),
    Transaction(&'a SharedTransaction),
}

impl ReadPoint<'_> {
    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice>, Failure> {
        if !can_exist(key) {
            return Ok(None);
        }
        Ok(match &self.view {
            OpenView::Current => self.keyspace.get(key)?,
            OpenView::Snapshot(snapshot) => snapshot.get(self.keyspace, key)?,
            OpenView::Transaction(shared) => {
                shared.with(|transaction| Ok(transaction.get(self.keyspace, key)?))?
            }
        })
    }

    /// The values of keys at one point in time.
    pub(crate) fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Slice>>, Failure> {
        let read = |keys: &[&[u8]]| match &self.view {
            OpenView::Current => Ok(self.keyspace.multi_get(keys)?),
            OpenView::Snapshot(snapshot) => Ok(snapshot.multi_get(self.keyspace, keys)?),
            OpenView::Transaction(shared) => {
                shared.with(|transaction| Ok(transaction.multi_get(self.keyspace, keys)?))
            }
        };
        if keys.iter().all(|key| can_exist(key)) {
            return read(keys);
        }
        let possible: Vec<&[u8]> = keys.iter().copied().filter(|key| can_exist(key)).collect();
        let mut values = read(&possible)?.into_iter();
        Ok(keys.iter().map(|key| if can_exist(key) { values.next().flatten() } else { None }).collect())
    }

    /// A scan; it owns the state that it reads.
    pub(crate) fn scan(&self, selection: &Selection, direction: Direction) -> Result<AnyScan, Failure> {
        let scan = |snapshot| AnyScan::Store(scan(self.keyspace, snapshot, selection, direction));
        Ok(match &self.view {
            OpenView::Current => scan(None),
            OpenView::Snapshot(snapshot) => scan(Some(snapshot)),
            OpenView::Transaction(shared) => {
                AnyScan::Transaction(shared.scan(self.keyspace, selection, direction)?)
            }
        })
    }
}

impl Handle {
    /// A handle of the default keyspace.
    pub(crate) fn of_database(db: Db) -> Self {
        let keyspace = db.default_keyspace();
        let parts = Guarded::new(Parts { db, keyspace });
        Self { parts, is_closed: Arc::default(), view: View::Current }
    }

    /// A handle of another keyspace of the same database.
    pub(crate) fn with_keyspace(&self, keyspace: Keyspace) -> Result<Self, Failure> {
        let parts = Guarded::new(Parts { db: self.db()?.clone(), keyspace });
        Ok(Self { parts, is_closed: Arc::clone(&self.is_closed), view: View::Current })
    }

    /// A handle of the same keyspace at a snapshot.
    pub(crate) fn with_snapshot(&self, snapshot: Snapshot) -> Result<Self, Failure> {
        let copy = self.with_keyspace(self.keyspace()?.clone())?;
        Ok(Self { view: View::Snapshot(Mutex::new(Some(Guarded::new(snapshot)))), ..copy })
    }

    /// A handle of the same keyspace in a transaction.
    pub(crate) fn with_transaction(&self, transaction: Arc<OpenTransaction>) -> Result<Self, Failure> {
        let copy = self.with_keyspace(self.keyspace()?.clone())?;
        Ok(Self { view: View::Transaction(transaction), ..copy })
    }

    /// Whether both handles belong to one open database.
    pub(crate) fn is_of_same_database(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.is_closed, &other.is_closed)
    }

    /// The flag of its database.
    pub(crate) const fn closed_flag(&self) -> &ClosedFlag {
        &self.is_closed
    }

    /// Whether the database is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Whether this process opened the database.
    pub(crate) fn is_own(&self) -> bool {
        self.parts.is_own()
    }

    fn parts(&self) -> Result<&Parts, Failure> {
        let parts = self.parts.get()?;
        if self.is_closed() { Err(closed()) } else { Ok(parts) }
    }

    /// The open database.
    pub(crate) fn db(&self) -> Result<&Db, Failure> {
        Ok(&self.parts()?.db)
    }

    /// The keyspace, for writes.
    pub(crate) fn keyspace(&self) -> Result<&Keyspace, Failure> {
        Ok(&self.parts()?.keyspace)
    }

    /// The name of the keyspace; available after the close.
    pub(crate) fn name(&self) -> Result<&str, Failure> {
        Ok(self.parts.get()?.keyspace.name())
    }

    /// The keyspace, for reads.
    pub(crate) fn read_point(&self) -> Result<ReadPoint<'_>, Failure> {
        let keyspace = &self.parts()?.keyspace;
        let view = match &self.view {
            View::Current => OpenView::Current,
            View::Snapshot(snapshot) => OpenView::Snapshot(clone_open(snapshot)?),
            View::Transaction(transaction) => OpenView::Transaction(transaction.get()?),
        };
        Ok(ReadPoint { keyspace, view })
    }

    /// Whether reads see the current state: it is no snapshot and no transaction.
    pub(crate) const fn is_current(&self) -> bool {
        matches!(self.view, View::Current)
    }

    /// The snapshot, if it is one.
    pub(crate) fn snapshot(&self) -> Result<Option<Snapshot>, Failure> {
        match &self.view {
            View::Snapshot(snapshot) => clone_open(snapshot).map(Some),
            _ => Ok(None),
        }
    }

    /// Closes the snapshot.
    pub(crate) fn close_snapshot(&self) {
        if let View::Snapshot(snapshot) = &self.view {
            snapshot.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// Closes the database; a second call does nothing.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        let db = self.parts.get()?.db.clone();
        if self.is_closed.swap(true, Ordering::Relaxed) { Ok(()) } else { Ok(db.close()?) }
    }
}

fn clone_open(snapshot: &Mutex<Option<Guarded<Snapshot>>>) -> Result<Snapshot, Failure> {
    let snapshot = snapshot.lock().unwrap_or_else(PoisonError::into_inner);
    let open = snapshot.as_ref().ok_or_else(|| {
        Failure::new(Code::Closed, "the snapshot is closed; take another one with snapshot()")
    })?;
    Ok(open.get()?.clone())
}

/// The failure of calls after the close.
#[cold]
pub(crate) fn closed() -> Failure {
    Failure::new(Code::Closed, "the database is closed; open it again with tamis.open()")
}
