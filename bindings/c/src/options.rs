//! Options of databases and keyspaces, set by name.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::{KeyspaceOptions, Options};
use tamis_bindings_common::{Code, options};

use crate::boundary::{Exclusive, call, clear_pointer, free_box, handle, put_handle, quiet, text};

/// Options of a database and of its default keyspace.
#[derive(Debug)]
pub struct DatabaseOptions(pub(crate) Exclusive<Options>);

/// Options of a keyspace.
#[derive(Debug)]
pub struct OptionsOfKeyspace(pub(crate) Exclusive<KeyspaceOptions>);

/// Creates options with defaults; free them with tamis_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_options_new(
    mut options: Option<&mut MaybeUninit<*mut DatabaseOptions>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut options);
    call(message, || put_handle(options, "options", DatabaseOptions(Exclusive::new(Options::default()))))
}

/// Sets an option by name, such as "cache_bytes" to "512MiB" or "filters" to "surf@16". Options of a keyspace apply to the default
/// keyspace of a database that the open creates. The guide docs/guide/c.md lists all names.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_options_set(
    options: Option<&DatabaseOptions>,
    name: *const c_char,
    value: *const c_char,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (name, value) = (text(name, "name")?, text(value, "value")?);
        handle(options, "options")?.0.with(|options| options::set_database(options, name, value))
    })
}

/// Frees options. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_options_free(options: *mut DatabaseOptions) {
    quiet(|| free_box(options));
}

/// Creates options of a keyspace with defaults; free them with tamis_keyspace_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_options_new(
    mut options: Option<&mut MaybeUninit<*mut OptionsOfKeyspace>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut options);
    let new = OptionsOfKeyspace(Exclusive::new(KeyspaceOptions::default()));
    call(message, || put_handle(options, "options", new))
}

/// Sets an option of a keyspace by name.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_options_set(
    options: Option<&OptionsOfKeyspace>,
    name: *const c_char,
    value: *const c_char,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (name, value) = (text(name, "name")?, text(value, "value")?);
        handle(options, "options")?.0.with(|options| options::set_keyspace(options, name, value))
    })
}

/// Frees options of a keyspace. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_options_free(options: *mut OptionsOfKeyspace) {
    quiet(|| free_box(options));
}
