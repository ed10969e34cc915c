"""Checkpoints, verification, statistics, compactions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tamis
from tamis import types

Database = tamis.Database[bytes]


def test_a_checkpoint_is_an_independent_database(letters: Database, tmp_path: Path) -> None:
    report = letters.checkpoint(tmp_path / "copy", verify=True)
    assert report["linked_file_count"] + report["copied_file_count"] >= 2
    letters.clear()
    with tamis.open(tmp_path / "copy") as copy:
        assert len(copy) == 5


def test_verify_reads_everything(letters: Database) -> None:
    report = letters.verify()
    assert report["is_sound"] and report["faults"] == [] and report["entry_count"] >= 3
    path = letters.path
    letters.close()
    assert tamis.verify_folder(path)["is_sound"]
    assert tamis.repair(path)["was_sound"]


def test_statistics_count_work(letters: Database) -> None:
    before = letters.statistics()
    letters[b"a"]
    list(letters.range())
    letters[b"f"] = b"F"
    after = letters.statistics()
    assert after["point_reads"] - before["point_reads"] == 1
    assert after["scans"] - before["scans"] == 1
    assert after["writes"] - before["writes"] == 1
    assert [keyspace["name"] for keyspace in after["keyspaces"]] == ["default"]
    assert json.loads(json.dumps(after)) == after


def test_statistics_have_the_declared_fields(db: Database) -> None:
    db.load((b"%05d" % key, b"1") for key in range(1_000))
    db.flush()
    assert db.get(b"00000+") is None
    statistics = db.statistics()
    (keyspace,) = statistics["keyspaces"]
    level = statistics["reads"][0]
    declared = [
        (types.Statistics, statistics),
        (types.KeyspaceStatistics, keyspace),
        (types.LevelStatistics, keyspace["levels"][0]),
        (types.PartitionDecisionStatistics, statistics["partition_decisions"]),
        (types.DecisionStatistics, statistics["partition_decisions"]["minor"]),
        (types.ViewStatistics, keyspace["views"]),
        (types.SampleStatistics, keyspace["sample"]),
        (types.QuerySampleStatistics, keyspace["sample"]["points"]),
        (types.TableFilterStatistics, db.table_filters()[0]),
        (types.FilterAnswers, db.table_filters()[0]["points"]),
        (types.LevelReads, level),
        (types.ReadStatistics, level["points"]),
    ]
    for declaration, value in declared:
        assert set(declaration.__annotations__) == set(value), declaration
    assert level["points"]["checked"] == 1


def test_range_filters_reject_empty_ranges(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", keys="uint64", filters="rosetta@16") as db:
        db.load((1_000 * index, b"value") for index in range(20_000))
        db.flush()
        db.compact()
        before = db.statistics()["blocks_read"]
        for index in range(1_000):
            assert list(db[1_000 * index + 100 : 1_000 * index + 110]) == []
        assert db.statistics()["blocks_read"] - before < 50


def test_flush_compact_and_persist(db: Database) -> None:
    for index in range(3):
        db.load((b"%05d" % key, b"%d" % index) for key in range(1_000))
        db.flush()
    db.persist()
    db.persist("buffered")
    db.compact(b"00100", b"00200")
    db.compact()
    db.wait_for_compactions()
    (keyspace,) = db.statistics()["keyspaces"]
    assert sum(level["entry_count"] for level in keyspace["levels"]) == 1_000
    with pytest.raises(tamis.InvalidArgumentError):
        db.persist("always")  # type: ignore[arg-type]


def test_the_report_of_the_open(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store") as db:
        assert db.open_report()["is_new"]
        db[b"a"] = b"1"
    with tamis.open(tmp_path / "store") as db:
        report = db.open_report()
        assert not report["is_new"] and report["replayed_entries"] == 1 and report["wal_truncations"] == []
