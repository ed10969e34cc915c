//! Progress and interruption of long calls: between two steps of the engine the interpreter handles signals, and a function of the
//! program is called. An exception of either ends the call.

use std::ops::ControlFlow;

use pyo3::{prelude::*, types::PyAny};
use tamis_bindings_common::Failure;

use crate::error::{run, wrong_type};

/// A function of the progress, or none; keeps the exception that ends the call.
pub(crate) struct Progress {
    function: Option<Py<PyAny>>,
    error: Option<PyErr>,
}

impl Progress {
    /// Checks that the argument `progress` can be called with `what`.
    pub(crate) fn new(function: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Self> {
        match function {
            Some(function) if !function.is_callable() => {
                Err(wrong_type("progress", &format!("a function of the number of {what}"), function))
            }
            _ => Ok(Self { function: function.map(|function| function.clone().unbind()), error: None }),
        }
    }

    /// Reports a number; a break ends the call.
    pub(crate) fn report(&mut self, done: u64) -> ControlFlow<()> {
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            match &self.function {
                Some(function) => function.call1(py, (done,)).map(drop),
                None => Ok(()),
            }
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Runs `work`, which reports to this, without the interpreter's lock. An exception of a report is the result.
    pub(crate) fn run<T: Send>(
        mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Self) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let outcome = run(py, || work(&mut self));
        match self.error.take() {
            Some(error) => Err(error),
            None => outcome,
        }
    }
}
