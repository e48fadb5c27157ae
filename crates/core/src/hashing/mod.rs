//! Hashing of items into bins, with functions that both parties know.
//!
//! In [`simple`] hashing an item has one bin, and a bin holds as many items as fall into it. In [`cuckoo`] hashing an
//! item has three bins and goes into one of them, and a bin holds at most one item. If one party has a cuckoo table,
//! the other puts each of its items into all three of the item's bins. So equal items meet in the bin that the first
//! party chose, and in no other. The bins of a cuckoo table may fall into [`blocks`].

pub mod blocks;
pub mod cuckoo;
pub mod simple;

pub use simple::{Bins, SimpleTable, bound, bound_of};
