//! Runs from a file.

use crate::common::{Ended, RECEIVER, Running, SENDER, World, both, connect, csv, run};

/// Writes both parties' run files and tables.
fn files(world: &World) {
    std::fs::create_dir(world.path("conf")).unwrap();
    world.write("conf/r.csv", csv(0..30));
    world.write("conf/s.csv", csv(20..50));
    let [r, s] = &world.fingerprints;
    let common = "operation = \"intersect\"\nkey = [\"id\"]\nconnect-timeout = 20\n";
    world.write(
        "conf/r.toml",
        format!(
            "{common}input = \"r.csv\"\nrole = \"receiver\"\nidentity = \"../r.pem\"\npeer = \"{s}\"\n\
             listen = \"127.0.0.1:0\"\noutput = \"both.csv\"\nreport = \"../report.json\"\n"
        ),
    );
    world.write(
        "conf/s.toml",
        format!(
            "{common}input = \"s.csv\"\nrole = \"sender\"\nidentity = \"../s.pem\"\npeer = \"{r}\"\n\
             connect = \"127.0.0.1:1\" # where nobody is\nquiet = true\n"
        ),
    );
}

/// Runs both files, with additional options for the receiver.
fn run_files(world: &World, more: &[&str]) -> [Ended; 2] {
    let mut receiver = Running::start(world.veilset().args(["run", "conf/r.toml"]).args(more));
    let address = receiver.until("listening on ");
    // A typed address takes precedence.
    let mut sender = world.veilset();
    sender.args(["run", "conf/s.toml"]);
    [receiver, connect(sender, &address)].map(Running::end)
}

#[test]
fn a_run_from_files_is_the_same_as_one_by_options() {
    let world = World::new();
    files(&world);
    let [here, there] = run_files(&world, &[]);
    assert_eq!((here.good(), there.good()), (String::new(), String::new()));
    let (r, s) = (world.path("conf/r.csv"), world.path("conf/s.csv"));
    let by_options = both(
        world.party(RECEIVER, "intersect", &r, &["--output", "both.csv"]),
        world.party(SENDER, "intersect", &s, &[]),
    );
    assert!(by_options.iter().all(|ended| ended.code == Some(0)));
    assert_eq!(world.read("conf/both.csv"), world.read("both.csv"));
    assert_eq!(world.read("both.csv").lines().count(), 11);
    assert!(world.read("report.json").contains("\"intersect\""));
}

#[test]
fn what_is_typed_after_the_file_counts_instead() {
    let world = World::new();
    files(&world);
    world.write("report.json", "old");
    run(world.veilset().args(["run", "conf/r.toml"])).bad(7, &["report.json exists", "--force"]);
    let more = ["--output", "-", "--force"];
    let [here, there] = run_files(&world, &more);
    assert_eq!(here.good().lines().count(), 11);
    there.good();
    assert!(!world.path("conf/both.csv").exists());
}

#[test]
fn files_that_are_wrong_are_refused_with_the_place() {
    let world = World::new();
    let run_with = |words: &[&str]| run(world.veilset().arg("run").args(words));
    run_with(&[]).bad(2, &["cannot read veilset.toml", "veilset run --help"]);
    run_with(&["--force"]).bad(2, &["cannot read veilset.toml"]);
    world.write("veilset.toml", "operation = \"count\"\nkeys = [\"id\"]\n");
    run_with(&[]).bad(2, &["veilset.toml, line 2, \"keys\"", "did you mean \"key\"?"]);
    world.write("veilset.toml", "operation = \"count\"\nkey = [\"id\"]\nquiet = \"yes\"\n");
    run_with(&["--quiet"]).bad(2, &["veilset.toml, line 3, \"quiet\"", "true or false"]);
    world.write("veilset.toml", "operation = \"count\"\nkey = [\"id\"]\n");
    run_with(&["--role", "sender"]).bad(2, &["veilset.toml, with what was typed", "<INPUT>"]);
    world.write("veilset.toml", [0xff]);
    run_with(&[]).bad(2, &["veilset.toml", "text file"]);
    // Help is available without a file, and with one for its operation.
    assert!(run_with(&["--help"]).good().contains("connect-timeout = 300"));
    world.write("veilset.toml", "operation = \"sum\"\n");
    assert!(run_with(&["veilset.toml", "--help"]).good().contains("--modulus"));
}
