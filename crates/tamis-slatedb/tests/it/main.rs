//! Filters of Tamis in SlateDB: they never change an answer, regardless of their writer and of damage.

mod damage;
mod database;
mod filters;
mod processes;
mod stores;
mod support;
