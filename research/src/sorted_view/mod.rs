//! Sorted views of sets of tables, as in Section 5.1 of the REMIX paper.

pub(crate) mod figures;
pub(crate) mod sizes;
