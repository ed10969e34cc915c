//! The seam of a simulation: where threads may be switched, what was committed, and which fault is put in.
//!
//! A simulation installs its [`Hooks`] on each of its threads. On other threads nothing changes.

use std::{cell::RefCell, rc::Rc, sync::OnceLock, time::Duration};

/// The kind of a committed entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// The value of a key.
    Put,
    /// The delete of a key.
    Delete,
    /// The delete of all keys from the key of the entry to its value, excluded; without end if the value is empty.
    DeleteRange,
    /// An operand of the keyspace's merge operator.
    Merge,
    /// The value of a key until a time: 8 bytes, little-endian, before the value.
    PutUntil,
}

/// An entry of a batch, with its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedEntry<'a> {
    /// The number of the keyspace.
    pub keyspace: u32,
    /// Its sequence number.
    pub sequence: u64,
    /// The operation.
    pub kind: EntryKind,
    /// The key, or the lower bound of a range.
    pub key: &'a [u8],
    /// The value, or the upper bound of a range.
    pub value: &'a [u8],
}

/// The seam of a simulation.
pub trait Hooks {
    /// Another thread may run now.
    fn point(&self);
    /// This thread waits for another one in a loop: another thread should run now.
    fn pause(&self);
    /// This thread waits until `object` is notified, for at most `limit`. Other threads run meanwhile. Returns `false` after the limit.
    fn wait(&self, object: usize, limit: Option<Duration>) -> bool;
    /// Wakes one or all threads that wait for `object`.
    fn notify(&self, object: usize, all: bool);
    /// A background job of this name begins. A panic of the hook is a panic of the job.
    fn job(&self, name: &'static str);
    /// A batch has its sequence numbers and will be logged, or it is in memtables (`is_certain`) and becomes visible by the next call of
    /// [`Hooks::visible`]. One that is not certain may exist after a kill, a crash, or a failed sync of the log.
    fn committed(&self, batch: &[CommittedEntry<'_>], is_certain: bool);
    /// The tables of an ingest, which is named by its keyspace and its smallest key, will be installed at a sequence number, or are installed
    /// (`is_certain`).
    fn ingested(&self, ingest: (u32, &[u8]), sequence: u64, is_certain: bool);
    /// All entries up to this sequence number are visible.
    fn visible(&self, sequence: u64);
}

thread_local! {
    static HOOKS: RefCell<Option<Rc<dyn Hooks>>> = const { RefCell::new(None) };
}

/// Installs the hooks of this thread, or removes them.
pub fn install(hooks: Option<Rc<dyn Hooks>>) {
    HOOKS.set(hooks);
}

/// Calls the hooks of this thread, if it has any.
fn with(call: impl FnOnce(&dyn Hooks)) {
    // A thread that ends has no hooks any more.
    let _ = HOOKS.try_with(|hooks| {
        if let Some(hooks) = &*hooks.borrow() {
            call(&**hooks);
        }
    });
}

pub(crate) fn is_active() -> bool {
    HOOKS.try_with(|hooks| hooks.borrow().is_some()).unwrap_or(false)
}

pub(crate) fn point() {
    with(|hooks| hooks.point());
}

pub(crate) fn pause() {
    with(|hooks| hooks.pause());
}

pub(crate) fn wait(object: usize, limit: Option<Duration>) -> bool {
    let mut is_notified = true;
    with(|hooks| is_notified = hooks.wait(object, limit));
    is_notified
}

pub(crate) fn notify(object: usize, all: bool) {
    with(|hooks| hooks.notify(object, all));
}

pub(crate) fn job(name: &'static str) {
    with(|hooks| hooks.job(name));
}

pub(crate) fn ingested(ingest: (u32, &[u8]), sequence: u64, is_certain: bool) {
    with(|hooks| hooks.ingested(ingest, sequence, is_certain));
}

pub(crate) fn visible(sequence: u64) {
    with(|hooks| hooks.visible(sequence));
}

/// Reports a batch ([`Hooks::committed`]).
pub(crate) fn committed<'a>(batch: impl Iterator<Item = CommittedEntry<'a>>, is_certain: bool) {
    with(|hooks| hooks.committed(&batch.collect::<Vec<_>>(), is_certain));
}

static PUT_IN: OnceLock<String> = OnceLock::new();

/// Puts a fault into the store for the rest of the process, by its name in the source (`sim_fault!`). Only the first call counts.
pub fn put_in(name: &str) {
    let _ = PUT_IN.set(name.to_owned());
}

pub(crate) fn is_put_in(name: &str) -> bool {
    PUT_IN.get().is_some_and(|put_in| put_in == name)
}
