//! The veilset program: its arguments, signals, the terminal, and exit codes. [`veilset_app`] has the rest.
#![forbid(unsafe_code)]
// `pub` marks the items that a module offers to other modules; few of them leave the crate.
#![allow(unreachable_pub)]

mod args;
mod book;
mod calibrate;
mod complete;
mod demo;
mod forecast;
mod guide;
mod identity;
mod interrupt;
mod manual;
mod party;
mod progress;
mod terminal;

pub use interrupt::{signals, unwatched};
pub use party::printer;

use args::{Arguments, Command};
use interrupt::Interrupt;
use std::any::Any;
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use terminal::Terminal;
use veilset::error::{Error, Result};
use veilset::party::InputTable;
use veilset_app::config::{self, FromFile};
use veilset_app::front::Purpose;
use veilset_app::make::{Made, MakePlan, make};
use veilset_app::options::Wanted;
use veilset_app::plan::PartyPlan;
use veilset_app::words::as_options;
use veilset_app::{exit_code, panicked};

/// Runs the program on this process's arguments, and returns its exit code.
pub fn main() -> ExitCode {
    if complete::answered() {
        return ExitCode::SUCCESS;
    }
    // Usage errors exit here, with code 2.
    let arguments = Arguments::typed();
    end_of("veilset", || run(arguments.command))
}

/// Runs the main function of the program with this name, prints its error, and returns the exit code.
pub fn end_of(program: &str, run: impl FnOnce() -> Result<()>) -> ExitCode {
    let run = || interrupt::survive_file_limits().and_then(|()| run());
    // A panic has already printed its message; only the right exit code is missing.
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        if is_for_want_of_a_thread(&*panic) {
            veilset_memory::exit("no thread can be started");
        }
        Err(panicked())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may have no reader.
            let _ = writeln!(std::io::stderr(), "{program}: {}", as_options(&error.marked()));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Demo(a) => demo::run(&a),
        Command::Identity(command) => identity::run(&command),
        Command::Peer(command) => book::run(command),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(&folder),
        Command::Help { topic } => guide::show(topic.as_deref()),
        Command::Plan(a) => forecast::run(&a),
        Command::Calibrate(a) => calibrate::run(&a),
        Command::Wanted(made @ (Wanted::Prepare(_) | Wanted::Filter(_))) => {
            make_in_advance(&MakePlan::of(made)?)
        }
        Command::Wanted(operation) => run_as(operation, Purpose::Run),
        Command::Run { words } => run_as(from_file(words)?, Purpose::Run),
        Command::Check { words } => match Arguments::of(words).command {
            Command::Run { words } => run_as(from_file(words)?, Purpose::Check),
            Command::Wanted(wanted) => run_as(wanted, Purpose::Check),
            _ => Err(veilset_app::plan::no_operation()),
        },
        Command::Bench(_) => Err(moved("bench")),
        Command::Soak(_) => Err(moved("soak")),
    }
}

fn run_as(wanted: Wanted, purpose: Purpose) -> Result<()> {
    party::run(PartyPlan::of(wanted, false)?, purpose)
}

/// Returns the run that a file describes. The program exits here if the words ask for help.
fn from_file(words: Vec<std::ffi::OsString>) -> Result<Wanted> {
    let mut warnings = Vec::new();
    let found = config::read(words, &mut warnings);
    warnings.iter().for_each(|warning| terminal::warn(warning));
    match found? {
        FromFile::Run(wanted) => Ok(*wanted),
        FromFile::Help(text) => text.exit(),
    }
}

fn make_in_advance(plan: &MakePlan) -> Result<()> {
    let interrupt = Interrupt::install(plan.is_quiet())?;
    match make(plan, InputTable::table, &Terminal::new(plan.is_quiet(), plan.source(), &interrupt))? {
        Made::About(_, text) => print(text),
        Made::File | Made::Inserted(_) => Ok(()),
    }
}

/// Returns the error for a command that has moved to veilset-dev.
fn moved(command: &str) -> Error {
    Error::usage(format!(
        "{command} is for those who develop veilset, and no longer in this program. Build the package veilset-dev from the \
         source, and run veilset-dev {command}"
    ))
}

/// Returns whether the panic comes from `std::thread::spawn`, which fails if there is no memory for a stack.
fn is_for_want_of_a_thread(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|message| message.starts_with("failed to spawn thread"))
}

/// Writes a line to standard output.
///
/// # Errors
/// [`Error::Output`].
pub fn print(line: impl Display) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").map_err(|e| {
        Error::output(format!("cannot write to standard output: {e}. Redirect it and run again"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use veilset::spelling::{MODULUS, SETTINGS, to_type};

    #[test]
    fn every_setting_that_a_message_names_is_an_option() {
        let mut all = Arguments::command();
        all.build();
        let is_option = |setting: &str| {
            let long = as_options(&veilset::spelling::option(setting));
            let mut commands: Vec<_> = all.get_subcommands().collect();
            commands.extend(all.get_subcommands().flat_map(clap::Command::get_subcommands));
            let mut options = commands.iter().flat_map(|command| command.get_arguments());
            options.any(|arg| arg.get_long().is_some_and(|name| long == format!("--{name}")))
        };
        assert!(!is_option("max_rows"));
        let missing: Vec<&str> =
            SETTINGS.iter().map(|setting| setting.name()).filter(|name| !is_option(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let text = format!("{} on both sides, {}", MODULUS.with(128), to_type("plan"));
        assert_eq!(as_options(&text), "--modulus 128 on both sides, `veilset plan`");
    }
}
