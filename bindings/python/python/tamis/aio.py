"""Async access: each call runs in a thread of the event loop's executor, and the calls of Tamis release the interpreter's lock.

>>> import tamis.aio
>>> async def main() -> None:
...     async with await tamis.aio.open("store") as db:
...         await db.put(b"apple", b"red")
...         async for key, value in db.range(b"a", b"b"):
...             print(key, value)

A read of a single key from memory takes less time than its way to another thread: in code that serves few requests, calls of the
synchronous object (`db.sync`) are faster. A cancelled call continues in its thread; only its result is lost.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from . import _tamis
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
)
from .types import (
    CheckpointReport,
    Durability,
    IngestReport,
    Isolation,
    KeyCodec,
    OpenReport,
    RepairReport,
    Statistics,
    TableFilterStatistics,
    VerifyReport,
)

__all__ = [
    "AsyncChanges",
    "AsyncDatabase",
    "AsyncKeyspace",
    "AsyncReader",
    "AsyncScan",
    "AsyncSnapshot",
    "AsyncTransaction",
    "AsyncWriteBatch",
    "open",
    "repair",
    "verify_folder",
]

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

_FIRST_CHUNK = 64
_CHUNK_MAX = 4096
_Value = bytes | bytearray | memoryview
_Time = datetime | float
_Change = CommittedBatch | IngestedTables | KeyspaceCreated | KeyspaceDropped
# The longest wait of a thread of the executor for a change.
_WAIT_SECONDS = 0.2


class _Run(Protocol):
    """Runs a call in a thread, as `asyncio.to_thread` does."""

    def __call__(self, function: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> Coroutine[Any, Any, R]: ...


class _OwnThread:
    """Runs calls in a thread that nothing else uses."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "tamis exclusive transaction")

    async def __call__(self, function: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *arguments, **named))


class _AsyncClosing:
    """Closes at the end of an `async with` block."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _class: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close()


class AsyncScan(_AsyncClosing, AsyncIterator[T], Generic[T]):
    """An asynchronous iterator over a range at one point in time. It reads ahead in chunks."""

    def __init__(self, scan: Scan[T], run: _Run = asyncio.to_thread) -> None:
        self.sync = scan
        self._run = run
        self._chunk: list[T] = []
        self._position = 0
        self._chunk_size = _FIRST_CHUNK

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._position == len(self._chunk):
            self._chunk = await self._run(self.sync.take, self._chunk_size)
            self._position = 0
            self._chunk_size = min(4 * self._chunk_size, _CHUNK_MAX)
            if not self._chunk:
                raise StopAsyncIteration
        self._position += 1
        return self._chunk[self._position - 1]

    async def take(self, count: int) -> list[T]:
        """The next entries, at most `count`; an empty list at the end."""
        held = self._held(max(count, 0))
        if len(held) == count:
            return held
        return held + await self._run(self.sync.take, count - len(held))

    async def prev(self) -> T | None:
        """The entry before the position; see `Scan.prev`."""
        ahead = len(self._held())

        def move() -> T | None:
            for _ in range(ahead):
                self.sync.prev()
            return self.sync.prev()

        return await self._run(move)

    async def seek(self, key: Any) -> None:
        """See `Scan.seek`."""
        self._held()
        await self._run(self.sync.seek, key)

    async def seek_to_first(self) -> None:
        """Moves the scan before the smallest key."""
        self._held()
        await self._run(self.sync.seek_to_first)

    async def seek_to_last(self) -> None:
        """Moves the scan after the largest key."""
        self._held()
        await self._run(self.sync.seek_to_last)

    async def close(self) -> None:
        """Ends the scan and releases the state that it reads."""
        self._held()
        await self._run(self.sync.close)

    def _held(self, count: int | None = None) -> list[T]:
        """Takes entries that were read ahead; all of them without a count, and begins with small chunks again."""
        end = len(self._chunk) if count is None else self._position + count
        held = self._chunk[self._position : end]
        self._position += len(held)
        if count is None:
            self._chunk_size = _FIRST_CHUNK
        return held

    async def to_list(self) -> list[T]:
        """The remaining entries."""
        held = self._held()
        return held + await self._run(list, self.sync)

    async def to_numpy(self, *, key_dtype: Any = None, value_dtype: Any = None) -> Any:
        """See `Scan.to_numpy`; only before the first step."""
        return await self._run(self.sync.to_numpy, key_dtype=key_dtype, value_dtype=value_dtype)

    async def to_arrow(self, *, value_type: Any = None) -> Any:
        """See `Scan.to_arrow`; only before the first step."""
        return await self._run(self.sync.to_arrow, value_type=value_type)


class AsyncChanges(_AsyncClosing, AsyncIterator[_Change]):
    """An asynchronous iterator over the changes behind a position. `async for` waits for the next one.

    Its threads wait for short times, so that a feed does not keep a thread of the executor. The change of a cancelled call is not lost: the next call returns it.
    """

    def __init__(self, changes: Changes) -> None:
        self.sync = changes
        self._position = changes.position
        self._lock = asyncio.Lock()
        self._call: asyncio.Task[_Change | None] | None = None

    @property
    def position(self) -> int:
        """The place behind the last change that was returned."""
        return self._position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _Change:
        while (change := await self._next(_WAIT_SECONDS)) is None:
            pass
        return change

    async def try_next(self) -> _Change | None:
        """The next change, or `None` if there is none yet."""
        return await self._next(0.0)

    async def next(self, timeout: float | None = None) -> _Change | None:
        """The next change; waits for it, at most `timeout` seconds, after which it returns `None`."""
        if timeout is None:
            return await self.__anext__()
        end = asyncio.get_running_loop().time() + timeout
        while True:
            left = max(end - asyncio.get_running_loop().time(), 0.0)
            change = await self._next(min(left, _WAIT_SECONDS))
            if change is not None or left <= _WAIT_SECONDS:
                return change

    async def _next(self, wait: float) -> _Change | None:
        """Waits in a thread. The call of a cancelled task goes on, and its change is kept for the next task."""
        async with self._lock:
            if self._call is None:
                self._call = asyncio.create_task(asyncio.to_thread(self.sync.next, wait))
            try:
                change = await asyncio.shield(self._call)
            except Exception:
                self._call = None
                raise
            self._call = None
            if change is not None:
                self._position = change.sequence
            return change

    async def close(self) -> None:
        """Closes the feed; calls that wait get `ClosedError`."""
        await asyncio.to_thread(self.sync.close)


class AsyncReader(Generic[K]):
    """The reads of a keyspace or a snapshot."""

    def __init__(self, reader: Reader[K], run: _Run = asyncio.to_thread) -> None:
        self._reader = reader
        self._run = run

    @property
    def name(self) -> str:
        """The name of the keyspace."""
        return self._reader.name

    @property
    def key_codec(self) -> KeyCodec:
        """The name of the codec of the keys."""
        return self._reader.key_codec

    @overload
    async def get(self, key: K, default: None = None) -> bytes | None: ...
    @overload
    async def get(self, key: K, default: T) -> bytes | T: ...
    async def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return await self._run(self._reader.get, key, default)

    @overload
    async def get_view(self, key: K, default: None = None) -> memoryview | None: ...
    @overload
    async def get_view(self, key: K, default: T) -> memoryview | T: ...
    async def get_view(self, key: K, default: Any = None) -> Any:
        """The value of a key as a `memoryview`, without a copy of a long one."""
        return await self._run(self._reader.get_view, key, default)

    async def contains(self, key: K) -> bool:
        """Whether a key exists."""
        return await self._run(self._reader.__contains__, key)

    async def multi_get(self, keys: Iterable[K]) -> list[bytes | None]:
        """The values of keys at one point in time."""
        return await self._run(self._reader.multi_get, keys)

    def range(
        self,
        lower: K | None = None,
        upper: K | None = None,
        *,
        include_lower: bool = True,
        include_upper: bool = False,
        reverse: bool = False,
        limit: int | None = None,
    ) -> AsyncScan[tuple[K, bytes]]:
        """The entries between two keys. The scan reads the state of this call."""
        scan = self._reader.range(
            lower, upper, include_lower=include_lower, include_upper=include_upper, reverse=reverse, limit=limit
        )
        return AsyncScan(scan, self._run)

    def prefix(self, prefix: K, *, reverse: bool = False, limit: int | None = None) -> AsyncScan[tuple[K, bytes]]:
        """The entries whose keys begin with `prefix`."""
        return AsyncScan(self._reader.prefix(prefix, reverse=reverse, limit=limit), self._run)

    async def first(self) -> tuple[K, bytes] | None:
        """The entry with the smallest key."""
        return await self._run(self._reader.first)

    async def last(self) -> tuple[K, bytes] | None:
        """The entry with the largest key."""
        return await self._run(self._reader.last)

    async def approximate_count(self, lower: K | None = None, upper: K | None = None) -> int:
        """The approximate number of keys between two keys; reads no blocks."""
        return await self._run(self._reader.approximate_count, lower, upper)

    def keys(self) -> AsyncScan[K]:
        """All keys."""
        return AsyncScan(self._reader.range(keys_only=True), self._run)

    def values(self) -> AsyncScan[bytes]:
        """All values, in the order of the keys."""
        return AsyncScan(self._reader.range(values_only=True), self._run)

    def items(self) -> AsyncScan[tuple[K, bytes]]:
        """All entries."""
        return AsyncScan(self._reader.range(), self._run)

    async def count(self) -> int:
        """The number of entries; reads all keys."""
        return await self._run(self._reader.__len__)


class AsyncSnapshot(_AsyncClosing, AsyncReader[K]):
    """A snapshot. An asynchronous context manager that closes it."""

    def __init__(self, snapshot: Snapshot[K]) -> None:
        super().__init__(snapshot)
        self.sync = snapshot

    async def of(self, keyspace: AsyncReader[T]) -> AsyncSnapshot[T]:
        """The same moment of another keyspace."""
        return AsyncSnapshot(await asyncio.to_thread(self.sync.of, keyspace._reader))

    @property
    def sequence(self) -> int:
        """The position behind the newest write in the snapshot."""
        return self.sync.sequence

    async def close(self) -> None:
        """Closes the snapshot, so that compactions can drop the versions that only it needs."""
        await asyncio.to_thread(self.sync.close)


class AsyncTransaction(AsyncReader[K]):
    """A transaction. `async with` commits it at the end of the block, or rolls it back after an exception.

    An exclusive transaction has a thread of its own: calls that wait for its end may occupy all threads of the event loop. Do not await a write past it.
    """

    def __init__(self, transaction: Transaction[K], run: _Run = asyncio.to_thread) -> None:
        super().__init__(transaction, run)
        self.sync = transaction

    async def of(self, keyspace: AsyncReader[T]) -> AsyncTransaction[T]:
        """The same transaction in another keyspace."""
        return AsyncTransaction(await self._run(self.sync.of, keyspace._reader), self._run)

    async def put(self, key: K, value: _Value) -> None:
        """Sets the value of a key."""
        await self._run(self.sync.put, key, value)

    async def merge(self, key: K, operand: _Value) -> None:
        """Adds an operand to the value of a key; it is not a read."""
        await self._run(self.sync.merge, key, operand)

    async def put_until(self, key: K, value: _Value, time: _Time) -> None:
        """Sets the value of a key until a time. See `Keyspace.put_until`."""
        await self._run(self.sync.put_until, key, value, time)

    async def delete(self, key: K) -> None:
        """Deletes a key; an absent key is no error."""
        await self._run(self.sync.delete, key)

    async def delete_range(
        self,
        lower: K | None = None,
        upper: K | None = None,
        *,
        include_lower: bool = True,
        include_upper: bool = False,
    ) -> None:
        """Deletes all keys between two keys."""
        await self._run(self.sync.delete_range, lower, upper, include_lower=include_lower, include_upper=include_upper)

    async def delete_prefix(self, prefix: K) -> None:
        """Deletes all keys that begin with `prefix`."""
        await self._run(self.sync.delete_prefix, prefix)

    async def savepoint(self) -> int:
        """Remembers the writes so far, by a number for `roll_back_to`."""
        return await self._run(self.sync.savepoint)

    async def roll_back_to(self, savepoint: int) -> None:
        """Removes the writes since a savepoint."""
        await self._run(self.sync.roll_back_to, savepoint)

    async def commit(self) -> None:
        """Writes all or nothing, and ends the transaction and its scans. Raises `ConflictError`."""
        await self._run(self.sync.commit)

    async def rollback(self) -> None:
        """Ends the transaction and its scans, and writes nothing."""
        await self._run(self.sync.rollback)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, class_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._run(self.sync.__exit__, class_, error, traceback)


class AsyncWriteBatch(Generic[K]):
    """A batch. Adding to it needs no thread. `async with` writes it at the end of the block, or nothing after an exception."""

    def __init__(self, batch: WriteBatch[K]) -> None:
        self.sync = batch
        self.put = batch.put
        self.merge = batch.merge
        self.put_until = batch.put_until
        self.delete = batch.delete
        self.delete_range = batch.delete_range
        self.delete_prefix = batch.delete_prefix
        self.update = batch.update
        self.clear = batch.clear
        self.writes = batch.writes

    @property
    def size_bytes(self) -> int:
        """The greatest number of bytes of the writes in the log."""
        return self.sync.size_bytes

    def append(self, other: AsyncWriteBatch[Any] | WriteBatch[Any]) -> None:
        """Adds the writes of another batch."""
        self.sync.append(other.sync if isinstance(other, AsyncWriteBatch) else other)

    def __len__(self) -> int:
        return len(self.sync)

    async def write(self, *, durability: Durability | None = None) -> None:
        """Applies all writes atomically. The batch is empty afterwards."""
        await asyncio.to_thread(self.sync.write, durability=durability)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, class_: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if class_ is None:
            await self.write()
        else:
            self.sync.clear()


class AsyncKeyspace(AsyncReader[K]):
    """A keyspace."""

    def __init__(self, keyspace: Keyspace[K]) -> None:
        super().__init__(keyspace)
        self.sync = keyspace

    async def put(self, key: K, value: _Value, *, durability: Durability = "buffered") -> None:
        """Sets the value of a key."""
        await asyncio.to_thread(self.sync.put, key, value, durability=durability)

    async def merge(self, key: K, operand: _Value, *, durability: Durability = "buffered") -> None:
        """Adds an operand to the value of a key, without a read. See `Keyspace.merge`."""
        await asyncio.to_thread(self.sync.merge, key, operand, durability=durability)

    async def put_until(
        self, key: K, value: _Value, time: _Time, *, durability: Durability = "buffered"
    ) -> None:
        """Sets the value of a key until a time. See `Keyspace.put_until`."""
        await asyncio.to_thread(self.sync.put_until, key, value, time, durability=durability)

    async def delete(self, key: K, *, durability: Durability = "buffered") -> None:
        """Deletes a key; an absent key is no error."""
        await asyncio.to_thread(self.sync.delete, key, durability=durability)

    async def delete_range(
        self,
        lower: K | None = None,
        upper: K | None = None,
        *,
        include_lower: bool = True,
        include_upper: bool = False,
    ) -> None:
        """Deletes all keys between two keys."""
        await asyncio.to_thread(
            self.sync.delete_range, lower, upper, include_lower=include_lower, include_upper=include_upper
        )

    async def delete_prefix(self, prefix: K) -> None:
        """Deletes all keys that begin with `prefix`."""
        await asyncio.to_thread(self.sync.delete_prefix, prefix)

    async def clear(self) -> None:
        """Deletes all keys."""
        await asyncio.to_thread(self.sync.clear)

    async def set_options(self, *, keys: KeyCodec | None = None, **options: _Option) -> None:
        """Changes options of the keyspace. See `Keyspace.set_options`."""
        await asyncio.to_thread(self.sync.set_options, keys=keys, **options)

    async def table_filters(self) -> list[TableFilterStatistics]:
        """The filters of each table and how they answered, newest first."""
        return await asyncio.to_thread(self.sync.table_filters)

    async def update(
        self, entries: Mapping[K, _Value] | Iterable[tuple[K, _Value]], *, durability: Durability = "buffered"
    ) -> None:
        """Sets the values of a mapping or of pairs in one atomic batch."""
        await asyncio.to_thread(self.sync.update, entries, durability=durability)

    def batch(self, *, durability: Durability = "buffered") -> AsyncWriteBatch[K]:
        """A batch. Adding to it needs no thread."""
        return AsyncWriteBatch(self.sync.batch(durability=durability))

    async def write(
        self, batch: AsyncWriteBatch[Any] | WriteBatch[Any], *, durability: Durability | None = None
    ) -> None:
        """Applies a batch atomically."""
        await asyncio.to_thread(batch.sync.write if isinstance(batch, AsyncWriteBatch) else batch.write, durability=durability)

    def table_writer(self, path: str | PathLike[str]) -> TableWriter[K]:
        """A writer of a table for `ingest`. Adding to it needs no thread."""
        return self.sync.table_writer(path)

    async def ingest(self, paths: Iterable[str | PathLike[str]], *, keep: bool = False) -> IngestReport:
        """Adds finished tables as one write."""
        return await asyncio.to_thread(self.sync.ingest, paths, keep=keep)

    async def load(self, entries: Any, values: Any = None, *, progress: Callable[[int], object] | None = None) -> int:
        """See `Keyspace.load`. `progress` is called in the thread."""
        return await asyncio.to_thread(self.sync.load, entries, values, progress=progress)

    async def ingest_sorted(
        self, entries: Any, values: Any = None, *, progress: Callable[[int], object] | None = None
    ) -> IngestReport:
        """See `Keyspace.ingest_sorted`. `progress` is called in the thread."""
        return await asyncio.to_thread(self.sync.ingest_sorted, entries, values, progress=progress)

    async def snapshot(self) -> AsyncSnapshot[K]:
        """A snapshot that reads this keyspace."""
        return AsyncSnapshot(await asyncio.to_thread(self.sync.snapshot))

    def transaction(
        self, *, isolation: Isolation = "serializable", durability: Durability = "buffered"
    ) -> AsyncTransaction[K]:
        """A transaction, for `async with`."""
        return AsyncTransaction(self.sync.transaction(isolation=isolation, durability=durability))

    async def exclusive(self, *, durability: Durability = "buffered") -> AsyncTransaction[K]:
        """A transaction without conflicts. Waits for its turn; all other writers wait until it ends."""
        run = _OwnThread()
        return AsyncTransaction(await run(self.sync.exclusive, durability=durability), run)

    async def transact(
        self,
        function: Callable[[Transaction[K]], T],
        *,
        isolation: Isolation = "serializable",
        durability: Durability = "buffered",
    ) -> T:
        """Calls a function, which is no coroutine, with a synchronous transaction in a thread, again after conflicts. See `Keyspace.transact`."""
        if inspect.iscoroutinefunction(function):
            raise TypeError("function: expected a function, got a coroutine function; it runs in a thread")
        return await asyncio.to_thread(self.sync.transact, function, isolation=isolation, durability=durability)

    async def compare_and_put(self, key: K, expected: _Value | None, value: _Value | None) -> bool:
        """Replaces the value of a key if it is `expected`, atomically. See `Keyspace.compare_and_put`."""
        return await asyncio.to_thread(self.sync.compare_and_put, key, expected, value)

    async def compact(
        self, lower: K | None = None, upper: K | None = None, *, progress: Callable[[int], object] | None = None
    ) -> None:
        """Compacts a range of keys into the deepest level. `progress` is called in the thread."""
        await asyncio.to_thread(self.sync.compact, lower, upper, progress=progress)


class AsyncDatabase(_AsyncClosing, AsyncKeyspace[K]):
    """A database. An asynchronous context manager that closes it."""

    def __init__(self, database: Database[K]) -> None:
        super().__init__(database)
        self._database = database

    async def keyspace(
        self, name: str, *, create: bool = False, keys: KeyCodec | None = None, **options: str | int | float | bool
    ) -> AsyncKeyspace[Any]:
        """The keyspace with a name."""
        open_keyspace: Callable[..., Keyspace[Any]] = self._database.keyspace
        return AsyncKeyspace(await asyncio.to_thread(open_keyspace, name, create=create, keys=keys, **options))

    async def create_keyspace(
        self, name: str, *, keys: KeyCodec = "bytes", **options: str | int | float | bool
    ) -> AsyncKeyspace[Any]:
        """Creates a keyspace."""
        create: Callable[..., Keyspace[Any]] = self._database.create_keyspace
        return AsyncKeyspace(await asyncio.to_thread(create, name, keys=keys, **options))

    async def keyspace_names(self) -> list[str]:
        """The names of all keyspaces, sorted."""
        return await asyncio.to_thread(self._database.keyspace_names)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._database.path

    @property
    def is_closed(self) -> bool:
        """Whether the database is closed."""
        return self._database.is_closed

    @property
    def is_reader(self) -> bool:
        """Whether the database is open read-only."""
        return self._database.is_reader

    async def refresh(self) -> None:
        """Lets a reader see all that was written before the call."""
        await asyncio.to_thread(self._database.refresh)

    async def refresh_every(self, seconds: float) -> None:
        """Refreshes a reader in a thread, until the database is closed."""
        await asyncio.to_thread(self._database.refresh_every, seconds)

    def changes(self, position: int = 0) -> AsyncChanges:
        """A feed of the changes behind a position. See `Database.changes`."""
        return AsyncChanges(self._database.changes(position))

    def open_report(self) -> OpenReport:
        """The report of the open."""
        return self._database.open_report()

    async def wait_for_compactions(self) -> None:
        """Waits until no flush or compaction is due."""
        await asyncio.to_thread(self._database.wait_for_compactions)

    async def drop_keyspace(self, name: str) -> None:
        """Drops a keyspace with all its entries."""
        await asyncio.to_thread(self._database.drop_keyspace, name)

    async def persist(self, durability: Durability = "synced") -> None:
        """Makes all earlier writes as durable as `durability`."""
        await asyncio.to_thread(self._database.persist, durability)

    async def flush(self) -> None:
        """Writes the memtables of all keyspaces into tables."""
        await asyncio.to_thread(self._database.flush)

    async def checkpoint(self, path: str | PathLike[str], *, verify: bool = False) -> CheckpointReport:
        """Creates a consistent copy of the database."""
        return await asyncio.to_thread(self._database.checkpoint, path, verify=verify)

    async def verify(self, *, progress: Callable[[int], object] | None = None) -> VerifyReport:
        """Reads every byte of the database; returns a report of all damage. `progress` is called in the thread."""
        return await asyncio.to_thread(self._database.verify, progress=progress)

    async def statistics(self) -> Statistics:
        """Counters since the open, and the state of log, cache and levels."""
        return await asyncio.to_thread(self._database.statistics)

    async def close(self) -> None:
        """Closes the database."""
        await asyncio.to_thread(self._database.close)


_Path = str | PathLike[str]
_Option = str | int | float | bool


@overload
async def open(path: _Path, *, keys: Literal["bytes"] | None = None, **options: _Option) -> AsyncDatabase[bytes]: ...
@overload
async def open(path: _Path, *, keys: Literal["str"], **options: _Option) -> AsyncDatabase[str]: ...
@overload
async def open(path: _Path, *, keys: Literal["uint64", "int64"], **options: _Option) -> AsyncDatabase[int]: ...
@overload
async def open(path: _Path, *, keys: Literal["tuple"], **options: _Option) -> AsyncDatabase[tuple[Any, ...]]: ...
async def open(path: _Path, *, keys: KeyCodec | None = None, **options: _Option) -> AsyncDatabase[Any]:
    """Opens the database in a folder, or creates one there. See `tamis.open`."""
    open_database: Callable[..., Database[Any]] = _tamis.open
    return AsyncDatabase(await asyncio.to_thread(open_database, path, keys=keys, **options))


async def repair(path: _Path) -> RepairReport:
    """Repairs a damaged database. See `tamis.repair`."""
    return await asyncio.to_thread(_tamis.repair, path)


async def verify_folder(path: _Path, *, progress: Callable[[int], object] | None = None) -> VerifyReport:
    """Verifies a database that is not open. See `tamis.verify_folder`."""
    return await asyncio.to_thread(_tamis.verify_folder, path, progress=progress)
