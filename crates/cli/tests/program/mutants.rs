//! Consistency of the table of mutants (`mutants/README.md`) with the source.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Table {
    mutant: Vec<Mutant>,
}

/// A change that a test must notice.
#[derive(Deserialize)]
struct Mutant {
    name: String,
    tests: Vec<String>,
    package: Option<String>,
    #[serde(flatten)]
    own: Option<Place>,
    #[serde(default)]
    edit: Vec<Place>,
}

#[derive(Deserialize)]
struct Removals {
    removed: Vec<Removed>,
}

/// A mutant that was removed because another one proves its property.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Removed {
    name: String,
    kept: String,
    reason: String,
}

#[derive(Deserialize)]
struct Place {
    file: String,
    context: Option<String>,
    before: String,
}

impl Place {
    /// Returns where the place is in the text of its file.
    fn find(&self, text: &str) -> Result<Range<usize>, String> {
        let once = |text: &str, part: &str| match &text.match_indices(part).collect::<Vec<_>>()[..] {
            [(at, _)] => Ok(*at),
            all => Err(format!("{} has {} times: {part}", self.file, all.len())),
        };
        let start = match &self.context {
            None => once(text, &self.before)?,
            Some(context) => once(text, context)? + once(context, &self.before)?,
        };
        Ok(start..start + self.before.len())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the text of a file, or of all Rust files in a folder.
fn text(path: &Path) -> String {
    if !path.is_dir() {
        return std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    entries(path)
        .filter(|path| path.is_dir() || path.extension().is_some_and(|e| e == "rs"))
        .map(|path| text(&path))
        .collect()
}

/// Returns the text of the tests of a package, or of a package and `--test NAME`.
fn tests(package: &str) -> String {
    let (package, target) = package.split_once(" --test ").map_or((package, None), |(p, t)| (p, Some(t)));
    let folder = root().join("crates").join(package.strip_prefix("veilset-").unwrap_or(package));
    let Some(target) = target else { return text(&folder.join("src")) };
    let target = folder.join("tests").join(target);
    text(&if target.is_dir() { target } else { target.with_extension("rs") })
}

/// A file or folder directly in the folder `src` of a crate.
struct Module {
    krate: String,
    /// The name of the file or folder.
    name: String,
    text: String,
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

/// Returns the modules of all crates, which contain their unit tests.
fn modules() -> Vec<Module> {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
    let of_crate = |folder: PathBuf| {
        let krate = name(&folder);
        let sources =
            entries(&folder.join("src")).filter(|path| path.is_dir() || name(path).ends_with(".rs"));
        sources.map(move |path| Module { krate: krate.clone(), name: name(&path), text: text(&path) })
    };
    entries(&root().join("crates")).flat_map(of_crate).collect()
}

/// Returns the crates that have a unit test with this full path.
fn homes<'a>(test: &str, modules: &'a [Module]) -> BTreeSet<&'a str> {
    let (top, function) = (test.split("::").next().unwrap(), function(test));
    let is_of = |module: &&Module| {
        let rest = module.name.strip_prefix(top);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']))
            && module.text.contains(&function)
    };
    modules.iter().filter(is_of).map(|module| module.krate.as_str()).collect()
}

/// Returns the beginning of a test's function.
fn function(test: &str) -> String {
    format!("fn {}(", test.rsplit("::").next().unwrap())
}

/// Returns all mutants of the table.
fn mutants() -> Vec<Mutant> {
    let folder = entries(&root().join("mutants"));
    let others = ["Cargo.toml", "judged.toml", "removed.toml"].map(|name| root().join("mutants").join(name));
    let tables =
        folder.filter(|path| path.extension().is_some_and(|e| e == "toml") && !others.contains(path));
    tables.flat_map(|path| toml::from_str::<Table>(&text(&path)).unwrap().mutant).collect()
}

/// A change of the source must not lose a mutant, and building all mutants takes too long for every change. So this only
/// finds the place and the tests of each; `scripts/mutants --check` tells whether it is valid Rust.
#[test]
fn every_mutant_has_its_place_in_the_source_and_its_tests() {
    let mutants = mutants();
    let (mut wrong, mut names) = (Vec::new(), BTreeSet::new());
    let (mut files, mut packages) = (BTreeMap::new(), BTreeMap::new());
    let (modules, mut crates) = (modules(), BTreeSet::new());
    let mut changed: BTreeMap<&str, Vec<(&str, Range<usize>)>> = BTreeMap::new();
    for Mutant { name, tests: own_tests, package, own, edit } in &mutants {
        if !names.insert(name) {
            wrong.push(format!("{name}: there are two"));
        }
        let places: Vec<&Place> = own.iter().chain(edit).collect();
        if places.is_empty() || own_tests.is_empty() {
            wrong.push(format!("{name}: no place, or no test"));
        }
        for place in places {
            let text = files.entry(&place.file).or_insert_with(|| text(&root().join(&place.file)));
            match place.find(text) {
                Ok(range) => changed.entry(&place.file).or_default().push((name, range)),
                Err(why) => wrong.push(format!("{name}: {why}")),
            }
        }
        for test in own_tests {
            let there = match package {
                Some(package) => {
                    let text = packages.entry(package.as_str()).or_insert_with(|| tests(package));
                    text.contains(&function(test))
                }
                None => {
                    let homes = homes(test, &modules);
                    crates.extend(homes.iter().copied());
                    homes.len() == 1
                }
            };
            // The snapshot is blessed again at every change of a protocol, so it proves nothing.
            if !there || test.contains("snapshot") {
                wrong.push(format!("{name}: {test} is no test for it, or of several crates"));
            }
        }
    }
    for (file, mut all) in changed {
        all.sort_by_key(|(_, range)| (range.start, std::cmp::Reverse(range.end)));
        for (i, (outer, a)) in all.iter().enumerate() {
            for (inner, b) in all[i + 1..].iter().take_while(|(_, b)| b.start < a.end) {
                if b.end > a.end {
                    wrong.push(format!("{outer} and {inner} overlap in {file}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(mutants.len() > 1000 && packages.len() > 2, "{} {}", mutants.len(), packages.len());
    assert_eq!(crates, BTreeSet::from(["core", "kernels", "veilset"]));
}

/// The property of a removed mutant is proved by another one, which must stay.
#[test]
fn what_was_removed_is_proved_by_a_mutant_that_is_there() {
    let mutants = mutants();
    let there: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    let removed = toml::from_str::<Removals>(&text(&root().join("mutants/removed.toml"))).unwrap().removed;
    let (mut wrong, mut names) = (Vec::new(), BTreeSet::new());
    for Removed { name, kept, reason } in &removed {
        if there.contains(name.as_str()) {
            wrong.push(format!("{name} is there"));
        }
        if !there.contains(kept.as_str()) {
            wrong.push(format!("{kept}, which is to prove what {name} proved, is not there"));
        }
        if !names.insert(name) || reason.trim().is_empty() {
            wrong.push(format!("{name}: removed twice, or without a reason"));
        }
    }
    assert!(!removed.is_empty() && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_mutant_that_is_lost_is_found() {
    let place = |context: Option<&str>, before: &str| Place {
        file: "f".into(),
        context: context.map(Into::into),
        before: before.into(),
    };
    let text = "f(a); g(a); h(b);";
    assert_eq!(place(None, "b").find(text), Ok(14..15));
    assert_eq!(place(Some("g(a)"), "a").find(text), Ok(8..9));
    for (context, before, times) in
        [(None, "a", 2), (None, "c", 0), (Some("(a)"), "a", 2), (Some("g(a)"), "b", 0)]
    {
        let why = place(context, before).find(text).unwrap_err();
        assert!(why.contains(&format!("has {times} times")), "{why}");
    }
}

#[test]
fn a_unit_test_is_of_the_crate_where_it_stands() {
    let module = |krate: &str, name: &str, test: &str| Module {
        krate: krate.into(),
        name: name.into(),
        text: format!("#[test]\nfn {test}() {{}}\n"),
    };
    let modules = [
        module("kernels", "hash", "a"),
        module("core", "hash.rs", "b"),
        module("core", "hashed.rs", "c"),
        module("veilset", "trusted_tests.rs", "d"),
        module("veilset", "hash", "b"),
    ];
    for (test, crates) in [
        ("hash::tests::a", &["kernels"][..]),
        ("hash::tests::b", &["core", "veilset"]),
        ("hashed::tests::c", &["core"]),
        ("hash::tests::c", &[]),
        ("trusted::tests::d", &["veilset"]),
        ("tests::d", &[]),
    ] {
        assert!(homes(test, &modules).into_iter().eq(crates.iter().copied()), "{test}");
    }
}
