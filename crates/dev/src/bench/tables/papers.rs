//! The papers' tables: the measured points and the papers' figures, as data in one file per paper.

use serde::Deserialize;
use std::collections::BTreeMap;
use veilset::error::{Error, Result};

/// The files. The last one does not belong to a paper.
const FILES: [(&str, &str); 6] = [
    ("krtw19", include_str!("krtw19.toml")),
    ("dc17", include_str!("dc17.toml")),
    ("cm20", include_str!("cm20.toml")),
    ("gnt23", include_str!("gnt23.toml")),
    ("czzdl", include_str!("czzdl.toml")),
    ("alone", include_str!("alone.toml")),
];

/// A paper and its tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    pub name: String,
    pub title: String,
    /// Authors and title of the paper; "Ours" if there is none.
    pub source: String,
    /// The machine that the paper measured on; empty if there is no paper.
    pub machine: String,
    /// Notes that apply to all tables.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The networks of all tables that name none.
    pub networks: Vec<Network>,
    pub tables: Vec<Table>,
}

/// A network with the paper's name for it and its value for `--net`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub name: String,
    pub net: String,
}

/// A table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The table's number in the paper, with a suffix if several tables share it. If the paper has no such table, a word, or
    /// the number of a similar one with a suffix.
    pub name: String,
    pub title: String,
    /// The source of the figures, or a note that the paper has none.
    pub source: String,
    /// Binary logarithms of the sizes of the sets.
    pub sizes: Vec<u32>,
    /// The sizes for `--quick`; a row with its own sizes takes its first.
    pub quick: Vec<u32>,
    #[serde(default)]
    pub networks: Vec<Network>,
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether each party also runs alone.
    #[serde(default)]
    pub one_sided: bool,
    /// The drawing of dollars over prices, if there is one.
    pub dollars: Option<Dollars>,
    pub rows: Vec<Row>,
    /// Other protocols that the paper measured, and that we do not have.
    #[serde(default)]
    pub others: Vec<Other>,
}

/// A drawing of dollars over the ratio of prices.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dollars {
    pub source: String,
    pub networks: Vec<String>,
}

/// Points that differ only in size and network: one for each size and each network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub op: String,
    pub protocol: String,
    pub group: Option<String>,
    /// The threads of a party: the paper's, if it has the row.
    pub threads: u16,
    /// The number of parties in a run of several.
    pub parties: Option<u8>,
    /// Further options of `bench`.
    #[serde(default)]
    pub options: Vec<String>,
    /// The row's own sizes, if they differ from the table's.
    pub sizes: Option<Vec<u32>>,
    /// The paper's seconds for each network, in the order of the sizes.
    #[serde(default)]
    pub seconds: BTreeMap<String, Vec<f64>>,
    /// The paper's megabytes, in the order of the sizes.
    #[serde(default)]
    pub megabytes: Vec<f64>,
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Another protocol of the paper's table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    pub name: String,
    pub seconds: BTreeMap<String, Vec<f64>>,
    pub megabytes: Vec<f64>,
}

/// Returns all papers.
pub fn all() -> Result<Vec<Paper>> {
    let parsed =
        |(name, text)| toml::from_str(text).map_err(|e| Error::bug(format!("tables of {name}: {e}")));
    FILES.into_iter().map(parsed).collect()
}

impl Table {
    /// Returns the table's own networks, or the paper's.
    pub fn networks<'a>(&'a self, paper: &'a Paper) -> &'a [Network] {
        if self.networks.is_empty() { &paper.networks } else { &self.networks }
    }

    /// Returns the sizes of a row.
    pub fn sizes<'a>(&'a self, row: &'a Row) -> &'a [u32] {
        row.sizes.as_deref().unwrap_or(&self.sizes)
    }

    /// Returns whether the size is one of the small ones of a row.
    pub fn is_quick(&self, row: &Row, log_n: u32) -> bool {
        match &row.sizes {
            Some(sizes) => sizes.first() == Some(&log_n),
            None => self.quick.contains(&log_n),
        }
    }

    /// Returns the paper's seconds and megabytes for a point.
    pub fn figures(&self, row: &Row, log_n: u32, network: &str) -> (Option<f64>, Option<f64>) {
        let at = |list: &[f64]| {
            let i = self.sizes(row).iter().position(|size| *size == log_n)?;
            list.get(i).copied()
        };
        (row.seconds.get(network).and_then(|list| at(list)), at(&row.megabytes))
    }
}

impl Row {
    /// Describes the row in words, without threads, sizes and some of the options.
    pub fn what(&self) -> String {
        let group = self.group.iter().map(|group| format!(" over {group}"));
        let parties = self.parties.iter().map(|parties| format!(", {parties} parties"));
        let hidden = ["--overlap", "0.2", "--filter-of-paper", "--cipher"];
        let options = self.options.iter().filter(|option| !hidden.contains(&option.as_str()));
        let options = options.map(|option| match option.as_str() {
            "--malicious-sender" => " against a malicious sender".to_string(),
            other => format!(", {other}"),
        });
        let more: String = group.chain(options).chain(parties).collect();
        format!("{} by {}{more}", self.op, self.protocol)
    }

    /// Returns whether both rows run the same, except perhaps for threads and sizes.
    pub fn is_like(&self, other: &Row) -> bool {
        self.what() == other.what() && self.options == other.options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tables::point::{Point, parsed};
    use veilset::protocols;

    #[test]
    fn the_papers_figures_have_the_shape_of_their_tables() {
        let papers = all().unwrap();
        assert_eq!(papers.len(), FILES.len());
        for (paper, (name, _)) in papers.iter().zip(FILES) {
            assert_eq!(paper.name, name);
            let mut names: Vec<&str> = paper.tables.iter().map(|table| table.name.as_str()).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), paper.tables.len(), "{name}: tables of one name");
            for table in &paper.tables {
                let at = format!("{name}, table {}", table.name);
                assert!(!table.source.is_empty() && !table.rows.is_empty(), "{at}");
                assert!(table.quick.iter().all(|n| table.sizes.contains(n)), "{at}");
                let networks = table.networks(paper);
                let known = |name: &String| networks.iter().any(|network| network.name == *name);
                assert!(table.dollars.iter().flat_map(|dollars| &dollars.networks).all(known), "{at}");
                let figures = table.rows.iter().map(|row| (&row.seconds, &row.megabytes, table.sizes(row)));
                let others = table.others.iter().map(|o| (&o.seconds, &o.megabytes, &table.sizes[..]));
                for (seconds, megabytes, sizes) in figures.chain(others) {
                    assert!(!sizes.is_empty() && sizes.is_sorted(), "{at}");
                    assert!(seconds.keys().all(known), "{at}: {:?}", seconds.keys());
                    assert!(seconds.values().all(|list| list.len() == sizes.len()), "{at}");
                    assert!(megabytes.is_empty() || megabytes.len() == sizes.len(), "{at}");
                    assert!(seconds.values().flatten().chain(megabytes).all(|x| *x > 0.0), "{at}");
                    // A larger set takes longer, so many a mistyped figure is noticed.
                    assert!(seconds.values().all(|list| list.is_sorted()) && megabytes.is_sorted(), "{at}");
                }
            }
        }
    }

    #[test]
    fn all_rows_are_commands_of_this_program() {
        for paper in all().unwrap() {
            for table in &paper.tables {
                for (row, network) in
                    table.rows.iter().flat_map(|row| table.networks(&paper).iter().map(move |n| (row, n)))
                {
                    let point =
                        Point { table, row, network, log_n: table.sizes(row)[0], threads: row.threads };
                    let a = parsed(&point.words()).unwrap();
                    let protocol = a.protocol.unwrap();
                    assert_eq!((a.op.name, protocol.name), (&*row.op, &*row.protocol));
                    let offered = match row.parties {
                        Some(_) => {
                            protocols::multiparty_for(a.op).is_some_and(|one| one.name == protocol.name)
                        }
                        None => protocol
                            .offer(a.op)
                            .is_some_and(|offer| offer.malicious_sender >= a.malicious_sender),
                    };
                    assert!(offered, "{} {}: {}", paper.name, table.name, row.what());
                    assert!(row.group.is_none() || protocol.works_in().any(|group| group == a.group()));
                }
            }
        }
    }
}
