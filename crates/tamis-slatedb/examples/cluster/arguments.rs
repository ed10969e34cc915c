//! The command line.

use clap::Parser;

/// Runs a cluster of SlateDB with and without the filters of Tamis, and prints the cost of each query.
#[derive(Debug, Clone, Parser)]
#[command(name = "cluster", version)]
pub(crate) struct Arguments {
    /// The object store: s3://bucket/path, file:///folder or memory://. Without it an S3 server is started on loopback.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The filters of Tamis: auto@BITS, or filters separated by spaces.
    #[arg(long, default_value = "auto@20")]
    pub(crate) design: String,
    /// Sensor events.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) events: usize,
    /// Paths of files.
    #[arg(long, default_value_t = 400_000)]
    pub(crate) paths: usize,
    /// Bytes of each value.
    #[arg(long, default_value_t = 100)]
    pub(crate) value_bytes: usize,
    /// Reader processes.
    #[arg(long, default_value_t = 2)]
    pub(crate) readers: usize,
    /// Queries of each kind that each reader sends to each of the two databases.
    #[arg(long, default_value_t = 400)]
    pub(crate) queries: usize,
    /// Latency added to each request, in milliseconds.
    #[arg(long, default_value_t = 5)]
    pub(crate) latency_ms: u64,
    /// A small run for tests: only answers and the requests of empty ranges decide about its success.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The work of a process that this program started, as JSON.
    #[arg(long, hide = true)]
    pub(crate) task: Option<String>,
}

impl Arguments {
    /// The arguments with the sizes of a small run, if one is wanted.
    pub(crate) fn sized(&self) -> Self {
        let mut sized = self.clone();
        if self.quick {
            sized.events = self.events.min(40_000);
            sized.paths = self.paths.min(20_000);
            sized.queries = self.queries.min(100);
        }
        sized
    }
}
