//! Completion in shells: the answers to their scripts, and bash with its script.

use crate::common::{Ended, Running, World, run, veilset};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Creates a world with a table, and an address book with two peers.
fn world() -> World {
    let world = World::new();
    world.write("a.csv", "email,first name,\"last, first\",amount,email2\nann@a.org,Ann,x,7,secret\n");
    let [r, s] = &world.fingerprints;
    run(world.veilset().args(["peer", "add", "hospital-b", s, "b.example:7000"])).good();
    run(world.veilset().args(["peer", "add", "bank", r])).good();
    world
}

/// Returns the program's answer to the script of a shell that passes these words. It prints nothing else, even without
/// candidates.
fn asked(world: &World, shell: &str, words: &[&str]) -> String {
    let ended = run(world.veilset().env("VEILSET_COMPLETE", shell).args(["--", "veilset"]).args(words));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{words:?}");
    ended.out
}

/// Returns the lines of the answer to fish, without the descriptions of the values.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    let values = asked(world, "fish", words);
    values.lines().map(|line| line.split_once('\t').map_or(line, |(value, _)| value).to_string()).collect()
}

#[test]
fn columns_of_the_input_are_offered() {
    let world = world();
    let all = ["email", "first name", "\"last, first\"", "amount", "email2"];
    // (words, the answer)
    let cases: [(&[&str], &[&str]); 14] = [
        (&["intersect", "a.csv", "--key", ""], &all),
        (&["check", "intersect", "a.csv", "--key", ""], &all),
        (&["prepare", "a.csv", "--key", "em"], &["email", "email2"]),
        (&["filter", "build", "a.csv", "--key", "a"], &["amount"]),
        (&["filter", "update", "f", "a.csv", "--key", "a"], &["amount"]),
        (&["count", "a.csv", "--key=fi"], &["--key=first name"]),
        (&["count", "a.csv", "--key", "email,a"], &["email,amount"]),
        (&["count", "a.csv", "--key", "email,'\"la"], &["email,\"last, first\""]),
        (&["count", "a.csv", "--key", "email", "--key", "em"], &["email2"]),
        (
            &["intersect", "--key", "email", "a.csv", "--send-columns", "email,"],
            &["email,first name", "email,\"last, first\"", "email,amount", "email,email2"],
        ),
        (&["sum", "a.csv", "--values", "la"], &["last, first"]),
        (&["share", "a.csv", "--values", "am"], &["amount"]),
        // The other party's columns are unknown here.
        (&["intersect", "a.csv", "--receive-columns", ""], &[]),
        (&["intersect", "--key", ""], &[]),
    ];
    for (words, expected) in cases {
        assert_eq!(offered(&world, words), expected, "{words:?}");
    }
}

#[test]
fn the_input_is_read_as_its_options_say() {
    let world = world();
    world.write("b.csv", "id;a,b\n1;2\n");
    world.write("c.data", "{\"id\": 1, \"who\": \"secret\"}\n");
    world.write("~.csv", "x\n");
    std::fs::create_dir(world.path("folder")).unwrap();
    world.write("folder/1.csv", "one\n");
    let cases: [(&[&str], &[&str]); 9] = [
        (&["b.csv"], &["id", "\"a,b\""]),
        (&["b.csv", "--delimiter", ","], &["id;a", "b"]),
        (&["b.csv", "--no-header"], &["1", "2"]),
        (&["--no-header", "a.csv"], &["1", "2", "3", "4", "5"]),
        (&["c.data", "--format=jsonl"], &["id", "who"]),
        (&["folder"], &["one"]),
        (&["~/veilset/home.csv"], &["of_home"]),
        (&["b.csv", "--delimiter", "wrong"], &[]),
        (&["b.xlsx"], &[]),
    ];
    std::fs::write(world.home("home.csv"), "of_home\n").unwrap();
    let home = world.home("").parent().unwrap().to_path_buf();
    for (input, expected) in cases {
        let mut command = world.veilset();
        command.env("HOME", &home).env("VEILSET_COMPLETE", "fish");
        let ended = run(command.args(["--", "veilset", "count"]).args(input).args(["--key", ""]));
        assert_eq!(ended.good().lines().collect::<Vec<_>>(), expected, "{input:?}");
    }
    // The options come from a run file.
    world.write("veilset.toml", "operation = \"intersect\"\ninput = \"a.csv\"\nkey = [\"email\"]\n");
    std::fs::copy(world.path("veilset.toml"), world.path("folder/other.toml")).unwrap();
    assert_eq!(offered(&world, &["run", "veilset.toml", "--send-columns", "a"]), ["amount"]);
    assert_eq!(offered(&world, &["check", "run", "veilset.toml", "--key", "email"]), ["email", "email2"]);
    assert_eq!(offered(&world, &["run", "--polic"]), ["--policy"]);
    assert_eq!(offered(&world, &["run", "folder/other.toml", "--key", ""]), [""; 0]);
    assert_eq!(offered(&world, &["run", "none.toml", "--polic"]), [""; 0]);
}

#[test]
fn peers_of_the_address_book_are_offered() {
    let world = world();
    let [r, s] = &world.fingerprints;
    let both = format!("bank\t{r}\nhospital-b\t{s} at b.example:7000\n");
    assert_eq!(asked(&world, "fish", &["intersect", "a.csv", "--peer", ""]), both);
    assert_eq!(asked(&world, "zsh", &["intersect", "--peer", "b"]), format!("bank:{r}\n"));
    assert_eq!(asked(&world, "elvish", &["check", "sum", "a.csv", "--peer=hos"]), "--peer=hospital-b\n");
    assert_eq!(offered(&world, &["peer", "remove", "h"]), ["hospital-b"]);
    // Another book, a missing one, and one that cannot be read.
    world.write("book.toml", format!("[north]\nfingerprint = \"{r}\"\n"));
    assert_eq!(offered(&world, &["count", "--book", "book.toml", "--peer", ""]), ["north"]);
    assert_eq!(offered(&world, &["count", "--book", "none.toml", "--peer", ""]), [""; 0]);
    std::fs::write(world.home("peers.toml"), "garbage").unwrap();
    assert_eq!(offered(&world, &["count", "--peer", ""]), [""; 0]);
    world.write(
        "parties.toml",
        format!("leader = \"north\"\n[[party]]\nname = \"north\"\nfingerprint = \"{r}\"\n"),
    );
    assert_eq!(
        asked(&world, "fish", &["union", "--parties", "parties.toml", "--me", ""]),
        format!("north\t{r}\n")
    );
}

#[test]
fn only_the_beginning_of_regular_files_is_read_and_no_value_is_shown() {
    let world = world();
    let key = |input: &str| asked(&world, "fish", &["count", input, "--key", ""]);
    assert!(!key("a.csv").contains("secret") && !key("a.csv").contains("ann@a.org"));
    // Without a header, the first row is not shown.
    assert_eq!(asked(&world, "fish", &["count", "a.csv", "--no-header", "--key", "e"]), "");
    // Names that could control the terminal are not offered.
    world.write("odd.csv", "a\u{1b}[2Jb,\"c\nd\",e\u{202e}f,\u{9b}g,fine,twice,twice,\n");
    assert_eq!(key("odd.csv"), "fine\n");
    world.write("long.csv", "x".repeat(1 << 20));
    world.write("utf16.csv", b"\xff\xfei\0d\0\n\0");
    world.write("half.parquet", "PAR1");
    assert!(Command::new("mkfifo").arg(world.path("pipe.csv")).status().unwrap().success());
    let start = Instant::now();
    for input in
        ["long.csv", "utf16.csv", "half.parquet", "pipe.csv", "-", "/dev/zero", "/dev/stdin", "none.csv", "."]
    {
        assert_eq!(key(input), "", "{input}");
    }
    assert_eq!(asked(&world, "fish", &["count", "--book", "pipe.csv", "--peer", ""]), "");
    assert_eq!(asked(&world, "fish", &["run", "pipe.csv", "--peer", ""]), "");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    // Standard input stays open, and is not read.
    let mut command = world.veilset();
    command.env("VEILSET_COMPLETE", "fish").args(["--", "veilset", "count", "-", "--key", ""]);
    let mut running = Running::start(&mut command);
    let open = running.stdin();
    assert_eq!(running.end().good(), "");
    drop(open);
}

#[test]
fn the_variable_alone_changes_nothing() {
    let version = |shell: &str| run(veilset().env("VEILSET_COMPLETE", shell).arg("--version")).good();
    assert!(version("bash").starts_with("veilset ") && version("").starts_with("veilset "));
    // Nothing to complete.
    for shell in ["bash", "elvish", "fish", "zsh"] {
        assert_eq!(run(veilset().env("VEILSET_COMPLETE", shell).arg("--")).good(), "");
    }
    run(veilset().env("VEILSET_COMPLETE", "ksh").arg("--")).bad(2, &["Usage"]);
}

#[test]
fn scripts_call_the_program_by_its_name() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(veilset().args(["completions", shell])).good();
        assert!(script.contains("veilset") && !script.contains(env!("CARGO_BIN_EXE_veilset")), "{script}");
        assert_eq!(script.contains("VEILSET_COMPLETE"), shell != "powershell", "{script}");
    }
}

/// Returns the candidates of the script in bash, with these variables set, for the replaced word.
fn bash(world: &World, variables: &str, replaced: &str) -> Vec<String> {
    let script = run(world.veilset().args(["completions", "bash"])).good();
    let call = "[[ $(complete -p veilset) == *'-F _veilset veilset' ]] || exit 3
        _veilset veilset \"$1\" word-before || exit 4
        for word in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$word\"; done";
    let program = Path::new(env!("CARGO_BIN_EXE_veilset")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = world.veilset();
    command.env("PATH", path).env("SCRIPT", format!("{script}\n{variables}\n{call}"));
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-c", "eval \"$SCRIPT\"", "bash", replaced]);
    shell
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(world.path(""));
    let Ended { code, out, err } = run(&mut shell);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{variables}");
    out.lines().map(String::from).collect()
}

#[test]
fn bash_offers_what_the_program_answers() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let world = world();
    world.write("glob*", "");
    // (line up to the cursor, the replaced part of it, the candidates)
    let cases: [(&str, &str, &[&str]); 13] = [
        ("veilset inter", "inter", &["intersect"]),
        ("veilset intersect a.csv --key em", "em", &["email", "email2"]),
        ("veilset intersect a.csv --key fi", "fi", &["first\\ name"]),
        ("veilset intersect a.csv --key \"fi", "fi", &["first name"]),
        ("veilset intersect a.csv --key 'email,fi", "email,fi", &["email,first name"]),
        ("veilset count a.csv --key email,\\\"la", "email,\\\"la", &["email,\\\"last,\\ first\\\""]),
        ("veilset intersect a.csv --key=em", "em", &["email", "email2"]),
        ("veilset intersect 'a.csv' --peer ho", "ho", &["hospital-b"]),
        ("veilset intersect a.csv --protocol dh-", "dh-", &["dh-psi"]),
        ("veilset peer remove ", "", &["bank", "hospital-b"]),
        ("veilset help first", "first", &["first-run"]),
        ("veilset intersect none.csv --key ", "", &[]),
        // Bash completes the names of files itself.
        ("veilset intersect ", "", &[]),
    ];
    for (line, replaced, expected) in cases {
        let line = line.replace('\'', "'\\''");
        let variables = format!("COMP_LINE='{line}' COMP_POINT=${{#COMP_LINE}} COMP_WORDS=() COMP_CWORD=0");
        assert_eq!(bash(&world, &format!("COMP_LINE='{line}'; {variables}"), replaced), expected, "{line}");
    }
    // The cursor is inside the line.
    let inside = "COMP_LINE='veilset count a.csv --key emxx --quiet' COMP_POINT=28";
    assert_eq!(bash(&world, inside, "em"), ["email", "email2"]);
    // Another function may set only the words.
    let words = "unset COMP_LINE; COMP_WORDS=(veilset count a.csv --key am) COMP_CWORD=4";
    assert_eq!(bash(&world, words, "am"), ["amount"]);
}

#[test]
fn what_is_generated_replaces_nothing_of_somebody_else() {
    let world = World::new();
    std::fs::create_dir(world.path("pages")).unwrap();
    let mut man = world.veilset();
    run(man.args(["man", "pages"])).good();
    let page = world.read("pages/veilset-count.1");
    assert!(page.contains(".TH veilset-count 1"));
    // Pages of veilset are replaced.
    world.write("pages/veilset-count.1", page.replace("veilset 0", "veilset older 0"));
    run(&mut man).good();
    assert_eq!(world.read("pages/veilset-count.1"), page);
    world.write("pages/veilset-count.1", "notes");
    world.write("pages/veilset.1", page.replace("Count", "Tally"));
    run(&mut man).bad(2, &["pages/veilset-count.1", "no page of veilset"]);
    assert_eq!(world.read("pages/veilset-count.1"), "notes");
    assert!(world.read("pages/veilset.1").contains("veilset-count"), "nothing is replaced then");
    // No temporary file is left there.
    let all = std::fs::read_dir(world.path("pages")).unwrap().map(|page| page.unwrap().file_name());
    assert!(all.map(|name| name.into_string().unwrap()).all(|name| name.ends_with(".1")));
    world.write("ours.csv", "id\n1\n");
    let mut calibrate = world.veilset();
    run(calibrate.args(["calibrate", "--speeds", "ours.csv"]))
        .bad(2, &["ours.csv", "no file of speeds", "Name another"]);
    assert_eq!(world.read("ours.csv"), "id\n1\n");
}
