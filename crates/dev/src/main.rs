//! The program for veilset's developers.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use veilset_memory::SystemOrExit;

/// The same allocator as in the program `veilset`.
#[global_allocator]
static ALLOCATOR: SystemOrExit = SystemOrExit;

fn main() -> ExitCode {
    veilset_memory::return_large_blocks();
    veilset_dev::main()
}
