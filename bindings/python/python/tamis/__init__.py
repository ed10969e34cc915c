"""Tamis: an embedded, ordered key-value store whose range reads use range filters.

>>> import tamis
>>> with tamis.open("store") as db:
...     db[b"apple"] = b"red"
...     list(db[b"a":b"b"])
[(b'apple', b'red')]
"""

from collections.abc import Mapping, MutableMapping

# Known to type checkers, without the import of `typing`, which takes longer than the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import aio, filters, types

from . import errors
from ._tamis import (
    Changes,
    CommittedBatch,
    Database,
    IngestedTables,
    Keyspace,
    KeyspaceCreated,
    KeyspaceDropped,
    Reader,
    Scan,
    Snapshot,
    TableWriter,
    Transaction,
    WriteBatch,
    __version__,
    open,
    repair,
    table_writer,
    verify_folder,
)
from .errors import (
    BusyError,
    ChangesLostError,
    ClosedError,
    ConflictError,
    CorruptionError,
    DiskFullError,
    Error,
    ExclusiveTransactionError,
    FilterBuildError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    IoError,
    KeyspaceDroppedError,
    KeyspaceExistsError,
    KeyspaceNotFoundError,
    LockedError,
    MergeFailedError,
    MergeOperatorMissingError,
    MissingFileError,
    NotADatabaseError,
    ReadOnlyError,
    SizeError,
    TransactionEndedError,
    UnknownFormatError,
    WritesRefusedError,
)

__all__ = [
    "BusyError",
    "Changes",
    "ChangesLostError",
    "ClosedError",
    "CommittedBatch",
    "ConflictError",
    "CorruptionError",
    "Database",
    "DiskFullError",
    "Error",
    "ExclusiveTransactionError",
    "FilterBuildError",
    "ForkedError",
    "IngestedTables",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "Keyspace",
    "KeyspaceCreated",
    "KeyspaceDropped",
    "KeyspaceDroppedError",
    "KeyspaceExistsError",
    "KeyspaceNotFoundError",
    "LockedError",
    "MergeFailedError",
    "MergeOperatorMissingError",
    "MissingFileError",
    "NotADatabaseError",
    "ReadOnlyError",
    "Reader",
    "Scan",
    "SizeError",
    "Snapshot",
    "TableWriter",
    "Transaction",
    "TransactionEndedError",
    "UnknownFormatError",
    "WriteBatch",
    "WritesRefusedError",
    "__version__",
    "aio",
    "errors",
    "filters",
    "open",
    "repair",
    "table_writer",
    "types",
    "verify_folder",
]

# Type checkers know these bases from the stubs.
Mapping.register(Reader)  # pyright: ignore[reportAttributeAccessIssue]
MutableMapping.register(Keyspace)  # pyright: ignore[reportAttributeAccessIssue]


def __getattr__(name: str) -> object:
    """Imports a module of the package when it is first used."""
    if name not in ("aio", "filters", "types"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
