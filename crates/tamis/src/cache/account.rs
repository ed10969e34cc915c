//! Memory for indexes and filters: a share of the byte budget, apart from the blocks.
//!
//! A [`Kept`] value can be loaded again from its file. The [`Account`] decides which values stay in memory:
//!
//! 1. The values held never exceed the capacity together. None is refused for its size: one that does not fit is still given to
//!    the read that needs it, and reported once.
//! 2. What stays is decided by benefit per byte: how often a value was needed, in memory or not, divided by its bytes. A
//!    value takes the place of others only if each of them has less; a large scan over rarely used tables therefore
//!    pushes nothing out, and a value that becomes popular counts its needs until it comes in.
//! 3. Values of mapped files cost no memory of ours and take no part ([`Kept::fixed`]).
//!
//! Cost: a value in memory is one atomic load and a count without a bus lock (a lost count is no harm).

use std::{
    ops::Deref,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use crate::{
    error::Result,
    events::{Event, EventListener},
    metrics::Metrics,
};

/// At every how many needs of a value that is not held it is asked whether there is room now.
const RETRY_INTERVAL: u64 = 32;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Account {
    capacity_bytes: u64,
    used_bytes: AtomicU64,
    members: Mutex<Vec<Weak<dyn Member>>>,
    metrics: Arc<Metrics>,
    listener: Option<Arc<dyn EventListener>>,
}

/// A value that can be dropped.
trait Member: std::fmt::Debug + Send + Sync {
    fn uses(&self) -> u64;
    fn bytes(&self) -> u64;
    fn is_held(&self) -> bool;
    fn release(&self);
}

impl Account {
    pub(crate) fn new(
        capacity_bytes: u64,
        metrics: &Arc<Metrics>,
        listener: Option<Arc<dyn EventListener>>,
    ) -> Arc<Self> {
        let (used_bytes, metrics) = (AtomicU64::new(0), Arc::clone(metrics));
        Arc::new(Self { capacity_bytes, used_bytes, members: Mutex::default(), metrics, listener })
    }

    /// Bytes of the values that are held now.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// The members to be dropped so that `needed` bytes fit; `None` where that would cost more benefit than it gives.
    fn victims(&self, members: &[Weak<dyn Member>], uses: u64, needed: u64) -> Option<Vec<Arc<dyn Member>>> {
        let available = self.capacity_bytes.saturating_sub(self.used_bytes());
        let Some(mut missing) = needed.checked_sub(available).filter(|&missing| missing > 0) else {
            return Some(Vec::new());
        };
        if needed > self.capacity_bytes {
            return None;
        }
        let mut held: Vec<_> =
            members.iter().filter_map(Weak::upgrade).filter(|member| member.is_held()).collect();
        // a/b < c/d as a*d < c*b, exactly.
        let product = |left: u64, right: u64| u128::from(left) * u128::from(right);
        held.sort_by(|left, right| {
            product(left.uses(), right.bytes()).cmp(&product(right.uses(), left.bytes()))
        });
        let mut victims = Vec::new();
        for member in held {
            if missing == 0 {
                break;
            }
            if product(member.uses(), needed) >= product(uses, member.bytes()) {
                return None;
            }
            missing = missing.saturating_sub(member.bytes());
            victims.push(member);
        }
        (missing == 0).then_some(victims)
    }

    fn would_admit(&self, uses: u64, needed: u64) -> bool {
        self.victims(&self.members.lock(), uses, needed).is_some()
    }
}

/// A value that is held while the account has room for it, and loaded again otherwise.
#[derive(Debug)]
pub(crate) enum Kept<T> {
    Fixed(T),
    Counted(Arc<Counted<T>>),
}

/// A value with what the account needs to know of it.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    account: Arc<Account>,
    file: Arc<Path>,
    value: ArcSwapOption<T>,
    loading: Mutex<()>,
    bytes: AtomicU64,
    uses: AtomicU64,
    is_reported: AtomicBool,
}

/// A value, held for the time of one read.
#[derive(Debug)]
pub(crate) enum KeptRef<'a, T> {
    Fixed(&'a T),
    Guarded(Guard<Option<Arc<T>>>),
    Loaded(Arc<T>),
}

impl<T> Deref for KeptRef<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Fixed(value) => value,
            Self::Guarded(guard) => guard.as_ref().expect("only full slots are guarded"),
            Self::Loaded(value) => value,
        }
    }
}

impl<T: std::fmt::Debug + Send + Sync + 'static> Kept<T> {
    /// A value that always stays.
    pub(crate) const fn fixed(value: T) -> Self {
        Self::Fixed(value)
    }

    /// A value just loaded from `file`, of so many bytes.
    pub(crate) fn counted(account: &Arc<Account>, file: &Arc<Path>, value: T, bytes: u64) -> Self {
        let counted = Arc::new(Counted {
            account: Arc::clone(account),
            file: Arc::clone(file),
            value: ArcSwapOption::empty(),
            loading: Mutex::default(),
            bytes: AtomicU64::new(bytes),
            uses: AtomicU64::new(1),
            is_reported: AtomicBool::new(false),
        });
        let member: Weak<dyn Member> = Arc::downgrade(&(Arc::clone(&counted) as Arc<dyn Member>));
        account.members.lock().push(member);
        counted.admit(&Arc::new(value));
        Self::Counted(counted)
    }

    /// The value, loaded where it is not held.
    #[inline]
    pub(crate) fn get(&self, load: impl FnOnce() -> Result<T>) -> Result<KeptRef<'_, T>> {
        let counted = match self {
            Self::Fixed(value) => return Ok(KeptRef::Fixed(value)),
            Self::Counted(counted) => counted,
        };
        counted.count();
        match counted.held() {
            Some(guard) => Ok(KeptRef::Guarded(guard)),
            None => counted.load(load).map(KeptRef::Loaded),
        }
    }

    /// The value where it is held, or where there is room for it and it can be loaded. Asked for what a read can do without.
    #[inline]
    pub(crate) fn get_if_room(&self, load: impl FnOnce() -> Result<T>) -> Option<KeptRef<'_, T>> {
        let counted = match self {
            Self::Fixed(value) => return Some(KeptRef::Fixed(value)),
            Self::Counted(counted) => counted,
        };
        let uses = counted.count();
        if let Some(guard) = counted.held() {
            return Some(KeptRef::Guarded(guard));
        }
        let is_due = uses % RETRY_INTERVAL == 0;
        if !is_due || !counted.account.would_admit(uses, counted.bytes.load(Ordering::Relaxed)) {
            return None;
        }
        counted.load(load).ok().map(KeptRef::Loaded)
    }
}

impl<T: std::fmt::Debug + Send + Sync + 'static> Counted<T> {
    fn count(&self) -> u64 {
        let uses = self.uses.load(Ordering::Relaxed).saturating_add(1);
        self.uses.store(uses, Ordering::Relaxed);
        uses
    }

    #[inline]
    fn held(&self) -> Option<Guard<Option<Arc<T>>>> {
        let guard = self.value.load();
        guard.is_some().then_some(guard)
    }

    fn load(&self, load: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let _loading = self.loading.lock();
        if let Some(value) = self.value.load_full() {
            return Ok(value);
        }
        let value = Arc::new(load()?);
        self.admit(&value);
        Ok(value)
    }

    /// Keeps the value if the account has room; called by one thread at a time for each value.
    fn admit(&self, value: &Arc<T>) {
        let bytes = self.bytes();
        let mut members = self.account.members.lock();
        members.retain(|member| member.strong_count() > 0);
        if let Some(victims) = self.account.victims(&members, self.uses(), bytes) {
            victims.iter().for_each(|victim| victim.release());
            self.account.used_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.value.store(Some(Arc::clone(value)));
            return;
        }
        drop(members);
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            self.account.metrics.not_kept.add(1);
            if let Some(listener) = &self.account.listener {
                listener.on_event(&Event::NotKept { file: self.file.to_path_buf(), bytes });
            }
        }
    }
}

impl<T: std::fmt::Debug + Send + Sync> Member for Counted<T> {
    fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn is_held(&self) -> bool {
        self.value.load().is_some()
    }

    fn release(&self) {
        if self.value.swap(None).is_some() {
            self.account.used_bytes.fetch_sub(self.bytes(), Ordering::Relaxed);
        }
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if self.value.swap(None).is_some() {
            self.account.used_bytes.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
