//! Dumps that the tools of other stores write: `mdb_dump`, `ldb dump --hex`, `leveldbutil dump`.
//!
//! A dump that its format shows to be truncated is an error, after its last entry.

mod ldb;
mod leveldbutil;
mod mdb;

pub(super) use self::{ldb::LdbDump, leveldbutil::LeveldbutilDump, mdb::MdbDump};

/// Appends the bytes of hexadecimal digits.
fn decode_hex(digits: &[u8], target: &mut Vec<u8>) -> Result<(), String> {
    if !digits.len().is_multiple_of(2) {
        return Err(format!("{} hexadecimal digits, which are not whole bytes", digits.len()));
    }
    for pair in digits.chunks_exact(2) {
        let byte = hex_byte(pair)
            .ok_or_else(|| format!("\"{}\" is not a byte in hexadecimal digits", pair.escape_ascii()))?;
        target.push(byte);
    }
    Ok(())
}

/// The byte of two hexadecimal digits at the start of a text.
fn hex_byte(text: &[u8]) -> Option<u8> {
    let digit = |index: usize| char::from(*text.get(index)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// Whether the tools write this byte as it is, and not escaped.
fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}
