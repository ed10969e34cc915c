//! Explicit snapshots.

use std::sync::{Mutex, PoisonError};

use napi_derive::napi;

use crate::error::Fault;

/// A snapshot of a database, until it is closed.
#[napi]
#[derive(Debug)]
pub struct Snapshot(Mutex<Option<tamis::Snapshot>>);

impl Snapshot {
    pub(crate) const fn new(snapshot: tamis::Snapshot) -> Self {
        Self(Mutex::new(Some(snapshot)))
    }

    /// The snapshot of the engine.
    pub(crate) fn open(&self) -> Result<tamis::Snapshot, Fault> {
        let snapshot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        snapshot.clone().ok_or_else(|| {
            Fault::new("LEVEL_SNAPSHOT_NOT_OPEN", "Snapshot is not open: take another one with snapshot()")
        })
    }
}

#[napi]
impl Snapshot {
    /// Releases the snapshot; a second call does nothing.
    #[napi]
    pub fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
