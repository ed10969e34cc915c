//! Coverage of histories: events, jobs, errors, statistics, kinds of file operations.

use std::{collections::BTreeMap, fmt::Debug};

use parking_lot::Mutex;
use tamis::{Error, Event};
use tamis_vfs::OperationKind;

/// How often each thing was reached, by kind and name.
#[derive(Debug, Default)]
pub struct Coverage {
    counts: Mutex<BTreeMap<(&'static str, String), u64>>,
}

/// The name of a variant: the text of its value up to its fields.
fn variant(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

impl Coverage {
    fn note(&self, kind: &'static str, name: String) {
        *self.counts.lock().entry((kind, name)).or_default() += 1;
    }

    /// An event was reported.
    pub fn note_event(&self, event: &Event) {
        self.note("event", variant(event));
        match event {
            Event::Compacted { reason, .. } => self.note("reason", variant(reason)),
            Event::PartitionsChanged { change, .. } => self.note("change", variant(change)),
            _ => {}
        }
    }

    /// A job has begun.
    pub fn note_job(&self, name: &str) {
        self.note("job", name.to_owned());
    }

    /// A call has returned an error.
    pub fn note_error(&self, error: &Error) {
        self.note("error", variant(error));
    }

    /// A file operation was made.
    pub fn note_operation(&self, kind: OperationKind) {
        self.note("file operation", variant(&kind));
    }

    /// Notes each statistic that is not zero.
    pub fn note_statistics(&self, statistics: &impl Debug) {
        let text = format!("{statistics:?}");
        // The text has `name: value` for each number.
        for field in text.split([',', '{', '[', '(']) {
            if let Some((name, value)) = field.trim().split_once(": ") {
                let is_zero = ["0", "0.0", "0ns", "None", "false", "[]", "\"\""]
                    .contains(&value.trim_end_matches(['}', ']', ')', ' ']));
                let key = ("statistic", name.to_owned());
                *self.counts.lock().entry(key).or_default() += u64::from(!is_zero);
            }
        }
    }

    /// Adds what another history has reached.
    pub fn add(&self, other: &Self) {
        let mut counts = self.counts.lock();
        for (key, count) in &*other.counts.lock() {
            *counts.entry(key.clone()).or_default() += count;
        }
    }

    /// All counts.
    pub fn counts(&self) -> BTreeMap<(&'static str, String), u64> {
        self.counts.lock().clone()
    }
}

/// Everything that some history should reach, by kind.
const EXPECTED: &[(&str, &[&str])] = &[
    (
        "event",
        &[
            "Flushed",
            "EntriesRetained",
            "Compacted",
            "PartitionsChanged",
            "BackPressure",
            "WalTruncated",
            "FilterCorrupt",
            "FilterBuildFailed",
            "FiltersReplaced",
            "ViewBuilt",
            "ViewFailed",
            "CacheTooSmall",
            "SampleIgnored",
            "ReadsPaidForMerge",
            "JobFailed",
        ],
    ),
    ("reason", &["Size", "Garbage", "Request", "Reads"]),
    ("change", &["Split", "Divide", "Unite"]),
    (
        "job",
        &[
            "write the deferred log",
            "delete obsolete files",
            "flush a memtable",
            "compact tables",
            "check the filters of a table",
            "build a sorted view",
        ],
    ),
    (
        "error",
        &[
            "Io",
            "DiskFull",
            "Corruption",
            "UnknownEntryKind",
            "UnknownChange",
            "UnknownFormat",
            "NotADatabase",
            "MissingFile",
            "Locked",
            "KeyEmpty",
            "KeyTooLong",
            "ValueTooLong",
            "BatchTooLarge",
            "InvalidArgument",
            "UnknownFilterParameter",
            "KeyspaceNotFound",
            "KeyspaceExists",
            "KeyspaceOption",
            "LockUnsupported",
            "FolderLost",
            "Forked",
            "KeyspaceDropped",
            "ReadOnly",
            "NotWritable",
            "WritesRefused",
            "Panicked",
            "Closed",
            "ChangesLost",
            "ReaderRefused",
        ],
    ),
];

/// Names that histories do not reach, with reasons.
const ARGUED: &[(&str, &str)] = &[
    ("UnknownEntryKind", "written by newer programs only: `tests/it/bad_input.rs`"),
    ("UnknownChange", "written by other versions only: `tests/it/bad_input.rs`"),
    (
        "UnknownFormat",
        "written by newer programs only; a flipped bit is found by a checksum before: `tests/it/corrupt.rs`",
    ),
    ("NotADatabase", "the folder of a history is always that of its store: `tests/it/bad_input.rs`"),
    ("MissingFile", "no program removes files: `tests/it/repair.rs`"),
    ("Locked", "one store is open at a time: `tests/it/bad_input.rs`"),
    ("LockUnsupported", "locks in memory always work: `tests/it/bad_input.rs`"),
    ("ReaderRefused", "files in memory have no permissions: `tests/it/names.rs`"),
    ("FolderLost", "no program moves the folder"),
    ("Forked", "a simulation does not fork: `tests/it/fork.rs`"),
    ("ValueTooLong", "256 MiB of memory for each try: `tests/it/bad_input.rs`"),
    ("BatchTooLarge", "GiB of memory for each try: `tests/it/bad_input.rs`"),
    ("UnknownFilterParameter", "a mistake in text, parsed without a store: `tests/it/bad_input.rs`"),
    ("NotWritable", "files in memory have no permissions: `tests/it/bad_input.rs`"),
];

/// The names that were not reached: those without a reason, and those with one.
pub fn unreached(counts: &BTreeMap<(&'static str, String), u64>) -> (Vec<String>, Vec<String>) {
    let is_reached =
        |kind: &str, name: &str| counts.iter().any(|((k, n), count)| *k == kind && n == name && *count > 0);
    let mut missing: Vec<String> = Vec::new();
    for (kind, names) in EXPECTED {
        missing
            .extend(names.iter().filter(|name| !is_reached(kind, name)).map(|name| format!("{kind} {name}")));
    }
    let zero = counts.iter().filter(|((kind, _), count)| *kind == "statistic" && **count == 0);
    missing.extend(zero.map(|((_, name), _)| format!("statistic {name}")));
    let is_argued = |name: &String| {
        ARGUED.iter().any(|(argued, _)| name.split_once(' ').is_some_and(|(_, name)| name == *argued))
    };
    let argued = missing.iter().filter(|name| is_argued(name)).cloned().collect();
    missing.retain(|name| !is_argued(name));
    (missing, argued)
}
