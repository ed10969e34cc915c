"""Wrong arguments and wrong states raise exceptions with sentences that say what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tamis
from tamis import errors

Database = tamis.Database[bytes]

WRONG_OBJECTS: list[Any] = [None, 5, 1.5, "text", [], {}, object(), (b"a", b"b"), lambda: None, b"a".__len__]


@pytest.mark.parametrize("wrong", WRONG_OBJECTS, ids=repr)
def test_wrong_types_are_type_errors(letters: Any, wrong: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: letters[wrong],
        lambda: letters.get(wrong),
        lambda: letters.put(wrong, b"value"),
        lambda: letters.put(b"key", wrong),
        lambda: letters.__setitem__(wrong, b"value"),
        lambda: letters.__delitem__(wrong),
        lambda: letters.delete(wrong),
        lambda: letters.pop(wrong),
        lambda: letters.pop(wrong, None),
        lambda: letters.setdefault(b"x", wrong),
        lambda: letters.prefix(wrong),
        lambda: letters.multi_get([b"a", wrong]),
        lambda: letters.batch().put(wrong, b"value"),
        lambda: letters.batch().put(b"key", wrong),
        lambda: letters.merge(wrong, b"operand"),
        lambda: letters.merge(b"key", wrong),
        lambda: letters.put_until(wrong, b"value", 2.0**32),
        lambda: letters.put_until(b"key", wrong, 2.0**32),
        lambda: letters.range().seek(wrong),
        lambda: letters.load([(wrong, b"value")]),
        lambda: letters.load([(b"key", wrong)]),
        lambda: wrong in letters,
    ]
    if wrong is not None:
        calls += [lambda: letters.range(wrong), lambda: letters[:wrong], lambda: letters.batch().put(b"", b"", keyspace=wrong)]
        calls += [lambda: letters.batch().merge(b"", b"", keyspace=wrong), lambda: letters.batch().put_until(b"", b"", 2.0**32, keyspace=wrong)]
        calls += [lambda: letters.load(b"a", wrong), lambda: letters.approximate_count(None, wrong)]
    if not isinstance(wrong, (int, float)):
        calls += [lambda: letters.put_until(b"key", b"value", wrong), lambda: letters.batch().put_until(b"key", b"value", wrong)]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert len(letters) == 5


@pytest.mark.parametrize("wrong", WRONG_OBJECTS, ids=repr)
def test_wrong_arguments_of_other_calls(tmp_path: Path, db: Any, wrong: Any) -> None:
    other = tmp_path / "other"
    with pytest.raises((TypeError, ValueError)):
        tamis.open(other, cache_bytes=wrong, compression=wrong)
    if wrong is not None:
        with pytest.raises((TypeError, ValueError)):
            tamis.open(other, keys=wrong)
    if not isinstance(wrong, int) or wrong < 0:
        with pytest.raises((TypeError, OverflowError)):
            db.range(limit="1" if wrong is None else wrong)
    for call in (db.put, db.delete):
        with pytest.raises((TypeError, ValueError)):
            call(*([b"a"] * (2 if call == db.put else 1)), durability=wrong)
    if not isinstance(wrong, str):
        for function in (tamis.open, tamis.verify_folder, tamis.repair, db.checkpoint, db.keyspace, db.drop_keyspace):
            with pytest.raises(TypeError):
                function(wrong)
    assert not other.exists()


def test_messages_of_wrong_types(db: Any) -> None:
    with pytest.raises(TypeError, match=r"key: expected bytes \(encode the text, or open the keyspace with keys=\"str\"\), got str"):
        db["text"]
    with pytest.raises(TypeError, match="value: expected bytes or a contiguous buffer, got int"):
        db[b"key"] = 5
    with pytest.raises(TypeError, match=r"a slice cannot be assigned; use update\(\) or batch\(\)"):
        db[b"a":b"b"] = b"c"


def test_invalid_values_are_value_errors(db: Any, tmp_path: Path) -> None:
    with pytest.raises(tamis.SizeError, match="empty"):
        db[b""] = b"value"
    with pytest.raises(tamis.SizeError):
        db[b"k" * 65_536] = b"value"
    for key in (b"", b"k" * 65_536):
        # No mapping has such a key: a question for it is no error.
        assert key not in db
        assert db.get(key) is None
        assert db.get(key, b"other") == b"other"
        assert db.multi_get([b"absent", key]) == [None, None]
        with pytest.raises(KeyError):
            db[key]
        with pytest.raises(KeyError):
            del db[key]
    with pytest.raises(tamis.InvalidArgumentError, match="give `deferred`, `buffered` or `synced`"):
        db.put(b"a", b"b", durability="fast")
    with pytest.raises(tamis.InvalidArgumentError, match="unknown option \"cache\"; the options are: create_if_missing"):
        tamis.open(tmp_path / "other", cache=5)
    with pytest.raises(tamis.InvalidArgumentError, match="such as 1048576 or 1MiB"):
        tamis.open(tmp_path / "other", cache_bytes="many")
    with pytest.raises(tamis.InvalidArgumentError, match="unknown option \"workers\""):
        db.create_keyspace("a", workers=3)
    with pytest.raises(tamis.InvalidArgumentError):
        db.create_keyspace("")
    with pytest.raises(tamis.InvalidArgumentError):
        db.drop_keyspace("default")
    with pytest.raises(ValueError):
        db.create_keyspace("a", filters="unknown@10")
    with pytest.raises(tamis.InvalidArgumentError, match="limit: give 0 or more"):
        db.range(limit=-1)
    with pytest.raises(tamis.InvalidArgumentError, match="count: give 0 or more"):
        db.range().take(-1)
    assert not (tmp_path / "other").exists()


def test_states_of_folders(db: Database, tmp_path: Path) -> None:
    with pytest.raises(tamis.LockedError, match="close it there first"):
        tamis.open(db.path)
    (tmp_path / "file").write_text("text")
    with pytest.raises((tamis.NotADatabaseError, tamis.IoError)):
        tamis.open(tmp_path / "file")
    with pytest.raises(tamis.NotADatabaseError):
        tamis.open(tmp_path / "absent", create_if_missing=False)
    with pytest.raises(tamis.InvalidArgumentError):
        db.checkpoint(tmp_path)


def test_a_closed_database_raises(letters: Database) -> None:
    folder, events = letters.path, letters.create_keyspace("events")
    snapshot, batch, scan, views = letters.snapshot(), letters.batch(), letters.range(), letters.items()
    batch.put(b"x", b"X")
    next(scan)
    letters.close()
    letters.close()
    assert letters.is_closed
    assert repr(letters) == "<tamis.Database (closed)>"
    calls: list[Callable[[], object]] = [
        lambda: letters[b"a"],
        lambda: letters.put(b"a", b"b"),
        lambda: letters.delete(b"a"),
        lambda: letters.range(),
        lambda: list(views),
        lambda: len(letters),
        lambda: bool(letters),
        lambda: letters.statistics(),
        lambda: letters.verify(),
        lambda: letters.flush(),
        lambda: letters.keyspace("events"),
        lambda: letters.load([]),
        lambda: letters.batch(),
        lambda: letters.snapshot(),
        lambda: letters.__enter__(),
        lambda: events[b"a"],
        lambda: events.clear(),
        lambda: snapshot[b"a"],
        lambda: batch.write(),
        lambda: next(scan),
        lambda: scan.take(1),
        lambda: scan.to_arrow(),
        lambda: scan.seek(b"a"),
    ]
    for call in calls:
        with pytest.raises(tamis.ClosedError, match=r"the database is closed; open it again with tamis.open\(\)"):
            call()
    scan.close()
    snapshot.close()
    batch.clear()
    with tamis.open(folder) as again:
        assert len(again) == 5


def test_damage_is_an_exception_and_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with tamis.open(folder) as db:
        db.load((b"%06d" % index, b"value") for index in range(20_000))
        db.flush()
        db.compact()
    (table,) = folder.glob("*.table")
    content = bytearray(table.read_bytes())
    content[5_000] ^= 1
    table.write_bytes(content)
    report = tamis.verify_folder(folder)
    assert not report["is_sound"]
    assert str(table) in report["faults"][0]["file"]
    with tamis.open(folder) as db:
        with pytest.raises(tamis.CorruptionError, match="damaged .* at offset"):
            list(db)
        scan = db.range()
        with pytest.raises(tamis.CorruptionError):
            scan.to_numpy()
        assert 0 < len(list(scan)) < 1_000  # the entries before the damage
    (folder / "CURRENT").unlink()
    with pytest.raises(tamis.Error):
        tamis.open(folder)
    assert not tamis.repair(folder)["was_sound"]
    tamis.open(folder).close()


def test_entries_before_damage_are_returned(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with tamis.open(folder) as db:
        db.load((b"%06d" % index, b"value" * 10) for index in range(20_000))
        db.flush()
        db.compact()
    (table,) = folder.glob("*.table")
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    with tamis.open(folder) as db:
        scan, found = db.range(keys_only=True), []
        with pytest.raises(tamis.CorruptionError):
            for key in scan:
                found.append(key)
        assert 5_000 < len(found) < 15_000
        assert found == [b"%06d" % index for index in range(len(found))]


def test_a_second_thread_of_a_scan_gets_an_error(db: Database) -> None:
    db.load((b"%06d" % index, b"v" * 100) for index in range(200_000))
    scan = db.range()
    outcomes: list[object] = []
    barrier = threading.Barrier(4)

    def read() -> None:
        barrier.wait()
        try:
            outcomes.append(sum(1 for _ in scan))
        except tamis.BusyError as error:
            assert "give each thread a separate scan" in str(error)
            outcomes.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 4
    assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) <= 200_000


def test_classes_cannot_be_created_without_open() -> None:
    for name in ("Database", "Keyspace", "Reader", "Snapshot", "Scan", "TableWriter", "WriteBatch"):
        with pytest.raises(TypeError):
            getattr(tamis, name)()


def test_every_exception_derives_from_error() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), tamis.Error)
        assert getattr(tamis, name) is getattr(errors, name)
