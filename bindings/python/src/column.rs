//! Columns of keys or values between Rust and numpy or Arrow (`tamis/_columns.py`).

use pyo3::{buffer::PyBuffer, prelude::*, types::PyList};
use tamis_bindings_common::{Failure, columns::Column};

use crate::{
    buffer::{Buffer, Memory},
    codec::{Codec, SIGN},
    error::{invalid, run},
};

/// A column in the form of numpy and Arrow.
#[derive(Debug)]
struct NativeColumn {
    bytes: Vec<u8>,
    /// The length of the items; `None` if it differs.
    width: Option<usize>,
    /// The end of each item, without `width`.
    ends: Vec<usize>,
}

/// Converts a column; integers get the byte order of the machine.
fn native(column: Column, codec: Codec) -> Result<NativeColumn, Failure> {
    let width = column.uniform_length();
    let Column { mut bytes, ends } = column;
    if !codec.is_integer() {
        return Ok(NativeColumn { bytes, width, ends: if width.is_some() { Vec::new() } else { ends } });
    }
    if !ends.is_empty() && width != Some(8) {
        return Err(Failure::argument(
            "some keys are not integers of 8 bytes; open the keyspace with the codec that wrote them",
        ));
    }
    let mask = if codec == Codec::Int64 { SIGN } else { 0 };
    for item in bytes.chunks_exact_mut(8) {
        let number = mask ^ item.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let native = if cfg!(target_endian = "big") { number.to_be_bytes() } else { number.to_le_bytes() };
        item.copy_from_slice(&native);
    }
    Ok(NativeColumn { bytes, width: Some(8), ends: Vec::new() })
}

/// A column that a scan has read, for `tamis/_columns.py`.
#[pyclass(module = "tamis._tamis", frozen)]
#[derive(Debug)]
pub(crate) struct ScannedColumn {
    #[pyo3(get)]
    count: usize,
    /// The bytes of all items; integers are in the byte order of the machine.
    #[pyo3(get)]
    data: Py<Buffer>,
    /// The length of the items; `None` if it differs.
    #[pyo3(get)]
    width: Option<usize>,
    /// The end of each item, without `width`.
    ends: Vec<usize>,
    codec: Codec,
}

impl ScannedColumn {
    /// Converts a column without the interpreter's lock. Values have the codec of bytes.
    pub(crate) fn create(py: Python<'_>, column: Column, codec: Codec) -> PyResult<Py<Self>> {
        let count = column.len();
        let NativeColumn { bytes, width, ends } = run(py, || native(column, codec))?;
        Py::new(py, Self { count, data: Py::new(py, Buffer(Memory::Bytes(bytes)))?, width, ends, codec })
    }
}

#[pymethods]
impl ScannedColumn {
    /// The name of the codec.
    #[getter]
    fn codec(&self) -> &'static str {
        self.codec.name()
    }

    /// The offsets of the items, and the end of the last one.
    fn offsets(&self, py: Python<'_>) -> Buffer {
        py.detach(|| {
            let offsets = match self.width {
                Some(width) => (0..=self.count).map(|index| (index * width) as i64).collect(),
                None => std::iter::once(0).chain(self.ends.iter().map(|end| *end as i64)).collect(),
            };
            Buffer(Memory::Offsets(offsets))
        })
    }

    /// The items as Python objects.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let bytes = self.data.get().bytes();
        let mut start = 0;
        for index in 0..self.count {
            let end = self
                .width
                .map_or_else(|| self.ends.get(index).copied().unwrap_or(start), |width| start + width);
            list.append(self.codec.decode(py, bytes.get(start..end).unwrap_or_default())?)?;
            start = end;
        }
        Ok(list)
    }
}

/// Items of a column of numpy or Arrow, copied.
#[derive(Debug)]
pub(crate) struct GivenColumn {
    bytes: Vec<u8>,
    layout: Layout,
    count: usize,
    /// Remove zero bytes at the end of items, as numpy does for its `S` types.
    is_padded: bool,
}

#[derive(Debug)]
enum Layout {
    Width(usize),
    /// The first offset belongs to the first item; there is one more than items.
    Offsets(Vec<i64>),
}

impl GivenColumn {
    /// Copies a column `(data, width | None, offsets | None, offset size, start, count, is_padded)` of `tamis/_columns.py`.
    pub(crate) fn copy(column: &Bound<'_, PyAny>) -> PyResult<Self> {
        type Parts<'py> = (Bound<'py, PyAny>, Option<usize>, Option<Bound<'py, PyAny>>, usize, usize, bool);
        let py = column.py();
        let (data, width, offsets, start, count, is_padded): Parts<'_> = column.extract()?;
        let bytes = PyBuffer::<u8>::get(&data)?.to_vec(py)?;
        let layout = match (width, offsets) {
            (Some(width), _) => Layout::Width(width),
            (None, Some(offsets)) => Layout::Offsets(copy_offsets(py, &offsets, start, count)?),
            (None, None) => return Err(invalid(py, "a column needs a width or offsets")),
        };
        let column = Self { bytes, layout, count, is_padded };
        column.check(py)?;
        Ok(column)
    }

    /// Checks that all items are within the data.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let is_valid = match &self.layout {
            Layout::Width(width) => {
                width.checked_mul(self.count).is_some_and(|bytes| bytes <= self.bytes.len())
            }
            Layout::Offsets(offsets) => {
                offsets.first().is_none_or(|first| *first >= 0)
                    && offsets.is_sorted()
                    && offsets.last().is_none_or(|last| *last as usize <= self.bytes.len())
            }
        };
        if is_valid {
            Ok(())
        } else {
            Err(invalid(py, "a column has offsets outside of its data; validate the table"))
        }
    }

    /// Number of items.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// The item at an index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let (start, end) = match &self.layout {
            Layout::Width(width) => (index * width, (index + 1) * width),
            Layout::Offsets(offsets) => {
                let offset = |index: usize| offsets.get(index).copied().unwrap_or(0) as usize;
                (offset(index), offset(index + 1))
            }
        };
        let item = self.bytes.get(start..end).unwrap_or_default();
        if self.is_padded {
            let length = item.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            item.get(..length).unwrap_or_default()
        } else {
            item
        }
    }
}

/// Copies the offsets of the items from `start` on: 32-bit or 64-bit integers.
fn copy_offsets(
    py: Python<'_>,
    offsets: &Bound<'_, PyAny>,
    start: usize,
    count: usize,
) -> PyResult<Vec<i64>> {
    let copied: Vec<i64> = match PyBuffer::<i64>::get(offsets) {
        Ok(offsets) => offsets.to_vec(py)?,
        Err(_) => PyBuffer::<i32>::get(offsets)?.to_vec(py)?.into_iter().map(i64::from).collect(),
    };
    let selected = start.checked_add(count + 1).and_then(|end| copied.get(start..end));
    selected
        .map(<[i64]>::to_vec)
        .ok_or_else(|| invalid(py, "a column has too few offsets; validate the table"))
}

/// The keys of an array of numpy or Arrow, or of an iterable.
pub(crate) fn gather_keys(keys: &Bound<'_, PyAny>, codec: Codec) -> PyResult<Column> {
    let mut gathered = Column::default();
    let is_array = ["dtype", "__arrow_c_array__", "__arrow_c_stream__"];
    if is_array.into_iter().map(|name| keys.hasattr(name)).collect::<PyResult<Vec<_>>>()?.contains(&true) {
        let columns = keys.py().import("tamis._columns")?;
        let given = GivenColumn::copy(&columns.getattr("given_keys")?.call1((keys, codec.name()))?)?;
        (0..given.len()).for_each(|index| gathered.push(given.get(index)));
        return Ok(gathered);
    }
    for key in keys.try_iter()? {
        gathered.push(&codec.encode(&key?)?);
    }
    Ok(gathered)
}
