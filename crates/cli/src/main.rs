//! The veilset program.
#![forbid(unsafe_code)]

fn main() {}
