//! Runs of several parties.

use crate::common::{Ended, Running, Words, World, csv, run, signal, veilset};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use veilset_testing::free_address;

/// The parties of a list, the leader first.
pub const NAMES: [&str; 3] = ["north", "south", "east"];
const NORTH: usize = 0;
const SOUTH: usize = 1;
const EAST: usize = 2;

/// Enough items that a run is not over before it is disturbed.
const MANY: u32 = 20_000;

/// Three parties' identities, files, and list `parties.toml`. The last party only connects.
pub struct Several {
    pub world: World,
    pub fingerprints: [String; 3],
    pub addresses: [String; 2],
}

impl Several {
    pub fn new() -> Several {
        let world = World::new();
        // Among two parties with an address, the one whose fingerprint sorts first listens: make that the first one.
        let made = |i: usize| {
            let output = format!("{i}.pem");
            let made = run(world.veilset().args(["identity", "new", "--output", &output]));
            (made.good().trim().to_string(), output)
        };
        let mut made = [0, 1, 2].map(made);
        made.sort();
        for ((_, file), name) in made.iter().zip(NAMES) {
            std::fs::rename(world.path(file), world.path(&format!("{name}.pem"))).unwrap();
        }
        let fingerprints = made.map(|(fingerprint, _)| fingerprint);
        let several = Several { world, fingerprints, addresses: [free_address(), free_address()] };
        several.world.write("parties.toml", several.list());
        several
    }

    /// Returns the text of the list.
    pub fn list(&self) -> String {
        let party = |(i, name): (usize, &str)| {
            let address = self.addresses.get(i).map_or(String::new(), |at| format!("address = \"{at}\"\n"));
            format!("\n[[party]]\nname = \"{name}\"\nfingerprint = \"{}\"\n{address}", self.fingerprints[i])
        };
        let parties = NAMES.into_iter().enumerate().map(party);
        format!("leader = \"north\"\n{}", parties.collect::<String>())
    }

    /// Returns a party's command. Adds the options that `more` lacks: list, key (not for a list of items), time-outs.
    pub fn party(&self, who: usize, operation: &str, file: &Path, more: Words) -> Command {
        let mut command = self.world.veilset();
        command.args(operation.split(' ')).arg(file).args(more);
        command.args(self.world.allow_small.then_some("--allow-small"));
        let identity = format!("{}.pem", NAMES[who]);
        let list = file.extension().is_some_and(|e| e == "txt");
        let defaults = [
            ("--identity", identity.as_str()),
            ("--parties", "parties.toml"),
            ("--me", NAMES[who]),
            ("--key", "id"),
            ("--connect-timeout", "20"),
            ("--idle-timeout", "20"),
        ];
        for (option, value) in defaults {
            let given = more.contains(&option) || list && option == "--key";
            if !given {
                command.args([option, value]);
            }
        }
        command
    }

    /// Starts all parties with these files and options.
    fn start(&self, operation: &str, files: [&Path; 3], more: [Words; 3]) -> [Running; 3] {
        let start = |who: usize| Running::start(&mut self.party(who, operation, files[who], more[who]));
        [NORTH, SOUTH, EAST].map(start)
    }

    fn run(&self, operation: &str, files: [&Path; 3], more: [Words; 3]) -> [Ended; 3] {
        self.start(operation, files, more).map(Running::end)
    }

    /// Runs all parties, which must succeed. Returns their standard outputs.
    fn good(&self, operation: &str, files: [&Path; 3], more: [Words; 3]) -> [String; 3] {
        self.run(operation, files, more).map(Ended::good)
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.world.read(name)).unwrap()
    }
}

/// The list gives roles, addresses and fingerprints; all else is as between two peers: columns, both results, two-party
/// protocols, and the fields of the report.
#[test]
fn a_list_of_two_is_a_run_of_two() {
    let several = Several::new();
    let world = &several.world;
    let list = several.list();
    let (two, _) = list.split_at(list.rfind("\n[[party]]").unwrap());
    world.write("parties.toml", two);
    let rows = |name: &str, range: std::ops::Range<u32>| {
        let rows: String = range.map(|i| format!("{i},city {i}\n")).collect();
        world.write(name, format!("id,city\n{rows}"))
    };
    let (a, b) = (rows("a.csv", 0..30), rows("b.csv", 20..70));
    let both = |operation: &str, more: [Words; 2]| {
        let start =
            |who: usize, file: &Path| Running::start(&mut several.party(who, operation, file, more[who]));
        [start(NORTH, &a), start(SOUTH, &b)].map(Running::end)
    };
    let report: Words = &["--receive-columns", "city=town", "--both", "--report", "report.json"];
    let [north, south] = both("intersect", [report, &["--send-columns", "city", "--both"]]);
    let matches: String = (20..30).map(|i| format!("{i},city {i},city {i}\n")).collect();
    assert_eq!(north.good(), format!("id,city,town\n{matches}"));
    assert_eq!(south.good().lines().count(), 11);
    let report = several.json("report.json");
    assert_eq!(
        (&report["peer"], &report["role"]),
        (&several.fingerprints[1].as_str().into(), &"receiver".into())
    );
    assert_eq!((&report["sizes"]["peer"], &report["protocol"]), (&50.into(), &"dh-psi".into()));
    assert_eq!(report["peer_name"], "south");
    let [north, south] = both("sum --protocol dh", [&[], &["--values", "id"]]);
    assert_eq!(north.good(), "matches\n10\n");
    assert_eq!(south.good(), format!("matches,sum,below_minimum\n10,{},false\n", (20..30).sum::<u32>()));
    let refused = both("union --protocol mpsu", [&[], &[]]);
    refused.into_iter().for_each(|ended| ended.bad(2, &["mpsu is for three parties or more"]));
}

#[test]
fn three_processes_give_the_plain_results_at_unequal_sizes() {
    let several = Several::new();
    let world = &several.world;
    for (a, b, c) in [(0..40, 30..90, 20..35), (0..3, 0..0, 0..3), (0..0, 2..4, 3..9), (5..6, 5..6, 5..6)] {
        let lines: String = c.clone().map(|i| format!("{i}\n")).collect();
        let files = [
            world.write("a.csv", csv(a.clone())),
            world.write("b.csv", csv(b.clone())),
            world.write("c.txt", lines),
        ];
        let files = files.each_ref().map(|file| file.as_path());
        let set = |range: &std::ops::Range<u32>| range.clone().collect::<BTreeSet<u32>>();
        let (a, b, c) = (set(&a), set(&b), set(&c));
        let common: BTreeSet<u32> = a.iter().copied().filter(|i| b.contains(i) && c.contains(i)).collect();
        let all: BTreeSet<u32> = a.iter().chain(&b).chain(&c).copied().collect();
        let ids = |text: &str| -> BTreeSet<u32> {
            text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect()
        };
        for operation in ["intersect", "union", "count"] {
            let report = ["--report", "report.json", "--force"];
            let [out, south, east] = several.good(operation, files, [&report, &[], &[]]);
            match operation {
                "intersect" => assert_eq!(ids(&out), common),
                "union" => assert_eq!((ids(&out), out.lines().count()), (all.clone(), all.len() + 1)),
                _ => assert_eq!(out, format!("matches\n{}\n", common.len())),
            }
            assert_eq!((south.as_str(), east.as_str()), ("", ""));
            let report = several.json("report.json");
            assert_eq!((&report["operation"], &report["role"]), (&operation.into(), &"receiver".into()));
            let parties = report["parties"].as_array().unwrap();
            let told: Vec<_> = parties.iter().map(|party| party["peer"].as_str().unwrap()).collect();
            assert_eq!(told, several.fingerprints[1..], "{report}");
            for way in ["sent", "received"] {
                let messages = report["messages"].as_array().unwrap().iter();
                let all: u64 = messages.map(|message| message[way].as_u64().unwrap()).sum();
                assert_eq!(all, report["bytes"][way].as_u64().unwrap(), "{report}");
            }
        }
    }
}

#[test]
fn a_list_can_be_given_in_a_run_file_and_a_padded_set_is_announced_as_such() {
    let several = Several::new();
    let world = &several.world;
    std::fs::create_dir(world.path("conf")).unwrap();
    for (who, ids) in [(NORTH, 0..10), (SOUTH, 3..7), (EAST, 5..20)] {
        let name = NAMES[who];
        world.write(&format!("conf/{name}.csv"), csv(ids));
        let more = match who {
            NORTH => "output = \"all.csv\"\nreport = \"report.json\"\naudit-log = \"log\"\n",
            SOUTH => "pad-to = 12\n",
            _ => "quiet = true\n",
        };
        let text = format!(
            "operation = \"intersect\"\ninput = \"{name}.csv\"\nkey = \"id\"\nparties = \"../parties.toml\"\n\
             me = \"{name}\"\nidentity = \"../{name}.pem\"\nconnect-timeout = 20\n{more}"
        );
        world.write(&format!("conf/{name}.toml"), text);
    }
    let start = |name| Running::start(world.veilset().args(["run", &format!("conf/{name}.toml")]));
    let [north, south, east] = NAMES.map(start).map(Running::end);
    for words in ["party 2 (south) is connected", "party 3 (east) is connected"] {
        assert!(north.err.contains(words), "{words}: {}", north.err);
    }
    assert_eq!((east.err.as_str(), east.code), ("", Some(0)));
    assert_eq!((north.good(), south.good()), (String::new(), String::new()));
    assert_eq!(world.read("conf/all.csv"), "id,cost\n5,5.5\n6,6.5\n");
    let report = several.json("conf/report.json");
    let announced = |i: usize| &report["parties"][i];
    assert_eq!((&announced(0)["items"], &announced(0)["padded"]), (&12.into(), &true.into()), "{report}");
    assert_eq!((&announced(1)["items"], &announced(1)["padded"]), (&15.into(), &false.into()), "{report}");
    let log = world.read("conf/log");
    assert_eq!(log.lines().count(), 2);
    for fingerprint in &several.fingerprints[1..] {
        assert!(log.lines().next().unwrap().contains(fingerprint), "{log}");
    }
}

#[test]
fn a_check_says_who_takes_part_and_what_the_run_would_cost() {
    let several = Several::new();
    let world = &several.world;
    let files = [csv(0..30), csv(20..70), csv(25..40)];
    let files = NAMES.map(|name| {
        let at = NAMES.iter().position(|other| *other == name).unwrap();
        world.write(&format!("{name}.csv"), &files[at])
    });
    let files = files.each_ref().map(|file| file.as_path());
    let before = world.names();
    let pad: Words = &["--pad-to", "20"];
    let said = several.good("check union", files, [&["--output", "out.csv"], &[], pad]);
    for (text, here) in said.iter().zip(["30 items here", "50 items here", "20 items here (padded)"]) {
        for words in [
            "nothing was computed",
            "union, with party 1 (north) as the leader",
            "party 2 (south), ",
            "20 items",
            here,
            "bytes to the other parties",
            " rounds of messages, and at most ",
            "for the slowest of them",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(several.fingerprints.iter().all(|fingerprint| text.contains(fingerprint)), "{text}");
    }
    assert_eq!(world.names(), before);
    // A check cannot be run against a run.
    let parties = [NORTH, SOUTH, EAST].map(|who| {
        let operation = if who == EAST { "union" } else { "check union" };
        Running::start(&mut several.party(who, operation, files[who], &[]))
    });
    for ended in parties.map(Running::end) {
        ended.bad(4, &["party", "check or run (`veilset check`)"]);
    }
}

#[test]
fn parties_that_ask_for_different_things_name_who_differs() {
    let several = Several::new();
    let world = &several.world;
    let file = world.write("f.csv", "id,cost\n1,2\n");
    let files = [file.as_path(); 3];
    world.write(
        "other.toml",
        several
            .addresses
            .iter()
            .fold(several.list(), |list, address| list.replace(address, &in_three_parts(address))),
    );
    let before = world.names();
    let output: Words = &["--output", "out.csv", "--report", "report.json"];
    // (options of the last party, the difference)
    let cases: [(Words, &str); 3] = [
        (&["--max-row", "65"], "--max-row"),
        (&["--encoding", "bytes"], "normalisation"),
        (&["--parties", "other.toml"], "address in the list of parties (--parties)"),
    ];
    for (more, what) in cases {
        // Each party compares itself with all others before any gives up.
        let [north, south, east] = several.run("union", files, [output, &[], more]);
        for ended in [north, south] {
            ended.bad(4, &["the parties ask", what, "party 3's is", "party 3 of parties.toml is east"]);
        }
        let list = if more[0] == "--parties" { more[1] } else { "parties.toml" };
        let names = ["party 1 of", "is north", "party 2 of", "is south", list];
        east.bad(
            4,
            &[&["that of party 1 and party 2 is", what, "Settle with all parties"], &names[..]].concat(),
        );
    }
    assert_eq!(world.names(), before);
}

#[test]
fn a_party_that_does_not_come_is_named() {
    let several = Several::new();
    let file = several.world.write("f.csv", csv(0..3));
    let before = several.world.names();
    let start = Instant::now();
    let short: Words = &["--connect-timeout", "2"];
    let missing = |absent: usize| {
        let here = [NORTH, SOUTH, EAST].into_iter().filter(|who| *who != absent);
        let parties: Vec<_> =
            here.map(|who| Running::start(&mut several.party(who, "count", &file, short))).collect();
        for party in parties {
            let name = format!("party {} ({})", absent + 1, NAMES[absent]);
            let ended = party.end();
            // A party that learns of it from another party first reports that.
            let how = if ended.code == Some(6) { "--connect-timeout" } else { "it says" };
            assert!(matches!(ended.code, Some(5 | 6)), "{}", ended.err);
            ended.bad(ended.code.unwrap(), &[&name, how, "then run again"]);
        }
    };
    missing(EAST);
    missing(NORTH);
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(several.world.names(), before);
}

/// Disturbs a union once all are connected and have begun. Returns how the parties ended.
fn disturbed(several: &Several, who: usize, name: &str) -> [Ended; 3] {
    let file = several.world.write("many.csv", csv(0..MANY));
    let before = several.world.names();
    let output: Words = &["--output", "out.csv", "--report", "report.json"];
    let mut parties = several.start("union", [&file; 3], [output, &[], &[]]);
    parties[who].until("is connected");
    parties[who].until("is connected");
    thread::sleep(Duration::from_millis(500));
    signal(parties[who].id(), name);
    let ended = parties.map(Running::end);
    assert_eq!(several.world.names(), before);
    ended
}

#[test]
fn a_party_that_is_killed_is_named_by_the_others() {
    let several = Several::new();
    for who in [EAST, NORTH] {
        let name = format!("party {} ({})", who + 1, NAMES[who]);
        for (i, ended) in disturbed(&several, who, "KILL").into_iter().enumerate() {
            match i == who {
                true => assert_eq!(ended.code, None, "{}", ended.err),
                // A party that learns of it from another party first reports that.
                false => {
                    assert!(matches!(ended.code, Some(5 | 6)), "{:?} {}", ended.code, ended.err);
                    ended.bad(ended.code.unwrap(), &[&name, "then run again"]);
                }
            }
        }
    }
}

#[test]
fn a_party_that_is_interrupted_ends_with_130_and_the_others_say_so() {
    let several = Several::new();
    for (i, ended) in disturbed(&several, SOUTH, "TERM").into_iter().enumerate() {
        match i == SOUTH {
            true => ended.bad(130, &["stopped on request"]),
            false => ended.bad(5, &["party 2", "stopped on request"]),
        }
    }
}

#[test]
fn the_limits_and_the_policy_hold_for_each_party() {
    let several = Several::new();
    let world = &several.world;
    let files =
        [world.write("a.csv", csv(0..3)), world.write("b.csv", csv(0..3)), world.write("c.csv", csv(0..9))];
    let files = files.each_ref().map(|file| file.as_path());
    run(world.veilset().args(["peer", "add", "from-the-book", &several.fingerprints[EAST]])).good();
    world.write("most.toml", "max-peer-items = 4");
    world.write("one.toml", "max-peer-items = 4\n[peer.from-the-book]\nmax-peer-items = 9\n");
    world.write("none.toml", "max-peer-items = 9\n[peer.from-the-book]\noperations = [\"union\"]\n");
    // (options of the leader, its message)
    let cases: [(Words, Words); 2] = [
        (&["--max-peer-items", "4"], &["party 3", "9 items", "--max-peer-items is 4"]),
        (&["--policy", "most.toml"], &["party 3", "9 items, more than 4", "most.toml"]),
    ];
    for (more, words) in cases {
        let [north, south, east] = several.run("count", files, [more, &[], &[]]);
        north.bad(8, words);
        for ended in [south, east] {
            ended.bad(5, &["party 1", "its policy refuses this run"]);
        }
    }
    let [out, ..] = several.good("count", files, [&["--policy", "one.toml"], &[], &[]]);
    assert_eq!(out, "matches\n3\n");
    // A refusal known from the start comes before any contact.
    let mut alone = several.party(NORTH, "count", &world.path("none.csv"), &["--policy", "none.toml"]);
    run(&mut alone).bad(8, &["party 3", "by \"operations\""]);
}

#[test]
fn a_demo_of_several_parties_shows_what_the_leader_learns() {
    for parties in ["2", "4"] {
        let text = run(veilset().args(["demo", "--parties", parties])).good();
        for words in
            ["North (leader): ada@example.org", "    cleo@example.org", "    gus@example.org", "count: "]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(text.contains("West"), parties == "4", "{text}");
    }
    run(veilset().args(["demo", "--parties", "9"])).bad(2, &["--parties", "2..=8"]);
}

/// The same address in other words: the last two numbers as one, as resolvers read them.
fn in_three_parts(address: &str) -> String {
    let address: SocketAddrV4 = address.parse().unwrap();
    let [a, b, c, d] = address.ip().octets();
    format!("{a}.{b}.{}:{}", u16::from_be_bytes([c, d]), address.port())
}
