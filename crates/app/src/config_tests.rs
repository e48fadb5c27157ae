use super::*;
use crate::options::{FilterCommand, RUN_HELP};
use clap::parser::ValueSource;

fn words(text: &str, typed: &[&str]) -> Result<Vec<OsString>> {
    let typed: Vec<OsString> = typed.iter().map(Into::into).collect();
    let file = File { path: Path::new("folder/veilset.toml"), text };
    file.words(&typed).map(|(words, _)| [vec!["veilset".into()], words, typed].concat())
}

fn refusal(text: &str, typed: &[&str]) -> String {
    let typed: Vec<OsString> = typed.iter().map(Into::into).collect();
    let e = File { path: Path::new("folder/veilset.toml"), text }.found(typed).unwrap_err();
    assert!(matches!(e, Error::Usage(_)), "{e}");
    crate::words::as_options(&e.marked())
}

/// The keys and values that every operation needs.
const NEEDED: [(&str, &str); 5] = [
    ("input", "\"a.csv\""),
    ("role", "\"receiver\""),
    ("key", "[\"id\"]"),
    ("listen", "\"127.0.0.1:0\""),
    ("peer", "\"north\""),
];

fn text(operation: &str, pairs: &BTreeMap<&str, String>) -> String {
    let lines: String = pairs.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    format!("operation = \"{operation}\"\n{lines}")
}

#[test]
fn every_option_of_every_operation_can_be_set_and_typed_instead() {
    let all = Typed::command();
    let mut seen = 0;
    for name in operations::ALL.map(|o| o.name) {
        let operation = all.find_subcommand(name).unwrap();
        for arg in operation.get_arguments() {
            let Some(key) = key_of(arg) else {
                assert!(["help", "version"].contains(&arg.get_id().as_str()), "{name} {}", arg.get_id());
                continue;
            };
            assert!(arg.get_long().is_some() || key == "input", "{name}: {key} has no long name");
            let mut pairs: BTreeMap<&str, String> =
                NEEDED.into_iter().map(|(key, value)| (key, value.to_string())).collect();
            for other in operation.get_arguments() {
                let excludes = |a, b: &Arg| {
                    operation.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id())
                };
                if excludes(arg, other) || excludes(other, arg) {
                    key_of(other).map(|key| pairs.remove(key));
                }
            }
            // One of these is valid for any option.
            let mut candidates: Vec<String> =
                arg.get_possible_values().iter().map(|v| v.get_name().to_string()).collect();
            candidates.extend(["1", "128", "ddh", "x"].map(Into::into));
            let flag = !arg.get_action().takes_values();
            let found = candidates.iter().find(|value| {
                pairs.insert(key, if flag { "true".into() } else { format!("\"{value}\"") });
                let words = words(&text(name, &pairs), &[]).unwrap();
                let Ok(matches) = Typed::command().try_get_matches_from(words) else { return false };
                let matches = matches.subcommand_matches(name).unwrap();
                let id = arg.get_id().as_str();
                let raw: Vec<_> = matches.get_raw(id).into_iter().flatten().collect();
                let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
                let expected = if is_path { format!("folder/{value}") } else { value.to_string() };
                matches.value_source(id) == Some(ValueSource::CommandLine)
                    && (flag || raw == [expected.as_str()])
            });
            let value = found.unwrap_or_else(|| panic!("{name}: {key} cannot be set by {candidates:?}"));
            seen += 1;
            // A typed option overrides the file.
            if let Some(long) = arg.get_long() {
                let typed = if flag { format!("--{long}") } else { format!("--{long}={value}") };
                let words = words(&text(name, &pairs), &[&typed]).unwrap();
                let of_option = format!("--{long}");
                let times =
                    words.iter().filter(|w| w.to_str().unwrap().split('=').next() == Some(&of_option));
                assert_eq!(times.count(), 1, "{words:?}");
                Typed::parsed(words).unwrap();
            }
        }
    }
    assert!(seen > 4 * 20, "{seen}");
}

#[test]
fn every_option_that_is_a_file_is_known_as_one() {
    let all = Typed::command();
    for name in operations::ALL.map(|o| o.name) {
        for arg in all.find_subcommand(name).unwrap().get_arguments() {
            let named = arg.get_value_names().is_some_and(|names| names.iter().any(|n| n.contains("FILE")));
            let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
            assert!(!named || is_path, "{name}: {} takes a file but is no PathBuf", arg.get_id());
        }
    }
}

#[test]
fn a_file_is_as_good_as_what_it_stands_for() {
    let text = "operation = \"sum\"\ninput = \"-\"\nkey = [\"a\", \"b\"]\nrole = \"sender\"\nlisten = \"h:1\"\n\
                peer = \"p\"\nforce = true\nquiet = false\nscale = 0x2\nreport = \"/r.json\"\naudit-log = \"none\"\n\
                policy = \"none\"\n";
    let shown = |typed: &[&str]| {
        let words = words(text, typed).unwrap();
        let mut words: Vec<_> = words.iter().map(|w| w.to_str().unwrap().to_string()).collect();
        words[3..].sort();
        words.join(" ")
    };
    let common = "--force --key=a --key=b";
    assert_eq!(
        shown(&[]),
        format!(
            "veilset sum - --audit-log=none {common} --listen=h:1 --peer=p --policy=folder/none --report=/r.json \
             --role=sender --scale=2"
        )
    );
    // Typed lists replace those in the file, and typed options replace keys that conflict with them.
    assert_eq!(
        shown(&["--key=c", "--connect=h:2", "--insecure-plaintext"]),
        "veilset sum - --audit-log=none --connect=h:2 --force --insecure-plaintext --key=c --policy=folder/none \
         --report=/r.json --role=sender --scale=2"
    );
}

#[test]
fn names_of_columns_stand_in_a_list_as_they_are() {
    let base = "operation = \"intersect\"\ninput = \"a.csv\"\nrole = \"receiver\"\npeer = \"p\"\n";
    let parsed = |lines: &str| {
        let words = words(&format!("{base}{lines}"), &[]).unwrap();
        let Wanted::Operation(a) = Typed::parsed(words).unwrap() else { panic!() };
        let received = a.rows.unwrap().receive_columns.into_iter().flat_map(|columns| columns.0);
        let received: Vec<_> = received.map(|(theirs, ours)| format!("{theirs}|{ours}")).collect();
        (
            a.common.input.keys.compared.key.into_iter().flat_map(|columns| columns.0).collect::<Vec<_>>(),
            received,
        )
    };
    let (key, received) = parsed(
        "key = [\"last, first\", \"say \\\"hi\\\"\", \"a=b\"]\nreceive-columns = [\"a, b\", \"c, d=e, f\", \"g\"]\n",
    );
    assert_eq!(key, ["last, first", "say \"hi\"", "a=b"]);
    assert_eq!(received, ["a, b|a, b", "c, d|e, f", "g|g"]);
    // A single string is parsed like typed text.
    assert_eq!(parsed("key = 'a,\"b,c\"'\n").0, ["a", "b,c"]);
}

#[test]
fn what_is_wrong_is_named_with_file_line_and_key() {
    let base = "operation = \"count\"\ninput = \"a.csv\"\nkey = \"id\"\nrole = \"receiver\"\n";
    let with = |line: &str| format!("{base}{line}\n");
    // (text, words)
    let cases: Vec<(String, &[&str])> = vec![
        ("".into(), &["\"operation\" is missing", "intersect"]),
        ("a = ".into(), &["line 1: this is not valid TOML", "veilset run --help"]),
        ("\n\noperation = 3".into(), &["line 3, \"operation\"", "this is a number", "union"]),
        ("operation = \"cuont\"".into(), &["line 1, \"operation\": \"cuont\"", "did you mean \"count\""]),
        ("operation = \"bench\"".into(), &["\"bench\" is not an operation"]),
        (with("quite = true"), &["line 5, \"quite\"", "did you mean \"quiet\"", "--help"]),
        (with("min_count = 3"), &["line 5, \"min_count\"", "has no such option"]),
        (
            with("max-row = 3"),
            &[
                "line 5, \"max-row\"",
                "count has no such option; it belongs to intersect and union",
                "Remove it",
            ],
        ),
        (with("help = true"), &["line 5, \"help\"", "no such option"]),
        (with("force = \"true\""), &["line 5, \"force\"", "this is a string", "true or false"]),
        (with("force = 1"), &["line 5, \"force\"", "this is a number"]),
        (with("threads = true"), &["line 5, \"threads\"", "a string or a number"]),
        (with("threads = [1]"), &["line 5, \"threads\"", "this is a list"]),
        (with("threads = 2020-01-01"), &["line 5, \"threads\"", "a date or time"]),
        (with("[listen]\na = 1"), &["line 5, \"listen\"", "this is a table"]),
        (with("threads = 0"), &["line 5, \"threads\"", "0 is not in 1..=1024", "type --threads after"]),
        (with("encoding = \"latin1\""), &["line 5, \"encoding\"", "possible values: utf8, bytes"]),
        (with("threads = 1\nthreads = 2"), &["line 6: this is not valid TOML", "duplicate key"]),
        (base.replace("\"id\"", "[true]"), &["line 3, \"key\"", "strings in the list"]),
        (with("normalize = [\"trim,nfc\"]"), &["line 5, \"normalize\"", "contains \",\"", "two elements"]),
        (base.replace("\"id\"", "'\"a'"), &["line 3, \"key\"", "a quote is not closed"]),
        (
            base.replace("role", "#"),
            &["veilset.toml, with what was typed", "--role", "without the two hyphens"],
        ),
        (base.replace("input", "#"), &["<INPUT> is input"]),
    ];
    for (text, words) in cases {
        let said = refusal(&text, &["--peer", "p"]);
        for words in [&["folder/veilset.toml"], words].concat() {
            assert!(said.contains(words), "{words:?} is not in: {said}");
        }
    }
    // Errors in typed options are not blamed on the file.
    let said = refusal(base, &["--peer", "p", "--threads", "0"]);
    assert!(said.contains("with what was typed after it") && said.contains("--threads"), "{said}");
    let said = refusal(&with("threads = 2"), &["--peer", "p", "--threads", "0"]);
    assert!(said.contains("with what was typed after it") && said.contains("--threads"), "{said}");
}

#[test]
fn the_examples_of_the_documentation_and_the_help_are_right() {
    // The guide's list of parties and its run files are run by the tests of the documentation.
    Typed::parsed(words(&run_help(), &[]).unwrap()).unwrap();
    let page = include_str!("../../../docs/reference/policy.md");
    let examples =
        page.split("```toml").skip(1).filter_map(|block| block.split_once('\n')?.1.split("```").next());
    let examples = examples.map(|text| toml::from_str::<veilset::governance::policy::Rules>(text).unwrap());
    // One example contains every key, so that it can be copied; the keys for a single peer are in the table.
    let lacks = |rules: &veilset::governance::policy::Rules| {
        let all = format!("{rules:?}");
        let all = all.split("peer: {").next().unwrap().to_string();
        all.split(", ").filter(|key| key.ends_with(": None")).map(str::to_string).collect::<Vec<_>>()
    };
    let lacking: Vec<_> = examples.map(|rules| lacks(&rules)).collect();
    assert!(lacking.iter().any(Vec::is_empty), "{lacking:?}");
}

/// Returns the example of `veilset run --help`.
fn run_help() -> String {
    let example = RUN_HELP.split("veilset.toml:\n").nth(1).unwrap();
    example.split("\n\n").next().unwrap().to_string()
}

#[test]
fn the_help_of_an_operation_says_what_it_is_and_how_it_is_called() {
    let mut all = Typed::command();
    for operation in operations::ALL {
        let help = all.find_subcommand_mut(operation.name).unwrap().render_long_help().to_string();
        let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.starts_with(operation.summary) && flat.contains(operation.about), "{help}");
        assert!(
            help.contains(&format!("veilset {} ours.csv", operation.name)) && help.contains("Exit codes")
        );
    }
}

#[test]
fn what_is_made_in_advance_takes_options_in_any_order() {
    let text = |text: &str| Value::Text(text.into());
    let options = [
        ("key".to_string(), Value::List(vec!["a,b".into()])),
        ("input".into(), text("new.csv")),
        ("filter".into(), text("ours.filter")),
    ];
    let Ok(Wanted::Filter(FilterCommand::Update { filter, input, .. })) = command("filter update", &options)
    else {
        panic!("no update of a filter")
    };
    assert_eq!((filter, input.input), ("ours.filter".into(), vec![PathBuf::from("new.csv")]));
    assert_eq!(input.compared.key.iter().flat_map(|columns| &columns.0).collect::<Vec<_>>(), ["a,b"]);
    let options =
        [("input".to_string(), text("a.csv")), ("output".into(), text("f")), ("for_".into(), text("7"))];
    let built = command("filter build", &options);
    assert!(matches!(built, Ok(Wanted::Filter(FilterCommand::Build { queries: 7, .. }))), "{built:?}");
    for (name, words) in
        [("filter", "filter"), ("filter nothing", "not an operation"), ("filter  info", "not an operation")]
    {
        let e = command(name, &[]).unwrap_err().to_string();
        assert!(e.contains(words), "{e}");
    }
    let e = command("filter info", &[("role".into(), text("sender"))]).unwrap_err().to_string();
    assert!(e.contains("`veilset filter info --help` lists its options"), "{e}");
}
