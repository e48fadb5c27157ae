//! `veilset plan` and `veilset calibrate`: the choice of protocols, and the speeds of this machine.

use crate::common::{World, csv, run, veilset};
use serde_json::Value;
use std::process::Command;

fn plan(world: &World, arguments: &str) -> Command {
    let mut command = world.veilset();
    command.arg("plan").args(arguments.split(' '));
    command
}

fn planned(world: &World, arguments: &str) -> Value {
    serde_json::from_str(&run(&mut plan(world, &format!("{arguments} --json"))).good()).unwrap()
}

#[test]
fn candidates_come_with_what_they_take_and_the_best_comes_first() {
    let world = World::new();
    for (arguments, chosen) in [
        ("--op intersect --n 1000000", "vole"),
        ("--op intersect --n 300 --net wan", "dh-psi"),
        ("--op union --n 100000 --net 10Mbps,80ms", "dh"),
        ("--op intersect --n 1000000 --assume ddh", "cm20"),
        ("--op intersect --n 1000 --malicious-sender", "cm20"),
        ("--op union --n 1000 --reveal-count-to-sender", "sigma-dh"),
        ("--op intersect --n 1000 --group p256", "dh-psi over p256"),
    ] {
        let plan = planned(&world, &format!("{arguments} --threads 1"));
        assert_eq!(plan["chosen"], chosen, "{arguments}");
        let all = plan["candidates"].as_array().unwrap();
        let seconds: Vec<f64> = all.iter().map(|c| c["seconds"].as_f64().unwrap()).collect();
        assert!(seconds.windows(2).all(|two| two[0] <= two[1]) && seconds[0] > 0.0, "{arguments}");
        assert!(all.iter().all(|c| !c["assumptions"].as_array().unwrap().is_empty()));
        assert!(all.iter().all(|c| c["bytes_to_receiver"].as_u64().unwrap() > 0));
        // A protocol that is used only on request is shown, but not chosen while there is another one.
        let on_request = |c: &Value| c["may_be_picked"] == false;
        assert!(all.iter().find(|c| c["protocol"] == "krtw19-plain").is_none_or(on_request));
        assert!(all.iter().find(|c| c["protocol"] == "poprf").is_none_or(on_request));
        // The output for people agrees.
        let text = run(&mut plan_text(&world, arguments)).good();
        assert!(text.contains(&format!("chosen: {chosen}, ")), "{text}");
        assert!(text.contains("the receiver learns ") && text.contains("it assumes: "), "{text}");
    }
}

/// Large numbers can be written as powers.
#[test]
fn a_number_of_items_may_be_a_power() {
    let world = World::new();
    let sizes = |n: &str| {
        planned(&world, &format!("--op count --threads 1 --n {n}"))["candidates"][0]["bytes_to_receiver"]
            .clone()
    };
    assert_eq!(sizes("1e4"), sizes("10000"));
    assert_eq!(sizes("2^12"), sizes("4096"));
    for wrong in ["1e9999", "2^64", "1e", "^3", "1.5e3", "x", "1e6e1", "2^2^2", "99999999999"] {
        let ended = run(&mut plan(&world, &format!("--op count --n {wrong}")));
        ended.bad(2, &["a whole number from 0 to ", "like 1000000, 1e6 or 2^20, is needed"]);
    }
}

fn plan_text(world: &World, arguments: &str) -> Command {
    plan(world, &format!("{arguments} --threads 1"))
}

#[test]
fn what_is_preferred_and_paid_for_decides() {
    let world = World::new();
    let first =
        |arguments: &str| planned(&world, &format!("--op union --n 500000 {arguments}"))["chosen"].clone();
    assert_eq!((first("--prefer time"), first("--prefer bytes")), ("osn".into(), "dh".into()));
    let paid = "--prefer dollars --dollars-per-gigabyte";
    assert_eq!((first(&format!("{paid} 0")), first(&format!("{paid} 9"))), ("osn".into(), "dh".into()));
    // The roles are distinguished.
    let plan = planned(&world, "--op intersect --n 10 --n-peer 20 --role sender");
    assert_eq!((&plan["n_receiver"], &plan["n_sender"]), (&20.into(), &10.into()));
}

/// Jobs and runs of several parties.
#[test]
fn jobs_and_several_parties_are_planned_too() {
    let world = World::new();
    let chosen = |arguments: &str| {
        let plan = planned(&world, &format!("{arguments} --threads 1"));
        let all = plan["candidates"].as_array().unwrap().clone();
        (plan["chosen"].as_str().unwrap().to_string(), all[0]["seconds"].as_f64().unwrap(), all.len())
    };
    let (whole, seconds, all) = chosen("--op intersect --n 1000000");
    let (job, in_shards, fewer) = chosen("--op intersect --n 1000000 --shards 4");
    assert_eq!((whole, job), ("vole".into(), "vole".into()));
    // cm20 does not run in shards.
    assert!(in_shards > seconds && fewer < all, "{in_shards} {seconds} {fewer} {all}");
    let (protocol, of_three, only) = chosen("--op union --parties 3 --n 10000");
    let (_, of_four, _) = chosen("--op union --parties 4 --n 10000");
    assert!(protocol == "mpsu" && only == 1 && of_four > of_three, "{protocol} {of_three} {of_four}");
    let text = run(&mut plan_text(&world, "--op count --parties 3 --n 1000")).good();
    for words in [
        "3 parties with 1000 items each",
        "the leader learns ",
        "the other parties learn ",
        "mpsi-ca",
        "A leader that",
    ] {
        assert!(text.contains(words), "{text}");
    }
    run(&mut plan(&world, "--op sum --parties 3 --n 10")).bad(2, &["two parties only", "--parties"]);
    run(&mut plan(&world, "--op union --parties 3 --n 10 --assume ddh"))
        .bad(2, &["no protocol computes union", "by mpsu on lpn. Add to --assume"]);
    run(&mut plan(&world, "--op union --parties 3 --n 10 --n-peer 5")).bad(2, &["--n-peer", "--parties"]);
    run(&mut plan(&world, "--op sum --n 10 --shards 4")).bad(2, &["no protocol computes sum"]);
}

#[test]
fn what_cannot_be_planned_is_said() {
    let world = World::new();
    run(&mut plan(&world, "--op sum --n 10 --speeds none.json")).bad(2, &["none.json", "veilset calibrate"]);
    let nothing = "--op id --n 100 --assume ddh";
    let needs = "by dh, poprf, osn, krtw19, krtw19-plain on lpn. Add to --assume";
    run(&mut plan(&world, nothing)).bad(2, &["no protocol computes id", needs]);
    let nothing = "--op count --n 100 --assume lpn --group p256";
    run(&mut plan(&world, nothing)).bad(2, &["no protocol computes count", "on ddh"]);
    // A run fails with the same message.
    let file = world.write("f.csv", csv(0..3));
    let mut id = world.party(0, "id", &file, &["--assume", "ddh", "--listen", "127.0.0.1:0"]);
    run(&mut id).bad(2, &["no protocol computes id", needs]);
    run(&mut plan(&world, "--op sum --n 100 --malicious-sender")).bad(2, &["no protocol computes sum"]);
    run(&mut plan(&world, "--op sum --n 100 --assume dlog")).bad(2, &["dlog", "ddh, lpn, rlwe, dcr"]);
    run(&mut plan(&world, "--op sum --n 100 --dollars-per-hour=-1")).bad(2, &["--dollars-per-hour"]);
    run(&mut plan(&world, "--op sum --n 100 --net fast")).bad(2, &["fast"]);
    run(veilset().args(["plan", "--op", "sum"])).bad(2, &["--n"]);
}

#[test]
fn a_machine_is_measured_once_and_its_file_believed_if_it_fits() {
    let world = World::new();
    let file = world.path("speeds/of-this.json");
    let named = file.display().to_string();
    let calibrate = |more: &[&str]| {
        let mut command = world.veilset();
        command.arg("calibrate").args(["--speeds", &named]).args(more);
        command
    };
    let speeds: Value = serde_json::from_str(&run(&mut calibrate(&["--json"])).good()).unwrap();
    assert!(speeds.as_object().unwrap().values().all(|time| time.as_f64().unwrap() > 0.0), "{speeds}");
    let plan = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(&mut plan_text(&world, &format!("--op count --n 100000 --speeds {named}")))
    };
    let seconds = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let plan = planned(&world, &format!("--op count --n 100000 --speeds {named}"));
        let dh = plan["candidates"].as_array().unwrap().iter().find(|c| c["protocol"] == "dh").cloned();
        dh.unwrap()["seconds"].as_f64().unwrap()
    };
    let text = std::fs::read_to_string(&file).unwrap();
    let ended = plan(&text);
    assert!(!ended.err.contains("calibrate"), "{}", ended.err);
    // If a multiplication on the curve takes a thousand times as long, so does a count.
    let slow = text.lines().map(|line| match line.contains("multiplication in curve25519") {
        true => "\"multiplication in curve25519\": 3000000000,",
        false => line,
    });
    let slow: Vec<&str> = slow.collect();
    assert!(seconds(&slow.join("\n")) > 10.0 * seconds(&text));
    for damaged in ["", "{}", &text[..text.len() / 2], &text.replace("\"tag\"", "\"gat\"")] {
        let ended = plan(damaged);
        assert!(ended.err.contains("damaged") && ended.err.contains("veilset calibrate"), "{}", ended.err);
        assert!(ended.good().contains("chosen: dh,"));
    }
    let other = plan(&text.replace("\"processor\": \"", "\"processor\": \"another "));
    assert!(other.err.contains("another machine"), "{}", other.err);
    // A folder takes the place of the file.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    run(&mut calibrate(&[])).bad(7, &["the speeds cannot be written", "of-this.json"]);
}

/// The cases: both sides leave the choice open, only one does, and neither accepts the other's protocol.
#[test]
fn the_protocol_is_picked_when_the_parties_meet() {
    let world = World::new();
    let ours = world.write("ours.csv", csv(0..3000));
    let theirs = world.write("theirs.csv", csv(1000..5000));
    let (out, report) = (world.path("out.csv"), world.path("report.json"));
    let [out_name, report_name] = [&out, &report].map(|path| path.to_str().unwrap());
    let files = [ours.as_path(), theirs.as_path()];
    let run = |ours: &[&str], theirs: &[&str]| {
        let receiver = [&["--output", out_name, "--report", report_name, "--force"][..], ours].concat();
        let [said, _] = world.good("intersect", files, [&receiver, theirs]);
        assert_eq!(world.read("out.csv").lines().count(), 2001, "{said}");
        let report: Value = serde_json::from_str(&world.read("report.json")).unwrap();
        (report["protocol"].as_str().unwrap().to_string(), report["picked"].clone())
    };
    let (picked, why) = run(&["--protocol", "auto"], &["--protocol", "auto"]);
    assert_eq!(picked, "dh-psi");
    let words = ["shows least to a peer that deviates", "the best for time"];
    assert!(words.iter().any(|words| why.as_str().unwrap().contains(words)), "{why}");
    let auto = ["--protocol", "auto"];
    assert_eq!(run(&auto, &["--protocol", "dh"]), ("dh".into(), Value::Null));
    assert_eq!(run(&["--protocol", "cm20"], &auto), ("cm20".into(), Value::Null));
    // The choice excludes learning parity with noise, and minimises bytes.
    let few = ["--protocol", "auto", "--assume", "ddh", "--prefer", "bytes"];
    assert_eq!(run(&few, &auto).0, "dh-psi");
    let refused =
        world.run("intersect", files, [&["--protocol", "auto", "--assume", "ddh"], &["--protocol", "vole"]]);
    for ended in refused {
        ended.bad(4, &["--protocol", "vole", "dh-psi"]);
    }
    // No option is typed, with the same effect. Where a policy allows less, the choice is made among the remaining protocols.
    let (picked, why) = run(&[], &[]);
    assert!(picked == "dh-psi" && why.is_string(), "{picked}");
    let policy = world.write("policy.toml", "protocols = [\"vole\"]\n").display().to_string();
    assert_eq!(run(&["--policy", &policy], &[]).0, "vole");
    let policy = world.write("policy.toml", "assumptions = [\"ddh\"]\n").display().to_string();
    assert_eq!(run(&["--policy", &policy, "--prefer", "bytes"], &[]).0, "dh-psi");
    for forbidden in [&["--protocol", "vole"][..], &["--assume", "lpn,ddh", "--protocol", "vole"]] {
        let mut typed = world.party(0, "intersect", &ours, &[forbidden, &["--policy", &policy]].concat());
        crate::common::run(typed.args(["--listen", "127.0.0.1:0"]))
            .bad(8, &["\"assumptions\"", "vole rests on lpn"]);
    }
    std::fs::write(world.path("policy.toml"), "assumptions = []\n").unwrap();
    let mut nothing = world.party(0, "intersect", &ours, &["--policy", &policy, "--listen", "127.0.0.1:0"]);
    crate::common::run(&mut nothing).bad(8, &["\"assumptions\"", "policy.toml"]);
    std::fs::write(world.path("policy.toml"), "malicious-sender = true\n").unwrap();
    let mut nothing = world.party(0, "intersect", &ours, &["--policy", &policy, "--listen", "127.0.0.1:0"]);
    crate::common::run(&mut nothing).bad(8, &["\"malicious-sender\"", "--malicious-sender"]);
    let more = ["--protocol", "vole", "--assume", "ddh", "--listen", "127.0.0.1:0"];
    let mut beyond = world.party(0, "intersect", &ours, &more);
    crate::common::run(&mut beyond).bad(2, &["vole rests on lpn", "--assume"]);
}
