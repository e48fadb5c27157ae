//! Tests of the main interface, which use only the items re-exported at the root of the library.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error as _;
use std::io::ErrorKind;
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use veilset::error::{Fault, Place, Reason};
use veilset::outcome::Sharing;
use veilset::{Authenticated, Error, Identity, Keys, Options, Outcome, Peer, Result, Role, Stop};
use veilset_testing::{Draw, free_address};

/// Runs both parties, and returns the receiver's outcome and the sender's.
fn both_of<R: Send, S>(
    receiver: impl FnOnce(Peer) -> Result<R> + Send,
    sender: impl FnOnce(Peer) -> Result<S>,
) -> (Result<R>, Result<S>) {
    let (here, there) = Peer::pair();
    met(here, there, receiver, sender)
}

fn met<R: Send, S>(
    here: Peer,
    there: Peer,
    receiver: impl FnOnce(Peer) -> Result<R> + Send,
    sender: impl FnOnce(Peer) -> Result<S>,
) -> (Result<R>, Result<S>) {
    thread::scope(|s| {
        let receiver = s.spawn(|| receiver(here));
        let sender = sender(there);
        (receiver.join().unwrap(), sender)
    })
}

fn small() -> Options {
    Options::new().allow_small()
}

/// A list of keys in which some occur twice.
fn list(draw: &mut Draw, n: usize) -> Vec<String> {
    (0..n).map(|_| format!("key {}", draw.below(2 * n))).collect()
}

/// For each key of a list, its first row.
fn firsts(list: &[String]) -> BTreeMap<&str, usize> {
    list.iter().enumerate().rev().map(|(row, key)| (key.as_str(), row)).collect()
}

const SIZES: [(usize, usize); 6] = [(0, 0), (0, 5), (5, 0), (1, 1), (40, 90), (200, 31)];

#[test]
fn results_are_those_of_the_plain_computation() {
    let mut draw = Draw::new("facade");
    for (n_y, n_x) in SIZES {
        let (y, x) = (list(&mut draw, n_y), list(&mut draw, n_x));
        let (ours, theirs) = (Keys::new(&y).unwrap(), Keys::new(&x).unwrap());
        let (in_y, in_x) = (firsts(&y), firsts(&x));
        assert_eq!((ours.len(), ours.repeated()), (in_y.len(), n_y - in_y.len()));
        let matches = in_y.keys().filter(|key| in_x.contains_key(*key)).count();
        let rows = |own: &BTreeMap<&str, usize>, other: &BTreeMap<&str, usize>| -> Vec<usize> {
            let rows = own.iter().filter(|(key, _)| other.contains_key(*key)).map(|(_, row)| *row);
            rows.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let new = |own: &BTreeMap<&str, usize>, other: &BTreeMap<&str, usize>| -> BTreeSet<String> {
            other.keys().filter(|key| !own.contains_key(*key)).map(|key| key.to_string()).collect()
        };
        for options in [small(), small().both()] {
            let for_both = options.clone().both();
            let both = format!("{options:?}") == format!("{for_both:?}");
            let (r, s) = both_of(
                |peer| veilset::intersect(peer, Role::Receiver, &ours, &options),
                |peer| veilset::intersect(peer, Role::Sender, &theirs, &options),
            );
            let (r, s) = (r.unwrap(), s.unwrap());
            assert_eq!(r.result.unwrap().rows, rows(&in_y, &in_x));
            assert_eq!(s.result.map(|found| found.rows), both.then(|| rows(&in_x, &in_y)));
            assert_eq!(
                (r.report.result.matches, r.report.left_out.duplicates),
                (Some(matches), ours.repeated() as u64)
            );

            let (r, s) = both_of(
                |peer| veilset::union(peer, Role::Receiver, &ours, &options),
                |peer| veilset::union(peer, Role::Sender, &theirs, &options),
            );
            let texts = |union: veilset::outcome::Union| -> BTreeSet<String> {
                union.new.iter().map(|key| key.text(0).unwrap().to_string()).collect()
            };
            assert_eq!(texts(r.unwrap().result.unwrap()), new(&in_y, &in_x));
            assert_eq!(s.unwrap().result.map(texts), both.then(|| new(&in_x, &in_y)));

            let (r, s) = both_of(
                |peer| veilset::count(peer, Role::Receiver, &ours, &options),
                |peer| veilset::count(peer, Role::Sender, &theirs, &options),
            );
            assert_eq!(r.unwrap().result, Some(matches as u64));
            assert_eq!(s.unwrap().result, both.then_some(matches as u64));
        }
        let (r, s) = both_of(
            |peer| veilset::id(peer, Role::Receiver, &ours, &small()),
            |peer| veilset::id(peer, Role::Sender, &theirs, &small()),
        );
        let (r, s) = (r.unwrap().result, s.unwrap().result);
        let names: HashMap<[u8; 16], &String> =
            r.rows.iter().copied().zip(&y).chain(s.rows.iter().copied().zip(&x)).collect();
        // Each identifier has one key, and each key one identifier.
        assert!(r.rows.iter().zip(&y).chain(s.rows.iter().zip(&x)).all(|(id, key)| names[id] == key));
        assert_eq!(names.len(), in_y.len() + in_x.len() - matches);
        assert_eq!(r.all, s.all);
        assert_eq!(r.all, names.keys().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
    }
}

/// Values and sums of both signs; keys that occur once.
#[test]
fn sums_and_shares_are_those_of_the_plain_computation() {
    let mut draw = Draw::new("facade values");
    for (n_y, n_x) in SIZES {
        let distinct =
            |list: Vec<String>| list.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        let (y, x) = (distinct(list(&mut draw, n_y)), distinct(list(&mut draw, n_x)));
        let values: Vec<i64> = x.iter().map(|_| draw.below(1000) as i64 - 500).collect();
        let ours = Keys::new(&y).unwrap();
        let bare = || Keys::new(&x).unwrap();
        let theirs = bare().with_values(values.iter().copied()).unwrap();
        let common: Vec<usize> = (0..x.len()).filter(|&i| y.contains(&x[i])).collect();
        let (matches, sum) =
            (common.len() as u64, common.iter().map(|&i| i128::from(values[i])).sum::<i128>());
        for (least, said) in [(0, true), (matches, true), (matches + 1, false)] {
            let options = small().min_count(least);
            let (r, s) = both_of(
                |peer| veilset::sum(peer, Role::Receiver, &ours, &options),
                |peer| veilset::sum(peer, Role::Sender, &theirs, &options),
            );
            let (r, s) = (r.unwrap().result, s.unwrap().result);
            assert_eq!((r.matches, r.sum), (Some(matches), None));
            assert_eq!(
                (s.matches, s.sum),
                (said.then_some(matches), said.then_some(sum)),
                "at least {least}"
            );
        }
        for (keys, shares_values) in [(bare(), false), (theirs, !x.is_empty())] {
            let options = small().max_row(12).pad_to(x.len() + 3);
            let (r, s) = both_of(
                |peer| veilset::share(peer, Role::Receiver, &ours, &small().max_row(12)),
                |peer| veilset::share(peer, Role::Sender, &keys, &options),
            );
            let (r, s) = (r.unwrap().result, s.unwrap().result);
            assert_eq!((r.len(), s.len(), r.width), (x.len() + 3, x.len() + 3, s.width));
            assert_eq!((r.matches, s.matches, r.rows.len()), (Some(matches), None, 0));
            let rows: BTreeSet<usize> = s.rows.iter().flatten().copied().collect();
            assert_eq!((rows, s.rows.len()), ((0..x.len()).collect(), s.len()));
            for (i, row) in s.rows.iter().enumerate() {
                let (a, b) = (r.get(i).unwrap(), s.get(i).unwrap());
                let shared = match s.sharing {
                    Sharing::Xor => a.iter().zip(b).map(|(a, b)| a ^ b).collect(),
                    Sharing::Additive => {
                        let number = |share: &[u8]| u64::from_le_bytes(share.try_into().unwrap());
                        number(a).wrapping_add(number(b)).to_le_bytes().to_vec()
                    }
                };
                let expected = match row.filter(|row| common.contains(row)) {
                    None => vec![0; s.width],
                    Some(row) if shares_values => values[row].to_le_bytes().to_vec(),
                    Some(row) => {
                        // The length of the row, then the key after its own length.
                        let key = x[row].as_bytes();
                        let mut bytes = [&[key.len() as u8 + 1, key.len() as u8][..], key].concat();
                        bytes.resize(s.width, 0);
                        bytes
                    }
                };
                assert_eq!(shared, expected, "{row:?}");
            }
            assert_eq!(r.get(r.len()), None);
        }
    }
}

#[test]
fn columns_travel_with_the_first_row_of_a_key() {
    let theirs = Keys::new(["b", "a", "c", "a"]).unwrap();
    let theirs = theirs
        .with_columns(["city", "plan"], [["Rome", "1"], ["Oslo", ""], ["Köln", "3"], ["Bern", "4"]])
        .unwrap();
    let ours = Keys::new(["x", "a", "b", "a"]).unwrap();
    let options = small().receive_columns(["city", "plan"]);
    let texts = |cells: &[veilset::outcome::Cells]| -> Vec<Vec<String>> {
        let row = |row: &veilset::outcome::Cells| {
            (0..row.len()).map(|i| row.text(i).unwrap().to_string()).collect()
        };
        cells.iter().map(row).collect()
    };
    let (r, s) = both_of(
        |peer| veilset::intersect(peer, Role::Receiver, &ours, &options),
        |peer| veilset::intersect(peer, Role::Sender, &theirs, &small()),
    );
    let found = r.unwrap().result.unwrap();
    assert_eq!(
        (found.rows, texts(&found.columns)),
        (vec![1, 2], vec![vec!["Oslo".into(), String::new()], vec!["Rome".into(), "1".into()]])
    );
    assert_eq!(s.unwrap().result, None);
    let (r, _) = both_of(
        |peer| veilset::union(peer, Role::Receiver, &ours, &options),
        |peer| veilset::union(peer, Role::Sender, &theirs, &small()),
    );
    let union = r.unwrap().result.unwrap();
    assert_eq!(
        (texts(&union.new), texts(&union.columns)),
        (vec![vec!["c".to_string()]], vec![vec!["Köln".into(), "3".into()]])
    );
    // Without the receiver's consent, no columns are sent.
    let (r, s) = both_of(
        |peer| veilset::union(peer, Role::Receiver, &ours, &small()),
        |peer| veilset::union(peer, Role::Sender, &theirs, &small()),
    );
    for error in [r.map(drop).unwrap_err(), s.map(drop).unwrap_err()] {
        assert!(
            matches!(&error, Error::Disagreement(all) if all.iter().any(|d| d.term == "sent_columns")),
            "{error}"
        );
    }
}

#[test]
fn keys_of_several_columns_of_bytes_and_normalised_ones_match() {
    let builder = || Keys::builder().normalize("trim,casefold");
    let ours = builder().build_columns([["Doe ", "JANE"], ["Roe", "Rick"]]).unwrap();
    let theirs = builder().build_columns(vec![vec!["doe", "jane"], vec!["Doe", "J"]]).unwrap();
    let (r, _) = both_of(
        |peer| veilset::union(peer, Role::Receiver, &ours, &small()),
        |peer| veilset::union(peer, Role::Sender, &theirs, &small()),
    );
    let union = r.unwrap().result.unwrap();
    assert_eq!(union.new.len(), 1);
    assert_eq!(union.new[0].iter().collect::<Vec<_>>(), [b"doe", &b"j"[..]]);

    let ours = Keys::builder().bytes().keep_empty().build([&[0, 0xff][..], b"", b"a"]).unwrap();
    let theirs = Keys::builder().bytes().keep_empty().build([vec![0, 0xff], vec![], vec![0xfe]]).unwrap();
    let (r, _) = both_of(
        |peer| veilset::union(peer, Role::Receiver, &ours, &small()),
        |peer| veilset::union(peer, Role::Sender, &theirs, &small()),
    );
    let outcome = r.unwrap();
    assert_eq!(outcome.report.result.matches, Some(2));
    let new = outcome.result.unwrap().new;
    assert_eq!((new.len(), new[0].get(0), new[0].text(0), new[0].get(1)), (1, Some(&[0xfe][..]), None, None));
    // One side compares bytes, the other text.
    let text = Keys::new(["a"]).unwrap();
    let (r, _) = both_of(
        |peer| veilset::count(peer, Role::Receiver, &ours, &small()),
        |peer| veilset::count(peer, Role::Sender, &text, &small()),
    );
    let error = r.map(drop).unwrap_err();
    assert!(
        matches!(&error, Error::Disagreement(all) if all.iter().any(|d| d.ours == "bytes" && d.theirs == "utf8")),
        "{error}"
    );
}

/// The reasons for refusing a list, and their rows.
#[test]
fn a_bad_list_is_refused_with_its_row() {
    let long = "x".repeat(1 << 16);
    let keys = || Keys::new(["a", "b"]);
    let twice = || Keys::new(["a", "b", "a"]);
    let none: [&str; 0] = [];
    // (list, row, what)
    let cases: Vec<(Result<Keys>, Option<u64>, &str)> = vec![
        (Keys::new(["a", ""]), Some(2), "the key is empty"),
        (Keys::builder().normalize("trim").build(["a", " \t"]), Some(2), "the key is empty"),
        (Keys::builder().build_columns([["a", "b"], ["", "b"]]), Some(2), "the key is empty"),
        (Keys::new([&b"a"[..], b"\xff"]), Some(2), "the key is not UTF-8"),
        (Keys::new(["a", &long]), Some(2), "65539 bytes"),
        (
            Keys::builder().build_columns([vec!["a"], vec!["a", "b"]]),
            Some(2),
            "2 columns, and the first one has 1",
        ),
        (Keys::builder().build_columns([none]), Some(1), "no columns"),
        (keys().and_then(|keys| keys.with_values([1])), None, "2 keys, and 1 values"),
        (keys().and_then(|keys| keys.with_values([1, 2, 3])), None, "2 keys, and more values"),
        (twice().and_then(|keys| keys.with_values([1, 2, 3])), Some(3), "row 1 again"),
        (keys().and_then(|keys| keys.with_columns(["c"], [["1"]])), None, "2 keys, and 1 rows"),
        (
            keys().and_then(|keys| keys.with_columns(["c"], [["1"], ["2"], ["3"]])),
            None,
            "2 keys, and more rows",
        ),
        (
            keys().and_then(|keys| keys.with_columns(["c"], [vec!["1"], vec!["2", "3"]])),
            Some(2),
            "2 cells for 1 columns",
        ),
        (
            keys().and_then(|keys| keys.with_columns(["c"], [&[b"1"], &[b"\xff"]])),
            Some(2),
            "a cell is not UTF-8",
        ),
        (keys().and_then(|keys| keys.with_columns(["c"], [["1"], [&long]])), Some(2), "65539 bytes"),
    ];
    for (keys, row, what) in cases {
        let error = keys.expect_err(what);
        assert!(error.to_string().contains(what), "{error}");
        let Error::Input(input) = &error else { panic!("{error}") };
        assert_eq!(input.row, row.map(Place::Row), "{error}");
        assert!(!error.to_string().contains("xxx"), "{error}");
    }
    for builder in [Keys::builder().normalize("upper"), Keys::builder().normalize("trim").bytes()] {
        let error = builder.build(["a"]).unwrap_err();
        assert!(matches!(&error, Error::Usage(what) if what.contains("`normalize`")), "{error}");
    }
}

/// Mistakes on our side alone are reported before the peer receives anything.
#[test]
fn what_our_side_cannot_do_is_refused_before_the_peer_is_met() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (ours, theirs) = (std::sync::Arc::new(Identity::generate().unwrap()), Identity::generate().unwrap());
    let peer = || Peer::connect(address.as_str(), ours.clone(), theirs.fingerprint());
    let keys = || Keys::new(["a", "b"]).unwrap();
    let valued = || keys().with_values([1, 2]).unwrap();
    let columns = || keys().with_columns(["c"], [["1"], ["2"]]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let unit = |outcome: Result<Outcome<Option<u64>>>| outcome.map(drop);
    let count = |options: Options| unit(veilset::count(peer(), Role::Receiver, &keys(), &options));
    // (the result, words of the error)
    let cases: Vec<(Result<()>, &str)> = vec![
        (count(small().protocol("magic")), "\"magic\" is not a protocol"),
        (count(small().protocol("vole")), "cannot compute count"),
        (count(small().group("p521")), "\"p521\" is not a group"),
        (count(small().assume(["magic"])), "\"magic\" is not an assumption"),
        (count(small().assume(["dcr"])), "no protocol computes count"),
        (count(small().protocol("osn").assume(["ddh"])), "`assume` leaves out"),
        (count(small().pad_to(1)), "`pad_to=1`"),
        (count(small().shards(4)), "`shards` is not for count"),
        (count(small().malicious_sender()), "no protocol computes count"),
        (count(small().audit_log(folder.path())), "log"),
        (count(small().threads(1).receive_columns(["c"])), "columns can be sent"),
        (unit(veilset::count(peer(), Role::Receiver, &valued(), &small())), "has no values"),
        (veilset::sum(peer(), Role::Receiver, &valued(), &small()).map(drop), "has no values"),
        (veilset::sum(peer(), Role::Sender, &keys(), &small()).map(drop), "Keys::with_values"),
        (
            veilset::intersect(peer(), Role::Receiver, &columns(), &small()).map(drop),
            "for the sender to send",
        ),
        (
            veilset::intersect(peer(), Role::Sender, &keys(), &small().receive_columns(["c"])).map(drop),
            "for the receiver",
        ),
        (veilset::union(peer(), Role::Sender, &columns(), &small().max_row(2)).map(drop), "`max_row`"),
        (
            veilset::count(
                Peer::connect("nowhere", ours.clone(), theirs.fingerprint()),
                Role::Sender,
                &keys(),
                &small(),
            )
            .map(drop),
            "nowhere",
        ),
        (
            veilset::count(peer().through_proxy("nowhere"), Role::Sender, &keys(), &small()).map(drop),
            "nowhere",
        ),
    ];
    for (outcome, words) in cases {
        let error = outcome.expect_err(words);
        assert!(
            matches!(error, Error::Usage(_) | Error::Output(_)) && error.to_string().contains(words),
            "{error}"
        );
    }
    assert!(listener.accept().is_err(), "the peer heard from us");
}

/// Small sets of a peer that learns something about our rows.
#[test]
fn a_small_set_is_refused_unless_it_is_allowed() {
    let many = Keys::new((0..10).map(|i| i.to_string())).unwrap();
    let few = Keys::new((0..9).map(|i| i.to_string())).unwrap();
    let run = |receivers: &Keys, options: [Options; 2]| {
        both_of(
            |peer| veilset::count(peer, Role::Receiver, receivers, &options[0]),
            |peer| veilset::count(peer, Role::Sender, &few, &options[1]),
        )
    };
    let (r, s) = run(&few, [Options::new(), Options::new()]);
    let (r, s) = (r.unwrap_err(), s.unwrap_err());
    assert!(matches!(&s, Error::Refused(what) if what.contains("`allow_small`")), "{s}");
    assert_eq!((r.fault(), r.reason()), (Some(Fault::GaveUp), Some(Reason::Refused)), "{r}");
    // The receiver of a count learns something about the sender's rows, but not vice versa.
    assert_eq!(run(&few, [Options::new(), small()]).0.unwrap().result, Some(9));
    assert_eq!(run(&many, [Options::new(), Options::new()]).0.unwrap().result, Some(9));
}

/// Over TLS, with identities, a log on both sides, and notices for the user.
#[test]
fn two_parties_meet_over_tls_and_keep_logs() {
    let (a, b) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (of_a, of_b) = (a.fingerprint(), b.fingerprint());
    let address = free_address();
    let folder = tempfile::tempdir().unwrap();
    let logs = ["a", "b"].map(|name| folder.path().join(name));
    let (say, said) = std::sync::mpsc::channel();
    let ours = Keys::new(["a", "b"]).unwrap();
    let theirs = Keys::new(["b", "c"]).unwrap();
    let options = logs.clone().map(|log| small().audit_log(log).threads(2));
    let [receives, sends] = options;
    let receives = receives.notices(move |line| say.send(line.to_string()).unwrap());
    let (r, s) = met(
        Peer::listen(address.as_str(), a, of_b),
        Peer::connect(address.as_str(), b, of_a),
        |peer| veilset::count(peer, Role::Receiver, &ours, &receives),
        |peer| veilset::count(peer, Role::Sender, &theirs, &sends),
    );
    let (r, s) = (r.unwrap(), s.unwrap());
    assert_eq!((r.result, s.result), (Some(1), None));
    assert_eq!((r.logged, s.logged), (Ok(()), Ok(())));
    assert_eq!(
        (r.report.bytes.sent, r.report.bytes.received),
        (s.report.bytes.received, s.report.bytes.sent)
    );
    assert_eq!(said.try_recv().unwrap(), format!("listening on {address}"));
    for (log, other) in logs.iter().zip([of_b, of_a]) {
        let text = std::fs::read_to_string(log).unwrap();
        assert_eq!((text.lines().count(), text.contains(&other.to_string())), (2, true), "{text}");
    }
    // A stranger connects.
    let stranger = Identity::generate().unwrap();
    let (of_stranger, short) = (stranger.fingerprint(), small().connect_timeout(Duration::from_secs(2)));
    let (r, s) = met(
        Peer::listen(address.as_str(), Identity::generate().unwrap(), of_b),
        Peer::connect(address.as_str(), stranger, of_a),
        |peer| veilset::count(peer, Role::Receiver, &ours, &short),
        |peer| veilset::count(peer, Role::Sender, &theirs, &short),
    );
    assert_eq!(r.unwrap_err().fault(), Some(Fault::Stranger));
    assert_eq!(s.unwrap_err().fault(), Some(Fault::Stranger));
    assert_ne!(of_stranger, of_b);
}

/// Over the caller's blocking streams, with the bytes counted, and ended on both sides.
#[test]
fn two_parties_meet_over_a_connection_that_is_already_authenticated() {
    let fingerprints =
        [Identity::generate().unwrap().fingerprint(), Identity::generate().unwrap().fingerprint()];
    let over = |stream: UnixStream, i: usize, exporter| {
        let (read, write) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let by = Authenticated { ours: fingerprints[i], peer: fingerprints[1 - i], exporter };
        Peer::over(read, write, move || drop(stream.shutdown(Shutdown::Write)), by)
    };
    let (ours, theirs) = (Keys::new(["a", "b"]).unwrap(), Keys::new(["b", "c"]).unwrap());
    let run = |exporters: [[u8; 32]; 2]| {
        let (here, there) = UnixStream::pair().unwrap();
        let (probe, kept) = (here.try_clone().unwrap(), there.try_clone().unwrap());
        let ran = met(
            over(here, 0, exporters[0]),
            over(there, 1, exporters[1]),
            |peer| veilset::union(peer, Role::Receiver, &ours, &small()),
            |peer| veilset::union(peer, Role::Sender, &theirs, &small()),
        );
        // Both sides have ended their direction.
        for mut end in [probe, kept] {
            assert_eq!(std::io::copy(&mut end, &mut std::io::sink()).unwrap(), 0);
        }
        ran
    };
    let (r, s) = run([[7; 32]; 2]);
    let (r, s) = (r.unwrap(), s.unwrap());
    assert_eq!(r.result.unwrap().new.len(), 1);
    assert_eq!(
        (r.report.bytes.sent, r.report.bytes.received),
        (s.report.bytes.received, s.report.bytes.sent)
    );
    assert!(r.report.bytes.sent > 100);
    assert_eq!(r.report.parties.peer().fingerprint, Some(fingerprints[1]));
    // A run is bound to its connection.
    let (r, s) = run([[7; 32], [8; 32]]);
    assert!(r.is_err() && s.is_err());
    // We cannot be our own peer.
    let (here, _there) = UnixStream::pair().unwrap();
    let by = Authenticated { ours: fingerprints[0], peer: fingerprints[0], exporter: [7; 32] };
    let error =
        veilset::count(Peer::over(here.try_clone().unwrap(), here, || (), by), Role::Sender, &ours, &small());
    assert!(matches!(error.unwrap_err(), Error::Usage(_)));
    // Options that are refused end our direction too: the peer does not wait for us.
    let (here, mut there) = UnixStream::pair().unwrap();
    let kept = here.try_clone().unwrap();
    let refused = veilset::count(over(here, 0, [7; 32]), Role::Receiver, &ours, &small().pad_to(1));
    assert!(matches!(refused.unwrap_err(), Error::Usage(_)));
    assert_eq!(std::io::copy(&mut there, &mut std::io::sink()).unwrap(), 0);
    drop(kept);
}

/// A peer that leaves, sends nothing, or sends something else.
#[test]
fn a_peer_over_streams_that_is_gone_or_silent_or_wrong_is_an_error() {
    let fingerprints =
        [Identity::generate().unwrap().fingerprint(), Identity::generate().unwrap().fingerprint()];
    let keys = Keys::new(["a", "b"]).unwrap();
    let run = |stream: UnixStream, options: &Options| {
        let (read, write) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let by = Authenticated { ours: fingerprints[0], peer: fingerprints[1], exporter: [7; 32] };
        let peer = Peer::over(read, write, move || drop(stream.shutdown(Shutdown::Write)), by);
        veilset::count(peer, Role::Receiver, &keys, options).map(drop).unwrap_err()
    };
    let (here, there) = UnixStream::pair().unwrap();
    drop(there);
    let error = run(here, &small());
    assert!(matches!(&error, Error::Network(what) if what.contains("closed the connection")), "{error}");
    let beneath = |error: &Error| Some(error.source()?.downcast_ref::<std::io::Error>()?.kind());
    assert_eq!(beneath(&error), Some(ErrorKind::UnexpectedEof));
    let (here, _there) = UnixStream::pair().unwrap();
    let error = run(here, &small().idle_timeout(Duration::from_secs(1)));
    assert!(matches!(&error, Error::Network(what) if what.contains("nothing came")), "{error}");
    assert_eq!(beneath(&error), Some(ErrorKind::TimedOut));
    let (here, mut there) = UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut there, &[0xee; 4096]).unwrap();
    let error = run(here, &small());
    assert_eq!(error.fault(), Some(Fault::Misbehaved), "{error}");
}

#[test]
fn a_run_is_stopped_before_it_begins_while_it_waits_and_while_it_runs() {
    let keys = Keys::new(["a", "b"]).unwrap();
    let stopped = Stop::new();
    stopped.stop();
    let (peer, _other) = Peer::pair();
    let error = veilset::count(peer, Role::Receiver, &keys, &small().stop(&stopped)).unwrap_err();
    assert_eq!((error, stopped.is_stopped()), (Error::Cancelled, true));

    // No peer connects, or the peer sends nothing.
    let (a, b) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (silent, _other) = Peer::pair();
    for peer in [Peer::listen(free_address(), a, b.fingerprint()), silent] {
        let stop = Stop::new();
        let options = small().stop(&stop);
        thread::scope(|s| {
            let run = s.spawn(|| veilset::count(peer, Role::Receiver, &keys, &options));
            thread::sleep(Duration::from_millis(300));
            assert!(!run.is_finished());
            stop.stop();
            assert_eq!(run.join().unwrap().unwrap_err(), Error::Cancelled);
        });
    }
}

/// The secret of a connection does not remain in memory: the type has a destructor, although its fields need none.
#[test]
fn the_secret_of_a_connection_is_not_just_dropped() {
    assert!(std::mem::needs_drop::<Authenticated>());
}

/// Types that hold data of a party show only its amount.
#[test]
fn debug_shows_no_data() {
    let keys =
        Keys::new(["secret", "secret"]).unwrap().with_columns(["c"], [["secret"], ["secret"]]).unwrap();
    let (r, s) = both_of(
        |peer| veilset::union(peer, Role::Receiver, &Keys::new(["a"])?, &small().receive_columns(["c"])),
        |peer| veilset::union(peer, Role::Sender, &keys, &small()),
    );
    let (shared, own) = both_of(
        |peer| veilset::id(peer, Role::Receiver, &Keys::new(["secret"])?, &small()),
        |peer| veilset::share(peer, Role::Sender, &keys, &small()),
    );
    assert!(shared.is_err() && own.is_err());
    assert_eq!(
        format!("{keys:?} {:?}", r.unwrap().result.unwrap()),
        "Keys(1) Union { new: [Cells(1)], columns: [Cells(1)] }"
    );
    assert_eq!(s.unwrap().result, None);
    let exporter = [222; 32];
    let fingerprint = Identity::generate().unwrap().fingerprint();
    let by = Authenticated { ours: fingerprint, peer: fingerprint, exporter };
    assert!(!format!("{by:?}").contains("222"));
    for peer in [Peer::pair().0, Peer::listen("127.0.0.1:7000", Identity::generate().unwrap(), fingerprint)] {
        assert!(format!("{peer:?}").starts_with("Peer("));
    }
    assert_eq!(format!("{:?}", Stop::new()), "Stop(false)");
}
