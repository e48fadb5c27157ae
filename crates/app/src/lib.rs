//! The parts that the veilset program, the Python package and other front ends share: options and their meaning, run files, the
//! plan of a party's run and its execution, and messages and pages for people.
#![forbid(unsafe_code)]

pub mod book;
mod check;
pub mod columns;
pub mod config;
mod filter;
pub mod front;
pub mod guide;
pub mod make;
pub mod near;
pub mod options;
pub mod page;
pub mod parties;
pub mod plan;
mod policy;
mod prepare;
mod report;
pub mod speeds;
pub mod words;

pub use check::text as check_text;
pub use filter::cipher_name;

use veilset::error::Error;

/// The exit code of [`Error::Bug`].
pub const BUG: u8 = 70;

/// Returns the error of work that panicked.
pub fn panicked() -> Error {
    Error::Bug("a panic".into())
}

/// The exit code of [`Error::Cancelled`]: stopped on request.
pub const STOPPED: u8 = 130;

/// Returns the exit code of the program for an error, as listed by `veilset --help`.
pub fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Usage(_) => 2,
        Error::Input(_) => 3,
        Error::Disagreement(_) => 4,
        Error::Peer { .. } => 5,
        Error::Network(_) => 6,
        Error::Output(_) => 7,
        Error::Refused(_) => 8,
        Error::Cancelled => STOPPED,
        _ => BUG,
    }
}

/// An option of a command.
#[derive(Debug)]
pub struct About {
    /// The option's long name, without hyphens.
    pub name: String,
    /// The option's effect, in a line.
    pub help: String,
    /// The option's value if it is omitted, where that is always the same.
    pub default: Option<String>,
    /// Whether the option takes no value.
    pub flag: bool,
    /// Whether the option must be given.
    pub required: bool,
}

/// Returns the options of each of these operations or other commands, for instance `filter build`.
pub fn options(commands: &[&str]) -> Vec<Vec<About>> {
    let all = options::Typed::command();
    let of_each = commands.iter().map(|command| {
        let arguments = config::named(&all, command).into_iter().flat_map(clap::Command::get_arguments);
        arguments.filter_map(About::of).filter(|option| option.name != "help").collect()
    });
    of_each.collect()
}

impl About {
    fn of(arg: &clap::Arg) -> Option<About> {
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
}
