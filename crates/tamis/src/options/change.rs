//! Changes of the options of an existing keyspace.

use super::{Filters, KeyspaceOptions, Layout, Views};
use crate::error::Result;

/// A change of one option of an existing keyspace ([`crate::Options::change_keyspaces`]).
///
/// ```
/// use tamis::{Filters, KeyspaceChange, Layout, Options, Views};
///
/// let change_keyspaces = vec![
///     ("events".to_owned(), KeyspaceChange::Layout(Layout::tiered())),
///     ("events".to_owned(), KeyspaceChange::Views(Views::On)),
///     // The store chooses the filters from now on.
///     ("events".to_owned(), KeyspaceChange::Filters(Filters::default())),
/// ];
/// let options = Options::default().change_keyspaces(change_keyspaces);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum KeyspaceChange {
    /// Compactions rewrite the tables, until they have the new layout.
    Layout(Layout),
    /// Later views are built by the new rule; with [`Views::Off`] the existing ones are removed.
    Views(Views),
    /// Tables that are written later get the new filters. Existing tables keep theirs, which are still probed, until a compaction rewrites
    /// the table or [`crate::Db::rebuild_filters`] replaces them; so it is with [`Filters::none`], too. With [`Filters::auto`] the
    /// background also checks existing tables, and replaces filters that do not suit the queries; [`crate::Db::check_filters`] does so
    /// at once. Without it no filters are checked any more.
    Filters(Filters),
}

impl KeyspaceChange {
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for a value outside its bounds.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Layout(layout) => layout.check(),
            Self::Views(_) => Ok(()),
            Self::Filters(filters) => filters.check(),
        }
    }

    pub(crate) fn apply(&self, options: &mut KeyspaceOptions) {
        match self {
            Self::Layout(layout) => options.layout = *layout,
            Self::Views(views) => options.views = *views,
            Self::Filters(filters) => options.filters = filters.clone(),
        }
    }
}
