//! The program of veilset's developers.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use veilset_kernels::memory::{self, SystemOrExit};

/// As in the program that is measured.
#[global_allocator]
static ALLOCATOR: SystemOrExit = SystemOrExit;

fn main() -> ExitCode {
    memory::return_large_blocks();
    veilset_dev::main()
}
