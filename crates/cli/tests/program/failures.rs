//! Runs that go wrong between two parties: both end with the right code and leave nothing behind.

use crate::common::{RECEIVER, Running, SENDER, Words, World, both, connect, csv, limited, listen};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use veilset_testing::{Draw, free_address};

/// Enough rows that a run is not over before it is disturbed.
const MANY: u32 = 60_000;
/// The time that a busy machine may add to a time-out.
const SLACK: Duration = Duration::from_secs(20);

/// Starts a union with these options of both, and returns it under way.
fn in_flight(world: &World, more: Words) -> [Running; 2] {
    let file = world.path("many.csv");
    let output = [more, &["--output", "out.csv", "--report", "report.json"]].concat();
    let (mut receiver, address) = listen(world.party(RECEIVER, "union", &file, &output));
    let mut sender = connect(world.party(SENDER, "union", &file, more), &address);
    for party in [&mut receiver, &mut sender] {
        party.until("matching");
    }
    [receiver, sender]
}

#[test]
fn nobody_there_is_an_error_within_the_time_out() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let free = free_address();
    let start = Instant::now();
    let short = ["--connect-timeout", "1"];
    let (listening, address) = listen(world.party(RECEIVER, "union", &file, &short));
    let connecting = connect(world.party(SENDER, "union", &file, &short), &free);
    for (party, address) in [(listening, &address), (connecting, &free)] {
        party.end().bad(6, &[address, "within 1 second (--connect-timeout)", "then run again"]);
    }
    assert!(start.elapsed() >= Duration::from_secs(1) && start.elapsed() < SLACK);
}

#[test]
fn a_wrong_peer_is_refused_and_both_fingerprints_are_named() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let [r, s] = &world.fingerprints;
    let [other, _] = &World::new().fingerprints;
    let mismatch = |by_r: &str, by_s: &str| {
        let short = ["--connect-timeout", "3", "--peer"];
        let receiver = world.party(RECEIVER, "union", &file, &[&short[..], &[by_r]].concat());
        let sender = world.party(SENDER, "union", &file, &[&short[..], &[by_s]].concat());
        let [here, there] = both(receiver, sender);
        // The connecting side checks the listener's key first; if it refuses that key, it never shows its own.
        let seen = if by_s == r { s } else { r };
        here.bad(5, &[seen, by_r, "--peer"]);
        there.bad(5, &[seen, by_s, "--peer"]);
    };
    // (the fingerprint that the listening receiver expects, and the one that the connecting sender expects)
    thread::scope(|scope| {
        for (by_r, by_s) in [(other, r), (s, other), (other, other)] {
            scope.spawn(move || mismatch(by_r, by_s));
        }
    });
}

#[test]
fn a_peer_that_is_stopped_is_noticed_after_the_idle_time_out() {
    let world = World::new();
    world.write("many.csv", csv(0..MANY));
    let before = world.names();
    let [receiver, sender] = in_flight(&world, &["--idle-timeout", "2"]);
    sender.signal("STOP");
    let start = Instant::now();
    receiver.end().bad(6, &["nothing came from the peer for 2 seconds (--idle-timeout)", "then run again"]);
    // The last frame may have arrived a little before the sender was stopped.
    assert!(start.elapsed() >= Duration::from_secs(1) && start.elapsed() < SLACK, "{:?}", start.elapsed());
    assert_eq!(world.names(), before);
    sender.signal("CONT");
    sender.end().bad(6, &["then run again"]);
}

#[test]
fn a_peer_that_is_killed_is_noticed_at_once() {
    let world = World::new();
    world.write("many.csv", csv(0..MANY));
    let before = world.names();
    let [receiver, sender] = in_flight(&world, &[]);
    sender.signal("KILL");
    receiver.end().bad(6, &["the peer closed the connection", "then run again"]);
    assert_eq!(sender.end().code, None);
    assert_eq!(world.names(), before);
}

#[test]
fn a_job_that_was_killed_goes_on_at_the_shard() {
    let world = World::new();
    let file = world.write("many.csv", csv(0..MANY));
    let killed = Draw::new("killed jobs").some(1, [RECEIVER, SENDER]);
    for &who in &killed {
        let job = ["--protocol", "dh", "--shards", "12", "--threads", "1", "--force"];
        let options = |who: usize, more: &[&'static str]| {
            let own: &[&str] = if who == RECEIVER {
                &["--job", "r.job", "--output", "out.csv"]
            } else {
                &["--job", "s.job"]
            };
            [&job[..], own, more].concat()
        };
        let party = |who, more: &[&'static str]| world.party(who, "union", &file, &options(who, more));
        let (receiver, address) = listen(party(RECEIVER, &[]));
        let sender = connect(party(SENDER, &[]), &address);
        let kept = |who: usize| {
            let folder = world.path(["r.job", "s.job"][who]);
            let names = folder.read_dir().into_iter().flatten().flatten().map(|e| e.file_name());
            names.filter(|name| name.to_str().is_some_and(|name| name.ends_with(".shard"))).count()
        };
        let start = Instant::now();
        while (0..2).any(|who| kept(who) < 2) {
            assert!(start.elapsed() < SLACK, "no shard is complete");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut parties = [receiver, sender];
        parties[who].signal("KILL");
        parties.swap(0, who);
        let [victim, other] = parties.map(Running::end);
        assert_eq!(victim.code, None);
        other.bad(6, &["both sides go on with --resume", "the peer closed the connection"]);
        assert!(!world.names().contains(&"out.csv".to_string()));
        let before = [kept(RECEIVER), kept(SENDER)];
        assert!(before.iter().all(|n| (2..12).contains(n)), "{before:?}");
        // A job continues only with the options that it began with.
        let wrong =
            [&job[..], &["--job", "r.job", "--output", "out.csv", "--resume", "--pad-to", "900000"]].concat();
        let refused = connect(world.party(RECEIVER, "union", &file, &wrong), "127.0.0.1:1").end();
        refused.bad(2, &["r.job", "--pad-to"]);
        let [r, s] = both(party(RECEIVER, &["--resume"]), party(SENDER, &["--resume"]));
        r.good();
        s.good();
        assert_eq!(world.read("out.csv").lines().count(), world.read("many.csv").lines().count());
        assert!(!world.path("r.job").exists() && kept(SENDER) == 12);
        std::fs::remove_dir_all(world.path("s.job")).unwrap();
        std::fs::remove_file(world.path("out.csv")).unwrap();
    }
    let log = std::fs::read_to_string(world.home("audit.jsonl")).unwrap();
    let events = |name: &str| log.matches(&format!(r#""event":"{name}""#)).count();
    let parties = 2 * killed.len();
    assert_eq!((events("start"), events("resume")), (parties, parties));
}

#[test]
fn who_is_interrupted_ends_with_130_and_its_peer_says_so() {
    let world = World::new();
    world.write("many.csv", csv(0..MANY));
    let before = world.names();
    for who in [RECEIVER, SENDER] {
        let mut parties = in_flight(&world, &[]);
        parties[who].signal("TERM");
        parties.swap(0, who);
        let [interrupted, peer] = parties.map(Running::end);
        interrupted.bad(130, &["stopped on request"]);
        peer.bad(5, &["it was stopped on request"]);
        assert_eq!(world.names(), before);
    }
}

#[test]
fn waiting_for_the_peer_can_be_interrupted() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let before = world.names();
    let output = ["--output", "out.csv"];
    let (listening, _) = listen(world.party(RECEIVER, "union", &file, &output));
    let nobody = free_address();
    let mut connecting = connect(world.party(RECEIVER, "union", &file, &output), &nobody);
    connecting.until("cannot be reached yet");
    for party in [listening, connecting] {
        party.signal("TERM");
        party.end().bad(130, &["stopped on request"]);
    }
    assert_eq!(world.names(), before);
}

#[test]
fn a_peer_with_more_keys_than_allowed_is_refused() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let [here, there] = both(
        world.party(RECEIVER, "count", &file, &["--max-peer-items", "2"]),
        world.party(SENDER, "count", &file, &["--max-peer-items", "3"]),
    );
    here.bad(8, &["the peer's set has 3 items", "--max-peer-items is 2"]);
    there.bad(5, &["it gave up because its policy refuses this run"]);
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing_behind() {
    let world = World::new();
    let before_of = |rows| {
        world.write("f.csv", csv(0..rows));
        world.names()
    };
    // One result larger than a single write, and two smaller ones.
    for (operation, rows) in [("union", 10_000), ("union", 10), ("count", 10)] {
        let before = before_of(rows);
        let more = ["--output", "out.csv", "--audit-log", "none"];
        let receiver = world.party(RECEIVER, operation, &world.path("f.csv"), &more);
        let [here, there] =
            both(with_no_room(&receiver), world.party(SENDER, operation, &world.path("f.csv"), &[]));
        here.bad(7, &["the result could not be written", "ulimit -f"]);
        // The result is written after the peer has left, so the peer does not see how long that takes.
        there.good();
        assert_eq!(world.names(), before);
    }
}

/// Returns the command under a limit that keeps files from growing.
pub fn with_no_room(command: &Command) -> Command {
    limited(command, "-f 0")
}

#[test]
fn standard_output_that_is_full_is_an_error() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let (sender, address) = listen(world.party(SENDER, "count", &file, &[]));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut receiver = world.party(RECEIVER, "count", &file, &["--connect", &address]);
    let out = receiver.stdin(Stdio::null()).stdout(full).output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(7), "{err}");
    assert!(err.contains("free disk space and run again"), "{err}");
    sender.end().good();
}

#[test]
fn plaintext_on_one_side_only_is_an_error_on_both() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let plain = ["--insecure-plaintext", "--connect-timeout", "2"];
    let tls = ["--connect-timeout", "2"];
    let before = world.names();
    let start = Instant::now();
    for (listens, connects) in [(plain.as_slice(), tls.as_slice()), (&tls, &plain)] {
        let listens = world.party(RECEIVER, "union", &file, &[listens, &["--output", "out.csv"]].concat());
        let connects = world.party(SENDER, "union", &file, &[connects, &["--quiet"]].concat());
        for ended in both(listens, connects) {
            assert!(matches!(ended.code, Some(5 | 6)), "{}", ended.err);
            ended.bad(ended.code.unwrap(), &["--insecure-plaintext"]);
        }
    }
    assert!(start.elapsed() < SLACK);
    assert_eq!(world.names(), before);
}

#[test]
fn two_sides_that_ask_for_different_things_both_say_which_option_differs() {
    let world = World::new();
    let file = world.write("f.csv", "id,cost\n1,2\n");
    let before = world.names();
    let values = ["--values", "cost"];
    // (operation, the receiver's options, the sender's options, the difference, the two values)
    let cases: [(&str, Words, Words, &str, [&str; 2]); 7] = [
        ("union", &["--max-row", "65"], &[], "--max-row", ["65", "64"]),
        ("union", &["--encoding", "bytes"], &[], "normalisation", ["bytes", "utf8"]),
        ("union", &["--key", "id,cost"], &[], "number of key columns (--key)", ["2", "1"]),
        ("union", &["--role", "sender"], &[], "--role", ["sender", "sender"]),
        ("sum", &["--scale", "2"], &values, "--scale", ["2", "0"]),
        ("sum", &["--min-count", "5"], &values, "--min-count", ["5", "0"]),
        ("sum", &["--modulus", "128"], &values, "--modulus", ["128", "64"]),
    ];
    for (operation, r, s, what, [ours, theirs]) in cases {
        let [here, there] = world.run(operation, [&file, &file], [r, s]);
        let line = |ours: &str, theirs: &str| format!("ours is {ours}, the peer's is {theirs}");
        here.bad(4, &[what, "Settle with the other party"]);
        there.bad(4, &[what, "Settle with the other party"]);
        here.bad(4, &[&line(ours, theirs)]);
        there.bad(4, &[&line(theirs, ours)]);
    }
    // The operations differ, and no output is created.
    let receiver = world.party(RECEIVER, "union", &file, &["--output", "out.csv", "--report", "report.json"]);
    for ended in both(receiver, world.party(SENDER, "count", &file, &[])) {
        ended.bad(4, &["operation", "union", "count", "nothing of the data was sent"]);
    }
    assert_eq!(world.names(), before);
}
