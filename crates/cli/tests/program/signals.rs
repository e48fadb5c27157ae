//! Signals: the first ends the program at its next step, or from outside if there is none, the second at once.

use crate::common::{RECEIVER, Running, SENDER, World, connect, csv, listen};
use std::io::{Read, Write};
use std::process::ChildStdin;

const SIGNALS: [&str; 3] = ["INT", "TERM", "HUP"];

/// A party that reads standard input, where nothing comes as long as it is kept, and has said so.
fn reading(world: &World) -> (Running, ChildStdin) {
    let mut party = Running::start(&mut world.party(
        RECEIVER,
        "count",
        "-".as_ref(),
        &["--connect", "127.0.0.1:1", "--report", "report.json"],
    ));
    party.until("reading -");
    let stdin = party.stdin();
    (party, stdin)
}

#[test]
fn a_result_that_nobody_reads_can_be_stopped() {
    let world = World::new();
    // More than a pipe holds.
    let file = world.write("f.csv", csv(0..30_000));
    for name in SIGNALS {
        let (mut reads, writes) = std::io::pipe().unwrap();
        let (sender, address) = listen(world.party(SENDER, "union", &file, &[]));
        let mut receiver = world.party(RECEIVER, "union", &file, &["--connect", &address]);
        let receiver = Running::start_into(&mut receiver, writes);
        sender.end().good();
        // The result is being written.
        reads.read_exact(&mut [0; 8]).unwrap();
        receiver.signal(name);
        receiver.end().bad(130, &["stopped on request"]);
    }
}

#[test]
fn a_read_that_does_not_return_is_ended_from_outside() {
    let world = World::new();
    let before = world.names();
    for name in SIGNALS {
        let (party, _stdin) = reading(&world);
        party.signal(name);
        party.end().bad(130, &["stopped on request, in the middle of something that does not end"]);
    }
    assert_eq!(world.names(), before);
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let world = World::new();
    // A busy machine may bring the signal when the program has been ended from outside.
    for _ in 0..5 {
        let (mut party, _stdin) = reading(&world);
        party.signal("INT");
        party.until("a second signal stops at once");
        // It may be gone.
        let _ = std::process::Command::new("kill").args(["-TERM", &party.id().to_string()]).status();
        let ended = party.end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        if ended.err.contains("stopped at once, by a second signal") {
            return;
        }
    }
    panic!("no second signal was heard");
}

#[test]
fn a_file_that_is_being_read_and_a_half_that_is_being_prepared_can_be_stopped() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..100_000));
    let before = world.names();
    let prepare = |input: &str| {
        let mut command = world.veilset();
        command.args(["prepare", input, "--key", "id", "--output", "half", "--identity", "r.pem"]);
        Running::start(&mut command)
    };
    let mut preparing = prepare(file.to_str().unwrap());
    preparing.until("preparing");
    preparing.signal("INT");
    preparing.end().bad(130, &["stopped on request"]);
    let mut reading = prepare("-");
    reading.until("reading -");
    let mut stdin = reading.stdin();
    reading.signal("INT");
    // The next bytes are the next step. It may be gone already.
    let _ = stdin.write_all(csv(0..1000).as_bytes());
    reading.end().bad(130, &["stopped on request"]);
    assert_eq!(world.names(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_is_killed_leaves_no_file() {
    let world = World::new();
    world.write("many.csv", csv(0..200_000));
    let before = world.names();
    let file = world.path("many.csv");
    let output = ["--output", "out.csv", "--report", "report.json"];
    let (mut receiver, address) = listen(world.party(RECEIVER, "union", &file, &output));
    let sender = connect(world.party(SENDER, "union", &file, &[]), &address);
    receiver.until("matching");
    receiver.signal("KILL");
    assert_eq!(receiver.end().code, None);
    sender.end().bad(6, &[]);
    assert_eq!(world.names(), before);
}
