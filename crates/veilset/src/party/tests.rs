use super::*;
use crate::artefact::{self, Ledger};
use crate::channel::{Channel, Timeouts, WireCount};
use crate::error::Place;
use crate::governance::gate::Setup;
use crate::governance::policy::Policy;
use crate::net::{Connection, Endpoint, Identity, Listener, Protection, establish};
use crate::operations::sum::Modulus;
use crate::operations::{COUNT, INTERSECT, SUM, Terms, UNION};
use crate::protocols::{Choice, VOLE};
use crate::testing::Cut;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Tables with a repeated key, and with cells that need quoting or look like formulas.
const OURS: &str = "key,city\nk1,Rome\nk2,\"Oslo, N\"\nk3,=1+1\nk2,Bern\nk4,\nk5,Riga\n";
const THEIRS: &str = "mail,cost,note\nk9,1.50,a\nk2,2.25,b\nk4,-0.75,c\nk3,10,\"d,d\"\n";

struct Side {
    folder: TempDir,
}

impl Side {
    fn new() -> Side {
        Side { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A job on a file that this creates.
    fn party(
        &self,
        operation: &'static Operation,
        role: Role,
        (name, key): (&str, &str),
        text: &str,
    ) -> PartySpec {
        std::fs::write(self.path(name), text).unwrap();
        let mut party = PartySpec::new(operation, role, InputTable::new(self.path(name), [key]));
        party.output = Some(self.path(&format!("{role}.result.csv")));
        party
    }

    /// The jobs of both parties on the tables above.
    fn jobs(&self, operation: &'static Operation) -> [PartySpec; 2] {
        let ours = self.party(operation, Role::Receiver, ("ours.csv", "key"), OURS);
        let mut theirs = self.party(operation, Role::Sender, ("theirs.csv", "mail"), THEIRS);
        theirs.values = theirs.has_values().then(|| "cost".into());
        [ours, theirs].map(|mut party| {
            party.spec.value_scale = 2;
            party
        })
    }

    /// The names of its files.
    fn files(&self) -> BTreeSet<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn in_memory() -> [Connection; 2] {
    let (a, b) = Channel::pair();
    [a, b].map(|channel| Connection::unprotected(channel, WireCount::default()))
}

fn over_tls([a, b]: &[Arc<Identity>; 2]) -> [Connection; 2] {
    let timeouts = Timeouts { connect: Duration::from_secs(30), idle: Duration::from_secs(30) };
    let security = |own: &Arc<Identity>, peer: &Arc<Identity>| Protection::Tls {
        identity: own.clone(),
        peer: peer.fingerprint(),
    };
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::connect(listener.local_addr().to_string());
    std::thread::scope(|s| {
        let there = s.spawn(|| establish(&endpoint, &security(b, a), timeouts, &|| false, &|_| ()));
        let here = listener.accept(&security(a, b), timeouts, &|| false, &|_| ()).unwrap();
        [here, there.join().unwrap().unwrap()]
    })
}

fn identities() -> [Arc<Identity>; 2] {
    [(); 2].map(|()| Arc::new(Identity::generate().unwrap()))
}

/// A party's whole job: its report, and its result if it has one.
fn carry_out(
    party: &PartySpec,
    connection: Connection,
    identity: Option<&Identity>,
) -> Result<(Report, Option<String>)> {
    party.check()?;
    let data = party.load(&Watch::NONE)?;
    let mut rng = Prng::from_os()?;
    let prepared = data.prepare(identity, &Watch::NONE, &mut rng)?;
    let output = party.create_output()?;
    let ran = run(connection, prepared, None, &mut rng)?;
    ran.logged?;
    let mut report = ran.report;
    data.complete(&mut report);
    let Some(mut output) = output else { return Ok((report, None)) };
    data.write(&ran.outcome, &mut output)?;
    output.commit()?;
    Ok((report, Some(std::fs::read_to_string(party.output.as_deref().unwrap()).unwrap())))
}

type Came = Result<(Report, Option<String>)>;

/// Carries out both parties' jobs.
fn both([receiver, sender]: [&PartySpec; 2], [here, there]: [Connection; 2]) -> [Came; 2] {
    std::thread::scope(|s| {
        let there = s.spawn(move || carry_out(sender, there, None));
        [carry_out(receiver, here, None), there.join().unwrap()]
    })
}

/// Their results. The lines after the header are sorted, since their order does not matter here.
fn results(jobs: [&PartySpec; 2], connections: [Connection; 2]) -> [Option<Vec<String>>; 2] {
    both(jobs, connections).map(|came| {
        came.unwrap().1.map(|text| {
            let mut lines: Vec<String> = text.lines().map(Into::into).collect();
            lines[1..].sort();
            lines
        })
    })
}

fn lines(lines: &[&str]) -> Option<Vec<String>> {
    Some(lines.iter().map(ToString::to_string).collect())
}

#[test]
fn each_operation_on_csv_gives_the_rows_of_the_plain_computation() {
    let identities = identities();
    // (operation, for both, result of the receiver, of the sender)
    let matching = lines(&["key,city", "k2,\"Oslo, N\"", "k3,=1+1", "k4,"]);
    let theirs = lines(&["mail,cost,note", "k2,2.25,b", "k3,10,\"d,d\"", "k4,-0.75,c"]);
    let union = lines(&["key,city", "k1,Rome", "k2,\"Oslo, N\"", "k3,=1+1", "k4,", "k5,Riga", "k9,"]);
    let keys = lines(&["mail", "k1", "k2", "k3", "k4", "k5", "k9"]);
    let count = lines(&["matches,union_size", "3,6"]);
    let cases = [
        (&INTERSECT, false, matching.clone(), None),
        (&INTERSECT, true, matching, theirs),
        (&UNION, false, union.clone(), None),
        (&UNION, true, union, keys),
        (&COUNT, false, count.clone(), None),
        (&COUNT, true, count.clone(), count),
        (&SUM, false, lines(&["matches", "3"]), lines(&["matches,sum,below_minimum", "3,11.50,false"])),
    ];
    for (operation, for_both, receivers, senders) in cases {
        let side = Side::new();
        let jobs = side.jobs(operation).map(|mut party| {
            party.spec.terms.both = for_both;
            party
        });
        let [here, there] = results(jobs.each_ref(), over_tls(&identities));
        assert_eq!(here, receivers, "{operation}, for both: {for_both}");
        assert_eq!(there, senders, "{operation}, for both: {for_both}");
    }
}

#[test]
fn each_operation_on_lists_gives_the_lines_of_the_plain_computation() {
    for (job_is, operation) in [&INTERSECT, &UNION, &COUNT].into_iter().enumerate() {
        let side = Side::new();
        let (ours, theirs) = ("b\na\n\"c\"\nd,e\n", "d,e\nx\na\n");
        let list = |role, name, text| side.party(operation, role, (name, "item"), text);
        let mut receiver = list(Role::Receiver, "ours.txt", ours);
        receiver.output = Some(side.path(if operation == &COUNT { "r.csv" } else { "r.txt" }));
        let sender = list(Role::Sender, "theirs.txt", theirs);
        let ran = both([&receiver, &sender], in_memory()).map(Result::unwrap);
        // Items of a list have no column.
        assert!(ran.iter().all(|(report, _)| report.key_columns.is_empty()));
        let [here, there] = ran.map(|(_, text)| text);
        let here: BTreeSet<String> = here.unwrap().lines().map(Into::into).collect();
        let [a, b] = [ours, theirs].map(|text| text.lines().map(Into::into).collect::<BTreeSet<String>>());
        let (common, all) = (a.intersection(&b).cloned(), a.union(&b).cloned());
        let plain: BTreeSet<String> = match job_is {
            0 => common.collect(),
            1 => all.collect(),
            _ => ["matches,union_size".into(), format!("{},{}", common.count(), all.count())].into(),
        };
        assert_eq!((here, there), (plain, None), "{operation}");
    }
}

#[test]
fn columns_travel_and_the_report_says_what_was_left_out_and_padded() {
    let side = Side::new();
    let [mut receiver, mut sender] = side.jobs(&INTERSECT);
    sender.spec.sent_columns = vec!["note".into(), "cost".into()];
    sender.source.pad_to = Some(9);
    receiver.spec.sent_columns = sender.spec.sent_columns.clone();
    receiver.received_as = vec!["their note".into(), "cost".into()];
    receiver.for_spreadsheets = true;
    let [here, there] = both([&receiver, &sender], in_memory()).map(Result::unwrap);
    let rows = "key,city,their note,cost\nk2,\"Oslo, N\",b,2.25\nk3,'=1+1,\"d,d\",10\nk4,,c,-0.75\n";
    assert_eq!((here.1.as_deref(), there.1), (Some(rows), None));
    let (ours, theirs) = (here.0, there.0);
    let peer = ours.parties.peer().announced;
    assert_eq!((ours.left_out.duplicates, peer.size, peer.padded), (1, 9, true));
    assert_eq!((theirs.sizes.ours, theirs.sizes.announced), (4, 9));
    assert_eq!(ours.input, Some(receiver.source.name()));
    assert_eq!((ours.output, theirs.output), (receiver.output.as_deref().map(name), None));
}

#[test]
fn all_rows_of_a_key_that_matches_are_in_the_result_with_its_columns_if_so_asked() {
    let side = Side::new();
    let text = "key,n\nk2,1\nzz,2\nk2,3\nk3,4\nk2,5\n";
    let mut receiver = side.party(&INTERSECT, Role::Receiver, ("again.csv", "key"), text);
    let mut sender = side.party(&INTERSECT, Role::Sender, ("theirs.csv", "mail"), THEIRS);
    sender.spec.sent_columns = vec!["note".into()];
    (receiver.spec.sent_columns, receiver.received_as) =
        (sender.spec.sent_columns.clone(), sender.spec.sent_columns.clone());
    for (duplicates, rows, left_out) in [
        (Some(Duplicates::All), "key,n,note\nk2,1,b\nk2,3,b\nk3,4,\"d,d\"\nk2,5,b\n", 0),
        (None, "key,n,note\nk2,1,b\nk3,4,\"d,d\"\n", 2),
    ] {
        receiver.source.duplicates = duplicates;
        receiver.force = true;
        let [here, _] = both([&receiver, &sender], in_memory()).map(Result::unwrap);
        assert_eq!((here.1.as_deref(), here.0.left_out.duplicates), (Some(rows), left_out));
        assert_eq!((here.0.sizes.ours, here.0.result.matches), (3, Some(2)));
    }
    // The same in memory.
    receiver.source.duplicates = Some(Duplicates::All);
    (receiver.in_memory, receiver.output) = (true, None);
    let data = receiver.load(&Watch::NONE).unwrap();
    let [here, there] = in_memory();
    let ran = std::thread::scope(|s| {
        s.spawn(|| carry_out(&sender, there, None).unwrap());
        let mut rng = Prng::from_os().unwrap();
        run(here, data.prepare(None, &Watch::NONE, &mut rng).unwrap(), None, &mut rng).unwrap()
    });
    let batches = data.batches(&ran.outcome).unwrap().unwrap();
    let names: Vec<&str> = batches.schema().unwrap().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!((batches.rows(), names), (4, vec!["key", "n", "note"]));
    // It is for rows that match.
    for (operation, role) in [(&INTERSECT, Role::Sender), (&COUNT, Role::Receiver), (&UNION, Role::Receiver)]
    {
        let mut party = side.party(operation, role, ("again.csv", "key"), text);
        party.source.duplicates = Some(Duplicates::All);
        assert!(party.check().unwrap_err().to_string().contains("`duplicates=all`"));
    }
}

#[test]
fn what_is_asked_for_is_what_the_job_says() {
    let side = Side::new();
    let [_, mut party] = side.jobs(&SUM);
    party.source.pad_to = Some(7);
    party.local.max_peer_items = 11;
    party.spec.terms = Terms { min_count: 3, modulus: Modulus::Bits128, ..party.spec.terms };
    let data = party.load(&Watch::NONE).unwrap();
    let request = data.request();
    assert_eq!(
        (request.spec.operation, request.spec.role, &request.spec.candidates),
        (party.spec.operation, party.spec.role, &party.spec.candidates)
    );
    assert_eq!(
        (request.input.pad_to, request.local.max_peer_items, request.spec.terms),
        (Some(7), 11, party.spec.terms)
    );
    assert_eq!((request.input.values, request.spec.value_scale), (&[150, 225, -75, 1000][..], 2));
    assert_eq!(
        (request.input.set.len(), request.input.key_columns, request.input.normalisation),
        (4, 1, "utf8")
    );
    // The peer's set is larger than we accept.
    let [mut receiver, sender] = side.jobs(&COUNT);
    receiver.local.max_peer_items = 3;
    let [here, there] = both([&receiver, &sender], in_memory());
    assert!(matches!(here, Err(Error::Refused(_))), "{here:?}");
    assert!(there.is_err());
}

#[test]
fn a_defect_of_the_input_has_a_file_a_row_and_a_column_and_leaves_no_result() {
    let line = |n| Some(Place::Line(n));
    // (the change, where it is)
    type Change = fn(&mut PartySpec);
    let cases: [(Change, Option<Place>, Option<&str>); 5] = [
        (|party| party.source.key = vec!["nokey".into()], line(1), Some("nokey")),
        (|party| party.source.duplicates = Some(Duplicates::Error), line(5), Some("key")),
        (|party| party.source.key = vec!["city".into()], line(6), Some("city")),
        (|party| party.values = Some("city".into()), line(2), Some("city")),
        (|party| party.source.inputs[0].set_file_name("none.csv"), None, None),
    ];
    for (i, (change, row, column)) in cases.into_iter().enumerate() {
        let side = Side::new();
        let [mut party, _] = side.jobs(&INTERSECT);
        if i == 3 {
            let mut source = party.source;
            source.duplicates = Some(Duplicates::First);
            party = PartySpec::new(&SUM, Role::Sender, source);
            party.output = Some(side.path("result.csv"));
        }
        change(&mut party);
        let [here, _there] = in_memory();
        let before = side.files();
        let error = carry_out(&party, here, None).unwrap_err();
        let Error::Input(input) = &error else { panic!("{i}: {error:?}") };
        assert_eq!(
            (&input.file, &input.row, input.column.as_deref()),
            (&party.source.name(), &row, column),
            "{error}"
        );
        assert!(!input.next.is_empty());
        assert_eq!(side.files(), before, "{error}");
    }
}

#[test]
fn a_run_that_fails_leaves_no_result() {
    let side = Side::new();
    let [receiver, _] = side.jobs(&INTERSECT);
    let before = side.files();
    let [here, there] = in_memory();
    drop(there);
    assert!(matches!(carry_out(&receiver, here, None), Err(Error::Network(_))));
    assert_eq!(side.files(), before);
}

#[test]
fn what_contradicts_itself_is_refused_before_the_table_is_read() {
    type Change = fn(&mut PartySpec);
    let receiver: [(&'static Operation, Change, &str); 7] = [
        (&SUM, |party| party.values = Some("v".into()), "`values` is for the sender"),
        (&COUNT, |party| party.source.duplicates = Some(Duplicates::Add), "`duplicates=add`"),
        (&COUNT, |party| party.spec.sent_columns = vec!["a".into()], "not in count"),
        (&SUM, |party| party.spec.terms.both = true, "`both` is not for sum"),
        (
            &UNION,
            |party| party.spec.candidates = Choice::of(&VOLE).into(),
            "`protocol=vole` cannot compute union",
        ),
        (&COUNT, |party| party.prepared = Some(("half".into(), "ledger".into())), ""),
        (&INTERSECT, |party| party.spec.sent_columns = vec!["a".into()], "0 names for 1 columns"),
    ];
    let named = |names: [&str; 2]| names.map(String::from).to_vec();
    for (operation, change, words) in receiver {
        let mut party = PartySpec::new(operation, Role::Receiver, InputTable::new("none.csv", ["key"]));
        party.check().unwrap();
        change(&mut party);
        match party.check() {
            Err(Error::Usage(what)) => assert!(!words.is_empty() && what.contains(words), "{what}"),
            other => assert!(words.is_empty() && other.is_ok(), "{words}: {other:?}"),
        }
    }
    let sender = PartySpec::new(&SUM, Role::Sender, InputTable::new("none.csv", ["key"]));
    assert!(sender.check().unwrap_err().to_string().contains("`values` is missing"));
    let mut party = PartySpec::new(&INTERSECT, Role::Receiver, InputTable::new("none.csv", ["key"]));
    (party.spec.sent_columns, party.received_as) = (named(["a", "a"]), named(["b", "c"]));
    assert!(party.check().unwrap_err().to_string().contains("\"a\" twice"));
    (party.spec.sent_columns, party.received_as) = (named(["a", "b"]), named(["c", "c"]));
    assert!(party.check().unwrap_err().to_string().contains("the name \"c\" in our result"));
    party.received_as = named(["c", "d"]);
    party.check().unwrap();
    party.output = Some("out.txt".into());
    assert!(party.check().unwrap_err().to_string().contains("a list has one"));
}

#[test]
fn a_column_of_the_sender_is_not_taken_for_ours() {
    let side = Side::new();
    let [mut party, _] = side.jobs(&INTERSECT);
    (party.spec.sent_columns, party.received_as) = (vec!["a,b".into()], vec!["city".into()]);
    let error = party.load(&Watch::NONE).err().unwrap().to_string();
    assert!(
        error.contains("would be called \"city\"") && error.contains("`receive_columns=\"a,b\"=NAME"),
        "{error}"
    );
    let [mut party, _] = side.jobs(&INTERSECT);
    (party.for_spreadsheets, party.output_format) = (true, Some(Format::Parquet));
    assert!(matches!(party.load(&Watch::NONE), Err(Error::Usage(_))));
}

#[test]
fn a_job_is_watched_and_ended() {
    let side = Side::new();
    let [party, _] = side.jobs(&COUNT);
    let phases = RefCell::new(Vec::new());
    let begins = |phase| phases.borrow_mut().push(phase);
    let watch = Watch { begins: &begins, ..Watch::NONE };
    let data = party.load(&watch).unwrap();
    data.prepare(None, &watch, &mut Prng::from_os().unwrap()).unwrap();
    assert_eq!(*phases.borrow(), [Phase::Reading, Phase::Sorting, Phase::Preparing]);
    let stop = Watch { read: &|_| Err(Error::Cancelled), ..Watch::NONE };
    assert_eq!(party.load(&stop).err(), Some(Error::Cancelled));
    assert_eq!(party.source.load(&stop, &party.local.threads).err(), Some(Error::Cancelled));
    assert_eq!(party.source.load(&Watch::NONE, &party.local.threads).unwrap().keyed.set.len(), 5);
}

#[test]
fn a_prepared_half_is_used_once_and_needs_its_identity() {
    let side = Side::new();
    let identity = Identity::generate().unwrap();
    let [mut receiver, sender] = side.jobs(&COUNT);
    let (half, ledger) = (side.path("half"), side.path("ledger"));
    let data = receiver.load(&Watch::NONE).unwrap();
    let mut output = Destination::create("prepared half", Some(&half), false).unwrap();
    let (basis, rng) = (data.request().basis().unwrap(), &mut Prng::from_os().unwrap());
    artefact::prepare(&basis, &Ledger::at(&ledger), &identity, &mut output, &|_| Ok(()), rng).unwrap();
    output.commit().unwrap();
    drop(data);
    receiver.prepared = Some((half, ledger));
    let [here, _there] = in_memory();
    assert!(matches!(carry_out(&receiver, here, None), Err(Error::Usage(_))));
    let [here, there] = in_memory();
    let report = std::thread::scope(|s| {
        let there = s.spawn(|| carry_out(&sender, there, None));
        let here = carry_out(&receiver, here, Some(&identity)).unwrap().0;
        there.join().unwrap().unwrap();
        here
    });
    assert_eq!((report.prepared, report.result.matches), (true, Some(3)));
    let [here, _there] = in_memory();
    assert!(carry_out(&receiver, here, Some(&identity)).is_err());
}

#[test]
fn the_gate_hears_how_a_job_ends() {
    let side = Side::new();
    let (policy, log) = (Policy::none(), side.path("audit.jsonl"));
    let setup = || Setup { audit_log: Some(&log), ..Setup::new(&policy, &|_| ()) };
    let [receiver, sender] = side.jobs(&COUNT);
    let run_with = |connection, peer: Option<Connection>| {
        let data = receiver.load(&Watch::NONE).unwrap();
        let mut rng = Prng::from_os().unwrap();
        let prepared = data.prepare(None, &Watch::NONE, &mut rng).unwrap();
        let mut gate = Gate::new(prepared.request(), setup()).unwrap();
        std::thread::scope(|s| {
            if let Some(peer) = peer {
                s.spawn(|| carry_out(&sender, peer, None).unwrap());
            }
            run(connection, prepared, Some(&mut gate), &mut rng)
        })
    };
    let [here, there] = in_memory();
    let ran = run_with(here, Some(there)).unwrap();
    assert!(ran.logged.is_ok() && ran.report.result.matches == Some(3));
    let ends = || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines().filter(|line| line.contains(r#""event":"end""#)).map(String::from).collect::<Vec<_>>()
    };
    assert!(
        ends().len() == 1 && ends()[0].contains(r#""outcome":"done","result":{"matches":3"#),
        "{:?}",
        ends()
    );
    // A peer that breaks off after the agreement: its messages are cut off once it would send any about its data.
    let [here, there] = in_memory();
    let Connection { channel, .. } = there;
    let (sink, source) = channel.into_halves();
    let there = Channel::from_halves(Box::new(Cut { sink, after: 4 }), source);
    let theirs = sender.load(&Watch::NONE).unwrap();
    let error = std::thread::scope(|s| {
        let theirs = theirs.request();
        s.spawn(move || {
            let there = Connection::unprotected(there, WireCount::default());
            crate::session::run::run(there, &theirs, &mut Prng::from_os().unwrap()).unwrap_err()
        });
        run_with(here, None).unwrap_err()
    });
    assert_eq!(ends().len(), 2, "{error}");
    assert!(ends()[1].contains(&format!(r#""outcome":"{}""#, error.kind())), "{:?}", ends());
}
