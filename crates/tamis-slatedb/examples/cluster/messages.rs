//! Work and messages of the roles, as lines of JSON between processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tamis_slatedb_support::{Credentials, RequestCounts};

/// The filters of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Variant {
    /// None: every table whose keys overlap the query is read.
    NoFilters,
    /// SlateDB's Bloom filter.
    Bloom {
        /// Its size.
        bits: u32,
    },
    /// SlateDB's Bloom filter of keys and of prefixes: the sensor of an event, the directory of a path.
    PrefixBloom {
        /// Its size.
        bits: u32,
    },
    /// The policy of Tamis.
    Tamis {
        /// Its filters.
        design: String,
    },
}

impl Variant {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::NoFilters => "no filters".to_owned(),
            Self::Bloom { bits } => format!("SlateDB, Bloom {bits} bits"),
            Self::PrefixBloom { bits } => format!("SlateDB, prefix Bloom {bits} bits"),
            Self::Tamis { design } => format!("Tamis, {design}"),
        }
    }
}

/// A store that each process can open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Place {
    /// An address, with settings from the environment.
    Address(String),
    /// The server that the cluster started.
    Server { endpoint: String, bucket: String, access_key: String, secret_key: String },
    /// The memory of this process.
    Memory,
}

impl Place {
    pub(crate) fn server(endpoint: String, bucket: &str, credentials: &Credentials) -> Self {
        let Credentials { access_key, secret_key } = credentials.clone();
        Self::Server { endpoint, bucket: bucket.to_owned(), access_key, secret_key }
    }
}

/// The work of one process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) role: Role,
    pub(crate) place: Place,
    /// The folder of this run in the store.
    pub(crate) path: String,
    pub(crate) variant: Variant,
    pub(crate) events: usize,
    pub(crate) paths: usize,
    pub(crate) value_bytes: usize,
    pub(crate) queries: usize,
    pub(crate) latency_ms: u64,
}

impl Task {
    pub(crate) const fn latency(&self) -> Duration {
        Duration::from_millis(self.latency_ms)
    }
}

/// The part of a process in the cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Role {
    /// An S3 server over a folder.
    Server { folder: String },
    /// Loads the data.
    Writer,
    /// Compacts what the writer loads.
    Compactor,
    /// Runs queries and writes the sample of them into the store.
    Sampler,
    /// Runs queries and reports their cost.
    Reader { index: usize },
}

/// A command to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Readers have written their sample: read it, and continue.
    ReadSample,
    /// End.
    Stop,
}

/// A report of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The server listens.
    Listening { endpoint: String },
    /// The compactor runs.
    Started,
    /// The first tables are written; waits for [`Command::ReadSample`].
    FirstTables,
    /// Entries loaded until now.
    Progress { entries: usize, seconds: f64 },
    /// All entries are in tables.
    Loaded { seconds: f64, writes: u64, filters: String },
    /// The sample is in the store.
    Sampled { queries: usize },
    /// No compaction is left to do.
    Settled { tables: usize, overlapping: usize },
    /// The cost of the queries of one kind.
    Measured(Measurement),
    /// The work is done.
    Done { filters: String },
    /// The work failed.
    Failed { reason: String },
}

/// The kinds of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    EmptyRange,
    EmptyPart,
    EmptyPrefix,
    Point,
    FullRange,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::EmptyRange, Self::EmptyPart, Self::EmptyPrefix, Self::Point, Self::FullRange];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::EmptyRange => "closed empty range",
            Self::EmptyPart => "empty part of a prefix",
            Self::EmptyPrefix => "empty prefix",
            Self::Point => "point, half present",
            Self::FullRange => "range of 50 entries",
        }
    }
}

/// The cost of queries.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) kind: Kind,
    pub(crate) queries: u64,
    pub(crate) seconds: f64,
    /// Reads of tables.
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Tables that filters rejected, passed, and passed in error.
    pub(crate) negatives: u64,
    pub(crate) positives: u64,
    pub(crate) false_positives: u64,
    /// A digest of all answers.
    pub(crate) answers: u64,
}

impl Measurement {
    /// Sums of readers that ran at the same time, with their mean time.
    pub(crate) fn sum(parts: &[Self], readers: usize) -> Option<Self> {
        let mut sum = *parts.first()?;
        for part in parts.iter().skip(1) {
            sum.queries += part.queries;
            sum.seconds += part.seconds;
            sum.requests += part.requests;
            sum.bytes += part.bytes;
            sum.negatives += part.negatives;
            sum.positives += part.positives;
            sum.false_positives += part.false_positives;
            sum.answers = sum.answers.wrapping_add(part.answers);
        }
        sum.seconds /= readers as f64;
        Some(sum)
    }

    pub(crate) fn with_requests(mut self, counts: RequestCounts) -> Self {
        self.requests = counts.table_reads;
        self.bytes = counts.table_bytes;
        self
    }
}
