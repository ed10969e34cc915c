"""The types of reports and statistics, for type checkers."""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = [
    "CheckpointReport",
    "Durability",
    "Fault",
    "IngestReport",
    "Isolation",
    "KeyCodec",
    "KeyspaceStatistics",
    "LevelFilters",
    "LevelReads",
    "LevelStatistics",
    "LostRange",
    "OpenReport",
    "QuarantinedFile",
    "Reader",
    "RepairReport",
    "Statistics",
    "TableReport",
    "VerifyReport",
    "WalTruncation",
]

Durability = Literal["deferred", "buffered", "synced"]
"""What a write survives: nothing until 100 ms later, a crash of the process, a crash of the machine."""

Isolation = Literal["serializable", "snapshot"]
"""What must not have changed at the commit of a transaction: what it has read, or only what it has written."""

KeyCodec = Literal["bytes", "str", "uint64", "int64", "tuple"]
"""The type of the keys of a keyspace."""


class Fault(TypedDict):
    """A damaged place."""

    file: str
    offset: int | None
    what: str


class VerifyReport(TypedDict):
    """The report of `verify()`."""

    is_sound: bool
    file_count: int
    bytes: int
    entry_count: int
    faults: list[Fault]
    torn_tails: list[WalTruncation]


class CheckpointReport(TypedDict):
    """The report of `checkpoint()`."""

    sequence: int
    linked_file_count: int
    copied_file_count: int
    copied_bytes: int


class IngestReport(TypedDict):
    """The report of `ingest()` and `ingest_sorted()`. `kept` are the files that could not be removed, `linked` those of them that are also
    files of the store, and must not be changed."""

    table_count: int
    entry_count: int
    bytes: int
    sequence: int
    kept: list[str]
    linked: list[str]


class TableReport(TypedDict):
    """The report of `TableWriter.finish()`."""

    path: str
    bytes: int
    entry_count: int
    tombstone_count: int
    range_tombstone_count: int
    failed_filters: list[str]


class WalTruncation(TypedDict):
    """The torn end of a log segment."""

    file: str
    offset: int
    bytes: int


class OpenReport(TypedDict):
    """The report of `open_report()`."""

    is_new: bool
    log_bytes: int
    replayed_records: int
    replayed_entries: int
    manifest_truncated_bytes: int
    wal_truncations: list[WalTruncation]
    quarantined_files: list[str]
    foreign_files: list[str]


class LostRange(TypedDict):
    """A key range in which a repair may have lost writes."""

    keyspace: str
    lower: str
    upper: str | None
    may_lose_deletes: bool
    why: str


class QuarantinedFile(TypedDict):
    """A file that a repair moved into the folder `quarantine`."""

    file: str
    why: str


class RepairReport(TypedDict):
    """The report of `repair()`."""

    was_sound: bool
    faults: list[Fault]
    default_options: list[str]
    table_count: int
    lost_ranges: list[LostRange]
    quarantined: list[QuarantinedFile]


class ReadStatistics(TypedDict):
    """The reads of one kind of the tables of a level."""

    checked: int
    rejected: int
    true_positives: int
    false_positives: int
    blocks_read: int
    cache_hits: int


class LevelReads(TypedDict):
    """The reads of the tables of a level, by kind."""

    points: ReadStatistics
    ranges: ReadStatistics
    prefixes: ReadStatistics
    seeks: ReadStatistics
    read_nanoseconds: int


class DecisionStatistics(TypedDict):
    """The decisions of one kind about partitions, with their expected and actual bytes."""

    count: int
    bytes_expected: int
    bytes_written: int


class PartitionDecisionStatistics(TypedDict):
    """The decisions of the partitioned layout."""

    abort: DecisionStatistics
    minor: DecisionStatistics
    major: DecisionStatistics
    split: DecisionStatistics
    divide: DecisionStatistics
    unite: DecisionStatistics


class LevelStatistics(TypedDict):
    """The state of a level."""

    run_count: int
    table_count: int
    bytes: int
    entry_count: int
    tombstone_count: int
    range_tombstone_count: int


class FilterAnswers(TypedDict):
    """The answers of the filters of a table to one kind of queries; each counted read stands for several."""

    checked: int
    rejected: int
    true_positives: int
    false_positives: int


class TableFilterStatistics(TypedDict):
    """The filters of a table and their answers: a row of `table_filters()`."""

    level: int
    table: int
    designs: list[str]
    points: FilterAnswers
    ranges: FilterAnswers
    seeks: FilterAnswers


class ViewStatistics(TypedDict):
    """The sorted views of a keyspace."""

    count: int
    open_count: int
    run_count: int
    entry_count: int
    bytes: int


class QuerySampleStatistics(TypedDict):
    """The sampled queries of one kind."""

    seen: int
    kept: int
    interval: int
    tables_rejected: int
    tables_true_positive: int
    tables_false_positive: int


class SampleStatistics(TypedDict):
    """The sampled queries of a keyspace."""

    points: QuerySampleStatistics
    ranges: QuerySampleStatistics
    prefixes: QuerySampleStatistics
    forward_seeks: QuerySampleStatistics
    backward_seeks: QuerySampleStatistics
    too_long: int


class LevelFilters(TypedDict):
    """The tables of a level that have the same filters."""

    level: int
    filters: str
    table_count: int
    entry_count: int
    bytes: int


class KeyspaceStatistics(TypedDict):
    """The state of a keyspace."""

    name: str
    layout: str
    memtable_bytes: int
    pending_compaction_bytes: int
    expired_bytes: int
    immutable_memtable_count: int
    levels: list[LevelStatistics]
    partition_count: int
    views: ViewStatistics
    filters: list[LevelFilters]
    sample: SampleStatistics


class DroppedKeyspace(TypedDict):
    """A dropped keyspace of which a handle exists."""

    name: str
    bytes: int


class Reader(TypedDict):
    """A reader in another process or object, and what the store keeps for it."""

    process_id: int
    age_seconds: float
    sequence: int
    held_bytes: int


class Statistics(TypedDict):
    """The counters of `statistics()` since the open, and the state of log, cache and keyspaces."""

    blocks_read: int
    bytes_read: int
    cache_hits: int
    digests: int
    point_reads: int
    scans: int
    range_scans: int
    prefix_scans: int
    forward_seeks: int
    backward_seeks: int
    deleted_keys_passed: int
    deleted_ranges_recorded: int
    read_triggered_compactions: int
    filters_checked: int
    filters_replaced: int
    corrupt_filters: int
    writes: int
    entries_written: int
    user_bytes_written: int
    log_bytes_written: int
    flush_bytes_written: int
    flush_blocks_written: int
    compaction_bytes_read: int
    compaction_bytes_written: int
    compaction_blocks_written: int
    flushes: int
    direct_flushes: int
    compactions: int
    garbage_compactions: int
    dropped_tables: int
    trivial_moves: int
    partition_decisions: PartitionDecisionStatistics
    retained_entries: int
    retained_bytes: int
    views_built: int
    views_rebuilt: int
    views_discarded: int
    view_bytes_written: int
    write_amplification: float
    jobs_failed: int
    throttled_writes: int
    throttled_microseconds: int
    stopped_writes: int
    stopped_microseconds: int
    log_bytes: int
    cache_bytes: int
    cache_pinned_bytes: int
    cache_sample_bytes: int
    cache_too_small: int
    snapshots: int
    open_scans: int
    held_bytes: int
    open_files: int
    open_files_max: int
    oldest_snapshot_seconds: float
    oldest_replaced_state_seconds: float
    readers: list[Reader]
    dropped_keyspaces: list[DroppedKeyspace]
    reads: list[LevelReads]
    keyspaces: list[KeyspaceStatistics]
