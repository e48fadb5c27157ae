//! The contents of files: spellings of CSV, keys, duplicates, values.

use crate::common::{Words, World};
use std::path::Path;

/// A file's name and text, and the options of its party.
type Side = (&'static str, &'static str, Words<'static>);

fn files(world: &World, sides: [Side; 2]) -> [std::path::PathBuf; 2] {
    sides.map(|(name, text, _)| world.write(name, text))
}

#[test]
fn equal_keys_match_however_they_are_written() {
    // (operation, the receiver's side, the sender's, the result)
    let cases: [(&str, Side, Side, &str); 24] = [
        // Semicolons, which need no option, and a file without a header on the other side.
        (
            "intersect",
            ("r.csv", "id;v\na;1,5\nb;2\n", &[]),
            ("s.csv", "x,b\ny,a\n", &["--no-header", "--key", "2"]),
            "id;v\na;1,5\nb;2\n",
        ),
        // Among three delimiters that fit, the key decides.
        (
            "intersect",
            ("r.csv", "id|x;y,z\na|1;2,3\nb|4;5,6\n", &[]),
            ("s.csv", "x,5;b\n", &["--no-header", "--key", "2", "--delimiter", ";"]),
            "id|x;y,z\nb|4;5,6\n",
        ),
        (
            "union",
            ("r.csv", "b,1\na,2\n", &["--no-header", "--key", "1"]),
            ("s.csv", "id\na\nc\n", &[]),
            "b,1\na,2\nc,\n",
        ),
        (
            "count",
            ("r.csv", "a\nb\n", &["--no-header", "--key", "1"]),
            ("s.txt", "b\n", &[]),
            "matches,union_size\n1,2\n",
        ),
        // JSON lines, whose result is CSV; and all rows of a key.
        (
            "intersect",
            ("r.jsonl", "{\"id\": 1, \"v\": \"x\"}\n{\"id\": 2}\n", &[]),
            ("s.ndjson", "{\"id\": \"1\"}\n", &[]),
            "id,v\n1,x\n",
        ),
        (
            "intersect",
            ("r.csv", "id,v\na,1\nb,2\na,3\nc,4\na,5\n", &["--duplicates", "all"]),
            ("s.csv", "id\na\nc\na\n", &[]),
            "id,v\na,1\na,3\nc,4\na,5\n",
        ),
        // Lists, by extension and by option.
        ("intersect", ("r.txt", "b,c\r\n\r\na\r\n", &[]), ("s.csv", "id\n\"b,c\"\n", &[]), "b,c\n"),
        (
            "union",
            ("r.csv", "id\na\n", &["--normalize", "casefold"]),
            ("s", "A\n\"b\n", &["--format", "list", "--key", "item", "--normalize", "casefold"]),
            "id\na\n\"\"\"b\"\n",
        ),
        // A file read without quotes is CSV, regardless of its name and of how it begins.
        (
            "intersect",
            ("r.txt", "{\"id,v\na,1\nb,5\"\n", &["--no-quotes", "--key", "{\"id"]),
            ("s.csv", "id\nb\n", &["--format", "csv"]),
            "\"{\"\"id\",v\nb,\"5\"\"\"\n",
        ),
        // A CSV file by option, in spite of its name.
        (
            "intersect",
            ("r.txt", "id,v\na,1\nb,2\n", &["--format", "csv"]),
            ("s.json", "id\na\n", &["--format", "csv"]),
            "id,v\na,1\n",
        ),
        // Normalised keys, in the spelling of the file.
        (
            "intersect",
            ("r.csv", "id,v\n Ann@X.org,1\nb,2\n", &["--normalize", "trim,casefold,nfc"]),
            ("s.csv", "id\nann@x.org\u{a0}\n", &["--normalize", "nfc,casefold,trim"]),
            "id,v\n Ann@X.org,1\n",
        ),
        // A byte-order mark and CRLF on one side.
        (
            "intersect",
            ("r.csv", "\u{feff}id,v\r\na,1\r\nb,2\r\n", &[]),
            ("s.csv", "id\nb\n", &[]),
            "id,v\nb,2\n",
        ),
        (
            "intersect",
            ("r.csv", "id,v\na,1\nb,2", &[]),
            ("s.csv", "\u{feff}id,v\r\n\r\nb,2\r\n", &[]),
            "id,v\nb,2\n",
        ),
        // Delimiters, quotes and line ends inside quotes.
        (
            "union",
            (
                "r.csv",
                "id,v\n\"x,y\",1\n\"say \"\"hi\"\"\",2\n\"two\nlines\",3\nplain,4\n",
                &["--multiline-keys"],
            ),
            (
                "s.csv",
                "v,id\n1,\"say \"\"hi\"\"\"\n2,\"two\nlines\"\n3,\"new, \"\"one\"\"\"\n4,\"plain\"\n",
                &["--multiline-keys"],
            ),
            "id,v\n\"x,y\",1\n\"say \"\"hi\"\"\",2\n\"two\nlines\",3\nplain,4\n\"new, \"\"one\"\"\",\n",
        ),
        // Several key columns, with other names and another order on the other side; adjacent columns are not run together.
        (
            "union",
            ("r.csv", "last,v,first\na,1,bc\nab,2,c\n", &["--key", "last,first"]),
            ("s.csv", "vorname,nachname\nbc,a\nb,ac\n", &["--key", "nachname,vorname"]),
            "last,v,first\na,1,bc\nab,2,c\nac,,b\n",
        ),
        (
            "intersect",
            ("r.csv", "last,first\na,b\n", &["--key", "last", "--key", "first"]),
            ("s.csv", "last,first\na,b\n", &["--key", "last,first"]),
            "last,first\na,b\n",
        ),
        // Names with commas, for keys and for columns that are sent.
        (
            "union",
            ("r.csv", "\"last, first\",v\n\"a, b\",1\n", &["--key", "\"last, first\""]),
            ("s.csv", "v,\"say \"\"hi\"\"\"\n2,c\n", &["--key", "\"say \"\"hi\"\"\""]),
            "\"last, first\",v\n\"a, b\",1\nc,\n",
        ),
        (
            "intersect",
            ("r.csv", "id\na\n", &["--receive-columns", "\"p, q\"=\"r, s\",\"t=u\""]),
            ("s.csv", "id,\"p, q\",t=u\na,7,8\n", &["--send-columns", "\"p, q\"", "--send-columns", "t=u"]),
            "id,\"r, s\",t=u\na,7,8\n",
        ),
        // Tabs implied by the file's name or given as an option, and semicolons.
        (
            "intersect",
            ("r.tsv", "id\tv\na\t1\nb,c\t2\n", &[]),
            ("s.csv", "id;v\nb,c;9\n", &["--delimiter", ";"]),
            "id\tv\nb,c\t2\n",
        ),
        (
            "union",
            ("r.csv", "id\tv\na\t1\n", &["--delimiter", "tab"]),
            ("s.tab", "id\nb\n", &[]),
            "id\tv\na\t1\nb\t\n",
        ),
        // Empty keys.
        (
            "intersect",
            ("r.csv", "id,v\n,1\nb,2\n", &["--empty-keys", "keep"]),
            ("s.csv", "id,v\n,7\n", &["--empty-keys", "keep"]),
            "id,v\n,1\n",
        ),
        (
            "count",
            ("r.csv", "id,v\n,1\nb,2\n", &["--empty-keys", "skip"]),
            ("s.csv", "id,v\n,7\nb,1\n", &["--empty-keys", "skip"]),
            "matches,union_size\n1,1\n",
        ),
        // Duplicates: the first row represents all.
        (
            "intersect",
            ("r.csv", "id,v\na,1\na,2\nb,3\n", &[]),
            ("s.csv", "id\na\na\n", &["--duplicates", "first"]),
            "id,v\na,1\n",
        ),
        // Letters outside ASCII; a longer key.
        (
            "union",
            ("r.csv", "id\nZoë\n", &["--max-row", "300"]),
            ("s.csv", "id\nZoë\nłódź-łódź-łódź-łódź-łódź-łódź-łódź-łódź\n", &["--max-row", "300"]),
            "id\nZoë\nłódź-łódź-łódź-łódź-łódź-łódź-łódź-łódź\n",
        ),
    ];
    let world = World::new();
    for (operation, r, s, expected) in cases {
        let [r_file, s_file] = files(&world, [r, s]);
        let [out, _] = world.good(operation, [&r_file, &s_file], [r.2, s.2]);
        assert_eq!(out, expected, "{r:?} {s:?}");
    }
}

#[test]
fn the_name_of_a_result_says_what_separates_its_cells() {
    let world = World::new();
    let files = [("r.tsv", "id\tv\na\tx,y\n", &[][..]), ("s.csv", "id\na\n", &[])];
    let [r, s] = self::files(&world, files);
    for (out, more, expected) in [
        ("out.csv", &[][..], "id,v\na,\"x,y\"\n"),
        ("out.tsv", &[], "id\tv\na\tx,y\n"),
        ("out", &[], "id\tv\na\tx,y\n"),
        ("tabs.csv", &["--delimiter", "tab"], "id\tv\na\tx,y\n"),
        ("out.json", &["--output-format", "csv"], "id\tv\na\tx,y\n"),
        ("out.dat", &[], "id\tv\na\tx,y\n"),
    ] {
        world.good("intersect", [&r, &s], [&[&["--output", out], more].concat(), &[]]);
        assert_eq!(world.read(out), expected, "{out}");
    }
}

#[test]
fn bytes_that_are_not_utf8_survive_with_encoding_bytes() {
    let world = World::new();
    let (r, s) = (world.write("r.csv", b"id,v\nJos\xe9,1\n"), world.write("s.csv", b"id\nJos\xe9\nZo\xeb\n"));
    let more = ["--encoding", "bytes"];
    let to_file = [&more[..], &["--output", "out.csv"]].concat();
    world.good("union", [&r, &s], [&to_file, &more]);
    assert_eq!(std::fs::read(world.path("out.csv")).unwrap(), b"id,v\nJos\xe9,1\nZo\xeb,\n");
}

#[test]
fn sums_are_exact_and_withheld_below_the_minimum() {
    // (the sender's values, its options, options of both, matches, the sum for the sender)
    let cases: [(&str, Words, Words, u32, &str); 9] = [
        ("a,-1.25\nb,+3\nc,0.50\n", &[], &["--scale", "2"], 2, "2,1.75,false"),
        ("a,-1.25\nb,-3.5\nc,100\n", &[], &["--scale", "2"], 2, "2,-4.75,false"),
        ("a,-7\nb,7\n", &[], &[], 2, "2,0,false"),
        ("a,1\na,2\nb,4\n", &["--duplicates", "add"], &[], 2, "2,7,false"),
        ("a,1\na,2\nb,4\n", &["--duplicates", "first"], &[], 2, "2,5,false"),
        ("a,1\nc,2\n", &[], &["--min-count", "1"], 1, "1,1,false"),
        ("a,1\nb,2\n", &[], &["--min-count", "2"], 2, "2,3,false"),
        ("a,1\nb,2\n", &[], &["--min-count", "3"], 2, ",,true"),
        (
            "a,9000000000000000000\nb,9000000000000000000\n",
            &[],
            &["--modulus", "128"],
            2,
            "2,18000000000000000000,false",
        ),
    ];
    let world = World::new();
    let receiver = world.write("r.csv", "id\na\nb\n");
    for (rows, sender_more, more, matches, sum) in cases {
        let sender = world.write("s.csv", format!("id,cost\n{rows}"));
        let sender_more = [more, sender_more, &["--values", "cost"]].concat();
        let files: [&Path; 2] = [&receiver, &sender];
        let [out, sent] = world.good("sum", files, [more, &sender_more]);
        let expected = (format!("matches\n{matches}\n"), format!("matches,sum,below_minimum\n{sum}\n"));
        assert_eq!((out, sent), expected, "{rows}");
    }
}

#[test]
fn the_result_is_said_in_one_line_and_what_may_be_the_matter_if_nothing_matches() {
    let world = World::new();
    let [ours, theirs] =
        [world.write("r.csv", "id\na\nb\nc\n"), world.write("s.csv", "id,v\nb,2\nc,3\nD,4\n")];
    let capitals = world.write("capitals.csv", "id,v\nA,1\nB,2\n");
    let hint = "--normalize trim,casefold on both sides";
    let values = ["--values", "v"];
    // (operation, the sender's file, options of receiver and sender, their messages, whether they get the hint)
    type Case<'a> = (&'a str, &'a Path, [Words<'a>; 2], [&'a str; 2], [bool; 2]);
    let cases: [Case; 6] = [
        (
            "intersect",
            &theirs,
            [&[], &[]],
            ["Matches: 2 of our 3", "Done: the receiver has the result"],
            [false; 2],
        ),
        (
            "union",
            &theirs,
            [&["--both"], &["--both"]],
            [
                "New: 1 item that only the peer has; the union has 4",
                "New: 1 item that only the peer has; the union has 4",
            ],
            [false; 2],
        ),
        ("sum", &theirs, [&[], &values], ["Matches: 2 of our 3", "Sum: 5, over 2 matches"], [false; 2]),
        (
            "sum",
            &capitals,
            [&["--min-count", "1"], &["--min-count", "1", "--values", "v"]],
            ["Matches: 0 of our 3", "Sum: withheld, because fewer than 1 match"],
            [true, false],
        ),
        (
            "count",
            &capitals,
            [&[], &[]],
            ["Matches: 0 of our 3; the union has 5", "Done: the receiver has the result"],
            [true, false],
        ),
        (
            "count",
            &capitals,
            [&["--normalize", "nfc"], &["--normalize", "nfc"]],
            ["Matches: 0 of our 3; the union has 5", "Done: the receiver has the result"],
            [false; 2],
        ),
    ];
    for (operation, file, more, lines, hints) in cases {
        let ended = world.run(operation, [&ours, file], more);
        for ((ended, line), hinted) in ended.iter().zip(lines).zip(hints) {
            ended.bad(0, &[]);
            assert!(ended.err.lines().any(|said| said == line), "{operation}: {line}: {}", ended.err);
            assert_eq!(ended.err.contains(hint), hinted, "{operation}: {}", ended.err);
        }
    }
}

#[test]
fn nested_columns_of_parquet_that_are_not_used_do_not_matter() {
    // Written by pyarrow: `pq.write_table(pa.table({"id": ["a", "b"], "tags": [["x"], []], "n": [1, 2]}), FILE,
    // compression="none", use_dictionary=False, write_statistics=False, store_schema=False)`.
    let world = World::new();
    let ours = world.write("r.parquet", include_bytes!("nested.parquet"));
    let theirs = world.write("s.csv", "id\nb\nc\n");
    let [here, there] = world.run("intersect", [&ours, &theirs], [&[], &[]]);
    here.bad(0, &["warning: ", "r.parquet, column \"tags\": it will be missing from the result", "nested"]);
    assert_eq!(here.out, "id,n\nb,2\n");
    there.good();
    // The sender's rows end up in no result, so there is no warning.
    let [here, there] = world.run("union", [&theirs, &ours], [&[], &[]]);
    assert_eq!(here.good(), "id\nb\nc\na\n");
    assert!(!there.err.contains("tags"), "{}", there.err);
    for (who, more) in [
        (crate::common::RECEIVER, &["--key", "tags"][..]),
        (crate::common::SENDER, &["--key", "tags"]),
        (crate::common::SENDER, &["--send-columns", "tags"]),
    ] {
        let mut command = world.party(who, "intersect", &ours, more);
        crate::common::run(command.args(["--connect", "127.0.0.1:1"]))
            .bad(3, &["column \"tags\": the column is nested", "Flatten it into plain columns"]);
    }
}

#[test]
fn a_result_in_parquet_is_a_file_to_go_on_with() {
    let world = World::new();
    let ours = world.write("r.csv", "id,v\n1,a\n2,b\n3,c\n");
    let theirs = world.write("s.txt", "2\n3\n4\n");
    let parquet = ["--output", "both.parquet"];
    world.good("intersect", [&ours, &theirs], [&parquet, &[]]);
    let both = world.path("both.parquet");
    let csv = ["--output-format", "csv"];
    let [union, _] = world.good("union", [&both, &ours], [&csv, &[]]);
    assert_eq!(union, "id,v\n2,b\n3,c\n1,\n");
    // No Parquet file, columns that a list cannot hold, bytes that would have to be text, and no key.
    let mut bare = crate::common::veilset();
    bare.args(["count", "s.csv", "--role", "sender", "--connect", "127.0.0.1:1", "--insecure-plaintext"]);
    crate::common::run(&mut bare).bad(2, &["--key is missing", "--format list"]);
    let refused = |options: Words, code, words: Words| {
        let mut command = world.party(crate::common::RECEIVER, "intersect", &ours, options);
        crate::common::run(command.args(["--listen", "127.0.0.1:0"])).bad(code, words);
    };
    refused(&["--format", "parquet"], 3, &["r.csv", "not a Parquet file", "--format"]);
    refused(&["--output-format", "list"], 2, &["2 columns", "--output-format csv"]);
    refused(&["--normalize", "trim", "--encoding", "bytes"], 2, &["--normalize", "--encoding bytes"]);
    refused(&["--normalize", "lower"], 2, &["lower", "casefold"]);
}
