//! `veilset share`: shares that add up to the matching keys or values, and the sender's map to its rows.

use crate::common::{RECEIVER, SENDER, Words, World, run};
use std::path::{Path, PathBuf};
use veilset::item::decode_key;
use veilset::table::{open_keys, open_values, read_shares};

const OURS: &str = "id,name\n1,ann\n2,bob\n3,cleo\n";
const THEIRS: &str = "city,id,cost\nOslo,2,-1.5\nRome,3,20\nBern,9,7.25\nLima,1,0.01\n";

fn files(world: &World) -> [PathBuf; 2] {
    [world.write("r.csv", OURS), world.write("s.csv", THEIRS)]
}

/// Returns the share rows of the sender's rows, in their order, according to the map.
fn rows_of(world: &World, map: &str) -> Vec<usize> {
    world.read(map).lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn keys_that_match_are_shared_and_all_others_are_not_there() {
    let world = World::new();
    let files = files(&world);
    for (i, extension) in ["csv", "parquet"].into_iter().enumerate() {
        let names = ["ours", "theirs"].map(|name| format!("{name}.{extension}"));
        let [ours, theirs] = names.each_ref().map(|name| ["--output", name, "--force", "--max-row", "9"]);
        let pads: Words = &["--pad-to", "6", "--map", "map.csv"];
        let theirs = [&theirs[..], if i == 0 { &pads[2..] } else { pads }].concat();
        world.good("share", [&files[0], &files[1]].map(PathBuf::as_path), [&ours, &theirs]);
        let [ours, theirs] = names.map(|name| read_shares(&world.path(&name)).unwrap());
        let opened = open_keys(&ours, &theirs).unwrap();
        assert_eq!(opened.len(), if i == 0 { 4 } else { 6 });
        let key = |row: usize| {
            let item = opened[row].as_deref();
            item.map(|item| String::from_utf8(decode_key(item, 1).unwrap()[0].to_vec()).unwrap())
        };
        let keys: Vec<Option<String>> = rows_of(&world, "map.csv").into_iter().map(key).collect();
        assert_eq!(keys, [Some("2".into()), Some("3".into()), None, Some("1".into())]);
        assert_eq!(opened.iter().flatten().count(), 3);
        assert_eq!(world.read("map.csv").lines().next(), Some("id,row"));
    }
}

#[test]
fn values_are_shared_instead_if_the_sender_has_any() {
    let world = World::new();
    let files = files(&world);
    let receiver: Words = &["--output", "ours.csv", "--scale", "2"];
    // Each file has the delimiter that its name implies.
    let sender: Words = &["--output", "theirs.tsv", "--scale", "2", "--values", "cost", "--map", "map.csv"];
    world.good("share", [&files[0], &files[1]].map(PathBuf::as_path), [receiver, sender]);
    let [ours, theirs] = ["ours.csv", "theirs.tsv"].map(|name| read_shares(&world.path(name)).unwrap());
    let opened = open_values(&ours, &theirs).unwrap();
    let values: Vec<i64> = rows_of(&world, "map.csv").into_iter().map(|row| opened[row]).collect();
    assert_eq!(values, [-150, 2000, 0, 1]);
    assert!(world.read("ours.csv").lines().skip(1).all(|line| line.split(',').nth(1).unwrap().len() == 16));
    assert!(world.read("map.csv").starts_with("id,cost,row\n"), "{}", world.read("map.csv"));
}

/// All signed 64-bit values can be shared, and no others.
#[test]
fn the_extremes_of_64_bits_are_shared() {
    let world = World::new();
    let ours = world.write("r.csv", OURS);
    let theirs = world.write("s.csv", format!("id,cost\n1,{}\n2,{}\n9,0\n", i64::MIN, i64::MAX));
    let sender: Words = &["--output", "theirs.csv", "--values", "cost", "--map", "map.csv"];
    world.good("share", [&ours, &theirs], [&["--output", "ours.csv"], sender]);
    let [ours, theirs] = ["ours.csv", "theirs.csv"].map(|name| read_shares(&world.path(name)).unwrap());
    let opened = open_values(&ours, &theirs).unwrap();
    let rows = rows_of(&world, "map.csv");
    assert_eq!([opened[rows[0]], opened[rows[1]]], [i64::MIN, i64::MAX]);
    let below = world.write("t.csv", "id,cost\n1,-9223372036854775809\n");
    let options: Words =
        &["--values", "cost", "--output", "x.csv", "--map", "m.csv", "--connect", "127.0.0.1:1"];
    run(&mut world.party(SENDER, "share", &below, options)).bad(3, &["line 2, column \"cost\"", "64 bits"]);
}

/// A file of shares has columns of its own, whether or not our file has a header. The map follows our file.
#[test]
fn shares_have_a_header_though_our_file_has_none() {
    let world = World::new();
    let files = [world.write("r.csv", "1\n2\n3\n"), world.write("s.csv", "Oslo,2\nRome,3\nBern,9\n")];
    let receiver: Words = &["--output", "ours.csv", "--no-header", "--key", "1"];
    let sender: Words = &["--output", "theirs.csv", "--no-header", "--key", "2", "--map", "map.csv"];
    world.good("share", [&files[0], &files[1]].map(PathBuf::as_path), [receiver, sender]);
    for name in ["ours.csv", "theirs.csv"] {
        assert_eq!(world.read(name).lines().next(), Some("row,share"), "{name}");
    }
    let [ours, theirs] = ["ours.csv", "theirs.csv"].map(|name| read_shares(&world.path(name)).unwrap());
    assert_eq!(open_keys(&ours, &theirs).unwrap().iter().flatten().count(), 2);
    let map = world.read("map.csv");
    let keys: Vec<&str> = map.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(keys, ["2", "3", "9"]);
}

#[test]
fn what_cannot_be_is_refused_before_the_peer_hears_of_us() {
    let world = World::new();
    let files = files(&world);
    let named = world.write("named.csv", "row,cost\n1,2\n");
    let large = world.write("large.csv", format!("id,cost\n1,{}\n", 1u64 << 63));
    // (party, file, options, code, words)
    let cases: [(usize, &Path, Words, i32, Words); 9] = [
        (RECEIVER, &files[0], &["--values", "name"], 2, &["--values is for the sender"]),
        (RECEIVER, &files[0], &["--map", "m.csv"], 2, &["--map is for the sender of share"]),
        (
            SENDER,
            &files[1],
            &["--output", "x.csv", "--map", "x.csv"],
            2,
            &["--output and --map are both x.csv"],
        ),
        (SENDER, &files[1], &["--map", "-"], 2, &["--output and --map are both -"]),
        (SENDER, &named, &["--key", "row", "--output", "x.csv", "--map", "m.csv"], 2, &["\"row\""]),
        (SENDER, &files[1], &["--max-row", "1"], 3, &["--max-row", "line 2"]),
        (SENDER, &large, &["--values", "cost"], 3, &["line 2, column \"cost\"", "64 bits"]),
        (SENDER, &files[1], &["--values", "city"], 3, &["line 2, column \"city\"", "digits"]),
        (RECEIVER, &files[0], &["--output", "x.txt"], 2, &["columns or more, but a list has one"]),
    ];
    for (who, file, more, code, words) in cases {
        let more = [more, &["--listen", "127.0.0.1:0"]].concat();
        let ended = run(&mut world.party(who, "share", file, &more));
        ended.bad(code, words);
        assert!(!ended.err.contains("listening"), "{more:?}: {}", ended.err);
    }
}

#[test]
fn both_must_agree_on_the_width_and_on_the_scale() {
    let world = World::new();
    let files = files(&world);
    let files: [&Path; 2] = [&files[0], &files[1]];
    for (receiver, sender, words) in [
        (&["--max-row", "9"][..], &[][..], &["--max-row", "9", "64"][..]),
        (&[], &["--values", "cost", "--scale", "2"], &["--scale"]),
    ] {
        for ended in world.run("share", files, [receiver, sender]) {
            ended.bad(4, words);
        }
    }
}
