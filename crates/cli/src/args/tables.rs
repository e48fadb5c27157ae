//! The arguments of `bench tables`.

use super::one_operation;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use veilset::operations::Operation;

/// What `bench` can do in addition to a single measurement.
#[derive(Debug, Subcommand)]
pub enum BenchTask {
    /// Measure the tables of the papers again, and write them with the papers' figures beside ours
    ///
    /// Each point is a run of `veilset bench`. It is kept in a file for each table as soon as it is there, so that the same
    /// command goes on where it broke off. In the end tables.md and tables.html show all that is in the folder.
    #[command(after_help = "Examples:
  veilset bench tables --quick
  veilset bench tables --paper krtw19 --table 4 --log-n 8,12,16 --out measured
  veilset bench tables --paper cm20 --most-seconds 60
  veilset bench tables --paper alone --runs 3 --beside ./veilset-avx2")]
    Tables(TablesArgs),
}

#[derive(Debug, Args, Default)]
pub struct TablesArgs {
    /// Only the tables of these papers; `alone` is no paper: each of our protocols, each party alone [default: all]
    #[arg(long, value_name = "P,..", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(["krtw19", "dc17", "cm20", "gnt23", "czzdl", "alone"]))]
    pub paper: Vec<String>,
    /// Only these tables, by their numbers, for instance 4 [default: all]
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
    /// At most this many threads a party, where a paper has more [default: one per core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Leave out what is expected to take longer [default: 10 with --quick, otherwise no limit]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub most_seconds: Option<f64>,
    /// Measure each point this often, and take the least of each figure
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100))]
    pub runs: usize,
    /// Measure this program too, for instance a build without AVX-512, and show it beside this one
    #[arg(long, value_name = "PROGRAM")]
    pub beside: Option<PathBuf>,
    /// Measure what is asked for anew, whether or not it is there
    #[arg(long)]
    pub again: bool,
    /// The folder of the results, created if missing
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    pub out: PathBuf,
    /// Print nothing but errors and the names of the pages
    #[arg(long)]
    pub quiet: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    number.ok_or_else(|| "give a number of seconds above 0".into())
}
