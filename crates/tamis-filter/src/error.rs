//! Why a filter could not be built or opened.

use thiserror::Error;

/// A filter could not be built. The keys are unharmed: the caller may go on without a filter.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Keys must come in ascending order.
    #[error("key number {index} is smaller than the key before it: add keys in ascending order")]
    Unsorted {
        /// Number of the offending key, from 0.
        index: u64,
    },
    /// The budget is not a number of bits that a filter can have.
    #[error("a budget of {given} bits per key: give a number above 0 and at most {max}")]
    Budget {
        /// What was given.
        given: f64,
        /// Most bits per key.
        max: f64,
    },
    /// No budget was given, and the parameters do not fix the size.
    #[error("the family {family} needs a budget in bits per key")]
    BudgetMissing {
        /// The family's name.
        family: &'static str,
    },
    /// The family has a least size for these keys.
    #[error(
        "{family} needs at least {least_bits_per_key:.2} bits per key for these keys, {given} were given"
    )]
    BudgetTooSmall {
        /// The family's name.
        family: &'static str,
        /// What was given.
        given: f64,
        /// The least that would do.
        least_bits_per_key: f64,
    },
    /// The filter would be larger than the family's format or memory allows.
    #[error("the filter would take {needed_bytes} bytes, at most {bytes_max} are possible")]
    TooLarge {
        /// Bytes that would be needed.
        needed_bytes: u64,
        /// Bytes that are possible.
        bytes_max: u64,
    },
    /// All values of an index have the same length.
    #[error("a value of {got} bytes in an index of values of {expected} bytes")]
    ValueLength {
        /// Bytes of each value.
        expected: u64,
        /// Bytes of this one.
        got: u64,
    },
    /// No family has this name.
    #[error("no filter family is named {name:?}; there are: {known}")]
    UnknownFamily {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// The family has no such parameter.
    #[error("{family} has no parameter {name:?}; it has: {known}")]
    UnknownParameter {
        /// The family's name.
        family: &'static str,
        /// What was given.
        name: String,
        /// All parameters of the family.
        known: &'static str,
    },
    /// A parameter has a value that the family cannot use.
    #[error("{family}: {name}={value} is not possible: {expected}")]
    Parameter {
        /// The family's name.
        family: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would be possible.
        expected: &'static str,
    },
    /// The construction did not succeed for these keys.
    #[error("{family}: {reason}")]
    Refused {
        /// The family's name.
        family: &'static str,
        /// Why.
        reason: &'static str,
    },
}

/// Bytes that are not a filter which this version can use. Go on without it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too early or go on too long.
    #[error("filter of {got} bytes, expected {expected}")]
    Length {
        /// Length that the header tells, or the header's own.
        expected: u64,
        /// Length of the bytes.
        got: u64,
    },
    /// The first bytes are not those of a filter.
    #[error("not a filter: magic {got:#010x}")]
    Magic {
        /// What was found.
        got: u32,
    },
    /// A later version of the format.
    #[error("filter format version {got} is not known (this program reads up to {max})")]
    Version {
        /// What was found.
        got: u8,
        /// The latest that is known.
        max: u8,
    },
    /// Another digest function.
    #[error("filter digest number {got} is not known")]
    Digest {
        /// What was found.
        got: u8,
    },
    /// A family that this version does not know.
    #[error("filter family number {got} is not known")]
    Family {
        /// What was found.
        got: u16,
    },
    /// A field that no builder writes.
    #[error("filter field {field} has the impossible value {got}")]
    Field {
        /// The field of `docs/format/filter.md`.
        field: &'static str,
        /// What was found.
        got: u64,
    },
    /// A checksum does not fit.
    #[error("filter {part} damaged: checksum {got:#018x}, expected {expected:#018x}")]
    Checksum {
        /// `header` or `payload`.
        part: &'static str,
        /// As written.
        expected: u64,
        /// As computed.
        got: u64,
    },
}
