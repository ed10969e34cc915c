"""The names of plyvel over a Tamis store.

>>> import tamis.compat.plyvel as plyvel
>>> with plyvel.DB("store", create_if_missing=True) as db:
...     db.put(b"apple", b"red")
...     list(db.iterator(prefix=b"a"))
[(b'apple', b'red')]

The folder contains a Tamis store, not a LevelDB one. There are no custom comparators; keys have 1 to 65,535 bytes. Sizes of blocks, tables
and memtables apply to a new store, and are clamped to the bounds of Tamis. Options without a counterpart are ignored.
"""

from __future__ import annotations

import builtins
import json
import os
import shutil
from collections.abc import Callable, Iterator as _Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import tamis

__all__ = [
    "DB",
    "CorruptionError",
    "Error",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "PrefixedDB",
    "RawIterator",
    "Snapshot",
    "WriteBatch",
    "destroy_db",
    "repair_db",
]

__version__ = tamis.__version__
__leveldb_version__ = "1.23 (names only: the store is Tamis)"

_Bytes = bytes | bytearray | memoryview
_Reader = tamis.Database[bytes] | tamis.Snapshot[bytes]
_T = TypeVar("_T")


class Error(Exception):
    """A failure of the store."""


class IOError(Error, builtins.IOError):
    """A file cannot be read or written, or the store is missing or locked."""


class CorruptionError(Error):
    """Bytes on disk are damaged."""


class IteratorInvalidError(Error):
    """A raw iterator is at no entry."""


def _translated(error: tamis.Error) -> Exception:
    if isinstance(error, tamis.ClosedError):
        return RuntimeError(str(error))
    if isinstance(error, tamis.CorruptionError):
        return CorruptionError(str(error))
    files = (tamis.IoError, tamis.DiskFullError, tamis.LockedError, tamis.MissingFileError, tamis.NotADatabaseError)
    if isinstance(error, (*files, tamis.ReadOnlyError)):
        return IOError(str(error))
    return Error(str(error))


def _run(work: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """Calls a function of Tamis, and raises the exceptions of plyvel."""
    try:
        return work(*arguments, **options)
    except tamis.Error as error:
        raise _translated(error) from error


def _clamped(value: int, least: int, greatest: int) -> int:
    return min(max(value, least), greatest)


def _integer(name: str, value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{name}: give an integer, not {value!r}")
    return value


def _database_options(lru_cache_size: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if lru_cache_size is not None:
        options["cache_bytes"] = max(_integer("lru_cache_size", lru_cache_size), 1 << 20)
    return options


def _keyspace_options(
    write_buffer_size: int | None,
    block_size: int | None,
    max_file_size: int | None,
    compression: str | None,
    bloom_filter_bits: int,
) -> dict[str, Any]:
    options: dict[str, Any] = {"compression": "lz4" if compression == "snappy" else "none"}
    if write_buffer_size is not None:
        options["memtable_bytes"] = _clamped(_integer("write_buffer_size", write_buffer_size), 64 << 10, 4 << 30)
    if max_file_size is not None:
        options["table_bytes"] = _clamped(_integer("max_file_size", max_file_size), 64 << 10, 16 << 30)
    if block_size is not None:
        bits = (_integer("block_size", block_size) - 1).bit_length()
        options["block_bytes"] = 1 << _clamped(bits, 12, 16)
    if _integer("bloom_filter_bits", bloom_filter_bits) > 0:
        options["filters"] = f"blocked-bloom@{bloom_filter_bits}"
    return options


def _check_comparator(comparator: Any, comparator_name: Any) -> None:
    if comparator is None and comparator_name is None:
        return
    if comparator is None:
        raise ValueError("comparator_name: give it together with comparator")
    if not callable(comparator) or not isinstance(comparator_name, bytes):
        raise TypeError("comparator: give a function, and its name in bytes")
    raise NotImplementedError("comparator: keys are ordered by their bytes; encode them in the order that you need")


class _Closing:
    """Closes at the end of a `with` block."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _class: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()


class _Readable:
    """The reads of a database, of a prefix of it, and of a snapshot."""

    _reader: _Reader
    _prefix: bytes

    def get(
        self, key: _Bytes, default: Any = None, *, verify_checksums: Any = False, fill_cache: Any = True
    ) -> Any:
        """The value of a key, or `default`."""
        return _run(self._reader.get, self._prefix + key if self._prefix else key, default)

    def iterator(
        self,
        reverse: bool = False,
        start: bytes | None = None,
        stop: bytes | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: bytes | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: Any = False,
        fill_cache: Any = True,
    ) -> Iterator:
        """The entries of a range or of a prefix."""
        if prefix is not None and (start is not None or stop is not None):
            raise TypeError("prefix: give it without start and stop")
        parts = {"keys_only": not include_value, "values_only": include_value and not include_key}
        own, reader = self._prefix, self._reader
        if start is None and stop is None:
            scan: Any = _run(reader.prefix, own + (prefix or b""), **parts)
        else:
            upper = _after(own) if stop is None else own + stop
            scan = _run(
                reader.range,
                own + (start or b"") or None,
                upper,
                include_lower=include_start or not start,
                include_upper=include_stop and stop is not None,
                **parts,
            )
        keep = (include_key, include_value)
        return Iterator(scan, own, reverse, keep)

    def raw_iterator(self, *, verify_checksums: Any = False, fill_cache: Any = True) -> RawIterator:
        """An iterator that is at an entry or invalid, as in LevelDB."""
        return RawIterator(_run(self._reader.prefix, self._prefix), self._prefix)

    def __iter__(self) -> Iterator:
        return self.iterator()


def _after(prefix: bytes) -> bytes | None:
    """The smallest key that is greater than all keys with a prefix."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


class _Writable(_Readable):
    """The writes of a database or of a prefix of it."""

    _database: tamis.Database[bytes]

    def put(self, key: _Bytes, value: _Bytes, *, sync: bool = False) -> None:
        """Sets the value of a key."""
        _run(self._database.put, self._prefix + key if self._prefix else key, value, durability=_durability(sync))

    def delete(self, key: _Bytes, *, sync: bool = False) -> None:
        """Deletes a key; an absent key is no error."""
        _run(self._database.delete, self._prefix + key if self._prefix else key, durability=_durability(sync))

    def write_batch(self, *, transaction: bool = False, sync: bool = False) -> WriteBatch:
        """A batch of writes."""
        return WriteBatch(self._database, self._prefix, transaction, sync)

    def snapshot(self) -> Snapshot:
        """The state of this moment."""
        return Snapshot(_run(self._database.snapshot), self._prefix)


def _durability(sync: bool) -> Any:
    return "synced" if sync else "buffered"


class DB(_Closing, _Writable):
    """An open database."""

    def __init__(
        self,
        name: str | os.PathLike[str],
        *,
        create_if_missing: bool = False,
        error_if_exists: bool = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: str | None = "snappy",
        bloom_filter_bits: int = 0,
        comparator: Callable[[bytes, bytes], int] | None = None,
        comparator_name: bytes | None = None,
    ) -> None:
        folder = os.fspath(name)
        if compression not in (None, "snappy"):
            raise ValueError(f"compression: give 'snappy' or None, not {compression!r}")
        _check_comparator(comparator, comparator_name)
        options = _database_options(lru_cache_size)
        for_new = _keyspace_options(write_buffer_size, block_size, max_file_size, compression, bloom_filter_bits)
        exists = os.path.exists(os.path.join(folder, "CURRENT"))
        if exists and error_if_exists:
            raise Error(f"{folder}: exists, and error_if_exists is true")
        if not exists:
            if not create_if_missing:
                raise IOError(f"{folder}: no database, and create_if_missing is false")
            options.update(for_new)
        self._name = folder
        self._prefix = b""
        self._database = self._reader = _run(tamis.open, folder, keys="bytes", **options)

    @property
    def name(self) -> str:
        """The folder."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether the database is closed."""
        return self._database.is_closed

    def close(self) -> None:
        """Closes the database."""
        _run(self._database.close)

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        """The keys with a prefix, without this prefix."""
        return PrefixedDB(self, prefix)

    def compact_range(self, *, start: bytes | None = None, stop: bytes | None = None) -> None:
        """Compacts a range of keys."""
        _run(self._database.compact, start or None, stop or None)

    def approximate_size(self, start: bytes, stop: bytes) -> int:
        """The approximate bytes on disk of a range: its number of entries, of the mean size."""
        for key in (start, stop):
            if not isinstance(key, bytes):
                raise TypeError(f"give bytes, not {key!r}")
        levels = _run(self._database.statistics)["keyspaces"][0]["levels"]
        size, count = (sum(level[part] for level in levels) for part in ("bytes", "entry_count"))
        keys = _run(self._database.approximate_count, start or None, stop or None)
        return int(keys * size / max(count, 1))

    def approximate_sizes(self, *ranges: tuple[bytes, bytes]) -> list[int]:
        """`approximate_size` of several ranges."""
        return [self.approximate_size(start, stop) for start, stop in ranges]

    def get_property(self, name: bytes) -> bytes | None:
        """The statistics as JSON for `leveldb.stats` and `leveldb.sstables`, the tables of a level for `leveldb.num-files-at-levelN`."""
        if not isinstance(name, bytes):
            raise TypeError(f"name: give bytes, not {name!r}")
        statistics = _run(self._database.statistics)
        if name in (b"leveldb.stats", b"leveldb.sstables"):
            return json.dumps(statistics).encode()
        number = name.removeprefix(b"leveldb.num-files-at-level")
        if number == name or not number.isdigit():
            return None
        levels = statistics["keyspaces"][0]["levels"]
        index = int(number)
        return str(levels[index]["table_count"] if index < len(levels) else 0).encode()


class PrefixedDB(_Writable):
    """The keys of a database that begin with a prefix, without this prefix."""

    def __init__(self, db: DB, prefix: bytes) -> None:
        self.db = db
        self.prefix = self._prefix = prefix
        self._database = self._reader = db._database

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        """A longer prefix."""
        return PrefixedDB(self.db, self.prefix + prefix)


class Snapshot(_Closing, _Readable):
    """The state of a moment."""

    def __init__(self, snapshot: tamis.Snapshot[bytes], prefix: bytes) -> None:
        self._snapshot = self._reader = snapshot
        self._prefix = prefix

    def close(self) -> None:
        """Releases the state."""
        self._snapshot.close()


class WriteBatch:
    """Writes that are applied atomically. `write` keeps them in the batch."""

    def __init__(self, database: tamis.Database[bytes], prefix: bytes, transaction: bool, sync: bool) -> None:
        self._database = database
        self._batch = _run(database.batch)
        self._prefix = prefix
        self._transaction = transaction
        self._sync = sync

    def put(self, key: _Bytes, value: _Bytes) -> None:
        """Adds a put."""
        _run(self._batch.put, self._prefix + key if self._prefix else key, value)

    def delete(self, key: _Bytes) -> None:
        """Adds a delete."""
        _run(self._batch.delete, self._prefix + key if self._prefix else key)

    def append(self, source: WriteBatch) -> None:
        """Adds the writes of another batch."""
        _run(self._batch.append, source._batch)

    def approximate_size(self) -> int:
        """The bytes of the writes."""
        return self._batch.size_bytes

    def clear(self) -> None:
        """Removes all writes."""
        self._batch.clear()

    def write(self) -> None:
        """Applies all writes."""
        applied = _run(self._database.batch)
        _run(applied.append, self._batch)
        _run(applied.write, durability=_durability(self._sync))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, class_: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if class_ is None or not self._transaction:
            self.write()
        self.clear()

    def __del__(self) -> None:
        # Tamis warns of batches that are dropped with writes; here they stay after `write`.
        batch = getattr(self, "_batch", None)
        if batch is not None:
            batch.clear()


class Iterator(_Closing, _Iterator[Any]):
    """The entries of a range, in both directions. Its position is between two entries."""

    def __init__(self, scan: tamis.Scan[Any], prefix: bytes, reverse: bool, keep: tuple[bool, bool]) -> None:
        self._scan = scan
        self._prefix = prefix
        self._reverse = reverse
        self._keep = keep
        if reverse:
            _run(scan.seek_to_last)

    def _shown(self, entry: Any) -> Any:
        if entry is None:
            raise StopIteration
        key, value = self._keep
        if key and value:
            return (entry[0][len(self._prefix) :], entry[1]) if self._prefix else entry
        if key:
            return entry[len(self._prefix) :]
        return entry if value else None

    def _move(self, back: bool) -> Any:
        try:
            return self._shown(self._scan.prev() if back else next(self._scan, None))
        except tamis.Error as error:
            raise _translated(error) from error

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._move(self._reverse)

    def next(self) -> Any:
        """The next entry."""
        return self._move(self._reverse)

    def prev(self) -> Any:
        """The previous entry; after `next` it is the same one."""
        return self._move(not self._reverse)

    def seek(self, target: bytes) -> None:
        """Moves before the first key that is not less than `target`."""
        key = self._prefix + target
        if key:
            _run(self._scan.seek, key)
        else:
            self.seek_to_start()

    def seek_to_start(self) -> None:
        """Moves before the smallest key."""
        _run(self._scan.seek_to_first)

    def seek_to_stop(self) -> None:
        """Moves after the greatest key."""
        _run(self._scan.seek_to_last)

    def close(self) -> None:
        """Ends the iterator."""
        self._scan.close()


class RawIterator(_Closing):
    """An iterator as in LevelDB: it is at an entry, or invalid."""

    def __init__(self, scan: tamis.Scan[tuple[bytes, bytes]], prefix: bytes) -> None:
        self._scan = scan
        self._prefix = prefix
        self._entry: tuple[bytes, bytes] | None = None
        self._is_closed = False

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the iterator is closed")

    def _current(self) -> tuple[bytes, bytes]:
        self._check_open()
        if self._entry is None:
            raise IteratorInvalidError("the iterator is at no entry")
        return self._entry

    def _to_previous(self) -> None:
        """Moves to the entry before the position of the scan, which then is after this entry."""
        self._entry = _run(self._scan.prev)
        if self._entry is not None:
            _run(next, self._scan)

    def valid(self) -> bool:
        """Whether the iterator is at an entry."""
        self._check_open()
        return self._entry is not None

    def seek_to_first(self) -> None:
        """Moves to the smallest key."""
        self._check_open()
        _run(self._scan.seek_to_first)
        self._entry = _run(next, self._scan, None)

    def seek_to_last(self) -> None:
        """Moves to the greatest key."""
        self._check_open()
        _run(self._scan.seek_to_last)
        self._to_previous()

    def seek(self, target: bytes) -> None:
        """Moves to the first key that is not less than `target`."""
        self._check_open()
        key = self._prefix + target
        if not key:
            self.seek_to_first()
            return
        _run(self._scan.seek, key)
        self._entry = _run(next, self._scan, None)

    def next(self) -> None:
        """Moves to the next entry."""
        self._current()
        self._entry = _run(next, self._scan, None)

    def prev(self) -> None:
        """Moves to the previous entry."""
        self._current()
        _run(self._scan.prev)
        self._to_previous()

    def key(self) -> bytes:
        """The key of the entry."""
        return self._current()[0][len(self._prefix) :]

    def value(self) -> bytes:
        """The value of the entry."""
        return self._current()[1]

    def item(self) -> tuple[bytes, bytes]:
        """The entry."""
        return self.key(), self.value()

    def close(self) -> None:
        """Ends the iterator."""
        self._is_closed = True
        self._scan.close()


def repair_db(name: str | os.PathLike[str], **_options: Any) -> None:
    """Repairs a damaged database with everything that can be read."""
    _run(tamis.repair, name)


def destroy_db(name: str | os.PathLike[str]) -> None:
    """Deletes a database that is not open. A folder without one is left alone."""
    if not os.path.exists(os.path.join(name, "CURRENT")):
        return
    # Fails if it is open.
    _run(tamis.open, name).close()
    shutil.rmtree(name)
