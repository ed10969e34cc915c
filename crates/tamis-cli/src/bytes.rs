//! Parses and prints keys and values: text, hexadecimal digits, or 64-bit numbers.
//!
//! Parsing is exact. Printed text is for people: bytes that are not printable appear as `\xNN`. JSON output is exact: bytes
//! that the chosen format cannot represent appear as `{"hex": "..."}`, which [`Format::parse_json`] accepts.

use std::{ffi::OsStr, fmt::Write as _};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// The format of keys and values on the command line and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The bytes themselves, as UTF-8 text.
    Text,
    /// Two hexadecimal digits per byte, with an optional `0x` prefix.
    Hex,
    /// A 64-bit number, stored as 8 big-endian bytes so that the key order is the numeric order.
    U64,
}

/// The bytes of a text of the operating system: on Unix as they are, elsewhere UTF-8; `None` if it is not Unicode there.
pub(crate) fn os_bytes(text: &OsStr) -> Option<&[u8]> {
    if cfg!(unix) { Some(text.as_encoded_bytes()) } else { text.to_str().map(str::as_bytes) }
}

/// Options for the formats of keys and values.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Formats {
    /// Format of keys
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) key_format: Format,
    /// Format of values
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) value_format: Format,
}

impl Format {
    /// Parses `text`; the error describes what is wrong with it.
    pub(crate) fn parse(self, text: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Text => Ok(text.to_vec()),
            Self::Hex => parse_hex(text),
            Self::U64 => parse_u64(text).map(|number| number.to_be_bytes().to_vec()),
        }
    }

    /// Parses a command-line argument; `what` names it in the error.
    pub(crate) fn argument(self, what: &str, text: &OsStr) -> Result<Vec<u8>, Failure> {
        let bytes = os_bytes(text).ok_or_else(|| {
            Failure::Usage(format!("{what}: not Unicode; give its bytes in the format hex"))
        })?;
        self.parse(bytes).map_err(|error| Failure::Usage(format!("{what}: {error}")))
    }

    /// Parses a JSON value: a string or number in this format, or `{"hex": "..."}`.
    pub(crate) fn parse_json(self, value: &Value) -> Result<Vec<u8>, String> {
        match value {
            Value::String(text) => self.parse(text.as_bytes()),
            Value::Number(number) => self.parse(number.to_string().as_bytes()),
            Value::Object(fields) if fields.len() == 1 => match fields.get("hex") {
                Some(Value::String(digits)) => parse_hex(digits.as_bytes()),
                _ => Err(format!(
                    "{value} is not a key or value; the only accepted object is {{\"hex\": \"...\"}}"
                )),
            },
            other => {
                Err(format!("{other} is not a key or value; give a string, a number or {{\"hex\": \"...\"}}"))
            }
        }
    }

    /// Formats bytes for people.
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        match (self, <[u8; 8]>::try_from(bytes)) {
            (Self::Text, _) => show_text(bytes),
            (Self::U64, Ok(number)) => u64::from_be_bytes(number).to_string(),
            (Self::Hex, _) => hex(bytes),
            // Not 8 bytes, so not a 64-bit number.
            (Self::U64, Err(_)) => format!("0x{}", hex(bytes)),
        }
    }

    /// Formats bytes as JSON; [`Self::parse_json`] returns the same bytes.
    pub(crate) fn json(self, bytes: &[u8]) -> Value {
        match (self, std::str::from_utf8(bytes), <[u8; 8]>::try_from(bytes)) {
            (Self::Text, Ok(text), _) => json!(text),
            (Self::Hex, _, _) => json!(hex(bytes)),
            (Self::U64, _, Ok(number)) => json!(u64::from_be_bytes(number)),
            _ => json!({ "hex": hex(bytes) }),
        }
    }
}

fn parse_hex(text: &[u8]) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
    if !digits.len().is_multiple_of(2) {
        return Err(format!(
            "{:?} has {} hexadecimal digits; give two per byte",
            show_text(text),
            digits.len()
        ));
    }
    let digit = |byte: u8| {
        char::from(byte).to_digit(16).ok_or_else(|| {
            format!("{:?} contains {:?}, which is not a hexadecimal digit", show_text(text), char::from(byte))
        })
    };
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| pair.iter().try_fold(0_u8, |byte, &next| Ok((byte << 4) | digit(next)? as u8))).collect()
}

fn parse_u64(text: &[u8]) -> Result<u64, String> {
    let string = std::str::from_utf8(text).unwrap_or_default();
    let number = match string.strip_prefix("0x").or(string.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => string.parse(),
    };
    number.map_err(|_| format!("{:?} is not a number from 0 to 18446744073709551615", show_text(text)))
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Prints UTF-8 unchanged, and escapes control characters so that they cannot control the terminal.
fn show_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                let _ = character
                    .encode_utf8(&mut [0; 4])
                    .bytes()
                    .try_for_each(|byte| write!(text, "\\x{byte:02x}"));
            } else {
                text.push(character);
            }
        }
        let _ = chunk.invalid().iter().try_for_each(|byte| write!(text, "\\x{byte:02x}"));
    }
    text
}
