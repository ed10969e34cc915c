"""The views that `keys()`, `values()` and `items()` return. They read the database when they are used."""

from __future__ import annotations

import collections.abc
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from ._tamis import Reader, Scan

K = TypeVar("K")


class _View(Generic[K]):
    """The length and the reader of a view."""

    def __init__(self, reader: Reader[K]) -> None:
        self._reader = reader

    def __len__(self) -> int:
        return len(self._reader)

    def __repr__(self) -> str:
        return f"<tamis.{type(self).__name__} of {self._reader!r}>"


class KeysView(_View[K], collections.abc.KeysView[K]):
    """The keys in ascending order."""

    def __contains__(self, key: object) -> bool:
        return key in self._reader

    def __iter__(self) -> Scan[K]:
        return self._reader.range(keys_only=True)

    def __reversed__(self) -> Scan[K]:
        return self._reader.range(keys_only=True, reverse=True)


class ValuesView(_View[K], collections.abc.ValuesView[bytes]):
    """The values in ascending order of their keys."""

    def __contains__(self, value: object) -> bool:
        return any(value == other for other in self)

    def __iter__(self) -> Scan[bytes]:
        return self._reader.range(values_only=True)

    def __reversed__(self) -> Scan[bytes]:
        return self._reader.range(values_only=True, reverse=True)


class ItemsView(_View[K], collections.abc.ItemsView[K, bytes]):
    """The entries in ascending order of their keys."""

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        key, value = item
        found = self._reader.get(key)
        return found is not None and found == value

    def __iter__(self) -> Scan[tuple[K, bytes]]:
        return self._reader.range()

    def __reversed__(self) -> Scan[tuple[K, bytes]]:
        return self._reader.range(reverse=True)
