//! Limits of the system: memory and file sizes.

use crate::common::{Ended, RECEIVER, SENDER, World, both, csv, limited, listen, run};
use std::process::Command;

/// Returns a little more memory than the program needs to start, in megabytes.
fn least(world: &World) -> u32 {
    let starts =
        |megabytes: &u32| run(&mut with_memory(world.veilset().arg("--version"), *megabytes)).code == Some(0);
    (16..).step_by(8).find(starts).unwrap()
}

fn with_memory(command: &Command, megabytes: u32) -> Command {
    limited(command, &format!("-v {}", megabytes << 10))
}

/// Returns whether the program had enough memory. Otherwise it must have reported a lack of memory or of threads.
fn enough(ended: &Ended) -> bool {
    match ended.code {
        Some(0) => true,
        Some(71) => {
            ended.bad(71, &["not enough memory", "run again"]);
            false
        }
        _ => {
            ended.bad(2, &["threads"]);
            false
        }
    }
}

#[test]
fn memory_that_runs_out_is_a_stated_end_that_leaves_nothing_behind() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..300_000));
    let before = world.names();
    let mut command = world.veilset();
    command.arg("prepare").arg(&file).args(["--key", "id", "--output", "half"]);
    command.args(["--identity", "r.pem", "--threads", "1"]);
    // The memory grows until it is enough, so that the program ends in another place each time.
    let mut ends = 0;
    for megabytes in (least(&world)..).step_by(4) {
        let ended = run(&mut with_memory(&command, megabytes));
        if enough(&ended) {
            break;
        }
        ends += usize::from(ended.code == Some(71));
        assert_eq!(world.names(), before);
    }
    assert!(ends > 2, "{ends}");
}

#[test]
fn memory_that_runs_out_during_a_run_is_for_the_peer_the_end_of_the_connection() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..30_000));
    let before = world.names();
    for megabytes in (least(&world) + 8..).step_by(4) {
        let vole = ["--protocol", "vole", "--connect-timeout", "3"];
        let (sender, address) = listen(world.party(SENDER, "intersect", &file, &vole));
        let more = [&vole[..2], &["--output", "out.csv", "--threads", "1", "--connect", &address]].concat();
        let here = run(&mut with_memory(&world.party(RECEIVER, "intersect", &file, &more), megabytes));
        let there = sender.end();
        if enough(&here) {
            there.good();
            break;
        }
        there.bad(6, &["then run again"]);
        assert_eq!(world.names(), before);
    }
}

#[test]
fn a_report_that_cannot_be_written_does_not_hide_that_the_result_is_there() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    // 512 bytes are enough for the result, but not for the report.
    let options = ["--audit-log", "none", "--report", "report.json", "--output", "out.csv"];
    let receiver = limited(&world.party(RECEIVER, "count", &file, &options), "-f 1");
    let [here, there] = both(receiver, world.party(SENDER, "count", &file, &[]));
    here.bad(7, &["its result is in out.csv, but the report could not be written", "ulimit -f"]);
    there.good();
    assert_eq!(world.read("out.csv"), "matches,union_size\n3,3\n");
    assert!(!world.path("report.json").exists());
    // The result goes to standard output, or the side has no result.
    let options = &options[..4];
    let limit = |who| limited(&world.party(who, "count", &file, options), "-f 1");
    let [here, there] = both(limit(RECEIVER), world.party(SENDER, "count", &file, &[]));
    here.bad(7, &["the run is done and its result written to standard output, but the report"]);
    assert_eq!(here.out, "matches,union_size\n3,3\n");
    there.good();
    let [here, there] = both(world.party(RECEIVER, "count", &file, &[]), limit(SENDER));
    here.good();
    there.bad(7, &["the run is done, but the report could not be written"]);
}
