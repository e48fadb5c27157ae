//! Runs that one party refuses before it contacts its peer.

use crate::common::{Ended, RECEIVER, SENDER, Words, World, csv, run, veilset};
use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Runs a party whose peer has our address, and asserts that it did not connect.
fn refused(mut command: Command) -> Ended {
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    peer.set_nonblocking(true).unwrap();
    let address = peer.local_addr().unwrap().to_string();
    let ended = run(command.args(["--connect", &address]));
    assert!(peer.accept().is_err(), "the peer was contacted");
    ended
}

#[test]
fn bad_data_is_refused_with_its_place_and_the_next_step() {
    let long = format!("id,cost\n{},2\n", "x".repeat(70));
    let large = format!("id,cost\na,{}\nb,1\n", i64::MAX);
    // (operation of a sender, file, options, words)
    let cases: [(&str, &[u8], Words, Words); 18] = [
        ("union", b"", &[], &["f.csv: the file is empty", "header"]),
        ("union", b"a,b\n1,2\n", &[], &["column \"id\"", "The columns are \"a\", \"b\""]),
        ("union", b"id,id\n1,2\n", &[], &["twice", "Rename"]),
        ("union", b"a;co|st\n1;2|3\n", &[], &["with --delimiter"]),
        ("union", b"id,cost\n1\n", &[], &["line 2", "as many fields as the header"]),
        ("union", b"id,cost\n1,\"2\n", &[], &["line 2", "Add the closing quote"]),
        ("union", b"id,cost\n1,2\n,3\n", &[], &["line 3, column \"id\"", "--empty-keys skip"]),
        (
            "union",
            b"id,cost\n1,2\n1,3\n",
            &["--duplicates", "error"],
            &["line 3", "line 2", "--duplicates first"],
        ),
        ("union", b"id,cost\n1,2\n\xe9,3\n", &[], &["line 3, column \"id\"", "--encoding bytes"]),
        ("union", b"\xff\xfei\0d\0\n\0", &[], &["UTF-16", "Save it as UTF-8"]),
        (
            "union",
            b"PK\x03\x04\x14\0",
            &[],
            &["f.csv: this is a zip file", "xlsx", "Export the sheet as CSV"],
        ),
        (
            "union",
            b"SQLite format 3\0\x10",
            &[],
            &["f.csv: this is an SQLite database", "Export the table as CSV"],
        ),
        ("union", long.as_bytes(), &[], &["line 2", "--max-row"]),
        ("sum", b"id,cost\n1,two\n", &["--values", "cost"], &["line 2, column \"cost\"", "digits"]),
        (
            "sum",
            b"id,cost\n1,0.5\n",
            &["--values", "cost"],
            &["line 2, column \"cost\"", "--scale 1 on both sides"],
        ),
        ("sum", b"id,cost\n1,2\n1,3\n", &["--values", "cost"], &["line 3", "with values also add"]),
        ("sum", b"id,cost\n1,2\n", &["--values", "price"], &["column \"price\"", "The columns are"]),
        ("sum", large.as_bytes(), &["--values", "cost"], &["overflow", "--modulus 128 on both sides"]),
    ];
    let world = World::new();
    for (operation, text, more, words) in cases {
        let file = world.write("f.csv", text);
        let ended = refused(world.party(SENDER, operation, &file, more));
        ended.bad(3, words);
        assert!(!ended.err.contains("two"), "confidential: {}", ended.err);
    }
    refused(world.party(SENDER, "union", &world.path("none.csv"), &[]))
        .bad(3, &["none.csv", "Check its name"]);
}

#[test]
fn wrong_options_are_refused_with_the_next_step() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let own = world.fingerprints[SENDER].clone();
    let typo = world.fingerprints[RECEIVER].replacen('-', "0", 1);
    // (operation of a sender, options, words)
    let cases: [(&str, Words, Words); 24] = [
        ("union", &["--output", "x"], &["nothing for --output", "--role receiver"]),
        ("union", &["--delimiter", "ab"], &["--delimiter", "for instance ;"]),
        ("union", &["--delimiter", "\""], &["--delimiter", "for instance ;"]),
        ("union", &["--delimiter", "é"], &["a single ASCII character"]),
        ("union", &["--duplicates", "add"], &["--duplicates add is for a sender with values"]),
        ("union", &["--max-row", "0"], &["--max-row", "1..=65536"]),
        ("union", &["--scale", "1"], &["--scale", "--help"]),
        ("union", &["--protocol", "rot13"], &["possible values: auto, dh"]),
        ("union", &["--group", "p384"], &["possible values: curve25519, p256, p256-compressed"]),
        ("union", &["--idle-timeout", "0"], &["--idle-timeout", "from 1 to 31536000"]),
        ("union", &["--idle-timeout", "0.9"], &["--idle-timeout", "like 90 or 1.5"]),
        ("union", &["--connect-timeout", "nan"], &["--connect-timeout", "like 90 or 1.5"]),
        ("union", &["--connect-timeout", "1e3"], &["--connect-timeout", "like 90 or 1.5"]),
        ("union", &["--connect-timeout", "31536000.5"], &["--connect-timeout", "like 90 or 1.5"]),
        ("union", &["--listen", "127.0.0.1:0"], &["--listen", "--connect"]),
        ("sum", &[], &["--values COL"]),
        (
            "sum",
            &["--role", "receiver", "--values", "cost"],
            &["--values is for the sender", "--role sender"],
        ),
        (
            "sum",
            &["--values", "cost", "--output", "x", "--report", "x"],
            &["--output and --report are both x", "its own file"],
        ),
        (
            "count",
            &["--role", "receiver", "--report", "-"],
            &["--output and --report are both -", "its own file"],
        ),
        ("union", &["--peer", ""], &["--peer", "0 letters", "veilset identity show"]),
        ("union", &["--peer", "unlucky"], &["--peer", "it cannot contain 'u'", "veilset identity show"]),
        ("union", &["--peer", &typo], &["--peer", "41 letters", "veilset identity show"]),
        ("union", &["--peer", &own], &["our own fingerprint", "veilset identity show"]),
        ("union", &["--peer", &own, "--insecure-plaintext"], &["--insecure-plaintext", "--peer"]),
    ];
    for (operation, more, words) in cases {
        refused(world.party(SENDER, operation, &file, more)).bad(2, words);
    }
    for missing in ["--key", "--role", "--peer"] {
        let mut command = veilset();
        command.arg("union").arg(&file);
        for option in [["--key", "id"], ["--role", "sender"], ["--peer", &typo]] {
            if option[0] != missing {
                command.args(option);
            }
        }
        refused(command).bad(2, &[missing, "--help"]);
    }
}

#[test]
fn arguments_that_contradict_are_refused_before_the_input_is_looked_at() {
    let world = World::new();
    let receiver = ["--role", "receiver"];
    // (operation of a sender, options, words)
    let cases: [(&str, Words, Words); 28] = [
        ("union", &["--protocol", "dh-psi"], &["--protocol dh-psi", "union"]),
        (
            "union",
            &["--protocol", "dh", "--group", "ristretto255"],
            &["dh does not work in ristretto255", "--group", "p256-compressed"],
        ),
        (
            "intersect",
            &["--protocol", "vole", "--group", "p256"],
            &["vole does not work in p256", "ristretto255"],
        ),
        ("intersect", &["--protocol", "krtw19"], &["--protocol krtw19", "intersect"]),
        ("intersect", &["--malicious-sender", "--protocol", "vole"], &["--malicious-sender", "cm20"]),
        (
            "union",
            &["--reveal-count-to-sender", "--protocol", "dh"],
            &["--reveal-count-to-sender", "--protocol sigma-dh", "Omit --protocol"],
        ),
        (
            "union",
            &["--protocol", "sigma-dh"],
            &["how many items match", "--reveal-count-to-sender", "both sides"],
        ),
        (
            "union",
            &["--reveal-count-to-sender", "--both"],
            &["--reveal-count-to-sender is pointless with --both"],
        ),
        ("count", &["--reveal-count-to-sender"], &["--reveal-count-to-sender"]),
        ("intersect", &["--protocol", "vole", "--prepared", "half"], &["cannot use a prepared half", "Omit"]),
        ("union", &["--protocol", "krtw19", "--prepared", "half"], &["cannot use a prepared half", "Omit"]),
        ("intersect", &["--key", "id,a,id"], &["--key names the column \"id\" twice", "Name it once"]),
        ("intersect", &["--send-columns", "a,a"], &["--send-columns names the column \"a\" twice"]),
        (
            "intersect",
            &["--role", "receiver", "--receive-columns", "a,a=b"],
            &["--receive-columns names", "twice"],
        ),
        (
            "intersect",
            &["--role", "receiver", "--receive-columns", "a,b=a"],
            &["two columns of the sender would have the name \"a\"", "COL=NAME"],
        ),
        (
            "intersect",
            &["--receive-columns", "a"],
            &["--receive-columns is for the receiver", "--send-columns"],
        ),
        (
            "intersect",
            &["--role", "receiver", "--receive-columns", "a="],
            &["a column has no name", "COL=NAME"],
        ),
        ("intersect", &["--key", "\"a"], &["--key", "a quote is not closed"]),
        (
            "union",
            &["--role", "receiver", "--key", "id,b", "--output", "x.txt"],
            &["2 columns or more", "a list has one"],
        ),
        (
            "union",
            &["--both", "--key", "id,b", "--output-format", "list"],
            &["2 columns", "--output-format csv"],
        ),
        (
            "intersect",
            &["--role", "receiver", "--receive-columns", "a", "--output-format", "list"],
            &["2 columns", "--output-format csv"],
        ),
        ("union", &["--output-format", "csv"], &["nothing for --output-format", "--both"]),
        ("union", &["--for-spreadsheets"], &["nothing for --for-spreadsheets", "--both"]),
        (
            "count",
            &["--role", "receiver", "--output", "x.parquet"],
            &["a line of numbers", "--output-format csv"],
        ),
        (
            "count",
            &["--role", "receiver", "--output", "x.json"],
            &["x.json asks for JSON", "--output-format"],
        ),
        (
            "union",
            &["--role", "receiver", "--output", "x.xlsx"],
            &["x.xlsx asks for a spreadsheet", "--output-format"],
        ),
        ("union", &["--role", "receiver", "--output", "x.csv.gz"], &["x.csv.gz asks for a compressed file"]),
        ("union", &["--role", "receiver", "--output", "x.db"], &["x.db asks for a database", "another name"]),
    ];
    for (operation, more, words) in cases {
        refused(world.party(SENDER, operation, &world.path("none.csv"), more)).bad(2, words);
    }
    // Refusals because of an input's name.
    let cases: [(&str, Words, Words); 5] = [
        ("a.txt", &["--key", "id"], &["a.txt is a list", "add --format csv", "omit --key"]),
        ("a.list", &["--key", "item"], &["a.list is a list", "add --format csv", "omit --key"]),
        (
            "a.csv",
            &["--format", "list", "--key", "id"],
            &["a list (--format list) has no columns", "Omit --key"],
        ),
        ("a.xlsx", &receiver, &["a.xlsx is a spreadsheet", "Export the sheet as CSV", "--format"]),
        ("a.csv.bz2", &receiver, &["a.csv.bz2 is a compressed file or an archive", "Unpack it", "--format"]),
    ];
    for (name, more, words) in cases {
        refused(world.party(SENDER, "count", &world.path(name), more)).bad(2, words);
    }
}

#[test]
fn plaintext_is_refused_off_this_machine() {
    let world = World::new();
    world.write("f.csv", csv(0..3));
    // An address is refused before the input is read, a name when it is resolved.
    for (file, address) in [
        ("none.csv", "--listen=0.0.0.0:0"),
        ("none.csv", "--listen=[::]:0"),
        ("none.csv", "--connect=192.0.2.1:7000"),
        ("f.csv", "--connect=example.invalid:7000"),
    ] {
        let mut command = world.party(SENDER, "count", &world.path(file), &["--insecure-plaintext"]);
        run(command.arg(address)).bad(2, &["--insecure-plaintext is for this machine only", "127.0.0.1"]);
    }
}

#[test]
fn a_result_that_could_not_be_written_is_refused_before_the_run() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    world.write("old", "old");
    let before = world.names();
    // (party, options, words)
    let cases: [(usize, Words, Words); 7] = [
        (RECEIVER, &["--output", "old"], &["old exists", "--force"]),
        (RECEIVER, &["--output", "none/out.csv"], &["none/out.csv cannot be written", "directory exists"]),
        (RECEIVER, &["--output", "old/out.csv"], &["old/out.csv cannot be written", "directory exists"]),
        (RECEIVER, &["--output", "."], &["give a file name"]),
        (RECEIVER, &["--output", "/dev/full", "--force"], &["not a regular file", "another name"]),
        (RECEIVER, &["--output", "new", "--report", "old"], &["old exists", "--force"]),
        (SENDER, &["--report", "old"], &["old exists", "--force"]),
    ];
    for (who, more, words) in cases {
        refused(world.party(who, "union", &file, more)).bad(7, words);
        // Errors visible in the name are found before the input is read.
        if !words.contains(&"directory exists") {
            refused(world.party(who, "union", &world.path("none.csv"), more)).bad(7, words);
        }
        assert_eq!((world.read("old"), world.names()), ("old".into(), before.clone()), "{more:?}");
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (side, address, words) in [
        ("--connect", "localhost", "the port is missing"),
        ("--connect", "::1:7000", "needs brackets"),
        ("--connect", "127.0.0.1:0", "Ask the other party for the port"),
        ("--listen", "none.invalid:7000", "Name one of this machine's addresses"),
        ("--listen", "192.0.2.1:7000", "Choose one of this machine's addresses"),
        ("--listen", &taken, "choose another port"),
    ] {
        run(world.party(SENDER, "count", &file, &[]).args([side, address]))
            .bad(2, &[address.trim_end_matches(":7000"), words]);
    }
}

#[test]
fn an_identity_is_made_once_and_kept_private() {
    let world = World::new();
    let config = world.path("config");
    let identity = |command: &str| {
        let mut veilset = veilset();
        veilset.args(["identity", command]).env("XDG_CONFIG_HOME", &config);
        run(&mut veilset)
    };
    identity("show").bad(2, &["veilset identity new", "--identity"]);
    let made = identity("new").good();
    let path = config.join("veilset/identity.pem");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let bytes = std::fs::read(&path).unwrap();
    identity("new").bad(2, &["is not overwritten", "veilset identity show", "--output"]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    // A single token that can be used as the other party's --peer.
    assert_eq!(identity("show").good(), made);
    assert!(
        made.ends_with('\n') && made.trim().len() == 47 && made.split_whitespace().count() == 1,
        "{made}"
    );

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    identity("show").bad(2, &["can be read by others (mode 0640)", "chmod 600"]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    identity("show").bad(2, &["is not an identity", "veilset identity new"]);
}

#[test]
fn an_identity_that_cannot_be_used_is_refused_in_a_run_too() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    std::fs::set_permissions(world.path("s.pem"), std::fs::Permissions::from_mode(0o604)).unwrap();
    refused(world.party(SENDER, "count", &file, &[])).bad(2, &["mode 0604", "chmod 600"]);
    world.write("s.pem", "garbage");
    std::fs::set_permissions(world.path("s.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
    refused(world.party(SENDER, "count", &file, &[])).bad(2, &["is not an identity", "veilset identity new"]);
    std::fs::remove_file(world.path("s.pem")).unwrap();
    refused(world.party(SENDER, "count", &file, &[]))
        .bad(2, &["there is no identity", "veilset identity new"]);
}

#[test]
fn standard_output_that_is_full_is_an_error_and_no_panic() {
    let world = World::new();
    let identity = world.path("r.pem");
    let commands: [&[&OsStr]; 2] = [
        &["identity".as_ref(), "show".as_ref(), "--identity".as_ref(), identity.as_ref()],
        &["plan", "--op", "count", "--n", "1"].map(OsStr::new),
    ];
    for arguments in commands {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let out = veilset().args(arguments).stdin(Stdio::null()).stdout(full).output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(7), "{err}");
        assert!(err.contains("standard output") && !err.contains("panic"), "{err}");
    }
}

#[test]
fn help_lists_every_exit_code() {
    let help = run(veilset().arg("--help")).good();
    for code in ["0 ", "2 ", "3 ", "4 ", "5 ", "6 ", "7 ", "8 ", "70 ", "130 "] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(code)), "{code}: {help}");
    }
}

#[test]
fn commands_that_have_left_the_program_say_where_they_are() {
    for typed in ["bench --op union --n 10", "bench tables --quick", "bench --help", "soak --runs 3"] {
        let command = typed.split(' ').next().unwrap();
        let ended = run(veilset().args(typed.split(' ')));
        ended.bad(
            2,
            &[
                &format!("veilset: {command} is for those who develop veilset"),
                &format!("run veilset-dev {command}"),
            ],
        );
    }
    let help = run(veilset().arg("--help")).good();
    assert!(!help.contains("bench") && !help.contains("soak"), "{help}");
}
