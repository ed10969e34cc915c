//! The public handle of a transaction.

use std::{
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tamis_bits::mix64;
use tamis_vfs::fork::OwnedByProcess;

use super::{
    condition::Condition, exclusive::thread_number, own_writes::OwnWrites, reads::Reads,
    scan::TransactionScan, write_set::WriteSet,
};
use crate::{
    batch::WriteBatch,
    cursor::bounded::{Bounds, ScanRange, prefix_bounds, range_bounds},
    db::{Db, Keyspace, Snapshot, add_delete_range},
    error::{Error, Result},
    expiry,
    key::{Kind, check_key},
    key_range_bounds::KeyRangeBounds,
    options::Durability,
    read::{scan::Scan, scan_source::ScanPoint},
    slice::Slice,
    store::engine::Engine,
    sync::Mutex,
};

/// The number of the next savepoint of this process.
static NEXT_SAVEPOINT: AtomicU64 = AtomicU64::new(1);

/// How a transaction is isolated from the writes that others commit while it is open. It reads a snapshot in both cases, and its own writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// The keys that it has written must not have changed since its snapshot: the first of two transactions that write a key commits. Two transactions that read
    /// what the other one writes may both commit (write skew).
    Snapshot,
    /// The keys and ranges that it has read must not have changed since its snapshot, those without an entry included: all transactions have the result of some order,
    /// one after the other. The default.
    #[default]
    Serializable,
}

/// Options of a transaction ([`Db::transaction_with`]).
///
/// ```
/// use tamis::{Durability, Isolation, TransactionOptions};
///
/// let options = TransactionOptions::default().isolation(Isolation::Snapshot).durability(Durability::Synced);
/// assert_eq!(options.isolation, Isolation::Snapshot);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// Default: [`Isolation::Serializable`].
    pub isolation: Isolation,
    /// The failures that the commit survives. Default: [`Durability::Buffered`].
    pub durability: Durability,
}

impl TransactionOptions {
    /// Sets the isolation.
    #[must_use]
    pub const fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets the failures that the commit survives.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}

/// A place in a transaction to which its writes can be rolled back.
///
/// Its number is for languages without opaque types: no other savepoint of the process has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(pub u64);

/// The own writes of a transaction to a key.
enum Written {
    Nothing,
    /// They decide its value.
    Value(Option<Slice>),
    /// Older entries decide its value, too.
    InPart(OwnWrites),
}

/// The leadership of an exclusive transaction.
struct Exclusive(OwnedByProcess<Arc<Engine>>);

impl Drop for Exclusive {
    fn drop(&mut self) {
        if self.0.store.context.check_process().is_ok() {
            self.0.write_path.end_exclusive();
            self.0.write_path.run_inline();
        }
    }
}

/// While it exists, commits are kept for the condition of a transaction.
struct Opened(OwnedByProcess<Arc<Engine>>);

impl Opened {
    fn new(engine: &OwnedByProcess<Arc<Engine>>) -> Self {
        // A lock of another thread is held forever in a forked child, in which no transaction commits.
        if engine.store.context.check_process().is_ok() {
            engine.write_path.recent.begin();
        }
        Self(engine.clone())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.0.store.context.check_process().is_ok() {
            self.0.write_path.recent.end();
        }
    }
}

/// Reads and writes of all keyspaces that are committed together, or not at all. It sees the store as it was when it began, and its own writes.
/// Dropping it is a rollback.
///
/// [`Db::transaction`] begins an *optimistic* one: it keeps no other write waiting, and [`Transaction::commit`] returns [`Error::Conflict`] if another write has
/// changed what it has read. [`Db::transact`] runs it again then. [`Db::exclusive`] begins one that waits for its turn, while which no other write is committed.
///
/// Any thread may use it, also several at a time. A scan returns the entries as they were when it was created; writes may continue meanwhile.
///
/// While a transaction is open, its snapshot keeps the versions that it sees; its writes are in memory, up to [`crate::KeyspaceOptions::memtable_bytes`].
///
/// **Deadlocks** between the transactions of a store are impossible: an optimistic one holds no lock, and an exclusive one holds the only one there is and waits for background jobs only.
/// A thread that has used the open exclusive transaction and writes past it gets [`Error::ExclusiveTransaction`], instead of waiting for itself. While one is
/// open, do not wait for the write of another thread, nor for the exclusive transaction of a second store.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let db = tamis::Db::open(folder.path())?;
/// let accounts = db.default_keyspace();
/// accounts.put("ann", [5])?;
/// accounts.put("bob", [1])?;
/// let transaction = db.transaction();
/// let ann = transaction.get(&accounts, "ann")?.map_or(0, |value| value[0]);
/// let bob = transaction.get(&accounts, "bob")?.map_or(0, |value| value[0]);
/// transaction.put(&accounts, "ann", [ann - 3])?;
/// transaction.put(&accounts, "bob", [bob + 3])?;
/// transaction.commit()?;
/// assert_eq!(db.get("bob")?.as_deref(), Some([4].as_slice()));
/// # Ok(())
/// # }
/// ```
///
/// Cost: a lookup in its own writes for each read; at the commit usually a comparison with each write since the transaction began. If these are many, a lookup for each key that it has
/// read, and a walk through each range, in memtables and in tables that are newer than the transaction.
pub struct Transaction {
    _opened: Opened,
    /// Taken after the transaction is open.
    snapshot: Snapshot,
    options: TransactionOptions,
    writes: OwnedByProcess<Mutex<WriteSet>>,
    /// Shared with its scans.
    reads: Arc<Reads>,
    /// After the snapshot: it is dropped last.
    exclusive: Option<Exclusive>,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Transaction({})", self.snapshot.sequence())
    }
}

impl Transaction {
    fn new(
        engine: &OwnedByProcess<Arc<Engine>>,
        options: TransactionOptions,
        exclusive: Option<Exclusive>,
    ) -> Self {
        let reads = Arc::new(Reads::recorded(options.isolation == Isolation::Serializable));
        let opened = Opened::new(engine);
        Self {
            _opened: opened,
            snapshot: Snapshot::new(engine.clone()),
            options,
            writes: OwnedByProcess::new(Mutex::default()),
            reads,
            exclusive,
        }
    }

    /// Refuses a keyspace of another store; called first by each read and write.
    fn enter(&self, keyspace: &Keyspace) -> Result<()> {
        let engine = self.snapshot.engine();
        keyspace.check_of(engine)?;
        engine.store.context.check_open()?;
        if self.exclusive.is_some() {
            engine.write_path.note_exclusive();
        }
        keyspace.check()
    }

    /// The sequence number of the last write of others that it sees.
    pub fn sequence(&self) -> u64 {
        self.snapshot.sequence()
    }

    /// The value of a key. Cost as [`Keyspace::get`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        self.enter(keyspace)?;
        check_key(key)?;
        let own = match self.written(keyspace, key) {
            Written::Value(value) => return Ok(value),
            Written::InPart(own) => Some(own),
            Written::Nothing => None,
        };
        self.reads.add_keys(keyspace.id(), [key]);
        match own {
            Some(own) => {
                let engine = self.snapshot.engine();
                engine.read_path.get_with_own(
                    self.snapshot.state_of(keyspace),
                    &own,
                    key,
                    self.snapshot.point(),
                )
            }
            None => self.snapshot.get(keyspace, key),
        }
    }

    /// The own writes to a key.
    fn written(&self, keyspace: &Keyspace, key: &[u8]) -> Written {
        let writes = self.writes.lock();
        match writes.get(keyspace.id(), key) {
            None => Written::Nothing,
            Some((Kind::Put, value)) => Written::Value(Some(Slice::from(value))),
            Some((Kind::Tombstone | Kind::RangeTombstone, _)) => Written::Value(None),
            Some((Kind::ExpiringPut, stored)) => {
                Written::Value(expiry::live_value(stored, || self.snapshot.point().time).map(Slice::from))
            }
            Some((Kind::Operand, _)) => writes.of(keyspace.id()).map_or(Written::Nothing, Written::InPart),
        }
    }

    /// Whether a key exists. Cost as [`Keyspace::get`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn contains(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(keyspace, key)?.is_some())
    }

    /// The values of several keys, in their order.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; the first error ends the call.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Slice>>> {
        self.enter(keyspace)?;
        let keys: Vec<K> = keys.into_iter().collect();
        keys.iter().try_for_each(|key| check_key(key.as_ref()))?;
        let (mut values, mut others) = (vec![None; keys.len()], Vec::new());
        for (key, value) in keys.iter().zip(&mut values) {
            match self.written(keyspace, key.as_ref()) {
                Written::Value(found) => *value = found,
                Written::InPart(_) => *value = self.get(keyspace, key)?,
                Written::Nothing => others.push((key.as_ref(), value)),
            }
        }
        self.reads.add_keys(keyspace.id(), others.iter().map(|(key, _)| *key));
        let found = self.snapshot.multi_get(keyspace, others.iter().map(|(key, _)| *key))?;
        others.into_iter().zip(found).for_each(|((_, value), found)| *value = found);
        Ok(values)
    }

    /// All entries of a keyspace, in key order.
    pub fn iter(&self, keyspace: &Keyspace) -> TransactionScan<'_> {
        self.range(keyspace, ..)
    }

    /// The entries in `range`, in key order, as they are now. Of a range only the part that the scan has passed counts as read.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// let jobs = db.default_keyspace();
    /// jobs.put("job 1", "open")?;
    /// jobs.put("job 2", "open")?;
    /// // Takes the first job; another thread that takes it, too, gets a conflict.
    /// let job = db.transact(|transaction| {
    ///     let Some((key, _)) = transaction.first(&jobs)? else { return Ok::<_, tamis::Error>(None) };
    ///     transaction.delete(&jobs, &key)?;
    ///     Ok(Some(key))
    /// })?;
    /// assert_eq!(job.as_deref(), Some(b"job 1".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, keyspace: &Keyspace, range: impl KeyRangeBounds) -> TransactionScan<'_> {
        self.detached_range(keyspace, range)
    }

    /// The entries with keys that begin with `prefix`, in key order, as they are now.
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionScan<'_> {
        self.detached_prefix(keyspace, prefix)
    }

    /// As [`Transaction::range`], for languages without lifetimes: the compiler does not end the scan before the commit. So the program must drop it, or
    /// [`Transaction::commit`] fails.
    pub fn detached_range(
        &self,
        keyspace: &Keyspace,
        range: impl KeyRangeBounds,
    ) -> TransactionScan<'static> {
        let bounds = range_bounds(&range);
        self.scan(keyspace, ScanRange::Bounds(bounds.clone()), bounds)
    }

    /// As [`Transaction::prefix`]; see [`Transaction::detached_range`].
    pub fn detached_prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionScan<'static> {
        let prefix = prefix.as_ref();
        self.scan(keyspace, ScanRange::Prefix(prefix.to_vec()), prefix_bounds(prefix))
    }

    fn scan(&self, keyspace: &Keyspace, keys: ScanRange, bounds: Bounds) -> TransactionScan<'static> {
        if let Err(error) = self.enter(keyspace) {
            // It reads nothing.
            let unrecorded = Arc::new(Reads::recorded(false));
            return TransactionScan::new(&unrecorded, 0, Scan::new(Err(error)), bounds);
        }
        let point = ScanPoint { snapshot: self.snapshot.point(), own: self.own(keyspace) };
        let scan =
            self.snapshot.engine().read_path.scan_at(self.snapshot.state_of(keyspace), keys, |_| point);
        TransactionScan::new(&self.reads, keyspace.id(), scan, bounds)
    }

    /// The writes to a keyspace.
    fn own(&self, keyspace: &Keyspace) -> Option<OwnWrites> {
        self.writes.lock().of(keyspace.id())
    }

    /// The entry with the smallest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn first(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next().transpose()
    }

    /// The entry with the largest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn last(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next_back().transpose()
    }

    fn write(&self, keyspace: &Keyspace, add: impl FnOnce(&mut WriteBatch) -> Result<()>) -> Result<()> {
        self.enter(keyspace)?;
        let state: &Arc<_> = &keyspace.state;
        self.writes.lock().add(state, add)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`Error::KeyEmpty`], [`Error::KeyTooLong`], [`Error::ValueTooLong`]; [`Error::BatchTooLarge`] if all writes together do not fit into a memtable of the keyspace;
    /// [`Error::KeyspaceDropped`]; [`Error::InvalidArgument`] for a keyspace of another store. The transaction stays as it was.
    pub fn put(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(keyspace, |batch| keyspace.add_put(batch, key.as_ref(), value.as_ref()))
    }

    /// Sets the value of a key until a time. See [`Keyspace::put_until`]. With [`crate::KeyspaceOptions::expire_after`] puts get their age at the call, not at the commit.
    ///
    /// # Errors
    /// As [`Transaction::put`], and those of [`Keyspace::put_until`].
    pub fn put_until(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: SystemTime,
    ) -> Result<()> {
        self.write(keyspace, |batch| keyspace.add_put_until(batch, key.as_ref(), value.as_ref(), time))
    }

    /// Adds an operand to the value of a key. That is no read: with [`Isolation::Serializable`] two transactions that merge into one key do not conflict.
    /// It is a write: with [`Isolation::Snapshot`] they do. See
    /// [`Keyspace::merge`].
    ///
    /// # Errors
    /// As [`Transaction::put`], and those of [`Keyspace::merge`].
    pub fn merge(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.write(keyspace, |batch| keyspace.add_merge(batch, key.as_ref(), operand.as_ref()))
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(keyspace, |batch| batch.delete_in(keyspace.id(), key.as_ref()))
    }

    /// Deletes all keys of a range, including those that other writes put into it until the commit (with [`Isolation::Snapshot`] these are a conflict).
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete_range(&self, keyspace: &Keyspace, range: impl KeyRangeBounds) -> Result<()> {
        self.delete_bounds(keyspace, &range_bounds(&range))
    }

    /// Deletes all keys that begin with `prefix`. See [`Transaction::delete_range`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete_prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bounds(keyspace, &prefix_bounds(prefix.as_ref()))
    }

    fn delete_bounds(&self, keyspace: &Keyspace, bounds: &Bounds) -> Result<()> {
        self.write(keyspace, |batch| add_delete_range(batch, keyspace.id(), bounds))
    }

    /// Remembers the writes so far.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// let keyspace = db.default_keyspace();
    /// let transaction = db.transaction();
    /// transaction.put(&keyspace, "a", "1")?;
    /// let savepoint = transaction.savepoint();
    /// transaction.put(&keyspace, "b", "2")?;
    /// transaction.roll_back_to(savepoint)?;
    /// transaction.commit()?;
    /// assert_eq!(db.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn savepoint(&self) -> Savepoint {
        let number = NEXT_SAVEPOINT.fetch_add(1, Ordering::Relaxed);
        if !OwnedByProcess::is_owned(&self.writes) {
            return Savepoint(number);
        }
        self.writes.lock().set_savepoint(number);
        Savepoint(number)
    }

    /// Removes the writes since a savepoint, which can be returned to again. Later reads still count. Scans keep what they see.
    ///
    /// Cost: proportional to the writes that remain.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a savepoint of another transaction, or one that was made after a savepoint to which the transaction has returned.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        self.snapshot.engine().store.context.check_open()?;
        if self.writes.lock().roll_back_to(savepoint.0) {
            return Ok(());
        }
        let got = "one of another transaction, or one that was rolled back";
        Err(invalid("savepoint", got, "use a savepoint of this transaction"))
    }

    /// Writes all or nothing. A transaction without writes always succeeds: it has read one snapshot.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another write has changed what the transaction has read or written ([`Isolation`]): run it again ([`Db::transact`] does so). An exclusive
    /// transaction conflicts only with [`Db::ingest`]. [`Error::InvalidArgument`] while a detached scan exists, whose reads are not recorded yet. Otherwise as
    /// [`Db::write`]. After an error nothing was written.
    pub fn commit(mut self) -> Result<()> {
        let engine = self.snapshot.engine();
        engine.store.context.check_open()?;
        let writes = mem::take(&mut *self.writes.lock());
        let open_scan =
            || invalid("transaction", "one with an open scan", "drop its scans before the commit");
        let reads = Arc::get_mut(&mut self.reads).ok_or_else(open_scan)?;
        let ranges = reads.take().unwrap_or_else(|| writes.keys());
        let condition = Condition::new(self.snapshot.sequence(), ranges);
        let batch = writes.into_batch();
        if batch.is_empty() {
            return Ok(());
        }
        let durability = self.options.durability;
        match self.exclusive.take() {
            Some(_leadership) => engine.write_path.write_exclusive(batch, durability, condition),
            None => engine.write_path.write_if(batch, durability, condition),
        }
    }
}

#[cold]
fn invalid(what: &'static str, got: &str, expected: &str) -> Error {
    Error::InvalidArgument { what, got: got.to_owned(), expected: expected.to_owned() }
}

/// Attempts of [`Db::transact`] before it waits for its turn.
const OPTIMISTIC_ATTEMPTS: u32 = 8;

impl Db {
    /// Begins an optimistic transaction with default options.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::default())
    }

    /// Begins an optimistic transaction.
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        Transaction::new(&self.engine, options, None)
    }

    /// Begins an exclusive transaction: waits until no other write or transaction is being committed, and lets all others wait until it ends. Reads and ingests do not wait.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// let keyspace = db.default_keyspace();
    /// let transaction = db.exclusive()?;
    /// let count = transaction.iter(&keyspace).count();
    /// transaction.put(&keyspace, "count", [count as u8])?;
    /// assert!(matches!(db.put("other", ""), Err(tamis::Error::ExclusiveTransaction)), "it would wait for itself");
    /// transaction.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ExclusiveTransaction`] if this thread has one open; [`Error::ReadOnly`], [`Error::Closed`], [`Error::WritesRefused`].
    pub fn exclusive(&self) -> Result<Transaction> {
        self.exclusive_with(TransactionOptions::default())
    }

    /// As [`Db::exclusive`], with options. The isolation decides only which ingests are conflicts.
    ///
    /// # Errors
    /// As [`Db::exclusive`].
    pub fn exclusive_with(&self, options: TransactionOptions) -> Result<Transaction> {
        self.engine.write_path.begin_exclusive()?;
        let exclusive = Exclusive(self.engine.clone());
        Ok(Transaction::new(&self.engine, options, Some(exclusive)))
    }

    /// Runs `body` in a transaction and commits it; after a conflict again, the ninth time in an exclusive one, which has none. An error of `body` is a rollback. `body` must not write
    /// past the transaction: in an exclusive one that is an error.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// let keyspace = db.default_keyspace();
    /// let visitor = db.transact(|transaction| {
    ///     let count = transaction.get(&keyspace, "visitors")?.map_or(0, |value| value[0]);
    ///     transaction.put(&keyspace, "visitors", [count + 1])?;
    ///     Ok::<_, tamis::Error>(count + 1)
    /// })?;
    /// assert_eq!(visitor, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `body`; as [`Transaction::commit`], without conflicts except with an ingest.
    pub fn transact<T, E: From<Error>>(
        &self,
        body: impl FnMut(&Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transact_with(TransactionOptions::default(), body)
    }

    /// As [`Db::transact`], with options.
    ///
    /// # Errors
    /// As [`Db::transact`].
    pub fn transact_with<T, E: From<Error>>(
        &self,
        options: TransactionOptions,
        mut body: impl FnMut(&Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut attempt = 0;
        loop {
            let transaction = self.transaction_attempt(options, attempt)?;
            let result = body(&transaction)?;
            match transaction.commit() {
                Err(Error::Conflict { .. }) if attempt < OPTIMISTIC_ATTEMPTS => attempt += 1,
                committed => return committed.map(|()| result).map_err(E::from),
            }
        }
    }

    /// Begins the transaction of one attempt of [`Db::transact`], for loops that can't be a closure: the attempts are numbered from 0. The first one begins at once; after a conflict
    /// the next ones wait for a random time, and from the ninth one on they are exclusive.
    ///
    /// # Errors
    /// As [`Db::exclusive`].
    pub fn transaction_attempt(&self, options: TransactionOptions, attempt: u32) -> Result<Transaction> {
        if attempt >= OPTIMISTIC_ATTEMPTS {
            return self.exclusive_with(options);
        }
        if attempt > 0 {
            self.pause_after_conflict(attempt - 1);
        }
        Ok(self.transaction_with(options))
    }

    /// Waits for a random time before a transaction is run again, so that two that conflict do not meet again.
    fn pause_after_conflict(&self, conflicts_before: u32) {
        let store = &self.engine.store;
        // Nanoseconds after the first conflict; they double with each one.
        let longest = 20_000_u64 << conflicts_before;
        let seed = store.snapshots.visible() ^ thread_number();
        let nanoseconds = mix64(seed, u64::from(conflicts_before)) % longest;
        store.scheduler.wait_for_progress(&*store.context.runtime.clock, Duration::from_nanos(nanoseconds));
    }
}

impl Keyspace {
    /// Replaces the value of a key if it is the expected one, atomically; `None` is a key that does not exist. Returns whether it was.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// let keyspace = db.default_keyspace();
    /// assert!(keyspace.compare_and_put("lock", None, Some(b"ann"))?);
    /// assert!(!keyspace.compare_and_put("lock", None, Some(b"bob"))?);
    /// assert!(keyspace.compare_and_put("lock", Some(b"ann"), None)?);
    /// assert!(!keyspace.contains("lock")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: a read and a write; again for each other write of the key in between, without a limit: each of them is the progress of another thread.
    ///
    /// # Errors
    /// As [`Keyspace::get`] and [`Keyspace::put`].
    pub fn compare_and_put(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let key = key.as_ref();
        loop {
            let transaction = Transaction::new(&self.engine, TransactionOptions::default(), None);
            if transaction.get(self, key)?.as_deref() != expected {
                return Ok(false);
            }
            match new {
                Some(value) => transaction.put(self, key, value)?,
                None => transaction.delete(self, key)?,
            }
            match transaction.commit() {
                Err(Error::Conflict { .. }) => {}
                committed => return committed.map(|()| true),
            }
        }
    }
}
