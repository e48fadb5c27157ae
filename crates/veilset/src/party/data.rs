//! One side's data: from the input table to the request, and from the outcome to the written result.

use super::{InputTable, PartySpec, Phase, Watch, name};
use crate::artefact::Ledger;
use crate::error::{Error, Result, Seat};
use crate::item::{Items, encode_key};
use crate::net::Identity;
use crate::operations::id::Identifier;
use crate::operations::share::{Beside, Shares};
use crate::operations::{Learned, Shape};
use crate::ot::shares::Sharing;
use crate::params::MAX_SET;
use crate::rng::Prng;
use crate::session::Input;
use crate::session::report::{LeftOut, Report, decimal};
use crate::session::run::{Prepared, Request, RunOutcome};
use crate::sharded::elsewhere::Elsewhere;
use crate::sharded::on_disk::OnDisk;
use crate::sharded::set::{Place, Set};
use crate::spelling::{FILTER, FOR_SPREADSHEETS, OUTPUT_FORMAT, PREPARED};
use crate::table::{
    Batches, Destination, Duplicates, Format, Found, KeyColumns, KeyedSet, Layout, NewRows, Note, Profile,
    SHARE_COLUMNS, SentColumns, Table, To, Unread, Wanted, check_max_row, check_names, check_output,
    check_share_bound, check_sum_bound, keyed_set, payloads, values, write_cells, write_keys, write_rows,
    write_union,
};
use crate::threads::Threads;
use zeroize::Zeroizing;

/// A table and the set of its keys.
#[non_exhaustive]
pub struct KeyedTable {
    /// The table.
    pub table: Table,
    /// The positions of its key columns.
    pub columns: Vec<usize>,
    /// The set, and the rows that its items come from.
    pub keyed: KeyedSet,
    /// A description of how the keys were normalised and encoded. It must be the same on both sides.
    pub compared: String,
}

impl KeyedTable {
    /// Returns the facts about the table.
    pub fn facts(&self) -> TableFacts<'_> {
        let KeyedSet { ref set, duplicates, skipped, ref profile, .. } = self.keyed;
        TableFacts {
            rows: self.table.rows() as u64,
            items: set.len() as u64,
            duplicates,
            skipped,
            profile: Some(profile),
            ..TableFacts::of(&self.table)
        }
    }
}

impl InputTable {
    /// Reads only the key columns, to prepare a half or make a filter.
    ///
    /// # Errors
    /// [`Error::Input`] for a defect of the table, [`Error::Usage`] for inputs or options that contradict each other, and the
    /// errors of [`Watch::read`].
    pub fn load(&self, watch: &Watch<'_>, threads: &Threads) -> Result<KeyedTable> {
        self.keys_of(self.table(Some(&self.key), watch)?, watch, threads)
    }

    /// Makes the keyed set of a table that was already read, to prepare a half or make a filter. The input files are not
    /// used.
    ///
    /// # Errors
    /// [`Error::Input`] for a defect of the table, and [`Error::Usage`] for a normalisation that its encoding does not allow.
    pub fn keys_of(&self, table: Table, watch: &Watch<'_>, threads: &Threads) -> Result<KeyedTable> {
        (watch.begins)(Phase::Sorting);
        threads.run(|| self.keys(table, false))
    }

    /// Reads these columns of the inputs, or all if `None`.
    ///
    /// # Errors
    /// [`Error::Input`] for a defect of the table, [`Error::Usage`] for inputs or options that contradict each other, and the
    /// errors of [`Watch::read`].
    pub fn table(&self, columns: Option<&[String]>, watch: &Watch<'_>) -> Result<Table> {
        (watch.begins)(Phase::Reading);
        let wanted = Wanted { columns, named: columns.unwrap_or(&self.key) };
        Table::all_wanted(&self.inputs, &self.read, wanted, watch.read)
    }

    /// Makes the keyed set of the table; `valued` tells whether the keys have values.
    fn keys(&self, table: Table, valued: bool) -> Result<KeyedTable> {
        let columns = table.columns(&self.key)?;
        let keyed = keyed_set(&table, &columns, self.normalise, self.empty_keys, self.duplicates(valued))?;
        if keyed.set.len() > MAX_SET {
            let what = format!("{} keys are more than this version supports ({MAX_SET})", keyed.set.len());
            return Err(Error::input(self.name(), what, "Split the file"));
        }
        Ok(KeyedTable { table, columns, keyed, compared: self.normalise.name(self.read.encoding) })
    }
}

/// The checked data of one side, and the settings that it belongs to.
pub struct Data<'a> {
    pub(crate) party: &'a PartySpec,
    pub(crate) input: OurTable,
    /// The format of a result that consists of rows or items.
    pub(crate) output_format: Format,
}

/// Our table. If only its set is kept, on disk, the table is read again for the result.
pub(crate) type OurTable = Place<Box<InMemory>, Box<OnDisk>, Box<Elsewhere>>;

pub(crate) struct InMemory {
    pub(crate) keys: KeyedTable,
    values: Zeroizing<Vec<i128>>,
    pub(crate) payloads: Items,
}

/// The facts about our table.
#[derive(Debug)]
#[non_exhaustive]
pub struct TableFacts<'d> {
    /// The table's name.
    pub name: &'d str,
    /// The number of rows.
    pub rows: u64,
    /// The number of items.
    pub items: u64,
    /// The number of rows whose key occurred before.
    pub duplicates: u64,
    /// The number of rows that were skipped because their key is empty.
    pub skipped: u64,
    /// The columns of the file that are not in the table.
    pub unread: &'d [Unread],
    /// The properties of the file that were detected: its columns and their delimiter.
    pub found: Found,
    /// Oddities in the file that are not errors.
    pub notes: &'d [Note],
    /// Properties of the keys that may cost matches, if they were counted.
    pub profile: Option<&'d Profile>,
}

impl<'d> TableFacts<'d> {
    /// Returns the facts that are known before the rows are examined.
    fn of(table: &'d Table) -> TableFacts<'d> {
        TableFacts {
            name: table.name(),
            rows: 0,
            items: 0,
            duplicates: 0,
            skipped: 0,
            unread: table.unread(),
            found: table.found(),
            notes: table.notes(),
            profile: None,
        }
    }
}

impl<'a> Data<'a> {
    /// Makes and checks the data from a table that was already read. It must have at least the [columns](PartySpec::columns)
    /// that this side needs. The inputs that the settings name are not used.
    ///
    /// # Errors
    /// [`Error::Input`] for a defect of the table, and [`Error::Usage`] for settings that the table does not fit.
    pub fn of(party: &'a PartySpec, mut table: Table, watch: &Watch<'_>) -> Result<Data<'a>> {
        party.local.threads.check()?;
        (watch.begins)(Phase::Sorting);
        if let (None, Some(path)) = (party.source.read.delimiter, &party.output) {
            table.written_as(path);
        }
        let output_format = output_format(party, &table)?;
        let keys = party.local.threads.run(|| party.source.keys(table, party.has_values()))?;
        let KeyedTable { table, keyed, .. } = &keys;
        let payloads = match party.spec.sends() {
            [] => Items::new(),
            sent => payloads(table, keyed, &table.columns(sent)?)?,
        };
        let keys_travel = party.spec.operation.uses.items_in_rows(party.spec.role, &party.spec.terms);
        check_max_row(table, keyed, keys_travel, &payloads, party.spec.terms.max_row)?;
        let mut all = Vec::new();
        if let Some(name) = &party.values {
            for column in table.columns(std::slice::from_ref(name))? {
                all = values(table, keyed, column, party.spec.value_scale)?;
                match party.spec.operation.uses.shares {
                    true => check_share_bound(table, column, keyed, &all)?,
                    false => check_sum_bound(table, column, &all, party.spec.terms.modulus)?,
                }
            }
        }
        let input = OurTable::Memory(Box::new(InMemory { keys, values: Zeroizing::new(all), payloads }));
        Ok(Data { party, input, output_format })
    }

    /// Makes and checks the data of a run in shards whose input files are read piece by piece.
    pub(crate) fn in_pieces(party: &'a PartySpec, watch: &Watch<'_>) -> Result<Data<'a>> {
        let on_disk = OnDisk::read(party, watch)?;
        let output_format = on_disk.output_format;
        Ok(Data { party, input: OurTable::Disk(Box::new(on_disk)), output_format })
    }

    /// Returns the settings that the data belongs to.
    pub(crate) fn party(&self) -> &'a PartySpec {
        self.party
    }

    /// Returns our table and its set; `None` if they are not in memory, because only the set was kept, on disk, or because
    /// workers have the table.
    pub fn keys(&self) -> Option<&KeyedTable> {
        match &self.input {
            OurTable::Memory(all) => Some(&all.keys),
            OurTable::Disk(_) | OurTable::Workers(_) => None,
        }
    }

    /// Returns the facts about our table.
    pub fn facts(&self) -> TableFacts<'_> {
        match &self.input {
            OurTable::Memory(all) => all.keys.facts(),
            OurTable::Disk(all) => TableFacts {
                rows: all.rows.into(),
                items: all.stored.len() as u64,
                duplicates: all.repeated.len() as u64,
                skipped: all.skipped,
                profile: Some(&all.profile),
                ..TableFacts::of(&all.head)
            },
            OurTable::Workers(all) => TableFacts {
                name: "the table of the workers",
                rows: all.rows,
                items: all.spread.items as u64,
                duplicates: all.duplicates,
                skipped: all.skipped,
                unread: &[],
                found: Found::default(),
                notes: &[],
                profile: Some(&all.profile),
            },
        }
    }

    pub(crate) fn in_memory(&self) -> Result<&InMemory> {
        match &self.input {
            OurTable::Memory(all) => Ok(all),
            _ => Err(Error::Bug("what a table that is not in memory does not have".into())),
        }
    }

    /// Returns the request of this side.
    pub fn request(&self) -> Request<'_> {
        let (set, normalisation) = match &self.input {
            OurTable::Memory(all) => (Set::Memory(&all.keys.keyed.set), &all.keys.compared),
            OurTable::Disk(all) => (Set::Disk(&all.stored), &all.compared),
            OurTable::Workers(all) => (Set::Workers(&all.spread), &all.compared),
        };
        let mut request = self.party.request(set, normalisation);
        if let OurTable::Memory(all) = &self.input {
            (request.input.payloads, request.input.values) = (&all.payloads, &all.values);
        }
        request
    }

    /// Does the work whose duration depends on our data, before connecting: pads the set, or opens the prepared half or the
    /// filter. `identity` decrypts a half, or a receiver's own filter.
    ///
    /// # Errors
    /// The errors of [`Request::prepare`], [`Request::prepare_with`] and [`Request::prepare_with_filter`]; [`Error::Usage`]
    /// for a half or a filter without an identity, and for a half together with a filter.
    pub fn prepare(
        &self,
        identity: Option<&Identity>,
        watch: &Watch<'_>,
        rng: &mut Prng,
    ) -> Result<Prepared<'_>> {
        (watch.begins)(Phase::Preparing);
        let PartySpec { prepared, filter, .. } = self.party;
        match (prepared, filter, identity) {
            (None, None, _) => self.request().prepare(rng),
            (Some((half, ledger)), None, Some(identity)) => {
                self.request().prepare_with(half, &Ledger::at(ledger), identity)
            }
            (None, Some(filter), Some(identity)) => self.request().prepare_with_filter(filter, identity, rng),
            (Some(_), None, None) => Err(Error::usage(format!(
                "a prepared half is encrypted under an identity, but this run has none. Omit {PREPARED}, or \
                 run over TLS"
            ))),
            (None, Some(_), None) => Err(Error::usage(format!(
                "a filter is bound to an identity, but this run has none. Omit {FILTER}, or run over TLS"
            ))),
            (Some(_), Some(_), _) => Err(Error::usage(format!(
                "{PREPARED} and {FILTER} are for different protocols. Omit one of them"
            ))),
        }
    }

    /// Adds to the report the facts about our table, and the names of our input and of our result's destination.
    pub fn complete(&self, report: &mut Report) {
        let party = self.party;
        report.input = Some(party.source.name());
        let written = party.has_result() && !party.in_memory;
        report.output = written.then(|| party.output.as_deref().map_or_else(|| "-".into(), name));
        let TableFacts { duplicates, skipped, .. } = self.facts();
        // Repeated rows are not left out if each of them gets an identifier, or if the result has all rows of a matching key.
        let kept = party.shape() == Shape::Identifiers || party.source.duplicates == Some(Duplicates::All);
        let duplicates = if kept { 0 } else { duplicates };
        // Items of a list have no column.
        if party.source.format() != Format::List {
            report.key_columns.clone_from(&party.source.key);
        }
        let treated = party.source.duplicates(party.has_values());
        report.leave_out(LeftOut { duplicates, skipped }, treated);
    }

    /// Writes the result. The duration depends on the result, so call this after the connection is closed.
    ///
    /// # Errors
    /// [`Error::Output`]; [`Error::Peer`] for malformed rows from another party; and for a table that is read again,
    /// [`Error::Input`] if it has changed or cannot be read. [`Error::Bug`] for a table that workers have.
    pub fn write(&self, outcome: &RunOutcome, output: &mut Destination) -> Result<()> {
        match self.numbers(outcome) {
            Some([header, row]) => {
                writeln!(output.writer(), "{header}\n{row}").map_err(|e| output.unwritable(&e))
            }
            None => {
                let layout =
                    Layout { for_spreadsheets: self.party.for_spreadsheets, ..self.output_format.into() };
                let seat = outcome.parties.seat();
                self.write_items(&outcome.learned, &[], To::File(layout, output.writer()))
                    .map_err(|error| error.by(seat))
            }
        }
    }

    /// Returns the result as batches in memory; `None` if it has no rows or items, or if workers have it.
    ///
    /// # Errors
    /// [`Error::Peer`] for malformed rows from another party, and for a table that is read again, [`Error::Input`] if it has
    /// changed or cannot be read.
    pub fn batches(&self, outcome: &RunOutcome) -> Result<Option<Batches>> {
        match (&self.input, self.party.shape().has_items()) {
            (OurTable::Workers(_), _) | (_, false) => Ok(None),
            _ => self.rows_of(&outcome.learned, &[], outcome.parties.seat()).map(Some),
        }
    }

    /// Returns the rows of a result. Malformed rows are blamed on the party at `seat`. The key columns at the places
    /// `as_text` of the key become text, as in [`write_union`].
    pub(crate) fn rows_of(&self, learned: &Learned, as_text: &[usize], seat: Seat) -> Result<Batches> {
        let mut batches = Batches::default();
        self.write_items(learned, as_text, To::Batches(&mut batches)).map_err(|error| error.by(seat))?;
        Ok(batches)
    }

    /// Returns the header and the row of a result that is a line of numbers; `None` for any other result.
    fn numbers(&self, outcome: &RunOutcome) -> Option<[String; 2]> {
        let party = self.party;
        let theirs = outcome.parties.peer().announced;
        let numbers = |header: &str, row: String| Some([header.to_string(), row]);
        match &outcome.learned {
            Learned::Matches(n) if party.shape() == Shape::MatchesAndUnion && !theirs.padded => {
                let union = (self.facts().items as usize + theirs.size).saturating_sub(*n as usize);
                numbers("matches,union_size", format!("{n},{union}"))
            }
            Learned::Matches(n) => numbers("matches", n.to_string()),
            // Withheld numbers are empty cells, so that their columns contain nothing but numbers.
            Learned::Sum(sum) => {
                let row = match sum {
                    Some(s) => format!("{},{},false", s.matches, decimal(s.sum, party.spec.value_scale)),
                    None => ",,true".into(),
                };
                numbers("matches,sum,below_minimum", row)
            }
            _ => None,
        }
    }

    /// Writes a result that consists of rows or items; for any other result, does nothing.
    fn write_items(&self, learned: &Learned, as_text: &[usize], to: To<'_>) -> Result<()> {
        let party = self.party;
        let KeyedTable { table, columns, keyed, .. } = match &self.input {
            OurTable::Disk(all) => return all.write(party, learned, to),
            OurTable::Memory(_) | OurTable::Workers(_) => &self.in_memory()?.keys,
        };
        let sent = |payloads| {
            let names = party.received_as.as_slice();
            (!names.is_empty()).then_some(SentColumns { names, payloads })
        };
        match learned {
            Learned::Nothing | Learned::Matches(_) | Learned::Sum(_) => Ok(()),
            Learned::Matching(matching) => {
                // In ascending order, because the positions are.
                let first: Vec<usize> =
                    matching.positions.iter().map(|&i| keyed.rows[i as usize] as usize).collect();
                if party.source.duplicates != Some(Duplicates::All) {
                    return write_rows(table, &first, sent(&matching.payloads), to);
                }
                let mut found = vec![None; keyed.set.len()];
                matching.positions.iter().enumerate().for_each(|(i, &at)| found[at as usize] = Some(i));
                let all = keyed.all_rows().into_iter();
                let all: Vec<(usize, usize)> =
                    all.filter_map(|(row, at)| Some((row as usize, found[at as usize]?))).collect();
                let mut payloads = Items::new();
                if !party.received_as.is_empty() {
                    all.iter().for_each(|&(_, i)| payloads.push(matching.payloads.get(i)));
                }
                let rows: Vec<usize> = all.iter().map(|&(row, _)| row).collect();
                write_rows(table, &rows, sent(&payloads), to)
            }
            Learned::New(new) => {
                let theirs = NewRows { items: &new.items, sent: sent(&new.payloads) };
                write_union(table, KeyColumns { columns, as_text }, keyed, theirs, to)
            }
            Learned::Union(items) => write_keys(table, KeyColumns { columns, as_text }, items, to),
            Learned::Shares(shares) => {
                let rows = shares.shares.chunks(shares.width).enumerate();
                let rows = rows.map(|(row, share)| [row.to_string(), written(shares.sharing, share)]);
                write_cells(table, &SHARE_COLUMNS, rows, to)
            }
            Learned::Identifiers(identifiers) => {
                let all_rows = keyed.all_rows();
                let mut cells = Items::new();
                for &(_, position) in &all_rows {
                    cells.push_with(|cell| {
                        encode_key([hexadecimal(&identifiers.own[position as usize]).as_bytes()], cell)
                    });
                }
                let rows: Vec<usize> = all_rows.iter().map(|&(row, _)| row as usize).collect();
                let column = SentColumns { names: party.added(), payloads: &cells };
                write_rows(table, &rows, Some(column), to)
            }
        }
    }

    /// Writes the additional output of a result: the list of all identifiers, which is the same on both sides; or the map
    /// from our rows to share rows. The map has one row for each of our items, in our order, with our columns and the number
    /// of its share row.
    ///
    /// # Errors
    /// [`Error::Output`] if it cannot be written; [`Error::Bug`] if the result has neither list nor map.
    pub fn write_beside(&self, outcome: &RunOutcome, output: &mut Destination) -> Result<()> {
        let beside = self.lists(outcome)?;
        let (path, columns, table) = match &beside {
            Lists::Identifiers(table, _) => (&self.party.ids, 1, table),
            Lists::Map(keys, _) => (&self.party.map, keys.table.header().len() + 1, &&keys.table),
        };
        let path = path.as_deref();
        let format = Format::of_output(path, table.format(), columns);
        let (for_spreadsheets, delimiter) =
            (self.party.for_spreadsheets, path.and_then(Format::delimiter_of));
        let layout = Layout { format, for_spreadsheets, delimiter };
        beside.put(self.party, To::File(layout, output.writer()))
    }

    /// Returns the additional output of [`Data::write_beside`] as batches in memory.
    ///
    /// # Errors
    /// [`Error::Bug`] if the result has neither list nor map.
    pub fn beside(&self, outcome: &RunOutcome) -> Result<Batches> {
        let mut batches = Batches::default();
        self.lists(outcome)?.put(self.party, To::Batches(&mut batches))?;
        Ok(batches)
    }

    fn lists<'d>(&'d self, outcome: &'d RunOutcome) -> Result<Lists<'d>> {
        match (&self.input, &outcome.learned) {
            (OurTable::Memory(all), Learned::Identifiers(identifiers)) => {
                Ok(Lists::Identifiers(&all.keys.table, &identifiers.all))
            }
            (OurTable::Memory(all), Learned::Shares(Shares { beside: Beside::Order(order), .. })) => {
                Ok(Lists::Map(&all.keys, order))
            }
            _ => Err(Error::Bug("a list of identifiers, or a map of shares, of a result without one".into())),
        }
    }
}

/// The additional output of a result.
enum Lists<'d> {
    /// Our table, and all identifiers.
    Identifiers(&'d Table, &'d [Identifier]),
    /// Our keyed table, and for each share row the position of its item in our set, or of a dummy after them.
    Map(&'d KeyedTable, &'d [u32]),
}

impl Lists<'_> {
    fn put(&self, party: &PartySpec, to: To<'_>) -> Result<()> {
        let (KeyedTable { table, keyed, .. }, order) = match *self {
            Lists::Map(keys, order) => (keys, order),
            Lists::Identifiers(table, all) => {
                let all = all.iter().map(|id| [hexadecimal(id)]);
                return write_cells(table, &[&party.id_column], all, to);
            }
        };
        let mut rows = vec![0; keyed.set.len()];
        for (row, &at) in order.iter().enumerate() {
            if let Some(place) = rows.get_mut(at as usize) {
                *place = row;
            }
        }
        let mut cells = Items::new();
        rows.iter().for_each(|row| cells.push_with(|cell| encode_key([row.to_string().as_bytes()], cell)));
        let names = [SHARE_COLUMNS[0].to_string()];
        let ours: Vec<usize> = keyed.rows.iter().map(|&row| row as usize).collect();
        write_rows(table, &ours, Some(SentColumns { names: &names, payloads: &cells }), to)
    }
}

impl PartySpec {
    /// Returns the request of this side for this set, without payloads and values. `normalisation` describes how its keys
    /// were normalised and encoded.
    pub fn request<'a>(&self, set: impl Into<Set<'a>>, normalisation: &'a str) -> Request<'a> {
        let InputTable { key, pad_to, .. } = &self.source;
        let key_columns = key.len();
        let input = Input { key_columns, normalisation, pad_to: *pad_to, ..set.into().into() };
        Request { spec: self.spec.clone(), input, local: self.local.clone() }
    }

    /// Returns a description of how the keys are normalised and encoded. It must be the same on both sides.
    pub fn compared(&self) -> String {
        self.source.normalise.name(self.source.read.encoding)
    }

    /// Returns the columns of our table that are needed; `None` for all, if the result has all columns of our rows.
    pub fn columns(&self) -> Option<Vec<String>> {
        let needed =
            || self.source.key.iter().chain(&self.values).chain(self.spec.sends()).cloned().collect();
        (!self.shape().has_rows()).then(needed)
    }

    /// Reads our table.
    ///
    /// # Errors
    /// [`Error::Input`] for a defect of the table, [`Error::Usage`] for inputs or options that contradict each other, and the
    /// errors of [`Watch::read`].
    pub fn read(&self, watch: &Watch<'_>) -> Result<Table> {
        self.source.table(self.columns().as_deref(), watch)
    }
}

/// Returns an identifier as written in results: 32 hexadecimal digits.
fn hexadecimal(id: &Identifier) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}

/// Returns a share in hexadecimal: a number of 16 digits, or the bytes of a row.
fn written(sharing: Sharing, share: &[u8]) -> String {
    let digits = |bytes: &mut dyn Iterator<Item = &u8>| bytes.map(|byte| format!("{byte:02x}")).collect();
    match sharing {
        Sharing::Additive => digits(&mut share.iter().rev()),
        Sharing::Xor => digits(&mut share.iter()),
    }
}

/// Returns the format of the result. Refuses a result that cannot be written in that format.
pub(crate) fn output_format(party: &PartySpec, table: &Table) -> Result<Format> {
    let added = party.added();
    let columns = match party.shape() {
        Shape::Shares => SHARE_COLUMNS.len(),
        shape if shape.has_rows() => table.header().len() + added.len(),
        _ => party.source.key.len(),
    };
    if party.map.is_some() {
        check_names(table, &[SHARE_COLUMNS[0].to_string()])?;
    }
    let format = party.written_as(table.format(), columns);
    if party.shape().has_rows() {
        party.check_names(table.header())?;
        check_output(table, added, format)?;
        if format == Format::Arrow && !party.in_memory {
            table.check_arrow_file()?;
        }
    }
    match party.for_spreadsheets && format != Format::Csv {
        true => Err(Error::usage(format!(
            "{FOR_SPREADSHEETS} is for CSV, but the result is written as {format}. Omit it, or add \
             {}",
            OUTPUT_FORMAT.with("csv")
        ))),
        false => Ok(format),
    }
}
