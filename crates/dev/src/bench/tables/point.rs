//! A point of a table: one run of `veilset-dev bench`, and its expected duration.

use super::papers::{Network, Row, Table};
use super::results::{Measured, Results};
use crate::args::{Arguments, BenchArgs, Command};
use clap::Parser;
use veilset::channel;
use veilset::error::{Error, Result};
use veilset::item::encode_key;
use veilset::operations::{Announced, Terms};
use veilset::planner::{Prices, Setting, Wanted};
use veilset::protocols::Choice;
use veilset::speed::Speeds;

/// A point to measure.
#[derive(Debug, Clone, Copy)]
pub struct Point<'a> {
    pub table: &'a Table,
    pub row: &'a Row,
    pub network: &'a Network,
    /// The binary logarithm of the size of each set.
    pub log_n: u32,
    /// Our threads, which may be fewer than the paper's.
    pub threads: u16,
}

impl<'p> Point<'p> {
    /// Returns the program's arguments.
    pub fn words(&self) -> Vec<String> {
        let Row { op, protocol, group, parties, options, .. } = self.row;
        let mut words: Vec<String> = ["bench", "--op", op, "--protocol", protocol].map(String::from).into();
        let mut add = |option: &str, value: String| words.extend([option.to_string(), value]);
        if let Some(group) = group {
            add("--group", group.clone());
        }
        if let Some(parties) = parties {
            add("--parties", parties.to_string());
        }
        add("--n", (1_u64 << self.log_n).to_string());
        add("--threads", self.threads.to_string());
        add("--net", self.network.net.clone());
        words.extend(options.iter().cloned());
        words.extend(self.table.one_sided.then(|| "--one-sided".to_string()));
        words.push("--json".into());
        words
    }

    /// Returns the measured point of this size and network with the most threads, up to the paper's.
    pub fn known(
        table: &'p Table,
        row: &'p Row,
        log_n: u32,
        network: &'p Network,
        results: &'p Results,
    ) -> Option<(Point<'p>, &'p Measured)> {
        (1..=row.threads).rev().find_map(|threads| {
            let point = Point { table, row, network, log_n, threads };
            Some((point, results.find(&point.words().join(" "), None)?))
        })
    }

    /// Returns the planner's prediction in seconds; `None` for several parties: the planner gives each its own machine, while
    /// here they share one.
    pub fn predicted(&self, speeds: &Speeds, cores: usize) -> Option<f64> {
        let a = parsed(&self.words()).ok()?;
        if a.parties.is_some() {
            return None;
        }
        let mut item = Vec::new();
        encode_key([vec![0; a.item_bytes].as_slice()], &mut item);
        let size = |size: usize| Announced { size, padded: false };
        let wanted = Wanted {
            operation: a.op,
            terms: Terms { max_row: item.len(), ..a.terms() },
            group: Some(a.group()),
            assume: None,
            sizes: [size(a.n), size(a.n_sender())],
        };
        let setting = Setting {
            speeds: [speeds.on(usize::from(self.threads)); 2],
            link: a.net.link.unwrap_or(channel::Network::NONE),
            prices: Prices::default(),
            shared: Some(cores),
        };
        let choice = Choice { protocol: a.protocol(), group: a.group() };
        wanted.predict(choice, &setting).map(|run| run.seconds)
    }
}

/// Parses these words as arguments of `bench`.
pub fn parsed(words: &[String]) -> Result<BenchArgs> {
    let words = ["veilset".to_string()].into_iter().chain(words.iter().cloned());
    match Arguments::try_parse_from(words).map(|all| all.command) {
        Ok(Command::Bench(a)) => a.single.ok_or_else(|| Error::Bug("a point without options".into())),
        Ok(_) => Err(Error::Bug("a point that is no benchmark".into())),
        Err(e) => Err(Error::bug(format!("a point that cannot be run: {e}"))),
    }
}
