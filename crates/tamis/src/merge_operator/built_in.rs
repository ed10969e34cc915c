//! The built-in merge operators.

use super::{Merge, sorted_set::SortedSet};

type Merged = Result<Vec<u8>, String>;

/// A function of two values that is associative: `f(f(a, b), c) = f(a, f(b, c))`. Operands are values, and a key without a value gets its first operand.
pub(super) struct Associative<F = fn(&[u8], &[u8]) -> Merged> {
    pub(super) function: F,
    pub(super) check: fn(&[u8]) -> Result<(), String>,
}

/// Adds numbers of 8 bytes, wrapping around.
pub(super) const ADD: Associative = Associative {
    function: |left, right| Ok(number(left)?.wrapping_add(number(right)?).to_be_bytes().to_vec()),
    check: |operand| number(operand).map(drop),
};
/// Keeps the bytewise greatest value.
pub(super) const MAX: Associative =
    Associative { function: |left, right| Ok(left.max(right).to_vec()), check: |_| Ok(()) };
/// Keeps the bytewise least value.
pub(super) const MIN: Associative =
    Associative { function: |left, right| Ok(left.min(right).to_vec()), check: |_| Ok(()) };

fn number(bytes: &[u8]) -> Result<u64, String> {
    let bytes = <[u8; 8]>::try_from(bytes);
    bytes.map(u64::from_be_bytes).map_err(|_| "use a number of 8 bytes (`to_be_bytes`)".to_owned())
}

impl<F> Merge for Associative<F>
where
    F: Fn(&[u8], &[u8]) -> Merged + Send + Sync + 'static,
{
    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        let mut all = base.into_iter().chain(operands.iter().copied());
        let first = all.next().unwrap_or_default().to_vec();
        (self.check)(&first)?;
        all.try_fold(first, |merged, next| (self.function)(&merged, next))
    }

    fn combine(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.merge(key, None, operands).ok()
    }

    fn check(&self, operand: &[u8]) -> Result<(), String> {
        (self.check)(operand)
    }
}

/// See [`super::MergeOperator::append`].
pub(super) struct Append {
    pub(super) separator: Vec<u8>,
}

impl Merge for Append {
    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        let all: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        Ok(all.join(self.separator.as_slice()))
    }

    fn combine(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.merge(key, None, operands).ok()
    }
}

/// The separator in the name of an [`Append`].
pub(super) fn separator_of(name: &str) -> Option<Vec<u8>> {
    let digits = name.strip_prefix("append:")?.as_bytes();
    let is_plain = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if is_plain && rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// See [`super::MergeOperator::union`].
pub(super) struct Union;

impl Merge for Union {
    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        let mut all = base.into_iter().chain(operands.iter().copied()).map(SortedSet::decode);
        let invalid = || "a value is no `SortedSet`".to_owned();
        all.try_fold(SortedSet::new(), |mut united, next| {
            united.extend(next?.iter());
            Some(united)
        })
        .map(|united| united.encode())
        .ok_or_else(invalid)
    }

    fn combine(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.merge(key, None, operands).ok()
    }

    fn check(&self, operand: &[u8]) -> Result<(), String> {
        SortedSet::decode(operand).map(drop).ok_or_else(|| "encode it by `SortedSet::encode`".to_owned())
    }
}
