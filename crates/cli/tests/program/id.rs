//! `veilset id`: identifiers with both parties' rows, and the list of all of them.

use crate::common::{RECEIVER, SENDER, Words, World, run};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const OURS: &str = "id,name\n1,ann\n2,bob\n3,cleo\n2,bob again\n";
const THEIRS: &str = "city,id\nOslo,2\nRome,3\nBern,9\n";

fn files(world: &World) -> [PathBuf; 2] {
    [world.write("r.csv", OURS), world.write("s.csv", THEIRS)]
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn both_parties_rows_have_the_same_identifiers_for_the_same_keys_and_the_lists_are_the_same() {
    let world = World::new();
    let files = files(&world);
    for (protocol, pad) in [("dh", "10"), ("krtw19", "3")] {
        let common = ["--protocol", protocol, "--force"];
        let receiver: Words = &["--output", "r.out.csv", "--ids", "r.txt"];
        let sender: Words = &["--output", "s.out.csv", "--ids", "s.csv.ids.csv", "--pad-to", pad];
        let more = [receiver, sender].map(|own| [own, &common].concat());
        world.good("id", [&files[0], &files[1]].map(PathBuf::as_path), [&more[0], &more[1]]);
        let (ours, theirs) = (world.read("r.out.csv"), world.read("s.out.csv"));
        let (ours, theirs) = (rows(&ours), rows(&theirs));
        assert_eq!(
            (&ours[0][..], &theirs[0][..]),
            (&["id", "name", "veilset_id"][..], &["city", "id", "veilset_id"][..])
        );
        // All our rows in their order, including those with a repeated key.
        let cells = |rows: &[Vec<&str>]| rows[1..].iter().map(|row| row[..2].join(",")).collect::<Vec<_>>();
        assert_eq!(cells(&ours), ["1,ann", "2,bob", "3,cleo", "2,bob again"]);
        assert_eq!(cells(&theirs), ["Oslo,2", "Rome,3", "Bern,9"]);
        let mut names: HashMap<&str, &str> = HashMap::new();
        for (key, id) in
            ours[1..].iter().map(|r| (r[0], r[2])).chain(theirs[1..].iter().map(|r| (r[1], r[2])))
        {
            assert!(
                id.len() == 32 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
                "{id}"
            );
            assert_eq!(*names.entry(key).or_insert(id), id);
        }
        let mut known: Vec<&str> = names.values().copied().collect();
        known.sort_unstable();
        known.dedup();
        assert_eq!(known.len(), 4);
        // The list is sorted, the same on both sides, and includes the identifiers of dummies.
        let (list, csv) = (world.read("r.txt"), world.read("s.csv.ids.csv"));
        let list: Vec<&str> = list.lines().collect();
        assert_eq!(csv.lines().collect::<Vec<_>>(), [&["veilset_id"], &list[..]].concat());
        assert!(list.is_sorted() && known.iter().all(|id| list.contains(id)));
        assert_eq!(list.len(), 3 + pad.parse::<usize>().unwrap() - 2);
    }
}

#[test]
fn what_cannot_be_is_refused_before_the_peer_hears_of_us() {
    let world = World::new();
    let files = files(&world);
    let named = world.write("named.csv", "id,veilset_id\n1,2\n");
    // (party, file, options, code, words)
    let cases: [(usize, &Path, Words, i32, Words); 9] = [
        (RECEIVER, &named, &["--output", "x.csv"], 2, &["\"veilset_id\" already", "--id-column NAME"]),
        (SENDER, &named, &["--output", "x.csv", "--id-column", "id"], 2, &["\"id\" already"]),
        (
            RECEIVER,
            &files[0],
            &["--output", "x.csv", "--ids", "x.csv"],
            2,
            &["--output and --ids are both x.csv"],
        ),
        (RECEIVER, &files[0], &["--ids", "-"], 2, &["--output and --ids are both -"]),
        (
            RECEIVER,
            &files[0],
            &["--output", "x.csv", "--ids", "r.csv", "--force"],
            2,
            &["the input and --ids"],
        ),
        (
            SENDER,
            &files[1],
            &["--output", "x.csv", "--report", "y", "--ids", "y"],
            2,
            &["--ids and --report are both y"],
        ),
        (RECEIVER, &files[0], &["--output", "x.txt"], 2, &["columns or more, but a list has one"]),
        (RECEIVER, &files[0], &["--output", "x.csv", "--ids", "ids.xlsx"], 2, &["ids.xlsx"]),
        (RECEIVER, &files[0], &["--protocol", "vole"], 2, &["--protocol vole", "cannot compute id"]),
    ];
    for (who, file, more, code, words) in cases {
        let more = [more, &["--listen", "127.0.0.1:0"]].concat();
        let ended = run(&mut world.party(who, "id", file, &more));
        ended.bad(code, words);
        assert!(!ended.err.contains("listening"), "{more:?}: {}", ended.err);
    }
    let count =
        run(&mut world.party(RECEIVER, "count", &files[0], &["--ids", "x", "--listen", "127.0.0.1:0"]));
    count.bad(2, &["unexpected argument '--ids'"]);
    assert!(!world.names().iter().any(|name| name.starts_with('x')), "{:?}", world.names());
}

#[test]
fn identifiers_are_written_in_both_formats_under_the_name_that_was_given() {
    let world = World::new();
    let files = files(&world);
    let receiver: Words = &["--output", "r.parquet", "--ids", "all.parquet", "--id-column", "number"];
    let sender: Words = &["--output", "s.tsv"];
    world.good("id", [&files[0], &files[1]].map(PathBuf::as_path), [receiver, sender]);
    assert!(world.read("s.tsv").starts_with("city\tid\tveilset_id\n"));
    for (name, rows) in [("r.parquet", 4), ("all.parquet", 4)] {
        let table = veilset::table::Table::read(&world.path(name), &Default::default(), None).unwrap();
        assert_eq!(table.header().last().unwrap(), "number");
        assert_eq!(table.rows(), rows, "{name}");
    }
}
