"""A time series between pandas and Tamis: load a frame, read an interval, resample it.

Keys are nanoseconds since 1970, the integers of pandas' own timestamps, so no key is converted one by one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
import pandas
import tamis


def store(db: tamis.Database[bytes], name: str, series: pandas.Series[float]) -> int:
    """Adds a series with an index of times to the keyspace of its name."""
    keyspace = db.keyspace(name, create=True, keys="int64", filters="proteus@12")
    times = series.index.to_numpy().astype("datetime64[ns]").astype("int64")
    return keyspace.load(times, series.to_numpy(dtype="f8"))


def read(db: tamis.Database[bytes], name: str, start: str, end: str) -> pandas.Series[float]:
    """The values of an interval."""
    keyspace = db.keyspace(name, keys="int64")
    lower, upper = (int(pandas.Timestamp(time).as_unit("ns").value) for time in (start, end))
    times, values = keyspace.range(lower, upper).to_numpy(value_dtype="f8")
    return pandas.Series(values, index=pandas.to_datetime(times), name=name)


def main(folder: Path) -> pandas.Series[float]:
    """Stores a month of readings, one a minute, and returns the daily means of a week."""
    index = pandas.date_range("2026-03-01", periods=31 * 24 * 60, freq="min")
    minutes = numpy.arange(len(index))
    temperature = pandas.Series(20 + 5 * numpy.sin(minutes / 1_440 * 2 * numpy.pi), index=index)
    with tamis.open(folder) as db:
        store(db, "temperature", temperature)
        week = read(db, "temperature", "2026-03-09", "2026-03-16")
    return week.resample("D").mean()


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "series")))
