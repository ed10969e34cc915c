"""Filters without a database: `False` means that a key is certainly absent.

Each family is a class. `build()` takes keys in ascending order, as an iterable or as a numpy or Arrow array; `bytes(filter)` and
`Class(data)` store and open a filter. Families that choose their design from a sample take `queries`: pairs `(lower, upper)` of
half-open ranges, or of equal keys for a single key.

>>> from tamis.filters import Proteus
>>> filter = Proteus.build(range(0, 1_000_000, 1_000), bits_per_key=16, queries=[(10, 20), (5_500, 5_600)], codec="uint64")
>>> filter.may_contain(5_000), filter.may_contain_range(5_001, 5_999)
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from ._tamis import Filter, build_filter
from ._tamis import advise as _advise
from .errors import InvalidArgumentError
from .types import KeyCodec

__all__ = [
    "FAMILIES",
    "Advice",
    "BlockedBloom",
    "Elastic",
    "Filter",
    "OnePrefixBloom",
    "PrefixBloom",
    "Proteus",
    "Rosetta",
    "Surf",
    "SurfBase",
    "SurfHash",
    "SurfMixed",
    "SurfReal",
    "TwoPrefixBloom",
    "advise",
]


class Advice(NamedTuple):
    """The measurements of a family for keys and queries."""

    filter: str
    """The specification, as for the option `filters`."""
    fpr: float
    """The share of false positives among the queries without keys."""
    bits_per_key: float
    query_ns: float
    build_ms: float
    cost_ns: float
    """`query_ns + fpr * read_cost_ns`."""
    design: str


def advise(
    keys: Iterable[Any],
    queries: Iterable[tuple[Any, Any]],
    *,
    bits_per_key: float = 16.0,
    read_cost_ns: float = 20_000.0,
    codec: KeyCodec = "bytes",
) -> list[Advice]:
    """Measures the families for keys and queries of a program; returns those that can be built, the cheapest first.

    `read_cost_ns` is the cost of a false positive: the read of a block.
    """
    measured = _advise(keys, queries, codec=codec, bits_per_key=bits_per_key, read_cost_ns=read_cost_ns)
    return [Advice(**fields) for fields in measured if "error" not in fields]


class _Family(Filter):
    """The common part of the families."""

    _name: ClassVar[str]

    def __new__(cls, data: bytes | bytearray, *, codec: KeyCodec = "bytes") -> Self:
        opened = super().__new__(cls, data, codec=codec)
        if opened.family != cls._name:
            raise InvalidArgumentError(
                f"the data is a filter of the family {opened.family}, not {cls._name}; open it with tamis.filters.Filter"
            )
        return opened

    @classmethod
    def _spec(cls, bits_per_key: float | None, parameters: dict[str, Any]) -> str:
        given = [(name.replace("_", "-"), value) for name, value in parameters.items() if value is not None]
        texts = [f"{name}={'yes' if value is True else 'no' if value is False else value}" for name, value in given]
        spec = cls._name + (":" + ",".join(texts) if texts else "")
        return spec if bits_per_key is None else f"{spec}@{bits_per_key:g}"

    @classmethod
    def _build(
        cls,
        keys: Iterable[Any],
        bits_per_key: float | None,
        queries: Iterable[tuple[Any, Any]] | None,
        codec: KeyCodec,
        seed: int,
        **parameters: Any,
    ) -> Self:
        spec = cls._spec(bits_per_key, parameters)
        return cls(build_filter(spec, keys, queries=queries, codec=codec, seed=seed), codec=codec)


class BlockedBloom(_Family):
    """Points: a Bloom filter with all bits of a key in one cache line. The default of tables."""

    _name = "blocked-bloom"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        probes: int | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, bits_per_key, None, codec, seed, probes=probes)

    @classmethod
    def spec(cls, bits_per_key: float, *, probes: int | None = None) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(bits_per_key, {"probes": probes})


class PrefixBloom(_Family):
    """Prefixes: a Bloom filter of prefixes of one length in bytes."""

    _name = "prefix-bloom"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        bytes: int | None = None,
        probes: int | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, bits_per_key, None, codec, seed, bytes=bytes, probes=probes)

    @classmethod
    def spec(
        cls,
        bits_per_key: float,
        *,
        bytes: int | None = None,
        probes: int | None = None,
    ) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(bits_per_key, {"bytes": bytes, "probes": probes})


class Elastic(_Family):
    """Points: a Bloom filter in units that a database loads one by one."""

    _name = "elastic"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        units: int | None = None,
        probes: int | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, bits_per_key, None, codec, seed, units=units, probes=probes)

    @classmethod
    def spec(cls, bits_per_key: float, *, units: int | None = None, probes: int | None = None) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(bits_per_key, {"units": units, "probes": probes})


class Surf(_Family):
    """Points and ranges: a succinct trie; the budget and the queries choose its suffixes."""

    _name = "surf"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        truncate: bool | None = None,
        queries: Iterable[tuple[Any, Any]] | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, bits_per_key, queries, codec, seed, truncate=truncate)

    @classmethod
    def spec(cls, bits_per_key: float, *, truncate: bool | None = None) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(bits_per_key, {"truncate": truncate})


class SurfBase(_Family):
    """Points and ranges: a succinct trie without suffixes. The keys fix the size."""

    _name = "surf-base"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, None, None, codec, seed)

    @classmethod
    def spec(cls) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(None, {})


class SurfHash(_Family):
    """Points and ranges: a succinct trie with digest bits, for points."""

    _name = "surf-hash"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits: int | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, None, None, codec, seed, bits=bits)

    @classmethod
    def spec(cls, *, bits: int | None = None) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(None, {"bits": bits})


class SurfReal(_Family):
    """Points and ranges: a succinct trie with key bits, for ranges."""

    _name = "surf-real"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits: int | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, None, None, codec, seed, bits=bits)

    @classmethod
    def spec(cls, *, bits: int | None = None) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(None, {"bits": bits})


class SurfMixed(_Family):
    """Points and ranges: a succinct trie with digest bits and key bits."""

    _name = "surf-mixed"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        hash: int | None = None,
        real: int | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(keys, None, None, codec, seed, hash=hash, real=real)

    @classmethod
    def spec(cls, *, hash: int | None = None, real: int | None = None) -> str:
        """The specification for the option `filters` of a keyspace."""
        return cls._spec(None, {"hash": hash, "real": real})


class Rosetta(_Family):
    """Short ranges and points: Bloom filters of binary prefixes; the queries distribute the bits."""

    _name = "rosetta"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
        queries: Iterable[tuple[Any, Any]] | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(
            keys, bits_per_key, queries, codec, seed, probe_cost=probe_cost, read_cost=read_cost, probe_cap=probe_cap
        )

    @classmethod
    def spec(
        cls,
        bits_per_key: float,
        *,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
    ) -> str:
        """The specification for the option `filters` of a keyspace."""
        parameters = {"probe_cost": probe_cost, "read_cost": read_cost, "probe_cap": probe_cap}
        return cls._spec(bits_per_key, parameters)


class Proteus(_Family):
    """Points and ranges: a set of prefixes and a Bloom filter of longer ones; the queries choose the lengths."""

    _name = "proteus"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        trie: int | None = None,
        prefix: int | None = None,
        layout: str | None = None,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
        queries: Iterable[tuple[Any, Any]] | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(
            keys, bits_per_key, queries, codec, seed, trie=trie, prefix=prefix, layout=layout, probe_cost=probe_cost, read_cost=read_cost, probe_cap=probe_cap
        )

    @classmethod
    def spec(
        cls,
        bits_per_key: float,
        *,
        trie: int | None = None,
        prefix: int | None = None,
        layout: str | None = None,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
    ) -> str:
        """The specification for the option `filters` of a keyspace."""
        parameters = {
            "trie": trie,
            "prefix": prefix,
            "layout": layout,
            "probe_cost": probe_cost,
            "read_cost": read_cost,
            "probe_cap": probe_cap,
        }
        return cls._spec(bits_per_key, parameters)


class OnePrefixBloom(_Family):
    """Points and ranges: a Bloom filter of prefixes; the queries choose the length."""

    _name = "1pbf"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        prefix: int | None = None,
        layout: str | None = None,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
        queries: Iterable[tuple[Any, Any]] | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(
            keys, bits_per_key, queries, codec, seed, prefix=prefix, layout=layout, probe_cost=probe_cost, read_cost=read_cost, probe_cap=probe_cap
        )

    @classmethod
    def spec(
        cls,
        bits_per_key: float,
        *,
        prefix: int | None = None,
        layout: str | None = None,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
    ) -> str:
        """The specification for the option `filters` of a keyspace."""
        parameters = {
            "prefix": prefix,
            "layout": layout,
            "probe_cost": probe_cost,
            "read_cost": read_cost,
            "probe_cap": probe_cap,
        }
        return cls._spec(bits_per_key, parameters)


class TwoPrefixBloom(_Family):
    """Points and ranges: two Bloom filters of prefixes; the queries choose the lengths."""

    _name = "2pbf"

    @classmethod
    def build(
        cls,
        keys: Iterable[Any],
        *,
        bits_per_key: float,
        first: int | None = None,
        second: int | None = None,
        share: float | None = None,
        layout: str | None = None,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
        queries: Iterable[tuple[Any, Any]] | None = None,
        codec: KeyCodec = "bytes",
        seed: int = 0,
    ) -> Self:
        """Builds the filter of keys in ascending order."""
        return cls._build(
            keys, bits_per_key, queries, codec, seed, first=first, second=second, share=share, layout=layout, probe_cost=probe_cost, read_cost=read_cost, probe_cap=probe_cap
        )

    @classmethod
    def spec(
        cls,
        bits_per_key: float,
        *,
        first: int | None = None,
        second: int | None = None,
        share: float | None = None,
        layout: str | None = None,
        probe_cost: float | None = None,
        read_cost: float | None = None,
        probe_cap: int | None = None,
    ) -> str:
        """The specification for the option `filters` of a keyspace."""
        parameters = {
            "first": first,
            "second": second,
            "share": share,
            "layout": layout,
            "probe_cost": probe_cost,
            "read_cost": read_cost,
            "probe_cap": probe_cap,
        }
        return cls._spec(bits_per_key, parameters)


FAMILIES: Mapping[str, type[Filter]] = {
    family._name: family
    for family in (
        BlockedBloom,
        PrefixBloom,
        Elastic,
        Surf,
        SurfBase,
        SurfHash,
        SurfReal,
        SurfMixed,
        Rosetta,
        Proteus,
        OnePrefixBloom,
        TwoPrefixBloom,
    )
}
"""The class of each family, by its name."""


def _open(data: bytes, codec: KeyCodec) -> Filter:
    """Opens a filter as its class; pickled filters call it."""
    return FAMILIES[Filter(data).family](data, codec=codec)
