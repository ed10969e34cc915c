//! Errors of building and opening filters.

use thiserror::Error;

/// A filter could not be built. The keys are intact: the caller may continue without a filter.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Keys must come in ascending order.
    #[error("key number {index} is smaller than the key before it: add keys in ascending order")]
    Unsorted {
        /// Index of the offending key, from 0.
        index: u64,
    },
    /// The budget is not a valid number of bits.
    #[error("a budget of {given} bits per key: give a number above 0 and at most {max}")]
    Budget {
        /// The given budget.
        given: f64,
        /// Maximum number of bits per key.
        max: f64,
    },
    /// The budget is missing, and the parameters do not determine the size.
    #[error("the family {family} needs a budget: give the bits per key")]
    BudgetMissing {
        /// The family's name.
        family: &'static str,
    },
    /// The family has a minimum size for these keys.
    #[error(
        "{family} needs at least {least_bits_per_key:.2} bits per key for these keys, {given} were given; give more, or use another family"
    )]
    BudgetTooSmall {
        /// The family's name.
        family: &'static str,
        /// The given budget.
        given: f64,
        /// The minimum.
        least_bits_per_key: f64,
    },
    /// The filter would exceed the family's format or the memory.
    #[error("the filter would take {needed_bytes} bytes, at most {bytes_max} are possible")]
    TooLarge {
        /// Bytes needed.
        needed_bytes: u64,
        /// Maximum number of bytes.
        bytes_max: u64,
    },
    /// Values of an index differ in length.
    #[error("a value of {got} bytes in an index of values of {expected} bytes")]
    ValueLength {
        /// Bytes of each value.
        expected: u64,
        /// Bytes of the offending value.
        got: u64,
    },
    /// No family has this name.
    #[error("no filter family is named {name:?}; there are: {known}")]
    UnknownFamily {
        /// The given name.
        name: String,
        /// All names.
        known: String,
    },
    /// The family has no such parameter.
    #[error("{family} has no parameter {name:?}; its parameters: {known}")]
    UnknownParameter {
        /// The family's name.
        family: &'static str,
        /// The given name.
        name: String,
        /// All parameters of the family.
        known: &'static str,
    },
    /// The family cannot use the value of a parameter.
    #[error("{family}: {name}={value} is not possible; use {expected}")]
    Parameter {
        /// The family's name.
        family: &'static str,
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: String,
        /// Valid values.
        expected: &'static str,
    },
    /// The construction failed for these keys.
    #[error("{family}: {reason}")]
    Refused {
        /// The family's name.
        family: &'static str,
        /// The reason.
        reason: &'static str,
    },
}

/// Bytes that are not a filter that this version can use. Continue without it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are too short or too long.
    #[error("filter of {got} bytes, expected {expected}")]
    Length {
        /// Length in the header, or that of the header itself.
        expected: u64,
        /// Length of the bytes.
        got: u64,
    },
    /// The first bytes are not those of a filter.
    #[error("not a filter: magic {got:#010x}")]
    Magic {
        /// The bytes found.
        got: u32,
    },
    /// A later version of the format.
    #[error("filter format version {got} is not known (this program reads up to {max})")]
    Version {
        /// The version found.
        got: u8,
        /// The latest known version.
        max: u8,
    },
    /// Another digest function.
    #[error("filter digest number {got} is not known")]
    Digest {
        /// The number found.
        got: u8,
    },
    /// A family that this version does not know.
    #[error("filter family number {got} is not known")]
    Family {
        /// The number found.
        got: u16,
    },
    /// A field that no builder writes.
    #[error("filter field {field} has the impossible value {got}")]
    Field {
        /// The field of `docs/format/filter.md`.
        field: &'static str,
        /// The value found.
        got: u64,
    },
    /// Wrong checksum.
    #[error("filter {part} damaged: checksum {got:#018x}, expected {expected:#018x}")]
    Checksum {
        /// `header` or `payload`.
        part: &'static str,
        /// The stored checksum.
        expected: u64,
        /// The computed checksum.
        got: u64,
    },
}
