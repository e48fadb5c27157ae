//! The arguments as typed. The options of runs and of preparation are defined in [`veilset_app::options`].

mod plan;

pub use plan::{CalibrateArgs, PlanArgs};

use clap::builder::RangedU64ValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use veilset_app::options::{EXIT_CODES, RUN_HELP, Wanted, arrange};

/// The examples that follow the short help of the program.
const OVERVIEW: &str = "\
Examples:
  veilset demo
  veilset identity new
  veilset peer add hospital-b FINGERPRINT host.example.org:7000
  veilset intersect ours.csv --key email --role receiver --peer hospital-b

All options of a command: veilset COMMAND --help. Guide: veilset help";

fn overview() -> String {
    format!("{OVERVIEW}\n\n{EXIT_CODES}")
}

const PEER_HELP: &str = "\
Example:
  veilset peer add hospital-b FINGERPRINT host.example.org:7000
  veilset count ours.csv --key email --role receiver --peer hospital-b

If the address book has the peer's address, veilset connects to it unless --listen or --connect says otherwise.";

const CHECK_HELP: &str = "\
Examples (both sides):
  veilset check intersect ours.csv --key email --role receiver --peer hospital-b --listen 0.0.0.0:7000
  veilset check run veilset.toml";

/// Private set operations: combine lists with other organisations without showing them to each other.
#[derive(Debug, Parser)]
#[command(name = "veilset", version, after_help = OVERVIEW, after_long_help = overview(), disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run all parties on this machine, on sample data
    ///
    /// They meet over TLS. The data ships with the program.
    #[command(after_help = "Examples:
  veilset demo
  veilset demo --parties 4")]
    Demo(DemoArgs),
    /// Create or show this party's identity
    #[command(subcommand)]
    Identity(IdentityCommand),
    #[command(flatten)]
    Wanted(Wanted),
    /// Run an operation with the options in a file
    #[command(after_help = RUN_HELP, override_usage = "veilset run [FILE] [OPTIONS OF THE OPERATION]")]
    Run {
        /// The file [default: veilset.toml], then options that override those in the file
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FILE, OPTIONS")]
        words: Vec<OsString>,
    },
    /// Agree with the peer, but compute nothing
    ///
    /// See what would run, what it costs and what each party would learn.
    ///
    /// Both sides run `check` with the options of the planned run. Each side checks its input in full. Both
    /// agree on everything, and learn the sizes of the sets and how long the other side expects to compute. No result is
    /// written.
    #[command(after_help = CHECK_HELP, override_usage = "veilset check <OPERATION ...|run [FILE] ...>")]
    Check {
        /// An operation and its options, or `run` and a file
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "WHAT")]
        words: Vec<OsString>,
    },
    /// Name peers, so that nobody has to type fingerprints
    #[command(subcommand, after_help = PEER_HELP)]
    Peer(PeerCommand),
    /// Show what each protocol would take for a run
    #[command(after_help = "Examples:
  veilset plan --op union --n 1000000 --net 100Mbps,20ms
  veilset plan --op intersect --n 500 --n-peer 10000000 --net wan --prefer bytes --json
  veilset plan --op union --n 1000000000 --shards 100 --net 1Gbps,1ms
  veilset plan --op count --parties 4 --n 100000")]
    Plan(PlanArgs),
    /// Measure how fast this machine is
    ///
    /// Runs choose their protocol by these figures. The measurement takes a few seconds, and its result is kept. Before the
    /// first measurement, runs use built-in figures for this kind of processor.
    #[command(after_help = "Example:
  veilset calibrate")]
    Calibrate(CalibrateArgs),
    /// Print a shell script that completes commands, columns and peers
    ///
    /// The script asks this program, `veilset`, which reads the address book, and for `run` the file with the options
    /// (veilset.toml if none is named). Where that file or the command line names them, it also reads the list of parties and
    /// the column names of the input. In PowerShell it completes only commands, options and values that do not depend on files.
    #[command(after_help = "Example:
  veilset completions bash > ~/.local/share/bash-completion/completions/veilset")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one per command
    #[command(after_help = "Example:
  veilset man ~/.local/share/man/man1")]
    Man {
        /// The folder to write to; it must exist
        folder: PathBuf,
    },
    /// Show a page of the guide, or the help of a command
    #[command(after_help = "Examples:
  veilset help
  veilset help first-run
  veilset help intersect")]
    Help {
        /// A page or a command [default: a list of both]
        topic: Option<String>,
    },
    /// Moved to veilset-dev
    #[command(hide = true, disable_help_flag = true)]
    Bench(Moved),
    /// Moved to veilset-dev
    #[command(hide = true, disable_help_flag = true)]
    Soak(Moved),
}

/// The words after a command that has moved to veilset-dev.
#[derive(Debug, Args)]
pub struct Moved {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Run this many parties, from 2 to 8 [default: two parties, and the operations for two]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(2..=8))]
    pub parties: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub enum PeerCommand {
    /// Give a peer a name
    #[command(after_help = PEER_HELP)]
    Add {
        /// Letters, digits, dots, hyphens and underscores
        name: String,
        /// The fingerprint that the peer's `veilset identity show` prints
        fingerprint: String,
        /// Where the peer listens, HOST:PORT; a run connects to it unless told otherwise
        address: Option<String>,
        /// Replace an existing entry with this name
        #[arg(long)]
        force: bool,
        /// Our identity file, so that our own fingerprint is refused as a peer's [default: veilset/identity.pem
        /// in your configuration folder, if there is one]
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
        /// The address book [default: veilset/peers.toml in your configuration folder]
        #[arg(long, value_name = "FILE")]
        book: Option<PathBuf>,
    },
    /// Print names, fingerprints and addresses
    List {
        /// The address book [default: veilset/peers.toml in your configuration folder]
        #[arg(long, value_name = "FILE")]
        book: Option<PathBuf>,
    },
    /// Remove a peer from the address book
    Remove {
        /// The name of the peer
        name: String,
        /// The address book [default: veilset/peers.toml in your configuration folder]
        #[arg(long, value_name = "FILE")]
        book: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub enum IdentityCommand {
    /// Create an identity: a key pair in a file that only you can read
    New {
        /// The file to create [default: veilset/identity.pem in your configuration folder]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Print the fingerprint, for the other party's --peer, or for the list of --parties
    Show {
        /// The identity file [default: veilset/identity.pem in your configuration folder]
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
    },
}

/// For commands other than runs: the options that only `--help` shows.
const SHORTENED: [(&str, &[&str]); 1] = [(
    "plan",
    &[
        "group",
        "malicious_sender",
        "reveal_count_to_sender",
        "both",
        "with_columns",
        "max_row",
        "shared_cores",
        "dollars_per_hour",
        "dollars_per_gigabyte",
        "speeds",
    ],
)];

/// Returns the program's command, with its help arranged.
pub fn command() -> clap::Command {
    arrange(Arguments::command(), &SHORTENED)
}

impl Arguments {
    /// Parses the arguments of this process. Errors end the program here with exit code 2, and requests for help or the
    /// version with 0.
    pub fn typed() -> Arguments {
        Arguments::from_arg_matches(&command().get_matches()).unwrap_or_else(|e| e.exit())
    }

    /// Parses these words as if they were typed after the program's name. Errors, and requests for help, end the program here.
    pub fn of(words: Vec<OsString>) -> Arguments {
        let words = std::iter::once("veilset".into()).chain(words);
        Arguments::from_arg_matches(&command().get_matches_from(words)).unwrap_or_else(|e| e.exit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects all commands, with their full names.
    fn commands(command: &clap::Command, name: &str, all: &mut Vec<(String, clap::Command)>) {
        all.push((name.to_string(), command.clone()));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            commands(below, format!("{name} {}", below.get_name()).trim(), all);
        }
    }

    fn all() -> Vec<(String, clap::Command)> {
        let mut root = command().term_width(80);
        root.build();
        let mut all = Vec::new();
        commands(&root, "", &mut all);
        all
    }

    #[test]
    fn every_short_help_is_one_screen() {
        let mut wrong = Vec::new();
        for (name, command) in all() {
            let text = command.term_width(80).render_help().to_string();
            let lines = text.trim_end().lines().count();
            if lines > 40 {
                wrong.push(format!("veilset {name} -h has {lines} lines:\n{text}"));
            }
            if let Some(long) = text.lines().find(|line| line.chars().count() > 80) {
                wrong.push(format!("veilset {name} -h: {long}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}
