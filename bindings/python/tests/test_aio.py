"""Async access through threads."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import tamis
import tamis.aio


def test_the_codec_is_that_of_the_creation(tmp_path: Path) -> None:
    async def main() -> None:
        async with await tamis.aio.open(tmp_path / "store", keys="uint64") as db:
            await db.put(5, b"five")
            await db.create_keyspace("names", keys="str")
        async with await tamis.aio.open(tmp_path / "store") as db:
            assert (db.key_codec, await db.first()) == ("uint64", (5, b"five"))  # type: ignore[comparison-overlap]
            assert (await db.keyspace("names")).key_codec == "str"
            with pytest.raises(tamis.InvalidArgumentError, match='codec "str", got keys="tuple"'):
                await db.keyspace("names", keys="tuple")
            await db.set_options(keys="int64")
        with pytest.raises(tamis.InvalidArgumentError, match='codec "int64", got keys="uint64"'):
            await tamis.aio.open(tmp_path / "store", keys="uint64")

    asyncio.run(main())


def test_calls_of_a_database(tmp_path: Path) -> None:
    async def main() -> None:
        async with await tamis.aio.open(tmp_path / "store", keys="str") as db:
            await db.put("a", b"1", durability="synced")
            await db.update({"b": b"2", "c": b"3"})
            assert await db.get("a") == b"1"
            assert await db.get("x", b"?") == b"?"
            assert await db.contains("b") and not await db.contains("x")
            assert await db.multi_get(["c", "x"]) == [b"3", None]
            assert await db.first() == ("a", b"1") and await db.last() == ("c", b"3")
            assert [key async for key, _ in db.range("a", "c")] == ["a", "b"]
            assert await db.prefix("b").to_list() == [("b", b"2")]
            async with await db.snapshot() as snapshot:
                await db.delete("a")
                await db.delete_range("b", "c")
                assert await snapshot.count() == 3
                assert await db.count() == 1
            batch = db.batch()
            batch.put("d", b"4")
            await db.write(batch)
            numbers = await db.keyspace("numbers", create=True, keys="uint64", filters="rosetta@12")
            assert await numbers.load((index, b"value") for index in range(1_000)) == 1_000
            assert await numbers.range(reverse=True, limit=1).to_list() == [(999, b"value")]
            assert (await numbers.range(10, 20).to_numpy())[0].tolist() == list(range(10, 20))
            words = await db.create_keyspace("words", keys="str", merge="append:2c")
            await words.merge("a", b"1")
            words_batch = words.batch()
            words_batch.merge("a", b"2")
            words_batch.put_until("b", b"3", time.time() + 3_600)
            await words.write(words_batch)
            async with words.transaction() as tx:
                await tx.merge("a", b"4")
                await tx.put_until("c", b"5", time.time() + 3_600)
            await words.put_until("d", b"6", datetime.now(UTC) + timedelta(hours=1))
            assert await words.items().to_list() == [("a", b"1,2,4"), ("b", b"3"), ("c", b"5"), ("d", b"6")]
            await db.flush()
            assert (await db.verify())["is_sound"]
            assert (await db.statistics())["writes"] > 3
            await db.checkpoint(tmp_path / "copy")
            await db.drop_keyspace("numbers")
            with pytest.raises(tamis.KeyspaceNotFoundError):
                await db.keyspace("numbers")
        with pytest.raises(tamis.ClosedError):
            await db.get("a")
        with tamis.open(tmp_path / "copy", keys="str") as copy:
            assert list(copy.range(keys_only=True)) == ["c", "d"]

    asyncio.run(main())


def test_long_scans_and_concurrent_calls(tmp_path: Path) -> None:
    async def main() -> None:
        async with await tamis.aio.open(tmp_path / "store", keys="uint64") as db:
            await db.load((index, b"%d" % index) for index in range(10_000))
            scan = db.range()
            first = await anext(scan)
            assert [first] + [entry async for entry in scan] == [(index, b"%d" % index) for index in range(10_000)]
            values = await asyncio.gather(*(db.get(index) for index in range(200)))
            assert values == [b"%d" % index for index in range(200)]
            partial = db.range()
            await anext(partial)
            assert len(await partial.to_list()) == 9_999

    asyncio.run(main())


def test_scans_and_batches_are_context_managers(tmp_path: Path) -> None:
    async def main() -> None:
        async with await tamis.aio.open(tmp_path / "store") as db:
            async with db.batch() as batch:
                for number in range(200):
                    batch.put(b"%03d" % number, b"v")
            assert len(batch) == 0 and await db.count() == 200
            with pytest.raises(RuntimeError):
                async with db.batch() as batch:
                    batch.put(b"x", b"")
                    raise RuntimeError
            assert not await db.contains(b"x")
            async with db.range() as scan:
                assert (await anext(scan))[0] == b"000"
                assert [key for key, _ in await scan.take(3)] == [b"001", b"002", b"003"]
                assert await scan.prev() == (b"003", b"v")
                assert (await anext(scan))[0] == b"003"
                await scan.seek(b"150")
                assert len(await scan.to_list()) == 50
                await scan.seek_to_last()
                assert await scan.prev() == (b"199", b"v")
            with pytest.raises(tamis.ClosedError):
                await anext(scan)
            assert bytes(await db.get_view(b"000", b"?")) == b"v"

    asyncio.run(main())


# Calls without an asynchronous counterpart, with the reason.
LEFT_OUT = {
    "pop": "a read and a write in one call is not atomic between tasks",
    "popitem": "a read and a write in one call is not atomic between tasks",
    "setdefault": "a read and a write in one call is not atomic between tasks",
}


@pytest.mark.parametrize(
    ("synchronous", "asynchronous"),
    [
        (tamis.Scan, tamis.aio.AsyncScan),
        (tamis.Changes, tamis.aio.AsyncChanges),
        (tamis.Reader, tamis.aio.AsyncReader),
        (tamis.Snapshot, tamis.aio.AsyncSnapshot),
        (tamis.Transaction, tamis.aio.AsyncTransaction),
        (tamis.Keyspace, tamis.aio.AsyncKeyspace),
        (tamis.Database, tamis.aio.AsyncDatabase),
        (tamis.WriteBatch, tamis.aio.AsyncWriteBatch),
    ],
)
def test_every_call_has_an_asynchronous_counterpart(
    synchronous: type, asynchronous: type, tmp_path: Path
) -> None:
    expected = {name for name in dir(synchronous) if not name.startswith("_")} - LEFT_OUT.keys()
    found = set(dir(asynchronous))
    if asynchronous is tamis.aio.AsyncWriteBatch:
        with tamis.open(tmp_path / "store") as db:
            found |= set(vars(tamis.aio.AsyncWriteBatch(db.batch())))
    assert expected <= found, sorted(expected - found)
