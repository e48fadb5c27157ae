//! Our side's data: from the file to the request, and from what came of it to the result.

use crate::columns;
use crate::plan::{Plan, Source};
use veilset::error::{Error, Result};
use veilset::item::Items;
use veilset::operations::{Learned, Operation, Role};
use veilset::params::MAX_SET;
use veilset::session::report::decimal;
use veilset::session::run::{Outcome, Request};
use veilset::table::{
    Duplicates, Format, KeyedSet, Layout, Output, Sent, Table, check_max_row, check_output, check_sum_bound,
    keyed_set, payloads, values, write_keys, write_rows, write_union,
};
use veilset::threads::Threads;

/// Our side's data, checked.
pub struct Data {
    table: Table,
    key: Vec<usize>,
    pub keyed: KeyedSet,
    pub values: Vec<i128>,
    payloads: Items,
    /// What is compared, for the agreement.
    compared: String,
    /// What rows of a result are written as.
    output_format: Format,
}

impl Data {
    /// Reads and checks all that the plan needs. `step` hears how many bytes were read, and may end the reading;
    /// `begins` hears what comes next that may take long.
    pub fn load(
        plan: &Plan,
        threads: &Threads,
        step: &dyn Fn(u64) -> Result<()>,
        begins: &dyn Fn(String),
    ) -> Result<Data> {
        // A result of rows has all our columns; everything else needs few.
        let sends = plan.role == Role::Sender;
        let sent: &[String] = if sends { &plan.sent_columns } else { &[] };
        let source = &plan.source;
        let needed: Vec<String> = source.key.iter().chain(&plan.values).chain(sent).cloned().collect();
        let needed = if plan.has_rows() { None } else { Some(needed.as_slice()) };
        let mut table = Table::read_watched(&source.input, &source.read, needed, step)?;
        begins(format!("sorting the keys of {}", table.name()));
        if let (None, Some(path)) = (source.read.delimiter, &plan.output) {
            table.written_as(path);
        }
        let received = &plan.received_as;
        let columns = if plan.has_rows() { table.header().len() + received.len() } else { source.key.len() };
        let output_format = plan.written_as(table.format(), columns);
        if plan.has_rows() {
            check_names(plan, &table)?;
            check_output(&table, received, output_format)?;
        }
        if plan.for_spreadsheets && output_format != Format::Csv {
            return Err(Error::Usage(format!(
                "--for-spreadsheets is for CSV, and the result is written as {output_format}. Omit it, or add \
                 --output-format csv"
            )));
        }
        let (key, keyed) = threads.run(|| keys(&table, source))?;
        let payloads = match sent {
            [] => Items::new(),
            sent => payloads(&table, &keyed, &table.columns(sent)?)?,
        };
        // Keys travel in union, those of the receiver only where it sends the union on.
        let keys_travel = plan.operation == Operation::Union && (sends || plan.terms.both);
        check_max_row(&table, &keyed, keys_travel, &payloads, plan.terms.max_row)?;
        let values = match &plan.values {
            Some(name) => {
                let mut all = Vec::new();
                for column in table.columns(std::slice::from_ref(name))? {
                    all = values(&table, &keyed, column, plan.value_scale)?;
                    check_sum_bound(&table, column, &all, plan.terms.modulus)?;
                }
                all
            }
            None => Vec::new(),
        };
        let compared = source.normalise.name(source.read.encoding);
        Ok(Data { table, key, keyed, values, payloads, compared, output_format })
    }

    /// Says what was read.
    pub fn tell(&self, plan: &Plan, say: &dyn Fn(&str)) {
        tell(&self.table, &self.keyed, &plan.source, say);
        for unread in self.table.unread() {
            let (file, name) = (self.table.name(), &unread.name);
            say(&format!(
                "warning: {file}, column \"{name}\": it will be missing in the result, because {}",
                unread.what
            ));
        }
    }

    /// What we ask for.
    pub fn request<'a>(&'a self, plan: &'a Plan) -> Request<'a> {
        Request {
            protocol: plan.protocol,
            key_columns: self.key.len(),
            normalisation: &self.compared,
            max_peer_items: plan.max_peer_items,
            pad_to: plan.source.pad_to,
            sent_columns: &plan.sent_columns,
            payloads: &self.payloads,
            values: &self.values,
            value_scale: plan.value_scale,
            terms: plan.terms,
            ..Request::new(plan.operation, plan.role, &self.keyed.set)
        }
    }

    /// Writes the result.
    pub fn write(&self, plan: &Plan, outcome: &Outcome, output: &mut Output) -> Result<()> {
        let format = Layout { format: self.output_format, for_spreadsheets: plan.for_spreadsheets };
        let numbers = |output: &mut Output, header: &str, row: String| {
            writeln!(output.writer(), "{header}\n{row}").map_err(|e| output.unwritable(&e))
        };
        let sent = |payloads| {
            let names = plan.received_as.as_slice();
            (plan.terms.payload && plan.role == Role::Receiver).then_some(Sent { names, payloads })
        };
        match &outcome.learned {
            Learned::Nothing => Ok(()),
            Learned::Matching(matching) => {
                // Ascending, as the positions are.
                let rows: Vec<usize> =
                    matching.positions.iter().map(|&i| self.keyed.rows[i as usize] as usize).collect();
                write_rows(&self.table, &rows, sent(&matching.payloads), format, output.writer())
            }
            Learned::New(new) => {
                let (table, sent) = (&self.table, sent(&new.payloads));
                write_union(table, &self.key, &self.keyed, &new.items, sent, format, output.writer())
            }
            Learned::Union(items) => write_keys(&self.table, &self.key, items, format, output.writer()),
            Learned::Matches(n) if plan.operation == Operation::Count && !outcome.they_pad => {
                let union = (self.keyed.set.len() + outcome.their_size).saturating_sub(*n as usize);
                numbers(output, "matches,union_size", format!("{n},{union}"))
            }
            Learned::Matches(n) => numbers(output, "matches", n.to_string()),
            // What is withheld is an empty cell, so that the columns of numbers have nothing but numbers.
            Learned::Sum(sum) => {
                let row = match sum {
                    Some(s) => format!("{},{},false", s.matches, decimal(s.sum, plan.value_scale)),
                    None => ",,true".into(),
                };
                numbers(output, "matches,sum,below_minimum", row)
            }
        }
    }
}

/// The key columns, and the set of the table.
pub fn keys(table: &Table, source: &Source) -> Result<(Vec<usize>, KeyedSet)> {
    let key = table.columns(&source.key)?;
    let keyed = keyed_set(table, &key, source.normalise, source.empty_keys, source.duplicates)?;
    if keyed.set.len() > MAX_SET {
        let what = format!("{} keys are more than this version supports ({MAX_SET})", keyed.set.len());
        return Err(Error::input(&source.input, what, "Split the file"));
    }
    Ok((key, keyed))
}

/// Says what was read.
pub fn tell(table: &Table, keyed: &KeyedSet, source: &Source, say: &dyn Fn(&str)) {
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let (rows, items) = (table.rows() as u64, keyed.set.len() as u64);
    let (duplicates, skipped) = (keyed.duplicates, keyed.skipped);
    let mut line = format!("{}: {rows} row{}, {items} item{}", table.name(), s(rows), s(items));
    if duplicates > 0 {
        line += &match source.duplicates {
            Duplicates::Add => {
                format!(", {duplicates} row{} with a repeated key added to the first", s(duplicates))
            }
            _ => format!(", {duplicates} row{} with a repeated key omitted", s(duplicates)),
        };
    }
    if skipped > 0 {
        line += &format!(", {skipped} row{} with an empty key omitted", s(skipped));
    }
    say(&line);
}

/// Refuses columns of the sender that would have the name of a column of ours.
fn check_names(plan: &Plan, table: &Table) -> Result<()> {
    let mut names = plan.sent_columns.iter().zip(&plan.received_as);
    match names.find(|(_, ours)| table.header().contains(ours)) {
        Some((theirs, ours)) => Err(Error::Usage(format!(
            "the sender's column \"{theirs}\" would be called \"{ours}\" in the result, like a column of ours. Give it \
             another name with --receive-columns {}=NAME",
            columns::quoted(theirs)
        ))),
        None => Ok(()),
    }
}
