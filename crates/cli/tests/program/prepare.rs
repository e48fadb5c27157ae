//! Runs whose offline half was prepared.

use crate::common::{RECEIVER, SENDER, World, both, connect, csv, listen, run};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Prepares a half under a party's identity.
fn prepare(world: &World, who: usize, input: &Path, half: &str, more: &[&str]) -> crate::common::Ended {
    let mut command = world.veilset();
    command.arg("prepare").arg(input).args(["--key", "id", "--output", half]);
    run(command.args(["--identity", ["r.pem", "s.pem"][who]]).args(more))
}

#[test]
fn a_prepared_run_gives_what_another_gives_and_takes_the_half() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..40)), world.write("s.csv", csv(25..60))];
    for (operation, more) in [
        ("intersect", [&[][..], &[][..]]),
        ("intersect", [&["--protocol", "dh"], &["--protocol", "dh"]]),
        ("union", [&[], &["--pad-to", "50"]]),
        ("count", [&["--pad-to", "50"], &[]]),
        ("count", [&["--group", "p256"], &["--group", "p256"]]),
        ("intersect", [&["--group", "p256-compressed"], &["--group", "p256-compressed"]]),
        ("sum", [&["--scale", "1"], &["--scale", "1", "--values", "cost"]]),
    ] {
        let plain = world.good(operation, [&files[0], &files[1]], more);
        let lines = |out: &str| {
            let mut lines: Vec<_> = out.lines().map(str::to_string).collect();
            lines.sort_unstable();
            lines
        };
        for halves in [[true, false], [false, true], [true, true]] {
            let with = [RECEIVER, SENDER].map(|who| {
                let mut words = more[who].to_vec();
                if halves[who] {
                    let half = ["r.half", "s.half"][who];
                    let same = |option: &str| {
                        let at = more[who].iter().position(|w| *w == option);
                        at.map_or(&[][..], |i| &more[who][i..i + 2])
                    };
                    let (pad, group) = (same("--pad-to"), same("--group"));
                    let listed =
                        if operation == "union" && who == SENDER { &["--union-sender"][..] } else { &[] };
                    let made = prepare(&world, who, &files[who], half, &[pad, group, listed].concat());
                    made.bad(0, &["preparing", "made", half]);
                    words.extend(["--prepared", half]);
                }
                words
            });
            let out = world.good(operation, [&files[0], &files[1]], [&with[0], &with[1]]);
            assert_eq!(
                out.each_ref().map(|out| lines(out)),
                plain.each_ref().map(|out| lines(out)),
                "{operation}"
            );
            assert!(!world.path("r.half").exists() && !world.path("s.half").exists());
        }
    }
    // One line per half: 7 runs with a half of the receiver, 7 with one of the sender, 7 with both. The first line is the
    // ledger's own.
    assert_eq!(std::fs::read_to_string(world.home("prepared.ledger")).unwrap().lines().count(), 29);
}

#[test]
fn what_becomes_of_values_makes_no_difference_to_the_half() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv((3..9).chain(4..6)))];
    prepare(&world, SENDER, &files[1], "half", &[]).good();
    let sender = ["--scale", "1", "--values", "cost", "--duplicates", "add", "--prepared", "half"];
    let [_, out] = world.good("sum", [&files[0], &files[1]], [&["--scale", "1"], &sender]);
    // The value 3.5 once, and 4.5 twice.
    assert_eq!(out, "matches,sum,below_minimum\n2,12.5,false\n");
    assert!(!world.path("half").exists());
}

#[test]
fn a_copy_is_refused_before_the_peer_hears_of_us() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    prepare(&world, RECEIVER, &files[0], "half", &[]).good();
    std::fs::copy(world.path("half"), world.path("copy")).unwrap();
    let with = ["--prepared", "half", "--report", "report.json"];
    let [here, _] = world.run("count", [&files[0], &files[1]], [&with, &[]]);
    here.bad(0, &["seconds with a prepared offline half"]);
    assert!(world.read("report.json").contains("\"prepared\": true"));
    let alone = |half: &str, more: &[&str]| {
        let more = [&["--prepared", half, "--connect", "127.0.0.1:1"][..], more].concat();
        run(&mut world.party(RECEIVER, "count", &files[0], &more))
    };
    alone("copy", &[]).bad(3, &["copy: it was used before", "veilset prepare"]);
    alone("half", &[]).bad(3, &["half: there is no such prepared half"]);
    alone("s.csv", &[]).bad(3, &["s.csv: it is not a prepared half"]);
    alone("copy", &["--prepared-ledger", "."]).bad(7, &["ledger of prepared halves . cannot be used"]);
    assert!(world.path("copy").exists());
}

#[test]
fn what_was_prepared_for_something_else_is_refused() {
    let world = World::new();
    let (file, other) = (world.write("r.csv", csv(0..5)), world.write("other.csv", csv(0..6)));
    prepare(&world, RECEIVER, &file, "half", &[]).good();
    let alone = |who, operation, file: &Path, more: &[&str]| {
        let more = [&["--prepared", "half", "--connect", "127.0.0.1:1"][..], more].concat();
        run(&mut world.party(who, operation, file, &more))
    };
    let again = "Run `veilset prepare` again";
    alone(RECEIVER, "count", &other, &[]).bad(3, &["half: it was prepared for 5 keys", "now has 6", again]);
    alone(RECEIVER, "count", &file, &["--normalize", "trim"]).bad(3, &["--normalize", again]);
    alone(RECEIVER, "count", &file, &["--pad-to", "9"]).bad(3, &["no --pad-to", "--pad-to 9", again]);
    alone(RECEIVER, "count", &file, &["--key", "id,cost"]).bad(3, &["1 key columns", again]);
    let sender = alone(SENDER, "count", &file, &["--role", "sender"]);
    sender.bad(3, &["another identity", &world.fingerprints[0], &world.fingerprints[1]]);
    assert!(world.path("half").exists());
    // Halves that `prepare` itself refuses.
    prepare(&world, RECEIVER, &file, "half", &[]).bad(7, &["half exists", "--force"]);
    prepare(&world, RECEIVER, &file, "half", &["--force"]).good();
    prepare(&world, RECEIVER, &file, "-", &[]).bad(2, &["must be a file"]);
    prepare(&world, RECEIVER, &file, "r.csv", &["--force"])
        .bad(2, &["the input and --output are both r.csv"]);
    prepare(&world, RECEIVER, &file, "new", &["--pad-to", "4"])
        .bad(2, &["--pad-to 4 is less than our 5 items"]);
    prepare(&world, RECEIVER, &file, "new", &["--union-sender"]).bad(2, &["--pad-to"]);
    assert_eq!(world.names(), ["half", "other.csv", "r.csv", "r.pem", "s.pem"]);
}

#[test]
fn a_disagreement_and_a_check_leave_the_half() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    prepare(&world, RECEIVER, &files[0], "half", &[]).good();
    let receiver = |operation| world.party(RECEIVER, operation, &files[0], &["--prepared", "half"]);
    let sender = |operation| world.party(SENDER, operation, &files[1], &[]);
    let [here, _] = both(receiver("count"), sender("union"));
    here.bad(4, &["operation"]);
    assert!(both(receiver("check count"), sender("check count")).iter().all(|ended| ended.code == Some(0)));
    assert!(world.path("half").exists());
    // The peer dies during the run: the half is gone.
    let many = world.write("many.csv", csv(0..100_000));
    let (mut here, address) = listen(receiver("count"));
    let there = connect(world.party(SENDER, "count", &many, &[]), &address);
    here.until("matching");
    there.signal("KILL");
    here.end().bad(6, &[]);
    assert!(!world.path("half").exists());
}

#[test]
fn of_two_runs_with_copies_at_once_one_goes_on() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    prepare(&world, RECEIVER, &files[0], "a", &[]).good();
    std::fs::copy(world.path("a"), world.path("b")).unwrap();
    // Both parties have read the ledger by the time that they listen.
    let parties =
        ["a", "b"].map(|half| listen(world.party(RECEIVER, "count", &files[0], &["--prepared", half])));
    let ends = parties.map(|(here, address)| {
        let there = connect(world.party(SENDER, "count", &files[1], &[]), &address);
        (here, there)
    });
    let codes = ends.map(|(here, there)| [here.end(), there.end()].map(|ended| ended.code));
    assert!([[Some(0); 2], [Some(3), Some(5)]].iter().all(|ends| codes.contains(ends)), "{codes:?}");
}

#[test]
fn a_run_from_a_file_takes_its_half() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    std::fs::create_dir(world.path("conf")).unwrap();
    prepare(&world, RECEIVER, &files[0], "conf/half", &["--prepared-ledger", "conf/ledger"]).good();
    let common = "operation = \"count\"\nkey = \"id\"\nconnect-timeout = 20\n";
    let [_, peer] = &world.fingerprints;
    world.write(
        "conf/run.toml",
        format!(
            "{common}role = \"receiver\"\ninput = \"../r.csv\"\nidentity = \"../r.pem\"\npeer = \"{peer}\"\n\
             prepared = \"half\"\nprepared-ledger = \"ledger\"\n"
        ),
    );
    let mut receiver = world.veilset();
    receiver.args(["run", "conf/run.toml"]);
    let [here, there] = both(receiver, world.party(SENDER, "count", &files[1], &[]));
    assert_eq!(here.good().lines().last(), Some("2,9"));
    there.good();
    assert!(!world.path("conf/half").exists() && world.path("conf/ledger").exists());
}

#[test]
fn a_half_belongs_to_the_ledger_that_it_was_prepared_with() {
    let world = World::new();
    let file = world.write("r.csv", csv(0..5));
    world.write("ours.txt", "alice\nbob\n");
    prepare(&world, RECEIVER, &file, "half", &["--prepared-ledger", "state/a"]).good();
    prepare(&world, RECEIVER, &file, "other", &["--prepared-ledger", "state/b"]).good();
    let alone = |ledger: &[&str]| {
        let more = [&["--prepared", "half", "--connect", "127.0.0.1:1"][..], ledger].concat();
        run(&mut world.party(RECEIVER, "count", &file, &more))
    };
    alone(&["--prepared-ledger", "state/b"]).bad(3, &["half: it was made with a ledger other than state/b"]);
    alone(&[]).bad(7, &["there is no ledger of prepared halves", "prepared.ledger"]);
    assert!(!world.home("prepared.ledger").exists());
    alone(&["--prepared-ledger", "ours.txt"]).bad(
        7,
        &["ours.txt is not a ledger of prepared halves, and is left unchanged. Check --prepared-ledger"],
    );
    prepare(&world, RECEIVER, &file, "new", &["--prepared-ledger", "ours.txt"])
        .bad(7, &["ours.txt is not a ledger"]);
    assert_eq!(world.read("ours.txt"), "alice\nbob\n");
    // Without a default folder for the ledger, the error names the option.
    let mut homeless = world.veilset();
    homeless.arg("prepare").arg(&file).args(["--key", "id", "--output", "new", "--identity", "r.pem"]);
    run(homeless.env_remove("XDG_STATE_HOME").env_remove("HOME")).bad(2, &["--prepared-ledger"]);
    // With its own ledger, the party gets as far as connecting.
    let mut command = world.party(
        RECEIVER,
        "count",
        &file,
        &[
            "--prepared",
            "half",
            "--prepared-ledger",
            "state/a",
            "--connect",
            "127.0.0.1:1",
            "--connect-timeout",
            "1",
        ],
    );
    run(&mut command).bad(6, &[]);
    assert!(world.path("half").exists());
}

#[test]
fn one_file_is_not_taken_for_two_things() {
    let world = World::new();
    let file = world.write("r.csv", csv(0..5));
    prepare(&world, RECEIVER, &file, "half", &["--prepared-ledger", "ledger"]).good();
    std::fs::hard_link(world.path("half"), world.path("link")).unwrap();
    std::os::unix::fs::symlink("ledger", world.path("led")).unwrap();
    for (more, words) in [
        (&["--prepared", "half", "--prepared-ledger", "half"][..], "--prepared and --prepared-ledger"),
        (&["--prepared", "half", "--prepared-ledger", "./link"], "--prepared and --prepared-ledger"),
        (&["--prepared", "half", "--output", "half", "--force"], "--output and --prepared are"),
        (&["--prepared", "half", "--report", "half", "--force"], "--prepared and --report are"),
        (&["--prepared", "half", "--audit-log", "half"], "--prepared and --audit-log are"),
        (
            &["--prepared", "half", "--prepared-ledger", "led", "--audit-log", "ledger"],
            "--prepared-ledger and --audit-log are",
        ),
        (
            &["--prepared", "half", "--prepared-ledger", "ledger", "--output", "led", "--force"],
            "--output and",
        ),
        (
            &["--prepared", "half", "--prepared-ledger", "new", "--report", "./new"],
            "--prepared-ledger and --report",
        ),
        (&["--prepared", "r.csv"], "the input and --prepared are"),
        (&["--audit-log", "r.csv"], "the input and --audit-log are"),
        (&["--output", "new", "--audit-log", "new"], "--output and --audit-log are"),
    ] {
        let more = [&["--connect", "127.0.0.1:1"][..], more].concat();
        run(&mut world.party(RECEIVER, "count", &file, &more)).bad(2, &[words, "Give each its own file"]);
    }
    for more in [&["--prepared-ledger", "r.csv"][..], &["--prepared-ledger", "./new"]] {
        prepare(&world, RECEIVER, &file, "new", more).bad(2, &["--prepared-ledger are both"]);
    }
    assert_eq!(world.names(), ["half", "led", "ledger", "link", "r.csv", "r.pem", "s.pem"]);
}

#[test]
fn a_run_that_waits_for_the_ledger_can_be_interrupted() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    prepare(&world, RECEIVER, &files[0], "half", &[]).good();
    let with = ["--prepared", "half", "--audit-log", "log"];
    let (here, address) = listen(world.party(RECEIVER, "count", &files[0], &with));
    let ledger = std::fs::File::open(world.home("prepared.ledger")).unwrap();
    ledger.lock().unwrap();
    let there = connect(world.party(SENDER, "count", &files[1], &[]), &address);
    // The half is spent once the log has the start.
    let begin = Instant::now();
    while std::fs::read_to_string(world.path("log")).unwrap_or_default().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    here.signal("TERM");
    here.end().bad(130, &["stopped on request"]);
    there.end().bad(5, &[]);
    drop(ledger);
    assert_eq!(std::fs::read_to_string(world.home("prepared.ledger")).unwrap().lines().count(), 1);
    let [here, _] = world.run("count", [&files[0], &files[1]], [&with, &[]]);
    here.good();
    assert!(!world.path("half").exists());
}

#[test]
fn the_log_says_that_a_half_was_used_and_quiet_is_quiet() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    let made = prepare(&world, RECEIVER, &files[0], "half", &["--quiet"]);
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
    let logs = [["--audit-log", "r.log"], ["--audit-log", "s.log"]];
    let with = [&logs[0][..], &["--prepared", "half"]].concat();
    world.good("count", [&files[0], &files[1]], [&with, &logs[1]]);
    for (name, prepared) in [("r.log", true), ("s.log", false)] {
        let log = world.read(name);
        let start: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        assert_eq!((&start["event"], &start["prepared"]), (&"start".into(), &prepared.into()));
    }
}

#[test]
fn a_half_that_is_replaced_in_flight_is_left_and_said_so() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(3..9))];
    prepare(&world, RECEIVER, &files[0], "half", &[]).good();
    let with = ["--prepared", "half"];
    let (here, address) = listen(world.party(RECEIVER, "count", &files[0], &with));
    prepare(&world, RECEIVER, &files[0], "half", &["--force"]).good();
    let there = connect(world.party(SENDER, "count", &files[1], &[]), &address);
    here.end().bad(0, &["warning: the prepared half half was moved, deleted or replaced"]);
    there.end().good();
    let [here, _] = world.run("count", [&files[0], &files[1]], [&with, &[]]);
    here.good();
    assert!(!world.path("half").exists());
}
