//! Locks and condition variables whose waits are decided by a simulation ([`crate::simulation`]).
//!
//! Of the threads of a simulation exactly one runs. A lock is tried; while another thread holds it, this thread waits in the simulation,
//! which lets others run. So no thread ever waits for real, and the simulation decides the order of all threads.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    time::Duration,
};

use crate::sync::hooks::{is_active, notify, point, wait};

/// The identity of an object on which threads wait.
fn address<T: ?Sized>(object: &T) -> usize {
    std::ptr::from_ref(object).addr()
}

/// Tries until it succeeds; another thread runs between two tries.
fn retry<R>(object: usize, mut attempt: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        wait(object, None);
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized>(parking_lot::Mutex<T>);

/// The access to the value of a locked [`Mutex`].
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a parking_lot::Mutex<T>,
    /// `None` during a wait.
    guard: Option<parking_lot::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    #[allow(dead_code, reason = "few users need it")]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        if !is_active() {
            return self.guarded(self.0.lock());
        }
        point();
        self.guarded(retry(address(&self.0), || self.0.try_lock()))
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().map(|guard| self.guarded(guard))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    const fn guarded<'a>(&'a self, guard: parking_lot::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { mutex: &self.0, guard: Some(guard) }
    }
}

impl<T: ?Sized> MutexGuard<'_, T> {
    /// Unlocks the value while `work` runs.
    pub fn unlocked<R>(guard: &mut Self, work: impl FnOnce() -> R) -> R {
        guard.unlock();
        let result = work();
        guard.relock();
        result
    }

    fn relock(&mut self) {
        let mutex = self.mutex;
        self.guard = Some(match is_active() {
            true => retry(address(mutex), || mutex.try_lock()),
            false => mutex.lock(),
        });
    }

    fn unlock(&mut self) {
        if self.guard.take().is_some() {
            notify(address(self.mutex), true);
        }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("a thread that waits does not use its guard")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("a thread that waits does not use its guard")
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// A condition on which no thread waits.
    pub const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
        notify(address(self), false);
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
        notify(address(self), true);
    }

    /// Waits until the condition is notified.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        let _ = self.wait_at_most(guard, None);
    }

    /// Waits until the condition is notified, for at most `timeout`.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        self.wait_at_most(guard, Some(timeout))
    }

    fn wait_at_most<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Option<Duration>,
    ) -> WaitTimeoutResult {
        if is_active() {
            guard.unlock();
            let is_notified = wait(address(self), timeout);
            guard.relock();
            return WaitTimeoutResult(!is_notified);
        }
        let Some(inner) = guard.guard.as_mut() else { return WaitTimeoutResult(false) };
        match timeout {
            Some(timeout) => WaitTimeoutResult(self.0.wait_for(inner, timeout).timed_out()),
            None => {
                self.0.wait(inner);
                WaitTimeoutResult(false)
            }
        }
    }
}

/// How a wait with a time limit has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the limit was reached.
    pub const fn timed_out(&self) -> bool {
        self.0
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T: ?Sized>(parking_lot::RwLock<T>);

/// Shared access to the value of an [`RwLock`].
pub(crate) struct RwLockReadGuard<'a, T> {
    guard: Option<parking_lot::RwLockReadGuard<'a, T>>,
    lock: usize,
}

/// Exclusive access to the value of an [`RwLock`].
pub(crate) struct RwLockWriteGuard<'a, T> {
    guard: Option<parking_lot::RwLockWriteGuard<'a, T>>,
    lock: usize,
}

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(parking_lot::RwLock::new(value))
    }

    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        let lock = address(&self.0);
        self.0.try_read().map(|guard| RwLockReadGuard { guard: Some(guard), lock })
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        let lock = address(&self.0);
        if !is_active() {
            return RwLockWriteGuard { guard: Some(self.0.write()), lock };
        }
        point();
        RwLockWriteGuard { guard: Some(retry(lock, || self.0.try_write())), lock }
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("it is taken by the drop only")
    }
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.guard.take());
        notify(self.lock, true);
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("it is taken by the drop only")
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("it is taken by the drop only")
    }
}

impl<T> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.guard.take());
        notify(self.lock, true);
    }
}

/// A pause in a loop that waits for another thread: another thread may run.
pub(crate) fn spin() {
    if is_active() {
        crate::sync::hooks::pause();
    } else {
        std::hint::spin_loop();
    }
}
