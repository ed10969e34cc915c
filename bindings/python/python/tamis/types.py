"""The types of reports and statistics, for type checkers."""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = [
    "CheckpointReport",
    "Durability",
    "Fault",
    "FilterStatistics",
    "IngestReport",
    "KeyCodec",
    "KeyspaceStatistics",
    "LevelStatistics",
    "LostRange",
    "OpenReport",
    "QuarantinedFile",
    "RepairReport",
    "Statistics",
    "TableFilterDesign",
    "VerifyReport",
    "WalTruncation",
]

Durability = Literal["deferred", "buffered", "synced"]
"""What a write survives: nothing until 100 ms later, a crash of the process, a crash of the machine."""

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


class CheckpointReport(TypedDict):
    """The report of `checkpoint()`."""

    sequence: int
    linked_file_count: int
    copied_file_count: int
    copied_bytes: int


class IngestReport(TypedDict):
    """The report of `ingest_sorted()`."""

    table_count: int
    entry_count: int
    bytes: int
    sequence: int


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


class FilterStatistics(TypedDict):
    """The counters of the filters of a level."""

    checked: int
    negative: int
    true_positive: int
    range_checked: int
    range_negative: int
    range_true_positive: int
    range_false_positive: int


class LevelStatistics(TypedDict):
    """The state of a level."""

    run_count: int
    table_count: int
    bytes: int
    entry_count: int
    tombstone_count: int
    range_tombstone_count: int


class TableFilterDesign(TypedDict):
    """The design of a filter of a table."""

    level: int
    table: int
    design: str


class KeyspaceStatistics(TypedDict):
    """The state of a keyspace."""

    name: str
    memtable_bytes: int
    pending_compaction_bytes: int
    levels: list[LevelStatistics]
    filter_designs: list[TableFilterDesign]


class Statistics(TypedDict):
    """The counters of `statistics()` since the open, and the state of log, cache and keyspaces."""

    blocks_read: int
    bytes_read: int
    cache_hits: int
    digests: int
    point_reads: int
    scans: int
    writes: int
    entries_written: int
    user_bytes_written: int
    log_bytes_written: int
    flush_bytes_written: int
    compaction_bytes_read: int
    compaction_bytes_written: int
    write_amplification: float
    flushes: int
    compactions: int
    garbage_compactions: int
    dropped_tables: int
    trivial_moves: int
    jobs_failed: int
    throttled_writes: int
    throttled_microseconds: int
    stopped_writes: int
    stopped_microseconds: int
    log_bytes: int
    cache_bytes: int
    cache_pinned_bytes: int
    filters: list[FilterStatistics]
    keyspaces: list[KeyspaceStatistics]
