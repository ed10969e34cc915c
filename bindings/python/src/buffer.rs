//! Memory that numpy, Arrow and a `memoryview` read in place. It is immutable, and lives as long as an array refers to it.

use std::ffi::c_int;

use pyo3::{ffi, prelude::*};
use tamis::Slice;

/// The memory of a column or a value.
#[pyclass(module = "tamis._tamis", frozen)]
#[derive(Debug)]
pub(crate) struct Buffer(pub(crate) Memory);

/// The bytes of a column, the offsets of its items, or a value.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Offsets, as 64-bit integers in the byte order of the machine.
    Offsets(Vec<i64>),
    /// A value, in the memory of its block.
    Value(Slice),
}

impl Buffer {
    /// The bytes of a column.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Bytes(bytes) => bytes,
            Memory::Value(value) => value,
            Memory::Offsets(_) => &[],
        }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        match &self.0 {
            Memory::Bytes(bytes) => bytes.len(),
            Memory::Value(value) => value.len(),
            Memory::Offsets(offsets) => size_of_val(offsets.as_slice()),
        }
    }

    /// # Safety
    /// The interpreter calls it with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let buffer = slf.get();
        let start = match &buffer.0 {
            Memory::Bytes(bytes) => bytes.as_ptr(),
            Memory::Value(value) => value.as_ptr(),
            Memory::Offsets(offsets) => offsets.as_ptr().cast(),
        };
        let length = buffer.__len__() as ffi::Py_ssize_t;
        // SAFETY: `view` is the interpreter's. The memory has `length` bytes and never changes; the view holds a reference to this
        // object, which owns it.
        let outcome =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast_mut().cast(), length, 1, flags) };
        if outcome == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
