//! The plan, derived from the arguments. Most of what can be rejected without reading the data is rejected here.

use crate::book::Book;
use crate::columns::Columns;
use crate::front::start_threads;
use crate::options::{
    CommonArgs, ComparedArgs, DuplicatesArg, EmptyKeysArg, EncodingArg, InputArgs, KeyArgs, OperationArgs,
    OutputArgs, RowArgs, ShareArgs, ValueArgs, Wanted, Wish, WorkerArgs,
};
use crate::speeds::speeds;
use crate::{book, parties, policy};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use veilset::artefact::Ledger;
use veilset::channel::Timeouts;
use veilset::error::{Error, Result, Seat};
use veilset::governance::policy::Policy;
use veilset::governance::review::Review;
use veilset::net::{Endpoint, Fingerprint, Identity, Me};
use veilset::operations::sum::Modulus;
use veilset::operations::{self, Operation, Role, Terms};
use veilset::party::{InputTable, PartySpec};
use veilset::paths::{Paths, Use, open_regular};
use veilset::places::Folder;
use veilset::planner::{self, Choices, Preference};
use veilset::protocols::{self, Assumption, Attachment, Choice};
use veilset::session::Planning;
use veilset::spelling::{
    ASSUME, AUDIT_LOG, BOOK, BOTH, CHECKED, CONNECT, DELIMITER, ESCAPE, FOR_SPREADSHEETS, FORMAT, HELP,
    IDENTITY, INSECURE_PLAINTEXT, KEY, LISTEN, OUTPUT, OUTPUT_FORMAT, PARTIES, PEER, POLICY, PREPARED,
    PROTOCOL, RECEIVE_COLUMNS, REPORT, ROLE, SEND_COLUMNS, to_type,
};
use veilset::table::{
    Duplicates, EmptyKeys, Encoding, Format, LIST_COLUMN, Normalise, Quoting, ReadOptions, check_input_name,
    check_output_name, input_files, name_of,
};
use veilset::trusted::{self, Whose};

/// The plan of one party.
#[derive(Debug)]
pub struct PartyPlan {
    /// The computation.
    pub party: PartySpec,
    /// The file of the report, if one is wanted.
    pub report: Option<PathBuf>,
    /// Whether only errors are printed.
    pub quiet: bool,
    /// The number of threads for the computation.
    pub threads: usize,
    pub(crate) others: Others,
    /// The time limits for connecting and for silence.
    pub timeouts: Timeouts,
    /// The policy for the other parties.
    pub policy: Policy,
    /// Whether small sets of parties that learn something about our data are accepted.
    pub allow_small: bool,
    /// The file of the check: written by a check, read by a run that is held to it.
    pub checked: Option<PathBuf>,
    /// The check that the run is held to, once the run has begun.
    pub review: Option<Review>,
    /// The audit log, if there is one.
    pub audit_log: Option<PathBuf>,
    /// The warnings about files that others can change.
    pub warnings: Vec<String>,
    /// The other notes to show before the run.
    pub notes: Vec<String>,
    /// The paths that do not belong to the computation.
    own: Paths,
}

impl PartyPlan {
    /// Plans an operation, if the policy allows it. With `in_memory`, a result without an output file stays in memory.
    ///
    /// # Errors
    /// [`Error::Usage`], [`Error::Refused`], and [`Error::Input`] for a folder of input files that cannot be used.
    pub fn of(wanted: Wanted, in_memory: bool) -> Result<PartyPlan> {
        let Wanted::Operation(a) = wanted else { return Err(no_operation()) };
        let mut plan = operation(*a)?;
        plan.party.in_memory = in_memory && plan.party.output.is_none();
        let party = &plan.party;
        party.check()?;
        party.paths()?.and(std::mem::take(&mut plan.own)).check()?;
        plan.policy.permits(&party.spec)?;
        Ok(plan)
    }
}

/// The error for a command that is not an operation where one is needed.
pub fn no_operation() -> Error {
    let names = operations::ALL.map(|o| o.name).join(", ");
    Error::usage(format!("this is not an operation. Use one of {names}, or run and a file name"))
}

/// The means of reaching the other parties.
#[derive(Debug)]
pub(crate) enum Others {
    /// The peer in a run of two without a list of parties.
    Peer {
        endpoint: Endpoint,
        protection: NamedProtection,
        /// The peer's name in the address book.
        name: Option<String>,
    },
    /// The parties of a list, which may have only two.
    Parties {
        me: Me,
        /// Where we listen, if not at our address in the list.
        listen: Option<String>,
        identity: Option<PathBuf>,
    },
}

impl Others {
    /// The fingerprint of the only other party; `None` if there are several, or without TLS.
    pub(crate) fn peer(&self) -> Option<Fingerprint> {
        match self {
            Others::Peer { protection: NamedProtection::Tls { peer, .. }, .. } => Some(*peer),
            Others::Peer { protection: NamedProtection::InsecurePlaintext, .. } => None,
            Others::Parties { me, .. } => only_other(me),
        }
    }

    /// Refuses malformed addresses.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Others::Peer { endpoint, .. } => endpoint.check(),
            Others::Parties { listen: Some(address), .. } => Endpoint::listen(address.clone()).check(),
            Others::Parties { listen: None, .. } => Ok(()),
        }
    }
}

/// The protection of the connection.
#[derive(Debug)]
pub(crate) enum NamedProtection {
    Tls { identity: Option<PathBuf>, peer: Fingerprint },
    InsecurePlaintext,
}

fn operation(a: OperationArgs) -> Result<PartyPlan> {
    let mut warnings = Vec::new();
    let me = parties::of(&a, &mut warnings)?;
    let terms = Terms {
        malicious_sender: a.malicious.is_some_and(|a| a.malicious_sender),
        reveal_count: a.reveal.is_some_and(|a| a.reveal_count_to_sender),
        both: a.both.is_some_and(|a| a.both),
        shared_values: a.shares.as_ref().is_some_and(|a| a.values.is_some()),
        ..Terms::default()
    };
    let accepted = Accepted::of(&a.common, me.as_ref());
    let mut plan = common(a.operation, terms, a.common, a.output, me)?;
    plan.warnings.append(&mut warnings);
    if let Some(a) = a.ids {
        a.ids.as_deref().map_or(Ok(()), check_output_name)?;
        (plan.party.ids, plan.party.id_column) = (a.ids, a.id_column);
    }
    if let Some(a) = a.shares {
        a.map.as_deref().map_or(Ok(()), check_output_name)?;
        shares(&mut plan.party, a);
    }
    if let Some(a) = a.rows {
        rows(&mut plan.party, a)?;
    }
    if let Some(a) = a.values {
        values(&mut plan, a);
    }
    if let Some(a) = a.job {
        plan.party.spec.terms.shards = a.shards.unwrap_or(0);
        (plan.party.folder, plan.party.resume) = (a.job, a.resume);
    }
    accept(&mut plan, &accepted)?;
    Ok(plan)
}

fn rows(party: &mut PartySpec, a: RowArgs) -> Result<()> {
    let wrong = |what: String| Err(Error::usage(what));
    match party.spec.role {
        Role::Receiver if !a.send_columns.is_empty() => {
            return wrong(format!(
                "{SEND_COLUMNS} is for the sender. The receiver names the columns that it gets, by the \
                 sender's names, with {RECEIVE_COLUMNS}"
            ));
        }
        Role::Sender if !a.receive_columns.is_empty() => {
            return wrong(format!(
                "{RECEIVE_COLUMNS} is for the receiver. The sender names the columns that it sends with {SEND_COLUMNS}"
            ));
        }
        Role::Sender => {
            party.spec.sent_columns = a.send_columns.into_iter().flat_map(|columns| columns.0).collect()
        }
        Role::Receiver => {
            let received = a.receive_columns.into_iter().flat_map(|columns| columns.0);
            (party.spec.sent_columns, party.received_as) = received.unzip();
        }
    }
    party.spec.terms.max_row = a.max_row as usize;
    Ok(())
}

fn shares(party: &mut PartySpec, a: ShareArgs) {
    let ShareArgs { values, scale, map, max_row } = a;
    party.spec.terms.shared_values = values.is_some();
    (party.values, party.spec.value_scale, party.map) = (values, scale, map);
    party.spec.terms.max_row = max_row as usize;
}

fn values(plan: &mut PartyPlan, a: ValueArgs) {
    let party = &mut plan.party;
    party.values = a.values;
    party.spec.value_scale = a.scale;
    party.spec.terms.modulus = if a.modulus == "128" { Modulus::Bits128 } else { Modulus::Bits64 };
    party.spec.terms.min_count = a.min_count;
}

/// The plan of a worker for a piece of a table. The other side, the files and the policy are the concern of the side that
/// agrees.
#[derive(Debug)]
pub struct WorkerPlan {
    /// The computation.
    pub party: PartySpec,
    /// The time limits for connecting and for silence.
    pub timeouts: Timeouts,
}

impl WorkerPlan {
    /// Plans the work of a worker, and starts its threads.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn of(WorkerArgs { operation, common: a, rows: sent, both }: WorkerArgs) -> Result<WorkerPlan> {
        // Messages call the table by this name.
        let mut source = InputTable::new("the frame", named_key(&a.compared.key)?);
        source.read.format = Some(Format::Arrow);
        source.pad_to = a.pad_to;
        compared(&mut source, a.compared)?;
        let mut party = PartySpec::new(operation, a.role, source);
        if let Some(sent) = sent {
            rows(&mut party, sent)?;
        }
        party.spec.terms.both = both.is_some_and(|a| a.both);
        party.spec.terms.shards = a.shards.unwrap_or(0);
        party.local.max_peer_items = a.computed.max_peer_items;
        // The worker's rows come from the engine and return to it.
        party.in_memory = true;
        // The ticket has the agreed protocol; this one merely supports the operation.
        let terms = Terms { payload: !party.spec.sent_columns.is_empty(), ..party.spec.terms };
        let able = planner::acceptable(operation, &terms, a.computed.group, None);
        let protocol = a.protocol.and_then(Wish::named).or(able.first().map(|choice| choice.protocol));
        let protocol = protocol.unwrap_or(party.spec.candidates.first.protocol);
        let group = a.computed.group.unwrap_or(protocol.group());
        party.spec.candidates = Choice { protocol, group }.into();
        party.check()?;
        party.local.threads = start_threads(threads(a.computed.threads))?;
        Ok(WorkerPlan {
            party,
            timeouts: Timeouts { connect: a.computed.connect_timeout, ..Timeouts::default() },
        })
    }
}

/// The protocols that a user accepts.
struct Accepted {
    assume: Vec<Assumption>,
    /// The group that was named.
    group: Option<&'static str>,
    /// The preference among several protocols; `None` if the protocol is fixed.
    picks: Option<Preference>,
    prepared: bool,
}

impl Accepted {
    fn of(a: &CommonArgs, me: Option<&Me>) -> Accepted {
        let named = a.protocol.and_then(Wish::named).is_some();
        let several = me.is_some_and(|me| only_other(me).is_none());
        let chosen = named || a.filter.is_some() || a.cipher.is_some() || several;
        Accepted {
            assume: a.assume.clone(),
            group: a.computed.group,
            picks: (!chosen).then_some(a.prefer),
            prepared: a.prepared.is_some(),
        }
    }
}

/// If a protocol is to be picked, allows the acceptable ones that may be; otherwise refuses a fixed protocol that is not
/// acceptable.
fn accept(plan: &mut PartyPlan, Accepted { assume, group, picks, prepared }: &Accepted) -> Result<()> {
    let PartyPlan { party, policy, threads, notes, .. } = plan;
    let operation = party.spec.operation;
    let allowed = (!assume.is_empty()).then_some(&assume[..]);
    let Some(prefer) = *picks else {
        return party.spec.restrict(|choice| match choice.beyond(operation, allowed) {
            Some(one) => Err(Error::usage(format!(
                "{operation} by {} rests on {one}, which {ASSUME} leaves out. Add it, or use {PROTOCOL} auto",
                choice.protocol
            ))),
            None => policy.permits_choice(operation, choice),
        });
    };
    let acceptable = |allowed| planner::acceptable(operation, &party.spec.terms, *group, allowed);
    let mut all = acceptable(allowed);
    if *prepared {
        all.retain(|choice| choice.protocol.attaches(operation, Attachment::Half));
        if all.is_empty() {
            return Err(Error::usage(format!(
                "no protocol that is allowed computes {} from a prepared half. Omit {PREPARED}",
                operation
            )));
        }
        // A half is bound to one group.
        let group = all.first().map(|choice| choice.group);
        all.retain(|choice| Some(choice.group) == group);
    }
    let terms = Terms { payload: !party.spec.sent_columns.is_empty(), ..party.spec.terms };
    let permits = |choice| policy.permits_choice(operation, choice);
    let all = planner::pickable(all, operation, &terms, &permits)?;
    let all = all.ok_or_else(|| planner::nothing(&acceptable(None), operation, allowed))?;
    party.spec.candidates = all;
    let speeds = speeds(None, *threads, &mut |note| notes.push(note.into()));
    party.local.planning = Some(Planning { speeds, prefer });
    Ok(())
}

fn common(
    operation: &'static Operation,
    terms: Terms,
    a: CommonArgs,
    output: OutputArgs,
    me: Option<Me>,
) -> Result<PartyPlan> {
    let role = match &me {
        Some(me) => Role::multiparty(me.leads()),
        // Clap ensures that there is a role.
        None => a.role.ok_or_else(|| Error::Bug("a run of two without a role".into()))?,
    };
    let named = a.protocol.and_then(Wish::named);
    let protocol = match &me {
        Some(me) if only_other(me).is_none() => parties::protocol(operation, named)?,
        _ => {
            let filtering =
                if a.filter.is_some() || a.cipher.is_some() { protocols::filtering(operation) } else { None };
            named.or(filtering).unwrap_or_else(|| protocols::default_for(operation, &terms))
        }
    };
    let has_values = operation.uses.has_values(role, &terms);
    let mut party = PartySpec::new(operation, role, source(a.input, has_values)?);
    party.spec.parties = me.clone();
    let named = a.computed.group.or(a.cipher);
    let first = Choice { protocol, group: named.unwrap_or(protocol.group()) };
    // A filter determines the encryption, unless it is named.
    let others =
        protocol.works_in().filter(|group| a.filter.is_some() && named.is_none() && *group != first.group);
    party.spec.candidates =
        Choices { first, others: others.map(|group| Choice { protocol, group }).collect() };
    party.spec.terms.malicious_sender = terms.malicious_sender;
    party.spec.terms.reveal_count = terms.reveal_count;
    party.spec.terms.both = terms.both;
    let result_shape = party.shape();
    let has_result = party.has_result();
    let given = [
        (OUTPUT.marked(), output.output.is_some()),
        (OUTPUT_FORMAT.marked(), output.output_format.is_some()),
        (FOR_SPREADSHEETS.marked(), output.for_spreadsheets),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given && !has_result) {
        return Err(Error::usage(match me.as_ref().and_then(|me| me.roster().members().first()) {
            Some(leader) => format!(
                "only the leader, {leader}, learns the result of {operation}, so there is nothing for {option}. Omit it"
            ),
            None => format!(
                "the sender of {operation} learns nothing, so there is nothing for {option}. Omit it, or use {ROLE} \
                 receiver, or {BOTH} on both sides"
            ),
        }));
    }
    let result = output.output.unwrap_or("-".into());
    if output.output_format.is_none() {
        check_output_name(&result)?;
    }
    let written = output.output_format.unwrap_or_else(|| Format::of_input(&result));
    if has_result && !result_shape.has_items() && written != Format::Csv {
        return Err(Error::usage(format!(
            "the result of {operation} is a line of numbers, which is written as CSV, not as {written}. Use \
             {OUTPUT_FORMAT} csv, or give {OUTPUT} another name"
        )));
    }
    let mut warnings = Vec::new();
    let book = Book::load(a.own.book.as_deref(), &mut warnings)?;
    let others = match me {
        Some(me) => Others::Parties { me, listen: a.listen, identity: a.identity },
        None => one_peer(a.peer.as_deref(), a.identity, [a.listen, a.connect, a.proxy], &book)?,
    };
    let policy = policy::load(a.own.policy.as_deref(), &seats(&others), &book, &mut warnings)?;
    let audit_log = match a.own.audit_log {
        Some(path) if path == Path::new("none") => None,
        Some(path) => Some(path),
        None => Some(Folder::State.file_or(
            "audit.jsonl",
            "the audit log",
            &format!("{AUDIT_LOG} (none for no log)"),
        )?),
    };
    let ledger = match (&a.prepared, a.own.prepared_ledger) {
        (None, _) => None,
        (Some(_), Some(path)) => Some(path),
        (Some(_), None) => Some(Ledger::default_path()?),
    };
    // A missing ledger is reported when a half is used.
    if let Some((path, file)) = ledger.as_deref().and_then(|path| Some((path, open_regular(path).ok()?))) {
        warnings.extend(trusted::check("the ledger", path, Whose::Ours, &file)?);
    }
    let default = |given: Option<PathBuf>, name| given.or_else(|| Folder::Configuration.file(name));
    let identity = match &others {
        Others::Peer { protection: NamedProtection::InsecurePlaintext, .. } => None,
        Others::Peer { protection: NamedProtection::Tls { identity, .. }, .. }
        | Others::Parties { identity, .. } => identity_path(identity.as_deref()),
    };
    let own = Paths::default()
        .with("the file of the run", Use::Read, a.run_file.as_deref())
        .with(IDENTITY.marked(), Use::Read, identity.as_deref())
        .with(BOOK.marked(), Use::Read, default(a.own.book, book::FILE).as_deref())
        .with(POLICY.marked(), Use::Read, default(a.own.policy, policy::FILE).as_deref())
        .with(PARTIES.marked(), Use::Read, a.parties.as_deref())
        .with(CHECKED.marked(), Use::Written, a.checked.as_deref())
        .with(REPORT.marked(), Use::Written, a.report.as_deref())
        .with(AUDIT_LOG.marked(), Use::Written, audit_log.as_deref());
    party.prepared = a.prepared.zip(ledger);
    party.filter = a.filter;
    party.local.max_peer_items = a.computed.max_peer_items;
    party.output = Some(result).filter(|path| path.as_os_str() != "-");
    party.output_format = output.output_format;
    party.for_spreadsheets = output.for_spreadsheets;
    party.force = a.force;
    Ok(PartyPlan {
        party,
        report: a.report,
        quiet: a.quiet,
        threads: threads(a.computed.threads),
        others,
        timeouts: Timeouts { connect: a.computed.connect_timeout, idle: a.idle_timeout },
        policy,
        allow_small: a.allow_small,
        checked: a.checked.map(|path| file(path, CHECKED.marked())).transpose()?,
        review: None,
        audit_log,
        warnings,
        notes: Vec::new(),
        own,
    })
}

/// Refuses a path that is a stream.
fn file(path: PathBuf, option: &str) -> Result<PathBuf> {
    match path.as_os_str() == "-" {
        true => Err(Error::usage(format!("{option} takes the name of a file, not -. Name one"))),
        false => Ok(path),
    }
}

/// Returns how to reach the peer that was typed as a name or a fingerprint; without one, there is no TLS. The addresses are the
/// values of `--listen`, `--connect` and `--proxy`.
fn one_peer(
    typed: Option<&str>,
    identity: Option<PathBuf>,
    [listen, connect, proxy]: [Option<String>; 3],
    book: &Book,
) -> Result<Others> {
    let peer = typed.map(|typed| book.peer(typed)).transpose()?;
    let (name, address) = peer.as_ref().map_or((None, None), |p| (p.name.clone(), p.address.clone()));
    let protection = match peer {
        Some(peer) => NamedProtection::Tls { identity, peer: peer.fingerprint },
        None => NamedProtection::InsecurePlaintext,
    };
    let endpoint = match (listen, connect.or(address)) {
        (Some(address), _) => Endpoint::listen(address),
        (None, Some(address)) => Endpoint::Connect { address, proxy, label: None },
        (None, None) => {
            return Err(Error::usage(format!(
                "the peer's address is missing. Give {CONNECT} HOST:PORT, the peer's address, or {LISTEN} HOST:PORT, an \
                 address of this machine for the peer to connect to. Neither is needed if the address book has the \
                 peer's address ({})",
                to_type("peer add")
            )));
        }
    };
    if matches!(protection, NamedProtection::InsecurePlaintext) {
        on_this_machine(&endpoint)?;
    }
    Ok(Others::Peer { endpoint, protection, name })
}

/// Returns the fingerprint of the other party of a list of two; `None` for a longer list.
fn only_other(me: &Me) -> Option<Fingerprint> {
    let mut others = me.others();
    others.next().filter(|_| others.next().is_none()).map(|member| member.fingerprint())
}

/// Returns the seats and fingerprints of the other parties.
fn seats(others: &Others) -> Vec<(Seat, Option<Fingerprint>)> {
    match others {
        Others::Parties { me, .. } if only_other(me).is_none() => {
            me.others().map(|member| (member.seat(), Some(member.fingerprint()))).collect()
        }
        Others::Peer { .. } | Others::Parties { .. } => vec![(Seat::PEER, others.peer())],
    }
}

/// Returns the key columns of a file with this format.
fn key(a: &KeyArgs, format: Format) -> Result<Vec<String>> {
    let wrong = |what: String| Err(Error::usage(what));
    let key: Vec<String> = a.compared.key.iter().flat_map(|columns| columns.0.iter().cloned()).collect();
    match (format, &key[..]) {
        (Format::List, []) => Ok(vec![LIST_COLUMN.into()]),
        // A user who names a column may well mean a CSV file, whose header would be taken for an item.
        (Format::List, _) if a.format.is_none() => wrong(format!(
            "{} is a list, judging by its name, and a list has no columns for {KEY}. If the file is CSV, add \
             {FORMAT} csv; if it is a list of one item per line, omit {KEY}",
            name_of(&a.input)
        )),
        (Format::List, [one]) if one == LIST_COLUMN => Ok(key),
        (Format::List, _) => wrong(format!("a list ({FORMAT} list) has no columns for {KEY}. Omit {KEY}")),
        _ => named_key(&a.compared.key),
    }
}

/// Returns the key columns of a table whose columns have names.
fn named_key(key: &[Columns]) -> Result<Vec<String>> {
    let key: Vec<String> = key.iter().flat_map(|columns| columns.0.iter().cloned()).collect();
    if key.is_empty() {
        return Err(Error::usage(format!(
            "{KEY} is missing: name the columns to compare, for instance {KEY} email ({HELP} has an example). Only a \
             list ({FORMAT} list) needs none"
        )));
    }
    match key.iter().enumerate().find(|(i, name)| key[..*i].contains(name)) {
        Some((_, name)) => {
            Err(Error::usage(format!("{KEY} names the column \"{name}\" twice. Name it once")))
        }
        None => Ok(key),
    }
}

/// Returns the source of the items. `has_values` tells whether the keys have values, as for the sender of sum.
pub fn source(InputArgs { keys, pad_to }: InputArgs, has_values: bool) -> Result<InputTable> {
    let mut source = keyed(keys)?;
    source.pad_to = pad_to;
    source.check(has_values)?;
    Ok(source)
}

/// Returns the source for the keys of a file.
pub fn keyed(a: KeyArgs) -> Result<InputTable> {
    let read = ReadOptions {
        format: a.format,
        delimiter: a.delimiter.as_deref().map(delimiter).transpose()?,
        headerless: a.no_header,
        quoting: match a.escape.as_deref() {
            Some(text) => Quoting::Escaped(escape(text)?),
            None if a.no_quotes => Quoting::Ordinary,
            None => Quoting::Doubled,
        },
        multiline_keys: a.multiline_keys,
        ..ReadOptions::default()
    };
    let format = match a.format {
        Some(format) => format,
        None => format_of(&a.input, &read)?,
    };
    let key = key(&a, format)?;
    let mut source = InputTable::new(PathBuf::new(), key);
    source.inputs = a.input;
    source.read = read;
    compared(&mut source, a.compared)?;
    Ok(source)
}

/// Sets how the rows of a table become items, except for the key columns.
fn compared(source: &mut InputTable, a: ComparedArgs) -> Result<()> {
    source.read.encoding = match a.encoding {
        EncodingArg::Utf8 => Encoding::Utf8,
        EncodingArg::Bytes => Encoding::Bytes,
    };
    source.normalise = match a.normalize.as_slice() {
        [] => Normalise::default(),
        steps => steps.join(",").parse()?,
    };
    source.normalise.check(source.read.encoding)?;
    source.empty_keys = match a.empty_keys {
        EmptyKeysArg::Error => EmptyKeys::Error,
        EmptyKeysArg::Skip => EmptyKeys::Skip,
        EmptyKeysArg::Keep => EmptyKeys::Keep,
    };
    source.duplicates = a.duplicates.map(|typed| match typed {
        DuplicatesArg::First => Duplicates::First,
        DuplicatesArg::Error => Duplicates::Error,
        DuplicatesArg::Add => Duplicates::Add,
        DuplicatesArg::All => Duplicates::All,
    });
    Ok(())
}

/// Returns the format that the names of these inputs suggest.
fn format_of(inputs: &[PathBuf], read: &ReadOptions) -> Result<Format> {
    let files = input_files(inputs)?;
    files.iter().try_for_each(|file| check_input_name(file))?;
    let mut formats = files.iter().map(|file| read.format_of(file));
    let first = formats.next().unwrap_or_default();
    match formats.zip(files.iter().skip(1)).find(|(format, _)| *format != first) {
        Some((other, file)) => Err(Error::usage(format!(
            "judging by their names, {} is {first} and {} is {other}. Name files of one format, or give it with {FORMAT}",
            files[0].display(),
            file.display()
        ))),
        None => Ok(first),
    }
}

/// Refuses addresses that are not on this machine. Host names are resolved and checked when they are used.
fn on_this_machine(endpoint: &Endpoint) -> Result<()> {
    let (Endpoint::Listen { address: text, .. } | Endpoint::Connect { address: text, .. }) = endpoint;
    let host = text.rsplit_once(':').map_or("", |(host, _)| host);
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(outside) if !outside.to_canonical().is_loopback() => Err(Error::usage(format!(
            "{INSECURE_PLAINTEXT} is for this machine only, and {text} is not a loopback address. Use 127.0.0.1, or \
             omit the option and give the peer's fingerprint with {PEER}"
        ))),
        _ => Ok(()),
    }
}

/// Returns the path of our identity: the typed one, or the default one, if there is a folder for it.
pub fn identity_path(typed: Option<&Path>) -> Option<PathBuf> {
    typed.map(Path::to_path_buf).or_else(|| Identity::default_path().ok())
}

/// Returns the number of computing threads: as typed, or one per core.
pub fn threads(typed: Option<u16>) -> usize {
    typed.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// Parses the escape character of CSV.
fn escape(text: &str) -> Result<u8> {
    match text.as_bytes() {
        [escape] if escape.is_ascii_graphic() && *escape != b'"' => Ok(*escape),
        _ => Err(Error::usage(format!(
            "{ESCAPE} \"{text}\" is not a single visible ASCII character. Use for instance \\"
        ))),
    }
}

fn delimiter(text: &str) -> Result<u8> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [b'"' | b'\r' | b'\n'] => Err(Error::usage(format!(
            "{DELIMITER} cannot be a quote or a line end. Use one character, for instance ; or tab"
        ))),
        [byte] => Ok(*byte),
        _ => Err(Error::usage(format!(
            "{DELIMITER} \"{text}\" is not a single ASCII character. Use for instance ; or tab"
        ))),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
