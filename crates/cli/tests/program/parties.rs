//! Runs that go well.

use crate::common::{RECEIVER, Running, SENDER, World, both, connect, csv, listen, run, veilset};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

#[test]
fn two_processes_give_the_plain_results_at_unequal_sizes() {
    let world = World::new();
    for (ours, theirs) in [(0..0, 0..3), (0..3, 0..0), (5..6, 5..6), (0..300, 250..270), (0..40, 100..170)] {
        let files = [world.write("r.csv", csv(ours.clone())), world.write("s.csv", csv(theirs.clone()))];
        let files = [files[0].as_path(), files[1].as_path()];
        let (r, s): (BTreeSet<u32>, BTreeSet<u32>) = (ours.clone().collect(), theirs.clone().collect());
        let (both, all) = (r.intersection(&s).copied(), r.union(&s).copied());
        let matches = both.clone().count();
        let ids = |text: &str| -> BTreeSet<u32> {
            text.lines().skip(1).map(|l| l.split(',').next().unwrap().parse().unwrap()).collect()
        };
        for operation in ["intersect", "union", "count", "sum"] {
            let report = ["--report", "report.json", "--force"];
            let [out, sent] = match operation {
                "sum" => {
                    let more = [&report[..], &["--scale", "1"]].concat();
                    world.good(operation, files, [&more, &["--scale", "1", "--values", "cost"]])
                }
                _ => world.good(operation, files, [&report, &[]]),
            };
            match operation {
                "intersect" => assert_eq!(ids(&out), both.clone().collect()),
                "union" => assert_eq!(ids(&out), all.clone().collect()),
                "count" => {
                    assert_eq!(out, format!("matches,union_size\n{matches},{}\n", all.clone().count()))
                }
                _ => {
                    let tenths: u32 = both.clone().map(|i| i % 100 * 10 + 5).sum();
                    assert_eq!(out, format!("matches\n{matches}\n"));
                    assert_eq!(
                        sent,
                        format!(
                            "matches,sum,below_minimum\n{matches},{}.{},false\n",
                            tenths / 10,
                            tenths % 10
                        )
                    );
                }
            }
            assert_eq!(sent.is_empty(), operation != "sum");
            let report = world.read("report.json");
            assert!(report.contains(&format!("\"matches\": {matches}")), "{report}");
        }
    }
}

#[test]
fn the_sender_may_listen_and_a_fingerprint_may_be_written_in_any_way() {
    let world = World::new();
    let file = world.write("a.csv", csv(0..5));
    let [r, s] = &world.fingerprints;
    let spelled = [
        (r.clone(), s.clone()),
        (r.replace('-', ""), s.to_uppercase()),
        (r.replace('-', "").to_uppercase(), s.replace('0', "o")),
    ];
    for (r, s) in spelled {
        let sender = world.party(SENDER, "count", &file, &["--peer", &r]);
        let receiver = world.party(RECEIVER, "count", &file, &["--peer", &s]);
        let [sent, out] = both(sender, receiver);
        assert_eq!((sent.good(), out.good()), (String::new(), "matches,union_size\n5,5\n".into()));
    }
}

#[test]
fn plaintext_works_on_this_machine() {
    let world = World::new();
    let file = world.write("a.csv", csv(0..5));
    let plain = ["--insecure-plaintext"];
    let [out, _] = world.good("count", [&file, &file], [&plain, &plain]);
    assert_eq!(out, "matches,union_size\n5,5\n");
}

#[test]
fn files_come_from_standard_input_too() {
    let world = World::new();
    let stdin = std::path::Path::new("-");
    let mut receiver =
        Running::start(world.party(RECEIVER, "intersect", stdin, &[]).args(["--listen", "127.0.0.1:0"]));
    receiver.feed(&csv(0..10));
    receiver.until("-: 2 columns separated by ',', 10 rows, 10 items");
    let address = receiver.until("listening on ");
    let mut sender = connect(world.party(SENDER, "intersect", stdin, &[]), &address);
    sender.feed(&csv(8..20));
    assert_eq!(receiver.end().good(), "id,cost\n8,8.5\n9,9.5\n");
    sender.end().good();
}

#[test]
fn result_and_report_files_are_private_and_replaced_with_force_only() {
    let world = World::new();
    let files = [world.write("a.csv", csv(0..5)), world.write("b.csv", csv((3..9).chain(3..4)))];
    let files = [files[0].as_path(), files[1].as_path()];
    for (name, more) in [("out.csv", &["--output", "out.csv"][..]), ("old", &["--output", "old", "--force"])]
    {
        world.write("old", "old");
        let [out, sent] = world.good("union", files, [more, &["--report", "s.json", "--force"]]);
        assert_eq!((out, sent), (String::new(), String::new()));
        assert_eq!(world.read(name).lines().count(), 1 + 9);
        for name in [name, "s.json"] {
            assert_eq!(std::fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    let report: serde_json::Value = serde_json::from_str(&world.read("s.json")).unwrap();
    assert_eq!((&report["role"], &report["operation"]), (&"sender".into(), &"union".into()));
    assert_eq!(
        report["sizes"],
        serde_json::json!({"ours": 6, "announced": 6, "peer": 5, "peer_padded": false})
    );
    assert_eq!(report["left_out"], serde_json::json!({"duplicates": 1, "skipped": 0}));
    assert_eq!(
        (&report["peer"], &report["result"]),
        (&world.fingerprints[0].as_str().into(), &serde_json::json!({}))
    );
}

#[test]
fn a_report_names_its_run() {
    let world = World::new();
    world.write("a.csv", csv(0..5));
    let file = std::path::Path::new("a.csv");
    run(world.veilset().args(["peer", "add", "south", &world.fingerprints[SENDER]])).good();
    let more: [&[&str]; 2] = [
        &["--report", "r.json", "--audit-log", "r.log"],
        &["--report", "s.json", "--audit-log", "s.log", "--both", "--output", "out.csv"],
    ];
    world.good("count", [file, file], [&[more[0], &["--both"]].concat(), more[1]]);
    world.good("count", [file, file], [&[], &["--report", "n.json"]]);
    let read = |name: &str| -> serde_json::Value { serde_json::from_str(&world.read(name)).unwrap() };
    for (who, output, name) in
        [("r", "-".into(), "south".into()), ("s", "out.csv".into(), serde_json::Value::Null)]
    {
        let report = read(&format!("{who}.json"));
        let log = world.read(&format!("{who}.log"));
        let start: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        assert_eq!((&report["session"], &report["peer"]), (&start["session"], &start["peer"]));
        assert_eq!(
            (&report["peer_name"], &report["input"], &report["output"]),
            (&name, &"a.csv".into(), &output)
        );
        // The run began before the time in the log, or in the same second.
        let [began, logged] =
            [&report["time"], &start["time"]].map(|time| time.as_str().unwrap().to_string());
        assert!(began.len() == "2026-11-20T10:00:00Z".len() && began <= logged, "{began} {logged}");
    }
    // A party without a result has no output path.
    assert_eq!(read("n.json")["output"], serde_json::Value::Null);
}

#[test]
fn a_quiet_party_says_nothing() {
    let world = World::new();
    let file = world.write("a.csv", csv(0..5));
    let (listening, address) = listen(world.party(RECEIVER, "count", &file, &[]));
    let sender = connect(world.party(SENDER, "count", &file, &["--quiet"]), &address).end();
    assert_eq!((sender.code, sender.out.as_str(), sender.err.as_str()), (Some(0), "", ""));
    listening.end().good();
}

#[test]
fn the_demo_shows_what_each_learned() {
    let text = run(veilset().arg("demo")).good();
    assert!(text.ends_with("unless --allow-small or a policy says otherwise.\n"), "{text}");
    for words in ["cleo@example.org, dan@example.org, fay@example.org", "gus@example.org", "300.45"] {
        assert!(text.contains(words), "{text}");
    }
}
