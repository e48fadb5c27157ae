//! The veilset program.
#![forbid(unsafe_code)]
// In a program `pub` says what a module offers to the others.
#![allow(unreachable_pub)]

mod args;
mod bench;
mod demo;
mod identity;
mod party;
mod plan;
mod progress;

use args::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;
use veilset::error::Error;

fn main() -> ExitCode {
    // Usage errors end here, with exit code 2.
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Bench(a) => bench::run(&a),
        Command::BenchParty(a) => bench::party(&a),
        Command::Demo => demo::run(),
        Command::Identity(command) => identity::run(&command),
        Command::Intersect(a) => party::run(plan::intersect(a)),
        Command::Union(a) => party::run(plan::union(a)),
        Command::Count(a) => party::run(plan::count(a)),
        Command::Sum(a) => party::run(plan::sum(a)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("veilset: {error}");
            ExitCode::from(exit_code(&error))
        }
    }
}

/// The exit codes of `veilset --help`.
fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Usage(_) => 2,
        Error::Input(_) => 3,
        Error::Disagreement(_) => 4,
        Error::Peer(_) => 5,
        Error::Network(_) => 6,
        Error::Output(_) => 7,
        Error::Cancelled => 130,
        _ => 70,
    }
}
