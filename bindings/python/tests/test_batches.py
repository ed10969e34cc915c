"""Write batches, keyspaces and snapshots."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest
import tamis

Database = tamis.Database[bytes]


def test_a_batch_writes_at_the_end_of_its_block(letters: Database) -> None:
    with letters.batch() as batch:
        batch.delete_range(b"a", b"c")
        batch.put(b"b", b"new")
        batch[b"x"] = b"X"
        del batch[b"e"]
        assert len(batch) == 4
        assert letters[b"b"] == b"B"
    assert dict(letters) == {b"b": b"new", b"c": b"C", b"d": b"D", b"x": b"X"}
    assert not batch


def test_a_batch_writes_nothing_after_an_exception(letters: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        with letters.batch() as batch:
            batch.delete_prefix(b"")
            1 / 0  # noqa: B018
    assert len(letters) == 5
    batch.write()
    assert len(letters) == 5


def test_a_batch_is_atomic_across_keyspaces(db: Database) -> None:
    numbers = db.create_keyspace("numbers", keys="uint64")
    with db.batch(durability="synced") as batch:
        batch.put(b"a", b"1")
        batch.put(7, b"seven", keyspace=numbers)
        batch.update({8: b"eight"}, keyspace=numbers)
    assert db[b"a"] == b"1"
    assert dict(numbers) == {7: b"seven", 8: b"eight"}


def test_batches_refuse_keyspaces_of_other_databases(db: Database, tmp_path: Path) -> None:
    with tamis.open(tmp_path / "other") as other:
        batch = db.batch()
        batch.put(b"a", b"1")
        with pytest.raises(tamis.InvalidArgumentError, match="another"):
            batch.put(b"b", b"2", keyspace=other)
        batch.write()
        assert list(db) == [b"a"]
        foreign = db.batch()
        foreign.put(b"b", b"2", keyspace=other)
        with pytest.raises(tamis.InvalidArgumentError, match="another"):
            foreign.write()
        with pytest.raises(tamis.InvalidArgumentError, match="another database"):
            db.snapshot().of(other)
        with pytest.raises(tamis.InvalidArgumentError, match="snapshot cannot be written"):
            batch.put(b"b", b"2", keyspace=db.snapshot())  # type: ignore[call-overload]


def test_a_forgotten_batch_warns(letters: Database) -> None:
    batch = letters.batch()
    batch[b"f"] = b"F"
    with pytest.warns(ResourceWarning, match=r"a batch with writes was dropped; call write\(\) or clear\(\)"):
        del batch
    assert b"f" not in letters
    # Written, cleared, empty and abandoned ones do not.
    written = letters.batch()
    written[b"g"] = b"G"
    written.write()
    cleared = letters.batch()
    cleared[b"h"] = b"H"
    cleared.clear()
    empty = letters.batch()
    with pytest.raises(RuntimeError), letters.batch() as abandoned:
        abandoned[b"i"] = b"I"
        raise RuntimeError
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del written, cleared, empty, abandoned
        gc.collect()


def test_a_forgotten_database_warns(tmp_path: Path) -> None:
    db = tamis.open(tmp_path / "store")
    with pytest.warns(ResourceWarning, match=r"a database was not closed; call close\(\)"):
        del db
    db = tamis.open(tmp_path / "store")
    db.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del db
        gc.collect()


def test_other_options_of_an_existing_keyspace_are_refused(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", memtable_bytes="1MiB") as db:
        db.create_keyspace("k", layout="tiered")
        for create in (True, False):
            with pytest.raises(tamis.InvalidArgumentError, match="\"k\" was created with layout = tiered:.*, not partitioned.*set_options"):
                db.keyspace("k", create=create, layout="partitioned")
            assert db.keyspace("k", create=create, layout="tiered").name == "k"
            assert db.keyspace("k", create=create).name == "k"
        db.keyspace("k").set_options(layout="partitioned")
        assert db.keyspace("k", layout="partitioned").name == "k"
        with pytest.raises(tamis.InvalidArgumentError, match="can't be changed"):
            db.keyspace("k").set_options(block_bytes="8KiB")
    with pytest.raises(tamis.InvalidArgumentError, match="memtable_bytes = 1048576, not 2097152"):
        tamis.open(tmp_path / "store", memtable_bytes="2MiB")
    tamis.open(tmp_path / "store").close()


def test_keyspaces(db: Database) -> None:
    events = db.create_keyspace("events", filters="surf@16", memtable_bytes="1MiB", block_bytes="8KiB")
    events[b"a"] = b"1"
    assert events.name == "events"
    assert db.keyspace_names() == ["default", "events"]
    assert db.keyspace("events")[b"a"] == b"1"
    assert b"a" not in db
    with pytest.raises(tamis.KeyspaceExistsError):
        db.create_keyspace("events")
    with pytest.raises(tamis.KeyspaceNotFoundError) as caught:
        db.keyspace("absent")
    assert isinstance(caught.value, LookupError)
    assert db.keyspace("made", create=True).name == "made"
    db.drop_keyspace("events")
    with pytest.raises(tamis.KeyspaceDroppedError):
        events[b"a"]
    with pytest.raises(tamis.KeyspaceDroppedError):
        list(events)


def test_snapshots_keep_their_moment(letters: Database) -> None:
    with letters.snapshot() as snapshot:
        letters.clear()
        assert snapshot[b"a"] == b"A"
        assert snapshot.multi_get([b"a", b"x"]) == [b"A", None]
        assert list(snapshot.range(b"b", limit=2)) == [(b"b", b"B"), (b"c", b"C")]
        assert len(snapshot) == 5
        assert snapshot.last() == (b"e", b"E")
        scan = iter(snapshot)
        assert next(scan) == b"a"
    assert list(scan) == [b"b", b"c", b"d", b"e"]
    with pytest.raises(tamis.ClosedError, match="the snapshot is closed"):
        snapshot[b"a"]


def test_a_snapshot_reads_all_keyspaces(db: Database) -> None:
    names = db.create_keyspace("names", keys="str")
    names["a"] = b"1"
    snapshot = db.snapshot()
    names["b"] = b"2"
    assert list(snapshot.of(names)) == ["a"]
    assert list(names.snapshot()) == ["a", "b"]


def test_a_batch_has_a_size_is_appended_and_lists_its_writes(db: Database) -> None:
    numbers = db.create_keyspace("numbers", keys="uint64")
    batch = db.batch()
    assert batch.size_bytes == 0 and list(batch) == []
    batch.put(b"a", b"1")
    batch.put(7, b"seven", keyspace=numbers)
    other = db.batch()
    other.delete(b"b")
    other.delete_range(b"c", b"e")
    other.delete_prefix(b"\xff")
    batch.append(other)
    assert len(batch) == 5 and len(other) == 3 and batch.size_bytes > other.size_bytes > 0
    assert list(batch) == [
        ("put", b"a", b"1"),
        ("delete", b"b"),
        ("delete_range", b"c", b"e"),
        ("delete_range", b"\xff", None),
    ]
    assert batch.writes(numbers) == [("put", 7, b"seven")]
    other.clear()
    batch.append(batch)
    assert len(batch) == 10
    batch.write()
    assert dict(db) == {b"a": b"1"} and numbers[7] == b"seven"


def test_a_batch_of_another_database_is_not_appended(db: Database, tmp_path: Path) -> None:
    with tamis.open(tmp_path / "other") as other_db:
        other = other_db.batch()
        other.put(b"a", b"1")
        batch = db.batch()
        batch.put(b"b", b"2")
        with pytest.raises(tamis.InvalidArgumentError, match="another store"):
            batch.append(other)
        assert len(batch) == 1
        batch.clear()
        other.clear()
