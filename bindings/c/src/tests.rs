#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod header;
mod hostile;
mod table_of_languages;
