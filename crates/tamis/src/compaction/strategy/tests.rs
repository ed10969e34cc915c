//! Scripts of versions and picks, and a simulated store that is flushed and compacted at random.

mod partitioned;
mod property;
mod script;
