//! The options of a worker, which has a piece of a table and a ticket: only those that define the computation. The options that
//! name people, files and connections are for the side that agrees.

use super::{BothArgs, ComparedArgs, ComputedArgs, RowArgs, Wish, items, role, values::protocol_or_auto};
use clap::{Args, FromArgMatches};
use std::ffi::OsString;
use veilset::operations::{Operation, Role, Rows};

/// The options of a worker's computation.
#[derive(Debug)]
pub struct WorkerArgs {
    /// The operation to compute.
    pub operation: &'static Operation,
    /// The options that all operations have.
    pub common: CommonWorkerArgs,
    /// The options for rows that are sent.
    pub rows: Option<RowArgs>,
    /// The option to give both sides the result.
    pub both: Option<BothArgs>,
}

/// The options that the workers of all operations have.
#[derive(Debug, Args)]
pub struct CommonWorkerArgs {
    /// How the rows of the piece become items
    #[command(flatten)]
    pub compared: ComparedArgs,
    /// The number of items that the other side is told
    #[arg(long, value_parser = items)]
    pub pad_to: Option<usize>,
    /// The role of our side
    #[arg(long, value_parser = role())]
    pub role: Role,
    /// The protocol; the ticket has the one that was agreed on
    #[arg(long, value_parser = protocol_or_auto())]
    pub protocol: Option<Wish>,
    /// The number of shards of the whole run
    #[arg(long)]
    pub shards: Option<u32>,
    /// How it is computed
    #[command(flatten)]
    pub computed: ComputedArgs,
}

impl WorkerArgs {
    /// Returns the definition of the options.
    pub fn command(operation: &'static Operation) -> clap::Command {
        let command = CommonWorkerArgs::augment_args(clap::Command::new(operation.name).no_binary_name(true));
        let command =
            if operation.uses.rows == Rows::None { command } else { RowArgs::augment_args(command) };
        if operation.uses.both { BothArgs::augment_args(command) } else { command }
    }

    /// Parses these words as options.
    ///
    /// # Errors
    /// If the words are wrong.
    pub fn parsed(operation: &'static Operation, words: Vec<OsString>) -> Result<WorkerArgs, clap::Error> {
        let matches = &Self::command(operation).try_get_matches_from(words)?;
        let has_rows = operation.uses.rows != Rows::None;
        Ok(WorkerArgs {
            operation,
            common: CommonWorkerArgs::from_arg_matches(matches)?,
            rows: has_rows.then(|| RowArgs::from_arg_matches(matches)).transpose()?,
            both: operation.uses.both.then(|| BothArgs::from_arg_matches(matches)).transpose()?,
        })
    }
}
