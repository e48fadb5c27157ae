//! The veilset program.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use veilset_kernels::memory::{self, SystemOrExit};

/// If memory runs out, the program ends with a message and an exit code of its own.
#[global_allocator]
static ALLOCATOR: SystemOrExit = SystemOrExit;

fn main() -> ExitCode {
    memory::return_large_blocks();
    veilset_cli::main()
}
