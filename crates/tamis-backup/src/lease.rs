//! Leases: a prune never removes what another operation uses.
//!
//! Each operation writes its own lease, the object `leases/KIND-ID`, and then reads the others. So of two operations that begin at the
//! same time, at least one sees the other. Prunes exclude all other operations and are excluded by them; others run at the same time.
//!
//! - A *user* (backup, restore, verify) that sees a prune removes its own lease and waits: prunes have priority, so that a continuous backup
//!   does not exclude them.
//! - A prune that sees users keeps its lease and waits for them, which excludes new ones, up to a limit.
//! - A thread writes the lease again after each [`LeaseTimes::beat`]. A lease that did not change for [`LeaseTimes::expiry`] is of a killed
//!   process: the one who waits removes it. No clock of another machine is compared.
//! - A process that was suspended for longer finds its lease missing: [`Lease::check`]. A backup checks before and after it writes its
//!   manifest. A prune checks before each removal.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use tamis::{Clock as _, SystemClock};

use crate::{
    digest::random_id,
    error::{Error, Result},
    format::LEASES,
    target::{LeaseTimes, Target},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Needs that no object is removed.
    User,
    /// Removes objects.
    Prune,
}

impl Role {
    const fn prefix(self) -> &'static str {
        match self {
            Self::User => "use",
            Self::Prune => "prune",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::User => Self::Prune,
            Self::Prune => Self::User,
        }
    }
}

/// The lease of a running operation. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Lease {
    target: Target,
    name: String,
    is_lost: Arc<AtomicBool>,
    /// Dropping it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lease {
    /// Waits until no operation of the other role runs.
    pub(crate) fn acquire(target: &Target, role: Role, purpose: &str) -> Result<Self> {
        let name = format!("{LEASES}/{}-{}", role.prefix(), random_id());
        let clock = SystemClock::default();
        loop {
            let lease = Self::write(target, name.clone(), purpose)?;
            let mut others = Observed::default();
            while others.update(target, role.other(), clock.now())? {
                if role == Role::User {
                    break;
                }
                if clock.now() > target.times().patience {
                    return Err(others.busy(target));
                }
                pause(target.times().beat / 4);
            }
            if others.leases.is_empty() {
                return Ok(lease);
            }
            // Prunes have priority.
            drop(lease);
            while others.update(target, role.other(), clock.now())? {
                pause(target.times().beat / 4);
            }
        }
    }

    fn write(target: &Target, name: String, purpose: &str) -> Result<Self> {
        let purpose = purpose.to_owned();
        let content = move |beat| format!("{purpose} by process {}, beat {beat}\n", std::process::id());
        target.put(&name, content(0).as_bytes())?;
        let is_lost = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = channel();
        let (of_thread, own, lost) = (target.clone(), name.clone(), Arc::clone(&is_lost));
        let work = move || renew(&of_thread, &own, &stopped, &content, &lost);
        let thread = std::thread::Builder::new().name("tamis-lease".to_owned()).spawn(work);
        let thread = thread.map_err(|error| target.fail("renew", &name, error))?;
        Ok(Self { target: target.clone(), name, is_lost, stop: Some(stop), thread: Some(thread) })
    }

    /// # Errors
    /// [`Error::LeaseLost`] if another process has removed the lease.
    pub(crate) fn check(&self) -> Result<()> {
        let found = self.target.objects().length(&self.name);
        let found = found.map_err(|error| self.target.fail("read", &self.name, error))?;
        match found.is_none() || self.is_lost.load(Ordering::Relaxed) {
            true => Err(Error::LeaseLost { target: self.target.name().to_owned() }),
            false => Ok(()),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // A lease that stays expires.
        let _ = self.target.objects().remove(&self.name);
    }
}

/// The thread of a lease. It never writes a lease again that was removed: if the process was suspended between its check and its write, by any
/// clock, the lease counts as lost.
fn renew(
    target: &Target,
    name: &str,
    stopped: &Receiver<()>,
    content: &impl Fn(u64) -> String,
    is_lost: &AtomicBool,
) {
    let (objects, clock, mut number) = (target.objects(), SystemClock::default(), 0);
    let LeaseTimes { beat, expiry, .. } = *target.times();
    while stopped.recv_timeout(beat) == Err(RecvTimeoutError::Timeout) {
        number += 1;
        let times = [clock.now(), clock.since_epoch()];
        match objects.length(name) {
            Ok(None) => return is_lost.store(true, Ordering::Relaxed),
            // The next beat tries again.
            Ok(Some(_)) => drop(objects.put(name, content(number).as_bytes())),
            Err(_) => {}
        }
        let later = [clock.now(), clock.since_epoch()];
        if later.iter().zip(times).any(|(later, time)| later.saturating_sub(time) > expiry / 2) {
            return is_lost.store(true, Ordering::Relaxed);
        }
    }
}

/// The leases of a role with their contents, each since when it is the same.
#[derive(Default)]
struct Observed {
    leases: BTreeMap<String, (Vec<u8>, Duration)>,
}

impl Observed {
    /// Reads the leases, removes expired ones, and returns whether any remain.
    fn update(&mut self, target: &Target, role: Role, now: Duration) -> Result<bool> {
        let mut leases = BTreeMap::new();
        for name in target.list(LEASES)?.into_iter().map(|object| object.name) {
            let is_of_role = name
                .strip_prefix(LEASES)
                .is_some_and(|rest| rest.starts_with(&format!("/{}-", role.prefix())));
            if !is_of_role {
                continue;
            }
            let Some(content) = target.get(&name)? else { continue };
            let since = match self.leases.remove(&name) {
                Some((known, since)) if known == content => since,
                _ => now,
            };
            if now.saturating_sub(since) >= target.times().expiry {
                target.remove(&name)?;
            } else {
                leases.insert(name, (content, since));
            }
        }
        self.leases = leases;
        Ok(!self.leases.is_empty())
    }

    fn busy(&self, target: &Target) -> Error {
        let purposes = self.leases.values().map(|(content, _)| {
            let content = String::from_utf8_lossy(content);
            content
                .split_once(", beat")
                .map_or_else(|| "an operation".to_owned(), |(text, _)| text.to_owned())
        });
        Error::Busy { target: target.name().to_owned(), holders: purposes.collect::<Vec<_>>().join(", ") }
    }
}

/// Waits without work.
pub(crate) fn pause(time: Duration) {
    let (_open, never) = channel::<()>();
    let _ = never.recv_timeout(time);
}

/// A lease of a reader, which may be unable to write into the target: it runs without one then, and reports objects that are lost.
pub(crate) fn lease_if_writable(target: &Target, purpose: &str) -> Result<Option<Lease>> {
    target.require()?;
    match Lease::acquire(target, Role::User, purpose) {
        Ok(lease) => Ok(Some(lease)),
        Err(Error::Target { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
