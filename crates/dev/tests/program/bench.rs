//! `veilset-dev bench`: plausible figures, and a clean end even if parties die.

use crate::common::{Folder, veilset_dev};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use veilset_testing::program::{Running, run, signal};

fn bench(arguments: &str) -> Command {
    let mut command = veilset_dev();
    command.arg("bench").args(arguments.split(' '));
    command
}

fn figures(arguments: &str) -> Value {
    serde_json::from_str(&run(&mut bench(&format!("{arguments} --json"))).good()).unwrap()
}

fn number(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap_or_else(|| panic!("{name} in {figures}"))
}

#[test]
fn all_that_the_protocols_offer_can_be_measured() {
    let kinds = run(veilset_dev().arg("bench-kinds")).good();
    let kinds: Vec<Value> = serde_json::from_str(&kinds).unwrap();
    let mut offered = 0;
    for protocol in veilset::protocols::ALL {
        let each = protocol.offers.iter().map(|offer| 1 + usize::from(offer.malicious_sender));
        offered += protocol.groups.len() * each.sum::<usize>();
    }
    assert_eq!(kinds.len(), offered);
    let mut draw = veilset_testing::Draw::new("bench");
    for kind in draw.of_each(1, kinds, |kind| kind["protocol"].to_string()) {
        let [op, protocol, group] = ["op", "protocol", "group"].map(|key| kind[key].as_str().unwrap());
        let against = kind["malicious_sender"].as_bool().unwrap();
        let more = if against { " --malicious-sender" } else { "" };
        let f = figures(&format!("--op {op} --protocol {protocol} --group {group} --n 30 --threads 1{more}"));
        assert_eq!(
            (&f["op"], &f["protocol"], &f["group"], &f["malicious_sender"]),
            (&op.into(), &protocol.into(), &group.into(), &against.into())
        );
    }
}

#[test]
fn all_operations_give_figures_that_can_be_true() {
    let kinds =
        [("intersect", "dh"), ("intersect", "dh-psi"), ("union", "dh"), ("count", "dh"), ("sum", "dh")];
    for (operation, protocol) in kinds {
        for one_sided in [false, true] {
            let more = if one_sided { " --one-sided" } else { "" };
            let f = figures(&format!(
                "--op {operation} --protocol {protocol} --n 300 --n-sender 500 --threads 1{more}"
            ));
            assert_eq!(
                (&f["op"], &f["protocol"], &f["net"]),
                (&operation.into(), &protocol.into(), &"none".into())
            );
            assert_eq!(
                (&f["n_receiver"], &f["n_sender"], &f["threads"]),
                (&300.into(), &500.into(), &1.into())
            );
            assert_eq!(
                (&f["one_sided"], &f["version"]),
                (&one_sided.into(), &env!("CARGO_PKG_VERSION").into())
            );
            for name in ["seconds", "receiver_cpu_seconds", "sender_cpu_seconds", "peak_rss_mb"] {
                assert!(number(&f, name) > 0.0, "{name} in {f}");
            }
            for name in ["one_sided_receiver_seconds", "two_sided_sender_cpu_seconds"] {
                assert_eq!(f[name].is_f64(), one_sided, "{name} in {f}");
            }
            // At least a point of 32 bytes per item, but less than ten times that; dh-psi answers with points.
            let answers = if protocol == "dh" { 500 } else { 300 };
            for (name, n) in [("bytes_receiver_to_sender", 300), ("bytes_sender_to_receiver", answers)] {
                let bytes = f[name].as_u64().unwrap();
                assert!((32 * n..320 * n).contains(&bytes), "{name} in {f}");
            }
        }
    }
}

#[test]
fn sets_may_be_empty_or_have_nothing_in_common() {
    for (n_receiver, n_sender, more) in
        [(0, 0, ""), (0, 3, ""), (3, 0, " --one-sided"), (20, 20, " --overlap 0"), (20, 9, " --overlap 1")]
    {
        let f = figures(&format!("--op union --n {n_receiver} --n-sender {n_sender} --item-bytes 200{more}"));
        assert_eq!((&f["n_receiver"], &f["n_sender"]), (&n_receiver.into(), &n_sender.into()));
    }
}

#[test]
fn an_emulated_network_is_no_faster_than_it_says() {
    let f = figures("--op count --n 3000 --net 400Mbps,40ms");
    let most = number(&f, "bytes_receiver_to_sender").max(number(&f, "bytes_sender_to_receiver"));
    // The least time: that of the bytes, and one round trip of 40 ms.
    assert!(number(&f, "seconds") > most * 8.0 / 400e6 + 0.04, "{f}");
    assert_eq!(f["net"], "400Mbps,40ms");
}

#[test]
fn people_get_a_line_for_each_figure() {
    let text = run(&mut bench("--op count --n 10")).good();
    assert!(text.lines().any(|line| line.split_whitespace().eq(["op", "\"count\""])), "{text}");
}

#[test]
fn wrong_options_are_refused_with_the_next_step() {
    for (more, words) in [
        ("--net fast", "lan, wan, or like 400Mbps,80ms"),
        ("--net 0Mbps,1ms", "lan, wan, or like 400Mbps,80ms"),
        ("--overlap 1.5", "from 0 to 1"),
        ("--overlap NaN", "from 0 to 1"),
        ("--overlap half", "from 0 to 1"),
        ("--item-bytes 7", "8..=16000"),
        ("--n-sender 268435457", "a whole number from 0 to 268435456"),
        ("--threads 0", "1..=1024"),
    ] {
        run(&mut bench(&format!("--op union --n 10 {more}")))
            .bad(2, &[more.split(' ').next().unwrap(), words]);
    }
    run(&mut bench("--op xor --n 10")).bad(2, &["--op", "intersect, union, count, sum"]);
}

#[test]
fn tables_of_a_paper_are_measured_once_and_shown() {
    let folder = Folder::new();
    let tables = |more: &str| {
        let mut command = folder.veilset_dev();
        command.args("bench tables --paper czzdl --table 4 --log-n 8 --net LAN --out results".split(' '));
        command.args(more.split_whitespace());
        command
    };
    let read = || folder.read("results/czzdl-4.json");
    let first = run(&mut tables(""));
    assert!(first.err.contains("1/2 czzdl table 4: bench --op intersect --protocol dh "), "{}", first.err);
    let out = first.good();
    assert!(out.contains("2 measured, 0 were there") && out.contains("results/tables.html"), "{out}");
    let results: Value = serde_json::from_str(&read()).unwrap();
    let points = results["points"].as_array().unwrap();
    assert_eq!((points.len(), &results["source"]), (2, &"CZZDL, Table 4".into()));
    for point in points {
        assert!(number(point, "seconds") > 0.0 && number(point, "predicted_seconds") > 0.0, "{point}");
        assert!(
            number(point, "paper_seconds") < 0.05 && point["runs"].as_array().unwrap().len() == 1,
            "{point}"
        );
    }
    for (page, words) in [("tables.md", "| 2^8 | LAN |"), ("tables.html", "<svg role=\"img\"")] {
        let text = folder.read(&format!("results/{page}"));
        assert!(text.contains("CZZDL, Table 4") && text.contains(words), "{text}");
    }
    // Existing points are measured again only on request.
    let before = read();
    let out = run(&mut tables("--quiet")).good();
    assert!(out.contains("0 measured, 2 were there") && read() == before, "{out}");
    let out = run(&mut tables("--op intersect --runs 2")).good();
    assert!(out.contains("2 measured, 0 were there"), "{out}");
    let out = run(&mut tables("--again")).good();
    assert!(out.contains("2 measured") && read() != before, "{out}");
    let out = run(&mut tables("--most-seconds 0.000001")).good();
    assert!(out.contains("0 measured, 0 were there, 2 left out"), "{out}");
    // Interrupted measurements are completed: here, the file has only the first point.
    let mut results: Value = serde_json::from_str(&read()).unwrap();
    results["points"].as_array_mut().unwrap().truncate(1);
    folder.write("results/czzdl-4.json", results.to_string());
    let out = run(&mut tables("")).good();
    assert!(out.contains("1 measured, 1 were there"), "{out}");
    // Files that are damaged, or from another machine, are refused and stay.
    for (text, words) in [
        (read()[..100].to_string(), "damaged"),
        (read().replace("\"cores\": ", "\"cores\": 99"), "of another machine"),
    ] {
        folder.write("results/czzdl-4.json", &text);
        run(&mut tables("")).bad(2, &["czzdl-4.json", words, "--out"]);
        assert_eq!(read(), text);
    }
    folder.write("file", "");
    let mut command = folder.veilset_dev();
    run(command.args(["bench", "tables", "--out", "file/results"])).bad(7, &["file/results", "--out"]);
}

#[test]
fn an_interrupt_ends_the_tables_and_keeps_what_is_measured() {
    let folder = Folder::new();
    let mut command = folder.veilset_dev();
    command.args("bench tables --paper cm20 --table 2 --log-n 16 --net LAN,1Mbps --out results".split(' '));
    let mut tables = Running::start(&mut command);
    tables.until("2/2 cm20 table 2: ");
    let found = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let [bench] = children(tables.id())[..] else { return None };
        Some(children(bench)).filter(|parties| parties.len() == 2)
    });
    let parties = found.expect("two parties");
    tables.signal("INT");
    tables.end().bad(130, &["stopped on request"]);
    assert!(parties.iter().all(|party| !std::path::Path::new(&format!("/proc/{party}")).exists()));
    let results: Value = serde_json::from_str(&folder.read("results/cm20-2.json")).unwrap();
    assert_eq!(results["points"].as_array().unwrap().len(), 1);
}

#[test]
fn tables_that_are_not_there_are_refused() {
    for (arguments, words) in [
        ("tables --paper rsa78", "possible values: krtw19, dc17, cm20, gnt23, czzdl, alone"),
        ("tables --paper cm20 --table 9", "there is no table 9"),
        ("tables --paper cm20 --log-n 3", "--log-n 16,18,20,22,24"),
        ("tables --beside /bin/true", "this is no veilset-dev"),
        ("tables --most-seconds 0", "give a number of seconds above 0"),
        ("tables --most-seconds NaN", "give a number of seconds above 0"),
        ("tables --quick --log-n 8", "cannot be used with"),
        ("--op union --n 3 tables", "cannot be used with"),
    ] {
        let folder = Folder::new();
        let mut command = bench(arguments);
        run(command.current_dir(folder.path(""))).bad(2, &[words]);
    }
}

/// Returns the child processes of a process.
fn children(parent: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

#[test]
fn a_party_that_dies_or_an_interrupt_ends_everything() {
    // A program keeps an ignored signal ignored, and shells start background jobs that way.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    assert!(ignored & (1 << (2 - 1)) == 0, "SIGINT is ignored here: start the tests in the foreground");
    // (which process gets which signal, exit code, words)
    for (which, name, code, words) in [
        (Some(0), "KILL", 2, "use a smaller --n"),
        (Some(1), "KILL", 2, "use a smaller --n"),
        (None, "INT", 130, "stopped on request"),
    ] {
        let folder = Folder::new();
        let before = folder.names();
        let bench = Running::start(bench("--op union --n 300000 --one-sided").env("TMPDIR", folder.path("")));
        let found = (0..2000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            Some(children(bench.id())).filter(|found| found.len() == 2)
        });
        let parties = found.expect("two parties");
        signal(which.map_or(bench.id(), |i: usize| parties[i]), name);
        bench.end().bad(code, &[words]);
        assert_eq!(folder.names(), before);
        for party in parties {
            assert!(!std::path::Path::new(&format!("/proc/{party}")).exists());
        }
    }
}

#[test]
fn a_benchmark_has_figures_for_each_party() {
    for operation in ["union", "intersect", "count"] {
        let words = format!("bench --op {operation} --parties 3 --n 30 --overlap 0.3 --threads 1 --json");
        let text = run(veilset_dev().args(words.split(' '))).good();
        let figures: Value = serde_json::from_str(&text).unwrap();
        let parties = figures["parties"].as_array().unwrap();
        assert_eq!((parties.len(), &figures["op"]), (3, &operation.into()), "{text}");
        let mut most: f64 = 0.0;
        for (party, number) in parties.iter().zip(1..) {
            assert_eq!(party["number"], number);
            for name in ["seconds", "cpu_seconds", "sent", "received", "peak_rss_mb"] {
                assert!(party[name].as_f64().unwrap() > 0.0, "{name} in {text}");
            }
            most = most.max(party["seconds"].as_f64().unwrap());
        }
        assert_eq!(figures["seconds"], most);
    }
    let text = run(veilset_dev().args("bench --op count --parties 3 --n 0".split(' '))).good();
    assert_eq!(text.lines().filter(|line| line.starts_with("parties ")).count(), 3, "{text}");
}

#[test]
fn benchmarks_of_several_parties_refuse_what_is_for_two() {
    for (more, words) in [
        ("--op union --parties 3 --one-sided", &["--one-sided does not go with --parties", "Omit"][..]),
        ("--op union --parties 3 --n-sender 3", &["--n-sender", "--n says"]),
        ("--op union --parties 3 --group p256", &["--group", "one group"]),
        ("--op intersect --parties 3 --malicious-sender", &["--malicious-sender", "withstands"]),
        ("--op union --parties 3 --protocol dh", &["--protocol dh is for two parties", "mpsu"]),
        ("--op sum --parties 3", &["sum is for two parties"]),
        ("--op union --parties 2", &["--parties", "3..=32"]),
        ("--op union --protocol mpsu", &["--protocol mpsu", "three parties or more"]),
    ] {
        let words: Vec<&str> = words.to_vec();
        run(veilset_dev().arg("bench").args(more.split(' ')).args(["--n", "10"])).bad(2, &words);
    }
}
