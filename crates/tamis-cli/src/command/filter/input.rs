//! Reads files of keys and queries: binary 64-bit values, or lines of text.
//!
//! A file is binary if its extension is `.keys`, `.q` or `.s`, if its length matches the count in its first eight bytes, or
//! if there is a zero byte near its beginning. Integers become big-endian bytes, so that the key order is the numeric
//! order. Text has one key per line; a query is `lower<TAB>upper`, both inclusive. The line feed of the last line is
//! optional.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Seek},
    path::Path,
};

use tamis_bench::filter::Ranges;
use tamis_filter::KeySet;
use tamis_workload::file::{FileError, ValueReader, read_ranges};

use crate::{failure::Failure, input::open_file};

/// Number of bytes that are searched for a zero byte.
const DETECT_BYTES: u64 = 1 << 16;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integers,
    Text,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Integers => "64-bit integers",
            Self::Text => "lines of text",
        }
    }
}

fn failure(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("{}: {error}", path.display()))
}

fn open(path: &Path) -> Result<(File, Kind), Failure> {
    let mut file = open_file(path)?;
    let length = file.metadata().map_err(|error| failure(path, error))?.len();
    let mut front = Vec::new();
    file.by_ref().take(DETECT_BYTES).read_to_end(&mut front).map_err(|error| failure(path, error))?;
    file.rewind().map_err(|error| failure(path, format!("{error}; give a regular file, not a pipe")))?;
    let promised =
        front.first_chunk().map(|count| u64::from_le_bytes(*count).saturating_add(1).saturating_mul(8));
    let has_ending =
        path.extension().is_some_and(|ending| ending == "keys" || ending == "q" || ending == "s");
    let is_integers = has_ending || promised == Some(length) || front.contains(&0);
    Ok((file, if is_integers { Kind::Integers } else { Kind::Text }))
}

/// Reads sorted keys; duplicates count once.
pub(super) fn read_keys(path: &Path) -> Result<(KeySet, Kind), Failure> {
    let (file, kind) = open(path)?;
    let length = file.metadata().map_err(|error| failure(path, error))?.len();
    let mut keys = KeySet::new();
    if kind == Kind::Integers {
        let mut values = ValueReader::new(file).map_err(|error| failure(path, error))?;
        values.check_length(length).map_err(|error| failure(path, error))?;
        let mut before = 0;
        loop {
            let offset = values.offset();
            let Some(value) = values.next() else { break };
            let value = value.map_err(|error| failure(path, error))?;
            let is_pushed = keys.push(&value.to_be_bytes());
            is_pushed.map_err(|_| failure(path, FileError::NotAscending { offset, value, before }))?;
            before = value;
        }
    } else {
        for_each_line(path, file, |number, line| {
            keys.push(line).map_err(|_| {
                format!("line {number} is smaller than the previous line; sort the file by bytes")
            })
        })?;
    }
    Ok((keys, kind))
}

fn for_each_line(
    path: &Path,
    file: File,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<(), Failure> {
    let mut source = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if source.read_until(b'\n', &mut line).map_err(|error| failure(path, error))? == 0 {
            break;
        }
        take(number, line.strip_suffix(b"\n").unwrap_or(&line)).map_err(|error| failure(path, error))?;
    }
    Ok(())
}

/// Reads queries; they must be of the same kind as the keys.
pub(super) fn read_queries(path: &Path, kind: Kind) -> Result<Ranges, Failure> {
    let (file, own_kind) = open(path)?;
    if own_kind != kind {
        let (own, other) = (own_kind.name(), kind.name());
        return Err(failure(
            path,
            format!("contains {own}, but the keys are {other}; both files must be of the same kind"),
        ));
    }
    let mut ranges = Ranges::default();
    if kind == Kind::Integers {
        for (left, right) in read_ranges(file).map_err(|error| failure(path, error))? {
            ranges.push(&left.to_be_bytes(), &right.to_be_bytes());
        }
        return Ok(ranges);
    }
    for_each_line(path, file, |number, line| {
        let mut parts = line.splitn(2, |byte| *byte == b'\t');
        let (Some(lower), Some(upper)) = (parts.next(), parts.next()) else {
            return Err(format!("line {number} has no tab; write lower<TAB>upper, both inclusive"));
        };
        if lower > upper {
            return Err(format!("line {number}: the lower bound is greater than the upper bound; swap them"));
        }
        if u32::try_from(line.len()).is_err() {
            return Err(format!("line {number} is longer than 4 GiB; shorten it"));
        }
        ranges.push(lower, upper);
        Ok(())
    })?;
    Ok(ranges)
}
