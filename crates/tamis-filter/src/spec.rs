//! A family and its parameters, as text: `NAME[:param=value,...]`.

use std::{fmt, str::FromStr};

use crate::parameters::Parameters;
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

    /// Sets a parameter; [`FilterSpec::builder`] checks its name and value.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The value of a parameter, the last one if it is given twice.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// A builder for one table, with a seed for its digests.
    pub fn builder(&self, seed: u64) -> Result<Box<dyn FilterBuilder>, BuildError> {
        let mut parameters = Parameters::new(self.family.name(), &self.parameters);
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

/// The text that [`FromStr`] parses.
impl fmt::Display for FilterSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.family)?;
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            write!(formatter, "{}{name}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
