"""Checks an installed package with the standard library alone: `python check_installed.py FOLDER`. The store has tables, filters,
blocks of each compression, and readers on several threads."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import tamis


def check(folder: Path) -> None:
    count = 20_000
    with tamis.open(folder, filters="proteus@12", compression="lz4,zstd:1", memtable_bytes="256KiB") as db:
        db.load((b"%08d" % index, b"value %d" % index) for index in range(count))
        db.compact()
        db.put(b"last", b"synced", durability="synced")
    with tamis.open(folder) as db:
        wrong: list[int] = []

        def read(start: int) -> None:
            for index in range(start, count, 40):
                keys = [key for key, _ in db.range(b"%08d" % index, b"%08d" % (index + 3))]
                if db[b"%08d" % index] != b"value %d" % index or len(keys) != min(3, count - index):
                    wrong.append(index)

        threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        assert len(db) == count + 1 and db.last() == (b"last", b"synced")
        assert db.verify()["is_sound"]
    if "free-threading" in sys.version:
        # The module declares that it needs no global lock: its import has switched none on.
        assert not getattr(sys, "_is_gil_enabled")()


if __name__ == "__main__":
    check(Path(sys.argv[1]))
    print(f"the package works with Python {sys.version.split()[0]} on {sys.platform}")
