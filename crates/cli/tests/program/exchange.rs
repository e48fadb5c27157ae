//! Data sent in addition to keys, results for both sides, and padding.

use crate::common::{RECEIVER, SENDER, Words, World};
use std::path::Path;

const OURS: &str = "id,name\n1,ann\n2,bob\n3,cleo\n2,bob again\n";
const THEIRS: &str = "city,id,plan,secret\nOslo,2,\"A, B\",x\nRome,3,,y\nBern,9,C,z\nLima,3,D,z\n";

fn files(world: &World) -> [std::path::PathBuf; 2] {
    [world.write("r.csv", OURS), world.write("s.csv", THEIRS)]
}

fn good(world: &World, operation: &str, more: [Words; 2]) -> [String; 2] {
    let files = files(world);
    world.good(operation, [&files[0], &files[1]].map(|p: &std::path::PathBuf| p.as_path()), more)
}

#[test]
fn columns_travel_with_matching_and_with_new_rows() {
    let world = World::new();
    let sends: Words = &["--send-columns", "plan,city"];
    let takes: Words = &["--receive-columns", "plan,city=their city"];
    for protocol in ["dh", "dh-psi"] {
        let more = [takes, sends].map(|w| [w, &["--protocol", protocol]].concat());
        let [ours, theirs] = good(&world, "intersect", [&more[0], &more[1]]);
        assert_eq!(ours, "id,name,plan,their city\n2,bob,\"A, B\",Oslo\n3,cleo,,Rome\n", "{protocol}");
        assert_eq!(theirs, "");
    }
    let [ours, _] = good(&world, "union", [takes, sends]);
    assert_eq!(ours, "id,name,plan,their city\n1,ann,,\n2,bob,,\n3,cleo,,\n9,,C,Bern\n");
}

#[test]
fn both_get_the_result_if_both_want_it() {
    let world = World::new();
    for protocol in ["dh", "dh-psi"] {
        let more: Words = &["--both", "--protocol", protocol];
        let [ours, theirs] = good(&world, "intersect", [more, more]);
        assert_eq!(ours, "id,name\n2,bob\n3,cleo\n");
        assert_eq!(theirs, "city,id,plan,secret\nOslo,2,\"A, B\",x\nRome,3,,y\n");
    }
    let both: Words = &["--both"];
    let [ours, theirs] = good(&world, "union", [both, both]);
    assert_eq!(ours, "id,name\n1,ann\n2,bob\n3,cleo\n9,\n");
    assert_eq!(theirs, "id\n1\n2\n3\n9\n");
    assert_eq!(good(&world, "count", [both, both]), ["matches,union_size\n2,4\n"; 2]);
}

#[test]
fn padding_hides_the_size_and_what_would_give_it_away() {
    let world = World::new();
    let report = |who: &str| -> serde_json::Value { serde_json::from_str(&world.read(who)).unwrap() };
    let more: [Words; 2] = [
        &["--pad-to", "10", "--report", "r.json", "--force"],
        &["--pad-to", "20", "--report", "s.json", "--force"],
    ];
    for (operation, result) in [
        ("intersect", "id,name\n2,bob\n3,cleo\n"),
        ("union", "id,name\n1,ann\n2,bob\n3,cleo\n9,\n"),
        ("count", "matches\n2\n"),
    ] {
        assert_eq!(good(&world, operation, more)[RECEIVER], result);
        let [ours, theirs] = ["r.json", "s.json"].map(report);
        let sizes = |ours, announced, peer| serde_json::json!({"ours": ours, "announced": announced, "peer": peer, "peer_padded": true});
        assert_eq!([&ours["sizes"], &theirs["sizes"]], [&sizes(3, 10, 20), &sizes(3, 20, 10)]);
        assert_eq!(ours["result"].get("matches").is_none(), operation == "union");
        assert_eq!(ours["result"].get("union_size").is_some(), operation == "union");
        assert!(theirs["learned"][0].as_str().unwrap().contains("at most 10 items"), "{theirs}");
    }
}

#[test]
fn the_sender_of_a_union_learns_how_many_keys_match_if_both_sides_ask_for_it() {
    let world = World::new();
    let flag = "--reveal-count-to-sender";
    // Dummies are not counted, on whichever side they are.
    let pads: [[Words; 2]; 4] = [
        [&[], &[]],
        [&["--pad-to", "10"], &[]],
        [&[], &["--pad-to", "20"]],
        [&["--pad-to", "10"], &["--pad-to", "20"]],
    ];
    for pads in pads {
        let [ours, theirs] = pads.map(|pad| [&[flag, "--force", "--report"], pad].concat());
        let insert = |mut words: Vec<&'static str>, name| {
            words.insert(3, name);
            words
        };
        let more = [insert(ours, "r.json"), insert(theirs, "s.json")];
        let [ours, theirs] = good(&world, "union", [&more[0], &more[1]]);
        assert_eq!(ours, "id,name\n1,ann\n2,bob\n3,cleo\n9,\n");
        assert_eq!(theirs, "matches\n2\n");
        let report: serde_json::Value = serde_json::from_str(&world.read("s.json")).unwrap();
        assert_eq!((&report["protocol"], &report["result"]["matches"]), (&"sigma-dh".into(), &2.into()));
        let learned = report["learned"][0].as_str().unwrap();
        assert!(learned.contains("that 2 items match, but not which"), "{learned}");
        let report: serde_json::Value = serde_json::from_str(&world.read("r.json")).unwrap();
        assert!(report["learned"][1].as_str().unwrap().contains("items match, but not which"), "{report}");
    }
    // A count with the same protocol, in which the receiver asks.
    let by: Words = &["--protocol", "sigma-dh"];
    let [ours, theirs] = good(&world, "count", [by, by]);
    assert_eq!([&ours[..], &theirs[..]], ["matches,union_size\n2,4\n", ""]);
    let both: Words = &["--protocol", "sigma-dh", "--both"];
    assert_eq!(good(&world, "count", [both, both]), ["matches,union_size\n2,4\n"; 2]);
    // The option on one side alone reveals nothing.
    let files = files(&world);
    for sides in [[&[flag][..], &[]], [&[], &[flag]]] {
        for ended in world.run("union", [&files[0], &files[1]], sides) {
            ended.bad(4, &[flag, "yes", "no"]);
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused_before_the_peer_hears_of_us() {
    let world = World::new();
    let files = files(&world);
    // (party, operation, options, code, words)
    let cases: [(usize, &str, Words, i32, Words); 15] = [
        (RECEIVER, "intersect", &["--send-columns", "name"], 2, &["--receive-columns"]),
        (SENDER, "union", &["--receive-columns", "plan"], 2, &["--send-columns"]),
        (SENDER, "intersect", &["--send-columns", "plans"], 3, &["plans", "no such column"]),
        (SENDER, "intersect", &["--send-columns", "plan,plan"], 2, &["\"plan\" twice"]),
        (SENDER, "union", &["--send-columns", "plan", "--max-row", "4"], 3, &["--max-row", "line 2"]),
        (
            RECEIVER,
            "intersect",
            &["--receive-columns", "name"],
            2,
            &["\"name\"", "--receive-columns name=NAME"],
        ),
        (RECEIVER, "union", &["--receive-columns", "a=,b"], 2, &["COL=NAME"]),
        (RECEIVER, "intersect", &["--pad-to", "2"], 2, &["--pad-to 2", "3 items"]),
        (RECEIVER, "union", &["--protocol", "dh-psi"], 2, &["--protocol dh-psi", "union"]),
        (RECEIVER, "sum", &["--both"], 2, &["--both"]),
        (
            RECEIVER,
            "intersect",
            &["--output", "r.csv", "--force"],
            2,
            &["the input and --output are both r.csv"],
        ),
        (RECEIVER, "count", &["--output", "n.parquet"], 2, &["a line of numbers"]),
        (RECEIVER, "intersect", &["--output", "n.txt"], 2, &["2 columns, but a list has one"]),
        (SENDER, "count", &["--output", "x.csv"], 2, &["--both"]),
        (RECEIVER, "union", &["--both", "--max-row", "1"], 3, &["--max-row"]),
    ];
    for (who, operation, more, code, words) in cases {
        let more = [more, &["--listen", "127.0.0.1:0"]].concat();
        let mut party = world.party(who, operation, files[who].as_path(), &more);
        let ended = crate::common::run(&mut party);
        ended.bad(code, words);
        assert!(!ended.err.contains("listening"), "{operation} {more:?}: {}", ended.err);
    }
}

#[test]
fn two_sides_must_agree_on_what_travels_and_who_gets_the_result() {
    let world = World::new();
    let files = files(&world);
    let files: [&Path; 2] = [&files[0], &files[1]];
    // (the receiver's options, the sender's, words on both sides)
    let cases: [(Words, Words, Words); 5] = [
        (&[], &["--send-columns", "plan"], &["columns sent", "none", "\"plan\""]),
        (
            &["--receive-columns", "city,plan"],
            &["--send-columns", "plan,city"],
            &["\"city\", \"plan\"", "\"plan\", \"city\""],
        ),
        (&["--both"], &[], &["who gets the result", "both", "receiver"]),
        (&["--protocol", "dh"], &["--protocol", "dh-psi"], &["--protocol", "dh-psi"]),
        (&["--group", "p256"], &[], &["--protocol and --group", "dh-psi over p256", "vole"]),
    ];
    for (ours, theirs, words) in cases {
        for ended in world.run("intersect", files, [ours, theirs]) {
            ended.bad(4, words);
        }
    }
}

#[test]
fn a_malicious_sender_is_reckoned_with_if_both_sides_ask_for_it() {
    let world = World::new();
    let keys = |n| format!("id\n{}", (0..n).map(|i| format!("{i}\n")).collect::<String>());
    let files = [world.write("r.csv", keys(300)), world.write("s.csv", keys(200))];
    let files: [&Path; 2] = [&files[0], &files[1]];
    let report = |more: Words| -> serde_json::Value {
        let more = [more, &["--report", "r.json", "--force"]].concat();
        let [ours, _] = world.good("intersect", files, [&more, &more[..more.len() - 3]]);
        assert_eq!(ours, keys(200));
        serde_json::from_str(&world.read("r.json")).unwrap()
    };
    let [plain, flag] = [report(&["--protocol", "cm20"]), report(&["--malicious-sender"])];
    for (report, malicious) in [(&plain, false), (&flag, true)] {
        assert_eq!(report["protocol"], "cm20");
        let said = report["assumptions"].to_string().contains("a sender that deviates (malicious)");
        assert_eq!(said, malicious, "{report}");
    }
    // Tags are 15 bytes instead of 7 or 8.
    let bytes = |report: &serde_json::Value| report["bytes"]["received"].as_u64().unwrap();
    assert!(bytes(&flag) > bytes(&plain) + 200 * 6, "{} {}", bytes(&flag), bytes(&plain));
    let flag: Words = &["--malicious-sender"];
    let protocol: Words = &["--protocol", "cm20"];
    for sides in [[flag, protocol], [protocol, flag]] {
        for ended in world.run("intersect", files, sides) {
            ended.bad(4, &["--malicious-sender", "yes", "no"]);
        }
    }
    for ended in world.run("intersect", files, [flag, &[]]) {
        ended.bad(4, &["--malicious-sender", "yes", "no"]);
    }
}
