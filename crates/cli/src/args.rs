//! The arguments as typed. [`crate::plan`] interprets them.

mod help;
mod measure;
mod operation;
mod tables;
mod values;

pub use measure::{BenchArgs, BenchCommand, BenchPartyArgs, CalibrateArgs, PlanArgs, SoakArgs, Who};
pub use operation::{OperationArgs, RowArgs, ShareArgs, ValueArgs};
pub use tables::{BenchTask, TablesArgs};
pub use values::Wish;
use values::{
    cipher, format, group, group_help, items, one_operation, preference, protocol, protocol_help,
    protocol_or_auto, role, seconds,
};

use crate::columns::Columns;
use clap::builder::RangedU64ValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use veilset::operations::Role;
use veilset::planner::Preference;
use veilset::protocols::{Assumption, groups};
use veilset::table::Format;

/// What is behind the short help of the program.
const OVERVIEW: &str = "\
Examples:
  veilset demo
  veilset identity new
  veilset peer add hospital-b FINGERPRINT host.example.org:7000
  veilset intersect ours.csv --key email --role receiver --peer hospital-b

All options of a command: veilset COMMAND --help. Guide: veilset help";

const EXIT_CODES: &str = "\
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

fn overview() -> String {
    format!("{OVERVIEW}\n\n{EXIT_CODES}")
}

const PEER_HELP: &str = "\
Example:
  veilset peer add hospital-b FINGERPRINT host.example.org:7000
  veilset count ours.csv --key email --role receiver --peer hospital-b

If the address book has the peer's address, veilset connects to it unless --listen or --connect says otherwise.";

const RUN_HELP: &str = "\
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
    Operation(Box<OperationArgs>),
    /// Compute our half of a run in advance
    ///
    /// Most of the computation on our own keys needs no peer. This command does it in advance, under a key for a
    /// single run, and writes it to a file that is encrypted under this identity. Keep both private. A run with
    /// the same input and --prepared FILE uses the file, and deletes it before it sends anything. Do not keep a
    /// copy: the ledger of this account rejects a second use.
    #[command(after_help = PREPARE_HELP)]
    Prepare(PrepareArgs),
    /// Make an encrypted filter of our set, for many runs
    ///
    /// It is for runs as the receiver, with the protocol dc17. The filter takes time to encrypt, and may then serve any number
    /// of runs with any number of partners. Its file is encrypted under this identity. Its public part can be given to
    /// partners, so that it need not travel in each run.
    #[command(subcommand, after_help = FILTER_HELP)]
    Filter(FilterCommand),
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
    /// agree on everything and learn the sizes of the sets, and nothing more. No result is written.
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
    /// Runs choose their protocol by these figures. It takes some seconds, and the result is kept. Until then, figures of a
    /// processor of the same kind are used.
    #[command(after_help = "Example:
  veilset calibrate")]
    Calibrate(CalibrateArgs),
    /// Measure a protocol on this machine
    ///
    /// Runs all parties on this machine over an emulated network, and prints time, CPU, bytes and memory.
    /// `veilset bench tables` measures the tables of the papers.
    #[command(after_help = "Examples:
  veilset bench --op union --protocol dh --n 65536 --threads 1 --net lan --one-sided --json
  veilset bench --op union --parties 4 --n 65536 --threads 1 --net lan --json
  veilset bench tables --quick")]
    Bench(BenchCommand),
    /// Run all parties on random inputs, and check the results
    ///
    /// Compares each result with the plain computation.
    #[command(after_help = "Example:
  veilset soak --runs 10000")]
    Soak(SoakArgs),
    /// Print a shell script that completes commands, columns and peers
    ///
    /// The script asks this program, `veilset`, which reads the address book and the names of the columns of the input that is
    /// typed already. In PowerShell it completes only commands, options and values that do not depend on files.
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
    #[command(hide = true)]
    BenchParty(BenchPartyArgs),
    /// Print everything that `bench` can measure, as JSON, for scripts
    #[command(hide = true)]
    BenchKinds,
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

/// The program's command, with its help arranged.
pub fn command() -> clap::Command {
    help::arrange(Arguments::command())
}

impl Arguments {
    /// What was typed. Errors end the program here, with exit code 2.
    pub fn typed() -> Arguments {
        Arguments::from_arg_matches(&command().get_matches()).unwrap_or_else(|e| e.exit())
    }
}

#[derive(Debug, Args)]
pub struct PrepareArgs {
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

#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    /// Make a filter; if this was interrupted, the same command goes on with it
    #[command(after_help = FILTER_HELP)]
    Build {
        #[command(flatten)]
        input: KeyArgs,
        /// The file to create
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// The largest set of a partner that the filter is for
        #[arg(long = "for", value_name = "M", default_value_t = 1 << 20, value_parser = items)]
        queries: usize,
        /// The most items that the filter can have, for later insertions; partners learn it [default: as many as there are]
        #[arg(long, value_name = "N", value_parser = items)]
        capacity: Option<usize>,
        /// The encryption, paillier2048 with 112 bits of security
        #[arg(long, value_parser = cipher(), default_value = "elgamal")]
        cipher: &'static str,
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
        #[command(flatten)]
        input: KeyArgs,
        #[command(flatten)]
        own: FilterArgs,
    },
    /// Say what a filter, or the public part of one, is for, and check all of it
    #[command(after_help = FILTER_HELP)]
    Info {
        /// The filter, or its public part
        filter: PathBuf,
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
        #[command(flatten)]
        own: FilterArgs,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
}

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

#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Where the result goes [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The format of the result [default: by the extension of --output, otherwise text, like our file]. A count
    /// or sum is always CSV
    #[arg(long, value_name = "FORMAT", value_parser = format(Format::WRITTEN))]
    pub output_format: Option<Format>,
    /// Write CSV that is safe to open in a spreadsheet. Cells that would be taken for a formula get a leading
    /// apostrophe: those that begin with = + - @, a tab or a line end and are not a number
    #[arg(long)]
    pub for_spreadsheets: bool,
}

/// Our items, and the size that the peer is told.
#[derive(Debug, Args)]
pub struct InputArgs {
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
    /// The column separator, one character or "tab" [default: tab for .tsv and .tab; otherwise comma, unless only ; or a tab
    /// or | divides the first rows into columns]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,
    /// Our CSV has no header: its columns are called 1, 2, 3 and so on, and CSV with our columns has none either
    ///
    /// What has columns of its own keeps its header: a file of shares, the list of --ids, and numbers
    #[arg(long)]
    pub no_header: bool,
    /// The character in quoted cells of our CSV that makes an ordinary one of a quote or of itself after it, such as \
    #[arg(long, value_name = "CHAR", conflicts_with = "no_quotes")]
    pub escape: Option<String>,
    /// Quotes in our CSV are ordinary characters
    #[arg(long)]
    pub no_quotes: bool,
    /// A key in our CSV may go over several lines
    #[arg(long)]
    pub multiline_keys: bool,
    /// The text encoding: utf8 is checked, bytes are taken as they are; the same on both sides
    #[arg(long, value_enum, default_value = "utf8")]
    pub encoding: EncodingArg,
    /// What to do with a row that has an empty key column
    #[arg(long, value_enum, default_value = "error")]
    pub empty_keys: EmptyKeysArg,
    /// What to do with rows that repeat a key [default: first; for the sender of sum: error; all is for the receiver of
    /// intersect]
    #[arg(long, value_enum)]
    pub duplicates: Option<DuplicatesArg>,
}

#[derive(Debug, Args)]
pub struct CommonArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// The receiver gets the result, the sender contributes
    ///
    /// In sum, the sender gets the sum. Not with --parties, whose leader gets the result
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
    /// peer's name, and can read and change nothing of what is sent. A proxy that wants a password is not supported, and
    /// environment variables are not looked at. Not with --listen. Example: --connect host.example.org:7000 --proxy
    /// proxy.internal:3128
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["listen", "insecure_plaintext"])]
    pub proxy: Option<String>,
    /// Our identity file [default: veilset/identity.pem in your configuration folder]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Its name in the address book, or its fingerprint
    ///
    /// `veilset peer add` puts it into the address book. Its `veilset identity show` prints its fingerprint
    #[arg(long, value_name = "PEER", required_unless_present_any = ["insecure_plaintext", "parties"])]
    pub peer: Option<String>,
    /// The protocol; the same on all sides
    #[arg(long, value_parser = protocol_or_auto(), long_help = protocol_help())]
    pub protocol: Option<Wish>,
    /// With --protocol auto, of the receiver: what is to be small
    #[arg(long, value_parser = preference(), default_value = "time")]
    pub prefer: Preference,
    /// The assumptions that are acceptable, of ddh, lpn, rlwe and dcr [default: all]
    #[arg(long, value_name = "A,..", value_delimiter = ',')]
    pub assume: Vec<Assumption>,
    /// The group that the protocol works in; the same on both sides [default: the protocol's first]
    #[arg(long, value_parser = group(groups::ALL.iter().copied()), long_help = group_help())]
    pub group: Option<&'static str>,
    /// Number of computing threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Write a report; .html is a page to read
    ///
    /// A page to read and file if FILE ends in .html or .htm, otherwise JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
    /// How long to wait for the peer, or to keep trying to reach it, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub connect_timeout: Duration,
    /// How long the connection may be silent, in seconds. A peer that shows it is alive but does not advance the
    /// run is given up after ten times as long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub idle_timeout: Duration,
    /// The largest set of another party to accept: each of its keys costs time and about 100 bytes of memory, and in
    /// union up to twice --max-row in addition
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = items)]
    pub max_peer_items: usize,
    /// Accept a peer with fewer than 10 keys
    ///
    /// Where another party learns something of ours, a set of so few keys asks about each of them, and is refused without this
    /// option. min-peer-size in the policy, lower or higher, goes before it
    #[arg(long)]
    pub allow_small: bool,
    /// With `veilset check`: write what was agreed to this file. In a run: be held to the check in this file, so that the
    /// protocol is the one that it showed, and refuse other parties, terms, sizes and columns
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
    /// The encryption of dc17, paillier2048 with 112 bits of security; the same on both sides [default: elgamal, or that of
    /// --filter]
    #[arg(long, value_parser = cipher(), conflicts_with_all = ["group", "parties"])]
    pub cipher: Option<&'static str>,
    /// No encryption, no authentication; refused unless the address is a loopback address
    #[arg(long, conflicts_with = "peer")]
    pub insecure_plaintext: bool,
    #[command(flatten)]
    pub own: OwnArgs,
    /// The file that the options are from.
    #[arg(skip)]
    pub run_file: Option<PathBuf>,
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

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EncodingArg {
    Utf8,
    Bytes,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EmptyKeysArg {
    /// Stop
    Error,
    /// Omit the row
    Skip,
    /// Treat the empty cell as a value
    Keep,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum DuplicatesArg {
    /// Keep the first row
    First,
    /// Stop
    Error,
    /// Add up the values (sender of sum)
    Add,
    /// Keep all rows in the result (receiver of intersect)
    All,
}
