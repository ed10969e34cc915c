//! Codecs of keys: the Python objects that are keys of a keyspace, and their bytes. The byte order of the keys is the order of
//! the objects. The keyspace stores the name of the codec (`tamis::KeyspaceOptions::key_codec`), and each open compares it.

use std::ops::Deref;

use pyo3::{
    buffer::PyBuffer,
    exceptions::{PyOverflowError, PyTypeError},
    prelude::*,
    types::{PyBool, PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyTuple},
};

use tamis::KeyspaceOptions;
use tamis_bindings_common::Failure;

use crate::{
    error::{invalid, wrong_type},
    tuple,
};

/// The names of the codecs, for messages.
const NAMES: &str = "\"bytes\", \"str\", \"uint64\", \"int64\" or \"tuple\"";
/// The sign bit of a signed key, inverted in its bytes.
pub(crate) const SIGN: u64 = 1 << 63;

/// The type of the keys of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    /// `bytes`, as they are.
    Bytes,
    /// `str`, in UTF-8.
    Str,
    /// `int` from 0 to 2^64 - 1, as 8 bytes, big-endian.
    Uint64,
    /// `int` from -2^63 to 2^63 - 1, as 8 bytes, big-endian, with an inverted sign bit.
    Int64,
    /// `tuple`; see [`tuple`].
    Tuple,
}

/// The bytes of a key: those of the Python object where possible.
#[derive(Debug)]
pub(crate) enum Key<'a> {
    Borrowed(&'a [u8]),
    Fixed([u8; 8]),
    Owned(Vec<u8>),
}

impl Deref for Key<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Fixed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Codec {
    /// The codec with a name.
    pub(crate) fn from_name(py: Python<'_>, name: &str) -> PyResult<Self> {
        Self::named(name).ok_or_else(|| invalid(py, format!("keys: {name:?} is not a codec; give {NAMES}")))
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::Bytes, Self::Str, Self::Uint64, Self::Int64, Self::Tuple];
        all.into_iter().find(|codec| codec.name() == name)
    }

    /// The codec that a caller gives, if any.
    pub(crate) fn given(py: Python<'_>, name: Option<&str>) -> PyResult<Option<Self>> {
        name.map(|name| Self::from_name(py, name)).transpose()
    }

    /// The options of a new keyspace.
    pub(crate) fn options(given: Option<Self>) -> KeyspaceOptions {
        KeyspaceOptions::default().key_codec(given.unwrap_or(Self::Bytes).name().to_owned())
    }

    /// The codec of an open keyspace: the given one, or the stored one. Refuses one that is not the stored one. Keyspaces of programs
    /// that store none have the given one; those with a codec that only another program knows have bytes.
    pub(crate) fn of_keyspace(keyspace: &tamis::Keyspace, given: Option<Self>) -> Result<Self, Failure> {
        let stored = keyspace.options().key_codec;
        match (given, Self::named(&stored)) {
            _ if stored.is_empty() => Ok(given.unwrap_or(Self::Bytes)),
            (None, Some(codec)) => Ok(codec),
            (Some(codec), Some(found)) if codec == found => Ok(codec),
            (Some(Self::Bytes), None) => Ok(Self::Bytes),
            (given, known) => {
                let advice = known.map_or("bytes", Self::name);
                let given = given.map_or("no codec".to_owned(), |codec| format!("keys={:?}", codec.name()));
                Err(Failure::argument(format!(
                    "keyspace {:?} has keys of the codec {stored:?}, got {given}; give keys={advice:?}",
                    keyspace.name()
                )))
            }
        }
    }

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Str => "str",
            Self::Uint64 => "uint64",
            Self::Int64 => "int64",
            Self::Tuple => "tuple",
        }
    }

    /// Whether keys are integers of 8 bytes.
    pub(crate) const fn is_integer(self) -> bool {
        matches!(self, Self::Uint64 | Self::Int64)
    }

    /// The bytes of a key.
    #[inline]
    pub(crate) fn encode<'a>(self, key: &'a Bound<'_, PyAny>) -> PyResult<Key<'a>> {
        match self {
            Self::Bytes => bytes(key, "key"),
            Self::Str => match key.cast::<PyString>() {
                Ok(text) => Ok(Key::Borrowed(text.to_str()?.as_bytes())),
                Err(_) => Err(wrong_type("key", "str (the keyspace has keys=\"str\")", key)),
            },
            Self::Uint64 => match integer(key)?.extract::<u64>() {
                Ok(number) => Ok(Key::Fixed(number.to_be_bytes())),
                Err(error) => Err(out_of_range(key, error, "0 to 2**64 - 1")),
            },
            Self::Int64 => match integer(key)?.extract::<i64>() {
                Ok(number) => Ok(Key::Fixed((number as u64 ^ SIGN).to_be_bytes())),
                Err(error) => Err(out_of_range(key, error, "-2**63 to 2**63 - 1")),
            },
            Self::Tuple => match key.cast::<PyTuple>() {
                Ok(key) => tuple::encode(key).map(Key::Owned),
                Err(_) => Err(tuple::not_a_tuple(key)),
            },
        }
    }

    /// The bytes of a prefix of keys.
    pub(crate) fn encode_prefix<'a>(self, prefix: &'a Bound<'_, PyAny>) -> PyResult<Key<'a>> {
        if self.is_integer() {
            let message = "prefix: integers have no prefixes; use range(lower, upper)";
            return Err(PyTypeError::new_err(message));
        }
        self.encode(prefix)
    }

    /// The key of these bytes.
    #[inline]
    pub(crate) fn decode<'py>(self, py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Bytes => Ok(PyBytes::new(py, key).into_any()),
            Self::Str => match std::str::from_utf8(key) {
                Ok(text) => Ok(PyString::new(py, text).into_any()),
                Err(_) => Err(foreign(py, key, "UTF-8")),
            },
            Self::Uint64 => Ok(number(py, key)?.into_pyobject(py)?.into_any()),
            Self::Int64 => Ok(((number(py, key)? ^ SIGN) as i64).into_pyobject(py)?.into_any()),
            Self::Tuple => tuple::decode(py, key).map(Bound::into_any),
        }
    }
}

/// The bytes of a key without codec.
#[inline]
pub(crate) fn bytes<'a>(object: &'a Bound<'_, PyAny>, name: &str) -> PyResult<Key<'a>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Key::Borrowed(bytes.as_bytes())),
        Err(_) => copy_bytes(object, name),
    }
}

/// The bytes of a value: those of `bytes` or of any contiguous buffer, for example of an array of numbers.
#[inline]
pub(crate) fn value<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Key<'a>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Key::Borrowed(bytes.as_bytes())),
        Err(_) => copy_value(object, "value"),
    }
}

/// The bytes of a merge operand, like [`value`].
pub(crate) fn operand<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Key<'a>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Key::Borrowed(bytes.as_bytes())),
        Err(_) => copy_value(object, "operand"),
    }
}

#[cold]
fn copy_value<'a>(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Key<'a>> {
    if let Some(bytes) = buffer_of_bytes(object)? {
        return Ok(Key::Owned(bytes));
    }
    let Ok(view) = PyMemoryView::from(object) else {
        let is_text = object.is_instance_of::<PyString>();
        let expected = if is_text { "bytes (encode the text)" } else { "bytes or a contiguous buffer" };
        return Err(wrong_type(name, expected, object));
    };
    if !view.getattr("c_contiguous")?.extract::<bool>()? {
        let message = format!("{name}: the buffer is not contiguous; give a contiguous copy of it");
        return Err(invalid(object.py(), message));
    }
    let bytes = view.call_method0("tobytes")?;
    Ok(Key::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// A copy of the bytes of a buffer whose items are bytes.
fn buffer_of_bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(array) = object.cast::<PyByteArray>() {
        return Ok(Some(array.to_vec()));
    }
    PyBuffer::<u8>::get(object).ok().map(|buffer| buffer.to_vec(object.py())).transpose()
}

#[cold]
fn copy_bytes<'a>(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Key<'a>> {
    if let Some(bytes) = buffer_of_bytes(object)? {
        return Ok(Key::Owned(bytes));
    }
    let expected = if object.is_instance_of::<PyString>() {
        "bytes (encode the text, or open the keyspace with keys=\"str\")"
    } else {
        "bytes, bytearray or memoryview"
    };
    Err(wrong_type(name, expected, object))
}

fn integer<'a, 'py>(key: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyAny>> {
    let is_integer = key.is_exact_instance_of::<PyInt>()
        || (!key.is_instance_of::<PyBool>() && key.hasattr("__index__")?);
    if is_integer { Ok(key) } else { Err(wrong_type("key", "int (the keyspace has integer keys)", key)) }
}

#[cold]
fn out_of_range(key: &Bound<'_, PyAny>, error: PyErr, range: &str) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(key.py()) {
        return invalid(key.py(), format!("key: {key} is out of range; give an int from {range}"));
    }
    error
}

fn number(py: Python<'_>, key: &[u8]) -> PyResult<u64> {
    match <[u8; 8]>::try_from(key) {
        Ok(bytes) => Ok(u64::from_be_bytes(bytes)),
        Err(_) => Err(foreign(py, key, "an integer of 8 bytes")),
    }
}

#[cold]
fn foreign(py: Python<'_>, key: &[u8], expected: &str) -> PyErr {
    let shown = key.escape_ascii();
    invalid(
        py,
        format!("the key b\"{shown}\" is not {expected}; open the keyspace with the codec that wrote it"),
    )
}
