"""Events of a database, and the progress of long calls."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import tamis

Event = dict[str, Any]


@pytest.fixture
def handle_interrupts() -> Iterator[None]:
    """A shell starts background processes with SIGINT ignored; then Python raises no KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def fill(db: Any, count: int) -> None:
    db.load((b"%08d" % index, b"v" * 100) for index in range(count))


def test_a_listener_gets_all_events_before_close_returns(tmp_path: Path) -> None:
    events: list[Event] = []
    threads: set[str] = set()

    def listen(event: Event) -> None:
        threads.add(threading.current_thread().name)
        events.append(event)

    with tamis.open(tmp_path / "store", listener=listen) as db:
        for _ in range(2):
            fill(db, 10_000)
            db.flush()
        db.compact()
    assert threads == {"tamis-events"}
    kinds = [event["kind"] for event in events]
    assert "flushed" in kinds and "compacted" in kinds
    flushed = next(event for event in events if event["kind"] == "flushed")
    assert flushed["keyspace"] == "default" and flushed["bytes"] > 100_000
    assert all(event["reason"] == "request" for event in events if event["kind"] == "compacted")
    assert not any(thread.name == "tamis-events" for thread in threading.enumerate())


def test_a_listener_may_use_and_close_the_database(tmp_path: Path) -> None:
    is_closed = threading.Event()

    def listen(event: Event) -> None:
        if event["kind"] == "flushed":
            db[b"flushed"] = b"%d" % event["bytes"]
            db.close()
            is_closed.set()

    db = tamis.open(tmp_path / "store", listener=listen)
    fill(db, 1_000)
    db.flush()
    assert is_closed.wait(30)
    db.close()
    with tamis.open(tmp_path / "store") as again:
        assert int(again[b"flushed"]) > 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_of_a_listener_is_reported_and_later_events_arrive(tmp_path: Path) -> None:
    count = 0

    def listen(_event: Event) -> None:
        nonlocal count
        count += 1
        raise ZeroDivisionError

    with tamis.open(tmp_path / "store", listener=listen) as db:
        for _ in range(3):
            fill(db, 100)
            db.flush()
    assert count >= 3


def test_a_listener_must_be_a_function(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="listener: expected a function of an event, got int"):
        tamis.open(tmp_path / "store", listener=5)  # type: ignore[call-overload]
    assert not (tmp_path / "store").exists()


def test_a_database_that_is_deleted_ends_its_thread(tmp_path: Path) -> None:
    db = tamis.open(tmp_path / "store", listener=lambda _: None)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "tamis-events"]
    with pytest.warns(ResourceWarning, match="a database was not closed"):
        del db
    thread.join(30)
    assert not thread.is_alive()


def test_verify_and_compact_report_their_progress(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with tamis.open(folder, table_bytes="1MiB") as db:
        for _ in range(2):
            fill(db, 50_000)
            db.flush()
        tables: list[int] = []
        db.compact(progress=tables.append)
        assert tables == sorted(tables) and tables[-1] >= 4
        read: list[int] = []
        report = db.verify(progress=read.append)
        assert len(read) >= 4 and read == sorted(read) and read[-1] <= report["bytes"]
    again: list[int] = []
    assert tamis.verify_folder(folder, progress=again.append)["is_sound"]
    assert len(again) >= 4


def test_an_exception_of_progress_ends_verify_and_compact(tmp_path: Path) -> None:
    def stop(done: int) -> None:
        raise KeyError(done)

    folder, wrong = tmp_path / "store", cast(Any, 5)
    with tamis.open(folder, table_bytes="1MiB") as db:
        fill(db, 50_000)
        for call in (db.compact, db.verify):
            with pytest.raises(KeyError):
                call(progress=stop)
            with pytest.raises(TypeError, match="progress: expected a function"):
                call(progress=wrong)
        db.compact()
        assert db.verify()["is_sound"] and len(db) == 50_000
    with pytest.raises(KeyError):
        tamis.verify_folder(folder, progress=stop)


def test_a_keyboard_interrupt_ends_verify_and_compact(
    tmp_path: Path, handle_interrupts: None
) -> None:
    def interrupt(_done: int) -> None:
        _thread.interrupt_main()

    with tamis.open(tmp_path / "store", table_bytes="1MiB") as db:
        fill(db, 50_000)
        for call in (db.compact, db.verify):
            with pytest.raises(KeyboardInterrupt):
                call(progress=interrupt)
        assert len(db) == 50_000
