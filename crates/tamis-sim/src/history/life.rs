//! The threads of one life: its clients, and the world, which makes its steps between theirs.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tamis_vfs::Rule;

use super::{History, Segment};
use crate::{
    client::{Client, Judgement},
    ops::{End, Event, Op},
    store::{Mode, Store, install_hooks},
    world::{FOLDER, Life},
};

/// The progress of the clients of a life, on which the world waits.
struct Progress {
    made: AtomicUsize,
    running: AtomicUsize,
}

impl History {
    /// Lets clients and world make their steps, each in its own thread.
    pub(super) fn run_clients(&self, segment: &Segment<'_>, store: &Arc<Store>) {
        let shared = &self.shared;
        let count = shared.profile.client_count;
        let progress = Arc::new(Progress { made: AtomicUsize::new(0), running: AtomicUsize::new(count) });
        let mut threads = Vec::new();
        let mut world = Vec::new();
        let mut before = 0;
        for step in segment.steps {
            match &step.op {
                Op::World(event) => world.push((before, event.clone())),
                Op::Reopen(..) => {}
                _ => before += 1,
            }
        }
        for id in 1..=count {
            let steps: Vec<Op> =
                segment.steps.iter().filter(|step| step.client == id).map(|step| step.op.clone()).collect();
            let (store, progress, done) = (Arc::clone(store), Arc::clone(&progress), Arc::clone(&self.done));
            threads.push(shared.schedule.spawn(&format!("client {id}"), move || {
                install_hooks(&store.shared, &store.life, Mode::Observe);
                run_client(id, &store, &steps, &progress, &done);
            }));
        }
        let end = segment.end;
        if !world.is_empty() || is_during_steps(end) {
            let end_at = shared.schedule.below(before as u64 + 1) as usize;
            let (store, progress) = (Arc::clone(store), Arc::clone(&progress));
            threads.push(
                shared.schedule.spawn("world", move || run_world(&store, &world, (end, end_at), &progress)),
            );
        }
        threads.into_iter().for_each(|thread| shared.schedule.join(thread));
    }
}

fn run_client(id: usize, store: &Arc<Store>, steps: &[Op], progress: &Progress, done: &AtomicUsize) {
    let schedule = &store.shared.schedule;
    let mut client = Client::new(id, store);
    for op in steps {
        if store.life.is_off() || schedule.has_failed() {
            break;
        }
        let verdict = client.step(op);
        fail_if(store, verdict);
        schedule.note_progress();
        done.fetch_add(1, Ordering::Relaxed);
        progress.made.fetch_add(1, Ordering::Relaxed);
        schedule.notify(std::ptr::from_ref(progress).addr(), true);
    }
    client.finish();
    drop(client);
    progress.running.fetch_sub(1, Ordering::Relaxed);
    schedule.notify(std::ptr::from_ref(progress).addr(), true);
}

fn fail_if(store: &Store, verdict: Judgement) {
    if let Err(message) = verdict
        && !store.life.is_off()
    {
        store.shared.schedule.fail(message);
    }
}

fn run_world(store: &Store, events: &[(usize, Event)], (end, end_at): (End, usize), progress: &Progress) {
    let (schedule, life) = (&store.shared.schedule, &store.life);
    install_hooks(&store.shared, life, Mode::Observe);
    let wait_until = |made: usize| {
        while progress.made.load(Ordering::Relaxed) < made && progress.running.load(Ordering::Relaxed) > 0 {
            schedule.wait(std::ptr::from_ref(progress).addr(), None);
        }
    };
    let is_cut = is_during_steps(end);
    for (at, event) in events.iter().filter(|(at, _)| !is_cut || *at <= end_at) {
        wait_until(*at);
        if progress.running.load(Ordering::Relaxed) == 0 || schedule.has_failed() {
            break;
        }
        apply(life, event);
    }
    if is_cut {
        wait_until(end_at);
        match end {
            End::Crash(seed) => life.crash(seed),
            End::CloseEarly => close_early(store),
            _ => life.turn_off(),
        }
    }
}

/// Whether the world ends the life while clients make steps.
const fn is_during_steps(end: End) -> bool {
    matches!(end, End::CloseEarly | End::Kill | End::Crash(_))
}

/// Closes the store while clients use it. The entries that were visible when the close began are durable when it has returned.
fn close_early(store: &Store) {
    let (shared, life) = (&store.shared, &store.life);
    let visible = shared.model.lock().visible();
    life.begin_close();
    let result = store.db.clone().close();
    life.end_close();
    match result {
        Ok(()) if store.is_read_only => {}
        Ok(()) => shared.model.lock().acknowledge(visible, true),
        Err(error) => fail_if(store, store.judge("a close", &error, None)),
    }
}

/// Lets the world do something to the store.
fn apply(life: &Life, event: &Event) {
    let schedule = &life.schedule;
    schedule.record_bytes(format!("{event:?}").as_bytes());
    match *event {
        Event::Fault { kind, nth, times, takes_effect } => {
            let error = std::io::ErrorKind::Other;
            let rule = if takes_effect { Rule::error_after(error) } else { Rule::error(error) };
            life.faults.add_rule(rule.on(&[kind]).nth(nth).times(times));
        }
        Event::ShortAppend(bytes) => drop(life.faults.add_rule(Rule::short_append(bytes))),
        Event::DiskFull(bytes) => drop(life.faults.add_rule(Rule::disk_full(bytes))),
        Event::SlowDisk(times) => life.slowness.store(times, Ordering::Relaxed),
        Event::Heal => {
            life.faults.clear_rules();
            life.slowness.store(1, Ordering::Relaxed);
            life.restore_bits(&life.disk);
        }
        Event::JumpClock(seconds) => schedule.advance(Duration::from_secs(seconds)),
        Event::ListenerPanics => life.listener_panics.store(true, Ordering::Relaxed),
        Event::JobPanics => life.job_panics.store(true, Ordering::Relaxed),
        Event::FlipBit(number) => life.flip(Path::new(FOLDER), number),
    }
}
