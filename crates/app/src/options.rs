//! The options of operations and of the commands that work in advance, shared by the program, the Python package and run files.
//! [`crate::plan`] interprets them, and [`crate::make`] those of the commands that work in advance.

mod help;
mod operation;
mod values;
mod worker;

pub use help::arrange;
pub use operation::{
    BothArgs, IdArgs, JobArgs, MaliciousArgs, OperationArgs, RevealArgs, RowArgs, ShareArgs, ValueArgs,
};
pub use values::{
    Net, Wish, cipher, format, group, items, one_operation, preference, protocol, role, seconds, several,
};
use values::{group_help, protocol_help, protocol_or_auto};
pub use worker::{CommonWorkerArgs, WorkerArgs};

use crate::columns::Columns;
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use veilset::operations::Role;
use veilset::planner::Preference;
use veilset::protocols::{Assumption, groups};
use veilset::table::Format;

/// The meaning of the program's exit codes.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done: all sides confirmed the run, and our result is complete. The other side may
       still fail to write its own (7), or miss our last message (6)
  2    wrong arguments or settings (identity, address book, policy, veilset.toml, list of
       parties), or an address that cannot be used
  3    our input data, or the prepared half or filter
  4    we and another party ask for different things
  5    another party has another key than expected, broke the protocol or gave up
  6    the network: unreachable, closed, timed out
  7    our result or report could not be written, or the audit log or ledger not used;
       the message says if the result is there
  8    our own side refuses the run: by its policy, --max-peer-items, --checked, or a small
       set of another party (--allow-small)
  70   a defect in veilset
  71   not enough memory
  130  stopped on request (Ctrl-C, SIGTERM, SIGHUP)
Whatever the code, the result file is complete or does not exist.";

/// The text on run files in the help of `veilset run`.
pub const RUN_HELP: &str = "\
Example, veilset.toml:
  operation = \"intersect\"
  input = \"ours.csv\"            # paths are relative to the file's folder
  key = [\"email\"]
  role = \"receiver\"
  peer = \"hospital-b\"
  listen = \"0.0.0.0:7000\"
  output = \"both.csv\"
  connect-timeout = 300          # any option of the operation, by its long name

  veilset run
  veilset run veilset.toml --output other.csv --force";

const PREPARE_HELP: &str = "\
Example:
  veilset prepare ours.csv --key email --output ours.half
  veilset intersect ours.csv --key email --role receiver --peer hospital-b --prepared ours.half --output both.csv";

const FILTER_HELP: &str = "\
Example, of the receiver:
  veilset filter build ours.csv --key email --output ours.filter
  veilset filter export ours.filter --output ours.public
  veilset count ours.csv --key email --role receiver --peer hospital-b --filter ours.filter
  veilset filter update ours.filter new.csv --key email

and of a sender that has ours.public:
  veilset count theirs.csv --key email --role sender --peer hospital-a --filter ours.public";

/// The operations, `prepare` and `filter`, parsed as if typed directly after the program's name.
#[derive(Debug, Parser)]
#[command(name = "veilset")]
pub struct Typed {
    /// The command.
    #[command(subcommand)]
    pub wanted: Wanted,
}

impl Typed {
    /// Returns the definition of the commands, with their help arranged.
    pub fn command() -> clap::Command {
        let mut all = arrange(<Typed as clap::CommandFactory>::command(), &[]);
        all.build();
        all
    }

    /// Parses these words, the first of which is the program.
    ///
    /// # Errors
    /// If the words are wrong, or ask for help.
    pub fn parsed(words: impl IntoIterator<Item = OsString>) -> Result<Wanted, clap::Error> {
        let typed = Typed::from_arg_matches(&Typed::command().try_get_matches_from(words)?)?;
        Ok(typed.wanted)
    }
}

/// An operation, or a command that works in advance.
#[derive(Debug, Subcommand)]
pub enum Wanted {
    /// An operation.
    #[command(flatten)]
    Operation(Box<OperationArgs>),
    /// Compute our half of a run in advance
    ///
    /// Most of the computation on our own keys needs no peer. This command does it in advance, under a secret key that serves a
    /// single run, and writes it to a file that is encrypted under this identity. Keep both private. A run with the same input
    /// and --prepared FILE uses the file, and deletes it once both sides have agreed, before any message of the protocol. Do
    /// not keep a copy: the ledger (--prepared-ledger) rejects a second use.
    #[command(after_help = PREPARE_HELP)]
    Prepare(PrepareArgs),
    /// Make an encrypted filter of our set, for many runs
    ///
    /// It is for runs as the receiver, with the protocol dc17. The filter takes time to encrypt, and may then serve any number
    /// of runs with any number of partners. Its file is encrypted under this identity. Its public part can be given to
    /// partners, so that it need not travel in each run.
    #[command(subcommand, after_help = FILTER_HELP)]
    Filter(FilterCommand),
}

/// The options of `prepare`.
#[derive(Debug, Args)]
pub struct PrepareArgs {
    /// Our items, and the size that the peer is told
    #[command(flatten)]
    pub input: InputArgs,
    /// The file to create
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// With --pad-to: prepare for the sender of a union, whose dummies are of a different kind
    #[arg(long, requires = "pad_to")]
    pub union_sender: bool,
    /// The group of the run
    #[arg(long, value_parser = group(groups::prepared()), default_value = groups::CURVE25519)]
    pub group: &'static str,
    /// Our identity file [default: veilset/identity.pem in your configuration folder]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// The ledger that will list the half once it is used, so that it cannot be used twice; created if missing
    /// [default: veilset/prepared.ledger in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub prepared_ledger: Option<PathBuf>,
    /// Number of computing threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
}

/// The commands of `filter`.
#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    /// Make a filter; if interrupted, the same command resumes
    #[command(after_help = FILTER_HELP)]
    Build {
        /// The items
        #[command(flatten)]
        input: KeyArgs,
        /// The file to create
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// The size of the largest partner set that the filter supports
        #[arg(long = "for", value_name = "M", default_value_t = 1 << 20, value_parser = items)]
        queries: usize,
        /// The most items that the filter can have, for later insertions; partners learn it [default: as many as there are]
        #[arg(long, value_name = "N", value_parser = items)]
        capacity: Option<usize>,
        /// The encryption; paillier2048 has 112 bits of security
        #[arg(long, value_parser = cipher(), default_value = "elgamal")]
        cipher: &'static str,
        /// The options common to all `filter` commands
        #[command(flatten)]
        own: FilterArgs,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Insert items into a filter, and encrypt all of it afresh; partners need its public part again
    #[command(after_help = FILTER_HELP)]
    Update {
        /// The filter
        filter: PathBuf,
        /// The items
        #[command(flatten)]
        input: KeyArgs,
        /// The options common to all `filter` commands
        #[command(flatten)]
        own: FilterArgs,
    },
    /// Say what a filter, or the public part of one, is for, and check all of it
    #[command(after_help = FILTER_HELP)]
    Info {
        /// The filter, or its public part
        filter: PathBuf,
        /// The options common to all `filter` commands
        #[command(flatten)]
        own: FilterArgs,
    },
    /// Write the public part of a filter, for senders
    #[command(after_help = FILTER_HELP)]
    Export {
        /// The filter
        filter: PathBuf,
        /// The file to create
        #[arg(long, value_name = "PUBLIC")]
        output: PathBuf,
        /// The options common to all `filter` commands
        #[command(flatten)]
        own: FilterArgs,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
}

/// The options common to all `filter` commands.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Our identity file [default: veilset/identity.pem in your configuration folder]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Number of computing threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
}

/// The file and the format of the result.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Where the result goes [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The format of the result [default: by the extension of --output, otherwise CSV, or a list if our file is one].
    /// A count or sum is always CSV
    #[arg(long, value_name = "FORMAT", value_parser = format(Format::WRITTEN))]
    pub output_format: Option<Format>,
    /// Write CSV that is safe to open in a spreadsheet. Cells that would be taken for a formula get a leading
    /// apostrophe. They begin with = + - @ or a full-width form of these, a tab or a line end, and are not a number
    #[arg(long)]
    pub for_spreadsheets: bool,
}

/// Our items, and the size that the peer is told.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// The items
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Pad our set to N items with dummies, so that the peer learns N instead of its size; do not derive N from
    /// the data
    #[arg(long, value_name = "N", value_parser = items)]
    pub pad_to: Option<usize>,
}

/// Our items.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Our file: CSV, Parquet, Arrow, JSON lines, or a list
    ///
    /// CSV has a header, and a list one item per line. All may be compressed by gzip or Zstandard; - is standard input. Several
    /// files with the same columns are read as one table, and so is a folder of them
    #[arg(required = true, value_name = "INPUT")]
    pub input: Vec<PathBuf>,
    /// The format of our file [default: parquet for .parquet and .pq, arrow for .arrow, .arrows, .feather and .ipc, jsonl for
    /// .jsonl and .ndjson, list for .txt and .list, otherwise csv]
    #[arg(long, value_parser = format(Format::ALL))]
    pub format: Option<Format>,
    /// The column separator, one character or "tab" [default: tab for .tsv and .tab; otherwise the one of , ; tab and | that
    /// divides the first rows into columns, or comma if none does]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,
    /// Our CSV has no header: its columns are called 1, 2, 3 and so on, and results written as CSV with our columns have no
    /// header either
    ///
    /// Results with columns of their own keep their header: share files, the list of --ids, and numbers
    #[arg(long)]
    pub no_header: bool,
    /// The escape character in quoted cells of our CSV, such as \: a quote or escape character after it is taken literally
    #[arg(long, value_name = "CHAR", conflicts_with = "no_quotes")]
    pub escape: Option<String>,
    /// Quotes in our CSV are ordinary characters
    #[arg(long)]
    pub no_quotes: bool,
    /// A key in our CSV may span several lines
    #[arg(long)]
    pub multiline_keys: bool,
    /// How its rows become items.
    #[command(flatten)]
    pub compared: ComparedArgs,
}

/// How rows become the items that are compared.
#[derive(Debug, Args)]
pub struct ComparedArgs {
    /// The columns to compare
    ///
    /// They are compared byte by byte: without --normalize, Ann@x.org is not ann@x.org. Their names may differ on the two
    /// sides; their order and number must not. Several are separated by commas. A name with a comma is quoted as in CSV:
    /// --key '"last, first",city'; --key may also be repeated. A list has no columns, and needs no --key
    #[arg(long, value_name = "COLS")]
    pub key: Vec<Columns>,
    /// Ignore spaces at the ends, case, or how accents are composed: trim,casefold,nfc
    ///
    /// How keys are normalised before they are compared: one or more of trim (ignore white space at both ends), casefold
    /// (ignore case) and nfc (composed and decomposed letters are equal), separated by commas; the same on both sides
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    pub normalize: Vec<String>,
    /// The text encoding: utf8 is checked, bytes are taken as they are; the same on both sides
    #[arg(long, value_enum, default_value = "utf8")]
    pub encoding: EncodingArg,
    /// What to do with a row that has an empty key column
    #[arg(long, value_enum, default_value = "error")]
    pub empty_keys: EmptyKeysArg,
    /// What to do with rows that repeat a key [default: first; for the sender of sum, or of share with --values: error; all
    /// is for the receiver of intersect]
    #[arg(long, value_enum)]
    pub duplicates: Option<DuplicatesArg>,
}

/// The options that all operations have.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Our items, and the size that the peer is told
    #[command(flatten)]
    pub input: InputArgs,
    /// The receiver gets the result, the sender contributes
    ///
    /// In sum, it is the sender that gets the sum. Not with --parties, whose leader gets the result
    #[arg(long, value_parser = role(), required_unless_present = "parties")]
    pub role: Option<Role>,
    /// The list of parties, for a run of several
    ///
    /// The same TOML file for all of them, with who leads and everybody's name, fingerprint and address (union, intersect,
    /// count)
    #[arg(long, value_name = "FILE")]
    pub parties: Option<PathBuf>,
    /// Our name in the list of parties
    #[arg(long, value_name = "NAME")]
    pub me: Option<String>,
    /// Listen for the peer at this address of ours
    ///
    /// With --parties, the default is our address in the list
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "connect")]
    pub listen: Option<String>,
    /// Connect to the peer at its address
    ///
    /// The default is the one in the address book, unless --listen is given
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Option<String>,
    /// Connect through the HTTP proxy at this address, which must allow CONNECT to the peer's address. It resolves the
    /// peer's name, and can neither read nor change what is sent. A proxy that requires a password is not supported, and
    /// environment variables are not read. Not with --listen. Example: --connect host.example.org:7000 --proxy
    /// proxy.internal:3128
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["listen", "insecure_plaintext"])]
    pub proxy: Option<String>,
    /// Our identity file [default: veilset/identity.pem in your configuration folder]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// The peer's address-book name or fingerprint
    ///
    /// `veilset peer add` puts the peer into the address book. `veilset identity show`, run by the peer, prints its fingerprint
    #[arg(long, value_name = "PEER", required_unless_present_any = ["insecure_plaintext", "parties"])]
    pub peer: Option<String>,
    /// The protocol; the same on all sides
    #[arg(long, value_parser = protocol_or_auto(), long_help = protocol_help())]
    pub protocol: Option<Wish>,
    /// With --protocol auto, on the receiver's side: what to minimise
    #[arg(long, value_parser = preference(), default_value = "time")]
    pub prefer: Preference,
    /// The assumptions that are acceptable, of ddh, lpn, rlwe and dcr [default: all]
    #[arg(long, value_name = "A,..", value_delimiter = ',')]
    pub assume: Vec<Assumption>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Write a report; .html is a page to read
    ///
    /// HTML, for reading and archiving, if FILE ends in .html or .htm; otherwise JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
    /// How long the connection may be silent, in seconds. The run gives up on a peer that is alive but makes no progress after
    /// ten times as long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub idle_timeout: Duration,
    /// Accept a peer with fewer than 10 keys
    ///
    /// Where another party learns something about our rows, a set this small amounts to a question about each key, and is
    /// refused without this option. min-peer-size in the policy, if set, takes precedence
    #[arg(long)]
    pub allow_small: bool,
    /// With `veilset check`: write what was agreed to this file. In a run: use the protocol that the check in this file showed,
    /// and refuse any other parties, terms, sizes or columns
    #[arg(long, value_name = "FILE")]
    pub checked: Option<PathBuf>,
    /// The file that `veilset prepare` made from the same input: the run starts from it, and deletes it once
    /// both sides have agreed
    #[arg(long, value_name = "FILE", conflicts_with = "insecure_plaintext")]
    pub prepared: Option<PathBuf>,
    /// A filter made in advance, for dc17: as the receiver our own, which `veilset filter build` made from the same input;
    /// as the sender the public part of the receiver's, so that it need not travel
    #[arg(long, value_name = "FILE", conflicts_with_all = ["insecure_plaintext", "prepared", "parties"])]
    pub filter: Option<PathBuf>,
    /// The encryption of dc17 (paillier2048 has 112 bits of security); the same on both sides [default: elgamal, or that of
    /// --filter]
    #[arg(long, value_parser = cipher(), conflicts_with_all = ["group", "parties"])]
    pub cipher: Option<&'static str>,
    /// No encryption, no authentication; refused unless the address is a loopback address
    #[arg(long, conflicts_with = "peer")]
    pub insecure_plaintext: bool,
    /// How it is computed, here and with workers
    #[command(flatten)]
    pub computed: ComputedArgs,
    /// Files of our side, apart from the data
    #[command(flatten)]
    pub own: OwnArgs,
    /// The run file that the options come from.
    #[arg(skip)]
    pub run_file: Option<PathBuf>,
}

/// How an operation is computed, by one process or by workers.
#[derive(Debug, Args)]
pub struct ComputedArgs {
    /// The group that the protocol works in; the same on both sides [default: the protocol's first]
    #[arg(long, value_parser = group(groups::ALL.iter().copied()), long_help = group_help())]
    pub group: Option<&'static str>,
    /// Number of computing threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// How long to wait for the peer, or to keep trying to reach it, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub connect_timeout: Duration,
    /// The largest set of another party to accept: each of its keys costs time and about 100 bytes of memory, and in
    /// union up to twice --max-row in addition
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = items)]
    pub max_peer_items: usize,
}

/// Files of our side, apart from the data.
#[derive(Debug, Args)]
pub struct OwnArgs {
    /// The address book [default: veilset/peers.toml in your configuration folder]
    #[arg(long, value_name = "FILE")]
    pub book: Option<PathBuf>,
    /// The policy: which runs our side accepts [default: veilset/policy.toml in your configuration folder, if it
    /// exists]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The log of what was run with whom; none disables it [default: veilset/audit.jsonl in $XDG_STATE_HOME or
    /// ~/.local/state]
    #[arg(long, value_name = "FILE|none")]
    pub audit_log: Option<PathBuf>,
    /// The ledger that the half was prepared with: it lists used halves, so that none is used twice [default:
    /// veilset/prepared.ledger in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub prepared_ledger: Option<PathBuf>,
}

/// The encoding of text.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EncodingArg {
    /// Text is checked to be UTF-8
    Utf8,
    /// Bytes are taken as they are
    Bytes,
}

/// The treatment of rows with an empty key column.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EmptyKeysArg {
    /// Stop
    Error,
    /// Omit the row
    Skip,
    /// Treat the empty cell as a value
    Keep,
}

/// The treatment of rows that repeat a key.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum DuplicatesArg {
    /// Keep the first row
    First,
    /// Stop
    Error,
    /// Add up the values (sender of sum, or of share with --values)
    Add,
    /// Keep all rows in the result (receiver of intersect)
    All,
}
