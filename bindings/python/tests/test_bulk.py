"""Bulk data: iterables, numpy arrays and Arrow tables."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow  # type: ignore[import-untyped]
import pytest
import tamis

Database = tamis.Database[bytes]


def entries(count: int) -> list[tuple[bytes, bytes]]:
    """Ascending entries of different lengths."""
    return [(b"%08d" % index, b"x" * (index % 50)) for index in range(count)]


def test_load_takes_iterables_and_mappings(db: Database) -> None:
    expected = entries(5_000)
    assert db.load(iter(expected)) == 5_000
    assert list(db.items()) == expected
    assert db.load({b"a": b"1"}, durability="deferred") == 1
    assert db.load(db.create_keyspace("empty")) == 0
    assert db.keyspace("empty").load(db) == 5_001


def test_load_reports_progress(db: Database) -> None:
    counts: list[int] = []
    value = b"v" * 10_000
    assert db.load(((b"%05d" % index, value) for index in range(500)), progress=counts.append) == 500
    assert len(counts) >= 4
    assert counts == sorted(counts)
    assert counts[-1] == 500


def test_an_exception_of_the_callback_ends_a_load(db: Database) -> None:
    def fail(count: int) -> None:
        raise ZeroDivisionError(count)

    with pytest.raises(ZeroDivisionError):
        db.load(entries(100), progress=fail)
    assert len(db) == 100
    with pytest.raises(ZeroDivisionError):
        db.create_keyspace("sorted").ingest_sorted(entries(100), progress=fail)
    assert len(db.keyspace("sorted")) == 0
    with pytest.raises(TypeError, match="progress: expected a function"):
        db.load([], progress=5)  # type: ignore[call-overload]


def test_an_exception_of_the_iterable_ends_a_load(db: Database) -> None:
    def broken() -> Any:
        yield b"a", b"1"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.load(broken())
    with pytest.raises(ZeroDivisionError):
        db.ingest_sorted(broken())
    with pytest.raises(TypeError, match=r"expected pairs \(key, value\), got int"):
        db.load([1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"expected pairs \(key, value\), got tuple"):
        db.load([(b"a", b"b", b"c")])  # type: ignore[list-item]


def test_ingest_sorted_builds_tables(db: Database) -> None:
    small = db.create_keyspace("small", table_bytes="64KiB")
    expected = entries(20_000)
    report = small.ingest_sorted(expected)
    assert report["entry_count"] == 20_000
    assert report["table_count"] > 3
    assert list(small.items()) == expected
    assert [path.name for path in db.path.parent.iterdir()] == ["store"]
    with pytest.raises(tamis.InvalidArgumentError, match="add keys in ascending order"):
        small.ingest_sorted([(b"b", b""), (b"a", b"")])
    with pytest.raises(tamis.InvalidArgumentError, match="give at least one entry"):
        small.ingest_sorted([])
    assert [path.name for path in db.path.parent.iterdir()] == ["store"]


@pytest.mark.parametrize("codec", ["uint64", "int64"])
def test_integer_keys_to_numpy_and_back(db: Database, codec: Any) -> None:
    numbers = db.create_keyspace("numbers", keys=codec)
    keys = numpy.arange(100_000, dtype=codec) - (50_000 if codec == "int64" else 0)
    values = numpy.random.default_rng(1).normal(size=len(keys))
    assert numbers.load(keys[::-1], values[::-1]) == len(keys)
    assert numbers[int(keys[5])] == values[5].tobytes()
    found, numbers_found = numbers.range().to_numpy(value_dtype="f8")
    assert found.dtype == codec
    assert (found == keys).all() and (numbers_found == values).all()
    assert (numbers.range(reverse=True, limit=10, keys_only=True).to_numpy() == keys[:-11:-1]).all()
    copy = db.create_keyspace("copy", keys=codec)
    assert copy.ingest_sorted(keys, values)["entry_count"] == len(keys)
    assert list(copy.items()) == list(numbers.items())


def test_other_integer_types_are_converted(db: Database) -> None:
    numbers = db.create_keyspace("numbers", keys="uint64")
    numbers.load(numpy.array([3, 1, 2], dtype="i2"), numpy.array([b"c", b"a", b"b"]))
    assert list(numbers.items()) == [(1, b"a"), (2, b"b"), (3, b"c")]
    with pytest.raises(tamis.InvalidArgumentError, match="some are negative"):
        numbers.load(numpy.array([-1]), numpy.array([b""]))
    with pytest.raises(tamis.InvalidArgumentError, match=r"some are above 2\*\*63 - 1"):
        db.create_keyspace("signed", keys="int64").load(numpy.array([2**63], dtype="u8"), numpy.array([b""]))
    with pytest.raises(TypeError, match="array of integers with one dimension"):
        numbers.load(numpy.array([1.5]), numpy.array([b""]))


def test_rows_of_bytes(db: Database) -> None:
    keys = numpy.array([[0, 1], [0, 2], [1, 0]], dtype=numpy.uint8)
    values = numpy.arange(6, dtype="f4").reshape(3, 2)
    db.load(keys, values)
    assert list(db) == [b"\0\1", b"\0\2", b"\1\0"]
    found, rows = db.range().to_numpy(value_dtype="f4")
    assert (found == keys).all() and (rows == values).all()
    assert found.flags.writeable is False
    db.clear()
    db.load(numpy.array([b"ab", b"c"]), numpy.array([b"x\0\0", b""], dtype="V3"))
    assert dict(db) == {b"ab": b"x\0\0", b"c": b"\0\0\0"}


def test_entries_of_different_lengths(db: Database) -> None:
    db.update({b"a": b"1", b"bb": b"22"})
    keys, values = db.range().to_numpy(key_dtype=object, value_dtype=object)
    assert keys.tolist() == [b"a", b"bb"]
    assert values.tolist() == [b"1", b"22"]
    with pytest.raises(tamis.InvalidArgumentError, match="keys have different lengths; give key_dtype=object"):
        db.range().to_numpy()
    with pytest.raises(tamis.InvalidArgumentError, match="no multiple of float64"):
        db.range(limit=1, values_only=True).to_numpy(value_dtype="f8")


def test_texts_and_tuples_to_numpy(db: Database) -> None:
    names = db.create_keyspace("names", keys="str")
    names.load(numpy.array(["b", "añb"]), numpy.array([1, 2]))
    keys, values = names.range().to_numpy(value_dtype="i8")
    assert keys.tolist() == ["añb", "b"] and values.tolist() == [2, 1]
    pairs = db.create_keyspace("pairs", keys="tuple")
    pairs["a", 1] = b""
    assert pairs.range(keys_only=True).to_numpy().tolist() == [("a", 1)]


def test_empty_results(db: Database) -> None:
    keys, values = db.range().to_numpy(value_dtype="f8")
    assert len(keys) == 0 and values.dtype == "f8"
    table = db.range().to_arrow()
    assert table.num_rows == 0 and table.column_names == ["key", "value"]
    assert db.load(numpy.empty((0, 4), dtype="u1"), numpy.empty(0)) == 0
    assert db.load(table) == 0


def test_bulk_reads_continue_a_scan(db: Database) -> None:
    db.load(entries(1_000))
    scan = db.range(keys_only=True)
    assert next(scan) == b"00000000"
    keys = scan.to_numpy(key_dtype="S8")
    assert keys[0] == b"00000001" and len(keys) == 999
    assert list(scan) == []
    assert len(db.range(limit=70).to_arrow()) == 70


def test_arrow_tables(db: Database) -> None:
    expected = entries(3_000)
    table = pyarrow.table({"key": [key for key, _ in expected], "value": [value for _, value in expected]})
    chunks = pyarrow.concat_tables([table.slice(0, 1_000), table.slice(1_000, 1_500), table.slice(2_500)])
    assert db.load(chunks) == 3_000
    assert list(db.items()) == expected
    found = db.range().to_arrow()
    assert found.schema.types == [pyarrow.large_binary(), pyarrow.large_binary()]
    assert found.to_pylist() == [{"key": key, "value": value} for key, value in expected]
    copy = db.create_keyspace("copy")
    assert copy.ingest_sorted(found)["entry_count"] == 3_000
    assert list(copy.items()) == expected


def test_arrow_types(db: Database) -> None:
    numbers = db.create_keyspace("numbers", keys="int64")
    numbers.load(pyarrow.array([3, -1], pyarrow.int32()), pyarrow.array([1.5, 2.5]))
    table = numbers.range().to_arrow(value_type=pyarrow.float64())
    assert table.to_pydict() == {"key": [-1, 3], "value": [2.5, 1.5]}
    names = db.create_keyspace("names", keys="str")
    names.load(pyarrow.table({"name": ["é", "a"], "text": ["x", "y"]}))
    found = names.range().to_arrow(value_type=pyarrow.string())
    assert found.to_pydict() == {"key": ["a", "é"], "value": ["y", "x"]}
    fixed = pyarrow.array([b"abcd", b"efgh", b"ijkl"], pyarrow.binary(4)).slice(1)
    db.load(fixed, fixed)
    assert dict(db) == {b"efgh": b"efgh", b"ijkl": b"ijkl"}


def test_bad_columns_are_errors(db: Database) -> None:
    with pytest.raises(tamis.InvalidArgumentError, match="2 keys, but 1 values"):
        db.load(numpy.array([b"a", b"b"]), numpy.array([b"c"]))
    with pytest.raises(TypeError, match="expected a numpy array or an Arrow array, got list"):
        db.load([b"a"], [b"b"])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="expected bytes, got an array of int64"):
        db.load(numpy.array([1]), numpy.array([b"c"]))
    with pytest.raises(TypeError, match="array of Python objects"):
        db.load(numpy.array([b"a"]), numpy.array([b"c"], dtype=object))
    with pytest.raises(tamis.InvalidArgumentError, match="the column has nulls"):
        db.load(pyarrow.table({"key": [b"a", None], "value": [b"", b""]}))
    with pytest.raises(tamis.InvalidArgumentError, match="give the columns `key` and `value`"):
        db.load(pyarrow.table({"a": [b"a"], "b": [b"b"], "c": [b"c"]}))
    with pytest.raises(TypeError, match="does not fit; cast it to bytes"):
        db.load(pyarrow.table({"key": [1], "value": [b""]}))
    with pytest.raises(tamis.SizeError):
        db.load(pyarrow.table({"key": [b""], "value": [b""]}))
    db[b"a"] = b"\xff"
    with pytest.raises(tamis.InvalidArgumentError, match="values are not UTF-8"):
        db.range().to_arrow(value_type=pyarrow.string())
    with pytest.raises(tamis.InvalidArgumentError, match="do not have the 8 bytes of double"):
        db.range().to_arrow(value_type=pyarrow.float64())
    with pytest.raises(tamis.InvalidArgumentError, match="no fixed number of bytes"):
        db.range().to_arrow(value_type=pyarrow.list_(pyarrow.int8()))


def test_missing_packages_are_named(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db[b"a"] = b"1"
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    scan = db.range()
    with pytest.raises(ImportError, match="needs numpy, which is not installed; run: pip install numpy"):
        scan.to_numpy()
    assert list(scan) == [(b"a", b"1")]
