//! Reports and statistics as Python objects.

use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use serde_json::Value;

/// Converts JSON to dictionaries, lists, numbers and texts.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(answer) => answer.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?,
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(fields) => {
            let dictionary = PyDict::new(py);
            for (name, field) in fields {
                dictionary.set_item(name, to_python(py, field)?)?;
            }
            dictionary.into_any()
        }
    })
}
