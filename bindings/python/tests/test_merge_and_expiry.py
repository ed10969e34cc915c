"""Merge operators, and entries that expire."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import tamis

Database = tamis.Database[bytes]
HOUR = timedelta(hours=1)


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def wait_until(moment: float) -> None:
    while time.time() <= moment:
        time.sleep(0.01)


def test_operands_are_merged_when_a_key_is_read(db: Database) -> None:
    visits = db.create_keyspace("visits", keys="str", merge="add_u64")
    for _ in range(3):
        visits.merge("home", number(1))
    visits.merge("home", bytearray(number(4)), durability="synced")
    assert visits["home"] == number(7)
    assert list(visits.range()) == [("home", number(7))]
    db.flush()
    visits.merge("home", number(1))
    visits.compact()
    assert visits["home"] == number(8)
    del visits["home"]
    visits.merge("home", number(1))
    assert visits["home"] == number(1)


@pytest.mark.parametrize(
    ("operator", "operands", "merged"),
    [
        ("add_i64", [number(5), (-7).to_bytes(8, "big", signed=True)], (-2).to_bytes(8, "big", signed=True)),
        ("max", [b"b", b"c", b"a"], b"c"),
        ("min", [b"b", b"c", b"a"], b"a"),
        ("append:3b20", [b"x", b"y"], b"x; y"),
        ("union", [b"\x01a\x01c", b"\x01b"], b"\x01a\x01b\x01c"),
    ],
)
def test_built_in_operators(tmp_path: Path, operator: str, operands: list[bytes], merged: bytes) -> None:
    with tamis.open(tmp_path / "store", merge=operator) as db:
        for operand in operands:
            db.merge(b"key", operand)
        assert db[b"key"] == merged
    with tamis.open(tmp_path / "store") as db:
        assert db[b"key"] == merged


def test_batches_merge_and_expire(db: Database) -> None:
    words = db.create_keyspace("words", keys="str", merge="append:2c")
    moment = round(time.time()) + 3_600.25
    with db.batch() as batch:
        batch.merge("a", b"1", keyspace=words)
        batch.merge("a", b"2", keyspace=words)
        batch.put_until("b", b"3", moment, keyspace=words)
        batch.put_until(b"c", b"4", datetime.fromtimestamp(moment, UTC))
        assert batch.writes(words) == [("merge", "a", b"1"), ("merge", "a", b"2"), ("put_until", "b", b"3", moment)]
        assert list(batch) == [("put_until", b"c", b"4", moment)]
        with pytest.raises(tamis.InvalidArgumentError, match="no merge operator"):
            batch.merge(b"a", b"1")
    assert dict(words.range()) == {"a": b"1,2", "b": b"3"}
    assert db[b"c"] == b"4"


def test_transactions_that_merge_into_one_key_do_not_conflict(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", merge="append:") as db:
        first, second = db.transaction(), db.transaction()
        first.merge(b"a", b"1")
        first.put_until(b"b", b"B", datetime.now(UTC) + HOUR)
        second.merge(b"a", b"2")
        assert first[b"a"] == b"1" and first[b"b"] == b"B"
        second.commit()
        with pytest.raises(tamis.ConflictError):
            first.commit()  # it has read the key
        db.transact(lambda tx: tx.merge(b"a", b"3"))
        assert db[b"a"] == b"23"


def test_tables_with_operands_and_times(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", merge="append:2c") as db:
        db[b"a"] = b"1"
        with db.table_writer(tmp_path / "new.table") as table:
            table.merge(b"a", b"2")
            table.put_until(b"b", b"3", time.time() + 3_600)
        db.ingest([tmp_path / "new.table"])
        assert dict(db.range()) == {b"a": b"1,2", b"b": b"3"}
    with tamis.table_writer(tmp_path / "t") as table:
        table.put(b"a", b"0")
        with pytest.raises(tamis.InvalidArgumentError, match="no merge operator"):
            table.merge(b"b", b"1")


def test_a_failed_merge_affects_one_key(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", merge="add_u64") as db:
        db[b"a"] = b"text"
        db.merge(b"a", number(1))
        db.merge(b"b", number(1))
        with pytest.raises(tamis.MergeFailedError, match="\"add_u64\" of keyspace \"default\" fails for the key a"):
            db[b"a"]
        assert db[b"b"] == number(1)
        db[b"a"] = number(5)
        assert db[b"a"] == number(5)
        with pytest.raises(tamis.InvalidArgumentError, match="8 bytes"):
            db.merge(b"a", b"1")


def test_an_open_keyspace_gets_an_operator_once(db: Database) -> None:
    with pytest.raises(tamis.InvalidArgumentError, match="no merge operator"):
        db.merge(b"a", b"1")
    db.set_options(merge="append:")
    db.merge(b"a", b"1")
    with pytest.raises(tamis.InvalidArgumentError, match="merge = append:, not max"):
        db.set_options(merge="max")
    with pytest.raises(tamis.InvalidArgumentError, match="expire_after"):
        db.create_keyspace("both", merge="max", expire_after="1d")


def test_entries_expire(db: Database) -> None:
    soon = time.time() + 0.3
    db.put_until(b"a", b"1", soon)
    db.put_until(b"b", b"2", datetime.now(timezone(timedelta(hours=9))) + HOUR, durability="synced")
    db.put_until(b"c", b"3", int(soon) + 3_600)
    assert list(db) == [b"a", b"b", b"c"]
    with db.snapshot() as snapshot:
        wait_until(soon)
        assert b"a" not in db and db.first() == (b"b", b"2")
        assert list(snapshot) == [b"a", b"b", b"c"]
    assert list(db) == [b"b", b"c"]
    assert db.statistics()["keyspaces"][0]["expired_bytes"] >= 0


def test_all_entries_of_a_keyspace_expire(db: Database) -> None:
    sessions = db.create_keyspace("sessions", keys="str", expire_after="200ms")
    sessions["ann"] = b"1"
    wait_until(time.time() + 0.21)
    assert "ann" not in sessions
    sessions.set_options(expire_after="never")
    sessions["bob"] = b"2"
    wait_until(time.time() + 0.21)
    assert list(sessions) == ["bob"]


def test_times_are_rounded_down_to_milliseconds(db: Database) -> None:
    second = int(time.time()) + 3_600
    batch = db.batch()
    for microseconds, rounded in ((0, 0), (123_000, 123_000), (123_400, 123_000), (999_600, 999_000)):
        moment = datetime.fromtimestamp(second, UTC) + timedelta(microseconds=microseconds)
        for given in (moment, moment.timestamp()):
            batch.put_until(b"a", b"1", given)
            (written,) = batch.writes()
            assert written == ("put_until", b"a", b"1", second + rounded / 1e6)
            batch.clear()


def test_wrong_times(db: Any) -> None:
    with pytest.raises(tamis.InvalidArgumentError, match="no time zone"):
        db.put_until(b"a", b"1", datetime(2999, 1, 1))  # noqa: DTZ001
    for wrong in (float("nan"), float("inf"), -1.0, 2.0**80, 10**400):
        with pytest.raises(tamis.InvalidArgumentError, match="time: "):
            db.put_until(b"a", b"1", wrong)
    for past in (0, 1.5, datetime(1980, 1, 1, tzinfo=UTC), 2.0**56):
        with pytest.raises(tamis.InvalidArgumentError, match="time in the future"):
            db.put_until(b"a", b"1", past)
    for other in (True, "2999-01-01", None, HOUR, datetime(2999, 1, 1, tzinfo=UTC).date()):
        with pytest.raises(TypeError, match="time: expected a datetime with a time zone"):
            db.put_until(b"a", b"1", other)
    assert len(db) == 0
