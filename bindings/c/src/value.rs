//! Bytes across the boundary: borrowed ones as arguments, owned ones as results.

use std::ffi::c_char;

use engine::Slice;

use crate::boundary::{free_box, free_text, items_mut, quiet};

/// Bytes that the caller owns, as an argument. NULL is allowed with the length 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    /// The first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub length: usize,
}

/// Bytes that the library returns; free them with tamis_value_free. `data` is NULL if there is no value; an
/// empty value has a pointer and the length 0.
#[repr(C)]
#[derive(Debug)]
pub struct Value {
    /// The first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub length: usize,
    /// The owner of the bytes, which keeps them alive.
    pub owner: *mut Owner,
}

/// The owner of a value's bytes.
#[derive(Debug)]
pub enum Owner {
    /// A part of a block or of a mapped table, or a short copy.
    Slice(Slice),
    /// An encoded filter, or a copy.
    Vector(Vec<u8>),
}

impl Owner {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Slice(slice) => slice,
            Self::Vector(vector) => vector,
        }
    }
}

impl Default for Value {
    fn default() -> Self {
        Self { data: std::ptr::null(), length: 0, owner: std::ptr::null_mut() }
    }
}

impl Value {
    pub(crate) fn new(owner: Owner) -> Self {
        let owner = Box::new(owner);
        let (data, length) = (owner.bytes().as_ptr(), owner.bytes().len());
        Self { data, length, owner: Box::into_raw(owner) }
    }

    /// Converts a value; `None` has a null pointer.
    pub(crate) fn of_found(found: Option<Slice>) -> Self {
        found.map_or_else(Self::default, |slice| Self::new(Owner::Slice(slice)))
    }
}

/// Frees the bytes of a value and sets its pointer to NULL; it may be freed again.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_value_free(value: Option<&mut Value>) {
    if let Some(value) = value {
        let freed = std::mem::take(value);
        quiet(|| free_box(freed.owner));
    }
}

/// Frees the values of an array like tamis_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_values_free(values: *mut Value, count: usize) {
    if let Ok(values) = items_mut(values, count, "values") {
        values.iter_mut().for_each(|value| tamis_value_free(Some(value)));
    }
}

/// Frees a text that a function of this library returned: a message or JSON. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_text_free(text: *mut c_char) {
    quiet(|| free_text(text));
}
