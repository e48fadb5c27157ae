//! Inputs with several files, and folders.

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
    assert!(r.err.contains("a.csv and 1 more: 2 columns separated by ',', 6 rows, 6 items"), "{}", r.err);
    assert!(s.err.contains("parts: 2 columns separated by ',', 20 rows, 20 items"), "{}", s.err);
    assert_eq!(r.good(), expected);
    assert!(world.read("r.json").contains("a.csv and 1 more"));
    // In a run file, paths are relative to its folder.
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
    // A filter and a half are made of several files too.
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
    world.write("two.csv", "1,5;2,5\n");
    // (the inputs, the options, exit code, words)
    let cases: [(Words, Words, i32, Words); 10] = [
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
        (
            &["two.csv"],
            &["--no-header"],
            3,
            &["two.csv", "',' gives 3 columns, ';' gives 2 columns", "with --delimiter"],
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

/// Findings and oddities in our file are reported before a run; for keys, those that may cost matches.
#[test]
fn what_was_found_is_said_and_what_may_cost_matches() {
    let world = World::new();
    let ours = world.write("r.csv", "id;n\nAnn;1\nbob ;\"2\n2\"\nid;n\nN/A;3\n4.9E+11;4\n");
    let theirs = world.write("s.txt", "ann\nbob\n");
    let ended = world.run("intersect", [&ours, &theirs], [&["--output", "o.csv"], &[]]);
    let [receiver, sender] = ended.each_ref().map(|ended| ended.err.as_str());
    let name = ours.display();
    assert!(
        receiver.contains(&format!("{name}: 2 columns separated by ';', 5 rows, 5 items\n")),
        "{receiver}"
    );
    assert!(receiver.contains(&format!("warning: {name}, line 5: the row repeats the header")), "{receiver}");
    assert!(receiver.contains(&format!("warning: {name}, line 3: a cell spans several lines")), "{receiver}");
    let cost = "the key begins or ends with white space in 1 row, has capital letters in 3 rows, looks rounded by a spreadsheet \
                in 1 row, stands for no value, like NULL, in 1 row: if the other side writes it differently, it does not \
                match; see --normalize\n";
    assert!(receiver.contains(&format!("{name}: {cost}")), "{receiver}");
    assert!(sender.contains(": 2 rows, 2 items\n") && !sender.contains("does not match"), "{sender}");
    // The count is of keys as compared, after normalisation.
    let normalised: Words = &["--normalize", "trim,casefold"];
    let ended = world.run("count", [&ours, &theirs], [normalised; 2]);
    assert!(
        ended[0].err.contains(
            ": the key looks rounded by a spreadsheet in 1 row, stands for no value, like NULL, in 1 row: "
        ),
        "{}",
        ended[0].err
    );
    // Oddities are reported even with `--quiet`, and counts are not.
    let quiet: Words = &["--quiet", "--connect", "127.0.0.1:1", "--connect-timeout", "1"];
    let said = run(&mut world.party(RECEIVER, "count", &ours, quiet)).err;
    assert!(said.contains("line 5: the row repeats the header") && !said.contains("5 rows"), "{said}");
}

#[test]
fn quotes_are_as_the_options_say_or_an_error() {
    // (the receiver's text, its options, the code, the message or the result)
    let cases: [(&str, Words, i32, &str); 9] = [
        ("id,n\na,5\" disk\n", &[], 3, "line 2, column \"n\": there is a quote in a cell"),
        ("id,n\na,5\" disk\n", &["--no-quotes"], 0, "id,n\na,\"5\"\" disk\"\n"),
        ("id,n\na,\"x \\\"y\\\"\"\n", &[], 3, "use --escape \\"),
        ("id,n\na,\"x \\\"y\\\"\"\n", &["--escape", "\\"], 0, "id,n\na,\"x \"\"y\"\"\"\n"),
        ("id,n\n\"a\nb\",1\n", &[], 3, "the key spans several lines"),
        ("id,n\n\"a\nb\",1\na,2\n", &["--multiline-keys"], 0, "id,n\na,2\n"),
        ("id,n\na,1\n", &["--escape", "\\", "--no-quotes"], 2, "cannot be used with"),
        ("id,n\na,1\n", &["--escape", "\""], 2, "not a single visible ASCII character"),
        ("id,n\na,1\n", &["--no-quotes", "--format", "jsonl"], 2, "--no-quotes is for CSV"),
    ];
    for (text, options, code, said) in cases {
        let world = World::new();
        let (ours, theirs) = (world.write("r.csv", text), world.write("s.txt", "a\n"));
        if code == 0 {
            let [result, _] = world.good("intersect", [&ours, &theirs], [options, &[]]);
            assert_eq!(result, said, "{text:?} {options:?}");
        } else {
            let options = [options, &["--connect", "127.0.0.1:1"]].concat();
            run(&mut world.party(RECEIVER, "intersect", &ours, &options)).bad(code, &[said]);
        }
    }
}
