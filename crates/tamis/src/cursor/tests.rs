//! The cursors over cursors: scripts with their costs, and random walks against sorted maps.

mod property;
mod script;
mod vec_cursor;
