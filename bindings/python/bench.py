"""Compares Tamis with rocksdict, plyvel and lmdb on the same data, and prints a table.

    bindings/python/test tests/test_mapping.py               # builds and installs the package
    bindings/python/.venv/bin/pip install rocksdict plyvel lmdb
    bindings/python/.venv/bin/python bindings/python/bench.py

The entries have random keys of 16 bytes and values of 100 bytes. Each operation runs in rounds, one store after the other, and
the best round of a store counts. The stores have the same size of cache, no compression, and a filter for points; Tamis also
has one for ranges. LMDB has neither: it maps its file. Its puts are not synced, like those of the others. A sorted bulk load ends when the entries are
synced. Stores that are not installed are left out; a dash is an operation that a store does not have.
"""

from __future__ import annotations

import argparse
import collections
import gc
import importlib.metadata
import itertools
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tamis

CACHE_BYTES = 256 << 20
BATCH = 1_000
RANGE = 50
SCAN = 100
consume = collections.deque[Any](maxlen=0).extend

Entries = list[tuple[bytes, bytes]]


class Store:
    """The calls that are the same in most stores."""

    db: Any

    def put(self, entries: Entries) -> None:
        put = self.db.put
        for key, value in entries:
            put(key, value)

    def get(self, keys: list[bytes]) -> None:
        get = self.db.get
        for key in keys:
            get(key)

    def close(self) -> None:
        self.db.close()


class Tamis(Store):
    """Tamis with filters for points and ranges."""

    name = "tamis"

    def __init__(self, folder: Path) -> None:
        self.db = tamis.open(folder, cache_bytes=CACHE_BYTES, filters="blocked-bloom@10+surf@16")

    def batches(self, entries: Entries) -> None:
        for start in range(0, len(entries), BATCH):
            with self.db.batch() as batch:
                put = batch.put
                for key, value in entries[start : start + BATCH]:
                    put(key, value)

    def bulk(self, entries: Entries) -> None:
        self.db.ingest_sorted(entries)

    def settle(self) -> None:
        self.db.flush()
        self.db.wait_for_compactions()

    def ranges(self, keys: list[bytes], count: int) -> None:
        for key in keys:
            consume(self.db.range(key, limit=count))

    def reverse_ranges(self, keys: list[bytes]) -> None:
        for key in keys:
            consume(self.db.range(None, key, reverse=True, limit=RANGE))

    def new_scans(self, keys: list[bytes]) -> None:
        for key in keys:
            next(self.db.range(key))

    def kept_scan(self, keys: list[bytes]) -> None:
        scan = self.db.range()
        seek = scan.seek
        for key in keys:
            seek(key)
            next(scan)

    def empty_ranges(self, ranges: Entries) -> None:
        for lower, upper in ranges:
            consume(self.db.range(lower, upper))

    def full_scan(self) -> int:
        return sum(1 for _ in self.db.range())


class RocksDict(Store):
    """RocksDB through rocksdict."""

    name = "rocksdict"

    def __init__(self, folder: Path) -> None:
        import rocksdict

        self.module = rocksdict
        table = rocksdict.BlockBasedOptions()
        table.set_bloom_filter(10, False)
        table.set_block_cache(rocksdict.Cache(CACHE_BYTES))
        self.options = options = rocksdict.Options(raw_mode=True)
        options.set_block_based_table_factory(table)
        options.set_compression_type(rocksdict.DBCompressionType.none())
        self.db = rocksdict.Rdict(str(folder), options)

    def batches(self, entries: Entries) -> None:
        for start in range(0, len(entries), BATCH):
            batch = self.module.WriteBatch(raw_mode=True)
            put = batch.put
            for key, value in entries[start : start + BATCH]:
                put(key, value)
            self.db.write(batch)

    def bulk(self, entries: Entries) -> None:
        path = f"{self.db.path()}.sst"
        writer = self.module.SstFileWriter(self.options)
        writer.open(path)
        for key, value in entries:
            writer[key] = value
        writer.finish()
        self.db.ingest_external_file([path])

    def settle(self) -> None:
        self.db.flush()

    def ranges(self, keys: list[bytes], count: int) -> None:
        for key in keys:
            consume(itertools.islice(self.db.items(from_key=key), count))

    def reverse_ranges(self, keys: list[bytes]) -> None:
        for key in keys:
            consume(itertools.islice(self.db.items(backwards=True, from_key=key), RANGE))

    def new_scans(self, keys: list[bytes]) -> None:
        for key in keys:
            next(self.db.items(from_key=key))

    def kept_scan(self, keys: list[bytes]) -> None:
        scan = self.db.iter()
        for key in keys:
            scan.seek(key)
            scan.key(), scan.value()

    def empty_ranges(self, ranges: Entries) -> None:
        for lower, upper in ranges:
            options = self.module.ReadOptions()
            options.set_iterate_upper_bound(upper)
            consume(self.db.items(from_key=lower, read_opt=options))

    def full_scan(self) -> int:
        return sum(1 for _ in self.db.items())


class Plyvel(Store):
    """LevelDB through plyvel."""

    name = "plyvel"

    def __init__(self, folder: Path) -> None:
        import plyvel

        self.db = plyvel.DB(
            str(folder), create_if_missing=True, lru_cache_size=CACHE_BYTES, bloom_filter_bits=10, compression=None
        )

    def batches(self, entries: Entries) -> None:
        for start in range(0, len(entries), BATCH):
            with self.db.write_batch() as batch:
                put = batch.put
                for key, value in entries[start : start + BATCH]:
                    put(key, value)

    def settle(self) -> None:
        self.db.compact_range()

    def ranges(self, keys: list[bytes], count: int) -> None:
        for key in keys:
            consume(itertools.islice(self.db.iterator(start=key), count))

    def reverse_ranges(self, keys: list[bytes]) -> None:
        for key in keys:
            consume(itertools.islice(self.db.iterator(stop=key, reverse=True), RANGE))

    def new_scans(self, keys: list[bytes]) -> None:
        for key in keys:
            next(self.db.iterator(start=key))

    def kept_scan(self, keys: list[bytes]) -> None:
        scan = self.db.iterator()
        for key in keys:
            scan.seek(key)
            next(scan)

    def empty_ranges(self, ranges: Entries) -> None:
        for lower, upper in ranges:
            consume(self.db.iterator(start=lower, stop=upper))

    def full_scan(self) -> int:
        return sum(1 for _ in self.db)


class Lmdb(Store):
    """LMDB. Reads share one transaction."""

    name = "lmdb"

    def __init__(self, folder: Path) -> None:
        import lmdb

        self.db = lmdb.open(str(folder), map_size=64 << 30, sync=False)
        self.reader: Any = None

    def transaction(self) -> Any:
        self.reader = self.reader or self.db.begin()
        return self.reader

    def put(self, entries: Entries) -> None:
        for key, value in entries:
            with self.db.begin(write=True) as writer:
                writer.put(key, value)

    def batches(self, entries: Entries) -> None:
        for start in range(0, len(entries), BATCH):
            with self.db.begin(write=True) as writer:
                put = writer.put
                for key, value in entries[start : start + BATCH]:
                    put(key, value)

    def bulk(self, entries: Entries) -> None:
        with self.db.begin(write=True) as writer, writer.cursor() as cursor:
            cursor.putmulti(entries, append=True)
        self.db.sync(True)

    def settle(self) -> None:
        self.db.sync(True)

    def get(self, keys: list[bytes]) -> None:
        get = self.transaction().get
        for key in keys:
            get(key)

    def ranges(self, keys: list[bytes], count: int) -> None:
        with self.transaction().cursor() as cursor:
            for key in keys:
                cursor.set_range(key)
                consume(itertools.islice(cursor.iternext(), count))

    def reverse_ranges(self, keys: list[bytes]) -> None:
        with self.transaction().cursor() as cursor:
            for key in keys:
                if cursor.set_range(key) and cursor.prev():
                    consume(itertools.islice(cursor.iterprev(), RANGE))

    def new_scans(self, keys: list[bytes]) -> None:
        begin = self.transaction().cursor
        for key in keys:
            with begin() as cursor:
                cursor.set_range(key)
                cursor.item()

    def kept_scan(self, keys: list[bytes]) -> None:
        with self.transaction().cursor() as cursor:
            for key in keys:
                cursor.set_range(key)
                cursor.item()

    def empty_ranges(self, ranges: Entries) -> None:
        with self.transaction().cursor() as cursor:
            for lower, upper in ranges:
                assert not cursor.set_range(lower) or cursor.key() >= upper

    def full_scan(self) -> int:
        return sum(1 for _ in self.transaction().cursor())

    def close(self) -> None:
        self.reader = None
        self.db.close()


STORES: list[Any] = [Tamis, RocksDict, Plyvel, Lmdb]


def seconds(work: Callable[[], object]) -> float:
    """The time of a call."""
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rates(stores: list[Any], rounds: int, count: int, work: Callable[[Any], object]) -> dict[str, float]:
    """Operations per second of each store: the best of some rounds."""
    best = {store.name: 0.0 for store in stores}
    for _ in range(rounds):
        for store in stores:
            best[store.name] = max(best[store.name], count / seconds(lambda store=store: work(store)))  # type: ignore[misc]
    return best


def writes(classes: list[Any], folder: Path, entries: Entries, rounds: int) -> dict[str, dict[str, float]]:
    """Rates of writes, each round into a new database."""
    found: dict[str, dict[str, float]] = {"put": {}, f"batches of {BATCH:,}": {}, "sorted bulk load": {}}
    in_order = sorted(entries)
    for round_number in range(rounds):
        for kind, method in zip(found, ("put", "batches", "bulk")):
            for store_class in classes:
                if not hasattr(store_class, method):
                    continue
                store = store_class(folder / f"{kind} {store_class.name} {round_number}")
                given = in_order if method == "bulk" else entries
                rate = len(entries) / seconds(lambda: getattr(store, method)(given))
                found[kind][store.name] = max(found[kind].get(store.name, 0), rate)
                store.close()
                shutil.rmtree(folder / f"{kind} {store_class.name} {round_number}")
    return found


def reads(stores: list[Any], entries: Entries, rounds: int) -> dict[str, dict[str, float]]:
    """Rates of reads."""
    choice = random.Random(2)
    keys = [choice.choice(entries)[0] for _ in range(min(len(entries), 100_000))]
    # Behind a random key: from 1 to 2 in the last byte but one, where no key is.
    ranges = [(key[:-2] + b"\1", key[:-2] + b"\2") for key in (choice.randbytes(16) for _ in range(20_000))]
    for store in stores:
        if store.full_scan() != len(entries):
            raise SystemExit(f"{store.name} has lost entries")
    return {
        "get": rates(stores, rounds, len(keys), lambda store: store.get(keys)),
        f"scan of {SCAN} entries": rates(stores, rounds, 5_000, lambda store: store.ranges(keys[:5_000], SCAN)),
        f"range of {RANGE} entries": rates(stores, rounds, 10_000, lambda store: store.ranges(keys[:10_000], RANGE)),
        "the same in reverse": rates(stores, rounds, 10_000, lambda store: store.reverse_ranges(keys[:10_000])),
        "new scan, one entry": rates(stores, rounds, 20_000, lambda store: store.new_scans(keys[:20_000])),
        "kept scan, one entry": rates(stores, rounds, 20_000, lambda store: store.kept_scan(keys[:20_000])),
        "closed empty range": rates(stores, rounds, len(ranges), lambda store: store.empty_ranges(ranges)),
        "full scan, entries": rates(stores, rounds, len(entries), lambda store: store.full_scan()),
    }


def extras(store: Tamis, entries: Entries, rounds: int) -> Iterable[tuple[str, str]]:
    """Figures of Tamis alone."""
    keys = [key for key, _ in entries[:100_000]]
    count = len(entries)

    def threads(number: int) -> float:
        running = [threading.Thread(target=store.db.multi_get, args=(keys,)) for _ in range(number)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return number * len(keys)

    def best(work: Callable[[], object], operations: int) -> float:
        return operations / min(seconds(work) for _ in range(rounds))

    try:
        store.db.range(limit=1).to_numpy()  # imports numpy
        yield "full scan to numpy, entries", f"{best(lambda: store.db.range().to_numpy(), count):,.0f} a second"
    except ImportError:
        yield "full scan to numpy, entries", "numpy is not installed"
    one = best(lambda: threads(1), len(keys))
    yield "four threads of multi_get against one", f"{best(lambda: threads(4), 4 * len(keys)) / one:.2f}"
    program = "import time; start = time.perf_counter(); import tamis; print(time.perf_counter() - start)"
    times = [float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5)]
    yield "import", f"{statistics.median(times) * 1e3:.1f} ms"


def main() -> None:
    """Runs all operations and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    arguments = parser.parse_args()
    classes, versions = [], []
    for store_class in STORES:
        try:
            versions.append(f"{store_class.name} {importlib.metadata.version(store_class.name)}")
            classes.append(store_class)
        except importlib.metadata.PackageNotFoundError:
            print(f"{store_class.name} is not installed")
    print(f"{', '.join(versions)}; Python {platform.python_version()}; {arguments.entries:,} entries\n")
    source = random.Random(1)
    value = source.randbytes(1 << 20)
    entries = [
        (source.randbytes(16), value[offset : offset + 100])
        for offset in (source.randrange(len(value) - 100) for _ in range(arguments.entries))
    ]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        table = writes(classes, folder, entries, arguments.rounds)
        stores = [store_class(folder / f"reads {store_class.name}") for store_class in classes]
        for store in stores:
            store.batches(entries)
            store.settle()
        table |= reads(stores, entries, arguments.rounds)
        names = [store.name for store in stores]
        print(f"{'operations a second':24}" + "".join(f"{name:>14}" for name in names) + f"{'tamis / best':>14}")
        for operation, found in table.items():
            others = [found[name] for name in found if name != "tamis"]
            ratio = f"{found['tamis'] / max(others):14.2f}" if others else f"{'-':>14}"
            rates_shown = [f"{found[name]:14,.0f}" if name in found else f"{'-':>14}" for name in names]
            print(f"{operation:24}" + "".join(rates_shown) + ratio)
        print()
        for figure, text in extras(stores[0], entries, arguments.rounds):
            print(f"{figure}: {text}")
        for store in stores:
            store.close()


if __name__ == "__main__":
    main()
