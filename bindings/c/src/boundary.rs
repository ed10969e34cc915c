//! The boundary between C and Rust: the only module with `unsafe` code. It catches panics and rejects null pointers and invalid lengths.
//!
//! The header requires of C callers: a pointer that is not null points to memory of its type and length for the duration of the
//! call, and no other thread changes it meanwhile. Everything else is checked here.

use std::{
    cell::Cell,
    ffi::{CStr, CString, OsStr, c_char},
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    slice,
    sync::{Mutex, TryLockError},
};

use tamis_bindings_common::{Code, Failure};

/// The result of the body of a call.
pub(crate) type Outcome = Result<(), Failure>;

/// The target of a result: a pointer that may be null, to uninitialized memory.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Runs the body of a function; returns the code of a failure and stores its message if `message` is not null.
pub(crate) fn call(message: Out<'_, *mut c_char>, body: impl FnOnce() -> Outcome) -> Code {
    let checked = || if IS_IN_CALLBACK.get() { Err(called_from_callback()) } else { body() };
    let outcome = catch_unwind(AssertUnwindSafe(checked)).unwrap_or_else(|panic| Err(of_panic(&*panic)));
    let (code, text) = match outcome {
        Ok(()) => (Code::Ok, std::ptr::null_mut()),
        Err(failure) => {
            (failure.code, if message.is_some() { own(failure.message) } else { std::ptr::null_mut() })
        }
    };
    if let Some(message) = message {
        message.write(text);
    }
    code
}

/// Runs a body that cannot fail; catches panics.
pub(crate) fn quiet(body: impl FnOnce()) {
    // The panic hook has reported it; a destructor has no caller to return it to.
    let _ = catch_unwind(AssertUnwindSafe(body));
}

thread_local! {
    static IS_IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function of the caller, from which calls of the library fail: the engine holds locks.
pub(crate) fn in_callback(work: impl FnOnce()) {
    let was = IS_IN_CALLBACK.replace(true);
    work();
    IS_IN_CALLBACK.set(was);
}

fn called_from_callback() -> Failure {
    Failure::new(Code::Busy, "an event callback must not call the library; record the event and return")
}

fn of_panic(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    Failure::new(Code::Panic, format!("a bug in Tamis: {text}; free this handle, and please report it"))
}

/// Creates a text that C frees with `tamis_text_free`.
pub(crate) fn own(text: String) -> *mut c_char {
    let mut bytes = text.into_bytes();
    bytes.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    CString::new(bytes).unwrap_or_default().into_raw()
}

/// Stores a result; a null pointer is a failure.
pub(crate) fn put<T>(target: Out<'_, T>, name: &str, value: T) -> Outcome {
    match target {
        Some(target) => {
            target.write(value);
            Ok(())
        }
        None => Err(null(name)),
    }
}

/// Stores a handle.
pub(crate) fn put_handle<T>(target: Out<'_, *mut T>, name: &str, value: T) -> Outcome {
    match target {
        Some(target) => {
            target.write(Box::into_raw(Box::new(value)));
            Ok(())
        }
        None => Err(null(name)),
    }
}

/// Stores the result of a failed call: null or zero.
pub(crate) fn clear<T: Default>(target: &mut Out<'_, T>) {
    if let Some(target) = target {
        target.write(T::default());
    }
}

/// [`clear`] for a pointer.
pub(crate) fn clear_pointer<T>(target: &mut Out<'_, *mut T>) {
    if let Some(target) = target {
        target.write(std::ptr::null_mut());
    }
}

/// Checks that a handle is not null.
pub(crate) fn handle<'a, T>(handle: Option<&'a T>, name: &str) -> Result<&'a T, Failure> {
    handle.ok_or_else(|| null(name))
}

pub(crate) fn null(name: &str) -> Failure {
    Failure::argument(format!("{name}: the pointer is null; give a valid one"))
}

/// The bytes of a pointer and a length. A null pointer with the length 0 is an empty string.
pub(crate) fn bytes<'a>(data: *const u8, length: usize, name: &str) -> Result<&'a [u8], Failure> {
    items(data, length, name)
}

/// The items of a pointer and a count.
pub(crate) fn items<'a, T>(data: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    check_extent::<T>(count, name)?;
    match (data.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name)),
        // SAFETY: not null and of a valid length; the caller guarantees that it points to this many items.
        (false, _) => Ok(unsafe { slice::from_raw_parts(data, count) }),
    }
}

/// The items of a pointer and a count, mutable.
pub(crate) fn items_mut<'a, T>(data: *mut T, count: usize, name: &str) -> Result<&'a mut [T], Failure> {
    check_extent::<T>(count, name)?;
    match (data.is_null(), count) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(null(name)),
        // SAFETY: as in `items`; nothing else points to the caller's memory during the call.
        (false, _) => Ok(unsafe { slice::from_raw_parts_mut(data, count) }),
    }
}

fn check_extent<T>(count: usize, name: &str) -> Outcome {
    let is_possible = count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if is_possible {
        return Ok(());
    }
    Err(Failure::argument(format!("{name}: {count} is not a valid length; check whether it was negative")))
}

/// The bytes of a text that ends with a zero byte.
fn terminated<'a>(text: *const c_char, name: &str) -> Result<&'a CStr, Failure> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null; the caller guarantees that it ends with a zero byte.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// A text in UTF-8 that ends with a zero byte.
pub(crate) fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    let utf8 = terminated(text, name)?.to_str();
    utf8.map_err(|_| Failure::argument(format!("{name}: give text in UTF-8")))
}

/// A path that ends with a zero byte.
pub(crate) fn path<'a>(text: *const c_char, name: &str) -> Result<&'a Path, Failure> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Ok(Path::new(OsStr::from_bytes(terminated(text, name)?.to_bytes())))
    }
    #[cfg(not(unix))]
    {
        Ok(Path::new(OsStr::new(self::text(text, name)?)))
    }
}

/// Frees a text that [`own`] created.
pub(crate) fn free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the pointer is from `own`, and the caller frees it once.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Frees a box that was handed out as a pointer.
pub(crate) fn free_box<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the pointer is from `Box::into_raw`, and the caller frees it once.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// A handle for one thread at a time: a second thread gets [`Code::Busy`].
#[derive(Debug)]
pub(crate) struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Runs `work` with the value.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        match self.0.try_lock() {
            Ok(mut value) => work(&mut value),
            Err(TryLockError::WouldBlock) => Err(Failure::new(
                Code::Busy,
                "another thread is using this handle; give each thread a separate handle",
            )),
            Err(TryLockError::Poisoned(_)) => Err(Failure::new(
                Code::Panic,
                "an earlier call with this handle failed because of a bug in Tamis; free the handle and create another one",
            )),
        }
    }
}

#[cfg(test)]
pub(crate) mod results;
