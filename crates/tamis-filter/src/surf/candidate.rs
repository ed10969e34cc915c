//! The stored key nearest to a bound, as far as it is known.
//!
//! Forward, the stored prefix with its real bits as bytes, without zeros at the end: no key that it represents is
//! smaller. Backward, the same with whole bytes only: every key that it represents is smaller or begins with them. If
//! the bound is within the leaf, the nearer of bound and leaf.

use std::ops::Bound;

use super::walk::View;
use crate::trie::{Cursor, Edge, Stop};
use crate::{Candidate, Direction, Upper};

/// Maximal number of positions that a search tests: the one found, and the next one if the bound excludes the first. No
/// other path is a part of the bound's path; damaged bytes may have many.
const PLACES_MAX: usize = 2;

impl View<'_> {
    pub(super) fn least_candidate(&self, lower: Bound<&[u8]>) -> Candidate {
        let (bytes, is_excluded) = match lower {
            Bound::Unbounded => (&b""[..], false),
            Bound::Included(bytes) => (bytes, false),
            Bound::Excluded(bytes) => (bytes, true),
        };
        let mut cursor = Cursor::default();
        cursor.seek(&self.trie, bytes);
        for _ in 0..PLACES_MAX {
            match cursor.stop() {
                None => return Candidate::Absent,
                Some(Stop::PrefixKey(_)) if is_excluded && cursor.path() == bytes => {}
                Some(Stop::PrefixKey(_)) => return Candidate::Bytes(cursor.path().to_vec()),
                Some(Stop::Leaf(edge)) => {
                    let path = cursor.path();
                    if !bytes.starts_with(path) || self.may_meet_lower(&edge, path.len(), bytes) {
                        let least = self.least_bytes(&edge, path);
                        return Candidate::Bytes(if least.as_slice() < bytes {
                            bytes.to_vec()
                        } else {
                            least
                        });
                    }
                }
            }
            cursor.step(&self.trie, Direction::Forward);
        }
        Candidate::Unknown
    }

    pub(super) fn greatest_candidate(&self, upper: Upper<'_>) -> Candidate {
        let mut cursor = Cursor::default();
        let bytes = match upper {
            Upper::Open => {
                cursor.move_to_end(&self.trie, Direction::Backward);
                None
            }
            Upper::Included(bytes) | Upper::Excluded(bytes) | Upper::Prefix(bytes) => {
                cursor.seek_for_prev(&self.trie, bytes, matches!(upper, Upper::Prefix(_)));
                Some(bytes)
            }
        };
        for _ in 0..PLACES_MAX {
            let path = cursor.path();
            match cursor.stop() {
                None => return Candidate::Absent,
                Some(Stop::PrefixKey(_)) => {
                    if !matches!(upper, Upper::Excluded(excluded) if excluded == path) {
                        return Candidate::Bytes(path.to_vec());
                    }
                }
                Some(Stop::Leaf(edge)) => {
                    let greatest = self.greatest_bytes(&edge, path);
                    match bytes.filter(|bytes| bytes.starts_with(path)) {
                        None => return Candidate::Bytes(greatest),
                        Some(bytes) if self.may_meet_upper(&edge, path.len(), upper) => {
                            let is_nearer = greatest.as_slice() < bytes && !bytes.starts_with(&greatest);
                            return Candidate::Bytes(if is_nearer { greatest } else { bytes.to_vec() });
                        }
                        Some(_) => {}
                    }
                }
            }
            cursor.step(&self.trie, Direction::Backward);
        }
        Candidate::Unknown
    }

    /// The real bits of a leaf from the highest bit of a word, and the number of whole bytes among them.
    fn real_bytes(&self, edge: &Edge) -> ([u8; 8], usize) {
        let real = self.real_bits(edge.leaf()).unwrap_or(0);
        let word = real.checked_shl(64 - self.compared).unwrap_or(0);
        (word.to_be_bytes(), (self.compared / 8) as usize)
    }

    fn least_bytes(&self, edge: &Edge, path: &[u8]) -> Vec<u8> {
        let (real, _) = self.real_bytes(edge);
        let length = real.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        [path, real.get(..length).unwrap_or_default()].concat()
    }

    fn greatest_bytes(&self, edge: &Edge, path: &[u8]) -> Vec<u8> {
        if self.real_bits(edge.leaf()).is_none() {
            return path.to_vec();
        }
        let (real, length) = self.real_bytes(edge);
        [path, real.get(..length).unwrap_or_default()].concat()
    }
}
