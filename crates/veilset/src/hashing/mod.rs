//! Hashing of items into bins, by functions that both parties know.

pub mod simple;

pub use simple::{Bins, Table, bound, bound_of};
