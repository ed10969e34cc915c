//! Options of `open()` and `setOptions()`: the names that all bindings share, in camel case.

use std::collections::HashMap;

use tamis::{Keyspace, Options};
use tamis_bindings_common::{
    Failure,
    options::{DATABASE_NAMES, KEYSPACE_NAMES, set_database, set_keyspace},
};

use crate::error::Fault;

/// Options as names and values; `None` is a value of another type than string, number and boolean.
pub(crate) type Given = HashMap<String, Option<String>>;

/// Reads the options of `open()`. Options with other names belong to the program: abstract-level hands them to hooks.
pub(crate) fn of_database(given: Given) -> Result<Options, Fault> {
    let mut options = Options::default();
    set_each(given, |name, value| set_database(&mut options, name, value))?;
    Ok(options)
}

/// Changes options of a keyspace.
pub(crate) fn change(keyspace: &Keyspace, given: Given) -> Result<(), Fault> {
    let mut changed = keyspace.options();
    for name in given.keys() {
        if known_name(name)?.is_none() {
            return Err(invalid(format!("unknown option {name:?}; give layout, filters or expireAfter")));
        }
    }
    set_each(given, |name, value| set_keyspace(&mut changed, name, value))?;
    Ok(keyspace.set_options(changed)?)
}

fn set_each(given: Given, mut set: impl FnMut(&str, &str) -> Result<(), Failure>) -> Result<(), Fault> {
    for (name, value) in given {
        let Some(known) = known_name(&name)? else { continue };
        let value = value.ok_or_else(|| invalid(format!("{name}: give a string, a number or a boolean")))?;
        set(known, &value).map_err(|mut failure| {
            failure.message = failure.message.replace(known, &name);
            failure
        })?;
    }
    Ok(())
}

/// The name of an option in all bindings. Another spelling of it is an error.
fn known_name(name: &str) -> Result<Option<&'static str>, Fault> {
    let letters = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let mut all = DATABASE_NAMES.iter().chain(KEYSPACE_NAMES);
    let Some(known) = all.find(|known| letters(known) == letters(name)) else { return Ok(None) };
    let right = camel_case(known);
    if right == name {
        Ok(Some(known))
    } else {
        Err(invalid(format!("unknown option {name:?}; write {right}")))
    }
}

fn invalid(message: String) -> Fault {
    Fault::new("LEVEL_INVALID_ARGUMENT", message)
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut joined = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        joined.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        joined.push_str(letters.as_str());
    }
    joined
}
