//! Filters of Tamis in SlateDB: they never change an answer, whatever wrote them and whatever happens to them.

mod damage;
mod database;
mod filters;
mod processes;
mod stores;
mod support;
