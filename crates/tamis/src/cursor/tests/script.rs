//! Scripts in `src/cursor/testdata` ([`crate::tests`]).
//!
//! - `sources`: each line after it is a cursor: `key@sequence=value`, or `key@sequence-` for a tombstone.
//! - `merge`, `run` (lines are tables), `visible [snapshot=N] [lower=[KEY|(KEY] [upper=KEY]|KEY)]` (over a merge): each
//!   word of the next line is a call: `first`, `last`, `next`, `prev`, `seek:KEY`, `seek:KEY@SEQUENCE`, `back:KEY` (before
//!   the key), `back=:KEY` (at or before it).

use std::{
    fmt::Write,
    ops::Bound,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use super::vec_cursor::{Counts, Entry, VecCursor, VecRun};
use crate::{
    cursor::{Cursor, bounded::KeyRange, merge::MergeCursor, run::RunCursor, visible::VisibleCursor},
    error::Result,
    key::{BoundKind, Kind, ReadPoint, SEQUENCE_MAX},
    tests::run_script,
};

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn a_merge_returns_what_its_script_expects() {
    run_file("merge.txt");
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn run() {
    run_file("run.txt");
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn a_visible_cursor_returns_what_its_script_expects() {
    run_file("visible.txt");
}

fn run_file(name: &str) {
    let mut sources = Vec::new();
    run_script(&format!("src/cursor/testdata/{name}"), |command| execute(command, &mut sources));
}

fn execute(command: &str, sources: &mut Vec<Vec<Entry>>) -> String {
    let mut lines = command.lines().skip_while(|line| line.starts_with('#'));
    let head = lines.next().expect("a command");
    let mut words = head.split_whitespace();
    let counts = Arc::new(Counts::default());
    let cursors = || sources.iter().map(|entries| VecCursor::new(entries.clone(), &counts)).collect();
    let calls: Vec<&str> = lines.clone().flat_map(str::split_whitespace).collect();
    let printed = match words.next().expect("a command") {
        "sources" => {
            *sources = lines.map(|line| line.split_whitespace().map(entry).collect()).collect();
            return String::new();
        }
        "merge" => walk(&mut MergeCursor::new(cursors()), &calls),
        "run" => {
            walk(&mut RunCursor::new(VecRun { tables: sources.clone(), counts: Arc::clone(&counts) }), &calls)
        }
        "visible" => {
            let (snapshot, range) = view(words);
            walk(
                &mut VisibleCursor::new(
                    MergeCursor::new(cursors()),
                    ReadPoint::at(snapshot),
                    Box::new(range),
                ),
                &calls,
            )
        }
        other => panic!("unknown command {other}"),
    };
    let mut printed = printed;
    write!(printed, "{} steps, {} seeks", counts.steps.load(Relaxed), counts.seeks.load(Relaxed))
        .expect("memory");
    if counts.opens.load(Relaxed) > 0 {
        write!(printed, ", {} opened", counts.opens.load(Relaxed)).expect("memory");
    }
    printed + "\n"
}

fn entry(text: &str) -> Entry {
    let (key, rest) = text.split_once('@').expect("key@sequence");
    let (sequence, kind, value) = match rest.split_once('=') {
        Some((sequence, value)) => (sequence, Kind::Put, value),
        None => (rest.strip_suffix('-').expect("= or -"), Kind::Tombstone, ""),
    };
    Entry { key: key.into(), sequence: sequence.parse().expect("sequence"), kind, value: value.into() }
}

fn view<'a>(words: impl Iterator<Item = &'a str>) -> (u64, KeyRange) {
    let (mut snapshot, mut range) = (SEQUENCE_MAX, KeyRange::ALL);
    for word in words {
        match word.split_once('=').expect("name=value") {
            ("snapshot", value) => snapshot = value.parse().expect("snapshot"),
            ("lower", value) => {
                range.lower = match value.strip_prefix('[') {
                    Some(key) => Bound::Included(key.into()),
                    None => Bound::Excluded(value.strip_prefix('(').expect("[ or (").into()),
                }
            }
            ("upper", value) => {
                range.upper = match value.strip_suffix(']') {
                    Some(key) => Bound::Included(key.into()),
                    None => Bound::Excluded(value.strip_suffix(')').expect("] or )").into()),
                }
            }
            (other, _) => panic!("unknown option {other}"),
        }
    }
    (snapshot, range)
}

/// The calls of scripts; sequence numbers are for cursors that return all versions.
trait Walk {
    fn call(&mut self, name: &str, key: &str) -> Result<()>;
    fn show(&self) -> String;
}

impl<C: Cursor> Walk for C {
    fn call(&mut self, name: &str, argument: &str) -> Result<()> {
        match name {
            "first" => self.seek_first(),
            "last" => self.seek_last(),
            "next" => self.next(),
            "prev" => self.prev(),
            "seek" => {
                let (key, sequence) = argument.split_once('@').unwrap_or((argument, ""));
                self.seek(key.as_bytes(), sequence.parse().unwrap_or(SEQUENCE_MAX))
            }
            "back" => self.seek_for_prev(argument.as_bytes(), BoundKind::Excluded),
            "back=" => self.seek_for_prev(argument.as_bytes(), BoundKind::Included),
            other => panic!("unknown call {other}"),
        }
    }

    fn show(&self) -> String {
        if !self.is_valid() {
            return ".".into();
        }
        let (key, value) = (String::from_utf8_lossy(self.key()), String::from_utf8_lossy(self.value()));
        match self.kind() {
            Kind::RangeTombstone => unreachable!("no cursor is on one"),
            Kind::Put => format!("{key}@{}={value}", self.sequence()),
            Kind::Tombstone => format!("{key}@{}-", self.sequence()),
            Kind::Operand => format!("{key}@{}+{value}", self.sequence()),
            Kind::ExpiringPut => format!("{key}@{}~{value}", self.sequence()),
        }
    }
}

impl<C: Cursor> Walk for VisibleCursor<C, Box<KeyRange>> {
    fn call(&mut self, name: &str, argument: &str) -> Result<()> {
        match name {
            "first" => self.seek_first(),
            "last" => self.seek_last(),
            "next" => self.next(),
            "prev" => self.prev(),
            "seek" => self.seek(argument.as_bytes()),
            "back" => self.seek_for_prev(argument.as_bytes(), BoundKind::Excluded),
            "back=" => self.seek_for_prev(argument.as_bytes(), BoundKind::Included),
            other => panic!("unknown call {other}"),
        }
    }

    fn show(&self) -> String {
        if !self.is_valid() {
            return ".".into();
        }
        assert_eq!(self.value(), &*self.value_slice());
        format!("{}={}", String::from_utf8_lossy(self.key()), String::from_utf8_lossy(self.value()))
    }
}

fn walk(cursor: &mut impl Walk, calls: &[&str]) -> String {
    let mut printed = String::new();
    for call in calls {
        let (name, argument) = call.split_once(':').unwrap_or((call, ""));
        cursor.call(name, argument).expect("no call fails");
        writeln!(printed, "{call}: {}", cursor.show()).expect("memory");
    }
    printed
}
