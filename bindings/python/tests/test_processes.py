"""Threads, processes, signals and the end of the interpreter."""

from __future__ import annotations

import _thread
import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from operator import methodcaller
from pathlib import Path

import numpy
import pytest
import tamis

Database = tamis.Database[bytes]


def run_program(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program in another interpreter; `folder` is its first argument."""
    command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", program, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_forked_child_gets_errors_and_leaves_the_parent_alone(letters: Database) -> None:
    events = letters.create_keyspace("events")
    snapshot, scan, batch, feed = letters.snapshot(), letters.range(), letters.batch(), letters.changes(5)
    transaction = letters.exclusive()
    transaction[b"t"] = b"T"
    transaction_scan = transaction.range()
    next(scan)
    calls: list[Callable[[], object]] = [
        lambda: letters[b"a"],
        lambda: letters.put(b"a", b"child"),
        lambda: letters.range(),
        lambda: letters.close(),
        lambda: letters.statistics(),
        lambda: letters.refresh(),
        lambda: letters.changes(),
        lambda: feed.next(),
        lambda: feed.position,
        lambda: events[b"a"],
        lambda: snapshot[b"a"],
        lambda: next(scan),
        lambda: scan.close(),
        lambda: batch.put(b"a", b"child"),
        lambda: len(batch),
        lambda: transaction[b"a"],
        lambda: transaction.put(b"a", b"child"),
        lambda: transaction.commit(),
        lambda: next(transaction_scan),
    ]
    child = os.fork()
    if child == 0:
        failed = 0
        for call in calls:
            try:
                call()
                failed += 1
            except tamis.ForkedError as error:
                failed += "open it after the fork" not in str(error)
            except BaseException:
                failed += 1
        snapshot.close()
        del snapshot, scan, batch, feed, events, transaction, transaction_scan, call, calls
        gc.collect()
        os._exit(failed)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert list(scan) == [(b"b", b"B"), (b"c", b"C"), (b"d", b"D"), (b"e", b"E")]
    assert next(transaction_scan) == (b"a", b"A")
    transaction.commit()
    assert letters[b"t"] == b"T"
    letters[b"f"] = b"F"
    assert snapshot[b"a"] == b"A"
    assert isinstance(feed.try_next(), tamis.KeyspaceCreated)


def test_a_fork_within_a_load_ends_the_load_of_the_child(db: Database) -> None:
    """The thread that writes is a thread of the parent."""
    child = -1

    def entries() -> Iterator[tuple[bytes, bytes]]:
        nonlocal child
        for number in range(500):
            if number == 250:
                child = os.fork()
            yield b"%03d" % number, b"v" * 10_000

    sorted_keyspace = db.create_keyspace("sorted")
    for load in (db.load, sorted_keyspace.ingest_sorted):
        outcome = 1
        try:
            load(entries())
        except tamis.ForkedError:
            outcome = 7
        finally:
            if child == 0:
                os._exit(outcome)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(db) == len(sorted_keyspace) == 500


def test_a_forked_child_ends_normally(tmp_path: Path) -> None:
    program = """
import os, sys, tamis
with tamis.open(sys.argv[1]) as db:
    db[b"a"] = b"1"
    scan = iter(db)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert next(scan) == b"a"
    db[b"b"] = b"2"
"""
    done = run_program(program, tmp_path / "store")
    assert (done.returncode, done.stderr) == (0, "")
    with tamis.open(tmp_path / "store") as db:
        assert len(db) == 2


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "raise SystemExit", "gc.disable(); cycle = [scan, db]; cycle.append(cycle)"])
def test_the_interpreter_ends_with_open_objects(tmp_path: Path, end: str) -> None:
    program = f"""
import gc, sys, threading, tamis
db = tamis.open(sys.argv[1], memtable_bytes="64KiB")
db.load((b"%06d" % index, b"v" * 100) for index in range(20_000))
scan = db.range()
next(scan)
views, snapshot, batch = db.items(), db.snapshot(), db.batch()
batch.put(b"x", b"y")
exclusive = db.exclusive()
exclusive[b"x"] = b"y"
transaction_scan = exclusive.range()
next(transaction_scan)
def scans():
    while True:
        for _ in db.range():
            pass
threading.Thread(target=scans, daemon=True).start()
{end}
"""
    done = run_program(program, tmp_path / "store")
    assert (done.returncode, done.stderr) == (0, "")
    with tamis.open(tmp_path / "store") as db:
        assert len(db) == 20_000


def test_the_interpreter_ends_while_a_listener_runs(tmp_path: Path) -> None:
    """Its thread waits for events, or raises, while flushes and compactions run."""
    program = """
import sys, threading, tamis
called = threading.Event()
def listen(event):
    called.set()
    {body}
db = tamis.open(sys.argv[1], listener=listen, memtable_bytes="64KiB")
db.load((b"%06d" % index, b"v" * 100) for index in range(20_000))
db.flush()
assert called.wait(30)
"""
    for name, body in [("quiet", "pass"), ("loud", "raise ZeroDivisionError")]:
        done = run_program(program.format(body=body), tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert ("ZeroDivisionError" in done.stderr) == (name == "loud"), done.stderr
        with tamis.open(tmp_path / name) as db:
            assert len(db) == 20_000


def test_a_forked_child_of_a_database_with_a_listener_ends_normally(tmp_path: Path) -> None:
    program = """
import os, sys, tamis
kinds = []
db = tamis.open(sys.argv[1], listener=lambda event: kinds.append(event["kind"]))
db[b"a"] = b"1"
child = os.fork()
if child == 0:
    try:
        db.close()
    except tamis.ForkedError:
        sys.exit(0)
    sys.exit(1)
assert os.waitpid(child, 0)[1] == 0
db.flush()
db.close()
assert "flushed" in kinds, kinds
"""
    done = run_program(program, tmp_path / "store")
    assert done.returncode == 0, done.stderr


def test_a_killed_process_loses_no_buffered_write(tmp_path: Path) -> None:
    program = """
import os, signal, sys, tamis
db = tamis.open(sys.argv[1])
for index in range(1_000):
    db[b"%04d" % index] = b"value"
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_program(program, tmp_path / "store").returncode == -9
    with tamis.open(tmp_path / "store") as db:
        assert len(db) == 1_000
        assert db.open_report()["replayed_entries"] == 1_000


def test_an_interrupt_ends_long_calls(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", keys="uint64") as db:
        keys = numpy.arange(300_000, dtype="u8")
        db.ingest_sorted(keys, keys)
        calls: list[Callable[[], object]] = [
            lambda: len(db),
            lambda: db.range().to_numpy(),
            lambda: db.range().take(10_000_000),
            lambda: db.load(zip(range(100_000), repeat(b"value"))),
            # No Python function runs during this call.
            lambda: deque(chain.from_iterable(map(methodcaller("range"), repeat(db, 10))), maxlen=0),
        ]
        # A finalizer that the collector calls would swallow the interrupt.
        gc.collect()
        gc.disable()
        try:
            for call in calls:
                timer = threading.Timer(0.1, _thread.interrupt_main)
                timer.start()
                end = time.monotonic() + 20
                with pytest.raises(KeyboardInterrupt):
                    while time.monotonic() < end:
                        call()
                timer.join()
        finally:
            gc.enable()
        assert len(db) == 300_000


def test_other_threads_run_during_calls(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", keys="uint64") as db:
        keys = numpy.arange(500_000, dtype="u8")
        db.ingest_sorted(keys, numpy.zeros((len(keys), 100), dtype="u1"))
        steps, is_done = 0, threading.Event()

        def count() -> None:
            nonlocal steps
            while not is_done.is_set():
                steps += 1
                time.sleep(0)

        thread = threading.Thread(target=count)
        thread.start()
        try:
            before = steps
            db.verify()
            assert steps > before
        finally:
            is_done.set()
            thread.join()


def test_threads_share_a_database(db: Database) -> None:
    def write(start: int) -> None:
        for index in range(start, start + 500):
            db[b"%06d" % index] = b"%d" % index
            assert db[b"%06d" % index] == b"%d" % index
        assert len(list(db.range(b"%06d" % start, b"%06d" % (start + 500)))) == 500

    threads = [threading.Thread(target=write, args=(1_000 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(db) == 2_000


def resident_bytes() -> int:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_repeated_calls_leak_nothing(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        with tamis.open(folder, keys="str") as db:
            value = b"v" * 1_000
            with db.batch() as batch:
                for index in range(200):
                    batch.put(f"key {index}", value)
            for _ in range(20):
                scan = db.range()
                next(scan)
                for key, found in scan:
                    assert db.get(key) == found
                db.multi_get(["key 1", "absent"])
                db.range().to_numpy(value_dtype=object)
                db.range(values_only=True).to_numpy()
                db.snapshot().first()
                db.statistics()
                for wrong in (5, b"bytes"):
                    with pytest.raises(TypeError):
                        db.get(wrong)  # type: ignore[call-overload]
                with pytest.raises(KeyError):
                    db["absent"]
                with pytest.raises(tamis.KeyspaceNotFoundError):
                    db.keyspace("absent")

    for index in range(3):
        work(tmp_path / f"warm {index}")
    gc.collect()
    resident = resident_bytes()
    tracemalloc.start()
    try:
        work(tmp_path / "first")
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for index in range(10):
            work(tmp_path / f"store {index}")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()
    # Each round reads and writes some 10 MB of values.
    assert resident_bytes() - resident < 30_000_000


def test_columns_release_their_memory(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "store", keys="uint64") as db:
        keys = numpy.arange(100_000, dtype="u8")
        db.load(keys, numpy.zeros((len(keys), 100), dtype="u1"))
        db.range().to_numpy()
        before = resident_bytes()
        for _ in range(20):
            kept = db.range().to_numpy()[1][5]
        assert resident_bytes() - before < 40_000_000
        assert kept.sum() == 0
