//! Inputs of several files, and of folders.

use crate::common::{RECEIVER, SENDER, Words, World, both, csv, run};

#[test]
fn several_files_and_folders_are_one_table() {
    let world = World::new();
    std::fs::create_dir(world.path("parts")).unwrap();
    world.write("parts/2.csv", csv(10..20));
    world.write("parts/1.csv", csv(0..10));
    world.write("parts/_SUCCESS", "");
    let ours = world.write("a.csv", csv(5..8));
    world.write("b.csv", csv(15..18));
    let sends = world.path("parts");
    let expected = csv((5..8).chain(15..18));
    let mut receives = world.party(RECEIVER, "intersect", &ours, &["--report", "r.json"]);
    receives.arg("b.csv");
    let [r, s] = both(receives, world.party(SENDER, "intersect", &sends, &[]));
    assert!(r.err.contains("a.csv and 1 more: 6 rows, 6 items"), "{}", r.err);
    assert!(s.err.contains("parts: 20 rows, 20 items"), "{}", s.err);
    assert_eq!(r.good(), expected);
    assert!(world.read("r.json").contains("a.csv and 1 more"));
    // As a run file, whose folder is where the files are.
    world.write(
        "run.toml",
        format!(
            "operation = \"intersect\"\ninput = [\"a.csv\", \"b.csv\"]\nkey = [\"id\"]\nrole = \"receiver\"\n\
             identity = \"r.pem\"\npeer = \"{}\"\n",
            world.fingerprints[SENDER]
        ),
    );
    let mut receives = world.veilset();
    receives.args(["run", "run.toml", "--connect-timeout", "20"]);
    let [r, _] = both(receives, world.party(SENDER, "intersect", &sends, &[]));
    assert_eq!(r.good(), expected);
    // A filter and a half are made of them too.
    let mut half = world.veilset();
    half.args(["prepare", "a.csv", "b.csv", "--key", "id", "--output", "half", "--identity", "r.pem"]);
    run(half.args(["--prepared-ledger", "ledger"])).good();
    let half = ["--prepared", "half", "--prepared-ledger", "ledger"];
    let mut receives = world.party(RECEIVER, "intersect", &ours, &half);
    receives.arg("b.csv");
    let [r, _] = both(receives, world.party(SENDER, "intersect", &sends, &[]));
    assert_eq!(r.good(), expected);
}

#[test]
fn inputs_that_do_not_fit_together_are_refused() {
    let world = World::new();
    std::fs::create_dir(world.path("parts")).unwrap();
    world.write("parts/1.csv", csv(0..10));
    world.write("a.csv", csv(0..3));
    world.write("other.csv", "name\nx\n");
    world.write("list.txt", "x\n");
    // (the inputs, the options, exit code, words)
    let cases: [(Words, Words, i32, Words); 9] = [
        (&["a.csv", "other.csv"], &[], 3, &["other.csv", "column 1 is \"name\", but", "in a.csv"]),
        (&["a.csv", "list.txt"], &[], 2, &["a.csv is csv and list.txt is list", "--format"]),
        (&["a.csv", "./a.csv"], &[], 2, &["a.csv is there twice"]),
        (&["a.csv", "-"], &[], 2, &["standard input (-) is a whole table"]),
        (&["a.csv", "none.csv"], &[], 3, &["none.csv", "cannot be opened"]),
        (
            &["parts"],
            &["--output", "parts/both.csv"],
            2,
            &["--output would be in the folder parts", "another folder"],
        ),
        (&["parts"], &["--report", "parts/r.json"], 2, &["--report would be in the folder parts"]),
        (
            &["a.csv", "parts"],
            &["--output", "parts/1.csv"],
            2,
            &["the input and --output are both parts/1.csv"],
        ),
        (&["list.txt"], &["--no-header"], 2, &["--no-header is for CSV", "--format csv"]),
    ];
    for (inputs, options, code, words) in cases {
        let mut command = world.veilset();
        command.arg("intersect").args(inputs).args(options);
        if !inputs.contains(&"list.txt") || inputs.len() > 1 {
            command.args(["--key", "id"]);
        }
        command.args(["--identity", "r.pem", "--peer", &world.fingerprints[SENDER], "--role", "receiver"]);
        run(command.args(["--connect", "127.0.0.1:1"])).bad(code, words);
    }
    assert!(!world.names().iter().any(|name| name.contains("both") || name.contains("r.json")));
}
