use super::*;
use crate::item::ItemSet;
use crate::net::Fingerprint;
use crate::operations::intersect::Matching;
use crate::operations::union::rows::New;
use crate::operations::{COUNT, INTERSECT, SUM, Terms, UNION, sum};
use crate::protocols::{CWPRF, Choice};
use crate::testing::{party, peer};
use std::time::Duration;

/// Some terms that were agreed on.
fn terms() -> Vec<Term> {
    let term = |(key, value): (&'static str, &str)| Term { key, words: key, value: value.into() };
    [("normalisation", "utf8, trim"), ("key_columns", "1")].map(term).into()
}

fn outcome(learned: Learned, parties: impl Into<Parties>) -> RunOutcome {
    RunOutcome {
        learned,
        session_id: SessionId::of([7; 32]),
        choice: Choice::of(&CWPRF),
        why: None,
        began: UNIX_EPOCH,
        our: Some(Fingerprint::of_public_key(b"north")),
        terms: terms(),
        parties: parties.into(),
        prepared: false,
        bytes: (10, 20),
        messages: vec![MessageBytes::new("hello", (7, 0)), MessageBytes::new("answer", (1, 14))],
        stages: vec![],
    }
}

#[test]
fn decimals_are_exact() {
    for (units, scale, text) in [
        (0, 0, "0"),
        (5, 0, "5"),
        (-5, 2, "-0.05"),
        (123, 2, "1.23"),
        (100, 2, "1.00"),
        (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        (-1234, 3, "-1.234"),
    ] {
        assert_eq!(decimal(units, scale), text);
    }
}

#[test]
fn who_gets_a_union_learns_how_many_match_unless_the_other_pads() {
    let set: ItemSet = ["a", "b"].iter().collect();
    let learned = |role, learned, our_pad, they_pad| {
        let mut request = Request::new(&UNION, role, &set).with(|r| r.input.pad_to = our_pad);
        request.spec.terms.both = true;
        let outcome = outcome(learned, peer(5, they_pad));
        let numbers = numbers(&request, &outcome).unwrap();
        sentences(&request, &outcome, &numbers)
    };
    let new = Learned::New(New { items: ["c", "d", "e"].iter().collect(), ..New::default() });
    let all = Learned::Union(["a", "b", "c", "d", "e"].iter().collect());
    for padded in [false, true] {
        let pad_to = padded.then_some(9);
        // What the peer learned by our sizes, and what this party by the peer's.
        let there = &learned(Role::Receiver, new.clone(), pad_to, false)[1];
        assert_eq!(there.contains("and so that 2 items match"), !padded, "{there}");
        for (role, result) in [(Role::Receiver, new.clone()), (Role::Sender, all.clone())] {
            let here = &learned(role, result, None, padded)[0];
            assert_eq!(here.contains("and so that 2 items match"), !padded, "{here}");
        }
    }
}

#[test]
fn that_the_sender_learned_something_too_is_said_on_both_sides() {
    let set: ItemSet = ["a", "b"].iter().collect();
    for operation in [&INTERSECT, &UNION, &COUNT] {
        for (role, both) in Role::ALL.into_iter().flat_map(|role| [(role, false), (role, true)]) {
            let mut request = Request::new(operation, role, &set);
            request.spec.terms.both = both;
            let outcome = outcome(Learned::Nothing, peer(5, false));
            let said = sentences(&request, &outcome, &Numbers::default());
            // What is said of the sender.
            let of_sender = &said[if role == Role::Sender { 0 } else { 1 }];
            assert_eq!(!of_sender.contains("and nothing else"), both, "{operation} {role}: {of_sender}");
        }
    }
}

#[test]
fn a_report_holds_only_what_this_party_learned() {
    let set: ItemSet = ["a", "b"].iter().collect();
    let json_of = |operation, role, learned, they_pad| {
        let outcome = outcome(learned, peer(5, they_pad));
        let terms = Terms { min_count: 7, ..Terms::default() };
        let request = Request::new(operation, role, &set).with(|r| {
            r.spec.value_scale = 2;
            r.spec.terms = terms;
        });
        let report = Report::new(&request, &outcome, 0.5).unwrap();
        let first = report.to_text().lines().next().unwrap().to_string();
        let value: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert_eq!(value["failure_bound"], "2^-40");
        assert_eq!(
            (&value["time"], &value["session"]),
            (&"1970-01-01T00:00:00Z".into(), &"07".repeat(32).into())
        );
        assert_eq!(value["learned"].as_array().unwrap().len(), 2);
        (first, value["result"].to_string())
    };
    let json = |operation, role, learned| json_of(operation, role, learned, false);
    let said = |first: &str, json: &str| (first.to_string(), json.to_string());
    use Role::*;
    for operation in [&INTERSECT, &UNION, &COUNT] {
        assert_eq!(
            json(operation, Sender, Learned::Nothing),
            said("Done: the receiver has the result", "{}")
        );
    }
    let matching = Learned::Matching(Matching { positions: vec![1], ..Matching::default() });
    assert_eq!(json(&INTERSECT, Receiver, matching), said("Matches: 1 of our 2", r#"{"matches":1}"#));
    let new = Learned::New(New { items: ["c", "d", "e"].iter().collect(), ..New::default() });
    let three = "New: 3 items that only the peer has; the union has 5";
    assert_eq!(json(&UNION, Receiver, new.clone()), said(three, r#"{"matches":2,"union_size":5}"#));
    assert_eq!(
        json(&COUNT, Receiver, Learned::Matches(1)),
        said("Matches: 1 of our 2; the union has 6", r#"{"matches":1,"union_size":6}"#)
    );
    let all = Learned::Union(["a", "b", "c", "d", "e", "f"].iter().collect());
    let four = "New: 4 items that only the peer has; the union has 6";
    assert_eq!(json(&UNION, Sender, all), said(four, r#"{"matches":1,"union_size":6}"#));
    // What would show the size of a padded set is left out.
    let one = said("Matches: 1 of our 2", r#"{"matches":1}"#);
    assert_eq!(json_of(&UNION, Receiver, new, true), said(three, r#"{"union_size":5}"#));
    assert_eq!(json_of(&COUNT, Receiver, Learned::Matches(1), true), one);
    assert_eq!(json(&SUM, Receiver, Learned::Matches(1)), one);
    let sum = Learned::Sum(Some(sum::Sum { matches: 2, sum: -1234 }));
    assert_eq!(
        json(&SUM, Sender, sum),
        said("Sum: -12.34, over 2 matches", r#"{"below_minimum":false,"matches":2,"sum":-12.34}"#)
    );
    assert_eq!(
        json(&SUM, Sender, Learned::Sum(None)),
        said("Sum: withheld, because fewer than 7 match", r#"{"below_minimum":true}"#)
    );
}

#[test]
fn a_hint_is_given_where_nothing_matches_and_nothing_was_normalised() {
    let (none, set) = (ItemSet::default(), ["a", "b"].iter().collect::<ItemSet>());
    let hints = |set: &ItemSet, normalisation, learned, (their_size, they_pad)| {
        let outcome = outcome(learned, peer(their_size, they_pad));
        let request =
            Request::new(&COUNT, Role::Receiver, set).with(|r| r.input.normalisation = normalisation);
        let report = Report::new(&request, &outcome, 0.5).unwrap();
        let json = report.to_json().unwrap();
        assert!(!json.contains("Hint") && !json.contains("summary"));
        report.to_text().contains("`normalize=trim,casefold`")
    };
    let new =
        |n: usize| Learned::New(New { items: (0..n).map(|i| i.to_string()).collect(), ..New::default() });
    // (set, normalisation, learned, the peer's size and whether that is padded, whether there is a hint)
    let cases = [
        (&set, "utf8", Learned::Matches(0), (5, false), true),
        (&set, "none", Learned::Matches(0), (5, true), true),
        (&set, "utf8", Learned::Matching(Matching::default()), (5, false), true),
        (&set, "utf8", new(5), (5, false), true),
        (&set, "utf8", Learned::Matches(1), (5, false), false),
        (&set, "utf8, trim", Learned::Matches(0), (5, false), false),
        (&set, "bytes", Learned::Matches(0), (5, false), false),
        (&set, "utf8", Learned::Matches(0), (0, false), false),
        (&none, "utf8", Learned::Matches(0), (5, false), false),
        // Here it is not known.
        (&set, "utf8", new(5), (5, true), false),
        (&set, "utf8", Learned::Nothing, (5, false), false),
        (&set, "utf8", Learned::Sum(None), (5, false), false),
    ];
    for (set, normalisation, learned, theirs, expected) in cases {
        let what = format!("{normalisation} {learned:?} {theirs:?}");
        assert_eq!(hints(set, normalisation, learned, theirs), expected, "{what}");
    }
}

/// A report of intersect with these parties, as JSON whose version is VERSION, and the second line of its text.
fn report_with(parties: impl Into<Parties>) -> (String, String) {
    let set: ItemSet = ["a", "b"].iter().collect();
    let columns = ["city".to_string()];
    let terms = Terms { max_row: 64, ..Terms::default() };
    let request = Request::new(&INTERSECT, Role::Receiver, &set).with(|r| {
        r.input.pad_to = Some(9);
        r.spec.sent_columns = columns.to_vec();
        r.spec.terms = terms;
    });
    let learned = Learned::Matching(Matching { positions: vec![1], ..Matching::default() });
    let report = Report::new(&request, &outcome(learned, parties), 0.5).unwrap();
    let json = report.to_json().unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION");
    (json, report.to_text().lines().nth(1).unwrap().into())
}

/// Of every operation, whether one of several was picked or there was one only.
#[test]
fn the_text_says_why_this_protocol() {
    let set: ItemSet = ["a", "b"].iter().collect();
    let request = Request::new(&COUNT, Role::Receiver, &set);
    let lines = |why: Option<&str>| {
        let outcome = RunOutcome { why: why.map(Into::into), ..outcome(Learned::Matches(1), peer(5, false)) };
        let report = Report::new(&request, &outcome, 0.5).unwrap();
        assert_eq!(report.picked.as_deref(), why);
        report.to_text().lines().skip(1).take(2).map(String::from).collect::<Vec<_>>()
    };
    let picked = lines(Some("the best"));
    assert_eq!(picked[1], format!("  {}: the best", CWPRF.name));
    let only = lines(None);
    assert_eq!(only[0], picked[0]);
    assert_eq!(only[1], format!("  {}: the only one that all parties allow", CWPRF.name));
}

/// Programs read it: fields, their order and their names stay.
#[test]
fn the_json_of_a_run_of_two_is_the_same_in_every_version() {
    let fingerprint = Fingerprint::of_public_key(b"south");
    let south = Party { fingerprint: Some(fingerprint), name: Some("south".into()), ..peer(5, true) };
    let (json, text) = report_with(south);
    let expected = r#"{
  "time": "1970-01-01T00:00:00Z",
  "session": "0707070707070707070707070707070707070707070707070707070707070707",
  "operation": "intersect",
  "protocol": "dh",
  "group": "curve25519",
  "picked": null,
  "role": "receiver",
  "sizes": {
    "ours": 2,
    "announced": 9,
    "peer": 5,
    "peer_padded": true
  },
  "prepared": false,
  "shards": 0,
  "both": false,
  "sent_columns": [
    "city"
  ],
  "key_columns": [],
  "terms": {
    "key_columns": "1",
    "normalisation": "utf8, trim"
  },
  "left_out": {
    "duplicates": 0,
    "skipped": 0
  },
  "result": {
    "matches": 1
  },
  "seconds": 0.5,
  "bytes": {
    "sent": 10,
    "received": 20
  },
  "stages": [],
  "messages": [
    {
      "name": "hello",
      "sent": 7,
      "received": 0
    },
    {
      "name": "answer",
      "sent": 1,
      "received": 14
    },
    {
      "name": "everything else: TLS and its handshake, heartbeats",
      "sent": 2,
      "received": 6
    }
  ],
  "learned": [
    "This party learned that the peer has at most 5 items, and which of its own items the peer has too (1), with the columns city.",
    "The peer learned that this party has at most 9 items, and nothing else."
  ],
  "notes": [
    "Of the sender's rows that repeat a key, only the first is sent. Only the sender learns how many it has."
  ],
  "assumptions": [
    "both parties follow the protocol (semi-honest): nothing binds a party to its true set or choices",
    "decisional Diffie-Hellman on Curve25519",
    "decisional Diffie-Hellman on ristretto255, for the base OTs",
    "BLAKE3 as a random oracle, AES-128 as an ideal cipher"
  ],
  "failure_bound": "2^-40",
  "our": "OURS",
  "peer": "FINGERPRINT",
  "peer_name": "south",
  "input": null,
  "output": null,
  "version": "VERSION"
}"#;
    let ours = Fingerprint::of_public_key(b"north").to_string();
    let expected = expected.replace("FINGERPRINT", &fingerprint.to_string()).replace("OURS", &ours);
    assert_eq!(json, expected);
    assert_eq!(
        text,
        "  intersect as receiver, protocol dh over curve25519: 2 items here, 5 on the peer's side"
    );
}

#[test]
fn the_report_of_a_run_of_several_has_a_list_of_the_parties() {
    let (json, text) = report_with(Parties::of([party(2, "south", 5), party(4, "west", 6)]).unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let entry = |number: u8, name: &str, items: usize| {
        let fingerprint = Fingerprint::of_public_key(name.as_bytes()).to_string();
        serde_json::json!({
            "party": number, "peer": fingerprint, "peer_name": name, "items": items, "padded": false
        })
    };
    assert_eq!(json["parties"], serde_json::json!([entry(2, "south", 5), entry(4, "west", 6)]));
    assert_eq!(json["sizes"], serde_json::json!({"ours": 2, "announced": 9}));
    assert!(json.get("peer").is_none() && json.get("peer_name").is_none());
    assert!(
        text.ends_with("2 items here, 5 on party 2 (south)'s side, 6 on party 4 (west)'s side"),
        "{text}"
    );
}

#[test]
fn a_clock_before_1970_is_shown_as_it_is_and_there_is_a_word_about_it() {
    let before = |seconds: f64| UNIX_EPOCH - Duration::from_secs_f64(seconds);
    assert_eq!(rfc3339(before(0.5)), "1969-12-31T23:59:59Z");
    assert_eq!(rfc3339(before(1.0)), "1969-12-31T23:59:59Z");
    assert_eq!(rfc3339(before(86_400.0 * 306.0)), "1969-03-01T00:00:00Z");
    assert_eq!(rfc3339(before(86_400.0 * 307.0)), "1969-02-28T00:00:00Z");
    assert_eq!(rfc3339(before(86_400.0 * 25_567.0)), "1900-01-01T00:00:00Z");
    let words = wrong_clock(before(1.0)).unwrap();
    assert!(words.contains("1969-12-31T23:59:59Z") && words.contains("Set it"), "{words}");
    assert_eq!((wrong_clock(UNIX_EPOCH), wrong_clock(std::time::SystemTime::now())), (None, None));
}

/// To whom it concerns: of rows of others no numbers are said.
#[test]
fn what_is_lost_is_said_with_numbers_of_our_own_rows() {
    let set: ItemSet = ["a", "b"].iter().collect();
    let columns = ["city".to_string()];
    let notes = |operation, role, both, sent: bool, (duplicates, skipped, treated), several: bool| {
        let terms = Terms { both, ..Terms::default() };
        let sent_columns: &[String] = if sent { &columns } else { &[] };
        let request = Request::new(operation, role, &set).with(|r| {
            r.spec.sent_columns = sent_columns.to_vec();
            r.spec.terms = terms;
        });
        let parties: Parties = match several {
            false => peer(5, false).into(),
            true => Parties::of([party(2, "south", 5), party(3, "west", 6)]).unwrap(),
        };
        let mut report = Report::new(&request, &outcome(Learned::Nothing, parties), 0.5).unwrap();
        report.leave_out(LeftOut { duplicates, skipped }, treated);
        assert!(report.notes.iter().all(|note| report.to_text().contains(note.as_str())));
        report.notes.join(" ")
    };
    let first = Duplicates::First;
    use Role::*;
    let of_sender = "Of the sender's rows that repeat a key, only the first is sent. Only the sender learns how many it has.";
    let new = "New keys are in the spelling in which they were compared (utf8, trim), and not in that of the other party.";
    let items = "All keys of the result are in the spelling in which they were compared (utf8, trim).";
    let ours = "gets our keys in the spelling in which they were compared (utf8, trim), and not in ours.";
    for (said, expected) in [
        (notes(&COUNT, Receiver, false, false, (0, 0, first), false), String::new()),
        (
            notes(&COUNT, Sender, false, false, (1, 2, first), false),
            "1 of our rows repeats a key: each key counts once, with its first row. 2 of our rows have an empty key and \
             take no part."
                .into(),
        ),
        (
            notes(&INTERSECT, Receiver, false, true, (3, 1, first), false),
            format!(
                "3 of our rows repeat a key: the result has only the first row of each key. 1 of our rows has an empty \
                 key and takes no part. {of_sender}"
            ),
        ),
        (
            notes(&INTERSECT, Sender, false, true, (2, 0, first), false),
            "2 of our rows repeat a key: each key counts once, with its first row; the columns of only that row were sent.".into(),
        ),
        (
            notes(&INTERSECT, Sender, true, false, (2, 0, first), false),
            "2 of our rows repeat a key: the result has only the first row of each key.".into(),
        ),
        (
            notes(&SUM, Sender, false, false, (2, 0, Duplicates::Add), false),
            "2 of our rows repeat a key: their values were added to those of the first row of each key.".into(),
        ),
        (
            notes(&UNION, Receiver, false, false, (1, 0, first), false),
            format!("1 of our rows repeats a key: the result has only the first row of each key. {new}"),
        ),
        (notes(&UNION, Sender, false, false, (0, 0, first), false), format!("The receiver {ours}")),
        (notes(&UNION, Sender, true, false, (0, 0, first), false), format!("{items} The receiver {ours}")),
        (
            notes(&UNION, Sender, true, false, (1, 0, first), false),
            format!("1 of our rows repeats a key: the result has each key once. {items} The receiver {ours}"),
        ),
        (notes(&UNION, Receiver, true, false, (0, 0, first), false), format!("{new} The sender {ours}")),
        (
            notes(&INTERSECT, Sender, true, true, (2, 0, first), false),
            "2 of our rows repeat a key: the result has only the first row of each key; the columns of only that row were \
             sent."
                .into(),
        ),
        (notes(&UNION, Sender, false, false, (0, 0, first), true), format!("The leader {ours}")),
        (
            notes(&UNION, Receiver, false, false, (0, 0, first), true),
            new.replace("the other party", "the other parties"),
        ),
    ] {
        assert_eq!(said, expected);
    }
}
