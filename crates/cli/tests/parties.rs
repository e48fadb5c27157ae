//! The program as two parties use it: two processes, real files, TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

struct World {
    folder: tempfile::TempDir,
    fingerprints: [String; 2],
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let fingerprints = ["r.pem", "s.pem"].map(|name| {
            let path = folder.path().join(name);
            let made = veilset().args(["identity", "new", "--output"]).arg(&path).output().unwrap();
            assert!(made.status.success());
            let shown = veilset().args(["identity", "show", "--identity"]).arg(&path).output().unwrap();
            assert_eq!(made.stdout, shown.stdout);
            let text = String::from_utf8(shown.stdout).unwrap();
            assert_eq!(text.split_whitespace().count(), 1);
            text.trim().to_string()
        });
        World { folder, fingerprints }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A party: 0 is the receiver and listens, 1 the sender and connects.
    fn party(&self, who: usize, operation: &str, file: &Path, port: u16, more: &[&str]) -> Command {
        let mut command = veilset();
        command.arg(operation).arg(file).args(["--key", "id", "--quiet", "--connect-timeout", "20"]);
        command.args(["--role", ["receiver", "sender"][who], ["--listen", "--connect"][who]]);
        command.arg(format!("127.0.0.1:{port}")).arg("--identity").arg(self.path(["r.pem", "s.pem"][who]));
        command.args(["--peer", &self.fingerprints[1 - who]]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn veilset() -> Command {
    Command::new(env!("CARGO_BIN_EXE_veilset"))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn both(mut receiver: Command, mut sender: Command) -> [Output; 2] {
    let (receiver, sender) = (receiver.spawn().unwrap(), sender.spawn().unwrap());
    [receiver, sender].map(|c: Child| c.wait_with_output().unwrap())
}

fn csv(ids: impl Iterator<Item = u32>) -> String {
    let rows: Vec<String> = ids.map(|i| format!("{i},{}.5\r\n", i % 100)).collect();
    format!("id,cost\r\n{}", rows.concat())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn two_processes_give_the_plain_results_at_unequal_sizes() {
    let world = World::new();
    for (ours, theirs) in [(0..0, 0..3), (0..3, 0..0), (5..6, 5..6), (0..300, 250..270), (0..40, 100..170)] {
        let files = [world.write("r.csv", &csv(ours.clone())), world.write("s.csv", &csv(theirs.clone()))];
        let (r, s): (BTreeSet<u32>, BTreeSet<u32>) = (ours.clone().collect(), theirs.clone().collect());
        let matches = r.intersection(&s).count();
        for operation in ["intersect", "union", "count", "sum"] {
            let port = free_port();
            let report = world.path("report.json");
            let report = report.to_str().unwrap();
            let (mut more, mut sender_more) = (vec!["--report", report, "--force"], vec![]);
            if operation == "sum" {
                more.extend(["--scale", "1"]);
                sender_more.extend(["--scale", "1", "--values", "cost"]);
            }
            let [out, sent] = both(
                world.party(0, operation, &files[0], port, &more),
                world.party(1, operation, &files[1], port, &sender_more),
            );
            assert!(out.status.success() && sent.status.success(), "{} {}", stderr(&out), stderr(&sent));
            let text = String::from_utf8(out.stdout).unwrap();
            let sent = String::from_utf8(sent.stdout).unwrap();
            let ids = |text: &str| -> BTreeSet<u32> {
                text.lines().skip(1).map(|l| l.split(',').next().unwrap().parse().unwrap()).collect()
            };
            match operation {
                "intersect" => assert_eq!(ids(&text), r.intersection(&s).copied().collect()),
                "union" => assert_eq!(ids(&text), r.union(&s).copied().collect()),
                "count" => {
                    assert_eq!(text, format!("matches,union_size\n{matches},{}\n", r.union(&s).count()));
                }
                _ => {
                    let tenths: u32 = r.intersection(&s).map(|i| i % 100 * 10 + 5).sum();
                    assert_eq!(text, format!("matches\n{matches}\n"));
                    assert_eq!(sent, format!("matches,sum\n{matches},{}.{}\n", tenths / 10, tenths % 10));
                }
            }
            assert_eq!(sent.is_empty(), operation != "sum");
            let report = std::fs::read_to_string(report).unwrap();
            assert!(report.contains(&format!("\"matches\": {matches}")), "{report}");
        }
    }
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_left_behind() {
    let world = World::new();
    let good = world.write("good.csv", "id,cost\n1,2\n");
    // (name, file, arguments of a sender, exit code, words)
    let file = |name, text| world.write(name, text);
    let cases = [
        ("union", file("empty.csv", ""), vec![], 3, "empty.csv"),
        ("union", file("nokey.csv", "a,b\n1,2\n"), vec![], 3, "id"),
        ("union", file("ragged.csv", "id,cost\n1\n"), vec![], 3, "line 2"),
        ("union", file("long.csv", &format!("id,cost\n{},2\n", "x".repeat(70))), vec![], 3, "--max-row"),
        ("sum", file("text.csv", "id,cost\n1,two\n"), vec!["--values", "cost"], 3, "line 2"),
        ("sum", good.clone(), vec![], 2, "--values"),
        ("union", good.clone(), vec!["--output", "x"], 2, "nothing for --output"),
        ("union", good.clone(), vec!["--delimiter", "ab"], 2, "--delimiter"),
        ("union", world.path("missing.csv"), vec![], 3, "missing.csv"),
    ];
    for (operation, file, more, code, words) in cases {
        let out = world.party(1, operation, &file, 9, &more).output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{file:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(words), "{}", stderr(&out));
    }
}

#[test]
fn two_sides_that_ask_for_different_things_both_say_so() {
    let world = World::new();
    let file = world.write("good.csv", "id,cost\n1,2\n");
    let port = free_port();
    let output = world.path("out.csv");
    let more = ["--output", output.to_str().unwrap()];
    let [r, s] = both(world.party(0, "union", &file, port, &more), world.party(1, "count", &file, port, &[]));
    for out in [&r, &s] {
        assert_eq!(out.status.code(), Some(4), "{}", stderr(out));
        assert!(stderr(out).contains("union") && stderr(out).contains("count"), "{}", stderr(out));
    }
    let left: Vec<_> =
        std::fs::read_dir(world.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_peer_that_is_killed_is_an_error_and_leaves_no_output() {
    let world = World::new();
    // Large enough that the run is still going on when the sender is killed.
    let file = world.write("many.csv", &csv(0..400_000));
    let output = world.path("out.csv");
    let port = free_port();
    let more = ["--output", output.to_str().unwrap(), "--idle-timeout", "5"];
    let receiver = world.party(0, "union", &file, port, &more).spawn().unwrap();
    let mut sender = world.party(1, "union", &file, port, &[]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let out = receiver.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(6), "{}", stderr(&out));
    let left: Vec<_> =
        std::fs::read_dir(world.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn the_demo_shows_what_each_learned() {
    let out = veilset().arg("demo").output().unwrap();
    assert!(out.status.success(), "{}", stderr(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    for words in ["cleo@example.org, dan@example.org, fay@example.org", "gus@example.org", "300.45"] {
        assert!(text.contains(words), "{text}");
    }
}
