//! Changes of the options of an existing keyspace.

use super::{KeyspaceOptions, Layout, Views};
use crate::error::Result;

/// A change of one option of an existing keyspace ([`crate::Options::change_keyspaces`]).
///
/// ```
/// use tamis::{KeyspaceChange, Layout, Options, Views};
///
/// let change_keyspaces = vec![
///     ("events".to_owned(), KeyspaceChange::Layout(Layout::tiered())),
///     ("events".to_owned(), KeyspaceChange::Views(Views::On)),
/// ];
/// let options = Options { change_keyspaces, ..Options::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyspaceChange {
    /// Compactions rewrite the tables, until they have the new layout.
    Layout(Layout),
    /// Later views are built by the new rule; with [`Views::Off`] the existing ones are removed.
    Views(Views),
}

impl KeyspaceChange {
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for a value outside its bounds.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Layout(layout) => layout.check(),
            Self::Views(_) => Ok(()),
        }
    }

    pub(crate) fn apply(self, options: &mut KeyspaceOptions) {
        match self {
            Self::Layout(layout) => options.layout = layout,
            Self::Views(views) => options.views = views,
        }
    }
}
