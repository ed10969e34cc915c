//! Tests of cursors over cursors: scripts with their costs, and random operations against sorted maps.

mod property;
mod script;
mod stretch;
mod vec_cursor;
