//! Memory for indexes and filters: a share of the byte budget, apart from the blocks.
//!
//! A [`Pinned`] value can be loaded again from its file. The [`PinnedCache`] decides which values stay in memory:
//!
//! 1. The values held never exceed the capacity together. None is refused for its size: one that does not fit is still given to
//!    the read that needs it, and reported once.
//! 2. What stays is decided by benefit per byte: how often a value was needed lately, in memory or not ([`Hotness`], one measure
//!    with one epoch for all), divided by its bytes. A value takes the place of others only if each of them has less; a large
//!    scan over rarely used tables therefore pushes nothing out, a value that becomes popular counts its needs until it comes
//!    in, and one that was popular once gives way as its needs fade.
//! 3. A part of a value that several parts share ([`Pinned::shared`]: a unit of an elastic filter) is worth its share of the
//!    lookups in vain of the whole; it takes the place of others only where it is worth clearly more, since loading costs a
//!    read.
//! 4. Values of mapped files cost no memory of ours and take no part ([`Pinned::fixed`]).
//!
//! Cost: a value in memory is one atomic load and a count without a bus lock (a lost count is no harm). To bring a value in is a pass
//! over all members, so that it is tried at every [`RETRY_INTERVAL`]th need only.

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

use super::hotness::{Epoch, Hotness};
use crate::{
    error::Result,
    events::{Event, EventListener},
    metrics::Metrics,
};

/// At every how many needs of a value that is not held it is asked whether there is room now.
const RETRY_INTERVAL: u64 = 32;

/// A share takes the place of others only where it is worth so many times as much for its bytes.
const HYSTERESIS: f64 = 1.5;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct PinnedCache {
    capacity_bytes: u64,
    epoch: Epoch,
    used_bytes: AtomicU64,
    members: Mutex<Vec<Weak<dyn Member>>>,
    metrics: Arc<Metrics>,
    listener: Option<Arc<dyn EventListener>>,
}

/// A value that can be dropped.
trait Member: std::fmt::Debug + Send + Sync {
    /// In needs.
    fn worth(&self) -> f64;
    fn bytes(&self) -> u64;
    fn is_held(&self) -> bool;
    fn release(&self);
}

impl PinnedCache {
    pub(crate) fn new(
        capacity_bytes: u64,
        metrics: &Arc<Metrics>,
        listener: Option<Arc<dyn EventListener>>,
    ) -> Arc<Self> {
        let (used_bytes, metrics) = (AtomicU64::new(0), Arc::clone(metrics));
        let (epoch, members) = (Epoch::default(), Mutex::default());
        Arc::new(Self { capacity_bytes, epoch, used_bytes, members, metrics, listener })
    }

    /// Bytes of the values that are held now.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// What hotness is counted by.
    pub(crate) const fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The members to be dropped so that `needed` bytes fit; `None` where that would cost more benefit than it gives.
    fn victims(&self, members: &[Weak<dyn Member>], worth: f64, needed: u64) -> Option<Vec<Arc<dyn Member>>> {
        let available = self.capacity_bytes.saturating_sub(self.used_bytes());
        let Some(mut missing) = needed.checked_sub(available).filter(|&missing| missing > 0) else {
            return Some(Vec::new());
        };
        if needed > self.capacity_bytes {
            return None;
        }
        let of_byte = |worth: f64, bytes: u64| worth / (bytes as f64).max(1.0);
        let offered = of_byte(worth, needed);
        let mut lesser: Vec<_> = members
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|member| member.is_held())
            .map(|member| (of_byte(member.worth(), member.bytes()), member))
            .filter(|(of_byte, _)| *of_byte < offered)
            .collect();
        lesser.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let mut victims = Vec::new();
        for (_, member) in lesser {
            if missing == 0 {
                break;
            }
            missing = missing.saturating_sub(member.bytes());
            victims.push(member);
        }
        (missing == 0).then_some(victims)
    }

    fn would_admit(&self, worth: f64, needed: u64) -> bool {
        self.victims(&self.members.lock(), worth, needed).is_some()
    }
}

/// A value that is held while the pinned cache has room for it, and loaded again otherwise.
#[derive(Debug)]
pub(crate) enum Pinned<T> {
    Fixed(T),
    Counted(Arc<Counted<T>>),
}

/// A value with what the pinned cache needs to know of it.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    pinned_cache: Arc<PinnedCache>,
    file: Arc<Path>,
    value: ArcSwapOption<T>,
    loading: Mutex<()>,
    bytes: AtomicU64,
    need: Need,
    is_reported: AtomicBool,
}

/// How much a value is needed.
#[derive(Debug)]
enum Need {
    /// As often as it is asked for.
    Own(Hotness),
    /// As much as it saves the whole; counted is how often the part was asked for.
    Share(Share, AtomicU64),
}

/// What a part of a whole is worth.
#[derive(Debug)]
pub(crate) struct Share {
    /// Of the whole: lookups in vain.
    pub(crate) hotness: Arc<Hotness>,
    /// How much of each lookup in vain the part saves.
    pub(crate) saved: f64,
}

/// A value, held for the time of one read.
#[derive(Debug)]
pub(crate) enum PinnedRef<'a, T> {
    Fixed(&'a T),
    Guarded(Guard<Option<Arc<T>>>),
    Loaded(Arc<T>),
}

impl<T> Deref for PinnedRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Fixed(value) => value,
            Self::Guarded(guard) => guard.as_ref().expect("only full slots are guarded"),
            Self::Loaded(value) => value,
        }
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for PinnedRef<'_, T> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        (**self).as_ref()
    }
}

impl<T: std::fmt::Debug + Send + Sync + 'static> Pinned<T> {
    /// A value that always stays.
    pub(crate) const fn fixed(value: T) -> Self {
        Self::Fixed(value)
    }

    /// A value just loaded from `file`, of so many bytes.
    pub(crate) fn counted(pinned_cache: &Arc<PinnedCache>, file: &Arc<Path>, value: T, bytes: u64) -> Self {
        let need = Hotness::default();
        need.set(1.0, pinned_cache.epoch.now());
        let counted = Counted::new(pinned_cache, file, bytes, Need::Own(need));
        counted.admit(&Arc::new(value));
        Self::Counted(counted)
    }

    /// A part of a value, of so many bytes, not loaded yet.
    pub(crate) fn shared(
        pinned_cache: &Arc<PinnedCache>,
        file: &Arc<Path>,
        share: Share,
        bytes: u64,
    ) -> Self {
        Self::Counted(Counted::new(pinned_cache, file, bytes, Need::Share(share, AtomicU64::new(1))))
    }

    /// The value where it always stays.
    #[inline]
    pub(crate) const fn as_fixed(&self) -> Option<&T> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Counted(_) => None,
        }
    }

    /// Whether the value is in memory.
    pub(crate) fn is_held(&self) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::Counted(counted) => counted.is_held(),
        }
    }

    /// The value where it is in memory. This is no need: for what is asked for in addition, or ahead of a need.
    #[inline]
    pub(crate) fn peek(&self) -> Option<PinnedRef<'_, T>> {
        match self {
            Self::Fixed(value) => Some(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted.held().map(PinnedRef::Guarded),
        }
    }

    /// The value, loaded now where there is room for it.
    pub(crate) fn get_if_room_now(&self, load: impl FnOnce() -> Result<T>) -> Option<PinnedRef<'_, T>> {
        match self {
            Self::Fixed(value) => Some(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted.load_if_room(load).map(PinnedRef::Loaded),
        }
    }

    /// The value, loaded where it is not held.
    #[inline]
    pub(crate) fn get(&self, load: impl FnOnce() -> Result<T>) -> Result<PinnedRef<'_, T>> {
        let counted = match self {
            Self::Fixed(value) => return Ok(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted,
        };
        counted.count();
        match counted.held() {
            Some(guard) => Ok(PinnedRef::Guarded(guard)),
            None => counted.load(load).map(PinnedRef::Loaded),
        }
    }

    /// The value where it is held, or where there is room for it and it can be loaded. Asked for what a read can do without.
    #[inline]
    pub(crate) fn get_if_room(&self, load: impl FnOnce() -> Result<T>) -> Option<PinnedRef<'_, T>> {
        let counted = match self {
            Self::Fixed(value) => return Some(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted,
        };
        let count = counted.count();
        if let Some(guard) = counted.held() {
            return Some(PinnedRef::Guarded(guard));
        }
        let is_due = count.is_multiple_of(RETRY_INTERVAL);
        if is_due { counted.load_if_room(load).map(PinnedRef::Loaded) } else { None }
    }
}

impl<T: std::fmt::Debug + Send + Sync + 'static> Counted<T> {
    /// A value that is not in memory yet, known to the pinned cache.
    fn new(pinned_cache: &Arc<PinnedCache>, file: &Arc<Path>, bytes: u64, need: Need) -> Arc<Self> {
        let counted = Arc::new(Self {
            pinned_cache: Arc::clone(pinned_cache),
            file: Arc::clone(file),
            value: ArcSwapOption::empty(),
            loading: Mutex::default(),
            bytes: AtomicU64::new(bytes),
            need,
            is_reported: AtomicBool::new(false),
        });
        let member: Weak<dyn Member> = Arc::downgrade(&(Arc::clone(&counted) as Arc<dyn Member>));
        pinned_cache.members.lock().push(member);
        counted
    }

    /// What it offers for its place.
    fn bid(&self) -> f64 {
        match &self.need {
            Need::Own(_) => self.worth(),
            Need::Share(..) => self.worth() / HYSTERESIS,
        }
    }

    fn load_if_room(&self, load: impl FnOnce() -> Result<T>) -> Option<Arc<T>> {
        if !self.pinned_cache.would_admit(self.bid(), self.bytes()) {
            return None;
        }
        self.load(load).ok()
    }

    /// Counts a need; tells how many there were.
    #[inline]
    fn count(&self) -> u64 {
        match &self.need {
            Need::Own(hotness) => hotness.note(&self.pinned_cache.epoch),
            Need::Share(_, count) => {
                let next = count.load(Ordering::Relaxed) + 1;
                count.store(next, Ordering::Relaxed);
                next
            }
        }
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

    /// Keeps the value if the pinned cache has room; called by one thread at a time for each value.
    fn admit(&self, value: &Arc<T>) {
        let bytes = self.bytes();
        let mut members = self.pinned_cache.members.lock();
        members.retain(|member| member.strong_count() > 0);
        if let Some(victims) = self.pinned_cache.victims(&members, self.bid(), bytes) {
            victims.iter().for_each(|victim| victim.release());
            self.pinned_cache.used_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.value.store(Some(Arc::clone(value)));
            return;
        }
        drop(members);
        // Of parts some are meant to stay on disk.
        if matches!(self.need, Need::Own(_)) && !self.is_reported.swap(true, Ordering::Relaxed) {
            self.pinned_cache.metrics.cache_too_small.add(1);
            if let Some(listener) = &self.pinned_cache.listener {
                listener.on_event(&Event::CacheTooSmall { file: self.file.to_path_buf(), bytes });
            }
        }
    }
}

impl<T: std::fmt::Debug + Send + Sync> Member for Counted<T> {
    fn worth(&self) -> f64 {
        let now = self.pinned_cache.epoch.now();
        match &self.need {
            Need::Own(hotness) => hotness.at(now),
            Need::Share(share, _) => share.hotness.at(now) * share.saved,
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn is_held(&self) -> bool {
        self.value.load().is_some()
    }

    fn release(&self) {
        if self.value.swap(None).is_some() {
            self.pinned_cache.used_bytes.fetch_sub(self.bytes(), Ordering::Relaxed);
        }
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if self.value.swap(None).is_some() {
            self.pinned_cache.used_bytes.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
