//! Clock, threads and listener of a life.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tamis::{Clock, Condvar, Event, EventListener, JoinHandle, MutexGuard, Spawner};

use super::Life;
use crate::schedule::Schedule;

/// The time since 1970 at which a simulation begins.
const EPOCH: Duration = Duration::from_secs(1_000_000_000);

/// The milliseconds since 1970 at a time of the schedule.
pub fn milliseconds(now: Duration) -> u64 {
    (EPOCH + now).as_millis() as u64
}

/// The clock of the schedule.
#[derive(Debug)]
pub struct SimClock(pub Arc<Schedule>);

impl Clock for SimClock {
    fn now(&self) -> Duration {
        self.0.point();
        self.0.now()
    }

    fn since_epoch(&self) -> Duration {
        EPOCH + self.0.now()
    }

    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        condition.wait_for(guard, timeout);
    }
}

/// Starts the threads of the store in the schedule.
pub struct SimSpawner {
    /// The schedule.
    pub schedule: Arc<Schedule>,
    /// Called on each thread before its work.
    pub prepare: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for SimSpawner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SimSpawner")
    }
}

/// A thread of the schedule. Dropping it waits for its end.
pub struct SimJoin {
    schedule: Arc<Schedule>,
    index: usize,
}

impl JoinHandle for SimJoin {}

impl Drop for SimJoin {
    fn drop(&mut self) {
        self.schedule.join(self.index);
    }
}

impl Spawner for SimSpawner {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn JoinHandle>> {
        let prepare = Arc::clone(&self.prepare);
        let index = self.schedule.spawn(name, move || {
            prepare();
            work();
        });
        Ok(Box::new(SimJoin { schedule: Arc::clone(&self.schedule), index }))
    }
}

/// Whether the events of stores and their file operations are printed.
pub static PRINTS_EVENTS: AtomicBool = AtomicBool::new(false);

/// Counts the events of a life, and panics if the world says so.
#[derive(Debug)]
pub struct SimListener(pub Arc<Life>);

impl EventListener for SimListener {
    fn on_event(&self, event: &Event) {
        let life = &self.0;
        life.coverage.note_event(event);
        let text = format!("{event:?}");
        life.schedule.record_bytes(text.as_bytes());
        if PRINTS_EVENTS.load(Ordering::Relaxed) {
            println!("{:?} {text}", life.schedule.now());
        }
        if life.listener_panics.swap(false, Ordering::Relaxed) {
            life.disturb();
            panic!("the listener of the simulation panics");
        }
    }
}
