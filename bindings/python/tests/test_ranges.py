"""Ranges, slices, prefixes and their iterators."""

from __future__ import annotations

import pytest
import tamis

Database = tamis.Database[bytes]


def test_slices_are_half_open(letters: Database) -> None:
    assert list(letters[b"b":b"d"]) == [(b"b", b"B"), (b"c", b"C")]
    assert [key for key, _ in letters[b"d":]] == [b"d", b"e"]
    assert [key for key, _ in letters[:b"b"]] == [b"a"]
    assert len(list(letters[:])) == 5
    with pytest.raises(TypeError, match="no step"):
        letters[b"a":b"z":2]  # type: ignore[index]


def test_ranges_take_bounds_direction_limit_and_parts(letters: Database) -> None:
    assert list(letters.range(b"b", b"d", reverse=True, keys_only=True)) == [b"c", b"b"]
    assert list(letters.range(b"b", b"d", include_lower=False, include_upper=True, keys_only=True)) == [b"c", b"d"]
    assert list(letters.range(limit=2, values_only=True)) == [b"A", b"B"]
    assert list(letters.range(reverse=True, limit=1)) == [(b"e", b"E")]
    assert list(letters.range(limit=0)) == []
    assert list(letters.range(b"d", b"b")) == []
    with pytest.raises(tamis.InvalidArgumentError, match="exclude each other"):
        letters.range(keys_only=True, values_only=True)  # type: ignore[call-overload]


def test_prefixes(db: Database) -> None:
    db.update({key: b"" for key in [b"a", b"aa", b"ab", b"b", b"\xff", b"\xff\xff"]})
    assert list(db.prefix(b"a", keys_only=True)) == [b"a", b"aa", b"ab"]
    assert list(db.prefix(b"\xff", keys_only=True, reverse=True)) == [b"\xff\xff", b"\xff"]
    db.delete_prefix(b"a")
    assert list(db) == [b"b", b"\xff", b"\xff\xff"]


def test_deletes_of_ranges(letters: Database) -> None:
    del letters[b"b":b"d"]
    assert list(letters) == [b"a", b"d", b"e"]
    letters.delete_range(b"a", b"d", include_lower=False, include_upper=True)
    assert list(letters) == [b"a", b"e"]
    letters.delete_range()
    assert not letters


def test_long_scans_return_every_entry_once(db: Database) -> None:
    count = 20_000
    expected = [(index.to_bytes(4, "big"), b"%d" % index) for index in range(count)]
    db.load(expected)
    db.flush()
    assert list(db.range()) == expected
    assert list(db.range(reverse=True)) == expected[::-1]
    for limit in (1, 31, 32, 33, 159, 160, 161, 5_000, count + 1):
        assert list(db.range(limit=limit)) == expected[:limit]


def test_a_scan_reads_the_state_of_its_creation(letters: Database) -> None:
    scan = letters.range(keys_only=True)
    assert next(scan) == b"a"
    letters.clear()
    letters[b"z"] = b"Z"
    letters.flush()
    letters.compact()
    assert list(scan) == [b"b", b"c", b"d", b"e"]
    assert list(scan) == []


def test_take_returns_lists(letters: Database) -> None:
    scan = letters.range(keys_only=True)
    assert scan.take(2) == [b"a", b"b"]
    assert scan.take(10) == [b"c", b"d", b"e"]
    assert scan.take(10) == []


def test_seek_moves_in_both_directions(letters: Database) -> None:
    scan = letters.range(keys_only=True)
    assert scan.take(10) == [b"a", b"b", b"c", b"d", b"e"]
    scan.seek(b"bb")
    assert scan.take(2) == [b"c", b"d"]
    scan.seek(b"a")
    assert next(scan) == b"a"
    backward = letters.range(keys_only=True, reverse=True)
    backward.seek(b"bb")
    assert list(backward) == [b"b", b"a"]


def test_a_limit_counts_across_seeks(letters: Database) -> None:
    scan = letters.range(keys_only=True, limit=3)
    assert next(scan) == b"a"
    scan.seek(b"d")
    assert list(scan) == [b"d", b"e"]
    scan.seek(b"a")
    assert list(scan) == []


def test_a_closed_scan_raises(letters: Database) -> None:
    with letters.range() as scan:
        next(scan)
    with pytest.raises(tamis.ClosedError, match=r"the scan is closed; create another one with range\(\)"):
        next(scan)
    with pytest.raises(tamis.ClosedError):
        scan.seek(b"a")
    with pytest.raises(tamis.ClosedError):
        scan.take(1)
    scan.close()
