"""Codecs of keys: round trips, order, and errors."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest
import tamis

Database = tamis.Database[bytes]

TUPLES: list[tuple[Any, ...]] = [
    (None,),
    (None, None),
    (None, b""),
    (b"",),
    (b"\0",),
    (b"\0\0",),
    (b"\0a",),
    (b"\0\xff",),
    (b"a",),
    (b"a", None),
    (b"a", 5),
    (b"ab",),
    ("",),
    ("\0",),
    ("a",),
    ("a", "b"),
    ("ab",),
    ("é",),
    ((),),
    ((), 1),
    ((None,),),
    ((None, 1),),
    ((b"a",),),
    ((1, (2, "x")), "y"),
    (-(2**64) + 1,),
    (-(2**63),),
    (-65537,),
    (-256,),
    (-255,),
    (-1,),
    (0,),
    (1,),
    (255,),
    (256,),
    (2**63,),
    (2**64 - 1,),
    (float("-inf"),),
    (-1.5,),
    (-0.0,),
    (0.0,),
    (5e-324,),
    (1.5,),
    (float("inf"),),
    (False,),
    (True,),
]


def test_tuples_keep_their_order(db: Database) -> None:
    pairs = db.create_keyspace("pairs", keys="tuple")
    shuffled = TUPLES[:]
    random.Random(1).shuffle(shuffled)
    for index, key in enumerate(shuffled):
        pairs[key] = b"%d" % index
    assert list(pairs) == TUPLES
    assert [type(key[0]) for key in pairs] == [type(key[0]) for key in TUPLES]
    for index, key in enumerate(shuffled):
        assert pairs[key] == b"%d" % index


def test_random_integers_keep_their_order(db: Database) -> None:
    pairs = db.create_keyspace("pairs", keys="tuple")
    numbers = random.Random(2)
    keys = {(numbers.getrandbits(numbers.randrange(1, 65)) * numbers.choice([1, -1]), index) for index in range(2_000)}
    pairs.update({key: b"" for key in keys})
    assert list(pairs) == sorted(keys)


def test_bytes_of_tuples_are_those_of_foundationdb(db: Database) -> None:
    pairs = db.create_keyspace("pairs", keys="tuple")
    key = (None, b"foo\0bar", "FÔO", (b"x", None, ()), 0, -5551212, 42, -42.0, True, False)
    pairs[key] = b""
    expected = (
        b"\x00"
        b"\x01foo\x00\xffbar\x00"
        b"\x02F\xc3\x94O\x00"
        b"\x05\x01x\x00\x00\xff\x05\x00\x00"
        b"\x14"
        b"\x11\xab\x4b\x93"
        b"\x15\x2a"
        b"\x21\x3f\xba\xff\xff\xff\xff\xff\xff"
        b"\x27\x26"
    )
    pairs.set_options(keys="bytes")
    assert list(db.keyspace("pairs")) == [expected]


def test_prefixes_and_ranges_of_tuples(db: Database) -> None:
    pairs = db.create_keyspace("pairs", keys="tuple")
    for tenant in ("a", "ab", "b"):
        for number in range(300):
            pairs[tenant, number] = b""
    assert len(list(pairs.prefix(("a",)))) == 300
    assert list(pairs.range(("ab", 298), ("b", 1), keys_only=True)) == [("ab", 298), ("ab", 299), ("b", 0)]
    pairs.delete_prefix(("ab",))
    assert len(pairs) == 600


def test_damaged_tuples_are_errors(db: Database) -> None:
    raw = db.create_keyspace("pairs")
    raw.set_options(keys="tuple")
    pairs = db.keyspace("pairs", keys="tuple")
    for key in [b"\x01a", b"\x02\xff\x00", b"\x15", b"\x21\x00", b"\x05\x14", b"\x99", b"\x1d\x01", b"\x05" * 200]:
        raw.clear()
        raw[key] = b""
        with pytest.raises(tamis.InvalidArgumentError, match="is not an encoded tuple; open the keyspace with the codec"):
            list(pairs)


def test_deeply_nested_tuples_are_errors(db: Database) -> None:
    key: tuple[Any, ...] = ()
    for _ in range(100_000):
        key = (key,)
    pairs = db.create_keyspace("pairs", keys="tuple")
    with pytest.raises(tamis.InvalidArgumentError, match="nested deeper than 100"):
        pairs[key] = b""
    while key:
        (key,) = key


def test_unsigned_integers(db: Database) -> None:
    numbers = db.create_keyspace("numbers", keys="uint64")
    keys = [0, 1, 255, 256, 2**32, 2**63, 2**64 - 1]
    numbers.update({key: str(key).encode() for key in reversed(keys)})
    assert list(numbers) == keys
    assert numbers[256] == b"256"
    numbers.set_options(keys="bytes")
    assert db.keyspace("numbers")[struct.pack(">Q", 256)] == b"256"
    for key in (-1, 2**64):
        with pytest.raises(tamis.InvalidArgumentError, match=r"out of range; give an int from 0 to 2\*\*64 - 1"):
            numbers[key] = b""
    for wrong in ("1", 1.0, b"1", True, None):
        with pytest.raises(TypeError, match="key: expected int"):
            numbers[wrong] = b""  # type: ignore[index]
    with pytest.raises(TypeError, match=r"integers have no prefixes; use range\(lower, upper\)"):
        numbers.prefix(1)


def test_signed_integers(db: Database) -> None:
    numbers = db.create_keyspace("numbers", keys="int64")
    keys = [-(2**63), -256, -1, 0, 1, 2**63 - 1]
    numbers.update({key: b"" for key in reversed(keys)})
    assert list(numbers) == keys
    assert list(numbers.range(-1, 2, keys_only=True)) == [-1, 0, 1]
    with pytest.raises(tamis.InvalidArgumentError, match="out of range"):
        numbers[2**63] = b""


def test_texts(db: Database) -> None:
    names = db.create_keyspace("names", keys="str")
    keys = ["a", "é", "\U0001f600", "z"]
    names.update({key: key.encode() for key in keys})
    assert list(names) == sorted(keys)
    assert names["é"] == "é".encode()
    assert list(names.prefix("\U0001f600", keys_only=True)) == ["\U0001f600"]
    with pytest.raises(TypeError, match="key: expected str"):
        names[b"a"] = b""  # type: ignore[index]
    with pytest.raises(UnicodeEncodeError):
        names["\ud800"] = b""


def test_keys_of_another_codec_are_errors(db: Database) -> None:
    db[b"\xff"] = b""
    with pytest.raises(tamis.InvalidArgumentError, match="is not UTF-8; open the keyspace with the codec that wrote it"):
        db.set_options(keys="str")
        list(db.keyspace("default", keys="str"))
    with pytest.raises(tamis.InvalidArgumentError, match="is not an integer of 8 bytes"):
        db.set_options(keys="int64")
        list(db.keyspace("default", keys="int64"))
    with pytest.raises(tamis.InvalidArgumentError, match='"float" is not a codec; give "bytes", "str"'):
        db.keyspace("default", keys="float")  # type: ignore[call-overload]


def test_the_codec_of_open(tmp_path: Any) -> None:
    with tamis.open(tmp_path / "store", keys="str") as db:
        assert db.key_codec == "str"
        db["a"] = b"1"
        assert dict(db) == {"a": b"1"}


def test_a_keyspace_has_the_codec_of_its_creation(tmp_path: Path) -> None:
    """It is stored: an open without `keys=` uses it, and one with another codec fails and names both."""
    open_database: Any = tamis.open
    with open_database(tmp_path / "store", keys="tuple") as db:
        db["roof", 1] = b"20"
        db.keyspace("numbers", create=True, keys="uint64")[5] = b"five"
        db.create_keyspace("names", keys="str")["ann"] = b"1"
        db.keyspace("plain", create=True)[b"key"] = b"value"
    for read_only in (False, True):
        for keys in (None, "tuple"):
            with open_database(tmp_path / "store", keys=keys, read_only=read_only) as db:
                assert (db.key_codec, db["roof", 1]) == ("tuple", b"20")
                for name, codec, entry in [
                    ("numbers", "uint64", (5, b"five")),
                    ("names", "str", ("ann", b"1")),
                    ("plain", "bytes", (b"key", b"value")),
                ]:
                    for given in (None, codec):
                        keyspace = db.keyspace(name, keys=given)
                        assert (keyspace.key_codec, list(keyspace.range())) == (codec, [entry])
                    for other in {"bytes", "str", "uint64", "int64", "tuple"} - {codec}:
                        message = f"\"{name}\" has keys of the codec \"{codec}\", got keys=\"{other}\"; give keys=\"{codec}\""
                        for create in {False, not read_only}:
                            with pytest.raises(tamis.InvalidArgumentError, match=message):
                                db.keyspace(name, create=create, keys=other)
        with pytest.raises(tamis.InvalidArgumentError, match="\"default\" has keys of the codec \"tuple\", got keys=\"bytes\""):
            tamis.open(tmp_path / "store", keys="bytes", read_only=read_only)


def test_another_codec_can_be_stored(tmp_path: Path) -> None:
    """A database that was created by mistake with another codec, and filled by a program without codecs."""
    with tamis.open(tmp_path / "store") as db:
        db[bytes(7) + b"\5"] = b"five"
        db.set_options(keys="uint64", layout="tiered")
        assert db.key_codec == "bytes"
        with pytest.raises(tamis.InvalidArgumentError, match="is not a codec"):
            db.set_options(keys="utf-8")  # type: ignore[arg-type]
        db.set_options(layout="leveled")
    with tamis.open(tmp_path / "store", keys="uint64") as numbers:
        assert numbers[5] == b"five"


def test_copies_and_changes_have_the_codec(tmp_path: Path) -> None:
    """A checkpoint, a repaired database, and a keyspace that is dropped and created with another codec."""
    with tamis.open(tmp_path / "store", keys="str") as db:
        db["ann"] = b"1"
        db.create_keyspace("k", keys="int64")
        db.drop_keyspace("k")
        assert db.create_keyspace("k", keys="str").key_codec == "str"
        db.checkpoint(tmp_path / "copy")
    tamis.repair(tmp_path / "copy")
    with tamis.open(tmp_path / "copy") as copy:
        assert (copy.key_codec, copy.keyspace("k").key_codec) == ("str", "str")
