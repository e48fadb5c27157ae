//! The veilset program.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use veilset_memory::SystemOrExit;

/// Ends the program with a message and an exit code of its own if memory runs out.
#[global_allocator]
static ALLOCATOR: SystemOrExit = SystemOrExit;

fn main() -> ExitCode {
    #[cfg(feature = "demo")]
    with_larger_stacks();
    veilset_memory::return_large_blocks();
    veilset_cli::main()
}

/// Runs the program again with larger thread stacks: code that is not optimised has larger frames than the default allows.
#[cfg(feature = "demo")]
fn with_larger_stacks() {
    use std::os::unix::process::CommandExt;
    const STACK: &str = "RUST_MIN_STACK";
    if std::env::var_os(STACK).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        // If this returns, it has failed, and the program continues unchanged.
        let _ = std::process::Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(STACK, "33554432")
            .exec();
    }
}
