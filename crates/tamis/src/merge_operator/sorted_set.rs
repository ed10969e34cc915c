//! Sets of byte strings as values, for [`super::MergeOperator::union`].

use std::collections::BTreeSet;

use crate::coding::{Decoder, put_bytes};

/// A set of byte strings. Its encoding: for each element, ascending, its length as a varint (7 bits a byte, the lowest first) and its bytes.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let db = tamis::Db::open(folder.path())?;
/// use tamis::{KeyspaceOptions, MergeOperator, SortedSet};
///
/// let tags = db.create_keyspace("tags", KeyspaceOptions::default().merge(Some(MergeOperator::union())))?;
/// tags.merge("page", SortedSet::from_iter(["new", "rust"]).encode())?;
/// tags.merge("page", SortedSet::from_iter(["draft", "rust"]).encode())?;
/// let value = tags.get("page")?.expect("a value");
/// let set = SortedSet::decode(&value).expect("a set");
/// assert!(set.iter().eq([b"draft".as_slice(), b"new", b"rust"]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SortedSet {
    elements: BTreeSet<Vec<u8>>,
}

impl SortedSet {
    /// An empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { elements: BTreeSet::new() }
    }

    /// The elements, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.elements.iter().map(Vec::as_slice)
    }

    /// Whether it has an element.
    #[must_use]
    pub fn contains(&self, element: &[u8]) -> bool {
        self.elements.contains(element)
    }

    /// The encoding, a value or an operand.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.iter().for_each(|element| put_bytes(&mut bytes, element));
        bytes
    }

    /// `None` for bytes that [`SortedSet::encode`] does not return.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut source = Decoder::new(bytes);
        let mut elements = BTreeSet::new();
        while !source.is_empty() {
            let element = source.take_bytes()?;
            if elements.last().is_some_and(|last: &Vec<u8>| last.as_slice() >= element) {
                return None;
            }
            elements.insert(element.to_vec());
        }
        Some(Self { elements })
    }
}

impl<T: AsRef<[u8]>> Extend<T> for SortedSet {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        self.elements.extend(elements.into_iter().map(|element| element.as_ref().to_vec()));
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for SortedSet {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut set = Self::new();
        set.extend(elements);
        set
    }
}
