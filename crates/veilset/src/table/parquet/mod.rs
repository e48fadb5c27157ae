//! Parquet files.

mod guard;
mod read;
mod write;

pub(super) use read::{names, read, read_stream};
pub(super) use write::{Writer, finer, holds};

#[cfg(test)]
mod tests;
