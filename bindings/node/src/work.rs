//! Work on the thread pool of libuv. A panic of the work rejects its promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use tamis::Slice;

use crate::error::Fault;
use napi::{
    Env, JsValue, ScopedTask, Unknown,
    bindgen_prelude::{AsyncTask, BufferSlice, ToNapiValue},
};

/// The work behind a promise.
pub struct Work<T>(Option<Box<dyn FnOnce() -> Result<T, Fault> + Send>>);

/// Queues work; the promise resolves with its result.
pub(crate) fn spawn<T: Answer>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> AsyncTask<Work<T>> {
    AsyncTask::new(Work(Some(Box::new(work))))
}

impl<'task, T: Answer> ScopedTask<'task> for Work<T> {
    type Output = Result<T, Fault>;
    type JsValue = Unknown<'task>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        let Some(work) = self.0.take() else { return Ok(Err(Fault::panicked())) };
        Ok(catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Fault::panicked())))
    }

    fn resolve(&mut self, env: &'task Env, output: Self::Output) -> napi::Result<Unknown<'task>> {
        output.map_err(|fault| fault.into_rejection(env))?.into_js(env)
    }
}

/// A result that becomes a JavaScript value, on the thread of the event loop.
pub trait Answer: Send + 'static {
    /// Converts the result.
    ///
    /// # Errors
    /// Those of Node.js.
    fn into_js(self, env: &Env) -> napi::Result<Unknown<'_>>;
}

impl Answer for () {
    fn into_js(self, env: &Env) -> napi::Result<Unknown<'_>> {
        ().into_unknown(env)
    }
}

impl Answer for bool {
    fn into_js(self, env: &Env) -> napi::Result<Unknown<'_>> {
        self.into_unknown(env)
    }
}

/// A text, such as statistics as JSON.
impl Answer for String {
    fn into_js(self, env: &Env) -> napi::Result<Unknown<'_>> {
        self.into_unknown(env)
    }
}

/// A `Buffer` with a copy of the bytes.
impl Answer for Vec<u8> {
    fn into_js(self, env: &Env) -> napi::Result<Unknown<'_>> {
        Ok(BufferSlice::copy_from(env, self)?.to_unknown())
    }
}

/// A value, as a string or a `Buffer`; `undefined` if the key is absent.
#[derive(Debug)]
pub struct Found {
    pub(crate) value: Option<Slice>,
    pub(crate) is_text: bool,
}

impl Answer for Found {
    fn into_js(self, env: &Env) -> napi::Result<Unknown<'_>> {
        match &self.value {
            None => ().into_unknown(env),
            Some(value) if self.is_text => String::from_utf8_lossy(value).as_ref().into_unknown(env),
            Some(value) => Ok(BufferSlice::copy_from(env, value)?.to_unknown()),
        }
    }
}
