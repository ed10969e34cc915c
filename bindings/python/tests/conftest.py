"""Fixtures of the tests: databases in temporary folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tamis


@pytest.fixture
def db(tmp_path: Path) -> Iterator[tamis.Database[bytes]]:
    """An empty database."""
    with tamis.open(tmp_path / "store") as database:
        yield database


@pytest.fixture
def letters(db: tamis.Database[bytes]) -> tamis.Database[bytes]:
    """A database with the keys `a` to `e`, half of them in a table."""
    for letter in "abcde":
        db[letter.encode()] = letter.upper().encode()
        if letter == "c":
            db.flush()
    return db
