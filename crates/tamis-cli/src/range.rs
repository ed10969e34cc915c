//! Key ranges on the command line.

use std::{ffi::OsString, ops::Bound};

use clap::Args;
use tamis::{Keyspace, Scan, Transaction, TransactionScan};

use crate::{bytes::Format, failure::Failure};

/// Options for a key range; without any, all keys.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// Lower bound, inclusive
    #[arg(long, value_name = "KEY", conflicts_with = "lower_exclusive")]
    lower: Option<OsString>,
    /// Lower bound, exclusive
    #[arg(long, value_name = "KEY")]
    lower_exclusive: Option<OsString>,
    /// Upper bound, inclusive
    #[arg(long, value_name = "KEY", conflicts_with = "upper_exclusive")]
    upper: Option<OsString>,
    /// Upper bound, exclusive
    #[arg(long, value_name = "KEY")]
    upper_exclusive: Option<OsString>,
    /// Only keys with this prefix
    #[arg(long, value_name = "KEY", conflicts_with_all = ["lower", "lower_exclusive", "upper", "upper_exclusive"])]
    prefix: Option<OsString>,
}

impl RangeArgs {
    /// Whether an option limits the range.
    pub(crate) const fn is_limited(&self) -> bool {
        self.lower.is_some()
            || self.lower_exclusive.is_some()
            || self.upper.is_some()
            || self.upper_exclusive.is_some()
            || self.prefix.is_some()
    }

    pub(crate) fn range(&self, format: Format) -> Result<Range, Failure> {
        if let Some(prefix) = &self.prefix {
            return Ok(Range::Prefix(format.argument("--prefix", prefix)?));
        }
        let bound = |name: &str, inclusive: &Option<OsString>, exclusive: &Option<OsString>| match (
            inclusive, exclusive,
        ) {
            (Some(key), _) => format.argument(&format!("--{name}"), key).map(Bound::Included),
            (None, Some(key)) => format.argument(&format!("--{name}-exclusive"), key).map(Bound::Excluded),
            (None, None) => Ok(Bound::Unbounded),
        };
        let lower = bound("lower", &self.lower, &self.lower_exclusive)?;
        let upper = bound("upper", &self.upper, &self.upper_exclusive)?;
        if let (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) =
            (&lower, &upper)
            && from > to
        {
            eprintln!(
                "tamis: the lower bound is greater than the upper bound, so the range is empty; swap them"
            );
        }
        Ok(Range::Bounds(lower, upper))
    }
}

/// A key range.
pub(crate) enum Range {
    Prefix(Vec<u8>),
    Bounds(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl Range {
    pub(crate) fn scan(self, keyspace: &Keyspace) -> Scan {
        match self {
            Self::Prefix(prefix) => keyspace.prefix(&prefix),
            Self::Bounds(lower, upper) => keyspace.range((lower, upper)),
        }
    }

    /// The scan of a transaction.
    pub(crate) fn scan_in<'t>(
        self,
        transaction: &'t Transaction,
        keyspace: &Keyspace,
    ) -> TransactionScan<'t> {
        match self {
            Self::Prefix(prefix) => transaction.prefix(keyspace, &prefix),
            Self::Bounds(lower, upper) => transaction.range(keyspace, (lower, upper)),
        }
    }

    /// The bounds of the range; the upper bound of a prefix is the least key greater than all keys with the prefix.
    pub(crate) fn bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        match self {
            Self::Bounds(lower, upper) => (lower, upper),
            Self::Prefix(prefix) => {
                let mut upper = prefix.clone();
                while upper.pop_if(|last| *last == 0xFF).is_some() {}
                let upper = match upper.last_mut() {
                    Some(last) => {
                        *last += 1;
                        Bound::Excluded(upper)
                    }
                    None => Bound::Unbounded,
                };
                (Bound::Included(prefix), upper)
            }
        }
    }
}
