//! Parquet files.

mod guard;
mod read;
mod write;

pub(super) use read::{read, read_stream};
pub(super) use write::{Writer, finer, holds};

#[cfg(test)]
mod tests;
