//! The experiments that a program offers.

use std::path::PathBuf;

use crate::{BenchError, Definition, Report, experiment};

/// Draws the plots of a report; returns their files.
pub type Draw = fn(&Definition, &Report) -> Result<Vec<PathBuf>, BenchError>;

/// The experiments of a program, by group.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    /// The groups in print order.
    pub groups: &'static [&'static [&'static Definition]],
    /// Draws the plots, if the program can.
    pub draw: Option<Draw>,
}

/// The workloads of stores, without plots.
pub const WORKLOADS: Catalog = Catalog { groups: &[experiment::STORE_EXPERIMENTS], draw: None };

impl Catalog {
    /// All experiments, by group.
    pub fn all(&self) -> impl Iterator<Item = &'static Definition> {
        self.groups.iter().copied().flatten().copied()
    }

    /// Returns the experiment with this name.
    ///
    /// # Errors
    /// [`BenchError::Unknown`] with the known names.
    pub fn find(&self, name: &str) -> Result<&'static Definition, BenchError> {
        self.all().find(|definition| definition.name == name).ok_or_else(|| BenchError::Unknown {
            kind: "experiment",
            name: name.to_owned(),
            names: self.all().map(|definition| definition.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns the experiments with these names: a name, a prefix that ends with a dash, or `all`.
    ///
    /// # Errors
    /// [`BenchError::Unknown`] with the known names.
    pub fn select(&self, names: &[String]) -> Result<Vec<&'static Definition>, BenchError> {
        let mut definitions = Vec::new();
        for name in names {
            let chosen: Vec<_> = match name.as_str() {
                "all" => self.all().collect(),
                prefix if prefix.ends_with('-') => {
                    self.all().filter(|definition| definition.name.starts_with(prefix)).collect()
                }
                name => vec![self.find(name)?],
            };
            if chosen.is_empty() {
                // The error lists the known names.
                self.find(name)?;
            }
            definitions.extend(chosen);
        }
        Ok(definitions)
    }
}
