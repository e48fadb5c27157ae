//! The veilset program, and what other front ends share with it: options with their meanings, and a party's run.
#![forbid(unsafe_code)]
// `pub` marks what a module offers to the others; little of it leaves the crate.
#![allow(unreachable_pub)]

mod args;
mod bench;
mod book;
mod calibrate;
mod check;
mod columns;
mod complete;
mod config;
mod demo;
mod filter;
mod forecast;
pub mod front;
mod guide;
mod identity;
mod interrupt;
pub mod make;
mod manual;
mod near;
mod page;
mod parties;
mod party;
mod plan;
mod policy;
mod prepare;
mod progress;
mod report;
mod soak;
mod terminal;

use args::{Arguments, Command, PeerCommand};
use clap::CommandFactory;
use std::any::Any;
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use veilset::error::{Error, Result};
use veilset::session::estimate::Estimate;
use veilset::session::run::Checked;
use veilset::spelling::{Named, spell};
use veilset_kernels::memory;

/// Runs the program on this process's arguments, and returns its exit code.
pub fn main() -> ExitCode {
    if complete::answered() {
        return ExitCode::SUCCESS;
    }
    // Usage errors exit here, with code 2.
    let arguments = Arguments::typed();
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
            let _ = writeln!(std::io::stderr(), "veilset: {}", as_options(&error.marked()));
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
        Command::Help { topic } => guide::show(topic.as_deref()),
        Command::Soak(a) => soak::run(&a),
        Command::Plan(a) => forecast::run(&a),
        Command::Calibrate(a) => calibrate::run(&a),
        command @ (Command::Filter(_) | Command::Prepare(_)) => make::run(&MakePlan::of(command)?),
        Command::Run { words } => run_as(config::read(words)?, Purpose::Run),
        Command::Check { words } => match config::parse(words) {
            Command::Run { words } => run_as(config::read(words)?, Purpose::Check),
            operation => run_as(operation, Purpose::Check),
        },
        operation => run_as(operation, Purpose::Run),
    }
}

fn run_as(operation: Command, purpose: Purpose) -> Result<()> {
    party::run(PartyPlan::of(operation, false)?, purpose)
}

pub use config::Value;
pub use make::MakePlan;
pub use party::{Purpose, about};
pub use plan::PartyPlan;

/// The plan for an operation with these options, if the policy allows it. A result that goes to no file stays in memory.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Refused`], as for what is typed.
pub fn plan(operation: &str, options: &[(String, config::Value)]) -> Result<PartyPlan> {
    PartyPlan::of(config::command(operation, options)?, true)
}

/// The job of a worker, which has a piece of the table of an operation with these options. What they say of people, files and
/// connections is for those who agree, and not looked at.
///
/// # Errors
/// [`Error::Usage`], as for what is typed.
pub fn piece_plan(operation: &str, options: &[(String, config::Value)]) -> Result<PartyPlan> {
    const OF_THE_WORK: [&str; 17] = [
        "role",
        "key",
        "normalize",
        "encoding",
        "empty_keys",
        "duplicates",
        "protocol",
        "group",
        "pad_to",
        "threads",
        "max_peer_items",
        "send_columns",
        "receive_columns",
        "max_row",
        "both",
        "shards",
        "connect_timeout",
    ];
    let of_the_work = |(name, _): &&(String, config::Value)| OF_THE_WORK.contains(&name.as_str());
    let mut options: Vec<_> = options.iter().filter(of_the_work).cloned().collect();
    let text = |text: &str| config::Value::Text(text.into());
    // Its connections are made by tickets.
    options.extend([
        ("input".into(), text("the frame")),
        ("format".into(), text("arrow")),
        ("listen".into(), text("127.0.0.1:0")),
        ("insecure_plaintext".into(), config::Value::Flag(true)),
        ("audit_log".into(), text("none")),
    ]);
    plan(operation, &options)
}

/// The plan for `prepare`, `filter build` and what else is made in advance, with these options.
///
/// # Errors
/// [`Error::Usage`], as for what is typed.
pub fn make_plan(command: &str, options: &[(String, config::Value)]) -> Result<MakePlan> {
    MakePlan::of(config::command(command, options)?)
}

/// What was agreed, in words.
pub fn check_text(checked: &Checked, estimate: &Estimate, plan: &PartyPlan) -> String {
    check::text(checked, estimate, plan)
}

/// The name that an encryption of filters has as an option.
pub fn cipher_name(cipher: &'static str) -> &'static str {
    filter::cipher_name(cipher)
}

/// What an option is.
#[derive(Debug)]
pub struct About {
    /// Its long name.
    pub name: String,
    /// What it does, in a line.
    pub help: String,
    /// The value that it has if it is not given, if that is always the same.
    pub default: Option<String>,
    /// Whether it takes no value.
    pub flag: bool,
    /// Whether it must be given.
    pub required: bool,
}

/// The options of an operation, or of another command, for instance `filter build`. With several commands, those of each.
pub fn options(commands: &[&str]) -> Vec<Vec<About>> {
    let mut all = Arguments::command();
    all.build();
    let of_each = commands.iter().map(|command| {
        let arguments = config::named(&all, command).into_iter().flat_map(clap::Command::get_arguments);
        arguments.filter_map(option).filter(|option| option.name != "help").collect()
    });
    of_each.collect()
}

fn option(arg: &clap::Arg) -> Option<About> {
    let flag = !arg.get_action().takes_values();
    let default = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    Some(About {
        name: arg.get_long()?.to_string(),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        default: default.filter(|_| !flag),
        flag,
        required: arg.is_required_set(),
    })
}

/// A page of the guide, by its name or a word of it; without one, the names and titles of all.
///
/// # Errors
/// [`Error::Usage`] if there is no such page.
pub fn page(topic: Option<&str>) -> Result<String> {
    guide::page(topic)
}

/// The peers in the address book: name, fingerprint and address of each. A missing book is empty. One that others may change
/// adds to `warnings`.
///
/// # Errors
/// [`Error::Usage`].
pub fn peers(
    path: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, String, Option<String>)>> {
    Ok(book::Book::load(path, warnings)?.peers())
}

/// A peer to be added to the address book, as `veilset peer add` takes it.
#[derive(Debug)]
pub struct NewPeer {
    /// Its name.
    pub name: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Where it listens.
    pub address: Option<String>,
    /// Our identity file, whose fingerprint is refused.
    pub identity: Option<PathBuf>,
    /// The address book.
    pub book: Option<PathBuf>,
    /// Whether it may replace an entry.
    pub force: bool,
}

/// Adds a peer to the address book.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Output`].
pub fn add_peer(peer: NewPeer) -> Result<()> {
    let NewPeer { name, fingerprint, address, identity, book, force } = peer;
    book::run(&PeerCommand::Add { name, fingerprint, address, force, identity, book })
}

/// Removes a peer from the address book.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Output`].
pub fn remove_peer(name: String, book: Option<PathBuf>) -> Result<()> {
    book::run(&PeerCommand::Remove { name, book })
}

/// Whether the panic comes from `std::thread::spawn`, which fails if there is no memory for a stack.
fn is_for_want_of_a_thread(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|message| message.starts_with("failed to spawn thread"))
}

/// A text of the library with its settings as options: `--max-row`, `--modulus 128`.
fn as_options(text: &str) -> String {
    let option = |setting: &str| format!("--{}", setting.replace('_', "-"));
    spell(text, |named| match named {
        Named::Setting(setting, None) => option(setting),
        Named::Setting(setting, Some(value)) => format!("{} {value}", option(setting)),
        Named::Command(typed) => format!("`{typed}`"),
    })
}

/// Writes a line to standard output.
fn print(line: impl Display) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").map_err(|e| {
        Error::output(format!("cannot write to standard output: {e}. Redirect it and run again"))
    })
}

/// The exit code of [`Error::Bug`].
const BUG: u8 = 70;

/// The exit codes of `veilset --help`. [`memory::SystemOrExit`] has one more.
pub fn exit_code(error: &Error) -> u8 {
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
