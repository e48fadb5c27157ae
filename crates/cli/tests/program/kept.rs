//! Files of earlier versions: those in `kept` were made by 0.1.0 (commit c23eb6d, protocol version 1) and by 0.2.0 (122caf6, protocol
//! version 3). Each is used as it is, or refused by name.

use crate::common::{RECEIVER, SENDER, Words, World, run};
use std::fs::{Permissions, copy, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Copies a folder. What is in it is ours alone, as it was when it was made.
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    for entry in from.read_dir().unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &to);
        } else {
            copy(entry.path(), &to).unwrap();
            set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
        }
    }
}

/// The parties to whom the files of a version belong.
fn world(version: &str) -> World {
    let mut world = World::new();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/kept");
    copied(&kept.join(version), world.path("r.pem").parent().unwrap());
    for (who, name) in ["r.pem", "s.pem"].into_iter().enumerate() {
        let shown = run(world.veilset().args(["identity", "show", "--identity", name])).good();
        world.fingerprints[who] = shown.trim().into();
    }
    world
}

/// What the receiver of a count gets with these options.
fn counted(world: &World, more: [Words; 2]) -> String {
    let files = ["r.csv", "s.csv"].map(|name| world.path(name));
    let [here, there] = world.good("count", [&files[0], &files[1]], more);
    assert_eq!(there, "");
    here
}

const COUNT: &str = "matches,union_size\n2,5\n";

#[test]
fn filters_of_an_earlier_version_serve_runs() {
    let world = world("0.2.0");
    let filter =
        |name: &str, who: &str| run(world.veilset().args(["filter", "info", name, "--identity", who])).good();
    assert!(filter("r.filter", "r.pem").contains("4 items, with room for 5"));
    assert!(filter("r.public", "s.pem").contains("the public part of a filter of up to 5 items"));
    let both: [Words; 2] = [&["--filter", "r.filter"], &["--filter", "r.public"]];
    assert_eq!(counted(&world, both), COUNT);
    assert_eq!(counted(&world, [both[0], &["--protocol", "dc17"]]), COUNT);
    let mut update = world.veilset();
    let update = update.args(["filter", "update", "r.filter", "s.csv", "--key", "id", "--identity", "r.pem"]);
    run(update).bad(0, &["inserted 1 item"]);
}

#[test]
fn a_half_of_an_earlier_version_serves_one_run_and_a_used_one_none() {
    let world = world("0.2.0");
    let with = |half| ["--prepared", half, "--prepared-ledger", "prepared.ledger"];
    let file = world.path("r.csv");
    let used = run(&mut world.party(
        RECEIVER,
        "count",
        &file,
        &[&with("spent.half")[..], &["--listen", "127.0.0.1:0"]].concat(),
    ));
    used.bad(3, &["spent.half", "was used"]);
    assert_eq!(counted(&world, [&with("r.half"), &[]]), COUNT);
    assert!(!world.path("r.half").exists());
}

#[test]
fn a_job_of_an_earlier_version_goes_on() {
    let world = world("0.2.0");
    let files = ["big_r.csv", "big_s.csv"].map(|name| world.path(name));
    let receiver: Words = &["--shards", "40", "--job", "r.job", "--resume", "--output", "out.csv"];
    let sender: Words = &["--shards", "40", "--job", "s.job", "--resume"];
    world.good("intersect", [&files[0], &files[1]], [receiver, sender]);
    let expected: String = (30..60).map(|i| format!("{i}\n")).collect();
    assert_eq!(world.read("out.csv"), format!("id\n{expected}"));
}

#[test]
fn a_book_a_policy_a_log_and_a_run_file_of_an_earlier_version_are_read() {
    for world in ["0.1.0", "0.2.0"].map(world) {
        let listed = run(world.veilset().args(["peer", "list", "--book", "peers.toml"])).good();
        assert!(listed.contains("south") && listed.contains(&world.fingerprints[SENDER]), "{listed}");
        let before = world.read("audit.jsonl").lines().count();
        let governed = [
            "--policy",
            "policy.toml",
            "--audit-log",
            "audit.jsonl",
            "--peer",
            "south",
            "--book",
            "peers.toml",
        ];
        assert_eq!(counted(&world, [&governed, &[]]), COUNT);
        // The line of then is the same run with the same peer and set.
        let log = world.read("audit.jsonl");
        assert_eq!(log.lines().count(), before + 2);
        let set = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["set"].clone();
        let starts: Vec<_> =
            log.lines().filter(|line| line.contains("\"event\":\"start\"")).map(set).collect();
        assert!(starts.len() == 2 && starts[0].is_string() && starts[0] == starts[1], "{log}");
        let mut planned = world.veilset();
        let listens =
            ["run", "run.toml", "--listen", "127.0.0.1:0", "--connect-timeout", "1", "--allow-small"];
        run(planned.args(listens)).bad(6, &["r.csv", "4 items", "within 1 second"]);
    }
}

#[test]
fn what_was_sealed_for_another_format_is_refused_by_name() {
    let world = world("0.1.0");
    let file = world.path("r.csv");
    let refused = |name: &str, made_by: &str, more: Words| {
        let listens = [more, &["--listen", "127.0.0.1:0"]].concat();
        let words = [name, "it is of another version of veilset", made_by];
        run(&mut world.party(RECEIVER, "intersect", &file, &listens)).bad(3, &words);
        assert!(world.path(name).exists());
    };
    refused("r.filter", "`veilset filter build`", &["--filter", "r.filter"]);
    refused("r.half", "`veilset prepare`", &["--prepared", "r.half", "--prepared-ledger", "prepared.ledger"]);
    refused("r.job", "another", &["--shards", "40", "--job", "r.job", "--resume"]);
    let public = ["--filter", "r.public", "--listen", "127.0.0.1:0"];
    let words = ["r.public", "it is of another version of veilset"];
    run(&mut world.party(SENDER, "count", &world.path("s.csv"), &public)).bad(3, &words);
}
