//! The arguments of the operations: one command each, with options that follow from the terms that the operation uses.

use super::{CommonArgs, EXIT_CODES, OutputArgs};
use crate::columns::{Columns, Received};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Error, FromArgMatches, Subcommand};
use std::path::PathBuf;
use veilset::operations::{self, Operation, Role, Rows, Shape, Terms, Uses};
use veilset::party::ID_COLUMN;
use veilset::protocols::{self, Attachment};
use veilset::sharded::run::MAX_SHARDS;

/// An operation and its options. Options that the operation does not use are absent.
#[derive(Debug)]
pub struct OperationArgs {
    /// The operation to compute.
    pub operation: &'static Operation,
    /// The options that all operations have.
    pub common: CommonArgs,
    /// The file and the format of the result.
    pub output: OutputArgs,
    /// The options for rows that are sent.
    pub rows: Option<RowArgs>,
    /// The option to give both sides the result.
    pub both: Option<BothArgs>,
    /// The options for the values of a sum.
    pub values: Option<ValueArgs>,
    /// The option for protection from a malicious sender.
    pub malicious: Option<MaliciousArgs>,
    /// The option that reveals the count to the sender.
    pub reveal: Option<RevealArgs>,
    /// The options for identifiers.
    pub ids: Option<IdArgs>,
    /// The options for shares.
    pub shares: Option<ShareArgs>,
    /// The options for a run cut into shards.
    pub job: Option<JobArgs>,
}

/// The options for a run cut into shards.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// Cut the run into P shards, which run one after another and each take a part of the memory and of the time; the same on
    /// both sides. With --job, a run that breaks off can go on
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_SHARDS)))]
    pub shards: Option<u32>,
    /// A new folder that keeps the results of shards, encrypted, so that the job can go on with --resume if it breaks off. It
    /// is deleted when the result is written; on a side without a result, delete it once the other side has its result
    #[arg(long, value_name = "FOLDER")]
    pub job: Option<PathBuf>,
    /// Resume the job in --job, which broke off: only shards that are not complete run. On both sides, with the input and the
    /// options that it began with
    #[arg(long)]
    pub resume: bool,
}

/// The options for rows that are sent.
#[derive(Debug, Args)]
pub struct RowArgs {
    /// Our columns to send with our keys (sender)
    ///
    /// They are sent for matching rows in intersect, and for new rows in union. Same syntax as --key
    #[arg(long, value_name = "COLS")]
    pub send_columns: Vec<Columns>,
    /// The columns that the sender sends (receiver)
    ///
    /// Give the sender's names, in its order. COL=NAME renames a column in our result. Same syntax as --key
    #[arg(long, value_name = "COLS")]
    pub receive_columns: Vec<Received>,
    /// The bytes of the longest row that is sent, plus 1 to 3 per column; the same on both sides. In union a row
    /// is the key and the columns sent, in intersect the columns sent. Every row is sent at this width, so that
    /// lengths do not show
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub max_row: u32,
}

/// The option to give both sides the result.
#[derive(Debug, Args)]
pub struct BothArgs {
    /// Give the result to both; on both sides
    ///
    /// The receiver sends it on, without the sender's columns; the same on both sides
    #[arg(long)]
    pub both: bool,
}

/// The options for the values of a sum.
#[derive(Debug, Args)]
pub struct ValueArgs {
    /// The column of numbers to add up (sender)
    ///
    /// Its exact name, without quotes
    #[arg(long, value_name = "COL")]
    pub values: Option<String>,
    /// Decimal places of the values; on both sides
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=38))]
    pub scale: u32,
    /// Bits of the modulus of the sum, 64 or 128; the same on both sides
    #[arg(long, value_name = "BITS", default_value = "64", value_parser = ["64", "128"])]
    pub modulus: String,
    /// Withhold the sum if fewer match; on both sides
    ///
    /// The sender then learns neither count nor sum; the same on both sides
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min_count: u64,
}

/// The option for protection from a sender that does not follow the protocol.
#[derive(Debug, Args)]
pub struct MaliciousArgs {
    /// Protect the receiver from a sender that does not follow the protocol; uses the protocol cm20, with longer
    /// tags; the same on both sides
    #[arg(long)]
    pub malicious_sender: bool,
}

/// The option that reveals the count to the sender.
#[derive(Debug, Args)]
pub struct RevealArgs {
    /// Tell the sender how many keys match, but not which; uses the protocol sigma-dh, or sigma-ahe if --protocol names it;
    /// the same on both sides
    #[arg(long)]
    pub reveal_count_to_sender: bool,
}

/// The options for identifiers.
#[derive(Debug, Args)]
pub struct IdArgs {
    /// Where the list of all identifiers goes
    ///
    /// The sorted list of all identifiers, of both sides, in the format of its extension; the same list on both sides [default:
    /// nowhere]
    #[arg(long, value_name = "FILE")]
    pub ids: Option<PathBuf>,
    /// The name of the column of identifiers in our result
    #[arg(long, value_name = "NAME", default_value = ID_COLUMN)]
    pub id_column: String,
}

/// The options for shares.
#[derive(Debug, Args)]
pub struct ShareArgs {
    /// The column of numbers to share (sender)
    ///
    /// Its values are shared instead of the keys, modulo 2^64. Its exact name, without quotes. A value of 0 that matches looks
    /// like no match
    #[arg(long, value_name = "COL")]
    pub values: Option<String>,
    /// Decimal places of the values; on both sides
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=38))]
    pub scale: u32,
    /// Which share belongs to which of our rows (sender)
    ///
    /// The file for our keys and values, with the number of the row of shares that belongs to each in a column `row` [default:
    /// nowhere]
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// The bytes of the longest key, plus 1 to 3 per key column; the same on both sides. A share of a key has this many
    /// bytes and its length, so that lengths do not show
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub max_row: u32,
}

impl OperationArgs {
    fn command(operation: &'static Operation) -> clap::Command {
        let command = clap::Command::new(operation.name);
        let command = OutputArgs::augment_args(CommonArgs::augment_args(command));
        let with = |command, wanted, augment: fn(clap::Command) -> clap::Command| {
            if wanted { augment(command) } else { command }
        };
        let command = with(command, has_rows(operation), RowArgs::augment_args);
        let command = with(command, operation.uses.both, BothArgs::augment_args);
        let command = with(command, operation.uses.values, ValueArgs::augment_args);
        let command = with(command, withstands(operation), MaliciousArgs::augment_args);
        let command = with(command, reveals(operation), RevealArgs::augment_args);
        let command = with(command, identifies(operation), IdArgs::augment_args);
        let command = with(command, operation.uses.shares, ShareArgs::augment_args);
        let command = with(command, cuts(operation), JobArgs::augment_args);
        // These come last, because the groups of arguments have descriptions of their own that would replace them.
        command
            .about(operation.summary)
            .long_about(format!(
                "{}\n\n{} In addition, each side learns how many keys the other has.{}",
                operation.summary,
                operation.about,
                of_several(operation)
            ))
            .after_help(short_help(operation))
            .after_long_help(help(operation))
    }
}

/// Describes how a run of several parties differs, if the operation supports one.
fn of_several(operation: &Operation) -> &'static str {
    match protocols::multiparty_for(operation) {
        None => "",
        Some(_) => {
            "\n\nWith --parties it is computed on the sets of all parties of a list. Only their leader learns the result. \
             Each party learns how many keys each of the others has."
        }
    }
}

fn has_rows(operation: &Operation) -> bool {
    operation.uses.rows != Rows::None
}

fn withstands(operation: &'static Operation) -> bool {
    !protocols::names(|p| p.offer(operation).is_some_and(|offer| offer.malicious_sender)).is_empty()
}

fn reveals(operation: &'static Operation) -> bool {
    !protocols::names(|p| p.offer(operation).is_some_and(|offer| offer.reveals_count)).is_empty()
}

fn cuts(operation: &'static Operation) -> bool {
    !protocols::names(|p| p.attaches(operation, Attachment::Shards)).is_empty()
}

fn identifies(operation: &Operation) -> bool {
    (operation.result)(Role::Receiver, &Terms::default()) == Shape::Identifiers
}

/// Parses the arguments, if the operation has them.
fn given<T: FromArgMatches>(has: bool, matches: &mut ArgMatches) -> Result<Option<T>, Error> {
    has.then(|| T::from_arg_matches_mut(matches)).transpose()
}

impl Subcommand for OperationArgs {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        operations::ALL.into_iter().fold(command, |all, operation| all.subcommand(Self::command(operation)))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        operations::named(name).is_ok()
    }
}

impl FromArgMatches for OperationArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        let found = matches.remove_subcommand();
        let found = found.and_then(|(name, matches)| Some((operations::named(&name).ok()?, matches)));
        let Some((operation, mut matches)) = found else {
            return Err(Error::new(ErrorKind::MissingSubcommand));
        };
        let matches = &mut matches;
        Ok(OperationArgs {
            operation,
            common: CommonArgs::from_arg_matches_mut(matches)?,
            output: OutputArgs::from_arg_matches_mut(matches)?,
            rows: given(has_rows(operation), matches)?,
            both: given(operation.uses.both, matches)?,
            values: given(operation.uses.values, matches)?,
            malicious: given(withstands(operation), matches)?,
            reveal: given(reveals(operation), matches)?,
            ids: given(identifies(operation), matches)?,
            shares: given(operation.uses.shares, matches)?,
            job: given(cuts(operation), matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns an example, and a pointer to more help.
fn short_help(operation: &Operation) -> String {
    let name = operation.name;
    let rows = (operation.result)(Role::Receiver, &Terms::default()).has_items();
    let output = if rows { " --output result.csv" } else { "" };
    format!(
        "\
Example:
  veilset {name} ours.csv --key email --role receiver --peer hospital-b \\
      --listen 0.0.0.0:7000{output}
All options: veilset {name} --help. Guide: veilset help operations"
    )
}

/// Returns an example command line for each party, one for several parties, and the exit codes.
fn help(operation: &Operation) -> String {
    let name = operation.name;
    let result = |role| {
        let rows = (operation.result)(role, &Terms::default()).has_items();
        if rows { " --output result.csv" } else { "" }
    };
    let (received, sent) = (result(Role::Receiver), result(Role::Sender));
    let agreed = match operation.uses {
        Uses { values: true, .. } => " --scale 2 --min-count 10",
        Uses { shares: true, .. } => " --scale 2",
        _ => "",
    };
    let values = if agreed.is_empty() { "" } else { " --values amount" };
    let several = match protocols::multiparty_for(operation) {
        None => String::new(),
        Some(_) => format!(
            "\
Example of several parties (each runs its own, with a copy of the same file):
  veilset {name} ours.csv --key email --parties parties.toml --me north{received}

  # parties.toml
  leader = \"north\"

  [[party]]
  name = \"north\"
  fingerprint = \"FINGERPRINT\"
  address = \"north.example.org:7000\"   # where it listens; one party may have none

  [[party]]
  name = \"south\"
  ...

"
        ),
    };
    format!(
        "\
Example (each party runs its own):
  veilset {name} ours.csv --key email --role receiver --listen 0.0.0.0:7000 \\
      --peer FINGERPRINT{received}{agreed}
  veilset {name} theirs.csv --key mail --role sender --connect host.example.org:7000 \\
      --peer FINGERPRINT{sent}{values}{agreed}

{several}{EXIT_CODES}"
    )
}
