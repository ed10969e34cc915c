"""Transactions: atomicity, conflicts, isolation, exclusive ones, the end of a transaction."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tamis
import tamis.aio

Database = tamis.Database[bytes]


def test_a_block_commits_or_rolls_back(letters: Database) -> None:
    numbers = letters.create_keyspace("numbers", keys="uint64")
    with letters.transaction(durability="synced") as tx:
        tx[b"a"] = b"changed"
        tx.put(b"f", b"F")
        del tx[b"b"]
        tx.of(numbers)[7] = b"seven"
        assert tx[b"a"] == b"changed" and tx.get(b"b") is None and b"f" in tx
        assert tx.multi_get([b"f", b"b", b"", b"c"]) == [b"F", None, None, b"C"]
        assert tx.first() == (b"a", b"changed") and tx.last() == (b"f", b"F")
        assert [key for key, _ in tx.range(b"b", b"d", include_upper=True, reverse=True)] == [b"d", b"c"]
        assert list(tx.prefix(b"f")) == [(b"f", b"F")] and len(tx) == 5
        assert letters[b"a"] == b"A" and len(numbers) == 0
        with pytest.raises(KeyError):
            del tx[b"b"]
    assert list(letters.range(keys_only=True)) == [b"a", b"c", b"d", b"e", b"f"]
    assert letters[b"a"] == b"changed" and numbers[7] == b"seven"
    with pytest.raises(ZeroDivisionError), letters.transaction() as tx:
        tx.delete_prefix(b"a")
        tx.delete_range(b"c", b"d", include_upper=True)
        assert list(tx) == [b"e", b"f"]
        raise ZeroDivisionError
    assert len(letters) == 5


def test_a_conflict_names_keyspace_and_key(letters: Database) -> None:
    stock = letters.create_keyspace("stock", keys="str")
    with pytest.raises(tamis.ConflictError, match="run it again") as caught, stock.transaction() as tx:
        assert tx.get("apples") is None
        tx["pears"] = b"1"
        stock["apples"] = b"3"
    assert (caught.value.keyspace, caught.value.key, caught.value.range) == ("stock", b"apples", None)
    assert "pears" not in stock
    with pytest.raises(tamis.ConflictError) as caught, letters.transaction() as tx:
        assert len(list(tx.range(b"b", b"d"))) == 2
        tx[b"x"] = b""
        letters.delete_range(b"bb", b"c")
    assert caught.value.keyspace == "default" and caught.value.key is None
    assert caught.value.range == (b"bb", b"c")
    with letters.transaction(isolation="snapshot") as tx:
        assert tx[b"a"] == b"A"
        tx[b"x"] = b""
        letters[b"a"] = b"changed"
    assert b"x" in letters


def test_only_what_a_scan_has_passed_counts_as_read(letters: Database) -> None:
    with letters.transaction() as tx:
        scan = tx.range()
        assert next(scan) == (b"a", b"A")
        tx[b"taken"] = b""
        letters[b"b"] = b"changed"
    assert b"taken" in letters
    with pytest.raises(tamis.ConflictError), letters.transaction() as tx:
        scan = tx.range()
        assert scan.take(2) == [(b"a", b"A"), (b"b", b"changed")]
        tx[b"lost"] = b""
        letters[b"b"] = b"changed again"
    assert b"lost" not in letters


def test_every_call_after_the_end_is_refused(letters: Database) -> None:
    tx = letters.transaction()
    scan, reversed_scan, savepoint = tx.range(), tx.range(reverse=True), tx.savepoint()
    assert next(scan) == (b"a", b"A") and next(scan) == (b"b", b"B")
    tx.commit()
    ended: list[Callable[[], object]] = [
        lambda: tx.commit(),
        lambda: tx.rollback(),
        lambda: tx.get(b"a"),
        lambda: tx.multi_get([b"a"]),
        lambda: tx.range(),
        lambda: tx.prefix(b"a"),
        lambda: tx.first(),
        lambda: tx.last(),
        lambda: tx.put(b"a", b""),
        lambda: tx.delete(b"a"),
        lambda: tx.delete_range(b"a", b"b"),
        lambda: tx.savepoint(),
        lambda: tx.roll_back_to(savepoint),
        lambda: next(scan),
        lambda: scan.prev(),
        lambda: next(reversed_scan),
        lambda: scan.seek(b"a"),
    ]
    for call in ended:
        with pytest.raises(tamis.TransactionEndedError, match="begin another one"):
            call()
    scan.close()
    with letters.transaction() as tx:
        tx[b"a"] = b"lost"
        tx.rollback()
    assert letters[b"a"] == b"A" and "ended" in repr(tx)


def test_savepoints(letters: Database) -> None:
    with letters.transaction() as tx:
        tx[b"f"] = b"F"
        savepoint = tx.savepoint()
        tx.delete_range()
        assert not list(tx)
        tx.roll_back_to(savepoint)
        tx[b"g"] = b"G"
        other = letters.transaction()
        with pytest.raises(tamis.InvalidArgumentError, match="savepoint"):
            other.roll_back_to(savepoint)
        other.rollback()
    assert list(letters) == [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]


def test_bad_input(letters: Database, tmp_path: Path) -> None:
    with pytest.raises(tamis.InvalidArgumentError, match="serializable or snapshot"):
        letters.transaction(isolation="none")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(tamis.InvalidArgumentError, match="durability"):
        letters.exclusive(durability="paper")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="function"):
        letters.transact(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with tamis.open(tmp_path / "other") as other, letters.transaction() as tx:
        with pytest.raises(tamis.InvalidArgumentError, match="another database"):
            tx.of(other)
        with pytest.raises(tamis.SizeError):
            tx[b""] = b"empty key"
        tx[b"f"] = b"F"
    assert letters[b"f"] == b"F"
    with letters.transaction() as tx, letters.batch() as batch:
        with pytest.raises(tamis.InvalidArgumentError, match="nor a transaction"):
            batch.put(b"x", b"", keyspace=tx)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    tx = letters.transaction()
    tx[b"late"] = b""
    letters.close()
    with pytest.raises(tamis.ClosedError):
        tx[b"later"] = b""
    with pytest.raises(tamis.ClosedError):
        tx.commit()


def test_a_forgotten_transaction_warns_and_is_rolled_back(letters: Database) -> None:
    tx = letters.exclusive()
    tx[b"lost"] = b""
    with pytest.warns(ResourceWarning, match="transaction was dropped"):
        del tx
        gc.collect()
    letters[b"after"] = b""
    assert b"lost" not in letters


def test_exclusive_transactions_take_turns(letters: Database) -> None:
    letters[b"count"] = b"0"
    began = threading.Event()

    def increment() -> None:
        began.wait()
        for _ in range(50):
            with letters.exclusive() as tx:
                tx[b"count"] = b"%d" % (int(tx[b"count"]) + 1)

    threads = [threading.Thread(target=increment) for _ in range(3)]
    for thread in threads:
        thread.start()
    with letters.exclusive() as tx:
        began.set()
        with pytest.raises(tamis.ExclusiveTransactionError):
            letters[b"count"] = b"9"
        with pytest.raises(tamis.ExclusiveTransactionError):
            letters.exclusive()
        tx[b"count"] = b"100"
    for thread in threads:
        thread.join()
    assert letters[b"count"] == b"250"


def test_transact_runs_again_after_conflicts(letters: Database) -> None:
    letters[b"count"] = b"0"

    def increment(tx: tamis.Transaction[bytes]) -> int:
        count = int(tx[b"count"]) + 1
        tx[b"count"] = b"%d" % count
        return count

    def work() -> None:
        for _ in range(50):
            letters.transact(increment)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert letters.transact(increment, durability="synced") == 201

    attempts = 0

    def disturbed(tx: tamis.Transaction[bytes]) -> int:
        nonlocal attempts
        attempts += 1
        tx[b"mine"] = tx[b"a"]
        try:
            letters[b"a"] = b"%d" % attempts
        except tamis.ExclusiveTransactionError:
            return attempts
        return 0

    assert letters.transact(disturbed) == 9 and letters[b"mine"] == b"8"

    def failing(tx: tamis.Transaction[bytes]) -> None:
        tx[b"mine"] = b"lost"
        raise LookupError

    with pytest.raises(LookupError):
        letters.transact(failing)
    assert letters[b"mine"] == b"8"


def test_compare_and_put(letters: Database) -> None:
    assert letters.compare_and_put(b"lock", None, b"ann")
    assert not letters.compare_and_put(b"lock", None, b"bob") and letters[b"lock"] == b"ann"
    assert not letters.compare_and_put(b"lock", b"bob", None)
    assert letters.compare_and_put(b"lock", bytearray(b"ann"), None) and b"lock" not in letters


def test_asynchronous_transactions(tmp_path: Path) -> None:
    async def increment(db: tamis.aio.AsyncDatabase[str]) -> None:
        async with await db.exclusive() as tx:
            count = int(await tx.get("count", b"0"))
            assert [key async for key, _ in tx.range("count", "counu")] == (["count"] if count else [])
            await tx.put("count", b"%d" % (count + 1))

    coroutine: Any = increment

    async def main() -> None:
        async with await tamis.aio.open(tmp_path / "store", keys="str") as db:
            numbers = await db.keyspace("numbers", create=True, keys="uint64")
            async with db.transaction() as tx:
                await tx.put("a", b"1")
                savepoint = await tx.savepoint()
                await tx.delete("a")
                await tx.roll_back_to(savepoint)
                await (await tx.of(numbers)).put(1, b"one")
                assert await tx.contains("a") and not await db.contains("a")
            assert await db.get("a") == b"1" and await numbers.get(1) == b"one"
            with pytest.raises(tamis.TransactionEndedError):
                await tx.get("a")
            with pytest.raises(tamis.ConflictError):
                async with db.transaction() as tx:
                    assert await tx.get("b") is None
                    await tx.delete_range("x", "y")
                    await db.put("b", b"2")
            with pytest.raises(ZeroDivisionError):
                async with db.transaction() as tx:
                    await tx.delete_prefix("")
                    raise ZeroDivisionError
            assert await db.count() == 2
            # More than the event loop has threads: those that wait must not keep the one that has its turn from its end.
            await asyncio.gather(*(increment(db) for _ in range(50)), *(db.put(f"key {index}", b"") for index in range(50)))
            assert await db.get("count") == b"50"
            assert await db.transact(lambda tx: tx["a"]) == b"1"
            with pytest.raises(TypeError, match="coroutine"):
                await db.transact(coroutine)
            assert await db.compare_and_put("a", b"1", None)

    asyncio.run(main())
