//! The arguments of `plan` and `calibrate`.

use clap::Args;
use std::path::PathBuf;
use veilset::operations::{Operation, Role, Terms};
use veilset::planner::{Preference, Prices};
use veilset::protocols::{Assumption, groups};
use veilset::sharded::run::MAX_SHARDS;
use veilset_app::options::{Net, group, items, one_operation, preference, role, several};

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
    /// The number of parties, with --n items each
    #[arg(long, value_name = "P", value_parser = several(),
          conflicts_with_all = ["n_peer", "role", "group", "malicious_sender", "reveal_count_to_sender", "both", "with_columns",
                                "shards", "shared_cores"])]
    pub parties: Option<u8>,
    /// The number of shards
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_SHARDS)))]
    pub shards: Option<u32>,
    /// The network between us: lan (10 Gbps, 0.1 ms), wan (50 Mbps, 80 ms), none, or like 400Mbps,40ms
    #[arg(long, default_value = "lan")]
    pub net: Net,
    /// Threads of each party [default: one per core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// What to minimise
    #[arg(long, value_parser = preference(), default_value = "time")]
    pub prefer: Preference,
    /// The assumptions that are acceptable, of ddh, lpn, rlwe and dcr [default: all]
    #[arg(long, value_name = "A,..", value_delimiter = ',')]
    pub assume: Vec<Assumption>,
    /// The group that the protocol works in [default: the protocol's first]
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
    /// Send columns with the keys; rows then have the length of --max-row in intersect too, as they always have in union and
    /// share
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
