//! Delivers the events of a database to a Python function.
//!
//! The engine reports events on its own threads, while it holds locks. They never wait for the interpreter: an event goes to a
//! queue, and a daemon thread of Python calls the function with each. A queue that is full drops events and counts them.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
    mpsc::{Receiver, SyncSender, sync_channel},
};

use pyo3::{prelude::*, types::PyDict};
use serde_json::{Value, json};
use tamis::EventListener;
use tamis_bindings_common::event::to_json;

use crate::{error::wrong_type, json};

/// Events that wait for the function.
const QUEUE_LENGTH: usize = 4_096;

/// The queue of the engine: an event, or `None` at the close.
#[derive(Debug)]
struct QueueListener {
    queue: SyncSender<Option<Value>>,
    lost_count: AtomicU64,
}

impl EventListener for QueueListener {
    fn on_event(&self, event: &tamis::Event) {
        let lost_count = self.lost_count.swap(0, Ordering::Relaxed);
        let lost = json!({ "kind": "events_lost", "count": lost_count });
        let is_lost_known = lost_count == 0 || self.queue.try_send(Some(lost)).is_ok();
        let is_sent = self.queue.try_send(Some(to_json(event))).is_ok();
        let unsent = u64::from(!is_sent) + if is_lost_known { 0 } else { lost_count };
        self.lost_count.fetch_add(unsent, Ordering::Relaxed);
    }
}

/// The events of a database and the thread that delivers them.
#[derive(Debug)]
pub(crate) struct Events {
    queue: SyncSender<Option<Value>>,
    thread: Py<PyAny>,
}

/// The receiving end, which the thread runs.
#[pyclass(module = "tamis._tamis", frozen)]
#[derive(Debug)]
pub(crate) struct EventQueue(Mutex<Receiver<Option<Value>>>);

#[pymethods]
impl EventQueue {
    /// Calls the function with each event until the database is closed.
    fn deliver(&self, py: Python<'_>, listener: &Bound<'_, PyAny>) -> PyResult<()> {
        loop {
            let next = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).recv());
            let Ok(Some(event)) = next else { return Ok(()) };
            let event = json::to_python(py, &event)?;
            if let Err(error) = listener.call1((event,)) {
                error.write_unraisable(py, Some(listener));
            }
        }
    }
}

/// Sets a function as the listener of the options; the returned queue is to be delivered after the open.
pub(crate) fn set_listener<'py>(
    listener: &Bound<'py, PyAny>,
    options: &mut tamis::Options,
) -> PyResult<(SyncSender<Option<Value>>, Bound<'py, EventQueue>)> {
    if !listener.is_callable() {
        return Err(wrong_type("listener", "a function of an event", listener));
    }
    let (queue, receiver) = sync_channel(QUEUE_LENGTH);
    let to_thread = QueueListener { queue: queue.clone(), lost_count: AtomicU64::new(0) };
    options.listener = Some(std::sync::Arc::new(to_thread));
    Ok((queue, Bound::new(listener.py(), EventQueue(Mutex::new(receiver)))?))
}

impl Events {
    /// Starts the thread.
    pub(crate) fn start(
        listener: &Bound<'_, PyAny>,
        (queue, receiver): (SyncSender<Option<Value>>, Bound<'_, EventQueue>),
    ) -> PyResult<Self> {
        let py = listener.py();
        let arguments = PyDict::new(py);
        arguments.set_item("target", receiver.getattr("deliver")?)?;
        arguments.set_item("args", (listener,))?;
        arguments.set_item("name", "tamis-events")?;
        arguments.set_item("daemon", true)?;
        let thread = py.import("threading")?.getattr("Thread")?.call((), Some(&arguments))?;
        thread.call_method0("start")?;
        Ok(Self { queue, thread: thread.unbind() })
    }

    /// After the close: waits until all events are delivered, unless the function itself has closed the database.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let thread = self.thread.bind(py);
        if !thread.call_method0("is_alive")?.is_truthy()? {
            return Ok(());
        }
        let current = py.import("threading")?.call_method0("current_thread")?;
        if current.is(thread) {
            // The thread ends when it finds the end or when the database is deleted.
            let _ = self.queue.try_send(None);
            return Ok(());
        }
        let queue = self.queue.clone();
        py.detach(|| queue.send(None)).ok();
        thread.call_method0("join").map(drop)
    }
}
