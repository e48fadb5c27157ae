//! Runs that are held to a check, and small sets.

use crate::common::{Ended, RECEIVER, SENDER, Words, World, both, connect, csv, listen, run};
use serde_json::Value;
use std::path::Path;

/// Two parties that check, then run, with these files and options.
struct Pair<'a> {
    world: &'a World,
    operation: &'a str,
}

impl Pair<'_> {
    fn go(&self, check: &str, files: [&Path; 2], more: [Words; 2]) -> [Ended; 2] {
        let operation = format!("{check}{}", self.operation);
        let [receiver, sender] =
            [RECEIVER, SENDER].map(|who| self.world.party(who, &operation, files[who], more[who]));
        both(receiver, sender)
    }
}

fn good(ended: [Ended; 2]) -> [String; 2] {
    ended.map(Ended::good)
}

#[test]
fn a_run_is_held_to_its_check_and_to_the_protocol_of_the_check() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..40)), world.write("s.csv", csv(20..70))];
    let files = [files[0].as_path(), files[1].as_path()];
    let pair = Pair { world: &world, operation: "intersect" };
    // The check uses a protocol that is picked only on request; the run leaves the choice open.
    let checked = ["--checked", "r.json"];
    let by = ["--protocol", "poprf", "--checked", "r.json"];
    let [here, there] = pair.go("check ", files, [&by, &["--protocol", "poprf"]]).map(Ended::good);
    assert!(here.contains("poprf is fixed: our side allows nothing else"), "{here}");
    assert!(here.contains("kept in r.json: with --checked r.json, a run is held to it"), "{here}");
    assert!(there.contains("is fixed") && !there.contains("--checked r.json"), "{there}");
    let report = ["--checked", "r.json", "--protocol", "poprf", "--output", "out.csv", "--report", "r1.json"];
    let [here, there] = pair.go("", files, [&report, &["--protocol", "poprf"]]);
    good([here, there]);
    // Where the choice is open, the check says so, and both can be held to the protocol that it showed.
    let [here, there] = pair.go("check ", files, [&["--checked", "r2.check"], &["--checked", "s.json"]]);
    let (here, there) = (here.good(), there.good());
    for text in [&here, &there] {
        assert!(
            text.contains("a run picks again, and may pick another unless it is held to this check"),
            "{text}"
        );
    }
    let shown = here.lines().find_map(|line| line.trim().split_once(" was picked: ")).unwrap().0.to_string();
    std::fs::rename(world.path("r2.check"), world.path("r.json")).unwrap();
    let out = ["--checked", "r.json", "--output", "out.csv", "--report", "r2.json", "--force"];
    let [here, there] = pair.go("", files, [&out, &["--checked", "s.json"]]);
    good([here, there]);
    let report: Value = serde_json::from_str(&world.read("r2.json")).unwrap();
    assert!(shown.starts_with(report["protocol"].as_str().unwrap()), "{shown}");
    // The log records that the run was held to a check, and the protocols that each side allowed.
    let log = std::fs::read_to_string(world.home("audit.jsonl")).unwrap();
    let starts: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = starts.iter().rfind(|line| line["event"] == "start" && line["role"] == "receiver").unwrap();
    assert_eq!(last["checked"], true);
    assert_eq!(last["allowed"]["ours"], serde_json::json!([shown]));

    // Differences are named, on the side that is held to its check, before any data is sent.
    let fewer = world.write("fewer.csv", csv(0..39));
    let [here, there] = pair.go("", [&fewer, files[1]], [&checked, &[]]);
    here.bad(8, &["the size of our set: 39, in the check 40", "--checked, r.json", "check it again"]);
    there.bad(5, &["its policy refuses this run"]);
    let [here, there] = pair.go("", [files[0], &fewer], [&checked, &[]]);
    here.bad(8, &["the size of the peer's set: 39, in the check 50"]);
    there.bad(5, &[]);
    let [here, there] =
        pair.go("", files, [&["--checked", "r.json", "--normalize", "trim"], &["--normalize", "trim"]]);
    here.bad(8, &["normalisation of keys: utf8, trim, in the check utf8"]);
    there.bad(5, &[]);
    // Refused without a peer: another protocol, another file.
    let alone = |more: Words| {
        run(world.party(RECEIVER, "intersect", files[0], more).args(["--listen", "127.0.0.1:0"]))
    };
    alone(&["--checked", "r.json", "--protocol", "dc17"])
        .bad(8, &["was checked by ", &shown, "Run it as it was checked"]);
    alone(&["--checked", "r.json", "--key", "cost"]).bad(8, &["our key: cost, in the check id"]);
    alone(&["--checked", "none.json"]).bad(2, &["none.json", "veilset check"]);
    world.write("broken.json", world.read("r.json").replace("40", "41"));
    alone(&["--checked", "broken.json"]).bad(2, &["broken.json", "damaged"]);
    // A check never replaces an existing file, and cannot share a path with another file of the run.
    let check = |more: Words| {
        run(world.party(RECEIVER, "check intersect", files[0], more).args(["--listen", "127.0.0.1:0"]))
    };
    check(&checked).bad(7, &["r.json exists, and a check is not replaced"]);
    check(&["--checked", "r.json", "--force"]).bad(7, &["r.json exists, and a check is not replaced"]);
    check(&["--checked", "-"]).bad(2, &["--checked takes the name of a file"]);
    check(&["--checked", "r.pem"]).bad(2, &["--identity and --checked are both r.pem"]);
    // An incomplete check leaves no file.
    let before = world.names();
    let (receiver, address) =
        listen(world.party(RECEIVER, "check intersect", files[0], &["--checked", "new.json"]));
    connect(world.party(SENDER, "count", files[1], &[]), &address).end().bad(4, &[]);
    receiver.end().bad(4, &[]);
    assert_eq!(world.names(), before);
}

#[test]
fn small_sets_are_refused_where_our_rows_show_unless_that_is_allowed() {
    let mut world = World::new();
    world.allow_small = false;
    let [one, nine, ten, many] = [("1.csv", 1), ("9.csv", 9), ("10.csv", 10), ("50.csv", 50)]
        .map(|(name, n)| world.write(name, csv(0..n)));
    let pair = Pair { world: &world, operation: "count" };
    for small in [&one, &nine] {
        let [here, there] = pair.go("", [small, &many], [&[], &[]]);
        here.bad(5, &["its policy refuses this run"]);
        let words =
            ["and sets of fewer than 10 are refused", "--allow-small", "\"min-peer-size\" in the policy"];
        there.bad(8, &words);
        // A check gives the same message.
        pair.go("check ", [small, &many], [&[], &[]])[1].bad(8, &words);
        // The sender learns nothing about the receiver's rows, unless it gets the result too.
        good(pair.go("", [&many, small], [&[], &[]]));
        pair.go("", [&many, small], [&["--both"], &["--both"]])[0].bad(8, &words);
        good(pair.go("", [small, &many], [&[], &["--allow-small"]]));
        let [_, text] = pair.go("check ", [small, &many], [&[], &["--allow-small"]]).map(Ended::good);
        assert!(
            text.contains("if it has fewer than 10 items, the run is accepted (--allow-small)"),
            "{text}"
        );
    }
    let [here, there] = pair.go("check ", [&ten, &many], [&[], &[]]).map(Ended::good);
    assert!(
        there.contains("if it has fewer than 10 items, the run is refused, unless the policy"),
        "{there}"
    );
    assert!(!here.contains("fewer than"), "{here}");
    good(pair.go("", [&ten, &many], [&[], &[]]));
    // A rule of the policy takes precedence, whether its bound is lower or higher.
    world.write("low.toml", "min-peer-size = 1\n");
    good(pair.go("", [&one, &many], [&[], &["--policy", "low.toml"]]));
    world.write("any.toml", "min-peer-size = 0\n");
    good(pair.go("", [&one, &many], [&["--pad-to", "5"], &["--policy", "any.toml"]]));
    world.write("high.toml", "min-peer-size = 20\n");
    let high: Words = &["--policy", "high.toml", "--allow-small"];
    let [_, text] = pair.go("check ", [&many, &many], [&[], high]).map(Ended::good);
    assert!(text.contains("if it has fewer than 20 items, the run is refused by the policy"), "{text}");
    pair.go("", [&ten, &many], [&[], high])[1].bad(8, &["by \"min-peer-size\"", "fewer than 20"]);
    // A small set that is padded goes unnoticed.
    good(pair.go("", [&one, &many], [&["--pad-to", "10"], &[]]));
}

/// The planner applies the whole policy, including rules that need the log.
#[test]
fn a_filter_that_may_not_be_answered_is_no_candidate() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..40)), world.write("s.csv", csv(20..70))];
    let files = [files[0].as_path(), files[1].as_path()];
    let pair = Pair { world: &world, operation: "intersect" };
    world.write("two.toml", "protocols = [\"dc17\", \"poprf\"]\n");
    world.write("none.toml", "protocols = [\"dc17\", \"poprf\"]\nmax-filter-runs = 0\n");
    let [_, open] = pair.go("check ", files, [&["--policy", "two.toml"], &["--policy", "two.toml"]]);
    assert!(open.good().contains("a run picks again"));
    let [other, fixed] = pair.go("check ", files, [&["--policy", "two.toml"], &["--policy", "none.toml"]]);
    assert!(fixed.err.contains("dc17 is left out: our policy (none.toml) refuses this run"), "{}", fixed.err);
    let (other, fixed) = (other.good(), fixed.good());
    assert!(fixed.contains("poprf is fixed"), "{fixed}");
    // The other side allows more, and its text does not deny that.
    assert!(other.contains("both sides allow only poprf now"), "{other}");
    // Without an alternative, the run is refused with the reason.
    let [_, named] =
        pair.go("check ", files, [&["--protocol", "dc17"], &["--policy", "none.toml", "--protocol", "dc17"]]);
    named.bad(8, &["by \"max-filter-runs\""]);
}

/// A filter determines the group of its encryption, which no option names.
#[test]
fn a_run_by_a_filter_is_held_to_its_check() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..40)), world.write("s.csv", csv(20..70))];
    let files = [files[0].as_path(), files[1].as_path()];
    let pair = Pair { world: &world, operation: "count" };
    for cipher in ["elgamal", "paillier2048"] {
        let filter = format!("{cipher}.filter");
        let mut build = world.veilset();
        build.args(["filter", "build", "r.csv", "--key", "id", "--for", "50", "--output", &filter]);
        run(build.args(["--cipher", cipher, "--identity", "r.pem"])).good();
        let check = format!("{cipher}.json");
        let ours: Words = &["--filter", &filter, "--checked", &check];
        let theirs: Words = &["--cipher", cipher];
        good(pair.go("check ", files, [ours, theirs]));
        let [result, _] = good(pair.go("", files, [ours, theirs]));
        assert!(result.contains("20"), "{result}");
    }
    let mixed: Words = &["--filter", "elgamal.filter", "--checked", "paillier2048.json"];
    pair.go("", files, [mixed, &["--cipher", "elgamal"]])[0].bad(8, &["group of the protocol"]);
}
