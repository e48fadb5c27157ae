use super::line::{Typed, quoted, unquoted};
use super::shell::Shell;
use super::*;
use std::collections::BTreeSet;
use veilset::table::Normalise;

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

/// Returns the values offered for the last word of a line; "files" for the names of files.
fn offered(line: &str) -> Vec<String> {
    match answer(unquoted(&format!("veilset {line}")).words) {
        Answer::Files => vec!["files".into()],
        Answer::Candidates(all) => all.into_iter().map(|candidate| candidate.value).collect(),
    }
}

#[test]
fn quotes_are_taken_from_words() {
    // (line, words, the open quote)
    let cases: [(&str, &[&str], Option<char>); 9] = [
        ("", &[""], None),
        ("a  b ", &["a", "b", ""], None),
        (r"a\ b c\", &["a b", "c"], None),
        (r#"'a "b'" c'"d "#, &[r#"a "b c'd"#, ""], None),
        (r#""a\"\$\b\\"#, &[r#"a"$\b\"#], Some('"')),
        (r"'\'", &[r"\"], None),
        ("x '", &["x", ""], Some('\'')),
        ("--key=\"a, b", &["--key=a, b"], Some('"')),
        ("é\tü", &["é", "ü"], None),
    ];
    for (line, words, open) in cases {
        let found = unquoted(line);
        assert_eq!((found.words, found.open), (owned(words), open), "{line}");
    }
    assert_eq!(["", "a", "a ", "a 'b c"].map(|line| unquoted(line).begin), [0, 0, 2, 2]);
}

#[test]
fn what_is_quoted_is_the_text_again() {
    for text in ["a", "first name", "$(rm -rf x)`y`", r#"it's "5\6""#, "*?[a]{b}|;&<>#!", "~a~b", "é ü"] {
        for open in [None, Some('\''), Some('"')] {
            let line = open.map(String::from).unwrap_or_default() + &quoted(text, open);
            let found = unquoted(&line);
            assert_eq!((found.words, found.open), (owned(&[text]), open), "{line}");
        }
    }
    assert_eq!(quoted("a:b=c,d/e.f-g_h%i@j+k", None), "a:b=c,d/e.f-g_h%i@j+k");
}

#[test]
fn what_is_typed_before_the_last_word_is_found() {
    let typed = |line: &str| {
        let words = unquoted(&format!("veilset {line}")).words;
        let typed = Typed::before_last(&tree(), &words);
        let ids = ["input", "key", "peer", "format", "no_header", "filter", "name", "book"];
        let all = ids
            .into_iter()
            .flat_map(|id| typed.all(id).map(move |value| format!("{id}={value}")).collect::<Vec<_>>());
        all.collect::<Vec<_>>().join(" ")
    };
    for (line, expected) in [
        ("intersect a.csv b.csv --key x --key=y --peer ", "input=a.csv input=b.csv key=x key=y"),
        ("intersect a.csv --key", "input=a.csv"),
        ("check count --no-header --format csv a.csv -", "input=a.csv format=csv no_header="),
        ("filter update f a.csv b.csv x", "input=a.csv input=b.csv filter=f"),
        ("filter build a.csv --for 3 --key x ", "input=a.csv key=x"),
        ("peer remove --book b south x", "name=south book=b"),
        ("count --nothing - --quiet ", "input=-"),
        ("count -- --key x ", "input=--key input=x"),
        ("count intersect count.csv ", "input=intersect input=count.csv"),
    ] {
        assert_eq!(typed(line), expected, "{line}");
    }
}

#[test]
fn every_command_and_option_can_be_completed() {
    let commands = offered("");
    for name in ["intersect", "peer", "filter", "completions"] {
        assert!(commands.iter().any(|command| command == name), "{name}: {commands:?}");
    }
    assert!(!commands.iter().any(|command| command == "bench-party"));
    assert_eq!(offered("inter"), ["intersect"]);
    assert_eq!(offered("--v"), ["--version"]);
    assert_eq!(offered("peer "), ["add", "list", "remove"]);
    // Where there is nothing else to offer, options are offered without a hyphen too.
    assert_eq!(offered("peer list "), ["--book", "--help"]);
    assert!(offered("check ").contains(&"union".into()) && offered("check ").contains(&"run".into()));
    assert_eq!(
        offered("check count a.csv --pr"),
        ["--proxy", "--protocol", "--prefer", "--prepared", "--prepared-ledger"]
    );
    assert_eq!(offered("nothing --k"), Vec::<String>::new());
}

#[test]
fn values_that_the_definition_lists_are_offered() {
    let protocols = offered("intersect --protocol ");
    assert!(protocols.contains(&"auto".into()) && protocols.contains(&"dh-psi".into()), "{protocols:?}");
    assert_eq!(offered("intersect --role="), ["--role=receiver", "--role=sender"]);
    assert_eq!(offered("intersect --group cur"), ["curve25519"]);
    assert_eq!(offered("completions "), ["bash", "elvish", "fish", "powershell", "zsh"]);
    assert_eq!(offered("intersect --normalize "), offers::STEPS);
    assert_eq!(offered("intersect --normalize trim,c"), ["trim,casefold"]);
    assert!(offers::STEPS.iter().all(|step| step.parse::<Normalise>().is_ok()));
    assert_eq!(offered("plan --assume ddh,l"), ["ddh,lpn"]);
    assert_eq!(offered("help first"), ["first-run"]);
    assert_eq!(offered("help interse"), ["intersect"]);
}

#[test]
fn the_names_of_files_are_left_to_the_shell() {
    for line in [
        "intersect ",
        "intersect a.csv ",
        "intersect a.csv --policy ",
        "intersect a.csv --parties x",
        "intersect --output=",
        "count a.csv --key x --identity a b",
        "filter info ",
        "man ",
        "run ",
        "check run ve",
    ] {
        assert_eq!(offered(line), ["files"], "{line}");
    }
    assert_eq!(offered("intersect --polic"), ["--policy"]);
    assert_eq!(offered("intersect --me "), Vec::<String>::new());
}

#[test]
fn every_path_column_and_peer_is_known_by_its_type_or_name() {
    let mut ids = BTreeSet::new();
    fn all(command: &clap::Command, each: &mut dyn FnMut(&str, &clap::Arg)) {
        command.get_arguments().for_each(|arg| each(command.get_name(), arg));
        command.get_subcommands().for_each(|below| all(below, each));
    }
    all(&tree(), &mut |command, arg| {
        ids.insert(format!("{command} {}", arg.get_id()));
    });
    for known in [
        "run words",
        "intersect key",
        "sum values",
        "share values",
        "intersect peer",
        "remove name",
        "union me",
        "count normalize",
        "plan assume",
        "help topic",
        "intersect input",
        "build format",
        "prepare no_header",
        "count delimiter",
        "count encoding",
        "count book",
        "union parties",
        "remove book",
    ] {
        assert!(ids.contains(known), "{known}");
    }
}

#[test]
fn each_shell_is_answered_as_it_expects() {
    let candidates = |_| {
        let candidate =
            |value: &str, help: Option<&str>| Candidate { value: value.into(), help: help.map(Into::into) };
        Answer::Candidates(vec![candidate("--key=a b", Some("x: y\\z")), candidate("--key=c:d", None)])
    };
    let words = owned(&["veilset", "count", "--key="]);
    assert_eq!(Shell::Fish.answer(words.clone(), candidates), "--key=a b\tx: y\\z\n--key=c:d\n");
    assert_eq!(Shell::Zsh.answer(words.clone(), candidates), "--key=a b:x: y\\\\z\n--key=c\\:d\n");
    assert_eq!(Shell::Elvish.answer(words.clone(), candidates), "--key=a b\n--key=c:d\n");
    // (the line, the replaced part, the answer)
    for (line, replaced, expected) in [
        ("veilset count --key=", "", "a\\ b\nc:d\n"),
        ("veilset count --key=c:", "", "d\n"),
        ("veilset count --key=c:x", "x", "d\n"),
        ("veilset count --key=\"", "", "a b\nc:d\n"),
        ("veilset count --key='a ", "a ", "a b\nc:d\n"),
        ("veilset count --k", "--k", "--key=a\\ b\n--key=c:d\n"),
    ] {
        assert_eq!(Shell::Bash.answer(owned(&[line, replaced]), candidates), expected, "{line}");
    }
    for name in ["bash", "elvish", "fish", "zsh"] {
        let shell = Shell::named(name).unwrap();
        assert_eq!(shell.answer(owned(&["veilset x ", ""]), |_| Answer::Files), "\t\n");
        assert!(SCRIPTS.iter().any(|(other, script)| {
            other.to_string() == name && script.contains(&format!("{VARIABLE}={name} "))
        }));
    }
    assert_eq!(Shell::named("powershell"), None);
    // The words are taken from the line, without quotes.
    let seen = |words: Vec<String>| {
        let all = words.into_iter().map(|value| Candidate { value, help: None });
        Answer::Candidates(all.collect())
    };
    assert_eq!(Shell::Bash.answer(owned(&["veilset 'a b' ", ""]), seen), "veilset\na\\ b\n\n");
    assert_eq!(Shell::Zsh.answer(owned(&["veilset", "'a b'", "\"c d"]), seen), "veilset\na b\nc d\n");
    assert_eq!(Shell::Fish.answer(owned(&["veilset", "'a b'", "\"c d"]), seen), "veilset\n'a b'\nc d\n");
}

#[test]
fn what_could_change_the_terminal_is_not_offered() {
    let of = |value: &str| Candidate::of(&CompletionCandidate::new(value)).map(|candidate| candidate.value);
    for value in ["", "a\nb", "a\tb", "\u{1b}[2J", "\u{9b}2J", "a\u{202e}b", "a\u{2028}b", "\u{7f}"] {
        assert_eq!(of(value), None, "{value:?}");
    }
    for value in ["a b", "é", "e\u{301}", "a\u{a0}b", "名"] {
        assert_eq!(of(value).as_deref(), Some(value));
    }
    let helped =
        |help: &str| Candidate::of(&CompletionCandidate::new("a").help(Some(help.to_string().into())));
    assert_eq!(helped("one\ntwo").unwrap().help.as_deref(), Some("one"));
    assert_eq!(helped("o\u{7}ne").unwrap().help, None);
}
