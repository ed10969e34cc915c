//! Parameters and metrics: ordered lists of names and values.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap as _,
};

use crate::{BenchError, Needs};

#[cfg(test)]
mod tests;

/// Maximum relative difference of a number after it was written to a file and read again.
const ROUNDING: f64 = 1e-12;

/// The value of a parameter or a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Not measured, or not a finite number.
    Absent,
    /// A boolean.
    Flag(bool),
    /// A count.
    Integer(u64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Names and values.
    Object(Fields),
}

impl Value {
    /// Returns the number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            Self::Absent | Self::Flag(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Whether both are equal, up to the rounding of numbers in files.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.as_number(), other.as_number()) {
            (Some(one), Some(two)) => (one - two).abs() <= ROUNDING * one.abs().max(two.abs()),
            _ => self == other,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => formatter.write_str("-"),
            Self::Flag(flag) => write!(formatter, "{flag}"),
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Number(number) if *number == 0.0 => formatter.write_str("0"),
            Self::Number(number) if number.abs() >= 1e9 || number.abs() < 1e-6 => {
                write!(formatter, "{number:.3e}")
            }
            Self::Number(number) if number.abs() >= 1000.0 => write!(formatter, "{number:.0}"),
            Self::Number(number) => {
                // Four significant digits, without trailing zeros.
                let digits = (3 - number.abs().log10().floor() as i32).clamp(0, 9) as usize;
                let text = format!("{number:.digits$}");
                let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
                formatter.write_str(text)
            }
            Self::Text(text) => formatter.write_str(text),
            Self::List(values) => {
                let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
                formatter.write_str(&texts.join(" "))
            }
            Self::Object(fields) => fields.fmt(formatter),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(u64::from(number))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Integer(number as u64)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        u64::try_from(number).map_or(Self::Number(f64::from(number)), Self::Integer)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Absent }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u64]> for Value {
    fn from(numbers: &[u64]) -> Self {
        Self::List(numbers.iter().map(|number| Self::Integer(*number)).collect())
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Object(fields)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

/// An ordered list of names and values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields(Vec<(String, Value)>);

impl Fields {
    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// Sets the value of a name; appends a new name.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.iter().all(|(name, value)| other.get(name).is_some_and(|other| value.is_same(other)))
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            write!(formatter, "{}{name}={value}", if index == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of numbers and texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    fields.set(&name, value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Bytes of memory per key of a filter measurement: the key, its queries and answers, and the filter during its build.
const KEY_BYTES: u64 = 128;
/// Bytes of memory per query, if a point has a separate number of queries.
const QUERY_BYTES: u64 = 32;

/// The parameters of one measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point {
    fields: Fields,
    #[serde(skip)]
    needs: Needs,
}

impl Point {
    /// A point without parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.set(name, value);
        self
    }

    /// Adds required disk and memory, which are checked before the run starts.
    #[must_use]
    pub fn needing(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    /// The required disk and memory: those of [`Point::needing`], and memory for its numbers of keys and queries, with the length of
    /// keys if it is a parameter.
    pub fn needs(&self) -> Needs {
        let largest = |names: &[&str]| {
            let counts = names.iter().filter_map(|name| match self.fields.get(name) {
                Some(Value::Integer(count)) => Some(*count),
                _ => None,
            });
            counts.max().unwrap_or(0)
        };
        let bytes = largest(&["bytes", "key_bytes"]);
        let keys =
            largest(&["keys", "count", "keys_per_table"]).saturating_mul(KEY_BYTES.saturating_add(bytes));
        let queries = largest(&["queries", "lookups"]).saturating_mul(QUERY_BYTES.saturating_add(bytes));
        self.needs.max(Needs { memory_bytes: keys.saturating_add(queries), ..Needs::default() })
    }

    /// The parameters.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns a parameter.
    ///
    /// # Errors
    /// [`BenchError::Unknown`] with the known names.
    pub fn get(&self, name: &str) -> Result<&Value, BenchError> {
        self.fields.get(name).ok_or_else(|| BenchError::Unknown {
            kind: "parameter",
            name: name.to_owned(),
            names: self.fields.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns a text parameter.
    ///
    /// # Errors
    /// If the name is unknown, or the value is a number.
    pub fn text(&self, name: &str) -> Result<&str, BenchError> {
        match self.get(name)? {
            Value::Text(text) => Ok(text),
            other => Err(BenchError::other(format!("parameter {name} is {other}, not a text"))),
        }
    }

    /// Returns a numeric parameter.
    ///
    /// # Errors
    /// If the name is unknown, or the value is text.
    pub fn number(&self, name: &str) -> Result<f64, BenchError> {
        let value = self.get(name)?;
        value
            .as_number()
            .ok_or_else(|| BenchError::other(format!("parameter {name} is {value}, not a number")))
    }

    /// Returns an integer parameter.
    ///
    /// # Errors
    /// If the name is unknown, or the value is not an integer.
    pub fn integer(&self, name: &str) -> Result<u64, BenchError> {
        match self.get(name)? {
            Value::Integer(number) => Ok(*number),
            other => Err(BenchError::other(format!("parameter {name} is {other}, not an integer"))),
        }
    }

    /// Whether both have the same parameters in any order.
    pub fn is_same(&self, other: &Self) -> bool {
        self.fields.is_same(&other.fields)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields.fmt(formatter)
    }
}

/// The metrics of one point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The metrics.
    pub fields: Fields,
    /// Digest of the operations; rows with equal digests did the same work.
    pub digest: u64,
}

impl Row {
    /// A row without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metric.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.set(name, value);
        self
    }

    /// Sets the digest of the operations.
    #[must_use]
    pub fn with_digest(mut self, digest: u64) -> Self {
        self.digest = digest;
        self
    }
}

/// A point and its metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRow {
    /// The parameters.
    pub point: Point,
    /// The metrics.
    pub metrics: Fields,
    /// Digest of the operations in hexadecimal.
    pub digest: String,
    /// Duration of the measurement, including its inputs.
    pub seconds: f64,
}

impl MeasuredRow {
    /// Returns a metric or a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.metrics.get(name).or_else(|| self.point.fields().get(name))
    }
}
