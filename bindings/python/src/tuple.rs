//! Tuples as keys: an encoding whose byte order is the order of the tuples.
//!
//! It is the published encoding of FoundationDB's tuple layer, so that programs in other languages can read the keys:
//!
//! | element | bytes |
//! |---|---|
//! | `None` | `00` |
//! | bytes, str | `01` or `02`, the bytes with `00` written as `00 ff`, then `00` |
//! | tuple | `05`, its elements with `None` written as `00 ff`, then `00` |
//! | int | `14` + its length in bytes (negative: `14` - length), then big-endian (negative: the complement) |
//! | float | `21`, big-endian; the sign bit is inverted, for negative numbers all bits |
//! | `False`, `True` | `26`, `27` |
//!
//! Elements of different types are in the order of the table. A tuple is before all longer tuples that begin with it, and its
//! encoding is a prefix of theirs.

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple},
};

use crate::error::{invalid, wrong_type};

const NONE: u8 = 0x00;
const BYTES: u8 = 0x01;
const TEXT: u8 = 0x02;
const NESTED: u8 = 0x05;
const ZERO: u8 = 0x14;
const FLOAT: u8 = 0x21;
const FALSE: u8 = 0x26;
const TRUE: u8 = 0x27;
/// Follows a zero byte that does not end its element.
const ESCAPE: u8 = 0xff;
const INTEGER_BYTES_MAX: u8 = 8;
/// The deepest nesting of tuples, so that a key cannot exhaust the stack.
const DEPTH_MAX: usize = 100;

/// Encodes a tuple.
pub(crate) fn encode(tuple: &Bound<'_, PyTuple>) -> PyResult<Vec<u8>> {
    let mut key = Vec::with_capacity(32);
    encode_elements(tuple, &mut key, 0)?;
    Ok(key)
}

fn encode_elements(tuple: &Bound<'_, PyTuple>, key: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    if depth > DEPTH_MAX {
        return Err(invalid(
            tuple.py(),
            format!("key: tuples are nested deeper than {DEPTH_MAX}; flatten the key"),
        ));
    }
    tuple.iter().try_for_each(|element| encode_element(&element, key, depth))
}

fn encode_element(element: &Bound<'_, PyAny>, key: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    if let Ok(text) = element.cast::<PyString>() {
        key.push(TEXT);
        push_escaped(key, text.to_str()?.as_bytes());
    } else if let Ok(bytes) = element.cast::<PyBytes>() {
        key.push(BYTES);
        push_escaped(key, bytes.as_bytes());
    } else if let Ok(answer) = element.cast::<PyBool>() {
        key.push(if answer.is_true() { TRUE } else { FALSE });
    } else if let Ok(number) = element.cast::<PyFloat>() {
        key.push(FLOAT);
        let bits = number.value().to_bits();
        let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
        key.extend_from_slice(&ordered.to_be_bytes());
    } else if element.is_none() {
        key.push(NONE);
        if depth > 0 {
            key.push(ESCAPE);
        }
    } else if let Ok(nested) = element.cast::<PyTuple>() {
        key.push(NESTED);
        encode_elements(nested, key, depth + 1)?;
        key.push(NONE);
    } else if element.is_instance_of::<PyInt>() || element.hasattr("__index__")? {
        encode_integer(element, key)?;
    } else {
        return Err(wrong_type(
            "key",
            "elements of type None, bytes, str, int, float, bool or tuple",
            element,
        ));
    }
    Ok(())
}

fn encode_integer(element: &Bound<'_, PyAny>, key: &mut Vec<u8>) -> PyResult<()> {
    let number: i128 = element.extract()?;
    let magnitude = u64::try_from(number.unsigned_abs()).map_err(|_| {
        invalid(element.py(), format!("key: {number} does not fit into 8 bytes; encode it as bytes"))
    })?;
    let length = (8 - magnitude.leading_zeros() / 8) as u8;
    let (tag, bytes) = if number < 0 { (ZERO - length, !magnitude) } else { (ZERO + length, magnitude) };
    key.push(tag);
    key.extend(bytes.to_be_bytes().into_iter().skip(8 - usize::from(length)));
    Ok(())
}

fn push_escaped(key: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        key.push(*byte);
        if *byte == NONE {
            key.push(ESCAPE);
        }
    }
    key.push(NONE);
}

/// Decodes a key.
pub(crate) fn decode<'py>(py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    let mut decoder = Decoder { rest: key, depth: 0 };
    let elements = decoder.take_elements(py)?;
    match elements {
        Some(elements) if decoder.rest.is_empty() => PyTuple::new(py, elements),
        _ => Err(invalid(
            py,
            format!(
                "the key b\"{}\" is not an encoded tuple; open the keyspace with the codec that wrote it",
                key.escape_ascii()
            ),
        )),
    }
}

/// The part of a key that is not decoded yet.
struct Decoder<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl Decoder<'_> {
    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take_bytes(&mut self, count: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// The elements up to the end of the key or of the nested tuple; `None` for other bytes.
    fn take_elements<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let mut elements = Vec::new();
        loop {
            let Some(tag) = self.take() else { return Ok((self.depth == 0).then_some(elements)) };
            if tag == NONE && self.depth > 0 {
                if self.rest.first() != Some(&ESCAPE) {
                    return Ok(Some(elements));
                }
                self.take();
            }
            match self.take_element(py, tag)? {
                Some(element) => elements.push(element),
                None => return Ok(None),
            }
        }
    }

    fn take_element<'py>(&mut self, py: Python<'py>, tag: u8) -> PyResult<Option<Bound<'py, PyAny>>> {
        let element = match tag {
            NONE => Some(py.None().into_bound(py)),
            BYTES => self.take_escaped().map(|bytes| PyBytes::new(py, &bytes).into_any()),
            TEXT => self
                .take_escaped()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .map(|text| PyString::new(py, &text).into_any()),
            FLOAT => self.take_integer(8).map(|bits| {
                let bits = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };
                PyFloat::new(py, f64::from_bits(bits)).into_any()
            }),
            FALSE | TRUE => Some(PyBool::new(py, tag == TRUE).to_owned().into_any()),
            NESTED if self.depth < DEPTH_MAX => {
                self.depth += 1;
                let elements = self.take_elements(py)?;
                self.depth -= 1;
                elements.map(|elements| PyTuple::new(py, elements)).transpose()?.map(Bound::into_any)
            }
            tag if tag.abs_diff(ZERO) <= INTEGER_BYTES_MAX => {
                let length = tag.abs_diff(ZERO);
                let ones = u64::MAX.checked_shr(64 - 8 * u32::from(length)).unwrap_or(0);
                let number = self.take_integer(length).map(|magnitude| {
                    if tag < ZERO { -i128::from(!magnitude & ones) } else { i128::from(magnitude) }
                });
                number.map(|number| number.into_pyobject(py)).transpose()?.map(Bound::into_any)
            }
            _ => None,
        };
        Ok(element)
    }

    fn take_integer(&mut self, length: u8) -> Option<u64> {
        let bytes = self.take_bytes(usize::from(length))?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn take_escaped(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let byte = self.take()?;
            if byte == NONE {
                if self.rest.first() != Some(&ESCAPE) {
                    return Some(bytes);
                }
                self.take();
            }
            bytes.push(byte);
        }
    }
}

/// The error for a key that is no tuple.
pub(crate) fn not_a_tuple(key: &Bound<'_, PyAny>) -> PyErr {
    let got = key.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("key: expected a tuple, got {got}; write a single element as (element,)"))
}
