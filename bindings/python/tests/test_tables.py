"""Tables that are built outside of a database, and their ingestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tamis

Database = tamis.Database[bytes]


def test_a_table_of_a_keyspace_is_ingested(letters: Database, tmp_path: Path) -> None:
    path = tmp_path / "new.table"
    with letters.table_writer(path) as table:
        table[b"a"] = b"new"
        table.delete(b"b")
        table.delete_range(b"c", b"e")
        table.update({b"x": b"X", b"y": b"Y"}.items())
        assert table.path == path and table.estimated_bytes > 0 and not path.exists()
    report = letters.ingest([path])
    assert report["table_count"] == 1 and report["kept"] == report["linked"] == []
    assert not path.exists(), "it was moved into the database"
    assert list(letters.range()) == [(b"a", b"new"), (b"e", b"E"), (b"x", b"X"), (b"y", b"Y")]


def test_a_kept_table_is_copied(letters: Database, tmp_path: Path) -> None:
    path = tmp_path / "new.table"
    with letters.table_writer(path) as table:
        table[b"a"] = b"new"
    before = path.read_bytes()
    letters.ingest([path], keep=True)
    assert path.read_bytes() == before and path.stat().st_nlink == 1
    path.write_bytes(b"changed")
    assert letters[b"a"] == b"new"


def test_a_table_without_a_database_is_ingested_by_any(tmp_path: Path) -> None:
    paths: list[Path | str] = [tmp_path / "0.table", str(tmp_path / "1.table")]
    for index, path in enumerate(paths):
        table = tamis.table_writer(path, keys="uint64", filters="surf@16")
        for key in range(1_000 * index, 1_000 * index + 100):
            table.put(key, b"value")
        report = table.finish()
        assert (report["path"], report["entry_count"], report["failed_filters"]) == (str(path), 100, [])
    with tamis.open(tmp_path / "store", keys="uint64") as db:
        assert db.ingest(iter(paths))["entry_count"] == 200
        assert len(db) == 200 and db[1_050] == b"value"


def test_a_table_of_a_failed_block_leaves_no_file(letters: Database, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), letters.table_writer(tmp_path / "t") as table:
        table.put(b"a", b"1")
        1 / 0  # noqa: B018
    assert list(tmp_path.glob("t*")) == []
    with letters.table_writer(tmp_path / "t") as table:
        table.put(b"a", b"1")
        assert table.finish()["entry_count"] == 1
    assert (tmp_path / "t").exists()


def test_wrong_calls_of_table_writers(letters: Any, tmp_path: Path) -> None:
    table = letters.table_writer(tmp_path / "t")
    table.put(b"b", b"1")
    with pytest.raises(tamis.InvalidArgumentError, match="greater"):
        table.put(b"a", b"1")
    with pytest.raises(TypeError, match="key: expected bytes"):
        table.put("text", b"1")
    with pytest.raises(TypeError, match="value: expected bytes"):
        table.put(b"c", 1)
    table.abort()
    for call in (lambda: table.put(b"c", b"1"), table.finish, lambda: table.estimated_bytes):
        with pytest.raises(tamis.InvalidArgumentError, match="the table is finished; begin another one"):
            call()
    table.abort()
    with pytest.raises(tamis.InvalidArgumentError, match="give at least one"):
        letters.ingest([])
    for wrong in (b"path", "path", 5, [5]):
        with pytest.raises(TypeError):
            letters.ingest(wrong)
    (tmp_path / "text").write_text("no table")
    with pytest.raises(tamis.Error, match="text"):
        letters.ingest([tmp_path / "text"])
    with pytest.raises(tamis.Error):
        letters.ingest([tmp_path / "absent"])
    with pytest.raises(tamis.IoError):
        letters.table_writer(tmp_path / "absent" / "t")
    with pytest.raises(tamis.InvalidArgumentError, match="unknown option"):
        tamis.table_writer(tmp_path / "u", colour="red")
    assert len(letters) == 5
    letters.close()
    with pytest.raises(tamis.ClosedError):
        letters.table_writer(tmp_path / "v")
