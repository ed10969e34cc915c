//! A family and its parameters, as text: `NAME[:param=value,...]`.

use std::{fmt, str::FromStr};

use crate::{BuildError, Family, FilterBuilder};

/// A family with parameters that differ from their defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterSpec {
    family: Family,
    parameters: Vec<(String, String)>,
}

impl FilterSpec {
    /// A family with all defaults.
    pub const fn new(family: Family) -> Self {
        Self { family, parameters: Vec::new() }
    }

    /// The family.
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Sets a parameter; whether it exists and fits is found out by [`FilterSpec::builder`].
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A builder for one table, with the digests of a seed.
    pub fn builder(&self, seed: u64) -> Result<Box<dyn FilterBuilder>, BuildError> {
        let mut parameters =
            Parameters { family: self.family.name(), rest: self.parameters.iter().collect() };
        self.family.builder(&mut parameters, seed)
    }
}

impl FromStr for FilterSpec {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = Self::new(Family::from_name(name)?);
        for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            spec = spec.with(name, value);
        }
        Ok(spec)
    }
}

/// The text that [`FromStr`] reads.
impl fmt::Display for FilterSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.family)?;
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            write!(formatter, "{}{name}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// What a family takes its parameters from.
#[derive(Debug)]
pub(crate) struct Parameters<'a> {
    family: &'static str,
    rest: Vec<&'a (String, String)>,
}

impl Parameters<'_> {
    /// The value of a parameter, the last one where it is given twice; `None` where it is not given.
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

    /// Refuses what no `take` asked for.
    pub(crate) fn finish(&self, known: &'static str) -> Result<(), BuildError> {
        match self.rest.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(BuildError::UnknownParameter { family: self.family, name: name.clone(), known })
            }
        }
    }
}

#[cfg(test)]
mod tests;
