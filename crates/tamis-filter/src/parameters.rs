//! Parses the parameters of a filter spec for its family.

use std::str::FromStr;

use crate::BuildError;

/// The parameters of a spec that its family has not taken yet.
#[derive(Debug)]
pub(crate) struct Parameters<'a> {
    family: &'static str,
    rest: Vec<&'a (String, String)>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(family: &'static str, given: &'a [(String, String)]) -> Self {
        Self { family, rest: given.iter().collect() }
    }

    /// The value of a parameter, the last one if it is given twice; `None` if it is not given.
    pub(crate) fn take<T: FromStr>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        is_possible: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, BuildError> {
        let mut found = None;
        self.rest.retain(|(given, value)| {
            if given == name {
                found = Some(value.clone());
            }
            given != name
        });
        let Some(value) = found else { return Ok(None) };
        match value.parse() {
            Ok(parsed) if is_possible(&parsed) => Ok(Some(parsed)),
            _ => Err(BuildError::Parameter { family: self.family, name, value, expected }),
        }
    }

    /// Returns an error for parameters that no `take` has taken.
    pub(crate) fn finish(&self, known: &'static str) -> Result<(), BuildError> {
        match self.rest.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(BuildError::UnknownParameter { family: self.family, name: name.clone(), known })
            }
        }
    }
}
