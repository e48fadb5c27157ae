//! Runs that the policy refuses.

use crate::common::{RECEIVER, SENDER, Words, World, both, csv, listen, run};

#[test]
fn what_is_known_before_is_refused_before_the_peer_hears_of_us() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let [r, s] = &world.fingerprints;
    run(world.veilset().args(["peer", "add", "south", s])).good();
    // (policy, operation, options, words)
    let cases: [(&str, &str, Words, Words); 9] = [
        ("operations = [\"count\", \"sum\"]", "union", &[], &["by \"operations\"", "(count, sum)"]),
        ("roles = [\"sender\"]", "count", &[], &["by \"roles\"", "only sender"]),
        ("peers = []", "count", &[], &["by \"peers\"", s]),
        ("peers = [\"SELF\"]", "count", &[], &["by \"peers\"", s]),
        ("insecure-plaintext = false", "count", &["--insecure-plaintext"], &["by \"insecure-plaintext\""]),
        (
            "peers = [\"south\"]",
            "count",
            &["--insecure-plaintext"],
            &["without TLS the peer cannot be identified"],
        ),
        ("min-our-size = 4", "count", &[], &["by \"min-our-size\"", "3 items, fewer than 4"]),
        ("[peer.south]\nmin-count = 5", "sum", &["--min-count", "4"], &["by \"min-count\"", "at least 5"]),
        ("repeats = \"refuse\"", "count", &["--audit-log", "none"], &["by \"repeats\"", "--audit-log none"]),
    ];
    for (policy, operation, more, words) in cases {
        world.write("policy.toml", policy.replace("SELF", r));
        let more = [&["--policy", "policy.toml", "--connect", "127.0.0.1:1"], more].concat();
        let ended = run(&mut world.party(RECEIVER, operation, &file, &more));
        ended.bad(8, &[&["our policy (policy.toml) refuses this run", "Change the run"], words].concat());
        assert!(!ended.err.contains("cannot be reached"), "{}", ended.err);
        // Rules about arguments apply before the input is read.
        if !["min-our-size", "repeats"].iter().any(|key| policy.contains(key)) {
            run(&mut world.party(RECEIVER, operation, &world.path("none.csv"), &more)).bad(8, words);
        }
    }
    // The policy in the configuration folder applies without being named.
    std::fs::write(world.home("policy.toml"), "operations = []").unwrap();
    run(&mut world.party(RECEIVER, "count", &file, &["--connect", "127.0.0.1:1"])).bad(8, &["operations"]);
}

#[test]
fn what_is_known_with_the_sizes_ends_both_sides() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(0..3))];
    for (policy, words) in [
        ("min-peer-size = 4", &["by \"min-peer-size\"", "3 items, fewer than 4"]),
        ("max-peer-items = 2", &["by \"max-peer-items\"", "3 items, more than 2"]),
    ] {
        world.write("policy.toml", policy);
        for check in ["", "check "] {
            let operation = format!("{check}count");
            let receiver = world.party(RECEIVER, &operation, &files[0], &["--policy", "policy.toml"]);
            let [here, there] = both(receiver, world.party(SENDER, &operation, &files[1], &[]));
            here.bad(8, words);
            there.bad(5, &["it gave up because its policy refuses this run"]);
            // The peer is not told which rule refused the run.
            let said = there.err.split_once("veilset: ").unwrap().1;
            assert!(!said.contains("size") && !said.contains(|c: char| c.is_ascii_digit()), "{said}");
        }
    }
}

#[test]
fn what_a_policy_allows_runs() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    run(world.veilset().args(["peer", "add", "south", &world.fingerprints[SENDER]])).good();
    world.write(
        "policy.toml",
        "operations = [\"count\"]\nroles = [\"receiver\"]\npeers = [\"south\"]\nmin-our-size = 3\n\
         min-peer-size = 9\nmax-peer-items = 3\ninsecure-plaintext = false\nboth = false\n\
         allowed-send-columns = []\nrepeats = \"allow\"\n[peer.south]\nmin-peer-size = 3\n",
    );
    world.good("count", [&file, &file], [&["--policy", "policy.toml"], &[]]);
}

#[test]
fn a_policy_that_cannot_be_understood_allows_nothing() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    for (policy, words) in [
        ("operation = [\"count\"]", "unknown field `operation`"),
        ("\noperations = [\"cuont\"]", "line 2"),
        ("min-count = -1", "line 1"),
        ("repeats = \"never\"", "unknown variant `never`"),
        ("[peer.south]\nmin-count = 1", "\"south\" is neither a peer"),
        ("peers = [\"south\"]", "\"south\" is neither a peer"),
        ("[[", "line 1"),
    ] {
        world.write("policy.toml", policy);
        let more = ["--policy", "policy.toml", "--connect", "127.0.0.1:1"];
        run(&mut world.party(RECEIVER, "count", &file, &more)).bad(2, &["policy.toml", words]);
    }
    let more = ["--policy", "none.toml", "--connect", "127.0.0.1:1"];
    run(&mut world.party(RECEIVER, "count", &file, &more)).bad(2, &["none.toml", "--policy"]);
    // A policy in the configuration folder that cannot be read.
    std::fs::create_dir(world.home("policy.toml")).unwrap();
    let more = ["--connect", "127.0.0.1:1"];
    run(&mut world.party(RECEIVER, "count", &file, &more))
        .bad(2, &["policy.toml cannot be used", "--policy"]);
    // A policy that cannot even be opened, by any user.
    #[cfg(unix)]
    {
        std::fs::remove_dir(world.home("policy.toml")).unwrap();
        std::os::unix::fs::symlink("policy.toml", world.home("policy.toml")).unwrap();
        run(&mut world.party(RECEIVER, "count", &file, &more))
            .bad(2, &["policy.toml cannot be used", "--policy"]);
    }
}

#[test]
fn repeated_runs_on_changed_sets_are_warned_of_or_refused() {
    let world = World::new();
    let [r, s] = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(0..3))];
    let policy = |repeats: &str| world.write("policy.toml", format!("repeats = \"{repeats}\""));
    policy("warn");
    // The log and policy are the receiver's; the sender has neither.
    let count = || {
        let more = ["--policy", "policy.toml", "--audit-log", "log"];
        let (receiver, address) = listen(world.party(RECEIVER, "count", &r, &more));
        let mut sender = world.party(SENDER, "count", &s, &["--audit-log", "none", "--connect", &address]);
        let sender = run(&mut sender);
        (receiver.end(), sender)
    };
    let warning = "The difference between two results";
    for _ in 0..2 {
        let (here, _) = count();
        assert!(here.code == Some(0) && !here.err.contains(warning), "{}", here.err);
    }
    // Another order is the same set; another row is not.
    world.write("r.csv", csv((0..5).rev()));
    assert!(!count().0.err.contains(warning));
    world.write("r.csv", csv(1..6));
    count()
        .0
        .bad(0, &["warning: this is run 4 with", &world.fingerprints[1], "our set has changed", warning]);
    // That set has now run, regardless of the policy; the next one has not.
    assert!(!count().0.err.contains(warning));
    policy("refuse");
    world.write("r.csv", csv(2..7));
    let (here, there) = count();
    here.bad(8, &["by \"repeats\": this is run 6", warning]);
    there.bad(5, &["its policy refuses this run"]);
    assert!(!there.err.contains("repeat"), "{}", there.err);
    policy("allow");
    let (here, _) = count();
    assert!(here.code == Some(0) && !here.err.contains(warning), "{}", here.err);
    // A change in the peer's number of items is noticed too.
    std::fs::remove_file(world.path("log")).unwrap();
    policy("warn");
    count().0.good();
    world.write("s.csv", csv(0..4));
    count().0.bad(0, &["run 2 with", "the peer's set has changed in size since the last one (count of 2"]);
    // Other operations show the same difference between sets.
    let more = ["--policy", "policy.toml", "--audit-log", "log"];
    world.write("r.csv", csv(3..8));
    let union = both(world.party(RECEIVER, "union", &r, &more), world.party(SENDER, "union", &s, &[]));
    assert!(union[0].err.contains("run 3 with") && union[0].err.contains(warning), "{}", union[0].err);
}

/// An unattended nightly run must show the warning.
#[test]
fn who_is_to_be_quiet_is_warned_all_the_same() {
    let world = World::new();
    let [r, s] = [world.write("r.csv", csv(0..5)), world.write("s.csv", csv(0..3))];
    let count = || {
        let (receiver, address) = listen(world.party(RECEIVER, "count", &r, &["--audit-log", "none"]));
        let more = ["--quiet", "--audit-log", "log", "--connect", &address];
        let sender = run(&mut world.party(SENDER, "count", &s, &more));
        receiver.end().good();
        sender
    };
    assert_eq!(count().err, "");
    world.write("s.csv", csv(1..4));
    count().bad(0, &["warning: this is run 2 with", "our set has changed"]);
}
