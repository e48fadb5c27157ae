//! Checks: the agreement without the run.

use crate::common::{RECEIVER, Running, SENDER, Words, World, both, csv, run};

#[test]
fn both_sides_are_told_sizes_cost_and_what_each_would_learn() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..30)), world.write("s.csv", csv(20..70))];
    let before = world.names();
    // (operation, the sender's options, text for the receiver, text for the sender)
    let cases: [(&str, Words, &str, &str); 4] = [
        (
            "intersect",
            &[],
            "which of its own items the peer has too",
            "which of its own items this party has too",
        ),
        ("union", &[], "every item that only the peer has", "every item that only this party has"),
        ("count", &[], "has 50 items, and how many items match, but not which", "how many items match"),
        (
            "sum",
            &["--values", "cost", "--scale", "1"],
            "how many items match, but not which.",
            "the sum of its own values over them",
        ),
    ];
    for (operation, more, r_says, s_says) in cases {
        let check = format!("check {operation}");
        let scale: Words = if operation == "sum" { &["--scale", "1"] } else { &["--output", "out.csv"] };
        let [here, there] = both(
            world.party(RECEIVER, &check, &files[0], scale),
            world.party(SENDER, &check, &files[1], more),
        );
        let (here, there) = (here.good(), there.good());
        for (text, words, sizes) in [
            (&here, r_says, "30 items here, 50 on the peer's side"),
            (&there, s_says, "50 items here, 30 on the peer's side"),
        ] {
            for words in [
                words,
                sizes,
                "nothing was computed",
                "group of the protocol: curve25519",
                "of computing here and",
                " rounds of messages, and at most ",
                " MB of memory here",
            ] {
                assert!(text.contains(words), "{words}: {text}");
            }
        }
        // Nothing is written.
        assert_eq!(world.names(), before);
    }
}

#[test]
fn the_bytes_are_those_of_the_run_that_follows() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..9000)), world.write("s.csv", csv(8000..15_000))];
    for operation in ["union", "count"] {
        let parties = |check: &str, more: Words| {
            let operation = format!("{check}{operation}");
            let receiver = world.party(RECEIVER, &operation, &files[0], more);
            both(receiver, world.party(SENDER, &operation, &files[1], &[])).map(|ended| ended.good())
        };
        let [text, _] = parties("check ", &[]);
        parties("", &["--report", "report.json", "--force"]);
        let report: serde_json::Value = serde_json::from_str(&world.read("report.json")).unwrap();
        let line = text.lines().find(|line| line.contains("bytes to the peer")).unwrap();
        let mut told = line.split([' ', ',']).filter_map(|word| word.parse::<f64>().ok());
        for way in ["sent", "received"] {
            let (told, took) = (told.next().unwrap(), report["bytes"][way].as_f64().unwrap());
            assert!((told - took).abs() < 0.03 * took + 2000.0, "{operation} {way}: {told} for {took}");
        }
    }
}

#[test]
fn a_check_and_a_run_do_not_meet() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let receiver = world.party(RECEIVER, "check count", &file, &[]);
    let [here, there] = both(receiver, world.party(SENDER, "count", &file, &[]));
    here.bad(4, &["check or run (`veilset check`): ours is check, the peer's is run"]);
    there.bad(4, &["check or run (`veilset check`): ours is run, the peer's is check"]);
}

#[test]
fn a_check_takes_files_of_runs_and_refuses_what_a_run_would() {
    let world = World::new();
    world.write("f.csv", csv(0..3));
    let [r, s] = &world.fingerprints;
    let common = "operation = \"count\"\ninput = \"f.csv\"\nkey = \"id\"\nallow-small = true\n";
    world.write("r.toml", format!("{common}role = \"receiver\"\nidentity = \"r.pem\"\npeer = \"{s}\"\n"));
    world.write("s.toml", format!("{common}role = \"sender\"\nidentity = \"s.pem\"\npeer = \"{r}\"\n"));
    let party = |file: &str, more: Words| {
        let mut command = world.veilset();
        command.args(["check", "run", file]).args(more);
        command
    };
    let mut receiver = Running::start(&mut party("r.toml", &["--listen", "127.0.0.1:0"]));
    let address = receiver.until("listening on ");
    run(&mut party("s.toml", &["--connect", &address])).good();
    assert!(receiver.end().good().contains("3 items here"));

    run(&mut party("s.toml", &["--connect", &address, "--key", "mail"])).bad(3, &["column \"mail\""]);
    world.write("out.csv", "old");
    run(&mut party("r.toml", &["--connect", &address, "--output", "out.csv"])).bad(7, &["out.csv exists"]);
    for words in [&["check"][..], &["check", "demo"], &["check", "check", "count"]] {
        assert_eq!(run(world.veilset().args(words)).code, Some(2), "{words:?}");
    }
}
