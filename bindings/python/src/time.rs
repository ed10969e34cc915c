//! Times of expiry: `datetime` objects with a time zone, or seconds since 1970.

use std::time::SystemTime;

use pyo3::{
    exceptions::PyOverflowError,
    prelude::*,
    types::{PyBool, PyFloat, PyInt},
};
use tamis_bindings_common::expiry::time_at;

use crate::error::{OrRaise, invalid, wrong_type};

const EXPECTED: &str = "a datetime with a time zone, or seconds since 1970 as float or int";

/// The time of an argument, rounded down to milliseconds: no reader finds the entry after the time.
pub(crate) fn time(object: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    let py = object.py();
    let seconds = seconds(object)?;
    // A number of seconds has an error of less than a microsecond, by which it is not rounded down.
    let milliseconds = (seconds * 1_000.0 + 0.001).floor();
    if !(0.0..u64::MAX as f64).contains(&milliseconds) {
        let message = format!(
            "time: {seconds} seconds since 1970 is out of range; give a time in the future, before the year 2,000,000"
        );
        return Err(invalid(py, message));
    }
    time_at(milliseconds as u64).or_raise(py)
}

fn seconds(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    let py = object.py();
    let is_number = object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>();
    if is_number && !object.is_instance_of::<PyBool>() {
        return object.extract().map_err(|error: PyErr| {
            let is_too_large = error.is_instance_of::<PyOverflowError>(py);
            if is_too_large {
                invalid(py, "time: the number of seconds is too large; give a time before the year 2,000,000")
            } else {
                error
            }
        });
    }
    if !object.hasattr("utcoffset")? || !object.hasattr("timestamp")? {
        return Err(wrong_type("time", EXPECTED, object));
    }
    if object.call_method0("utcoffset")?.is_none() {
        let message = "time: the datetime has no time zone; give one, as in datetime.now(timezone.utc) + timedelta(hours=1)";
        return Err(invalid(py, message));
    }
    object.call_method0("timestamp")?.extract()
}
