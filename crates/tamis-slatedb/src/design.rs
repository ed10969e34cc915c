//! The filters of each table: chosen from its keys and the sampled queries, or given.

use std::{fmt, str::FromStr};

use tamis_filter::auto::Part;
use tamis_filter::{Budget, BuildError, FilterSpec, Samples};

use crate::PolicyError;

/// The maximum number of filters of a table.
pub(crate) const PARTS_MAX: usize = 8;

/// Bits per key of `auto` without a number.
const AUTO_BITS: f64 = 16.0;

/// The filters of each table. Its text is `auto@BITS`, or `SPEC[@BITS]` of each filter, separated by spaces:
/// `blocked-bloom@10 proteus@12`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Design {
    /// The cheapest filters for the keys of the table and the sampled queries, with at most this many bits per key together.
    Auto {
        /// The maximum.
        bits_per_key_max: f64,
    },
    /// The same filters for every table.
    Fixed(Vec<Part>),
}

impl Design {
    /// Checks parameters and budgets, which are otherwise checked when the first table is written.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        match self {
            Self::Auto { bits_per_key_max } => {
                let checked = Budget::bits_per_key(*bits_per_key_max);
                checked.map(|_| ()).map_err(|source| PolicyError::Part { part: self.to_string(), source })
            }
            Self::Fixed(parts) if (1..=PARTS_MAX).contains(&parts.len()) => {
                parts.iter().try_for_each(check_part)
            }
            Self::Fixed(parts) => Err(PolicyError::PartCount { count: parts.len(), max: PARTS_MAX }),
        }
    }

    /// Whether a filter can reject ranges or prefixes. Filters of a policy without one are not read for them.
    pub(crate) fn answers_ranges(&self) -> bool {
        match self {
            Self::Auto { .. } => true,
            Self::Fixed(parts) => parts.iter().any(|part| part.spec.family().answers_ranges()),
        }
    }

    /// The expected bits per key of all filters of a table together.
    pub fn expected_bits(&self) -> f64 {
        match self {
            Self::Auto { bits_per_key_max } => *bits_per_key_max,
            Self::Fixed(parts) => parts.iter().map(|part| part.bits_per_key.unwrap_or(AUTO_BITS)).sum(),
        }
    }
}

/// Builds a filter of one key: the error of a parameter or budget appears now. The minimum size depends on the keys.
fn check_part(part: &Part) -> Result<(), PolicyError> {
    let built = part.spec.builder(0).and_then(|mut builder| {
        builder.add(b"key")?;
        builder.finish(budget(part)?, Samples::NONE)
    });
    match built {
        Ok(_) | Err(BuildError::BudgetTooSmall { .. }) => Ok(()),
        Err(source) => Err(PolicyError::Part { part: part_text(part), source }),
    }
}

pub(crate) fn budget(part: &Part) -> Result<Budget, BuildError> {
    part.bits_per_key.map_or(Ok(Budget::BY_PARAMETERS), Budget::bits_per_key)
}

fn part_text(part: &Part) -> String {
    part.bits_per_key.map_or_else(|| part.spec.to_string(), |bits| format!("{}@{bits}", part.spec))
}

fn parse_part(text: &str) -> Result<Part, PolicyError> {
    let (spec, bits) = match text.rsplit_once('@') {
        Some((spec, bits)) => (spec, Some(parse_bits(text, bits)?)),
        None => (text, None),
    };
    let spec: FilterSpec =
        spec.parse().map_err(|source| PolicyError::Part { part: text.to_owned(), source })?;
    Ok(Part { spec, bits_per_key: bits })
}

fn parse_bits(part: &str, bits: &str) -> Result<f64, PolicyError> {
    bits.parse().map_err(|_| PolicyError::Bits { part: part.to_owned(), bits: bits.to_owned() })
}

impl FromStr for Design {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let text = text.trim();
        let design = match text.strip_prefix("auto") {
            Some("") => Self::Auto { bits_per_key_max: AUTO_BITS },
            Some(rest) if rest.starts_with('@') => {
                Self::Auto { bits_per_key_max: parse_bits(text, rest.trim_start_matches('@'))? }
            }
            _ => Self::Fixed(text.split_whitespace().map(parse_part).collect::<Result<_, _>>()?),
        };
        design.check()?;
        Ok(design)
    }
}

impl fmt::Display for Design {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto { bits_per_key_max } => write!(formatter, "auto@{bits_per_key_max}"),
            Self::Fixed(parts) => {
                formatter.write_str(&parts.iter().map(part_text).collect::<Vec<_>>().join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests;
