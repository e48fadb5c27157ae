//! The arguments as typed.

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;
use veilset::operations::{Operation, Role, Terms};
use veilset::params::filter::{Agreed, Filter};
use veilset::protocols::{self, Protocol, groups};
use veilset_app::options::{Net, arrange, group, items, one_operation, protocol, several};

/// Benchmarks, the tables of the papers and random runs of veilset, for its developers.
#[derive(Debug, Parser)]
#[command(name = "veilset-dev", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure a protocol on this machine
    ///
    /// Runs all parties on this machine over an emulated network, and prints time, CPU, bytes and memory.
    /// `veilset-dev bench tables` measures the tables of the papers.
    #[command(after_help = "Examples:
  veilset-dev bench --op union --protocol dh --n 65536 --threads 1 --net lan --one-sided --json
  veilset-dev bench --op union --parties 4 --n 65536 --threads 1 --net lan --json
  veilset-dev bench tables --quick")]
    Bench(BenchCommand),
    /// Run all parties on random inputs, and check the results
    ///
    /// Compares each result with the plain computation.
    #[command(after_help = "Example:
  veilset-dev soak --runs 10000")]
    Soak(SoakArgs),
    #[command(hide = true)]
    BenchParty(BenchPartyArgs),
    /// Print the kinds of runs of two parties that `bench` can measure, as JSON, for scripts
    #[command(hide = true)]
    BenchKinds,
}

/// The options of these commands that only `--help` shows.
const SHORTENED: [(&str, &[&str]); 2] = [
    ("bench", &["cipher", "filter_of_paper", "malicious_sender", "item_bytes", "overlap", "one_sided"]),
    ("tables", &["op", "net", "parties", "beside", "again", "quiet"]),
];

/// The program's command, with its help arranged.
pub fn command() -> clap::Command {
    arrange(Arguments::command(), &SHORTENED)
}

impl Arguments {
    /// Parses the arguments of this process. Errors end the program here, with exit code 2.
    pub fn typed() -> Arguments {
        Arguments::from_arg_matches(&command().get_matches()).unwrap_or_else(|e| e.exit())
    }
}

#[derive(Debug, Args)]
pub struct SoakArgs {
    /// Number of runs
    #[arg(long, value_name = "N")]
    pub runs: u64,
    /// The seed from which the runs are generated [default: random]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// The number of the first run, to repeat one that failed
    #[arg(long, value_name = "RUN", default_value_t = 0)]
    pub first: u64,
    /// Maximum number of keys per party
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub max_items: usize,
}

/// One measurement, or many.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchCommand {
    #[command(subcommand)]
    pub task: Option<BenchTask>,
    #[command(flatten)]
    pub single: Option<BenchArgs>,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The operation
    #[arg(long, value_parser = one_operation())]
    pub op: &'static Operation,
    /// The protocol [default: the first that fits the other options]
    #[arg(long, value_parser = protocol())]
    pub protocol: Option<&'static Protocol>,
    /// The group that the protocol works in [default: the protocol's first]
    #[arg(long, value_parser = group(groups::ALL.iter().copied()))]
    pub group: Option<&'static str>,
    /// The encryption of dc17: elgamal, paillier2048 or paillier3072, and for comparison paillier1024, which is not secure
    /// [default: elgamal]
    #[arg(long, value_parser = measured_cipher, conflicts_with = "group")]
    pub cipher: Option<&'static str>,
    /// For dc17: a filter of the paper's size, which errs too often
    #[arg(long)]
    pub filter_of_paper: bool,
    /// Protect the receiver from a malicious sender (cm20)
    #[arg(long)]
    pub malicious_sender: bool,
    /// Run this many parties by a protocol for several (union, intersect, count)
    #[arg(long, value_name = "N", value_parser = several())]
    pub parties: Option<u8>,
    /// Number of items of the receiver; with --parties, of each party
    #[arg(long, value_name = "N", value_parser = items)]
    pub n: usize,
    /// Number of items of the sender [default: as many as the receiver's]
    #[arg(long, value_name = "M", value_parser = items)]
    pub n_sender: Option<usize>,
    /// Bytes per item, from 8 to 16000
    #[arg(long, value_name = "B", default_value_t = 16, value_parser = item_bytes())]
    pub item_bytes: usize,
    /// The fraction of the smaller set that both have; with --parties, of each set that all have
    #[arg(long, value_name = "F", default_value_t = 0.5, value_parser = fraction)]
    pub overlap: f64,
    /// Threads per party [default: one per core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// The emulated network: none, lan (10 Gbps, 0.1 ms), wan (50 Mbps, 80 ms), or like 400Mbps,40ms
    #[arg(long, default_value = "none")]
    pub net: Net,
    /// Run each party once more, alone against a recording, and report the seconds and CPU seconds of that run
    #[arg(long)]
    pub one_sided: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn measured_cipher(name: &str) -> Result<&'static str, String> {
    if name == groups::PAILLIER_1024 { Ok(groups::PAILLIER_1024) } else { groups::cipher(name) }
}

impl BenchArgs {
    pub fn n_sender(&self) -> usize {
        self.n_sender.unwrap_or(self.n)
    }

    pub fn protocol(&self) -> &'static Protocol {
        let of_filters = self.cipher.is_some() || self.filter_of_paper;
        let filtering = if of_filters { protocols::filtering(self.op) } else { None };
        let protocol = self.protocol.or(filtering);
        protocol.unwrap_or_else(|| protocols::default_for(self.op, &self.asked()))
    }

    /// Returns the terms that determine the protocol.
    fn asked(&self) -> Terms {
        Terms { malicious_sender: self.malicious_sender, ..Terms::default() }
    }

    /// Returns the terms of the run, with the protocol's disclosures to the sender: a run on random items needs no agreement on
    /// them.
    pub fn terms(&self) -> Terms {
        let reveal_count = self.protocol().offer(self.op).is_some_and(|offer| offer.reveals_count);
        let filter = self.filter_of_paper.then(|| Agreed::fresh(Filter::of_paper(self.n)));
        Terms { reveal_count, filter, ..self.asked() }
    }

    pub fn group(&self) -> &'static str {
        self.group.or(self.cipher).unwrap_or(self.protocol().group())
    }
}

/// Parses the bytes per item. Fewer than 8 would not give enough distinct items.
fn item_bytes() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(8..=16_000)
}

fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|f| (0.0..=1.0).contains(f));
    number.ok_or_else(|| "give a fraction from 0 to 1".into())
}

/// The party of a benchmark that a child runs: a role in a run of two, otherwise a number.
#[derive(Debug, Clone, Copy)]
pub enum Who {
    Role(Role),
    Number(u8),
}

impl FromStr for Who {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Who::Number).or_else(|_| text.parse().map(Who::Role))
    }
}

/// The arguments of a child of `veilset-dev bench`: these, and those of `bench`.
#[derive(Debug, Args)]
pub struct BenchPartyArgs {
    pub folder: PathBuf,
    #[arg(long)]
    pub who: Who,
    #[arg(long)]
    pub seed: u128,
    /// The port at which the receiver listens, for the sender
    #[arg(long)]
    pub port: Option<u16>,
    /// Run alone against the recording
    #[arg(long)]
    pub alone: bool,
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// The tasks of `bench` in addition to a single measurement.
#[derive(Debug, Subcommand)]
pub enum BenchTask {
    /// Measure the tables of the papers again, and write them with the papers' figures beside ours
    ///
    /// Each point is a run of `veilset-dev bench`. It is written to the file of its table as soon as it is measured, so that
    /// the same command resumes where it was interrupted. In the end tables.md and tables.html show all results in the folder.
    #[command(after_help = "Examples:
  veilset-dev bench tables --quick
  veilset-dev bench tables --paper krtw19 --table 4 --log-n 8,12,16 --out measured
  veilset-dev bench tables --paper cm20 --most-seconds 60
  veilset-dev bench tables --paper alone --runs 3 --beside target/avx2/release/veilset-dev")]
    Tables(TablesArgs),
}

#[derive(Debug, Args, Default)]
pub struct TablesArgs {
    /// Only the tables of these papers; `alone` is not a paper, but each party of each of our protocols alone [default: all]
    #[arg(long, value_name = "P,..", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(["krtw19", "dc17", "cm20", "gnt23", "czzdl", "alone"]))]
    pub paper: Vec<String>,
    /// Only these tables, by their numbers or names, for instance 4 or 2-malicious [default: all]
    #[arg(long, value_name = "T,..", value_delimiter = ',')]
    pub table: Vec<String>,
    /// Only the small sizes, and only what is expected to take at most --most-seconds: a few minutes for all papers
    #[arg(long)]
    pub quick: bool,
    /// Only sets of 2^N items, of the sizes that a table has [default: all of them]
    #[arg(long, value_name = "N,..", value_delimiter = ',', conflicts_with = "quick",
        value_parser = RangedU64ValueParser::<u32>::new().range(0..=28))]
    pub log_n: Vec<u32>,
    /// Only these operations
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = one_operation())]
    pub op: Vec<&'static Operation>,
    /// Only these networks, by their names in the table, for instance LAN
    #[arg(long, value_name = "NET,..", value_delimiter = ',')]
    pub net: Vec<String>,
    /// Only runs of this many parties
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    pub parties: Vec<u8>,
    /// At most this many threads per party, where a paper has more [default: one per core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Leave out points that are expected to take longer [default: 10 with --quick, otherwise no limit]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub most_seconds: Option<f64>,
    /// Measure each point this often, and take the least of each figure; with several parties, of their seconds only
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100))]
    pub runs: usize,
    /// Measure this program too, for instance a build without AVX-512, and show it beside this one
    #[arg(long, value_name = "PROGRAM")]
    pub beside: Option<PathBuf>,
    /// Measure all requested points anew, including those that have results
    #[arg(long)]
    pub again: bool,
    /// The folder of the results, created if missing
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    pub out: PathBuf,
    /// Print nothing but errors, the numbers of points and the names of the pages
    #[arg(long)]
    pub quiet: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    number.ok_or_else(|| "give a number of seconds above 0".into())
}
