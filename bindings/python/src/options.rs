//! Options as keyword arguments, with the names that all bindings share.

use pyo3::{
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyString},
};
use tamis::{Durability, KeyspaceOptions, Options, TransactionOptions};
use tamis_bindings_common::{Failure, options, transaction};

use crate::error::{OrRaise, wrong_type};

/// The options of `open()`. Those of the default keyspace are changed by the arguments, too.
pub(crate) fn of_database(
    default_keyspace: KeyspaceOptions,
    arguments: Option<&Bound<'_, PyDict>>,
) -> PyResult<Options> {
    let mut parsed = Options::default().default_keyspace(default_keyspace);
    for_each(arguments, |name, value| options::set_database(&mut parsed, name, value))?;
    Ok(parsed)
}

/// The options of a keyspace, changed by the arguments.
pub(crate) fn of_keyspace(
    mut options: KeyspaceOptions,
    arguments: Option<&Bound<'_, PyDict>>,
) -> PyResult<KeyspaceOptions> {
    for_each(arguments, |name, value| options::set_keyspace(&mut options, name, value))?;
    Ok(options)
}

fn for_each(
    arguments: Option<&Bound<'_, PyDict>>,
    mut set: impl FnMut(&str, &str) -> Result<(), Failure>,
) -> PyResult<()> {
    let Some(arguments) = arguments else { return Ok(()) };
    for (name, value) in arguments.iter() {
        let name: String = name.extract()?;
        set(&name, &text_of(&name, &value)?).or_raise(arguments.py())?;
    }
    Ok(())
}

fn text_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(answer) = value.cast::<PyBool>() {
        return Ok(answer.is_true().to_string());
    }
    let is_plain = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>();
    if is_plain {
        Ok(value.str()?.to_string())
    } else {
        Err(wrong_type(name, "str, int, float or bool", value))
    }
}

/// The durability with a name.
pub(crate) fn durability(py: Python<'_>, name: &str) -> PyResult<Durability> {
    options::durability(name).or_raise(py)
}

/// The options of a transaction.
pub(crate) fn of_transaction(
    py: Python<'_>,
    isolation: &str,
    durability: &str,
) -> PyResult<TransactionOptions> {
    let isolation = transaction::isolation(isolation).or_raise(py)?;
    Ok(TransactionOptions::default().isolation(isolation).durability(self::durability(py, durability)?))
}
