//! Output to a terminal, output for a spreadsheet, and output that neither changes.

use crate::common::{RECEIVER, SENDER, World, csv, listen};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

/// Returns the output of a command to a terminal that is its standard output, or its standard error.
fn on_terminal(mut command: Command, errors: bool) -> String {
    let size = Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).unwrap();
    let (shown, other) = (Stdio::from(terminal.slave), Stdio::null());
    command.stdin(Stdio::null());
    match errors {
        false => command.stdout(shown).stderr(other),
        true => command.stdout(other).stderr(shown),
    };
    let mut child = command.spawn().unwrap();
    // The command's end of the terminal is closed when it ends; then reading fails.
    drop(command);
    let (mut bytes, mut part) = (Vec::new(), [0; 1 << 12]);
    let mut terminal = File::from(terminal.master);
    while let Ok(n @ 1..) = terminal.read(&mut part) {
        bytes.extend_from_slice(&part[..n]);
    }
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&bytes));
    String::from_utf8(bytes).unwrap()
}

#[test]
fn cells_of_the_peer_cannot_command_a_terminal_and_are_exact_elsewhere() {
    let world = World::new();
    let ours = world.write("r.csv", "id\n1\n2\n");
    let evil = "\x1b]0;title\x07\u{9b}2J\u{202e}x";
    let theirs = world.write("s.csv", format!("id,note\n1,{evil}\n3,b\n"));
    let sender = || listen(world.party(SENDER, "intersect", &theirs, &["--send-columns", "note"]));
    let receive = ["--receive-columns", "note", "--connect"];
    let (there, address) = sender();
    let receiver = world.party(RECEIVER, "intersect", &ours, &[&receive[..], &[&address]].concat());
    let shown = on_terminal(receiver, false);
    assert_eq!(shown, "id,note\r\n1,\\x1b]0;title\\x07\\u{9b}2J\\u{202e}x\r\n");
    there.end().good();
    let [out, _] = world.good(
        "intersect",
        [&ours, &theirs],
        [&["--receive-columns", "note"], &["--send-columns", "note"]],
    );
    assert_eq!(out, format!("id,note\n1,{evil}\n"));
}

#[test]
fn a_bar_stays_full_when_its_step_is_done() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..300));
    let (there, address) = listen(world.party(SENDER, "count", &file, &[]));
    let mut party = world.party(RECEIVER, "count", &file, &["--connect", &address]);
    // Without this variable, there is no bar.
    party.env("TERM", "xterm");
    let shown = on_terminal(party, true);
    there.end().good();
    let full = "=".repeat(30);
    for step in ["step 1 of 2, matching", "step 2 of 2, comparing"] {
        let last = shown.lines().rfind(|line| line.contains(step)).unwrap();
        assert!(last.rsplit(step).next().unwrap().contains(&full), "{shown:?}");
    }
}

#[test]
fn csv_for_a_spreadsheet_has_no_formulas() {
    let world = World::new();
    let ours = world.write("r.csv", "id,change\n=1+1,-12.5\n@2,-a\n");
    let theirs = world.write("s.csv", "id,note\n=1+1,+cmd\n@2,\"=a,b\"\n");
    let exchange = |more: &[&str]| {
        let options = [&["--receive-columns", "note"], more].concat();
        let [out, _] = world.good("intersect", [&ours, &theirs], [&options, &["--send-columns", "note"]]);
        out
    };
    assert_eq!(exchange(&[]), "id,change,note\n=1+1,-12.5,+cmd\n@2,-a,\"=a,b\"\n");
    let safe = exchange(&["--for-spreadsheets"]);
    assert_eq!(safe, "id,change,note\n'=1+1,-12.5,'+cmd\n'@2,'-a,\"'=a,b\"\n");
    let more = ["--for-spreadsheets", "--output", "out.parquet", "--connect", "127.0.0.1:1"];
    let mut refused = world.party(RECEIVER, "intersect", &ours, &more);
    crate::common::run(&mut refused).bad(2, &["--for-spreadsheets is for CSV", "parquet"]);
}
