//! Readers of a store that another process writes, and the change feed.

use std::{
    collections::VecDeque,
    ffi::{c_char, c_void},
    mem::MaybeUninit,
    ops::ControlFlow,
    time::{Duration, UNIX_EPOCH},
};

use engine::{BatchWrite, Change, Changes, Position};
use tamis_bindings_common::{Code, Failure, fork::Guarded};

use crate::{
    boundary::{Exclusive, Outcome, call, clear, clear_pointer, free_box, handle, put, put_handle, quiet},
    database::{Database, database},
    value::Bytes,
};

/// Lets a database that is open read-only see all that was written before the call. Existing scans and snapshots do not change. It does
/// nothing in the process that writes.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_refresh(
    database: Option<&Database>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::database(database)?.refresh()?))
}

/// Like tamis_refresh, in a thread of the library, now and each time that an interval of at least a millisecond has passed, until the database is closed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_refresh_every(
    database: Option<&Database>,
    interval_ms: u64,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::database(database)?.refresh_every(Duration::from_millis(interval_ms))?))
}

/// Returns whether the database is open read-only.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_is_reader(
    database: Option<&Database>,
    mut is_reader: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut is_reader);
    call(message, || put(is_reader, "is_reader", self::database(database)?.is_reader()))
}

/// The kinds of changes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// `key` has the value `value`.
    Put = 0,
    /// `key` has the value `value` until `expires_at_ms`.
    PutUntil = 1,
    /// `value` is an operand of the keyspace's merge operator for `key`.
    Merge = 2,
    /// `key` was deleted.
    Delete = 3,
    /// The keys from `key` on, up to `value` (excluded), were deleted; without an end the `data` of `value` is NULL.
    DeleteRange = 4,
    /// Tables were ingested; tamis_changes_ingested reads their writes.
    Ingest = 5,
    /// The keyspace was created.
    KeyspaceCreated = 6,
    /// The keyspace was dropped, with all its entries.
    KeyspaceDropped = 7,
}

/// A write of a commit, or another change. Its bytes are valid until the next call with the feed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ChangeFields {
    /// A number of tamis_change_kind.
    pub kind: i32,
    /// Whether it is the last write of its commit. Other changes than writes are alone in their commit.
    pub is_last: bool,
    /// The sequence number of the last write of its commit: the position behind the commit.
    pub sequence: u64,
    /// The time of expiry of TAMIS_CHANGE_KIND_PUT_UNTIL in milliseconds since 1970, UTC; otherwise 0.
    pub expires_at_ms: u64,
    /// The name of the keyspace in UTF-8, without a zero byte at its end; empty if it was dropped before the feed has read an ingest.
    pub keyspace: Bytes,
    /// The key.
    pub key: Bytes,
    /// The value, the operand or the upper bound.
    pub value: Bytes,
}

impl Default for ChangeFields {
    fn default() -> Self {
        Self {
            kind: ChangeKind::Put as i32,
            is_last: false,
            sequence: 0,
            expires_at_ms: 0,
            keyspace: NONE,
            key: NONE,
            value: NONE,
        }
    }
}

const NONE: Bytes = Bytes { data: std::ptr::null(), length: 0 };

const fn borrowed(bytes: &[u8]) -> Bytes {
    Bytes { data: bytes.as_ptr(), length: bytes.len() }
}

impl ChangeFields {
    /// A change of a keyspace, which is alone in its commit.
    fn of_keyspace(kind: ChangeKind, name: &str, sequence: u64) -> Self {
        let keyspace = borrowed(name.as_bytes());
        Self { kind: kind as i32, is_last: true, sequence, keyspace, ..Self::default() }
    }

    /// A write; `None` for kinds that this version does not know.
    fn of_write(keyspace: &str, write: &BatchWrite<'_>, sequence: u64) -> Option<Self> {
        let mut expires_at_ms = 0;
        let (kind, key, value) = match *write {
            BatchWrite::Put { key, value } => (ChangeKind::Put, key, borrowed(value)),
            BatchWrite::PutUntil { key, value, time } => {
                let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
                expires_at_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
                (ChangeKind::PutUntil, key, borrowed(value))
            }
            BatchWrite::Merge { key, operand } => (ChangeKind::Merge, key, borrowed(operand)),
            BatchWrite::Delete { key } => (ChangeKind::Delete, key, NONE),
            BatchWrite::DeleteRange { lower, upper } => {
                (ChangeKind::DeleteRange, lower, upper.map_or(NONE, borrowed))
            }
            _ => return None,
        };
        let (keyspace, key) = (borrowed(keyspace.as_bytes()), borrowed(key));
        Some(Self { kind: kind as i32, is_last: false, sequence, expires_at_ms, keyspace, key, value })
    }

    /// All writes of a change. They borrow its bytes.
    fn all(change: &Change) -> VecDeque<Self> {
        let one = |kind, name: &str, sequence| VecDeque::from([Self::of_keyspace(kind, name, sequence)]);
        match change {
            Change::Batch(batch) => {
                let last = batch.last_sequence();
                let writes = batch.writes().filter_map(|(name, write)| Self::of_write(name, &write, last));
                let mut writes: VecDeque<_> = writes.collect();
                if let Some(write) = writes.back_mut() {
                    write.is_last = true;
                }
                writes
            }
            Change::Ingest(tables) => one(ChangeKind::Ingest, tables.keyspace(), tables.sequence()),
            Change::KeyspaceCreated { name, sequence } => one(ChangeKind::KeyspaceCreated, name, *sequence),
            Change::KeyspaceDropped { name, sequence } => one(ChangeKind::KeyspaceDropped, name, *sequence),
            _ => VecDeque::new(),
        }
    }
}

/// A change feed. One thread uses it at a time.
#[derive(Debug)]
pub struct ChangesHandle(Exclusive<Guarded<Feed>>);

#[derive(Debug)]
struct Feed {
    changes: Changes,
    /// The place behind the last commit that was returned with all its writes.
    position: u64,
    /// The change whose bytes the fields borrow.
    current: Option<Change>,
    pending: VecDeque<ChangeFields>,
}

impl Feed {
    fn next(&mut self, wait: Duration) -> Result<Option<ChangeFields>, Failure> {
        loop {
            if let Some(fields) = self.pending.pop_front() {
                if fields.is_last {
                    self.position = fields.sequence;
                }
                return Ok(Some(fields));
            }
            self.current = self.changes.next_within(wait)?;
            let Some(change) = &self.current else { return Ok(None) };
            self.pending = ChangeFields::all(change);
            if self.pending.is_empty() {
                self.position = change.position().sequence();
            }
        }
    }
}

fn with<R>(
    changes: Option<&ChangesHandle>,
    work: impl FnOnce(&mut Feed) -> Result<R, Failure>,
) -> Result<R, Failure> {
    handle(changes, "changes")?.0.with(|feed| work(feed.get_mut()?))
}

/// Opens a feed of the changes behind a position, in the order of the commits: 0, the sequence number of a snapshot, or a position that the program
/// has stored. TAMIS_CODE_CHANGES_LOST: the log no longer has the next change; read a snapshot, and open a feed at its sequence number. The
/// options keep_changes_bytes and keep_changes_seconds of the process that writes keep the log. Free it with tamis_changes_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_changes_open(
    database: Option<&Database>,
    position: u64,
    mut changes: Option<&mut MaybeUninit<*mut ChangesHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut changes);
    call(message, || {
        let feed = self::database(database)?.changes(Position::after(position))?;
        let feed = Feed { changes: feed, position, current: None, pending: VecDeque::new() };
        put_handle(changes, "changes", ChangesHandle(Exclusive::new(Guarded::new(feed))))
    })
}

/// Returns the next write or other change; waits for it for at most `wait_ms` milliseconds, 0: not at all. `has_change` is false if there is none yet.
/// The writes of a commit follow each other; those to keyspaces that were dropped before the feed has read the commit are left out.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_changes_next(
    changes: Option<&ChangesHandle>,
    wait_ms: u64,
    mut change: Option<&mut MaybeUninit<ChangeFields>>,
    mut has_change: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut change);
    clear(&mut has_change);
    call(message, || {
        if change.is_none() {
            return Err(crate::boundary::null("change"));
        }
        if has_change.is_none() {
            return Err(crate::boundary::null("has_change"));
        }
        let found = with(changes, |feed| feed.next(Duration::from_millis(wait_ms)))?;
        put(has_change, "has_change", found.is_some())?;
        put(change, "change", found.unwrap_or_default())
    })
}

/// Receives a write of an ingest, which is valid during the call. Returns whether it wants the next one. It must not throw or longjmp, and
/// must not use the feed.
pub type IngestedCallback = Option<extern "C" fn(context: *mut c_void, write: *const ChangeFields) -> bool>;

/// Calls a function with each write of the ingest that tamis_changes_next has returned last: range deletes first, then puts and deletes in
/// key order. Reads the tables, which stay as long as the log; TAMIS_CODE_CHANGES_LOST: a table was deleted.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_changes_ingested(
    changes: Option<&ChangesHandle>,
    callback: IngestedCallback,
    context: *mut c_void,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let callback = callback.ok_or_else(|| crate::boundary::null("callback"))?;
        with(changes, |feed| visit_ingested(feed, |write| callback(context, write)))
    })
}

fn visit_ingested(feed: &Feed, mut visit: impl FnMut(&ChangeFields) -> bool) -> Outcome {
    let Some(Change::Ingest(tables)) = &feed.current else {
        return Err(Failure::argument(
            "changes: the last change is no ingest; call this after a TAMIS_CHANGE_KIND_INGEST",
        ));
    };
    tables.for_each(|write| match ChangeFields::of_write(tables.keyspace(), &write, tables.sequence()) {
        Some(fields) if !visit(&fields) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })?;
    Ok(())
}

/// Returns the position behind the last commit that the feed has returned with all its writes. A program stores it with what it has done, and opens the next
/// feed there.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_changes_position(
    changes: Option<&ChangesHandle>,
    mut position: Option<&mut MaybeUninit<u64>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut position);
    call(message, || put(position, "position", with(changes, |feed| Ok(feed.position))?))
}

/// Frees a feed. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_changes_free(changes: *mut ChangesHandle) {
    quiet(|| free_box(changes));
}
