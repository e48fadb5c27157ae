//! The audit log.

use crate::common::{RECEIVER, SENDER, Words, World, both, connect, csv, limited, listen, run};
use crate::failures::with_no_room;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn entries(world: &World, name: &str) -> Vec<Value> {
    world.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_has_a_line_at_its_start_and_one_at_its_end() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    run(world.veilset().args(["peer", "add", "south", &world.fingerprints[SENDER]])).good();
    let logs: [Words; 2] =
        [&["--audit-log", "r.log"], &["--audit-log", "s.log", "--values", "cost", "--scale", "1"]];
    world.good("sum", [&files[0], &files[1]], [&[logs[0], &["--scale", "1"]].concat(), logs[1]]);
    assert_eq!(std::fs::metadata(world.path("r.log")).unwrap().permissions().mode() & 0o7777, 0o600);
    let [r, s] = ["r.log", "s.log"].map(|name| entries(&world, name));
    assert_eq!((r.len(), s.len()), (2, 2));
    // Both sides log the same session.
    for entry in [&r[1], &s[0], &s[1]] {
        assert_eq!(entry["session"], r[0]["session"]);
    }
    let start = &r[0];
    assert!(start["time"].as_str().unwrap().ends_with('Z'), "{start}");
    for (name, value) in [
        ("event", json!("start")),
        ("operation", json!("sum")),
        ("protocol", json!("dh")),
        ("role", json!("receiver")),
        ("peer", json!(world.fingerprints[SENDER])),
        ("peer_name", json!("south")),
        ("our", json!(world.fingerprints[RECEIVER])),
        ("items", json!(5)),
        ("peer_items", json!(6)),
    ] {
        assert_eq!(start[name], value, "{name}");
    }
    assert_eq!((&start["terms"]["min_count"], &start["terms"]["output"]), (&json!("0"), &json!("receiver")));
    assert_eq!((start["set"].as_str().unwrap().len(), start["session"].as_str().unwrap().len()), (64, 64));
    assert_eq!((&r[1]["event"], &r[1]["outcome"]), (&json!("end"), &json!("done")));
    assert_eq!((&r[1]["result"], &s[1]["result"]["matches"]), (&json!({"matches": 2}), &json!(2)));
    assert_eq!(s[0]["peer_name"], Value::Null);
    // The log contains nothing of the data.
    for name in ["r.log", "s.log"] {
        assert!(!world.read(name).contains("\"3\"") && !world.read(name).contains("r.csv"));
    }
}

#[test]
fn checks_refusals_and_runs_that_fail_are_told_apart() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..5));
    world.write("policy.toml", "min-peer-size = 9");
    let log = ["--audit-log", "log"];
    let refusing = [&log[..], &["--policy", "policy.toml"]].concat();
    for (operation, more, code) in
        [("check count", &log[..], 0), ("count", &refusing, 8), ("check count", &refusing, 8)]
    {
        let (receiver, address) = listen(world.party(RECEIVER, operation, &file, more));
        run(&mut world.party(SENDER, operation, &file, &["--audit-log", "none", "--connect", &address]));
        receiver.end().bad(code, &[]);
    }
    let events = |name| entries(&world, name).iter().map(|e| e["event"].clone()).collect::<Vec<_>>();
    assert_eq!(events("log"), ["check", "refused", "refused"]);
    // The peer dies after the start.
    let many = world.write("many.csv", csv(0..100_000));
    let (mut receiver, address) = listen(world.party(RECEIVER, "count", &many, &log));
    let sender = connect(world.party(SENDER, "count", &many, &["--audit-log", "none"]), &address);
    receiver.until("matching");
    sender.signal("KILL");
    receiver.end().bad(6, &[]);
    let all = entries(&world, "log");
    assert_eq!(events("log")[3..], ["start", "end"]);
    assert_eq!((&all[4]["outcome"], &all[4]["result"]), (&json!("network"), &json!({})));
}

#[test]
fn without_its_log_no_run_starts() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let taken = world.path("f.csv/log");
    let taken = taken.to_str().unwrap();
    for log in ["/dev/full", ".", taken] {
        let more = ["--audit-log", log, "--connect", "127.0.0.1:1"];
        run(&mut world.party(RECEIVER, "count", &file, &more)).bad(7, &[log, "--audit-log none"]);
    }
    // Without room when the run starts, the peer gets nothing.
    let sender = world.party(SENDER, "count", &file, &[]);
    let [here, there] =
        both(with_no_room(&sender), world.party(RECEIVER, "count", &file, &["--audit-log", "none"]));
    here.bad(7, &["the audit log", "No run starts without it", "--audit-log none"]);
    there.bad(5, &["could not write its result or log"]);
    // No folder for the log.
    let mut homeless = world.party(RECEIVER, "count", &file, &["--connect", "127.0.0.1:1"]);
    run(homeless.env_remove("XDG_STATE_HOME").env_remove("HOME")).bad(2, &["XDG_STATE_HOME", "--audit-log"]);
    // The log is in the default folder.
    world.good("count", [&file, &file], [&[], &["--audit-log", "none"]]);
    assert_eq!(std::fs::read_to_string(world.home("audit.jsonl")).unwrap().lines().count(), 2);
}

#[test]
fn a_line_for_which_there_is_no_room_is_not_there() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    // Only a part of the entry fits.
    let before = "\n".repeat(400);
    world.write("log", &before);
    world.write("policy.toml", "repeats = \"refuse\"");
    let more = ["--audit-log", "log", "--policy", "policy.toml"];
    let receiver = || world.party(RECEIVER, "count", &file, &more);
    let sender = || world.party(SENDER, "count", &file, &["--audit-log", "none"]);
    let [here, there] = both(limited(&receiver(), "-f 1"), sender());
    here.bad(7, &["the audit log", "free disk space"]);
    there.bad(5, &["could not write its result or log"]);
    assert_eq!(world.read("log"), before);
    // With room, the run succeeds.
    let [here, there] = both(receiver(), sender());
    here.good();
    there.good();
    assert_eq!(world.read("log").lines().filter(|line| !line.is_empty()).count(), 2);
}

#[test]
fn lines_that_are_no_entries_are_named() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    world.write("log", "garbage\n{\"half");
    let more = ["--audit-log", "log"];
    let (receiver, address) = listen(world.party(RECEIVER, "count", &file, &more));
    connect(world.party(SENDER, "count", &file, &["--audit-log", "none"]), &address).end().good();
    receiver.end().bad(0, &["warning: the audit log has lines that are not entries (line 1, 2)"]);
    assert_eq!(world.read("log").lines().count(), 4);
    world.write("policy.toml", "repeats = \"refuse\"");
    let more = ["--audit-log", "log", "--policy", "policy.toml"];
    let receiver = world.party(RECEIVER, "count", &file, &more);
    let [here, _] = both(receiver, world.party(SENDER, "count", &file, &["--audit-log", "none"]));
    here.bad(8, &["by \"repeats\"", "line 1, 2"]);
}
