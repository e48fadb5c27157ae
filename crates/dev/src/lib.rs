//! The tools for veilset's developers: benchmarks, the tables of the papers, and random runs. This crate is never distributed:
//! it has a seeded generator.
#![forbid(unsafe_code)]
// `pub` marks the items that a module offers to other modules; few of them leave the crate.
#![allow(unreachable_pub)]

mod args;
mod bench;
mod soak;

use args::{Arguments, Command};
use std::process::ExitCode;
use veilset::error::Result;

/// Runs the program on this process's arguments, and returns its exit code.
pub fn main() -> ExitCode {
    // Usage errors exit here, with code 2.
    let arguments = Arguments::typed();
    veilset_cli::end_of("veilset-dev", || run(arguments.command))
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Bench(a) => bench::run(&a),
        Command::BenchParty(a) => bench::party(&a),
        Command::BenchKinds => bench::kinds(),
        Command::Soak(a) => soak::run(&a),
    }
}
