//! The arguments of `bench`, except its tables, and of `soak`, `plan` and `calibrate`.

use super::{BenchTask, group, items, one_operation, preference, protocol, role};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use std::path::PathBuf;
use std::str::FromStr;
use veilset::channel::Network;
use veilset::net::Roster;
use veilset::operations::{Operation, Role, Terms};
use veilset::params::filter::{Agreed, Filter};
use veilset::planner::{Preference, Prices};
use veilset::protocols::{self, Assumption, Protocol, groups};
use veilset::session::shards::MAX_SHARDS;

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
    /// The protocol [default: as in a run]
    #[arg(long, value_parser = protocol())]
    pub protocol: Option<&'static Protocol>,
    /// The group that the protocol works in [default: the protocol's first]
    #[arg(long, value_parser = group(groups::ALL.iter().copied()))]
    pub group: Option<&'static str>,
    /// The encryption of dc17: elgamal, paillier2048 or paillier3072, and for comparison paillier1024, which is not secure
    /// [default: elgamal]
    #[arg(long, value_parser = measured_cipher, conflicts_with = "group")]
    pub cipher: Option<&'static str>,
    /// For dc17: a filter of the size that the paper has, which errs too often
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
    /// Run each party once more, alone against a recording, and report the CPU seconds of that run
    #[arg(long)]
    pub one_sided: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// The file to write [default: veilset/speeds.json in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub speeds: Option<PathBuf>,
    /// Print one JSON object: nanoseconds of each primitive
    #[arg(long)]
    pub json: bool,
    /// Print nothing but the figures and errors
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The operation
    #[arg(long, value_parser = one_operation())]
    pub op: &'static Operation,
    /// Number of our items
    #[arg(long, value_name = "N", value_parser = items)]
    pub n: usize,
    /// Number of the peer's items [default: as many as ours]
    #[arg(long, value_name = "M", value_parser = items)]
    pub n_peer: Option<usize>,
    /// Our role
    #[arg(long, value_parser = role(), default_value = "receiver")]
    pub role: Role,
    /// The parties of a run of several, with --n items each
    #[arg(long, value_name = "P", value_parser = several(),
          conflicts_with_all = ["n_peer", "role", "group", "malicious_sender", "reveal_count_to_sender", "both", "with_columns",
                                "shards", "shared_cores"])]
    pub parties: Option<u8>,
    /// The shards of a job
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_SHARDS)))]
    pub shards: Option<u32>,
    /// The network between us: lan (10 Gbps, 0.1 ms), wan (50 Mbps, 80 ms), none, or like 400Mbps,40ms
    #[arg(long, default_value = "lan")]
    pub net: Net,
    /// Threads of each party [default: one per core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// What is to be small
    #[arg(long, value_parser = preference(), default_value = "time")]
    pub prefer: Preference,
    /// The assumptions that are acceptable, of ddh, lpn, rlwe and dcr [default: all]
    #[arg(long, value_name = "A,..", value_delimiter = ',')]
    pub assume: Vec<Assumption>,
    /// The group that the protocol is to work in [default: the protocol's first]
    #[arg(long, value_parser = group(groups::ALL.iter().copied()))]
    pub group: Option<&'static str>,
    /// Protect the receiver from a malicious sender
    #[arg(long)]
    pub malicious_sender: bool,
    /// Tell the sender how many keys match
    #[arg(long)]
    pub reveal_count_to_sender: bool,
    /// Give the result to both parties
    #[arg(long)]
    pub both: bool,
    /// Send columns with the keys, so that rows are as long as --max-row says
    #[arg(long)]
    pub with_columns: bool,
    /// The bytes of the longest row that is sent
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub max_row: u32,
    /// The cores of one machine that both parties share, as in a benchmark [default: each has its own machine]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub shared_cores: Option<u16>,
    /// The price of an hour of each party's machine, in dollars
    #[arg(long, value_name = "PRICE", default_value_t = Prices::default().hour, value_parser = price)]
    pub dollars_per_hour: f64,
    /// The price of a gigabyte that a party sends, in dollars
    #[arg(long, value_name = "PRICE", default_value_t = Prices::default().gigabyte, value_parser = price)]
    pub dollars_per_gigabyte: f64,
    /// The file of this machine's speeds, which `veilset calibrate` writes [default: veilset/speeds.json in
    /// $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub speeds: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl PlanArgs {
    pub fn n_peer(&self) -> usize {
        self.n_peer.unwrap_or(self.n)
    }

    pub fn terms(&self) -> Terms {
        Terms {
            malicious_sender: self.malicious_sender,
            reveal_count: self.reveal_count_to_sender,
            both: self.both,
            payload: self.with_columns,
            max_row: self.max_row as usize,
            shards: self.shards.unwrap_or(0),
            several: self.parties.is_some(),
            ..Terms::default()
        }
    }
}

fn price(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    number.ok_or_else(|| "give a number of dollars, 0 or more".into())
}

fn measured_cipher(name: &str) -> Result<&'static str, String> {
    if name == groups::PAILLIER_1024 { Ok(groups::PAILLIER_1024) } else { groups::cipher(name) }
}

/// The number of parties of a run of several.
fn several() -> RangedU64ValueParser<u8> {
    RangedU64ValueParser::new().range(2..=Roster::MOST as u64)
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

    /// The terms that choose the protocol.
    fn asked(&self) -> Terms {
        Terms { malicious_sender: self.malicious_sender, ..Terms::default() }
    }

    /// Those terms, and what the protocol reveals to the sender: a run of random items needs no agreement on that.
    pub fn terms(&self) -> Terms {
        let reveal_count = self.protocol().offer(self.op).is_some_and(|offer| offer.reveals_count);
        let filter = self.filter_of_paper.then(|| Agreed::fresh(Filter::of_paper(self.n)));
        Terms { reveal_count, filter, ..self.asked() }
    }

    pub fn group(&self) -> &'static str {
        self.group.or(self.cipher).unwrap_or(self.protocol().group())
    }
}

/// Fewer than 8 bytes would not give enough distinct items.
fn item_bytes() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(8..=16_000)
}

fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|f| (0.0..=1.0).contains(f));
    number.ok_or_else(|| "give a fraction from 0 to 1".into())
}

/// An emulated network, and how it was typed.
#[derive(Debug, Clone)]
pub struct Net {
    pub typed: String,
    pub link: Option<Network>,
}

impl FromStr for Net {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let link = if text == "none" { None } else { Some(text.parse()?) };
        Ok(Net { typed: text.into(), link })
    }
}

/// Which party of a benchmark a child is: a role in a run of two, otherwise a number.
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

/// What `veilset bench` passes to its children: its own arguments, and these.
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
