//! A file system that injects faults according to rules.
//!
//! 1. Every [`Rule`] counts the operations that match it, starting when it is added. It also counts operations
//!    that another rule fails. So the same sequence of operations always gets the same faults. If several rules
//!    are due, the oldest one decides. The hooks of all due slow rules run before the operation and without a
//!    lock.
//! 2. After a failed sync of a handle, later syncs of that handle return `Ok` and do nothing (durability
//!    contract, point 4). With [`crate::MemVfs`] a simulated crash then exposes code that trusts the second
//!    sync.
//! 3. Reads through a mapping and querying the length of a file never fail.
//! 4. A file has a descriptor until its last handle is dropped. A mapped file needs one only while it is opened.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{Access, DirEntry, File, Lock, LockMode, Mapping, Operation, OperationKind, Vfs};

mod rule;
#[cfg(test)]
mod tests;

use rule::Decision;
pub use rule::{Fault, Rule};

/// Identifies a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleId(u64);

/// A wrapper over any file system that injects faults. Clones share rules and counters.
///
/// ```
/// use std::{io::ErrorKind, path::Path, sync::Arc};
/// use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};
///
/// let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
/// let log = vfs.create(Path::new("/000001.log"))?;
///
/// // The second sync of a log fails, once.
/// vfs.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Sync]).path(".log").nth(2));
/// assert!(log.sync().is_ok());
/// assert!(log.sync().is_err());
///
/// // The disk has space for three more bytes.
/// vfs.add_rule(Rule::disk_full(3));
/// assert_eq!(log.append(b"12345").unwrap_err().kind(), ErrorKind::StorageFull);
/// assert_eq!(vfs.read(Path::new("/000001.log"))?, b"123");
///
/// // A sweep: fail the n-th operation of any kind until a run has no fault.
/// vfs.clear_rules();
/// for n in 1.. {
///     let rule = vfs.add_rule(Rule::error(ErrorKind::Other).nth(n));
///     let _ = vfs.read(Path::new("/000001.log")); // the scenario: an open and a read
///     if vfs.hit_count(rule) == 0 {
///         assert_eq!(n, 3);
///         break;
///     }
///     vfs.remove_rule(rule);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Simulates a power loss immediately before the third operation. A hook takes a crash clone; the program
/// continues.
///
/// ```
/// use std::{path::Path, sync::{Arc, Mutex}};
/// use tamis_vfs::{FaultVfs, MemVfs, Rule, Vfs};
///
/// let memory = MemVfs::new();
/// let vfs = FaultVfs::new(Arc::new(memory.clone()));
/// let crashed = Arc::new(Mutex::new(None));
/// let target = Arc::clone(&crashed);
/// let seed = 7;
/// vfs.add_rule(Rule::slow(move |_| *target.lock().unwrap() = Some(memory.crash_clone(seed))).nth(3).times(1));
///
/// let file = vfs.create(Path::new("/CURRENT"))?; // 1
/// vfs.sync_dir(Path::new("/"))?; // 2
/// file.append(b"3")?; // 3
///
/// let after = crashed.lock().unwrap().take().expect("three operations were done");
/// assert_eq!(after.read(Path::new("/CURRENT"))?, b"");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FaultVfs {
    shared: Arc<Shared>,
    inner: Arc<dyn Vfs>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<ActiveRule>,
    rule_count: u64,
    operation_count: u64,
    fault_count: u64,
    descriptor_count: u64,
    descriptor_count_max: Option<u64>,
}

/// The descriptor of an open file.
#[derive(Debug)]
struct Descriptor(Arc<Shared>);

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.0.state.lock().descriptor_count -= 1;
    }
}

#[derive(Debug)]
struct ActiveRule {
    id: RuleId,
    rule: Rule,
    match_count: u64,
    hit_count: u64,
}

impl FaultVfs {
    /// Forwards all operations to `inner` until a rule is added.
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        Self { shared: Arc::default(), inner }
    }

    /// Adds a rule. It counts matching operations from now on.
    pub fn add_rule(&self, rule: Rule) -> RuleId {
        let mut state = self.shared.state.lock();
        state.rule_count += 1;
        let id = RuleId(state.rule_count);
        state.rules.push(ActiveRule { id, rule, match_count: 0, hit_count: 0 });
        id
    }

    /// Removes a rule. Removing it twice is not an error.
    pub fn remove_rule(&self, id: RuleId) {
        self.shared.state.lock().rules.retain(|active| active.id != id);
    }

    /// Removes all rules.
    pub fn clear_rules(&self) {
        self.shared.state.lock().rules.clear();
    }

    /// How many operations this rule has failed, shortened or delayed; 0 if it was removed.
    pub fn hit_count(&self, id: RuleId) -> u64 {
        let state = self.shared.state.lock();
        state.rules.iter().find(|active| active.id == id).map_or(0, |active| active.hit_count)
    }

    /// How many operations of all kinds were requested so far.
    pub fn operation_count(&self) -> u64 {
        self.shared.state.lock().operation_count
    }

    /// How many operations returned an injected error so far.
    pub fn fault_count(&self) -> u64 {
        self.shared.state.lock().fault_count
    }

    /// From now on at most this many files may have a descriptor at the same time, files that are open already included: to open or create
    /// another one fails, as in a process with this limit.
    pub fn limit_open_files(&self, count_max: u64) {
        self.shared.state.lock().descriptor_count_max = Some(count_max);
    }

    /// Opens a file, with a descriptor.
    fn open_by(
        &self,
        (kind, path): (OperationKind, &Path),
        open: impl FnOnce(&dyn Vfs) -> io::Result<Option<Arc<dyn File>>>,
    ) -> io::Result<Option<Arc<dyn File>>> {
        let shared = &self.shared;
        let opened = shared.run(Operation::new(kind, path), || {
            let descriptor = shared.take_descriptor()?;
            Ok(open(&*self.inner)?.map(|inner| (inner, descriptor)))
        })?;
        Ok(opened.map(|(inner, descriptor)| {
            let file: Arc<dyn File> = Arc::new(FaultFile {
                shared: Arc::clone(shared),
                _descriptor: inner.mapping().is_none().then_some(descriptor),
                inner,
                path: path.to_path_buf(),
                has_failed_sync: AtomicBool::new(false),
            });
            file
        }))
    }

    /// Creates or opens a file that must be there.
    fn open_one(
        &self,
        (kind, path): (OperationKind, &Path),
        open: impl FnOnce(&dyn Vfs) -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let file = self.open_by((kind, path), |inner| open(inner).map(Some))?;
        file.ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Shared {
    fn take_descriptor(self: &Arc<Self>) -> io::Result<Descriptor> {
        let mut state = self.state.lock();
        if state.descriptor_count_max.is_some_and(|count_max| state.descriptor_count >= count_max) {
            return Err(io::Error::other("too many open files"));
        }
        state.descriptor_count += 1;
        Ok(Descriptor(Arc::clone(self)))
    }

    /// Counts the operation and evaluates all rules.
    fn decide(&self, operation: &Operation) -> Decision {
        let mut hooks = Vec::new();
        let mut decision = Decision::Pass;
        let mut state = self.state.lock();
        state.operation_count += 1;
        for active in &mut state.rules {
            if !active.rule.matches(operation) {
                continue;
            }
            active.match_count += 1;
            if !active.rule.is_due(active.match_count) {
                continue;
            }
            if let Fault::Slow(hook) = &active.rule.fault {
                active.hit_count += 1;
                hooks.push(Arc::clone(hook));
            } else if matches!(decision, Decision::Pass) {
                decision = active.rule.fault.decide(operation);
                active.hit_count += u64::from(!matches!(decision, Decision::Pass));
            }
        }
        state.fault_count += u64::from(!matches!(decision, Decision::Pass));
        drop(state);
        for hook in hooks {
            hook(operation);
        }
        decision
    }

    fn run<T>(&self, operation: Operation, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.decide(&operation) {
            Decision::Pass => act(),
            Decision::Fail(error) | Decision::Short(_, error) => Err(injected(error, &operation)),
            Decision::FailAfter(error) => {
                act()?;
                Err(injected(error, &operation))
            }
        }
    }
}

fn injected(error: ErrorKind, operation: &Operation) -> io::Error {
    io::Error::new(error, format!("injected fault: {:?} of {}", operation.kind, operation.path.display()))
}

impl Vfs for FaultVfs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_one((OperationKind::Create, path), |inner| inner.create(path))
    }

    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_one((OperationKind::Create, path), |inner| inner.create_log(path))
    }

    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_one((OperationKind::Create, path), |inner| inner.create_direct(path))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_one((OperationKind::Create, path), |inner| inner.create_exclusive(path))
    }

    fn make_readable(&self, path: &Path) -> io::Result<()> {
        self.inner.make_readable(path)
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.shared.run(Operation::new(OperationKind::Lock, path), || self.inner.is_locked(path))
    }

    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        self.open_by((OperationKind::Reuse, path), |inner| inner.reuse_log(path))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.open_one((OperationKind::Open, path), |inner| inner.open(path, access))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        let operation = Operation::new(OperationKind::Rename, source).with_target(target);
        self.shared.run(operation, || self.inner.rename(source, target))
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        let operation = Operation::new(OperationKind::HardLink, source).with_target(target);
        self.shared.run(operation, || self.inner.hard_link(source, target))
    }

    fn clone_file(&self, source: &Path, target: &Path) -> io::Result<()> {
        let operation = Operation::new(OperationKind::Create, target);
        self.shared.run(operation, || self.inner.clone_file(source, target))
    }

    fn is_only_name(&self, path: &Path) -> io::Result<bool> {
        let operation = Operation::new(OperationKind::Exists, path);
        self.shared.run(operation, || self.inner.is_only_name(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let operation = Operation::new(OperationKind::Remove, path);
        self.shared.run(operation, || self.inner.remove(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let operation = Operation::new(OperationKind::CreateDir, path);
        self.shared.run(operation, || self.inner.create_dir_all(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let operation = Operation::new(OperationKind::List, path);
        self.shared.run(operation, || self.inner.list(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let operation = Operation::new(OperationKind::Exists, path);
        self.shared.run(operation, || self.inner.exists(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let operation = Operation::new(OperationKind::SyncDir, path);
        self.shared.run(operation, || self.inner.sync_dir(path))
    }

    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>> {
        let operation = Operation::new(OperationKind::OpenFolder, path);
        let inner = self.shared.run(operation, || self.inner.open_folder(path))?;
        Ok(Arc::new(Self { shared: Arc::clone(&self.shared), inner }))
    }

    fn check_folder(&self) -> io::Result<()> {
        self.inner.check_folder()
    }

    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool> {
        self.inner.is_within(path, folder)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>> {
        let operation = Operation::new(OperationKind::Lock, path);
        self.shared.run(operation, || self.inner.lock(path, mode))
    }

    fn free_space(&self, path: &Path) -> io::Result<Option<u64>> {
        let inner = self.inner.free_space(path)?;
        let state = self.shared.state.lock();
        let budgets = state.rules.iter().filter_map(|active| match active.rule.fault {
            Fault::DiskFull { free_bytes } => Some(free_bytes),
            _ => None,
        });
        Ok(budgets.chain(inner).min())
    }

    fn open_files_max(&self) -> Option<u64> {
        let limit = self.shared.state.lock().descriptor_count_max;
        self.inner.open_files_max().into_iter().chain(limit).min()
    }
}

#[derive(Debug)]
struct FaultFile {
    shared: Arc<Shared>,
    inner: Arc<dyn File>,
    /// `None` for a mapped file.
    _descriptor: Option<Descriptor>,
    path: PathBuf,
    has_failed_sync: AtomicBool,
}

impl File for FaultFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let operation = Operation::new(OperationKind::Read, &self.path).with_extent(offset, buffer.len());
        self.shared.run(operation, || self.inner.read_at(offset, buffer))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let offset = self.inner.length()?;
        let operation = Operation::new(OperationKind::Append, &self.path).with_extent(offset, bytes.len());
        match self.shared.decide(&operation) {
            Decision::Pass => self.inner.append(bytes),
            Decision::Fail(error) => Err(injected(error, &operation)),
            Decision::FailAfter(error) => {
                self.inner.append(bytes)?;
                Err(injected(error, &operation))
            }
            Decision::Short(written, error) => {
                let written = usize::try_from(written).unwrap_or(usize::MAX).min(bytes.len());
                self.inner.append(bytes.get(..written).unwrap_or_default())?;
                Err(injected(error, &operation))
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let operation = Operation::new(OperationKind::Sync, &self.path);
        let has_failed_sync = self.has_failed_sync.load(Ordering::Acquire);
        let result = self.shared.run(operation, || if has_failed_sync { Ok(()) } else { self.inner.sync() });
        if result.is_err() {
            self.has_failed_sync.store(true, Ordering::Release);
        }
        result
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let operation = Operation::new(OperationKind::Truncate, &self.path).with_extent(length, 0);
        self.shared.run(operation, || self.inner.truncate(length))
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.inner.mapping()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.inner.will_need(offset, length);
    }
}
