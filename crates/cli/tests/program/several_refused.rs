//! Runs of several parties that one of them refuses before it contacts the others.

use crate::common::{Words, World, run};
use crate::several::{NAMES, Several};
use std::net::TcpListener;

const SOUTH: usize = 1;

/// Returns three parties, of which the second would connect to a listener of ours.
fn listening() -> (Several, TcpListener) {
    let mut several = Several::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    several.addresses[0] = listener.local_addr().unwrap().to_string();
    several.world.write("parties.toml", several.list());
    (several, listener)
}

#[test]
fn options_that_do_not_go_with_a_list_are_refused_with_the_reason() {
    let (several, listener) = listening();
    let fingerprint = several.fingerprints[0].clone();
    // (operation, options of a party that does not lead, words)
    let cases: [(&str, Words, Words); 23] = [
        (
            "sum",
            &["--values", "cost"],
            &["sum is for two parties", "intersect, union, count", "Omit --parties"],
        ),
        ("share", &[], &["share is for two parties", "Omit --parties"]),
        ("id", &[], &["id is for two parties", "Omit --parties"]),
        (
            "union",
            &["--role", "sender"],
            &["--role", "the leader of the list is the receiver", "Omit --role"],
        ),
        ("union", &["--peer", &fingerprint], &["--peer", "the fingerprints of all parties", "Omit --peer"]),
        (
            "count",
            &["--connect", "127.0.0.1:1"],
            &["--connect", "the addresses of all parties", "Omit --connect"],
        ),
        ("union", &["--proxy", "127.0.0.1:1"], &["--proxy", "to each other directly", "Omit --proxy"]),
        ("union", &["--both"], &["--both", "only the leader", "Omit --both"]),
        (
            "union",
            &["--send-columns", "cost"],
            &["--send-columns", "two parties only", "Omit --send-columns"],
        ),
        ("intersect", &["--receive-columns", "cost"], &["--receive-columns", "two parties only"]),
        ("union", &["--prepared", "half"], &["--prepared", "a run of two", "Omit --prepared"]),
        ("union", &["--insecure-plaintext"], &["--insecure-plaintext", "without TLS", "Omit"]),
        ("intersect", &["--malicious-sender"], &["--malicious-sender", "withstands", "Omit"]),
        (
            "union",
            &["--reveal-count-to-sender"],
            &["--reveal-count-to-sender", "nobody but the leader", "Omit"],
        ),
        ("union", &["--protocol", "dh"], &["--protocol dh is for two parties", "union is computed by mpsu"]),
        ("union", &["--protocol", "mpsi"], &["computed by mpsu only", "Omit --protocol"]),
        ("union", &["--group", "p256"], &["mpsu does not work in p256", "--group"]),
        (
            "union",
            &["--output", "x"],
            &["only the leader, party 1 (north)", "nothing for --output", "Omit it"],
        ),
        ("union", &["--for-spreadsheets"], &["only the leader", "nothing for --for-spreadsheets"]),
        ("union", &["--listen", "localhost"], &["localhost", "the port is missing"]),
        ("union", &["--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1"], &["--listen", "--connect"]),
        (
            "union",
            &["--report", "parties.toml", "--force"],
            &["--parties and --report are both parties.toml"],
        ),
        ("union", &["--me", "west"], &["no party \"west\"", "\"north\", \"south\", \"east\""]),
    ];
    for (operation, more, words) in cases {
        let input = several.world.path("none.csv");
        run(&mut several.party(SOUTH, operation, &input, more)).bad(2, words);
    }
    assert!(listener.accept().is_err(), "a party was contacted");
}

#[test]
fn options_for_a_list_are_refused_without_one() {
    let world = World::new();
    let input = world.path("none.csv");
    // (options, words)
    let cases: [(Words, Words); 3] = [
        (&["--me", "north"], &["--me is our name in a list of parties", "--parties FILE", "omit --me"]),
        (&["--protocol", "mpsu"], &["--protocol mpsu", "three parties or more", "Omit --protocol"]),
        (&["--protocol", "mpsi-ca"], &["--protocol mpsi-ca", "--parties"]),
    ];
    for (more, words) in cases {
        run(world.party(0, "union", &input, more).args(["--listen", "127.0.0.1:0"])).bad(2, words);
    }
    world.write("parties.toml", "");
    let mut nameless = world.veilset();
    nameless.args(["union", "none.csv", "--key", "id", "--parties", "parties.toml"]);
    run(&mut nameless).bad(2, &["--me is missing", "--me north"]);
}

#[test]
fn lists_that_are_wrong_are_refused_before_anything_is_read() {
    let (several, listener) = listening();
    let [_, south, east] = &several.fingerprints;
    let good = several.list();
    let second = format!("address = \"{}\"\n", several.addresses[1]);
    // (list, words)
    let cases = [
        (good.replace("fingerprint = ", "finger = "), vec!["line 5", "unknown field `finger`"]),
        (good.replace("leader = \"north\"\n", ""), vec!["missing field `leader`"]),
        (good.replace("leader = \"north\"", "leader = \"west\""), vec!["the leader, \"west\", is not among"]),
        (format!("{good}\n="), vec!["line "]),
        (good.replace(east, "veilset"), vec!["line 15", "fingerprint"]),
        (good.replace(east, south), vec!["\"south\" and \"east\" have the same \"fingerprint\""]),
        (good.replace("name = \"east\"", "name = \"south\""), vec!["two parties are called \"south\""]),
        (good.replace(&second, ""), vec!["neither \"south\" nor \"east\" has an \"address\""]),
        (
            good.split("\n[[party]]").take(2).collect::<Vec<_>>().join("\n[[party]]"),
            vec!["too few [[party]] tables (1)"],
        ),
        (
            good.replace(south, &World::new().fingerprints[0]),
            vec!["\"south\" has the fingerprint", "--identity"],
        ),
    ];
    for (text, words) in cases {
        several.world.write("parties.toml", text);
        let input = several.world.path("none.csv");
        let words = [&["parties.toml"], &words[..]].concat();
        run(&mut several.party(SOUTH, "count", &input, &[])).bad(2, &words);
    }
    std::fs::remove_file(several.world.path("parties.toml")).unwrap();
    let input = several.world.path("none.csv");
    run(&mut several.party(SOUTH, "count", &input, &[]))
        .bad(2, &["parties.toml", "cannot be used", "--parties"]);
    // The name is one party's, and the identity another's.
    several.world.write("parties.toml", good);
    let more = ["--identity", "east.pem"];
    let mut other = several.party(SOUTH, "count", &input, &more);
    run(&mut other).bad(2, &["\"south\" has the fingerprint", "that of \"east\"", NAMES[SOUTH]]);
    assert!(listener.accept().is_err(), "a party was contacted");
}

/// A parser puts its findings and its known names in backquotes, and so may a column of a file.
#[test]
fn what_parsers_and_files_say_is_not_spelled_as_options() {
    let several = Several::new();
    let world = &several.world;
    let good = several.list();
    let input = world.write("f.csv", "id,`key`\n1,2\n");
    world.write("parties.toml", good.replace("leader = ", "`role`\nleader = "));
    run(&mut several.party(SOUTH, "count", &input, &[])).bad(2, &["`role`"]);
    world.write("parties.toml", format!("{good}\n[[party]]\nname = \"x\"\nkey = \"`role`\"\n"));
    run(&mut several.party(SOUTH, "count", &input, &[])).bad(2, &["unknown field `key`", "`role`"]);
    world.write("parties.toml", good);
    let policy = world.write("policy.toml", "output = true\n").display().to_string();
    let more = ["--policy", policy.as_str()];
    run(&mut several.party(SOUTH, "count", &input, &more)).bad(2, &["unknown field `output`", "`both`"]);
    let more = ["--key", "`output`"];
    let named = ["column \"`output`\"", "\"`key`\""];
    run(&mut several.party(SOUTH, "count", &input, &more)).bad(3, &named);
}
