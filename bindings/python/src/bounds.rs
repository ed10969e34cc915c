//! Bounds of ranges, as arguments of Python calls.

use std::ops::Bound as Limit;

use pyo3::{exceptions::PyTypeError, prelude::*, types::PySlice};
use tamis_bindings_common::scan::Selection;

use crate::codec::Codec;

/// A lower and an upper bound.
pub(crate) type Limits = (Limit<Vec<u8>>, Limit<Vec<u8>>);

/// The bounds of a range: `None` is no bound, a lower bound is included, an upper bound is excluded.
pub(crate) fn half_open(
    codec: Codec,
    lower: Option<&Bound<'_, PyAny>>,
    upper: Option<&Bound<'_, PyAny>>,
) -> PyResult<Limits> {
    limits(codec, (lower, true), (upper, false))
}

/// The bounds of a range, each with whether it is included.
pub(crate) fn limits(
    codec: Codec,
    lower: (Option<&Bound<'_, PyAny>>, bool),
    upper: (Option<&Bound<'_, PyAny>>, bool),
) -> PyResult<Limits> {
    let limit = |(key, is_included): (Option<&Bound<'_, PyAny>>, bool)| -> PyResult<Limit<Vec<u8>>> {
        let Some(key) = key else { return Ok(Limit::Unbounded) };
        let key = codec.encode(key)?.to_vec();
        Ok(if is_included { Limit::Included(key) } else { Limit::Excluded(key) })
    };
    Ok((limit(lower)?, limit(upper)?))
}

/// The bounds of a slice such as `db[b"a":b"z"]`.
pub(crate) fn of_slice(codec: Codec, slice: &Bound<'_, PySlice>) -> PyResult<Limits> {
    if !slice.getattr("step")?.is_none() {
        return Err(PyTypeError::new_err(
            "slices of keys have no step; use range(lower, upper, reverse=True, limit=...)",
        ));
    }
    let (start, stop) = (slice.getattr("start")?, slice.getattr("stop")?);
    let given = |key: Bound<'_, PyAny>| (!key.is_none()).then(|| key.unbind());
    let (start, stop) = (given(start), given(stop));
    let py = slice.py();
    half_open(codec, start.as_ref().map(|key| key.bind(py)), stop.as_ref().map(|key| key.bind(py)))
}

/// The selection of a range.
pub(crate) fn selection(limits: Limits) -> Selection {
    Selection::Range(limits.0, limits.1)
}
