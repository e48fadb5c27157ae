//! The veilset program.
#![forbid(unsafe_code)]
// In a binary, `pub` marks what a module offers to the others.
#![allow(unreachable_pub)]

mod args;
mod bench;
mod book;
mod check;
mod columns;
mod config;
mod demo;
mod filter;
mod identity;
mod interrupt;
mod manual;
mod near;
mod parties;
mod party;
mod plan;
mod policy;
mod prepare;
mod progress;
mod soak;

use args::{Arguments, Command};
use clap::Parser;
use party::Purpose;
use plan::{PartyPlan, PreparePlan};
use std::any::Any;
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use veilset::error::{Error, Result};
use veilset::spelling::spell;
use veilset_kernels::memory::{self, SystemOrExit};

/// If memory runs out, the program ends with a message and an exit code of its own.
#[global_allocator]
static ALLOCATOR: SystemOrExit = SystemOrExit;

fn main() -> ExitCode {
    memory::return_large_blocks();
    // Usage errors exit here, with code 2.
    let arguments = Arguments::parse();
    let run = || interrupt::survive_file_limits().and_then(|()| run(arguments.command));
    // A panic has printed its message; what remains is to exit with the right code.
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        if is_for_want_of_a_thread(&*panic) {
            memory::exit("no thread can be started");
        }
        Err(Error::Bug("a panic".into()))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may have no reader.
            let _ = writeln!(std::io::stderr(), "veilset: {}", as_options(&error.to_string()));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Bench(a) => bench::run(&a),
        Command::BenchParty(a) => bench::party(&a),
        Command::BenchKinds => bench::kinds(),
        Command::Demo(a) => demo::run(&a),
        Command::Identity(command) => identity::run(&command),
        Command::Peer(command) => book::run(&command),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(&folder),
        Command::Soak(a) => soak::run(&a),
        Command::Filter(command) => filter::run(command),
        Command::Prepare(a) => prepare::run(&PreparePlan::of(a)?),
        Command::Run { words } => party::run(PartyPlan::of(config::read(words)?)?, Purpose::Run),
        Command::Check { words } => match config::parse(words) {
            Command::Run { words } => party::run(PartyPlan::of(config::read(words)?)?, Purpose::Check),
            operation => party::run(PartyPlan::of(operation)?, Purpose::Check),
        },
        operation => party::run(PartyPlan::of(operation)?, Purpose::Run),
    }
}

/// Whether the panic comes from `std::thread::spawn`, which fails if there is no memory for a stack.
fn is_for_want_of_a_thread(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|message| message.starts_with("failed to spawn thread"))
}

/// A text of the library with its settings as options: `--max-row`, `--modulus 128`.
fn as_options(text: &str) -> String {
    spell(text, |setting, value| {
        let option = format!("--{}", setting.replace('_', "-"));
        value.map_or(option.clone(), |value| format!("{option} {value}"))
    })
}

/// Writes a line to standard output.
fn print(line: impl Display) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").map_err(|e| {
        Error::Output(format!("cannot write to standard output: {e}. Redirect it and run again"))
    })
}

/// The exit code of [`Error::Bug`].
const BUG: u8 = 70;

/// The exit codes of `veilset --help`. [`SystemOrExit`] has one more.
fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Usage(_) => 2,
        Error::Input(_) => 3,
        Error::Disagreement(_) => 4,
        Error::Peer { .. } => 5,
        Error::Network(_) => 6,
        Error::Output(_) => 7,
        Error::Refused(_) => 8,
        Error::Cancelled => interrupt::STOPPED,
        _ => BUG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use veilset::spelling::SETTINGS;

    #[test]
    fn every_setting_that_a_message_names_is_an_option() {
        let mut all = Arguments::command();
        all.build();
        let is_option = |setting: &str| {
            let long = as_options(&format!("`{setting}`"));
            let mut commands: Vec<_> = all.get_subcommands().collect();
            commands.extend(all.get_subcommands().flat_map(clap::Command::get_subcommands));
            let mut options = commands.iter().flat_map(|command| command.get_arguments());
            options.any(|arg| arg.get_long().is_some_and(|name| long == format!("--{name}")))
        };
        assert!(!is_option("max_rows"));
        let missing: Vec<&str> = SETTINGS.into_iter().filter(|setting| !is_option(setting)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(as_options("`modulus=128` on both sides"), "--modulus 128 on both sides");
    }
}
