use super::*;
use crate::item::ItemSet;
use crate::operations::{Role, SUM, Terms};
use crate::places::CHECK;
use crate::rng::Prng;
use crate::session::Hello;
use crate::sharded::disk::{Distinct, Form};
use crate::testing::{self, hello, party, proposal};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, UNIX_EPOCH};

fn run(peer: &str, items: usize, peer_items: usize, set: Option<&str>) -> Run {
    Run {
        operation: "count".into(),
        protocol: "dh".into(),
        role: "receiver".into(),
        parties: vec![participant(Seat::PEER, peer, peer_items)],
        our: Some("us".into()),
        items,
        allowed: None,
        why: None,
        allow_small: false,
        checked: false,
        terms: [("--group".to_string(), "curve25519".to_string())].into(),
        set: set.map(Into::into),
        values: None,
        prepared: false,
        version: "0".into(),
    }
}

fn participant(seat: Seat, peer: &str, items: usize) -> Participant {
    Participant { seat, peer: Some(peer.into()), name: None, items }
}

/// Names of the parties, and sizes of their sets.
type With<'a> = &'a [(&'a str, usize)];

/// A run with these parties, numbered from 2.
fn with(others: With<'_>, set: &str) -> Run {
    let numbered = |(number, &(peer, items))| participant(Seat::numbered(number), peer, items);
    let parties = (2..).map_while(NonZeroU8::new).zip(others).map(numbered).collect();
    Run { parties, ..run("", 1, 0, Some(set)) }
}

fn log(folder: &tempfile::TempDir) -> AuditLog {
    AuditLog::open(&folder.path().join("new/audit.jsonl")).unwrap()
}

fn start(log: &AuditLog, run: &Run) {
    log.append(&Entry::now(&SessionId::of([7; 32]), Event::Start(run.clone()))).unwrap();
}

#[test]
fn times_are_right() {
    // From `date -u -d @N +%FT%TZ`.
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z"),
        (1_735_689_599, "2024-12-31T23:59:59Z"),
        (1_735_689_600, "2025-01-01T00:00:00Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
    }
}

#[test]
fn a_log_is_private_and_only_grows() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&log.path), mode(log.path.parent().unwrap())), (0o600, 0o700));
    start(&log, &run("a", 1, 2, Some("x")));
    let first = std::fs::read_to_string(&log.path).unwrap();
    let entry: Entry = serde_json::from_str(&first).unwrap();
    assert_eq!(entry.event, Event::Start(run("a", 1, 2, Some("x"))));
    assert_eq!((entry.session, first.lines().count()), ("07".repeat(32), 1));
    start(&AuditLog::open(&log.path).unwrap(), &run("b", 1, 2, None));
    let both = std::fs::read_to_string(&log.path).unwrap();
    assert!(both.starts_with(&first) && both.lines().count() == 2 && both.ends_with('\n'), "{both}");
}

#[test]
fn earlier_runs_with_the_same_peer_count_if_they_started() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    let here = run("a", 1, 2, Some("x"));
    assert_eq!(log.history(&here).unwrap(), History::default());
    // Runs with other parties, checks, refusals and ends do not count.
    let end = End {
        outcome: "done".into(),
        fault: None,
        party: None,
        result: serde_json::json!({}),
        bytes: Some((1, 2)),
        seconds: 0.5,
    };
    start(&log, &run("b", 1, 9, Some("y")));
    for event in [Event::Check(here.clone()), Event::Refused(here.clone()), Event::End(end)] {
        log.append(&Entry::now(&SessionId::of([0; 32]), event)).unwrap();
    }
    assert_eq!(log.history(&here).unwrap().runs, 0);

    start(&log, &here);
    let history = log.history(&here).unwrap();
    assert!(
        history.runs == 1
            && !history.changed()
            && history.last.as_ref().is_some_and(|last| last.time.ends_with('Z')),
        "{history:?}"
    );
    assert_eq!(history.warning("a"), None);
    // A different operation or padding does not make a different set; different values do.
    let sum = |values: &str| Run { operation: "sum".into(), values: Some(values.into()), ..here.clone() };
    assert!(!log.history(&sum("v")).unwrap().changed());
    assert!(!log.history(&Run { items: 9, ..here.clone() }).unwrap().changed());
    let other = AuditLog::open(&folder.path().join("other.jsonl")).unwrap();
    start(&other, &sum("v"));
    assert!(!other.history(&sum("v")).unwrap().changed() && other.history(&sum("w")).unwrap().changed());
    // Repeating an earlier run reveals nothing new, whatever runs come in between.
    let between = AuditLog::open(&folder.path().join("between.jsonl")).unwrap();
    start(&between, &here);
    start(&between, &run("a", 7, 2, Some("y")));
    assert!(!between.history(&here).unwrap().changed());
    assert!(between.history(&run("a", 7, 2, Some("z"))).unwrap().changed());
    // (the run now, words of the warning)
    for (now, words) in [
        (run("a", 1, 2, Some("y")), "our set has changed"),
        (run("a", 3, 2, Some("y")), "our set has changed"),
        (run("a", 3, 2, None), "our set has changed"),
        (Run { operation: "union".into(), ..run("a", 1, 2, Some("y")) }, "our set has changed"),
        (run("a", 1, 3, Some("x")), "the peer's set has changed in size"),
        (run("a", 1, 3, Some("y")), "both sets have changed"),
        (run("a", 3, 3, None), "both sets have changed"),
        (run("a", 1, 3, None), "the peer's set has changed in size, and perhaps ours,"),
        (run("a", 1, 2, None), "our set may have changed"),
        (Run { our: Some("new".into()), ..run("a", 1, 2, Some("z")) }, "our set may have changed"),
    ] {
        let warning = log.history(&now).unwrap().warning("hospital-b").unwrap();
        assert!(warning.contains(words), "{warning}");
        assert!(
            warning.contains("run 2 with hospital-b, and ")
                && warning.contains("since the last one (count of 2")
        );
        assert!(log.history(&now).unwrap().is_news());
    }
}

#[test]
fn a_change_is_told_once_and_since_the_last_run() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    let [x, y, z] = ["x", "y", "z"].map(|set| run("a", 1, 2, Some(set)));
    let union = |run: &Run| Run { operation: "union".into(), ..run.clone() };
    // (the run, the warning)
    let cases = [
        (x.clone(), None),
        (union(&x), None),
        (y.clone(), Some("our set has changed since the last one (union of ")),
        (y.clone(), None),
        (x.clone(), None),
        (run("a", 1, 3, Some("x")), Some("the peer's set has changed in size since the last one (count of ")),
        (run("a", 1, 3, Some("x")), None),
        (z, Some("both sets have changed since the last one (count of ")),
        (y, None),
    ];
    for (now, words) in cases {
        let history = log.history(&now).unwrap();
        let warning = history.warning("b");
        assert_eq!((history.changed(), history.is_news()), (words.is_some(), words.is_some()));
        assert_eq!(warning.is_some(), words.is_some(), "{warning:?}");
        assert!(warning.is_none_or(|warning| warning.contains(words.unwrap_or_default())));
        start(&log, &now);
    }
    // Without digests any run may have a different set, so each later one counts as changed. Only the first two runs with the
    // same sizes get a warning.
    let plain = AuditLog::open(&folder.path().join("plain.jsonl")).unwrap();
    let nobody = Participant { peer: None, ..participant(Seat::PEER, "", 2) };
    let here = |items| Run { our: None, parties: vec![nobody.clone()], ..run("", items, 2, None) };
    for (items, changed, news) in [
        (5, false, false),
        (5, true, true),
        (5, true, false),
        (5, true, false),
        (6, true, true),
        (6, true, true),
        (6, true, false),
    ] {
        let history = plain.history(&here(items)).unwrap();
        assert_eq!((history.changed(), history.is_news()), (changed, news), "{items}");
        start(&plain, &here(items));
    }
}

#[test]
fn the_terms_of_a_run_have_keys_and_logs_of_old_are_read() {
    let mut hello = Hello { key_columns: 2, ..hello(&SUM, Role::Sender) };
    (hello.spec.sent_columns, hello.spec.value_scale) = (vec!["city".into()], 1);
    hello.spec.terms = Terms { min_count: 20, ..Terms::default() };
    let proposal = proposal(hello, 1, testing::peer(2, false));
    let terms = Run::new(&proposal, None, None, None, false).terms;
    let expected = [
        ("group", "curve25519"),
        ("job", "0"),
        ("key_columns", "2"),
        ("malicious_sender", "no"),
        ("max_row", "0"),
        ("min_count", "20"),
        ("modulus_bits", "64"),
        ("normalisation", "none"),
        ("operation", "sum"),
        ("output", "receiver"),
        ("parties", "none"),
        ("protocol", "dh"),
        ("purpose", "run"),
        ("reveal_count_to_sender", "no"),
        ("sent_columns", "\"city\""),
        ("shards", "0"),
        ("value_scale", "1"),
    ];
    let expected = expected.map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(terms.into_iter().collect::<Vec<_>>(), expected);

    // A line of version 0.1, whose terms have descriptions as keys.
    let old = r#"{"time":"2026-11-20T10:00:00Z","session":"07","event":"start","operation":"count","protocol":"dh",
        "role":"receiver","peer":"a","peer_name":null,"our":"us","items":1,"peer_items":2,"terms":{"--group":"curve25519",
        "who gets the result (--both)":"receiver"},"set":"x","prepared":false,"version":"0.1.0"}"#;
    let end = r#"{"time":"2026-11-20T10:00:01Z","session":"07","event":"end","outcome":"peer","result":{},"bytes":null,
        "seconds":0.5}"#;
    let end: Entry = serde_json::from_str(end).unwrap();
    assert!(matches!(end.event, Event::End(End { fault: None, .. })));
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    std::fs::write(&log.path, old.replace('\n', "") + "\n").unwrap();
    let history = |set| log.history(&run("a", 1, 2, Some(set))).unwrap();
    assert!(history("x").known && history("y").changed() && history("y").foreign.is_empty());
}

/// Programs read the log: existing fields stay.
#[test]
fn a_line_of_a_run_of_two_has_the_same_fields_in_every_version() {
    let peer = Party { name: Some("south".into()), seat: Seat::PEER, ..party(2, "south", 5) };
    let fingerprint = Fingerprint::of_public_key(b"south");
    let ours = Fingerprint::of_public_key(b"us");
    let proposal = proposal(hello(&SUM, Role::Receiver), 3, peer);
    let mut run = Run::new(&proposal, Some(ours), Some("x"), None, true);
    run.terms.clear();
    let line = serde_json::to_value(Entry::now(&SessionId::of([7; 32]), Event::Start(run.clone()))).unwrap();
    let time = line["time"].clone();
    let mut expected = serde_json::json!({
        "time": time, "session": "07".repeat(32), "event": "start", "operation": "sum", "protocol": "dh",
        "role": "receiver", "peer": fingerprint.to_string(), "peer_name": "south", "our": ours.to_string(), "items": 3,
        "peer_items": 5, "allowed": {"ours": ["dh"], "theirs": ["dh"]}, "terms": {}, "set": "x", "prepared": true, "version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(line, expected);
    let Event::Start(read) = serde_json::from_value::<Entry>(line).unwrap().event else { panic!("no start") };
    assert_eq!(read, run);
    // Unknown fields are null.
    let unknown = testing::proposal(hello(&SUM, Role::Receiver), 3, testing::peer(5, false));
    let mut run = Run::new(&unknown, None, None, Some("v"), true);
    run.terms.clear();
    for (name, value) in
        [("peer", None), ("peer_name", None), ("our", None), ("set", None), ("values", Some("v"))]
    {
        expected[name] = value.into();
    }
    let entry = Entry {
        time: time.as_str().unwrap().into(),
        ..Entry::now(&SessionId::of([7; 32]), Event::Start(run))
    };
    assert_eq!(serde_json::to_value(entry).unwrap(), expected);
}

#[test]
fn a_line_of_a_run_of_several_has_a_list_and_is_read_as_it_was_written() {
    for others in [&[("a", 2), ("b", 3)][..], &[("a", 2)], &[("a", 2), ("b", 3), ("c", 4)]] {
        let run = with(others, "x");
        let entry = Entry::now(&SessionId::of([7; 32]), Event::Start(run));
        let line = serde_json::to_value(&entry).unwrap();
        assert_eq!(line["parties"].as_array().unwrap().len(), others.len());
        assert_eq!(
            line["parties"][0],
            serde_json::json!({"party": 2, "peer": "a", "peer_name": null, "peer_items": 2})
        );
        // A program that knows only runs of two must not take the line for one.
        assert_eq!(line.get("peer_items"), None);
        assert_eq!(serde_json::from_value::<Entry>(line.clone()).unwrap(), entry);
        for parties in [serde_json::json!([]), serde_json::json!(null)] {
            let mut nobody = line.clone();
            nobody["parties"] = parties;
            assert!(serde_json::from_value::<Entry>(nobody).is_err());
        }
    }
    let end = End {
        outcome: "peer".into(),
        fault: Some("misbehaved".into()),
        party: NonZeroU8::new(3),
        result: serde_json::json!({}),
        bytes: None,
        seconds: 0.5,
    };
    let line = serde_json::to_value(&end).unwrap();
    assert_eq!((&line["party"], serde_json::from_value::<End>(line.clone()).unwrap()), (&3.into(), end));
}

#[test]
fn an_earlier_run_counts_if_it_was_with_one_of_the_parties() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    start(&log, &with(&[("a", 2), ("b", 3)], "x"));
    // (the parties now, our set, how many runs count, words of the warning)
    let cases: [(With<'_>, &str, usize, Option<&str>); 11] = [
        (&[("c", 2), ("d", 3)], "x", 0, None),
        (&[("a", 2), ("b", 3)], "x", 1, None),
        // The seats do not matter.
        (&[("b", 3), ("a", 2)], "x", 1, None),
        (&[("a", 2), ("b", 3)], "y", 1, Some("and our set has changed since")),
        (&[("a", 2), ("b", 4)], "x", 1, Some("and party 3's set has changed in size since")),
        (&[("b", 4), ("a", 2)], "x", 1, Some("and party 2's set has changed in size since")),
        (&[("a", 3), ("b", 2)], "y", 1, Some("and our set and party 2's have changed since")),
        // One common party is enough, independently of the others.
        (&[("b", 3), ("c", 2)], "x", 1, Some("and the parties have changed since")),
        (&[("c", 9), ("a", 2)], "y", 1, Some("and our set has changed and so have the parties since")),
        (&[("a", 2)], "x", 1, Some("and the parties have changed since")),
        (&[("a", 2), ("b", 3), ("c", 4)], "x", 1, Some("and the parties have changed since")),
    ];
    for (others, set, runs, words) in cases {
        let history = log.history(&with(others, set)).unwrap();
        assert_eq!((history.runs, history.foreign.len()), (runs, 0), "{others:?}");
        let warning = history.warning("one of them");
        assert_eq!(warning.is_some(), words.is_some(), "{others:?} {set}: {warning:?}");
        assert!(
            warning.is_none_or(|warning| warning.contains(words.unwrap_or_default())),
            "{others:?} {set}"
        );
    }
    let undigested = log.history(&Run { set: None, ..with(&[("a", 2)], "") }).unwrap();
    let warning = undigested.warning("a").unwrap();
    assert!(warning.contains("and the parties have changed, and perhaps our set, since"), "{warning}");
    // A run of two counts as a run with one of its parties, and vice versa.
    assert_eq!(log.history(&run("b", 1, 3, Some("x"))).unwrap().runs, 1);
    start(&log, &run("c", 1, 2, Some("x")));
    let history = log.history(&with(&[("c", 2), ("d", 1)], "x")).unwrap();
    assert_eq!((history.runs, history.last.unwrap().theirs), (1, Theirs::OtherParties));
}

#[test]
fn nobody_else_can_lock_the_log_while_an_entry_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = log(&folder);
    let entry = Entry::now(&SessionId::of([0; 32]), Event::Start(run("a", 1, 2, None)));
    let other = File::open(&log.path).unwrap();
    let lock = || other.try_lock().is_ok() && other.unlock().is_ok();
    let judge = |_: &AuditLog, unlocked: Option<&io::Error>| {
        assert!(unlocked.is_none() && !lock());
        Ok(())
    };
    log.append_if(&entry, judge).unwrap();
    assert!(lock());
}

#[test]
fn a_log_that_was_rotated_is_the_one_that_others_look_at() {
    let folder = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (log(&folder), log(&folder));
    let path = one.path.clone();
    std::fs::rename(&path, folder.path().join("old")).unwrap();
    let here = run("a", 1, 2, Some("x"));
    let entry = Entry::now(&SessionId::of([0; 32]), Event::Start(here.clone()));
    one.append_if(&entry, |_, _| Ok(())).unwrap();
    let seen = |log: &AuditLog, _: Option<&io::Error>| {
        assert_eq!(log.history(&here).unwrap().runs, 1);
        let other = File::open(&path).unwrap();
        assert!(other.try_lock().is_err(), "another file is locked than the one that has the name");
        Ok(())
    };
    two.append_if(&entry, seen).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    assert_eq!(std::fs::read(folder.path().join("old")).unwrap().len(), 0);
    // The line at the end of a run, too, and if there is no new file yet.
    std::fs::rename(&path, folder.path().join("older")).unwrap();
    two.append(&entry).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    assert_eq!(std::fs::read_to_string(folder.path().join("older")).unwrap().lines().count(), 2);
}

/// A line of the greatest length does not hide the one after it.
#[test]
fn no_line_hides_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    let here = run("a", 1, 2, Some("x"));
    for length in LONGEST_LINE - 2..LONGEST_LINE + 2 {
        let foreign = "x".repeat(length as usize - 1) + "\n";
        std::fs::write(&log.path, foreign).unwrap();
        log.append(&Entry::now(&SessionId::of([0; 32]), Event::Start(here.clone()))).unwrap();
        assert_eq!(log.history(&here).unwrap().runs, 1, "{length}");
    }
}

#[test]
fn a_count_does_not_make_other_values_known() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    let at = |size| run("a", 1, size, Some("x"));
    let sum = |values: &str, size| Run { operation: "sum".into(), values: Some(values.into()), ..at(size) };
    // (the run, the warning)
    let cases = [
        (at(2), None),
        (sum("v", 2), None),
        (at(2), None),
        (sum("w", 2), Some("our set has changed since the last one (sum of ")),
        (at(2), None),
        (sum("v", 2), None),
        (sum("w", 2), None),
        (at(3), Some("the peer's set has changed in size since the last one (sum of ")),
        (sum("w", 3), Some("the peer's set has changed in size since the last one (sum of ")),
        (sum("w", 3), None),
    ];
    for (i, (now, words)) in cases.into_iter().enumerate() {
        let warning = log.history(&now).unwrap().warning("b");
        assert_eq!(warning.is_some(), words.is_some(), "{i}: {warning:?}");
        assert!(warning.is_none_or(|warning| warning.contains(words.unwrap_or_default())), "{i}");
        start(&log, &now);
    }
}

#[test]
fn lines_that_are_none_are_named_and_do_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    let here = run("a", 1, 2, Some("x"));
    start(&log, &here);
    let entry = std::fs::read_to_string(&log.path).unwrap();
    let long = format!("\"{}\"", "x".repeat(3 * LONGEST_LINE as usize));
    let torn = &entry[..entry.len() / 2];
    let text = format!("garbage\n{entry}\n{{}}\n{long}\n{entry}\u{0}\n{torn}");
    std::fs::write(&log.path, text).unwrap();
    let history = log.history(&here).unwrap();
    assert_eq!((history.runs, &history.foreign), (2, &vec![1, 4, 5, 7, 8]));
    // An entry appended after a torn line starts a new line.
    start(&log, &here);
    let history = log.history(&here).unwrap();
    assert_eq!((history.runs, history.foreign.last()), (3, Some(&8)));
}

#[test]
fn a_line_that_was_changed_is_none_of_ours_and_one_without_a_check_is_of_an_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(&folder);
    let this = run("a", 5, 6, Some("set"));
    start(&log, &this);
    let good = std::fs::read_to_string(&log.path).unwrap();
    assert!(good.ends_with("\"}\n") && good.contains(CHECK));
    // A bit that changes on disk can neither hide the run unnoticed nor turn it into another.
    for at in 0..good.len() - 1 {
        for bit in 0..8 {
            let mut bad = good.clone().into_bytes();
            bad[at] ^= 1 << bit;
            std::fs::write(&log.path, bad).unwrap();
            let history = log.history(&this).unwrap();
            assert!(
                history.runs == 1 && history.known || !history.foreign.is_empty(),
                "bit {bit} of byte {at}"
            );
        }
    }
    let (before, _) = good.rsplit_once(CHECK).unwrap();
    std::fs::write(&log.path, format!("{before}}}\n")).unwrap();
    let history = log.history(&this).unwrap();
    assert!((history.runs, history.known, history.foreign.len()) == (1, true, 0));
}

#[test]
fn an_entry_that_the_history_does_not_allow_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = log(&folder);
    let entry = Entry::now(&SessionId::of([0; 32]), Event::Start(run("a", 1, 2, None)));
    let no = log.append_if(&entry, |_, _| Err(Error::Refused("no".into())));
    assert_eq!((no, std::fs::read(&log.path).unwrap().len()), (Err(Error::Refused("no".into())), 0));
    log.append_if(&entry, |_, _| Ok(())).unwrap();
    assert_eq!(std::fs::read_to_string(&log.path).unwrap().lines().count(), 1);
}

#[test]
fn nobody_waits_for_ever_for_a_log_that_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = log(&folder);
    let other = File::open(&log.path).unwrap();
    other.lock().unwrap();
    let entry = Entry::now(&SessionId::of([0; 32]), Event::Start(run("a", 1, 2, None)));
    std::thread::scope(|s| {
        let (over, ends) = std::sync::mpsc::channel::<()>();
        let other = &other;
        // An append that waits without a limit gets the lock in the end, which fails the test.
        s.spawn(move || {
            if ends.recv_timeout(10 * PATIENCE) == Err(RecvTimeoutError::Timeout) {
                other.unlock().unwrap();
            }
        });
        for refused in [log.append(&entry), log.append_if(&entry, |_, _| Err(Error::Cancelled))] {
            let said = |m: &str| {
                m.contains("locked by another process") && m.contains(&log.path.display().to_string())
            };
            assert!(matches!(&refused, Err(Error::Output(m)) if said(m)), "{refused:?}");
        }
        drop(over);
    });
    assert_eq!(log.path.metadata().unwrap().len(), 0);
    // An append waits for a lock that is released in time.
    let (entry, log) = (&entry, &log);
    std::thread::scope(|s| {
        let (begun, begins) = std::sync::mpsc::channel();
        let waits = s.spawn(move || {
            begun.send(()).unwrap();
            log.append(entry)
        });
        begins.recv().unwrap();
        other.unlock().unwrap();
        waits.join().unwrap().unwrap();
    });
    assert!(log.path.metadata().unwrap().len() > 0);
}

#[test]
fn what_cannot_be_a_log_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [folder.path().to_path_buf(), file.join("log"), "/dev/full".into()] {
        let e = AuditLog::open(&path).unwrap_err();
        assert!(matches!(e, Error::Output(_)), "{e}");
        assert!(e.to_string().contains("`audit_log=none`"), "{e}");
    }
}

#[test]
fn a_digest_tells_sets_and_values_apart_but_not_orders() {
    let key = Secret::new([1; 32]);
    let set = |items: &[&str]| items.iter().collect::<ItemSet>();
    let under = |key: &Secret<[u8; 32]>, items: &[&str], values: &[i128]| {
        let in_memory = digest_under(key, (&set(items)).into(), values, Threads::global()).unwrap();
        let folder = std::env::temp_dir();
        let distinct = Distinct::of(&set(items), &Items::new(), &folder, Form::default()).unwrap();
        let on_disk = distinct.padded(items.len() + 5, &mut Prng::from_seed(&[1; 32])).unwrap().into();
        assert_eq!(digest_under(key, Set::Disk(&on_disk), values, Threads::global()).unwrap(), in_memory);
        in_memory
    };
    let of = |items: &[&str], values: &[i128]| under(&key, items, values);
    assert_eq!(of(&["a", "b", "c"], &[]), of(&["c", "a", "b"], &[]));
    assert_eq!(of(&["a", "b"], &[1, 2]), of(&["b", "a"], &[2, 1]));
    let all = [
        of(&[], &[]),
        of(&["a"], &[]),
        of(&["b"], &[]),
        of(&["a", "b"], &[]),
        of(&["ab"], &[]),
        of(&["a", "b"], &[1, 2]),
        of(&["a", "b"], &[2, 1]),
        under(&Secret::new([2; 32]), &["a", "b"], &[]),
    ];
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), all.len());
    // The digest is stable for one identity, and differs between identities.
    let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let by = |identity| digest(identity, (&set(&["a"])).into(), &[], Threads::global()).unwrap();
    assert_eq!(by(&one), by(&one));
    assert_ne!(by(&one), by(&two));
}
