//! The program of veilset's developers.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use veilset_memory::SystemOrExit;

/// As in the program that is measured.
#[global_allocator]
static ALLOCATOR: SystemOrExit = SystemOrExit;

fn main() -> ExitCode {
    veilset_memory::return_large_blocks();
    veilset_dev::main()
}
