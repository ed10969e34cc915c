//! `tamis` on the command line.

fn main() {}
