//! Events of a database, reported to a function of the caller.
//!
//! The function runs on the thread on which the event occurs, while the engine holds locks. Calls into the library from there could wait
//! for these locks; they fail instead ([`boundary::in_callback`](crate::boundary::in_callback)).

use std::{
    ffi::{CString, c_char, c_void},
    mem::MaybeUninit,
    sync::Arc,
};

use engine::{Event, EventListener};
use tamis_bindings_common::{Code, event::to_json};

use crate::{
    boundary::{call, handle, in_callback},
    options::DatabaseOptions,
};

/// Receives an event as JSON, which is valid during the call. The fields are those of the events of the Rust interface, with `kind`.
pub type EventCallback = Option<extern "C" fn(context: *mut c_void, json: *const c_char)>;

/// The function and its context. The context is only passed on.
#[derive(Debug)]
struct Callback {
    function: extern "C" fn(*mut c_void, *const c_char),
    context_address: usize,
}

impl EventListener for Callback {
    fn on_event(&self, event: &Event) {
        // JSON contains no zero bytes: they are escaped.
        let json = CString::new(to_json(event).to_string()).unwrap_or_default();
        let context = std::ptr::with_exposed_provenance_mut(self.context_address);
        in_callback(|| (self.function)(context, json.as_ptr()));
    }
}

/// Sets a function that receives the events of databases opened with these options: flushes, compactions, write stalls, damage. NULL removes it.
/// It is called on threads of the library, also on several at the same time, until the last handle of the database is freed. It must return soon, must not throw or
/// longjmp, and must not call this library: calls return TAMIS_CODE_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_options_set_event_callback(
    options: Option<&DatabaseOptions>,
    callback: EventCallback,
    context: *mut c_void,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    let context_address = context.expose_provenance();
    call(message, || {
        handle(options, "options")?.0.with(|options| {
            options.listener = callback
                .map(|function| Arc::new(Callback { function, context_address }) as Arc<dyn EventListener>);
            Ok(())
        })
    })
}
