"""The exceptions of Tamis. Each message says what happened and what to do."""

__all__ = [
    "BusyError",
    "ChangesLostError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "DiskFullError",
    "Error",
    "ExclusiveTransactionError",
    "FilterBuildError",
    "ForkedError",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "KeyspaceDroppedError",
    "KeyspaceExistsError",
    "KeyspaceNotFoundError",
    "LockedError",
    "MergeFailedError",
    "MergeOperatorMissingError",
    "MissingFileError",
    "NotADatabaseError",
    "ReadOnlyError",
    "SizeError",
    "TransactionEndedError",
    "UnknownFormatError",
    "WritesRefusedError",
]


class Error(Exception):
    """The base of all exceptions of Tamis."""


class InvalidArgumentError(Error, ValueError):
    """An argument is invalid; the message contains its name and the valid values."""


class SizeError(InvalidArgumentError):
    """A key, a value or a batch is too long, or a key is empty."""


class FilterBuildError(InvalidArgumentError):
    """A filter cannot be built for these keys with these parameters."""


class IoError(Error, OSError):
    """A file operation failed."""


class DiskFullError(IoError):
    """The disk is full. Nothing was written; reads continue."""


class CorruptionError(Error):
    """Bytes on disk or of a filter are damaged."""


class UnknownFormatError(Error):
    """The format of the files is not supported: a newer version wrote them."""


class NotADatabaseError(Error):
    """The folder contains no database."""


class MissingFileError(Error):
    """A file that the database needs is missing."""


class LockedError(Error):
    """Another process or object has the database open."""


class ReadOnlyError(Error):
    """The database is open read-only, or its folder is not writable."""


class WritesRefusedError(Error):
    """An earlier sync failed: writes are refused, reads continue."""


class ClosedError(Error):
    """The database, the snapshot or the scan is closed."""


class ConflictError(Error):
    """Another write has changed what the transaction has read or written; nothing of it was written. Run it again.

    `keyspace` is the name of the keyspace. `key` are the bytes of the changed key, or `range` the bounds `(lower, upper)` between which a key was
    changed; `upper` is excluded, and `None` without an end.
    """

    def __init__(
        self,
        message: str,
        keyspace: str = "",
        key: bytes | None = None,
        range: tuple[bytes, bytes | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.keyspace = keyspace
        self.key = key
        self.range = range


class ExclusiveTransactionError(Error):
    """The thread has an exclusive transaction open, for whose end the call would wait."""


class TransactionEndedError(Error):
    """The transaction was committed or rolled back."""


class MergeOperatorMissingError(Error):
    """The keyspace has a merge operator that this program does not have."""


class MergeFailedError(Error):
    """The merge operator has no value for the key. Nothing is changed, and other keys are not affected."""


class ChangesLostError(Error):
    """The log no longer has the next change of a feed. Read a snapshot, and begin a feed behind its sequence number.

    `first_available` is the first position at which a feed can begin.
    """

    def __init__(self, message: str, first_available: int = 0) -> None:
        super().__init__(message)
        self.first_available = first_available


class KeyspaceNotFoundError(Error, LookupError):
    """There is no keyspace with this name."""


class KeyspaceExistsError(Error):
    """A keyspace with this name exists."""


class KeyspaceDroppedError(Error):
    """The keyspace was dropped."""


class ForkedError(Error):
    """An object of the parent process is used in a child process."""


class BusyError(Error):
    """Another thread is using the scan or the batch."""


class InternalError(Error, RuntimeError):
    """A bug in Tamis."""
