//! `tamis top`: opens a store and shows its background work in the terminal until the user ends it.
//!
//! The store is opened for writing, as by any program: flushes and compactions that are due run, and the screen shows them. If another process has it open,
//! this one is a reader. The terminal has its own mode and screen back before the store is closed, also after an error.

mod recent;
mod screen;

use std::{
    io::{self, IsTerminal as _, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use tamis::{Clock as _, Db, Statistics, SystemClock};

use self::{recent::RecentEvents, screen::Screen};
use super::stats::answers::{self, Found};
use crate::{
    failure::Failure,
    interrupt,
    store::{self, FileKind},
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  tamis top store
  tamis top store --interval 5
  tamis top store --once        wait until no work is due, and print the state once

Flushes and compactions that are due run as in any program that has the store open, until q or Ctrl-C ends
the command. The store is intact then, and the rest of the work is done after the next open. If another process
has the store open, that process does the work, and the screen shows the state of the store.";

/// Open a store and watch its background work: flushes, compactions, what waits, sizes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Seconds between two refreshes, from 0.1 to 3600
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    interval: f64,
    /// Wait until no flush or compaction is due, print the state once, and end
    #[arg(long, conflicts_with = "interval")]
    once: bool,
}

/// An open store, and the previous state for rates.
struct Top {
    db: Db,
    dir: PathBuf,
    events: Arc<RecentEvents>,
    clock: SystemClock,
    /// The time and the bytes written of the last refresh.
    previous: (Duration, u64),
}

impl TopArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        if !(0.1..=3_600.0).contains(&self.interval) {
            let given = self.interval;
            return Err(Failure::Usage(format!(
                "--interval {given}: give a number of seconds from 0.1 to 3600"
            )));
        }
        if !self.once && !io::stdout().is_terminal() {
            let text = "the output is no terminal: add --once to print the state once";
            return Err(Failure::Usage(text.to_owned()));
        }
        let events = Arc::new(RecentEvents::default());
        let db = store::open_to_watch(&self.dir, Arc::<RecentEvents>::clone(&events))?;
        let mut top =
            Top { db, dir: self.dir, events, clock: SystemClock::default(), previous: Default::default() };
        if self.once {
            if !top.db.is_reader() {
                top.db.wait_for_compactions()?;
            }
            write!(output, "{}", top.text()?)?;
        } else {
            interrupt::install_handler()?;
            let last = top.watch(Duration::from_secs_f64(self.interval), output)?;
            write!(output, "{last}")?;
        }
        Ok(top.db.close()?)
    }
}

impl Top {
    /// Refreshes the screen until the user ends it; returns the last state.
    fn watch(&mut self, interval: Duration, output: &mut dyn Write) -> Result<String, Failure> {
        let mut screen = Screen::open(output)?;
        let keys = format!("Refreshed every {} s; q ends.\n", interval.as_secs_f64());
        loop {
            let text = self.text()?;
            screen.show(&(keys.clone() + &text))?;
            if screen.is_ended_within(interval)? {
                return Ok(text);
            }
        }
    }

    /// The state in words.
    fn text(&mut self) -> Result<String, Failure> {
        self.db.refresh()?;
        let statistics = self.db.statistics();
        let files: Vec<FileKind> = store::files(&self.dir)?;
        let found = Found { statistics: &statistics, files: &files, unreadable_count: 0 };
        let now = self.clock.now();
        let written = bytes_written(&statistics);
        let (before, written_before) = std::mem::replace(&mut self.previous, (now, written));
        let seconds = now.saturating_sub(before).as_secs_f64();
        let mut work = work(&statistics);
        if written_before > 0 && seconds > 0.0 {
            let rate = (written - written_before) as f64 / seconds;
            work.push(format!("{}/s written in the last {seconds:.1} s", terminal::bytes(rate as u64)));
        }
        work.extend(self.events.list());
        Ok(answers::text(&[
            ("How much does the background work?", work),
            ("Does anything wait, and why?", answers::waits(&found)),
            ("Where is the data?", answers::data(&found)),
            ("How many blocks does a read cost?", answers::costs(&found)),
            ("Does anything keep files?", answers::keepers(&found)),
        ]))
    }
}

const fn bytes_written(statistics: &Statistics) -> u64 {
    let tables = statistics.flush_bytes_written + statistics.compaction_bytes_written;
    tables + statistics.log_bytes_written + statistics.view_bytes_written
}

/// The jobs since the open, and the memory.
fn work(statistics: &Statistics) -> Vec<String> {
    let is_idle = statistics
        .keyspaces
        .iter()
        .all(|keyspace| keyspace.immutable_memtable_count == 0 && keyspace.pending_compaction_bytes == 0);
    let mut lines = vec![
        if is_idle { "Nothing: no flush and no compaction is due." } else { "Flushes or compactions run." }
            .to_owned(),
        format!(
            "Since the open: {} of {}, {} of {}, {} moved, {} failed",
            terminal::amount(statistics.flushes, "flush", "flushes"),
            terminal::bytes(statistics.flush_bytes_written),
            terminal::amount(statistics.compactions, "compaction", "compactions"),
            terminal::bytes(statistics.compaction_bytes_written),
            terminal::amount(statistics.trivial_moves, "table", "tables"),
            terminal::amount(statistics.jobs_failed, "job", "jobs"),
        ),
        format!(
            "Memory: {} of blocks, {} of filters and indexes, {} of sampled queries",
            terminal::bytes(statistics.cache_bytes),
            terminal::bytes(statistics.cache_pinned_bytes),
            terminal::bytes(statistics.cache_sample_bytes),
        ),
    ];
    let views = statistics.views_built + statistics.views_rebuilt;
    if views + statistics.filters_replaced > 0 {
        lines.push(format!(
            "{}; filters of {} replaced",
            terminal::amount(views, "sorted view", "sorted views"),
            terminal::amount(statistics.filters_replaced, "table", "tables"),
        ));
    }
    lines
}
