//! When the store keeps sorted views.

/// When a keyspace keeps sorted views: files with the order of all entries of several runs, so that a scan reads one key where it would
/// merge. Results are the same with and without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Views {
    /// A view is built when the seeks that merged its runs have cost about as much time as building it. A keyspace that is not scanned
    /// has none.
    #[default]
    Auto,
    /// A view over all runs is built whenever no flush or compaction is due, whatever it costs: for keyspaces that are mostly read. Each
    /// compaction makes the view obsolete.
    On,
    /// None is built.
    Off,
}
