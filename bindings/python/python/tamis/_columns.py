"""Columns between Tamis and numpy or Arrow. Both packages are optional; they are imported when a call needs them.

A given column is a tuple `(data, width, offsets, start, count, is_padded)`: a buffer of bytes, the length of its items or a
buffer of offsets with the index of the first one, the number of items, and whether zero bytes at the end of items are padding.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._tamis import ScannedColumn

GivenColumn = tuple[Any, "int | None", Any, int, int, bool]


def require(package: str) -> Any:
    """Imports an optional package."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        message = f"this call needs {package}, which is not installed; run: pip install {package}"
        raise ImportError(message) from error


def to_numpy(
    keys: ScannedColumn | None,
    values: ScannedColumn | None,
    key_dtype: Any,
    value_dtype: Any,
) -> Any:
    """Converts scanned columns to arrays without a copy."""
    arrays = []
    if keys is not None:
        arrays.append(_to_array("key", keys, key_dtype))
    if values is not None:
        arrays.append(_to_array("value", values, value_dtype))
    return tuple(arrays) if len(arrays) == 2 else arrays[0]


def _to_array(part: str, column: ScannedColumn, dtype: Any) -> Any:
    numpy = require("numpy")
    if dtype is None and column.codec in ("str", "tuple"):
        dtype = object
    if dtype is not None:
        dtype = numpy.dtype(dtype)
    elif column.codec in ("uint64", "int64"):
        dtype = numpy.dtype(column.codec)
    if dtype is not None and dtype.hasobject:
        array = numpy.empty(column.count, dtype=object)
        for index, item in enumerate(column.to_list()):
            array[index] = item
        return array
    if column.count == 0:
        return numpy.empty((0, 0), dtype=numpy.uint8) if dtype is None else numpy.empty(0, dtype=dtype)
    if column.width is None:
        raise InvalidArgumentError(
            f"the {part}s have different lengths; give {part}_dtype=object for Python objects, or use to_arrow()"
        )
    if dtype is None:
        return numpy.frombuffer(column.data, dtype=numpy.uint8).reshape(column.count, column.width)
    if dtype.itemsize == 0 or column.width % dtype.itemsize != 0:
        raise InvalidArgumentError(
            f"the {part}s have {column.width} bytes, which is no multiple of {dtype}; give another {part}_dtype"
        )
    array = numpy.frombuffer(column.data, dtype=dtype)
    per_item = column.width // dtype.itemsize
    return array if per_item == 1 else array.reshape(column.count, per_item)


def to_arrow(keys: ScannedColumn | None, values: ScannedColumn | None, value_type: Any) -> Any:
    """Converts scanned columns to a table with the columns `key` and `value`, without a copy."""
    pyarrow = require("pyarrow")
    columns = {}
    if keys is not None:
        types = {"uint64": pyarrow.uint64(), "int64": pyarrow.int64(), "str": pyarrow.large_string()}
        columns["key"] = _to_arrow_array(keys, types.get(keys.codec), "keys")
    if values is not None:
        columns["value"] = _to_arrow_array(values, value_type, "values")
    return pyarrow.table(columns)


def _to_arrow_array(column: ScannedColumn, kind: Any, part: str) -> Any:
    pyarrow = require("pyarrow")
    kind = pyarrow.large_binary() if kind is None else kind
    data = pyarrow.py_buffer(column.data)
    is_text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
    if is_text or pyarrow.types.is_large_binary(kind) or pyarrow.types.is_binary(kind):
        stored = pyarrow.large_string() if is_text else pyarrow.large_binary()
        offsets = pyarrow.py_buffer(column.offsets())
        array = pyarrow.Array.from_buffers(stored, column.count, [None, offsets, data])
        if is_text:
            _validate(array, part)
        return array if stored == kind else array.cast(kind)
    try:
        bits = kind.bit_width
    except ValueError:
        bits = 0
    if bits % 8 != 0 or bits == 0:
        raise InvalidArgumentError(f"{part}: {kind} has no fixed number of bytes; give a number type, binary() or string()")
    if column.count > 0 and column.width != bits // 8:
        raise InvalidArgumentError(f"some {part} do not have the {bits // 8} bytes of {kind}; give another type")
    return pyarrow.Array.from_buffers(kind, column.count, [None, data])


def _validate(array: Any, part: str) -> None:
    try:
        array.validate(full=True)
    except Exception as error:
        raise InvalidArgumentError(f"some {part} are not UTF-8; read them as binary()") from error


def given(entries: Any, values: Any, codec: str) -> Iterator[tuple[GivenColumn, GivenColumn]]:
    """Yields pairs of columns of keys and values: of arrays, or of the two columns of a table."""
    if values is not None:
        keys, values = _given_column("keys", entries, codec), _given_column("values", values, None)
        if keys[4] != values[4]:
            raise InvalidArgumentError(f"{keys[4]} keys, but {values[4]} values; give as many values as keys")
        if keys[4] > 0:
            yield keys, values
        return
    pyarrow = require("pyarrow")
    table = entries if isinstance(entries, pyarrow.Table) else pyarrow.table(entries)
    names = table.column_names
    if "key" in names and "value" in names:
        table = table.select(["key", "value"])
    elif len(names) != 2:
        raise InvalidArgumentError(f"the table has the columns {names}; give the columns `key` and `value`")
    for batch in table.to_batches():
        if batch.num_rows == 0:
            continue
        key_column, value_column = batch.columns
        yield _given_column("keys", key_column, codec), _given_column("values", value_column, None)


def given_keys(keys: Any, codec: str) -> GivenColumn:
    """The column of an array of keys."""
    return _given_column("keys", keys, codec)


def _given_column(part: str, column: Any, codec: str | None) -> GivenColumn:
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(column, (pyarrow.Array, pyarrow.ChunkedArray)):
        return _given_arrow(pyarrow, part, column, codec)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(column, numpy.ndarray):
        return _given_numpy(numpy, part, column, codec)
    kind = type(column).__name__
    raise TypeError(f"{part}: expected a numpy array or an Arrow array, got {kind}; give pairs (key, value) for other types")


def _given_numpy(numpy: Any, part: str, array: Any, codec: str | None) -> GivenColumn:
    if array.ndim == 0:
        raise InvalidArgumentError(f"{part}: the array has no dimension; give one item for each entry")
    is_padded = array.dtype.kind == "S" and array.ndim == 1
    if array.dtype.kind == "U":
        if codec not in (None, "str"):
            raise TypeError(f"{part}: expected {codec}, got an array of str; convert it")
        array, is_padded = numpy.char.encode(array, "utf-8"), True
    elif codec in ("uint64", "int64"):
        array = _big_endian(numpy, part, array, codec)
    elif codec is not None and not (codec == "bytes" and _is_of_bytes(numpy, array)):
        raise TypeError(f"{part}: expected {codec}, got an array of {array.dtype}; convert it, or give pairs (key, value)")
    elif array.dtype.hasobject:
        raise TypeError(f"{part}: got an array of Python objects; give pairs (key, value)")
    array = numpy.ascontiguousarray(array)
    count = array.shape[0]
    width = array.nbytes // count if count else 0
    # Some types have no buffer format, so the bytes are viewed as integers.
    data = array.reshape(-1).view(numpy.uint8) if array.nbytes else b""
    return data, width, None, 0, count, is_padded


def _is_of_bytes(numpy: Any, array: Any) -> bool:
    """Whether the array has the types `S` or `V`, or rows of bytes."""
    is_rows = array.ndim == 2 and array.dtype == numpy.uint8
    return is_rows or (array.ndim == 1 and array.dtype.kind in "SV")


def _big_endian(numpy: Any, part: str, array: Any, codec: str) -> Any:
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{part}: expected an array of integers with one dimension, got {array.dtype}; convert it")
    if codec == "uint64":
        if array.dtype.kind == "i" and array.size and array.min() < 0:
            raise InvalidArgumentError(f"{part}: some are negative; open the keyspace with keys=\"int64\"")
        return array.astype(">u8")
    if array.dtype.kind == "u" and array.size and array.max() >= 1 << 63:
        raise InvalidArgumentError(f"{part}: some are above 2**63 - 1; open the keyspace with keys=\"uint64\"")
    return (array.astype(numpy.int64).view(numpy.uint64) ^ numpy.uint64(1 << 63)).astype(">u8")


def _given_arrow(pyarrow: Any, part: str, array: Any, codec: str | None) -> GivenColumn:
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pyarrow.ChunkedArray):
            array = pyarrow.concat_arrays(array.chunks)
    kind, types = array.type, pyarrow.types
    if array.null_count:
        raise InvalidArgumentError(f"{part}: the column has nulls; remove them with drop_null() or fill_null()")
    if codec in ("uint64", "int64"):
        return _given_numpy(require("numpy"), part, array.to_numpy(zero_copy_only=False), codec)
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind)
    if types.is_fixed_size_binary(kind) and codec in (None, "bytes"):
        _, data = array.buffers()
        first, width = array.offset * kind.byte_width, kind.byte_width
        return _bytes(data)[first : first + width * len(array)], width, None, 0, len(array), False
    if (is_text and codec in (None, "str")) or (is_bytes and codec in (None, "bytes")):
        _, offsets, data = array.buffers()
        is_large = types.is_large_string(kind) or types.is_large_binary(kind)
        offsets = _bytes(offsets).cast("q" if is_large else "i")
        return _bytes(data), None, offsets, array.offset, len(array), False
    if codec is None and (types.is_integer(kind) or types.is_floating(kind)):
        return _given_numpy(require("numpy"), part, array.to_numpy(zero_copy_only=False), None)
    raise TypeError(f"{part}: a column of {kind} does not fit; cast it to {codec or 'binary, string or a number'}")


def _bytes(buffer: Any) -> memoryview:
    return memoryview(buffer if buffer is not None else b"").cast("B")
