//! Merge operators: the value of a key as a base value and operands, which are written without a read.
//!
//! ```text
//! add(5)@9  add(2)@7  put(1)@4        get at 9: 1 + 2 + 5 = 8       get at 7: 3
//! ```
//!
//! An operand is an entry of a separate kind. Reads, flushes and compactions fold: they apply the operands above the newest put or delete of a
//! key to it, oldest first ([`Operands`]). A fold that has no base, because older entries may be elsewhere, combines operands into one, if the operator can.
//!
//! An operator that fails or panics is an error of the read of that key ([`Error::MergeFailed`]). Flushes and compactions then keep the operands as they are.

mod built_in;
mod operands;
mod sorted_set;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

pub(crate) use operands::{FoldStep, Operands};
pub use sorted_set::SortedSet;

use crate::{
    error::{Error, Result},
    key::{NAME_LENGTH_MAX, VALUE_LENGTH_MAX},
    store::background_error::message_of,
};

/// The functions of a merge operator. The store calls them at reads, flushes and compactions, with as many operands as it finds together, also years later. So
///
/// - they depend on their arguments alone;
/// - `merge` of some operands and then of the others is `merge` of all of them: `merge(merge(base, [a]), [b]) = merge(base, [a, b])`;
/// - `merge` of a combined operand is that of its parts: `merge(base, [combine([a, b])]) = merge(base, [a, b])`.
///
/// ```
/// /// Keeps the longest operand.
/// struct Longest;
///
/// impl tamis::Merge for Longest {
///     fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
///         let all = base.into_iter().chain(operands.iter().copied());
///         Ok(all.max_by_key(|value| value.len()).unwrap_or_default().to_vec())
///     }
/// }
///
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// let longest = tamis::MergeOperator::new("longest", Longest);
/// // Each open of the store needs the operator.
/// let db = tamis::Db::open_with(folder.path(), tamis::Options::default().merge_operators(vec![longest.clone()]))?;
/// let names = db.create_keyspace("names", tamis::KeyspaceOptions::default().merge(Some(longest)))?;
/// names.merge("bird", "rook")?;
/// names.merge("bird", "swallow")?;
/// names.merge("bird", "owl")?;
/// assert_eq!(names.get("bird")?.as_deref(), Some(b"swallow".as_slice()));
/// # Ok(())
/// # }
/// ```
pub trait Merge: Send + Sync + 'static {
    /// The value of a key: `operands`, oldest first, at least one, applied to `base`. `None`: the key has no value.
    ///
    /// # Errors
    /// The reason why there is no value. Reads of the key return it in [`Error::MergeFailed`].
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String>;

    /// One operand with the effect of several, which are given oldest first; `None`, the default, keeps them.
    fn combine(&self, _key: &[u8], _operands: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }

    /// Refuses an operand that can't be merged, when it is written.
    ///
    /// # Errors
    /// The reason; the write returns it in [`Error::InvalidArgument`].
    fn check(&self, _operand: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// A named merge operator ([`crate::KeyspaceOptions::merge`]). The store keeps its name. Cheap to clone; two are equal if their names are.
#[derive(Clone)]
pub struct MergeOperator {
    name: Arc<str>,
    /// `None`: the program did not give the operator of this name.
    functions: Option<Arc<dyn Merge>>,
    is_built_in: bool,
}

impl fmt::Debug for MergeOperator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MergeOperator({:?})", self.name)
    }
}

impl PartialEq for MergeOperator {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for MergeOperator {}

impl MergeOperator {
    /// An operator of the program. Give it to each open of the store ([`crate::Options::merge_operators`]). If its functions change their results, give them another
    /// name, too: old operands would be merged by the new functions.
    pub fn new(name: &str, functions: impl Merge) -> Self {
        Self { name: name.into(), functions: Some(Arc::new(functions)), is_built_in: false }
    }

    /// An operator of the program from an associative function of two values, the older one first.
    ///
    /// ```
    /// let or = |older: &[u8], newer: &[u8]| Ok(vec![older[0] | newer[0]]);
    /// let flags = tamis::MergeOperator::associative("or", or);
    /// assert_eq!(flags.name(), "or");
    /// ```
    pub fn associative<F>(name: &str, function: F) -> Self
    where
        F: Fn(&[u8], &[u8]) -> Result<Vec<u8>, String> + Send + Sync + 'static,
    {
        Self::new(name, built_in::Associative { function, check: |_| Ok(()) })
    }

    /// Adds numbers: values and operands are `u64` of 8 bytes, most significant byte first (`to_be_bytes`). The sum wraps around. Name: `add_u64`.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// use tamis::{KeyspaceOptions, MergeOperator};
    ///
    /// let visits = db.create_keyspace("visits", KeyspaceOptions::default().merge(Some(MergeOperator::add_u64())))?;
    /// for _ in 0..3 {
    ///     visits.merge("home", 1_u64.to_be_bytes())?;
    /// }
    /// assert_eq!(visits.get("home")?.as_deref(), Some(3_u64.to_be_bytes().as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_u64() -> Self {
        Self::built_in("add_u64", built_in::ADD)
    }

    /// As [`MergeOperator::add_u64`], for `i64`. Name: `add_i64`.
    pub fn add_i64() -> Self {
        // In two's complement the sums are equal.
        Self::built_in("add_i64", built_in::ADD)
    }

    /// Keeps the greatest value, bytewise: also of unsigned numbers of one length whose most significant byte is first. Name: `max`.
    pub fn max() -> Self {
        Self::built_in("max", built_in::MAX)
    }

    /// Keeps the least value, bytewise. Name: `min`.
    pub fn min() -> Self {
        Self::built_in("min", built_in::MIN)
    }

    /// Appends operands to the value, with `separator` between them. Name: `append:` and the separator in hexadecimal digits, as `append:2c` for a comma.
    pub fn append(separator: &[u8]) -> Self {
        let digits: String = separator.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::built_in(&format!("append:{digits}"), built_in::Append { separator: separator.to_vec() })
    }

    /// Unites sets: values and operands are a [`SortedSet`]. Name: `union`.
    pub fn union() -> Self {
        Self::built_in("union", built_in::Union)
    }

    fn built_in(name: &str, functions: impl Merge) -> Self {
        Self { is_built_in: true, ..Self::new(name, functions) }
    }

    /// The built-in operator of a name.
    ///
    /// ```
    /// assert_eq!(tamis::MergeOperator::named("add_u64"), Some(tamis::MergeOperator::add_u64()));
    /// assert_eq!(tamis::MergeOperator::named("append:2c"), Some(tamis::MergeOperator::append(b",")));
    /// assert_eq!(tamis::MergeOperator::named("unknown"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::add_u64(), Self::add_i64(), Self::max(), Self::min(), Self::union()];
        all.into_iter()
            .find(|operator| operator.name() == name)
            .or_else(|| built_in::separator_of(name).map(|separator| Self::append(&separator)))
    }

    /// The operator of a name from a manifest, whose functions a program may have to give.
    pub(crate) fn stored(name: &str) -> Option<Self> {
        let is_possible = (1..=NAME_LENGTH_MAX).contains(&name.len());
        let unresolved = || Self { name: name.into(), functions: None, is_built_in: false };
        is_possible.then(|| Self::named(name).unwrap_or_else(unresolved))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Refuses names of impossible lengths, and those of built-in operators for others.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(crate) fn check_name(&self) -> Result<()> {
        let is_taken = &*self.name == "none" || !self.is_built_in && Self::named(&self.name).is_some();
        if is_taken || !(1..=NAME_LENGTH_MAX).contains(&self.name.len()) {
            return Err(Error::InvalidArgument {
                what: "name of a merge operator",
                got: format!("{:?}", self.name),
                expected: "use 1 to 255 bytes, not `none`, and no name of a built-in operator".to_owned(),
            });
        }
        Ok(())
    }

    /// The same operator with the functions that a program has given.
    ///
    /// # Errors
    /// [`Error::MergeOperatorMissing`].
    pub(crate) fn resolve(&self, keyspace: &str, given: &[Self]) -> Result<Self> {
        let found =
            if self.functions.is_some() { Some(self) } else { given.iter().find(|other| *other == self) };
        found.filter(|found| found.functions.is_some()).cloned().ok_or_else(|| Error::MergeOperatorMissing {
            keyspace: keyspace.to_owned(),
            operator: self.name.to_string(),
        })
    }

    /// Refuses an operand that can't be merged.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(crate) fn check_operand(&self, operand: &[u8]) -> Result<()> {
        let Some(functions) = &self.functions else { return Ok(()) };
        let checked = caught(|| functions.check(operand));
        checked.map_err(|expected| Error::InvalidArgument {
            what: "merge operand",
            got: format!("{} bytes for {:?}", operand.len(), self.name),
            expected,
        })
    }

    /// The value of a key; the reason if there is none.
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let Some(functions) = &self.functions else { return Err("its functions are unknown".to_owned()) };
        let value = caught(|| functions.merge(key, base, operands))?;
        match value.len() {
            length if length > VALUE_LENGTH_MAX => Err(format!("the value has {length} bytes")),
            _ => Ok(value),
        }
    }

    /// One operand with the effect of several, oldest first.
    fn combine(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let functions = self.functions.as_ref()?;
        let combined = caught(|| Ok(functions.combine(key, operands))).ok()?;
        combined.filter(|operand| operand.len() <= VALUE_LENGTH_MAX)
    }
}

/// Calls a function of a program; a panic is a failure.
fn caught<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // A function of bytes leaves nothing half done that the store would see.
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(format!("it panicked: {}", message_of(&*panic))))
}

#[cfg(test)]
mod tests;
