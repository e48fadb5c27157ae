//! Messages of the program during its work.

use crate::common::{RECEIVER, Running, SENDER, Words, World, csv};

#[test]
fn every_run_counts_its_steps_and_shows_no_other_number() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..6)), world.write("s.csv", csv(3..9))];
    let columns = [&["--receive-columns", "cost=theirs"][..], &["--send-columns", "cost"]];
    // (operation, options of both, whether columns are sent too)
    let cases: [(&str, Words, bool); 12] = [
        ("count", &[], false),
        ("sum", &["--scale", "1"], false),
        ("intersect", &["--protocol", "dh"], true),
        ("intersect", &["--protocol", "dh-psi"], true),
        ("intersect", &["--protocol", "vole"], true),
        ("intersect", &["--protocol", "cm20"], true),
        ("intersect", &["--malicious-sender"], true),
        ("union", &["--both"], false),
        ("union", &["--reveal-count-to-sender"], true),
        ("count", &["--protocol", "sigma-dh"], false),
        ("union", &[], true),
        ("union", &["--protocol", "krtw19"], true),
    ];
    for (operation, options, with_columns) in cases {
        for columns in [[&[][..]; 2], columns].into_iter().take(1 + usize::from(with_columns)) {
            let mut more = columns.map(|columns| [options, columns].concat());
            if operation == "sum" {
                more[SENDER].extend(["--values", "cost"]);
            }
            for ended in world.run(operation, [&files[0], &files[1]], [&more[0], &more[1]]) {
                assert_eq!(ended.code, Some(0), "{}", ended.err);
                let steps: Vec<_> = ended.err.lines().filter(|line| line.starts_with("step ")).collect();
                let of = steps.len();
                for (i, step) in steps.iter().enumerate() {
                    let words = step.strip_prefix(&format!("step {} of {of}, ", i + 1));
                    let plain = words.is_some_and(|words| words.bytes().all(|b| b.is_ascii_lowercase()));
                    assert!(plain, "{operation} {more:?}: {}", ended.err);
                }
                let only = ["comparing", "matching"].iter().any(|only| ended.err.lines().any(|l| l == *only));
                assert!(of > 1 || only, "{operation} {more:?}: {}", ended.err);
            }
        }
    }
}

#[test]
fn what_takes_long_to_read_gives_a_sign_of_life_unless_it_is_to_be_quiet() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let rest = ["--connect-timeout", "1", "--connect", "127.0.0.1:1"];
    let mut party = Running::start(&mut world.party(RECEIVER, "count", "-".as_ref(), &rest));
    party.until("reading - ...");
    party.feed(&world.read("f.csv"));
    party.until("-: 2 columns separated by ',', 3 rows, 3 items");
    party.end().bad(6, &[]);
    // In the same time, a quiet party prints nothing but the error.
    let quiet = [&rest[..], &["--quiet"]].concat();
    let mut silent = Running::start(&mut world.party(RECEIVER, "count", "-".as_ref(), &quiet));
    let mut speaks = Running::start(&mut world.party(RECEIVER, "count", "-".as_ref(), &rest));
    speaks.until("reading - ...");
    silent.feed(&world.read("f.csv"));
    let ended = silent.end();
    ended.bad(6, &[]);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    drop(file);
}
