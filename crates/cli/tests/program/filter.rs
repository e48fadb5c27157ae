//! Encrypted filters that are made in advance.

use crate::common::{Ended, RECEIVER, Running, SENDER, World, csv, run};

/// Runs a command of `veilset filter` under a party's identity.
fn filter(world: &World, who: usize, words: &[&str]) -> Ended {
    let mut command = world.veilset();
    run(command.arg("filter").args(words).args(["--identity", ["r.pem", "s.pem"][who]]))
}

const BUILD: [&str; 9] =
    ["build", "r.csv", "--key", "id", "--output", "r.filter", "--capacity", "50", "--for=40"];

#[test]
fn a_filter_is_made_once_and_serves_many_runs() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..30)), world.write("s.csv", csv(20..50))];
    filter(&world, RECEIVER, &BUILD).bad(0, &["encrypting", "made r.filter", "--filter r.filter"]);
    let export = ["export", "r.filter", "--output", "r.public"];
    filter(&world, RECEIVER, &export).bad(0, &["wrote r.public", "for 50 items and a partner's 40"]);
    let lines = |out: &str| {
        let mut lines: Vec<_> = out.lines().map(str::to_string).collect();
        lines.sort_unstable();
        lines
    };
    for operation in ["count", "intersect", "union"] {
        let files = [&*files[0], &*files[1]];
        let plain = world.good(operation, files, [&[], &[]]);
        let protocol = &["--protocol", "dc17"][..];
        for more in [
            [&["--filter", "r.filter"][..], &["--filter", "r.public"]],
            [&["--filter", "r.filter"], protocol],
            [protocol, &["--cipher", "elgamal"]],
        ] {
            let out = world.good(operation, files, more);
            assert_eq!(out.each_ref().map(|out| lines(out)), plain.each_ref().map(|out| lines(out)));
        }
    }
    // Keys are inserted, and a partner has the old public part.
    let more = world.write("more.csv", csv(25..35));
    let update = ["update", "r.filter", "more.csv", "--key", "id"];
    filter(&world, RECEIVER, &update).bad(0, &["inserted 5 items into r.filter", "veilset filter export"]);
    let all = world.write("all.csv", csv(0..35));
    let [here, there] =
        world.run("count", [&all, &files[1]], [&["--filter", "r.filter"], &["--filter", "r.public"]]);
    here.bad(4, &["the receiver's filter (--filter)"]);
    there.bad(4, &["the receiver's filter (--filter)"]);
    let [out, _] = world.good("count", [&all, &files[1]], [&["--filter", "r.filter"], &["--protocol=dc17"]]);
    assert_eq!(out, "matches,union_size\n15,50\n");
    let info = filter(&world, RECEIVER, &["info", "r.filter"]).good();
    for words in
        ["35 items, with room for 50", "up to 40 items", "1 column", "elgamal", &world.fingerprints[0]]
    {
        assert!(info.contains(words), "{info}");
    }
    // The public part shows the same to any party, except for the number of items.
    let info = filter(&world, SENDER, &["info", "r.public"]).good();
    assert!(info.contains("the public part of a filter of up to 50 items"), "{info}");
    drop(more);
}

#[test]
fn what_a_filter_is_not_for_is_refused() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(0..41))];
    filter(&world, RECEIVER, &BUILD).good();
    filter(&world, RECEIVER, &["export", "r.filter", "--output", "r.public"]).good();
    let alone = |who: usize, more: &[&str]| {
        let more = [more, &["--connect", "127.0.0.1:1"]].concat();
        run(&mut world.party(who, "count", &files[who], &more))
    };
    alone(RECEIVER, &["--filter", "s.csv"])
        .bad(3, &["s.csv: it is not an encrypted filter", "veilset filter build"]);
    alone(RECEIVER, &["--filter", "none"]).bad(3, &["none: there is no such encrypted filter"]);
    alone(RECEIVER, &["--filter", "r.public"]).bad(3, &["it is a public filter, not an encrypted filter"]);
    alone(RECEIVER, &["--filter", "r.filter", "--normalize", "trim"]).bad(3, &["--normalize"]);
    alone(RECEIVER, &["--filter", "r.filter", "--pad-to", "51"]).bad(3, &["at most 50 items", "--capacity"]);
    alone(RECEIVER, &["--filter", "r.filter", "--protocol", "dh"]).bad(2, &["--filter is for dc17 only"]);
    alone(RECEIVER, &["--filter", "r.filter", "--cipher", "paillier2048"])
        .bad(3, &["by ristretto255", "--cipher"]);
    alone(SENDER, &["--filter", "r.filter"]).bad(3, &["it is not a public filter", "veilset filter export"]);
    alone(SENDER, &["--filter", "r.public"])
        .bad(3, &["at most 40 items on our side, and this run has 41", "--for"]);
    alone(SENDER, &["--cipher", "rsa"]).bad(2, &["elgamal", "paillier3072"]);
    let other = world.write("other.csv", csv(0..6));
    let more = ["--filter", "r.filter", "--connect", "127.0.0.1:1"];
    run(&mut world.party(RECEIVER, "count", &other, &more)).bad(3, &["made of 5 keys, but the input has 6"]);
    // The filter belongs to another identity.
    filter(&world, SENDER, &["info", "r.filter"]).bad(3, &["under another identity"]);
    // Both sides learn that the set is too large.
    let [here, there] =
        world.run("count", [&files[0], &files[1]], [&["--filter", "r.filter"], &["--cipher=elgamal"]]);
    assert!([here.code, there.code].contains(&Some(8)), "{} {}", here.err, there.err);
    // Refused paths and sizes.
    filter(&world, RECEIVER, &BUILD).bad(7, &["r.filter exists", "--force"]);
    filter(&world, RECEIVER, &["build", "r.csv", "--key", "id", "--output", "-"]).bad(2, &["--output"]);
    let small = ["build", "r.csv", "--key", "id", "--output", "f", "--capacity", "4"];
    filter(&world, RECEIVER, &small).bad(2, &["--capacity 4 is less than our 5 items"]);
    world.write("many.csv", csv(100..160));
    filter(&world, RECEIVER, &["update", "r.filter", "many.csv", "--key", "id"]).bad(3, &["too many by 15"]);
    assert_eq!(world.names().iter().filter(|name| name.contains("part")).count(), 0);
}

/// A filter that takes a while is stopped, and the same command continues it.
#[test]
fn an_interrupted_filter_is_gone_on_with() {
    let world = World::new();
    world.write("r.csv", csv(0..4000));
    let words =
        ["filter", "build", "r.csv", "--key", "id", "--output", "f", "--threads", "1", "--identity", "r.pem"];
    let mut running = Running::start(world.veilset().args(words));
    running.until("encrypting");
    let part = world.path("f.part");
    while part.metadata().map_or(0, |found| found.len()) < 2 << 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal("INT");
    running.end().bad(130, &["f.part is kept: the same command resumes it"]);
    let kept = part.metadata().unwrap().len();
    assert!(kept > 1 << 20 && !world.path("f").exists());
    // A killed command leaves the same state.
    let mut running = Running::start(world.veilset().args(words));
    running.until("encrypting");
    running.signal("KILL");
    running.end();
    assert!(part.metadata().unwrap().len() > 1 << 20);
    run(world.veilset().args(words)).good();
    assert!(!part.exists());
    filter(&world, RECEIVER, &["info", "f"]).bad(0, &[]);
}

#[test]
fn answers_to_one_peer_are_counted() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(2..9))];
    filter(&world, RECEIVER, &BUILD).good();
    let policy = world.write("s.toml", "max-filter-runs = 2\n");
    let policy = policy.to_str().unwrap();
    let more =
        [&["--filter", "r.filter"][..], &["--protocol", "dc17", "--policy", policy, "--audit-log", "s.log"]];
    for _ in 0..2 {
        let [out, _] = world.good("count", [&files[0], &files[1]], more);
        assert_eq!(out, "matches,union_size\n3,9\n");
    }
    let [here, there] = world.run("count", [&files[0], &files[1]], more);
    there.bad(8, &["\"max-filter-runs\"", "in 2 runs, and 2 are allowed"]);
    here.bad(5, &[]);
}
