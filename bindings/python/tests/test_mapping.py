"""A database is a mutable mapping over bytes."""

from __future__ import annotations

import array
import collections.abc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tamis

Database = tamis.Database[bytes]


def test_values_survive_a_reopen(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store") as db:
        db[b"apple"] = b"red"
        db.put(b"pear", b"green", durability="synced")
    with tamis.open(str(tmp_path / "store"), read_only=True) as db:
        assert dict(db) == {b"apple": b"red", b"pear": b"green"}
        with pytest.raises(tamis.ReadOnlyError):
            db[b"plum"] = b"blue"


def test_get_returns_the_default_for_an_absent_key(letters: Database) -> None:
    assert letters.get(b"a") == b"A"
    assert letters.get(b"x") is None
    assert letters.get(b"x", b"?") == b"?"
    assert letters.get(key=b"x", default=5) == 5
    assert b"a" in letters
    assert b"x" not in letters
    with pytest.raises(KeyError) as caught:
        letters[b"x"]
    assert caught.value.args == (b"x",)


def test_bytes_like_objects_are_keys_and_values(db: Database) -> None:
    db[bytearray(b"array")] = bytearray(b"value")  # type: ignore[index]
    db[memoryview(b"view")] = memoryview(b"0value0")[1:6]  # type: ignore[index]
    assert dict(db) == {b"array": b"value", b"view": b"value"}


def test_any_contiguous_buffer_is_a_value(db: Database) -> None:
    numbers = array.array("d", [1.5, -2.0, 0.0])
    matrix = memoryview(bytes(range(24))).cast("H", (3, 4))
    with pytest.raises(TypeError, match="value: expected bytes or a contiguous buffer, got list"):
        db[b"list"] = [1, 2]  # type: ignore[assignment]
    with pytest.raises(tamis.InvalidArgumentError, match="not contiguous; give a contiguous copy"):
        db[b"strided"] = memoryview(numbers)[::2]
    values: list[tuple[bytes, Any]] = [(b"array", numbers), (b"view", memoryview(numbers)), (b"matrix", matrix)]
    for key, value in values:
        db[key] = value
        assert db[key] == memoryview(value).tobytes()
    with db.batch() as batch:
        batch[b"in a batch"] = numbers
    db.update({b"in an update": numbers})
    assert db[b"in a batch"] == db[b"in an update"] == numbers.tobytes()
    with pytest.raises(TypeError, match="key: expected bytes, bytearray or memoryview"):
        db[numbers] = b"a key has items of one byte"  # type: ignore[index]


def test_an_array_of_numpy_is_a_value(db: Database) -> None:
    numpy = pytest.importorskip("numpy")
    table = numpy.arange(12, dtype="f4").reshape(3, 4)
    db[b"table"] = table
    assert numpy.array_equal(numpy.frombuffer(db[b"table"], dtype="f4").reshape(3, 4), table)
    with pytest.raises(tamis.InvalidArgumentError, match="not contiguous"):
        db[b"column"] = table[:, 1]


def test_empty_values_are_no_absent_keys(db: Database) -> None:
    db[b"key"] = b""
    assert db[b"key"] == b""
    assert b"key" in db


def test_long_values(db: Database) -> None:
    value = bytes(range(256)) * 10_000
    db[b"key"] = value
    db.flush()
    assert db[b"key"] == value
    assert next(iter(db.values())) == value


def test_deletes(letters: Database) -> None:
    del letters[b"a"]
    assert b"a" not in letters
    with pytest.raises(KeyError):
        del letters[b"a"]
    letters.delete(b"a")
    assert letters.pop(b"b") == b"B"
    assert letters.pop(b"b", None) is None
    with pytest.raises(KeyError):
        letters.pop(b"b")
    assert letters.popitem() == (b"e", b"E")
    assert list(letters) == [b"c", b"d"]
    letters.clear()
    assert not letters
    with pytest.raises(KeyError, match="empty"):
        letters.popitem()


def test_setdefault_and_update(db: Database) -> None:
    assert db.setdefault(b"a", b"1") == b"1"
    assert db.setdefault(b"a", b"2") == b"1"
    db.update({b"b": b"2"})
    db.update([(b"c", b"3"), (b"d", b"4")], durability="synced")
    with tamis.open(db.path.with_name("other")) as other:
        other[b"e"] = b"5"
        db.update(other)
    assert list(db.items()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4"), (b"e", b"5")]


def test_an_update_is_atomic(db: Database) -> None:
    with pytest.raises(TypeError, match="value: expected bytes"):
        db.update([(b"a", b"1"), (b"b", "2")])  # type: ignore[list-item]
    assert len(db) == 0


def test_length_counts_entries_and_truth_reads_one(db: Database) -> None:
    assert len(db) == 0
    assert not db
    db.load((index.to_bytes(4, "big"), b"value") for index in range(10_000))
    assert len(db) == 10_000
    assert db
    assert 7_000 < db.approximate_count() < 13_000


def test_views(letters: Database) -> None:
    assert list(letters.keys()) == [b"a", b"b", b"c", b"d", b"e"]
    assert list(reversed(letters.keys())) == [b"e", b"d", b"c", b"b", b"a"]
    assert list(letters.values()) == [b"A", b"B", b"C", b"D", b"E"]
    assert (b"a", b"A") in letters.items()
    assert (b"a", b"B") not in letters.items()
    assert b"E" in letters.values()
    assert letters.keys() & {b"a", b"x"} == {b"a"}
    assert len(letters.items()) == 5


def test_the_abstract_classes_know_the_mappings(db: Database) -> None:
    assert isinstance(db, collections.abc.MutableMapping)
    assert isinstance(db.snapshot(), collections.abc.Mapping)
    assert not isinstance(db.snapshot(), collections.abc.MutableMapping)


def test_multi_get_has_one_result_for_each_key(letters: Database) -> None:
    assert letters.multi_get([b"e", b"x", b"a", b"e"]) == [b"E", None, b"A", b"E"]
    assert letters.multi_get(iter([])) == []
    with pytest.raises(TypeError, match="iterable of keys"):
        letters.multi_get(b"abc")  # type: ignore[arg-type]


def test_first_and_last(letters: Database) -> None:
    assert letters.first() == (b"a", b"A")
    assert letters.last() == (b"e", b"E")
    letters.clear()
    assert letters.first() is None


def test_representations(letters: Database) -> None:
    assert repr(letters).startswith("<tamis.Database ")
    assert repr(letters.range(reverse=True)) == "<tamis.Scan of entries in reverse>"
    assert repr(letters.keyspace("default")) == '<tamis.Keyspace "default">'
    assert "Snapshot" in repr(letters.snapshot())
    assert repr(letters.batch()) == "<tamis.WriteBatch of 0 writes>"


def test_modules_are_imported_when_they_are_used() -> None:
    program = "import sys, tamis; assert 'typing' not in sys.modules; assert tamis.filters.FAMILIES; assert tamis.aio.open"
    subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {program}"], check=True)
    with pytest.raises(AttributeError, match="module 'tamis' has no attribute 'absent'"):
        tamis.absent  # noqa: B018


def test_a_view_reads_a_value_without_a_copy(db: Database) -> None:
    value = bytes(range(256)) * 64
    db[b"long"] = value
    db[b"empty"] = b""
    db.flush()
    view = db.get_view(b"long")
    assert view is not None and view.readonly and bytes(view) == value and view[-1] == 255
    assert bytes(db.get_view(b"empty", b"?")) == b""
    assert db.get_view(b"absent") is None and db.get_view(b"absent", b"?") == b"?"
    db.delete(b"long")
    db.compact()
    assert bytes(view) == value
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(TypeError):
        db.get_view("text")  # type: ignore[call-overload]
