//! Snapshots: read points of the whole database.

use engine::Snapshot;
use tamis_bindings_common::{Failure, fork::Guarded};

use crate::boundary::{free_box, quiet};

/// A consistent view of all keyspaces.
#[derive(Debug)]
pub struct SnapshotHandle(pub(crate) Guarded<Snapshot>);

/// The snapshot of a handle that may be null.
pub(crate) fn snapshot(snapshot: Option<&SnapshotHandle>) -> Result<Option<&Snapshot>, Failure> {
    snapshot.map(|snapshot| snapshot.0.get()).transpose()
}

/// Frees a snapshot; compactions can then drop obsolete versions. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_snapshot_free(snapshot: *mut SnapshotHandle) {
    quiet(|| free_box(snapshot));
}
