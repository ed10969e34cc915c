//! Snapshots: read points of the whole database.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::Snapshot;
use tamis_bindings_common::{Code, Failure, fork::Guarded};

use crate::boundary::{call, clear, free_box, handle, put, quiet};

/// A consistent view of all keyspaces.
#[derive(Debug)]
pub struct SnapshotHandle(pub(crate) Guarded<Snapshot>);

/// The snapshot of a handle that may be null.
pub(crate) fn snapshot(snapshot: Option<&SnapshotHandle>) -> Result<Option<&Snapshot>, Failure> {
    snapshot.map(|snapshot| snapshot.0.get()).transpose()
}

/// Returns the sequence number of a snapshot: that of the newest write that it contains.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_snapshot_sequence(
    snapshot: Option<&SnapshotHandle>,
    mut sequence: Option<&mut MaybeUninit<u64>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut sequence);
    call(message, || put(sequence, "sequence", handle(snapshot, "snapshot")?.0.get()?.sequence()))
}

/// Frees a snapshot; compactions can then drop obsolete versions. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_snapshot_free(snapshot: *mut SnapshotHandle) {
    quiet(|| free_box(snapshot));
}
