//! Filters without a database: built from sorted keys, opened over bytes, queried. The classes of the families are in
//! `tamis/filters.py`.
//!
//! Filters hold no files and no threads, so a child process may use those of its parent.

use std::{ops::Bound as Limit, sync::Arc};

use pyo3::{
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyBool, PyBytes, PyDict, PyList, PyTuple},
};
use tamis_bindings_common::{
    Failure,
    advise::{Question, advise as advise_on},
    columns::Column,
    filter::{Builder, OpenFilter, key_range},
    scan::{Direction, Selection},
};
use tamis_filter::{Candidate, KeyRange, KeySet};

use crate::{
    bounds::{self, selection},
    codec::Codec,
    column::gather_keys,
    error::{OrRaise, invalid, run},
    reader::entry,
};

/// A filter over encoded bytes. `False` means certainly absent.
#[pyclass(module = "tamis._tamis", frozen, subclass)]
#[derive(Debug)]
pub(crate) struct Filter {
    filter: OpenFilter<PyBackedBytes>,
    data: PyBackedBytes,
    codec: Codec,
}

/// Builds a filter from keys in ascending order; returns its bytes.
#[pyfunction]
#[pyo3(signature = (text, keys, *, queries = None, codec = "bytes", seed = 0, bits_per_key = None))]
pub(crate) fn build_filter<'py>(
    py: Python<'py>,
    text: &str,
    keys: &Bound<'py, PyAny>,
    queries: Option<&Bound<'py, PyAny>>,
    codec: &str,
    seed: u64,
    bits_per_key: Option<f64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let codec = Codec::from_name(py, codec)?;
    let mut builder = Builder::new(text, seed).or_raise(py)?;
    let keys = gather_keys(keys, codec)?;
    for query in gather_queries(queries, codec)? {
        builder.add_sample(query);
    }
    let encoded = run(py, || {
        keys.iter().try_for_each(|key| builder.add(key))?;
        builder.finish(bits_per_key)
    })?;
    Ok(PyBytes::new(py, &encoded))
}

/// Builds and measures the families for keys and queries; returns dictionaries, the cheapest family first.
#[pyfunction]
#[pyo3(signature = (keys, queries, *, codec = "bytes", bits_per_key = 16.0, read_cost_ns = 20_000.0))]
pub(crate) fn advise<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    queries: &Bound<'py, PyAny>,
    codec: &str,
    bits_per_key: f64,
    read_cost_ns: f64,
) -> PyResult<Bound<'py, PyList>> {
    let codec = Codec::from_name(py, codec)?;
    let keys = gather_keys(keys, codec)?;
    let queries = gather_queries(Some(queries), codec)?;
    if queries.is_empty() || keys.is_empty() {
        return Err(invalid(
            py,
            "keys and queries: give at least one of each, of the program that will use the filter",
        ));
    }
    let advice = run(py, || {
        let mut set = KeySet::new();
        keys.iter().try_for_each(|key| set.push(key)).map_err(Failure::from)?;
        Ok(advise_on(&Question { keys: &Arc::new(set), queries: &queries, bits_per_key, read_cost_ns }))
    })?;
    let list = PyList::empty(py);
    for family in advice {
        let fields = PyDict::new(py);
        fields.set_item("filter", family.filter)?;
        match family.outcome {
            Ok(measured) => {
                fields.set_item("fpr", measured.fpr)?;
                fields.set_item("bits_per_key", measured.bits_per_key)?;
                fields.set_item("query_ns", measured.query_ns)?;
                fields.set_item("build_ms", measured.build_ms)?;
                fields.set_item("cost_ns", measured.cost_ns)?;
                fields.set_item("design", measured.design)?;
            }
            Err(reason) => fields.set_item("error", reason)?,
        }
        list.append(fields)?;
    }
    Ok(list)
}

/// Pairs `(lower, upper)` of half-open ranges; equal keys are a query for one key.
fn gather_queries(queries: Option<&Bound<'_, PyAny>>, codec: Codec) -> PyResult<Vec<Selection>> {
    let Some(queries) = queries else { return Ok(Vec::new()) };
    let mut gathered = Vec::new();
    for query in queries.try_iter()? {
        let (lower, upper) = entry(&query?)?;
        let (lower, upper) = (codec.encode(&lower)?.to_vec(), codec.encode(&upper)?.to_vec());
        let upper = if lower == upper { Limit::Included(upper) } else { Limit::Excluded(upper) };
        gathered.push(Selection::Range(Limit::Included(lower), upper));
    }
    Ok(gathered)
}

/// Answers as bytes (0 or 1) for arrays, which numpy reads in place, and as a list otherwise.
fn answers<'py>(keys: &Bound<'py, PyAny>, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    if keys.hasattr("dtype")? {
        let bytes: Vec<u8> = answers.iter().map(|answer| u8::from(*answer)).collect();
        let numpy = py.import("numpy")?;
        return numpy.getattr("frombuffer")?.call1((PyBytes::new(py, &bytes), numpy.getattr("bool_")?));
    }
    Ok(PyList::new(py, answers.iter().map(|answer| PyBool::new(py, *answer)))?.into_any())
}

#[pymethods]
impl Filter {
    /// Opens the bytes of a filter; reads the header only.
    #[new]
    #[pyo3(signature = (data, *, codec = "bytes"))]
    fn new(py: Python<'_>, data: PyBackedBytes, codec: &str) -> PyResult<Self> {
        let codec = Codec::from_name(py, codec)?;
        let filter = OpenFilter::new(data.clone_ref(py)).or_raise(py)?;
        Ok(Self { filter, data, codec })
    }

    /// Whether the filter may contain a key.
    fn may_contain(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.filter.may_contain(&self.codec.encode(key)?))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.may_contain(key)
    }

    /// Whether the filter may contain each of many keys: an array for an array, a list for other iterables.
    fn may_contain_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let column = gather_keys(keys, self.codec)?;
        let found = run(keys.py(), || {
            let keys: Vec<&[u8]> = column.iter().collect();
            Ok(self.filter.may_contain_many(&keys))
        })?;
        answers(keys, &found)
    }

    /// Whether the filter may contain a key between two keys.
    #[pyo3(signature = (lower = None, upper = None, *, include_lower = true, include_upper = false))]
    fn may_contain_range(
        &self,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
        include_lower: bool,
        include_upper: bool,
    ) -> PyResult<bool> {
        let limits = bounds::limits(self.codec, (lower, include_lower), (upper, include_upper))?;
        Ok(self.filter.may_contain_range(key_range(&selection(limits))))
    }

    /// Whether the filter may contain a key of each of many half-open ranges.
    fn may_contain_ranges<'py>(
        &self,
        lower: &Bound<'py, PyAny>,
        upper: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (lowers, uppers) = (gather_keys(lower, self.codec)?, gather_keys(upper, self.codec)?);
        if lowers.len() != uppers.len() {
            let message = format!(
                "{} lower bounds, but {} upper bounds; give as many of each",
                lowers.len(),
                uppers.len()
            );
            return Err(invalid(lower.py(), message));
        }
        let found = run(lower.py(), || {
            let ranges: Vec<KeyRange<'_>> = half_open_ranges(&lowers, &uppers).collect();
            Ok(self.filter.may_contain_ranges(&ranges))
        })?;
        answers(lower, &found)
    }

    /// Whether the filter may contain a key that begins with `prefix`.
    fn may_contain_prefix(&self, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        let prefix = Selection::Prefix(self.codec.encode_prefix(prefix)?.to_vec());
        Ok(self.filter.may_contain_range(key_range(&prefix)))
    }

    /// A bound for the first key that a scan of the range would return, as bytes; or "absent" or "unknown".
    #[pyo3(signature = (lower = None, upper = None, *, reverse = false))]
    fn candidate<'py>(
        &self,
        py: Python<'py>,
        lower: Option<&Bound<'py, PyAny>>,
        upper: Option<&Bound<'py, PyAny>>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let selection = selection(bounds::half_open(self.codec, lower, upper)?);
        let direction = if reverse { Direction::Backward } else { Direction::Forward };
        Ok(match self.filter.candidate(key_range(&selection), direction) {
            Candidate::Unknown => "unknown".into_pyobject(py)?.into_any(),
            Candidate::Absent => "absent".into_pyobject(py)?.into_any(),
            Candidate::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        })
    }

    /// The name of the family.
    #[getter]
    fn family(&self) -> &'static str {
        self.filter.family()
    }

    /// The number of distinct keys.
    #[getter]
    fn key_count(&self) -> u64 {
        self.filter.key_count()
    }

    /// The size of the filter per key.
    #[getter]
    fn bits_per_key(&self) -> f64 {
        self.filter.encoded_bytes() as f64 * 8.0 / self.filter.key_count().max(1) as f64
    }

    /// The false-positive rate that the builder predicts.
    #[getter]
    fn predicted_fpr(&self) -> Option<f64> {
        self.filter.predicted_fpr()
    }

    /// The design in one line, for people.
    #[getter]
    fn design(&self) -> String {
        self.filter.design()
    }

    /// Raises `CorruptionError` if a byte is damaged.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.filter.verify())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, filter) = (slf.py(), slf.get());
        let open = py.import("tamis.filters")?.getattr("_open")?;
        let arguments = (filter.__bytes__(py), filter.codec.name()).into_pyobject(py)?;
        (open, arguments).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        format!("<tamis filter {} of {} keys>", self.filter.family(), self.filter.key_count())
    }
}

fn half_open_ranges<'a>(lowers: &'a Column, uppers: &'a Column) -> impl Iterator<Item = KeyRange<'a>> {
    lowers.iter().zip(uppers.iter()).map(|(lower, upper)| {
        let upper = if lower == upper { Limit::Included(upper) } else { Limit::Excluded(upper) };
        KeyRange::new(Limit::Included(lower), upper)
    })
}
