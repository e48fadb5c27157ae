//! Jobs that are interrupted, and continue with `--resume`.

use crate::common::{Ended, RECEIVER, SENDER, Words, World, both, connect, csv, listen, run};
use std::path::Path;
use std::time::{Duration, Instant};

const GOES_ON: &str = "The job keeps the shards that are done: both sides go on with --resume";

/// Returns the results of shards that a folder keeps.
fn kept(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "shard")).collect()
}

/// Both the interrupted side and the side that thereby loses its peer can continue.
#[test]
fn both_sides_of_a_job_that_is_interrupted_hear_how_it_goes_on() {
    let world = World::new();
    let file = world.write("many.csv", csv(0..30_000));
    let party = |who: usize, more: Words| {
        let own: Words = [&["--job", "r.job", "--output", "out.csv"][..], &["--job", "s.job"]][who];
        let job = ["--protocol", "dh", "--shards", "12", "--threads", "1"];
        world.party(who, "union", &file, &[&job[..], own, more].concat())
    };
    let (receiver, address) = listen(party(RECEIVER, &[]));
    let sender = connect(party(SENDER, &[]), &address);
    let start = Instant::now();
    while ["r.job", "s.job"].iter().any(|folder| kept(&world.path(folder)).is_empty()) {
        assert!(start.elapsed() < Duration::from_secs(60), "no shard is complete");
        std::thread::sleep(Duration::from_millis(5));
    }
    receiver.signal("TERM");
    receiver.end().bad(130, &["stopped on request", GOES_ON]);
    sender.end().bad(5, &["it was stopped on request", GOES_ON]);
    // A party that then cannot reach the other gets the same message.
    let alone: Words = &["--resume", "--listen", "127.0.0.1:0", "--connect-timeout", "1"];
    run(&mut party(RECEIVER, alone)).bad(6, &["within 1 second", GOES_ON]);
    let [r, s] = both(party(RECEIVER, &["--resume"]), party(SENDER, &["--resume"]));
    r.good();
    s.good();
    assert_eq!(world.read("out.csv").lines().count(), 30_001);
    assert!(!world.path("r.job").exists());
}

#[test]
fn a_job_that_has_not_begun_is_not_gone_on_with_and_leaves_no_folder() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..10));
    let nothing_left = |ended: Ended, code: i32, words: Words| {
        assert!(!ended.err.contains("--resume"), "{}", ended.err);
        ended.bad(code, words);
        for folder in ["r.job", "s.job"] {
            assert!(!world.path(folder).exists(), "{folder}");
        }
    };
    let job = |who: usize, more: Words| {
        let own = ["--job", ["r.job", "s.job"][who]];
        world.party(who, "union", &file, &[&own[..], more].concat())
    };
    let nobody: Words = &["--shards", "4", "--listen", "127.0.0.1:0", "--connect-timeout", "1"];
    nothing_left(run(&mut job(RECEIVER, nobody)), 6, &["within 1 second"]);
    let [r, s] = both(job(RECEIVER, &["--shards", "4"]), job(SENDER, &["--shards", "3"]));
    nothing_left(r, 4, &["--shards"]);
    nothing_left(s, 4, &["--shards"]);
}

/// A job continues only with the settings that it began with; a refused attempt changes nothing in its folder.
#[test]
fn what_does_not_go_with_a_job_in_its_folder_is_refused() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..10));
    let other = world.write("other.csv", csv(1..11));
    std::fs::create_dir(world.path("full")).unwrap();
    world.write("full/x", "");
    let stranger = World::new();
    // The shards that the sender kept remain when its run is over.
    let job: Words = &["--shards", "4", "--job", "s.job"];
    let began = world.good("union", [&file, &file], [&["--shards", "4"], job]);
    assert_eq!(began[RECEIVER].lines().count(), 11);
    let content = || {
        let mut all: Vec<_> = world.path("s.job").read_dir().unwrap().map(|e| e.unwrap().path()).collect();
        all.sort();
        all.into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = content();
    assert!(!kept(&world.path("s.job")).is_empty());
    let on: Words = &["--shards", "4", "--job", "s.job", "--resume"];
    let peer = stranger.fingerprints[0].as_str();
    // (the input, the options, exit code, words)
    let cases: [(&Path, Words, i32, Words); 10] = [
        (&file, &["--resume"], 2, &["--job"]),
        (&file, &["--shards", "4", "--resume"], 2, &["--resume", "--job"]),
        (&file, &["--job", "s.job"], 2, &["--shards"]),
        (&file, job, 2, &["there is a job in s.job already. Go on with it with --resume"]),
        (
            &file,
            &["--shards", "4", "--job", "none", "--resume"],
            2,
            &["there is no job in none to go on with. Name its folder with --job, or omit --resume"],
        ),
        (&file, &["--shards", "4", "--job", "full"], 2, &["full has other files (x)", "with --job"]),
        (
            &file,
            &["--shards", "5", "--job", "s.job", "--resume"],
            2,
            &["the job in s.job began with another", "--shards"],
        ),
        (&other, on, 2, &["the job in s.job began with another input"]),
        (
            &file,
            &[on, &["--pad-to", "20"]].concat(),
            2,
            &["began with another --pad-to: none, and now it is 20"],
        ),
        (&file, &[on, &["--peer", peer]].concat(), 2, &["began with another --peer"]),
    ];
    for (input, options, code, words) in cases {
        let nobody = ["--listen", "127.0.0.1:0", "--connect-timeout", "1"];
        let ended = run(&mut world.party(SENDER, "union", input, &[options, &nobody].concat()));
        ended.bad(code, words);
        assert_eq!(content(), before, "{options:?}");
        assert!(!world.path("none").exists(), "{options:?}");
    }
    // Shards kept under another identity cannot be read.
    let nobody = ["--listen", "127.0.0.1:0", "--connect-timeout", "1"];
    let other = [on, &nobody, &["--role", "sender"]].concat();
    run(&mut world.party(RECEIVER, "union", &file, &other)).bad(3, &["s.job", "another identity"]);
    assert!(content() == before);
    // One side continues, and the other begins.
    let [r, s] = both(
        world.party(RECEIVER, "union", &file, &["--shards", "4", "--job", "r.job"]),
        world.party(SENDER, "union", &file, on),
    );
    r.bad(4, &["the job that goes on (--resume)"]);
    s.bad(4, &["the job that goes on (--resume)"]);
    assert!(content() == before && !world.path("r.job").exists());
    // A damaged result is not accepted.
    let damaged = kept(&world.path("s.job")).remove(0);
    let mut bytes = std::fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    run(&mut world.party(SENDER, "union", &file, &[on, &nobody].concat()))
        .bad(3, &[damaged.file_name().unwrap().to_str().unwrap(), "Delete it, and go on with --resume"]);
}
