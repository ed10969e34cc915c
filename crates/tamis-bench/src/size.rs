//! The sizes of a run.

use std::{fmt, str::FromStr};

use crate::BenchError;

/// The size of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// Takes seconds: tests the experiment.
    Small,
    /// Takes minutes: shows the shape of the curves.
    Medium,
    /// Takes up to two hours on two cores: the final figures.
    Full,
}

impl Size {
    /// All sizes.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Full];

    /// Returns the value for this size.
    pub fn pick<T>(self, small: T, medium: T, full: T) -> T {
        match self {
            Self::Small => small,
            Self::Medium => medium,
            Self::Full => full,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.pick("small", "medium", "full"))
    }
}

impl FromStr for Size {
    type Err = BenchError;

    fn from_str(name: &str) -> Result<Self, BenchError> {
        Self::ALL.into_iter().find(|size| size.to_string() == name).ok_or_else(|| BenchError::Unknown {
            kind: "size",
            name: name.to_owned(),
            names: "small, medium, full".to_owned(),
        })
    }
}
