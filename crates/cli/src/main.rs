//! The veilset program.
#![forbid(unsafe_code)]
// In a program `pub` says what a module offers to the others.
#![allow(unreachable_pub)]

mod args;
mod bench;
mod book;
mod check;
mod columns;
mod config;
mod data;
mod demo;
mod identity;
mod manual;
mod near;
mod party;
mod plan;
mod policy;
mod prepare;
mod progress;
mod soak;

use args::{Arguments, Command};
use clap::Parser;
use party::Purpose;
use plan::{Plan, PreparePlan};
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use veilset::error::{Error, Result};

fn main() -> ExitCode {
    // Usage errors end here, with exit code 2.
    let arguments = Arguments::parse();
    let run = || run(arguments.command);
    // Whoever panics has said so; what remains is to end with the right code.
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(Error::Bug("a panic".into())));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There may be nobody left to read it.
            let _ = writeln!(std::io::stderr(), "veilset: {error}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Bench(a) => bench::run(&a),
        Command::BenchParty(a) => bench::party(&a),
        Command::Demo => demo::run(),
        Command::Identity(command) => identity::run(&command),
        Command::Peer(command) => book::run(&command),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(&folder),
        Command::Soak(a) => soak::run(&a),
        Command::Prepare(a) => prepare::run(&PreparePlan::of(a)?),
        Command::Run { words } => party::run(&Plan::of(config::read(words)?)?, Purpose::Run),
        Command::Check { words } => match config::parse(words) {
            Command::Run { words } => party::run(&Plan::of(config::read(words)?)?, Purpose::Check),
            operation => party::run(&Plan::of(operation)?, Purpose::Check),
        },
        operation => party::run(&Plan::of(operation)?, Purpose::Run),
    }
}

/// Writes a line to standard output.
fn print(line: impl Display) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").map_err(|e| {
        Error::Output(format!("cannot write to standard output: {e}. Send it elsewhere and run again"))
    })
}

/// The exit code of [`Error::Bug`].
const BUG: u8 = 70;

/// The exit codes of `veilset --help`.
fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Usage(_) => 2,
        Error::Input(_) => 3,
        Error::Disagreement(_) => 4,
        Error::Peer(_) => 5,
        Error::Network(_) => 6,
        Error::Output(_) => 7,
        Error::Refused(_) => 8,
        Error::Cancelled => 130,
        _ => BUG,
    }
}
