//! Our side's data: from the file to the request, and from the outcome to the written result.

use super::{InputTable, Job, Phase, Watch, name};
use crate::artefact::Ledger;
use crate::error::{Error, Result};
use crate::item::Items;
use crate::net::Identity;
use crate::operations::{Learned, Role, Shape};
use crate::params::MAX_SET;
use crate::rng::Prng;
use crate::session::report::{LeftOut, Report, decimal};
use crate::session::run::{Outcome, Prepared, Request};
use crate::table::{
    Destination, Format, KeyedSet, Layout, SentColumns, Table, check_max_row, check_output, check_sum_bound,
    keyed_set, payloads, values, write_keys, write_rows, write_union,
};
use crate::threads::Threads;

/// A table, and the set of its keys.
#[non_exhaustive]
pub struct Keys {
    /// The table.
    pub table: Table,
    /// The positions of its key columns.
    pub columns: Vec<usize>,
    /// The set, and the rows that its items came from.
    pub keyed: KeyedSet,
    /// How the keys were normalised and encoded, as a description that must be the same on both sides.
    pub compared: String,
}

impl InputTable {
    /// Reads only the keys, for preparing a half.
    ///
    /// # Errors
    /// [`Error::Input`] for the table, with file, row and column; those of the watch.
    pub fn load(&self, watch: &Watch<'_>, threads: &Threads) -> Result<Keys> {
        let table = self.table(Some(&self.key), watch)?;
        (watch.begins)(Phase::Sorting);
        threads.run(|| self.keys(table, false))
    }

    /// Reads these columns, or all if `None`.
    fn table(&self, columns: Option<&[String]>, watch: &Watch<'_>) -> Result<Table> {
        (watch.begins)(Phase::Reading);
        Table::read_watched(&self.input, &self.read, columns, watch.read)
    }

    /// The set of the table's keys; `valued` tells whether they have values.
    fn keys(&self, table: Table, valued: bool) -> Result<Keys> {
        let columns = table.columns(&self.key)?;
        let keyed = keyed_set(&table, &columns, self.normalise, self.empty_keys, self.duplicates(valued))?;
        if keyed.set.len() > MAX_SET {
            let what = format!("{} keys are more than this version supports ({MAX_SET})", keyed.set.len());
            return Err(Error::input(&self.input, what, "Split the file"));
        }
        Ok(Keys { table, columns, keyed, compared: self.normalise.name(self.read.encoding) })
    }
}

/// A job's data, checked.
pub struct Data<'a> {
    job: &'a Job,
    keys: Keys,
    values: Vec<i128>,
    payloads: Items,
    /// The format in which rows of a result are written.
    output_format: Format,
}

impl<'a> Data<'a> {
    pub(super) fn load(job: &'a Job, watch: &Watch<'_>) -> Result<Data<'a>> {
        // A result of rows has all our columns; otherwise only a few are needed.
        let needed: Vec<String> =
            job.source.key.iter().chain(&job.values).chain(job.sends()).cloned().collect();
        let needed = if job.shape().has_rows() { None } else { Some(needed.as_slice()) };
        Data::of(job, job.source.table(needed, watch)?, watch)
    }

    /// The data of a table that the caller has read. The job's file is not used.
    ///
    /// # Errors
    /// Those of [`Job::load`].
    pub fn of(job: &'a Job, mut table: Table, watch: &Watch<'_>) -> Result<Data<'a>> {
        (watch.begins)(Phase::Sorting);
        if let (None, Some(path)) = (job.source.read.delimiter, &job.output) {
            table.written_as(path);
        }
        let output_format = output_format(job, &table)?;
        let keys = job.threads.run(|| job.source.keys(table, job.has_values()))?;
        let Keys { table, keyed, .. } = &keys;
        let payloads = match job.sends() {
            [] => Items::new(),
            sent => payloads(table, keyed, &table.columns(sent)?)?,
        };
        let keys_travel = job.operation.uses.items_travel(job.role, job.terms.both);
        check_max_row(table, keyed, keys_travel, &payloads, job.terms.max_row)?;
        let mut all = Vec::new();
        if let Some(name) = &job.values {
            for column in table.columns(std::slice::from_ref(name))? {
                all = values(table, keyed, column, job.value_scale)?;
                check_sum_bound(table, column, &all, job.terms.modulus)?;
            }
        }
        Ok(Data { job, values: all, payloads, output_format, keys })
    }

    /// Our table and its set.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The request of the job.
    pub fn request(&self) -> Request<'_> {
        let job = self.job;
        Request {
            protocol: job.protocol,
            key_columns: self.keys.columns.len(),
            normalisation: &self.keys.compared,
            max_peer_items: job.max_peer_items,
            pad_to: job.source.pad_to,
            sent_columns: &job.sent_columns,
            payloads: &self.payloads,
            values: &self.values,
            value_scale: job.value_scale,
            terms: job.terms,
            threads: &job.threads,
            ..Request::new(job.operation, job.role, &self.keys.keyed.set)
        }
    }

    /// Does the work whose duration depends on our data, before connecting: hashes the keys, or opens the prepared
    /// half, which `identity` decrypts.
    ///
    /// # Errors
    /// Those of [`Request::prepare`] and [`Request::prepare_with`]; [`Error::Usage`] if there is a half but no
    /// identity.
    pub fn prepare(
        &self,
        identity: Option<&Identity>,
        watch: &Watch<'_>,
        rng: &mut Prng,
    ) -> Result<Prepared<'_>> {
        (watch.begins)(Phase::Hashing);
        match (&self.job.prepared, identity) {
            (None, _) => self.request().prepare(rng),
            (Some((half, ledger)), Some(identity)) => {
                self.request().prepare_with(half, &Ledger::at(ledger), identity)
            }
            (Some(_), None) => Err(Error::Usage(
                "a prepared half is encrypted under an identity, but this run has none. Omit `prepared`, or \
                 run over TLS"
                    .into(),
            )),
        }
    }

    /// Adds to the report what is known about our table, and where the result is.
    pub fn complete(&self, report: &mut Report) {
        let job = self.job;
        report.input = Some(name(&job.source.input));
        report.output = job.has_result().then(|| job.output.as_deref().map_or_else(|| "-".into(), name));
        let KeyedSet { duplicates, skipped, .. } = self.keys.keyed;
        report.left_out = LeftOut { duplicates, skipped };
    }

    /// Writes the result. How long this takes depends on the result, so do it after the connection is closed.
    ///
    /// # Errors
    /// [`Error::Output`], and [`Error::Peer`] for malformed rows of the peer.
    pub fn write(&self, outcome: &Outcome, output: &mut Destination) -> Result<()> {
        let (job, Keys { table, columns, keyed, .. }) = (self.job, &self.keys);
        let format = Layout { format: self.output_format, for_spreadsheets: job.for_spreadsheets };
        let numbers = |output: &mut Destination, header: &str, row: String| {
            writeln!(output.writer(), "{header}\n{row}").map_err(|e| output.unwritable(&e))
        };
        let sent = |payloads| {
            let names = job.received_as.as_slice();
            (!names.is_empty()).then_some(SentColumns { names, payloads })
        };
        let peer = outcome.parties.peer();
        let theirs = peer.announced;
        let written = match &outcome.learned {
            Learned::Nothing => Ok(()),
            Learned::Matching(matching) => {
                // Ascending, like the positions.
                let rows: Vec<usize> =
                    matching.positions.iter().map(|&i| keyed.rows[i as usize] as usize).collect();
                write_rows(table, &rows, sent(&matching.payloads), format, output.writer())
            }
            Learned::New(new) => {
                write_union(table, columns, keyed, &new.items, sent(&new.payloads), format, output.writer())
            }
            Learned::Union(items) => write_keys(table, columns, items, format, output.writer()),
            Learned::Matches(n) if job.shape() == Shape::MatchesAndUnion && !theirs.padded => {
                let union = (keyed.set.len() + theirs.size).saturating_sub(*n as usize);
                numbers(output, "matches,union_size", format!("{n},{union}"))
            }
            Learned::Matches(n) => numbers(output, "matches", n.to_string()),
            // Withheld numbers are empty cells, so that these columns contain nothing but numbers.
            Learned::Sum(sum) => {
                let row = match sum {
                    Some(s) => format!("{},{},false", s.matches, decimal(s.sum, job.value_scale)),
                    None => ",,true".into(),
                };
                numbers(output, "matches,sum,below_minimum", row)
            }
        };
        // Malformed rows came from the peer.
        written.map_err(|e| e.by(peer.seat))
    }
}

impl Job {
    /// Our columns that are sent.
    fn sends(&self) -> &[String] {
        if self.role == Role::Sender { &self.sent_columns } else { &[] }
    }
}

/// The format of the result, if it can be written in it.
fn output_format(job: &Job, table: &Table) -> Result<Format> {
    let received = &job.received_as;
    let columns =
        if job.shape().has_rows() { table.header().len() + received.len() } else { job.source.key.len() };
    let format = job.written_as(table.format(), columns);
    if job.shape().has_rows() {
        job.check_names(table.header())?;
        check_output(table, received, format)?;
    }
    match job.for_spreadsheets && format != Format::Csv {
        true => Err(Error::Usage(format!(
            "`for_spreadsheets` is for CSV, but the result is written as {format}. Omit it, or add \
             `output_format=csv`"
        ))),
        false => Ok(format),
    }
}
