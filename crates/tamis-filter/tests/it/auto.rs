//! The automatic choice next to every fixed family, built and measured.

mod measure;
mod workloads;
