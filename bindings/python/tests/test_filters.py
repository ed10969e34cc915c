"""Filters without a database."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy
import pytest
import tamis
from tamis import filters

KEYS = sorted({b"user:%08d" % random.Random(index).randrange(10**8) for index in range(2_000)})
ABSENT = [key + b"!" for key in KEYS]
NAMES = {family: name for name, family in filters.FAMILIES.items()}
BUDGETS = {"surf": 24.0, "prefix-bloom": 16.0}


def build(family: Any, keys: Any, **arguments: Any) -> filters.Filter:
    """Builds a filter of any family with arguments that suit the keys."""
    name = NAMES[family]
    if name not in ("surf-base", "surf-hash", "surf-real", "surf-mixed"):
        arguments["bits_per_key"] = BUDGETS.get(name, 16.0)
    if name == "prefix-bloom":
        arguments["bytes"] = 8
    if name in ("surf-hash", "surf-real"):
        arguments["bits"] = 8
    if name == "surf-mixed":
        arguments.update(hash=4, real=4)
    if name in ("rosetta", "proteus", "1pbf", "2pbf"):
        arguments["queries"] = [(key, key + b"~") for key in ABSENT[::20]]
    built: filters.Filter = family.build(keys, **arguments)
    return built


@pytest.mark.parametrize("family", filters.FAMILIES.values(), ids=lambda family: family.__name__)
def test_no_family_rejects_a_key(family: Any) -> None:
    built = build(family, KEYS)
    assert type(built) is family
    assert built.family == NAMES[family]
    assert built.key_count == len(KEYS)
    assert 1 < built.bits_per_key < 40
    assert all(key in built for key in KEYS)
    assert built.may_contain_many(KEYS) == [True] * len(KEYS)
    assert built.may_contain_ranges(KEYS, [key + b"\0" for key in KEYS]) == [True] * len(KEYS)
    assert all(built.may_contain_range(key, key, include_upper=True) for key in KEYS)
    assert built.may_contain_prefix(KEYS[5][:9])
    assert built.design
    built.verify()
    copy = pickle.loads(pickle.dumps(built))
    assert type(copy) is family and bytes(copy) == bytes(built)


@pytest.mark.parametrize("family", filters.FAMILIES.values(), ids=lambda family: family.__name__)
def test_families_reject_what_is_absent(family: Any) -> None:
    built = build(family, KEYS)
    strangers = [b"zebra:%08d" % index for index in range(1_000)]
    rejected = built.may_contain_many(strangers).count(False)
    assert rejected > 500
    if issubclass(family, (filters.Surf, filters.SurfReal, filters.PrefixBloom)):
        assert not built.may_contain_prefix(b"zebra:00000")


def test_families_are_those_of_the_engine(tmp_path: Any) -> None:
    with pytest.raises(tamis.InvalidArgumentError) as caught:
        tamis.open(tmp_path, filters="unknown@10")
    for name in filters.FAMILIES:
        assert name in str(caught.value)
    assert len(filters.FAMILIES) == 12


def test_numpy_keys_and_queries() -> None:
    keys = numpy.unique(numpy.random.default_rng(1).integers(0, 2**62, 100_000, dtype="u8"))
    lower = numpy.random.default_rng(2).integers(0, 2**62, 10_000, dtype="u8")
    queries = list(zip(lower[:500].tolist(), (lower[:500] + 32).tolist()))
    proteus = filters.Proteus.build(keys, bits_per_key=16, queries=queries, codec="uint64")
    assert proteus.may_contain_many(keys).all()
    answers = proteus.may_contain_ranges(lower, lower + 32)
    assert answers.dtype == bool and answers.mean() < 0.01
    assert int(keys[7]) in proteus
    assert proteus.may_contain_range(int(keys[7]) - 1, int(keys[7]) + 1)
    with pytest.raises(TypeError, match="key: expected int"):
        b"bytes" in proteus  # noqa: B015


def test_candidates() -> None:
    surf = filters.SurfReal.build([b"apple", b"banana", b"cherry"], bits=8)
    candidate = surf.candidate(b"b", b"z")
    assert isinstance(candidate, bytes) and b"banana".startswith(candidate)
    assert surf.candidate(b"x", b"z") == "absent"
    assert filters.BlockedBloom.build([b"a"], bits_per_key=10).candidate() == "unknown"


def test_advice_names_the_cheapest_family() -> None:
    queries = [(key + b"0", key + b"9") for key in ABSENT[:400]]
    advice = filters.advise(KEYS, queries, bits_per_key=20)
    assert [family.cost_ns for family in advice] == sorted(family.cost_ns for family in advice)
    assert all("@" in family.filter or ":" in family.filter or family.filter == "surf-base" for family in advice)
    assert not any(family.filter.startswith("blocked-bloom") for family in advice)
    points = filters.advise(KEYS, [(key, key) for key in ABSENT])
    assert any(family.filter.startswith("blocked-bloom") for family in points)
    with pytest.raises(tamis.InvalidArgumentError, match="at least one of each"):
        filters.advise([], [])


def test_specifications_are_options(tmp_path: Any) -> None:
    assert filters.Surf.spec(24, truncate=True) == "surf:truncate=yes@24"
    assert filters.SurfReal.spec(bits=16) == "surf-real:bits=16"
    assert filters.SurfBase.spec() == "surf-base"
    assert filters.Rosetta.spec(12.5, probe_cost=20) == "rosetta:probe-cost=20@12.5"
    both = filters.BlockedBloom.spec(10) + "+" + filters.Proteus.spec(12)
    with tamis.open(tmp_path / "store", filters=both) as db:
        db.update({key: b"" for key in KEYS})
        db.flush()
        assert [key in db for key in KEYS[:100] + ABSENT[:100]] == [True] * 100 + [False] * 100


def test_bad_input() -> None:
    with pytest.raises(tamis.FilterBuildError, match="order"):
        filters.BlockedBloom.build([b"b", b"a"], bits_per_key=10)
    with pytest.raises(tamis.InvalidArgumentError, match="probes"):
        filters.BlockedBloom.build([b"a"], bits_per_key=10, probes=1_000)
    with pytest.raises(tamis.InvalidArgumentError):
        filters.BlockedBloom.build([b"a"], bits_per_key=-1)
    with pytest.raises(TypeError):
        filters.BlockedBloom.build([b"a"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="key: expected bytes"):
        filters.BlockedBloom.build(["a"], bits_per_key=10)
    encoded = bytes(filters.BlockedBloom.build(KEYS, bits_per_key=10))
    with pytest.raises(tamis.InvalidArgumentError, match="is a filter of the family blocked-bloom, not surf; open it with"):
        filters.Surf(encoded)
    with pytest.raises(tamis.InvalidArgumentError, match="1 lower bounds, but 2 upper bounds"):
        filters.BlockedBloom(encoded).may_contain_ranges([b"a"], [b"b", b"c"])
    for length in range(0, len(encoded), 97):
        with pytest.raises(tamis.CorruptionError, match="build the filter again"):
            filters.Filter(encoded[:length])
    damaged = bytearray(encoded)
    damaged[-20] ^= 1
    with pytest.raises(tamis.Error):
        filters.Filter(damaged).verify()
    with pytest.raises(TypeError):
        filters.Filter("text")  # type: ignore[arg-type]
