//! The modules of veilset-core and of this crate use only modules above them in the map. The test searches for `crate::` paths,
//! by which this crate also names core's modules.

use std::path::{Path, PathBuf};

/// The sources of the two crates.
const CRATES: [&str; 2] = ["../core/src", "src"];

/// The modules from the ground floor up. Modules in one list may use each other.
const FLOORS: [&[&str]; 18] = [
    &[
        "error",
        "item",
        "params",
        "rng",
        "hash",
        "secret",
        "places",
        "hazmat",
        "threads",
        "spelling",
        "paths",
        "work",
        "course",
        "assumption",
        "guarded",
        "trusted",
        "json",
        "aead",
    ],
    &["channel", "context", "many"],
    &["group", "hashed", "sharded::set", "sharded::disk", "sharded::engine"],
    &["ot"],
    &["vole", "equality", "switching", "okvs", "hashing", "compact_set", "ahe"],
    &["oprf"],
    &["membership"],
    &["operations"],
    &["protocols"],
    &["table"],
    &["net"],
    &["speed"],
    &["planner"],
    &["artefact", "sharded::learned", "sharded::folder"],
    &["session", "sharded::run", "sharded::workers"],
    &["governance"],
    &["party", "sharded::keep", "sharded::on_disk", "sharded::elsewhere"],
    &["facade"],
];

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// All sources of the two crates, each with its path in its crate.
fn all_sources() -> Vec<(PathBuf, PathBuf)> {
    let of = |src: &str| {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(src);
        let mut files = Vec::new();
        sources(&src, &mut files);
        files.into_iter().map(move |file| (file.clone(), file.strip_prefix(&src).unwrap().to_path_buf()))
    };
    CRATES.into_iter().flat_map(of).collect()
}

/// The modules that a source file names, except in test code.
fn uses(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let code =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let is_name = |c: &char| c.is_ascii_lowercase() || *c == '_';
    let name = |rest: &str| rest.chars().take_while(is_name).collect::<String>();
    // Modules of the folder `sharded` are on floors of their own.
    let of_folder = |rest: &str| match rest.strip_prefix("sharded::") {
        Some(inside) => format!("sharded::{}", name(inside)),
        None => name(rest),
    };
    code.split("crate::").skip(1).map(of_folder).filter(|n| !n.is_empty()).collect()
}

#[test]
fn modules_use_only_what_stands_above_them() {
    let (mut edges, mut seen) = (0, std::collections::HashSet::new());
    for (file, relative) in all_sources() {
        let path = relative.to_str().unwrap().trim_end_matches(".rs").replace('/', "::");
        let module = match path.split_once("::") {
            Some(("sharded", "mod")) => continue,
            Some((first, _)) if first != "sharded" => first,
            _ => &path,
        };
        if ["lib", "testing"].contains(&module) || path.ends_with("tests") {
            continue;
        }
        let own = floor(module).unwrap_or_else(|| panic!("module {module} has no floor: add it to the map"));
        seen.insert(module.to_string());
        for used in uses(&std::fs::read_to_string(file).unwrap()) {
            let theirs = floor(&used).unwrap_or_else(|| panic!("{}: crate::{used}", relative.display()));
            assert!(theirs <= own, "{} ({module}) uses {used}, which stands below it", relative.display());
            edges += 1;
        }
    }
    assert!(edges > 50 && seen.len() == FLOORS.iter().map(|f| f.len()).sum::<usize>(), "{edges} {seen:?}");
}

/// Tests of a file are at its end, up to 150 lines, or else in `FILE_tests.rs` in the same folder. Tests of a folder's `mod.rs`
/// are in `tests.rs`, or in files that end in `_tests.rs`. If a file has several test files, their names begin with its name.
#[test]
fn tests_stand_where_one_looks_for_them() {
    let (mut inline, mut beside) = (0, 0);
    for (file, _) in all_sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        if let Some(owner) = name.strip_suffix("tests.rs") {
            let mut owners = owner.match_indices('_').map(|(end, _)| format!("{}.rs", &owner[..end]));
            let folder = file.with_file_name("mod.rs");
            let owned = folder.exists() || owners.any(|owner| file.with_file_name(owner).exists());
            assert!(owned, "{}: of what?", file.display());
            beside += 1;
        } else if let Some(at) = text.find("\nmod tests {").or_else(|| text.find("\npub(crate) mod tests {"))
        {
            let lines = text[at..].lines().count();
            assert!(lines <= 150, "{}: {lines} lines of tests", file.display());
            inline += 1;
        }
    }
    assert!(inline > 20 && beside > 20, "{inline} {beside}");
}

/// A message is recognised by its number, so no two messages of the program have the same one.
#[test]
fn numbers_of_messages_differ() {
    let mut seen = std::collections::BTreeMap::new();
    let for_tests =
        |file: &Path| file.ends_with("testing.rs") || file.to_str().unwrap().ends_with("tests.rs");
    for (file, _) in all_sources().into_iter().filter(|(file, _)| !for_tests(file)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for rest in code.split("Message::new(").skip(1) {
            let number = rest.split(',').next().unwrap().trim();
            let number = match number.strip_prefix("0x") {
                Some(hex) => u16::from_str_radix(hex, 16).unwrap(),
                None => number.parse().unwrap(),
            };
            let other = seen.insert(number, file.clone());
            assert!(other.is_none(), "{number:#x} in {} and {}", file.display(), other.unwrap().display());
        }
    }
    assert!(seen.len() > 25, "{seen:?}");
}

/// The library's code by file, without comments and without test modules at the end.
fn code() -> Vec<(PathBuf, String)> {
    CRATES.into_iter().flat_map(|src| code_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join(src))).collect()
}

/// The code of any crate by file, without comments and without test modules at the end.
fn code_in(src: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    sources(src, &mut files);
    let for_tests =
        |file: &Path| file.ends_with("testing.rs") || file.to_str().unwrap().ends_with("tests.rs");
    files.retain(|file| !for_tests(file));
    let ends = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(crate) mod ", "#[cfg(test)]\n#[path"];
    let code = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
        let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
        (file.strip_prefix(src).unwrap().to_path_buf(), lines.collect::<Vec<_>>().join("\n"))
    };
    files.into_iter().map(code).collect()
}

/// The names of the public types of one crate outside of tests, found as `pub struct Name` at the start of a line, each with
/// the kinds and the files of its definitions.
fn public_types(sources: &[(PathBuf, String)]) -> std::collections::BTreeMap<String, Vec<(String, PathBuf)>> {
    let mut all: std::collections::BTreeMap<String, Vec<(String, PathBuf)>> = Default::default();
    for (file, text) in sources {
        for item in text.lines().filter_map(|line| line.strip_prefix("pub ")) {
            let mut words = item.strip_prefix("unsafe ").unwrap_or(item).split(' ');
            let (Some(kind), Some(rest)) = (words.next(), words.next()) else { continue };
            if ["struct", "enum", "trait", "type"].contains(&kind) {
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                all.entry(name).or_default().push((kind.to_string(), file.clone()));
            }
        }
    }
    all
}

/// The names that several public types have, except those of a trait and its implementations: in a folder with a trait, the
/// types of the same name implement it or one of its associated types, and callers write `G::Key` (`group`).
fn shared_names(sources: &[(PathBuf, String)]) -> Vec<String> {
    let mut shared = Vec::new();
    for (name, mut defined) in public_types(sources) {
        let folder = |file: &Path| file.parent().unwrap().to_path_buf();
        let traits: Vec<PathBuf> =
            defined.iter().filter(|(kind, _)| kind == "trait").map(|(_, file)| folder(file)).collect();
        defined.retain(|(kind, file)| kind == "trait" || !traits.contains(&folder(file)));
        if defined.len() > 1 {
            shared.push(name);
        }
    }
    shared
}

/// A reader who meets the name of a type knows which one it is, without the path.
#[test]
fn no_two_public_types_of_a_crate_share_a_name() {
    // Names that identify a type only together with its module.
    let allowed = [
        // The trusted party of a module's functionality, for tests.
        "Ideal", // The others: the state of one party of a protocol, one for each protocol.
        "Sender", "Receiver", "Client", "Server",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut types = 0;
    for name in ["kernels", "core", "veilset", "app", "cli", "dev"] {
        let sources = code_in(&root.join(name).join("src"));
        types += public_types(&sources).len();
        let mut shared = shared_names(&sources);
        shared.retain(|shared| !allowed.contains(&shared.as_str()));
        assert!(shared.is_empty(), "public types of {name} with one name: {shared:?}");
    }
    assert!(types > 300, "{types}");
}

#[test]
fn a_name_that_two_types_share_is_found() {
    let source = |file: &str, text: &str| (PathBuf::from(file), text.to_string());
    let own =
        [source("a.rs", "pub struct One(u8);\npub(crate) struct Two;"), source("b.rs", "pub enum Two {")];
    assert!(shared_names(&own).is_empty());
    let implemented = [source("f/mod.rs", "pub trait Key: Sync {"), source("f/a.rs", "pub struct Key(u8);")];
    assert!(shared_names(&implemented).is_empty());
    let elsewhere = [source("f/mod.rs", "pub trait Key {"), source("g/a.rs", "pub type Key = u8;")];
    assert_eq!(shared_names(&elsewhere), ["Key"]);
    let twice =
        [source("a.rs", "pub struct Table<T> {"), source("b.rs", "    pub struct Table;\npub struct Table;")];
    assert_eq!(shared_names(&twice), ["Table"]);
}

/// Only their names make two oracles of one session independent.
#[test]
fn names_of_oracles_differ() {
    let mut seen = std::collections::BTreeMap::new();
    let begins = [
        "Domain::new(",
        "Domain::without_session(",
        "derive_key(",
        // Purposes, whose constants may have any name.
        ": &str = ",
        "domain: ",
    ];
    for (file, text) in code() {
        for rest in begins.iter().flat_map(|begin| text.split(begin).skip(1)) {
            // The first string of the statement, unless it uses a variable.
            let statement = rest.split(&[';', '\n'][..]).next().unwrap();
            let Some(name) = statement.split('"').nth(1) else { continue };
            let other = seen.insert(name.to_string(), file.clone());
            assert!(other.is_none(), "{name:?} in {} and {}", file.display(), other.unwrap().display());
        }
    }
    assert!(seen.len() > 30, "{seen:?}");
}

/// Anyone who knows a seed knows every secret of the run.
#[test]
fn fixed_seeds_are_for_tests_only() {
    // The generator itself; benchmarks; the random dummies of a prepared half, from a secret seed; public polynomials, which
    // are sent as a seed.
    let allowed = ["rng.rs", "hazmat.rs", "artefact/half.rs", "membership/bfv.rs"];
    let used: Vec<PathBuf> =
        code().into_iter().filter(|(_, text)| text.contains("from_seed(")).map(|f| f.0).collect();
    assert!(
        used.len() == allowed.len() && allowed.iter().all(|file| used.contains(&file.into())),
        "{used:?}"
    );
    assert!(code().iter().all(|(_, text)| !text.contains("hazmat::")));
}

#[test]
fn a_path_that_points_down_is_found() {
    assert_eq!(
        uses("use crate::session::run;\n// crate::table\nfn f() { crate::ot::x() }"),
        ["session", "ot"]
    );
    assert!(uses("#[cfg(test)] mod tests { use crate::session; }").is_empty());
}

/// The roles take a set as it is, and dummies of the wrong kind would give a wrong result: `protocols::run` refuses these.
#[test]
fn roles_of_operations_are_called_by_run_only() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/operations"), &mut files);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    for role in ["receiver", "sender"] {
        let count = |visible: &str| {
            let start = format!("{visible} fn {role}");
            text.lines().filter(|line| line.starts_with(&start)).count()
        };
        assert_eq!((count("pub"), count("pub(crate)")), (0, 8), "{role}");
    }
}

/// The properties of a protocol or an operation are in its entry. Neither the library nor the program checks elsewhere which
/// one it is.
#[test]
fn only_their_entries_know_the_protocols_and_operations() {
    let mut all = code();
    let mut program = Vec::new();
    for src in ["../app/src", "../cli/src", "../dev/src"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(src), &mut program);
    }
    let read = |file: PathBuf| (file.clone(), std::fs::read_to_string(&file).unwrap());
    all.extend(program.into_iter().map(read));
    let protocols = veilset::protocols::ALL.into_iter().chain(veilset::protocols::MULTIPARTY);
    let protocols: Vec<_> = protocols.map(|p| ("protocols", "Protocol", p.name)).collect();
    let operations = veilset::operations::ALL.map(|o| ("operations", "Operation", o.name));
    // The words of each file that can name an entry.
    let separates = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':' || c == '&');
    let can_name = |word: &&str| word.starts_with('&') || word.contains("::");
    let words: Vec<std::collections::HashSet<&str>> =
        all.iter().map(|(_, text)| text.split(separates).filter(can_name).collect()).collect();
    let mut entries = 0;
    for (module, kind, name) in protocols.iter().copied().chain(operations) {
        // The entry: `pub static CONSTANT: Kind = Kind {`, then its name.
        let entry = format!(": {kind} = {kind} {{\n    name: \"{name}\"");
        let constants = all.iter().filter_map(|(_, text)| text.split_once(&entry)).map(|(before, _)| before);
        let constants: Vec<String> = constants.map(|before| last_word(before).to_string()).collect();
        let [constant] = &constants[..] else { panic!("{name}: {constants:?}") };
        entries += 1;
        let (borrowed, path) = (format!("&{constant}"), format!("{module}::{constant}"));
        let asks = [format!("== \"{name}\""), format!("\"{name}\" =>")];
        for ((file, text), words) in all.iter().zip(&words) {
            let named = words.contains(&*borrowed) || words.iter().any(|word| word.ends_with(&path));
            // Protocols offer operations, and the functions of the main interface run them.
            let offers =
                file.starts_with("protocols") || module == "operations" && file.starts_with("facade");
            let knows = file.starts_with(module) || offers;
            assert!(knows || !named, "{} names {constant}", file.display());
            assert!(asks.iter().all(|asks| !text.contains(asks)), "{} asks for {name}", file.display());
        }
    }
    assert_eq!(entries, protocols.len() + operations.len());
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap()
}

/// A message names a setting or a command so that every front end can spell it ([`veilset::spelling`]): with its marker, and
/// never in text that only looks like it.
#[test]
fn messages_name_settings_and_no_options() {
    // Text that only the program prints: its help, and its own commands.
    let typed = [
        "../app/src/options",
        "../cli/src/args",
        "../cli/src/complete",
        "../cli/src/demo",
        "../cli/src/identity.rs",
    ];
    let mut used = std::collections::HashSet::new();
    for src in CRATES.into_iter().chain(["../app/src", "../cli/src", "../python/src"]) {
        for (file, text) in code_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join(src)) {
            if ["spelling.rs", "errors.rs"].iter().any(|name| file.ends_with(name)) {
                continue;
            }
            let text: Vec<&str> = text.lines().map(|line| line.split(" // ").next().unwrap()).collect();
            let text = text.join("\n");
            let path = format!("{src}/{}", file.display());
            let in_program = typed.iter().any(|name| path.starts_with(name));
            let shown =
                |at: usize| format!("{src}/{}: {}", file.display(), text[at..].lines().next().unwrap());
            let option = |at: usize| text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase());
            // The text that a user types after the name of the program.
            let command = |at: usize| {
                let from = text[..at].rfind("to_type(").unwrap_or(0);
                !text[from..at].contains(['\n', ';'])
            };
            for (at, _) in text.match_indices("--").filter(|(at, _)| option(*at)) {
                let version = text[..at].ends_with("command!(\"") && text[at..].starts_with("--version\"");
                assert!(version || command(at) || in_program, "{}", shown(at));
            }
            for (at, _) in text.match_indices("`veilset ") {
                // The head of the address book names the commands that write it.
                let head = text[at..].starts_with("`veilset peer add` and `remove` rewrite");
                assert!(head || in_program, "{}", shown(at));
            }
            for literal in text.split("setting!(").skip(1) {
                let name = literal.split([',', ')']).next().unwrap().trim();
                assert!(veilset::spelling::SETTINGS.iter().any(|one| one.name() == name), "{src}: {name}");
            }
            for setting in veilset::spelling::SETTINGS {
                let (name, constant) = (setting.name(), setting.name().to_uppercase());
                for quoted in [format!("`{name}`"), format!("`{name}=")] {
                    assert!(text.find(&quoted).is_none_or(|at| panic!("{}", shown(at))));
                }
                let names = [
                    format!("{{{constant}}}"),
                    format!("{constant}.with("),
                    format!("{constant}.marked()"),
                    format!("setting!({name}"),
                ];
                if names.iter().any(|names| text.contains(names)) {
                    used.insert(name);
                }
            }
        }
    }
    let unused: Vec<_> =
        veilset::spelling::SETTINGS.iter().filter(|one| !used.contains(one.name())).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

/// Whether the source has a test with this name.
fn has_test(source: &str, name: &str) -> bool {
    let (_, after) = source.split_at(source.find("#[test]").unwrap_or(source.len()));
    let declares = |item: &str| {
        let mut lines = item.lines().map(str::trim_start).filter(|line| !line.starts_with("#["));
        lines.find(|line| !line.is_empty()).is_some_and(|line| line.starts_with(&format!("fn {name}(")))
    };
    after.split("#[test]").skip(1).any(declares)
}

/// The list of departures from the papers supports each with tests that exist, in files that exist.
#[test]
fn the_corrections_name_files_and_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/corrections.md")).unwrap();
    let (mut files, mut tests) = (0, 0);
    for quoted in text.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains(".rs")) {
        let (file, test) = quoted.split_once("::").map_or((quoted, None), |(file, test)| (file, Some(test)));
        let folder = if file.starts_with("crates/") {
            root.clone()
        } else {
            CRATES
                .map(|src| root.join("crates/veilset").join(src))
                .into_iter()
                .find(|src| src.join(file).exists())
                .unwrap_or_default()
        };
        let source = std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{quoted}: {e}"));
        assert!(test.is_none_or(|test| has_test(&source, test)), "{quoted} is no test");
        files += 1;
        tests += usize::from(test.is_some());
    }
    assert!(tests > 90 && files > tests, "{files} {tests}");
    // A link must lead to exactly one heading.
    let slug = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    };
    let headings: Vec<String> = text.lines().filter(|line| line.starts_with('#')).map(slug).collect();
    for link in text.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert_eq!(headings.iter().filter(|heading| *heading == link).count(), 1, "#{link}");
    }
}

#[test]
fn a_test_that_is_none_is_found() {
    let source = "fn one() {}\n#[test]\n#[ignore]\nfn two() {}\n    #[test]\n    fn three() {}\nfn four() {}";
    let found = ["one", "two", "three", "four", "t"].map(|name| has_test(source, name));
    assert_eq!(found, [false, true, true, false, false]);
}
