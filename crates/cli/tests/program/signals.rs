//! Signals: the first ends the program at its next step, or by the watchdog if there is none; the second ends it at once.

use crate::common::{RECEIVER, Running, SENDER, World, after, connect, csv, listen, signal, signalled};
use std::io::{PipeReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the signals that the program handles, unless the tests were started with them ignored.
fn signals() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let ignored = u64::from_str_radix(mask.trim(), 16).unwrap();
    let all = [("HUP", 1), ("INT", 2), ("TERM", 15)];
    all.into_iter().filter(|(_, number)| ignored >> (number - 1) & 1 == 0).map(|(name, _)| name).collect()
}

/// A process that writes all its output into one pipe, which is not emptied.
struct Unread {
    child: Child,
    reads: PipeReader,
    read: String,
}

impl Unread {
    fn start(mut command: Command, standard_output_too: bool) -> Unread {
        let (reads, writes) = std::io::pipe().unwrap();
        let out = if standard_output_too { writes.try_clone().unwrap().into() } else { Stdio::null() };
        command.stdin(Stdio::null()).stdout(out).stderr(writes);
        Unread { child: command.spawn().unwrap(), reads, read: String::new() }
    }

    /// Reads up to these words, and no further.
    fn until(&mut self, words: &str) {
        while !self.read.ends_with(words) {
            let mut byte = [0];
            self.reads.read_exact(&mut byte).unwrap();
            self.read.push(byte[0].into());
        }
    }

    /// Fills the pipe, so that further writes block.
    #[cfg(target_os = "linux")]
    fn fill(&self) {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", self.reads.as_raw_fd());
        let mut writes = std::fs::File::options().write(true).open(path).unwrap();
        std::thread::spawn(move || writes.write_all(&[b'.'; 1 << 20]));
    }

    /// Waits for the end, and returns the exit code.
    fn end(mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.child.kill().unwrap();
        panic!("it hangs: {}", self.read);
    }
}

/// Starts a party that has reported that it reads standard input, which stays empty as long as it is kept.
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
    let file = world.write("f.csv", csv(0..9_000));
    for name in signals() {
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
fn a_result_and_messages_that_nobody_reads_can_be_stopped() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..9_000));
    let (sender, address) = listen(world.party(SENDER, "union", &file, &[]));
    let receiver = world.party(RECEIVER, "union", &file, &["--connect", &address]);
    let mut receiver = Unread::start(receiver, true);
    receiver.until("id,cost\n");
    sender.end().good();
    signal(receiver.child.id(), "TERM");
    assert_eq!(receiver.end(), Some(130));
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_after_the_result_is_there_does_not_end_the_run_as_stopped() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..10_000));
    let (sender, address) = listen(world.party(SENDER, "count", &file, &[]));
    let more = ["--output", "out.csv", "--report", "report.json", "--connect", &address];
    let mut receiver = Unread::start(world.party(RECEIVER, "count", &file, &more), false);
    // Reads to the end of the line: its parts are written one by one, and one that does not fit would stop the run.
    receiver.until("comparing\n");
    receiver.fill();
    sender.end().good();
    let start = Instant::now();
    while !world.path("report.json").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", receiver.read);
        std::thread::sleep(Duration::from_millis(5));
    }
    // Only the text about the result remains, which is never read.
    std::thread::sleep(Duration::from_millis(100));
    signal(receiver.child.id(), "TERM");
    assert_eq!(receiver.end(), Some(0));
    assert_eq!(world.read("out.csv"), "matches,union_size\n10000,10000\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let (receiver, address) = listen(after("trap '' HUP INT", &world.party(RECEIVER, "count", &file, &[])));
    receiver.signal("HUP");
    receiver.signal("INT");
    connect(world.party(SENDER, "count", &file, &[]), &address).end().good();
    receiver.end().good();
}

#[test]
fn a_read_that_does_not_return_is_ended_from_outside() {
    let world = World::new();
    let before = world.names();
    // Each takes a few seconds, so all run at the same time.
    let parties: Vec<_> = signals().into_iter().map(|name| (name, reading(&world))).collect();
    parties.iter().for_each(|(name, (party, _))| party.signal(name));
    for (_, (party, _stdin)) in parties {
        party.end().bad(130, &["stopped on request, during a call that did not return"]);
    }
    assert_eq!(world.names(), before);
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let world = World::new();
    // On a busy machine, the signal may arrive after the watchdog has ended the program.
    for _ in 0..5 {
        let (mut party, _stdin) = reading(&world);
        party.signal("TERM");
        party.until("a second signal stops at once");
        // The process may be gone.
        let _ = signalled(party.id(), "TERM");
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
    preparing.signal("TERM");
    preparing.end().bad(130, &["stopped on request"]);
    let mut reading = prepare("-");
    reading.until("reading -");
    let mut stdin = reading.stdin();
    reading.signal("TERM");
    // The next bytes are the next step. The process may already be gone.
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
