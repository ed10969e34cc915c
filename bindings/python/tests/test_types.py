"""The types that a type checker infers. mypy and pyright check this file; pytest runs it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, assert_type

import tamis


def test_inferred_types(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store") as db:
        assert_type(db, tamis.Database[bytes])
        db[b"key"] = b"value"
        assert_type(db[b"key"], bytes)
        assert_type(db.get(b"key"), bytes | None)
        assert_type(db.get(b"key", b""), bytes)
        assert_type(db.get(b"key", 1), bytes | int)
        assert_type(db[b"a":b"b"], tamis.Scan[tuple[bytes, bytes]])
        assert_type(list(db.range(keys_only=True)), list[bytes])
        assert_type(db.multi_get([b"key"]), list[bytes | None])
        assert_type(db.first(), tuple[bytes, bytes] | None)
        db.flush()
        assert_type(db.verify()["is_sound"], bool)
        assert_type(db.statistics()["keyspaces"][0]["levels"][0]["bytes"], int)
        numbers = db.keyspace("numbers", create=True, keys="int64", filters="proteus@12")
        assert_type(numbers, tamis.Keyspace[int])
        assert_type(numbers.snapshot(), tamis.Snapshot[int])
        assert_type(db.snapshot().of(numbers), tamis.Snapshot[int])
        assert_type(numbers.last(), tuple[int, bytes] | None)
        pairs = db.create_keyspace("pairs", keys="tuple")
        assert_type(pairs, tamis.Keyspace[tuple[Any, ...]])
        with pairs.batch() as batch:
            assert_type(batch, tamis.WriteBatch[tuple[Any, ...]])
            batch.put((1, "a"), b"")
            batch.put(1, b"", keyspace=numbers)
        with numbers.transaction(isolation="snapshot") as transaction:
            assert_type(transaction, tamis.Transaction[int])
            assert_type(transaction[5:6], tamis.Scan[tuple[int, bytes]])
            assert_type(transaction.of(pairs), tamis.Transaction[tuple[Any, ...]])
        assert_type(db.transact(lambda tx: len(tx)), int)
        db.put_until(b"key", b"value", 2.0**32)
        db.put_until(b"key", b"value", datetime.now(UTC) + timedelta(hours=1))
        words = db.create_keyspace("words", keys="str", merge="append:2c")
        words.merge("a", b"1")
        assert_type(db.statistics()["keyspaces"][0]["expired_bytes"], int)
        assert_type(db.statistics()["readers"][0]["held_bytes"] if db.statistics()["readers"] else 0, int)
        with db.changes(db.snapshot().sequence) as changes:
            assert_type(changes.position, int)
            change = changes.try_next()
            if isinstance(change, tamis.CommittedBatch):
                assert_type(change.writes[0][0], str)
            elif isinstance(change, tamis.IngestedTables):
                assert_type(change.keyspace, str)
            elif change is not None:
                assert_type(change, tamis.KeyspaceCreated | tamis.KeyspaceDropped)
        assert_type(db.compare_and_put(b"key", None, b"value"), bool)
        assert reads(db) == 1
        assert reads(numbers.snapshot()) == 1
        writes(numbers)


def reads(mapping: Mapping[Any, bytes]) -> int:
    """Takes any mapping."""
    return len(mapping)


def writes(mapping: MutableMapping[int, bytes]) -> None:
    """Takes any mutable mapping."""
    mapping[5] = b"five"


def test_classes_have_parameters_at_run_time() -> None:
    assert tamis.Database[bytes] is not None
    assert tamis.Scan[tuple[bytes, bytes]] is not None
