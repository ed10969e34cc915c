"""Readers in other processes, and the change feed."""

from __future__ import annotations

import _thread
import asyncio
import gc
import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tamis
import tamis.aio

SPAWN = multiprocessing.get_context("spawn")


def write_store(path: Path, orders: Any) -> None:
    """A writer process: runs batches that it gets, until it gets `None`."""
    with tamis.open(path, keys="str", keep_changes_bytes="64MiB", keep_changes_seconds=3600) as db:
        while (entries := orders.recv()) is not None:
            db.update(entries)
            orders.send(len(db.statistics()["readers"]))


def test_a_reader_follows_a_writer_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "store"
    orders, theirs = SPAWN.Pipe()
    writer = SPAWN.Process(target=write_store, args=(path, theirs))
    writer.start()
    try:
        orders.send({"apple": b"red"})
        assert orders.recv() == 0
        with pytest.raises(tamis.LockedError):
            tamis.open(path)
        with tamis.open(path, keys="str", read_only=True) as reader:
            assert reader.is_reader and reader["apple"] == b"red"
            with pytest.raises(tamis.ReadOnlyError):
                reader["apple"] = b"green"
            orders.send({"apple": b"green", "pear": b"yellow"})
            assert orders.recv() == 1
            with reader.snapshot() as before:
                reader.refresh()
                assert reader["apple"] == b"green" and before["apple"] == b"red"
            with reader.changes() as changes:
                assert [change.writes for change in (next(changes), next(changes)) if isinstance(change, tamis.CommittedBatch)] == [
                    [("default", ("put", b"apple", b"red"))],
                    [("default", ("put", b"apple", b"green")), ("default", ("put", b"pear", b"yellow"))],
                ]
                assert changes.try_next() is None and changes.next(0.01) is None
                orders.send({"fig": b"violet"})
                change = changes.next(timeout=30)
                assert isinstance(change, tamis.CommittedBatch)
                assert change.writes_to(reader) == [("put", "fig", b"violet")]
                assert orders.recv() == 1
                stored = changes.position
            assert stored == change.sequence == 4
            reader.refresh_every(0.005)
            end = time.monotonic() + 30
            while "fig" not in reader and time.monotonic() < end:
                time.sleep(0.001)
            assert reader["fig"] == b"violet"
            orders.send(None)
            writer.join(30)
            # A reader needs no writer, and a position is valid for the next one.
            assert reader.changes(stored).try_next() is None
            with tamis.open(path, keys="str") as db:
                assert not db.is_reader
                db["kiwi"] = b"brown"
                assert next(reader.changes(stored)).sequence == stored + 1
    finally:
        writer.kill()
        writer.join()


def test_every_kind_of_change(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", keep_changes_bytes="64MiB") as db:
        changes = db.changes(db.snapshot().sequence)
        words = db.create_keyspace("words", keys="str", merge="append:2c")
        numbers = db.create_keyspace("numbers", keys="uint64")
        for name in ("words", "numbers"):
            created = changes.try_next()
            assert isinstance(created, tamis.KeyspaceCreated) and created.name == name
        with db.transaction() as transaction:
            transaction[b"a"] = b"1"
            transaction.put_until(b"b", b"2", 2.0**32)
            transaction.of(words).merge("c", b"3")
            transaction.delete(b"d")
            transaction.of(numbers).delete_range(1, 2)
            transaction.of(numbers)[7] = b"8"
            transaction.delete_range(b"e")
        batch = changes.try_next()
        assert isinstance(batch, tamis.CommittedBatch) and "7 writes" in repr(batch)
        assert sorted(batch.writes) == sorted(
            [
                ("default", ("put", b"a", b"1")),
                ("default", ("put_until", b"b", b"2", 2.0**32)),
                ("words", ("merge", b"c", b"3")),
                ("default", ("delete", b"d")),
                ("numbers", ("delete_range", (1).to_bytes(8, "big"), (2).to_bytes(8, "big"))),
                ("numbers", ("put", (7).to_bytes(8, "big"), b"8")),
                ("default", ("delete_range", b"e", None)),
            ]
        )
        assert batch.writes_to(words) == [("merge", "c", b"3")]
        assert ("put", 7, b"8") in batch.writes_to(numbers)
        assert changes.position == batch.sequence

        count = 1_000
        numbers.ingest_sorted((number, b"%d" % number) for number in range(count))
        tables = changes.try_next()
        assert isinstance(tables, tamis.IngestedTables) and tables.keyspace == "numbers"
        raw: list[Any] = []
        tables.for_each(raw.append)
        assert len(raw) == count and raw[1] == ("put", (1).to_bytes(8, "big"), b"1")
        decoded: list[Any] = []
        tables.for_each(decoded.append, keyspace=numbers)
        assert decoded == [("put", number, b"%d" % number) for number in range(count)]
        for wanted in (1, 700):
            seen: list[object] = []

            def stop(write: object) -> None:
                seen.append(write)
                if len(seen) == wanted:
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                tables.for_each(stop)
            assert len(seen) == wanted
        with pytest.raises(TypeError, match="function"):
            tables.for_each(5)  # type: ignore[arg-type]

        db.drop_keyspace("words")
        dropped = changes.try_next()
        assert isinstance(dropped, tamis.KeyspaceDropped) and dropped.name == "words" and "words" in repr(dropped)
        assert changes.try_next() is None and changes.position == dropped.sequence
        assert repr(changes) == f"<tamis.Changes behind {dropped.sequence}>"


def test_lost_changes_name_the_first_position(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store") as db:
        for number in range(3):
            db[b"a"] = b"%d" % number
            db.flush()
        db.wait_for_compactions()
        with pytest.raises(tamis.ChangesLostError, match="first available position") as lost:
            db.changes()
        assert db.changes(lost.value.first_available).try_next() is None
        with db.snapshot() as snapshot, db.changes(snapshot.sequence) as changes:
            db[b"b"] = b"1"
            assert next(changes).sequence == snapshot.sequence + 1
        with pytest.raises(tamis.InvalidArgumentError, match="position"):
            db.changes(1_000)
        with pytest.raises(tamis.InvalidArgumentError, match="millisecond"):
            db.refresh_every(0)
        for seconds in (-1, float("nan")):
            with pytest.raises(tamis.InvalidArgumentError, match="seconds"):
                db.refresh_every(seconds)
            with pytest.raises(tamis.InvalidArgumentError, match="timeout"):
                db.changes(lost.value.first_available).next(seconds)


def later(call: Callable[[], object]) -> threading.Timer:
    """Calls a function while the test waits."""
    timer = threading.Timer(0.1, call)
    timer.start()
    return timer


def test_waits_end(tmp_path: Path) -> None:
    db = tamis.open(tmp_path / "store")
    changes = db.changes()
    # A finalizer that the collector calls would swallow the interrupt.
    gc.collect()
    gc.disable()
    try:
        timer = later(_thread.interrupt_main)
        with pytest.raises(KeyboardInterrupt):
            changes.next(30)
        timer.join()
    finally:
        gc.enable()
    timer = later(lambda: db.put(b"a", b"1"))
    assert next(changes).sequence == 1
    timer.join()

    def use() -> None:
        try:
            with pytest.raises(tamis.BusyError, match="another thread"):
                changes.try_next()
        finally:
            changes.close()

    timer = later(use)
    with pytest.raises(tamis.ClosedError, match="the feed is closed"):
        for _ in changes:
            pass
    timer.join()
    changes.close()
    with pytest.raises(tamis.ClosedError, match="the feed is closed"):
        changes.try_next()
    other = db.changes(1)
    timer = later(db.close)
    with pytest.raises(tamis.ClosedError, match="closed"):
        next(other)
    timer.join()
    with pytest.raises(tamis.ClosedError, match="the database is closed"):
        other.position  # noqa: B018


def test_asynchronous_feeds_lose_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with await tamis.aio.open(tmp_path / "store", keys="str") as db:
            assert not db.is_reader
            await db.refresh()
            async with await db.snapshot() as snapshot:
                changes = db.changes(snapshot.sequence)
            assert await changes.try_next() is None
            assert await changes.next(0.01) is None

            # A cancelled wait does not lose the change that it finds.
            waiting = asyncio.create_task(changes.next())
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await db.put("a", b"1")
            await asyncio.sleep(0.5)
            assert changes.position == 0
            change = await changes.next(30)
            assert isinstance(change, tamis.CommittedBatch) and changes.position == change.sequence == 1
            assert change.writes_to(db.sync) == [("put", "a", b"1")]

            async def write() -> None:
                for number in range(20):
                    await db.put("b", b"%d" % number)

            writer = asyncio.create_task(write())
            sequences = []
            async for change in changes:
                sequences.append(change.sequence)
                if len(sequences) == 20:
                    break
            assert sequences == list(range(2, 22))
            await writer

            # Two tasks get different changes.
            tasks = [asyncio.create_task(changes.next(30)) for _ in range(2)]
            await write()
            found = [change.sequence for change in await asyncio.gather(*tasks) if change is not None]
            assert sorted(found) == [22, 23]

            waiting = asyncio.create_task(anext(changes))
            while await changes.try_next() is not None:
                pass
            waiting.cancel()
            await changes.close()
            with pytest.raises(tamis.ClosedError):
                await changes.try_next()
            async with db.changes(changes.position) as other:
                assert await other.try_next() is None

    asyncio.run(main())
