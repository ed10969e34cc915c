//! Options of `open()`: the names that all bindings share, in camel case.

use tamis::Options;
use tamis_bindings_common::options::{DATABASE_NAMES, KEYSPACE_NAMES, set_database};

use crate::error::Fault;

/// Reads options from names and values; `None` is a value of another type than string, number and boolean. Options with other names
/// belong to the program: abstract-level hands them to hooks.
pub(crate) fn of_database(mut given: Vec<(String, Option<String>)>) -> Result<Options, Fault> {
    let mut options = Options::default();
    // `deepestFilters` changes `filters`, so it comes after it.
    given.sort_by_key(|(name, _)| name == "deepestFilters");
    for (name, value) in given {
        let Some(known) = known_name(&name)? else { continue };
        let value = value.ok_or_else(|| invalid(format!("{name}: give a string, a number or a boolean")))?;
        set_database(&mut options, known, &value).map_err(|mut failure| {
            failure.message = failure.message.replace(known, &name);
            failure
        })?;
    }
    Ok(options)
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
