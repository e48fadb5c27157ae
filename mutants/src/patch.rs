//! The scratch copy, in which every change is a branch on a run-time switch.

use crate::run::CompileError;
use crate::{Result, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Rust files of the repository that may be changed, by path, with their texts.
pub type Sources = BTreeMap<String, String>;

/// Replaces a piece of text if a switch is on.
#[derive(Clone)]
pub struct Edit {
    pub file: String,
    pub start: usize,
    pub end: usize,
    /// The number of the mutant to which the edit belongs, from 1.
    pub switch: usize,
    pub after: String,
    /// Whether the text is statements, rather than an expression.
    pub statement: bool,
    /// The mutant's name.
    pub name: String,
}

/// The code of the switches, which is appended to the crate that all others use.
const SWITCHES: &str = r#"
/// Which mutant is switched on.
pub mod mutants {
    /// Whether this one is.
    pub fn on(mutant: usize) -> bool {
        static ON: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let on = || std::env::var("VEILSET_MUTANT").ok().and_then(|number| number.parse().ok());
        *ON.get_or_init(|| on().unwrap_or(0)) == mutant
    }
}
"#;

/// Returns the files of the repository that git tracks or would track.
fn files(root: &Path) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .output()
        .map_err(|e| format!("cannot run git: {e}"))?;
    let text = String::from_utf8(listed.stdout).map_err(|e| e.to_string())?;
    let files = text.split('\0').filter(|file| !file.is_empty() && root.join(file).is_file());
    Ok(files.map(Into::into).collect())
}

/// Returns the code in the `src` folders of all crates except `memory`.
pub fn sources(root: &Path) -> Result<Sources> {
    let files = files(root)?.into_iter();
    let code = files.filter(|file| {
        let is_code = file.starts_with("crates/") && file.contains("/src/") && file.ends_with(".rs");
        is_code && !file.starts_with("crates/memory/")
    });
    code.map(|file| Ok((file.clone(), read(&root.join(&file))?))).collect()
}

/// Returns the common prefix of the names of the tests in a file.
pub fn module(file: &str) -> String {
    let inside = file.split_once("/src/").map_or("", |(_, inside)| inside);
    format!("{}::", inside.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::"))
}

/// Returns the package of a file.
pub fn package(file: &str) -> String {
    match file.split('/').nth(1).unwrap_or_default() {
        "veilset" => "veilset".into(),
        name => format!("veilset-{name}"),
    }
}

/// Crates in order: the unit tests of later ones may notice changes in earlier ones.
const LAYERS: [&str; 3] = ["veilset-kernels", "veilset-core", "veilset"];

/// Returns the packages whose unit tests may notice a change in a file: its own first, then the packages built on it.
pub fn noticing(file: &str) -> Vec<String> {
    let own = package(file);
    match LAYERS.iter().position(|layer| *layer == own) {
        Some(at) => LAYERS[at..].iter().map(|layer| (*layer).into()).collect(),
        None => vec![own],
    }
}

/// Returns the package that has the unit test with this full path.
pub fn home(test: &str, sources: &Sources) -> Result<String> {
    let top = test.split("::").next().unwrap_or_default();
    let function = format!("fn {}(", test.rsplit("::").next().unwrap_or_default());
    // The module is a file, a folder, or a separate file of tests next to it.
    let is_of = |file: &str| {
        let inside = file.split_once("/src/").and_then(|(_, inside)| inside.strip_prefix(top));
        inside.is_some_and(|rest| rest.starts_with(['.', '/', '_']))
    };
    let of = sources.iter().filter(|(file, text)| is_of(file) && text.contains(&function));
    let found: BTreeSet<String> = of.map(|(file, _)| package(file)).collect();
    match found.len() {
        0 => Err(format!("no crate has the unit test {test}")),
        1 => Ok(found.into_iter().collect()),
        _ => Err(format!("several crates have the unit test {test}: {found:?}; say which with `package`")),
    }
}

/// Returns the modules that are built only with the feature `fhe`, as [`module`] names them.
pub fn of_fhe(sources: &Sources) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in sources {
        let within = module(file);
        for rest in text.split("#[cfg(feature = \"fhe\")]\n").skip(1) {
            let name = rest.lines().next().and_then(|line| line.strip_suffix(';')?.split_once("mod "));
            found.extend(name.map(|(_, name)| format!("{}{name}::", within.trim_start_matches("lib::"))));
        }
    }
    found
}

/// Refuses changes that overlap, unless one contains the other or both are in the same place.
pub fn check(edits: &[Edit]) -> Result<()> {
    let mut clashes = Vec::new();
    for (i, a) in edits.iter().enumerate() {
        for b in edits[i + 1..].iter().filter(|b| a.file == b.file && a.start < b.end && b.start < a.end) {
            let within = |a: &Edit, b: &Edit| a.start <= b.start && b.end <= a.end;
            if !within(a, b) && !within(b, a) {
                clashes.push(format!("the changes of {} and {} overlap in {}", a.name, b.name, a.file));
            }
        }
    }
    if clashes.is_empty() { Ok(()) } else { Err(clashes.join("\n")) }
}

/// Refuses changes that are not valid Rust: a place must be an expression or statements, and so must its replacement.
pub fn parse(sources: &Sources, edits: &[Edit]) -> Result<()> {
    let fits = |file: &str, text: &str, edits: &[Edit]| syn::parse_file(&patched(file, text, edits).text);
    let mut wrong = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| edits.iter().any(|edit| edit.file == **file)) {
        if fits(file, text, edits).is_ok() {
            continue;
        }
        // Find out which edits are wrong.
        for edit in edits.iter().filter(|edit| edit.file == *file) {
            if let Err(why) = fits(file, text, std::slice::from_ref(edit)) {
                wrong.push(format!("{}: {file} is not Rust with it: {why}", edit.name));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The manifests of the workspace, which are one folder above the copy.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "Cargo.lock"];

/// The folders in which the copy is built.
pub struct Copy {
    /// The folder of the workspace. Relative to it, the crates have other paths than in the repository. Otherwise cargo, which
    /// builds both into one folder, would confuse the two, and test the repository with mutants.
    pub workspace: PathBuf,
    /// The build folder of the repository, which has the dependencies.
    pub build: PathBuf,
}

impl Copy {
    /// Returns the repository's path of a file of the copy.
    pub fn file(&self, name: String) -> String {
        name.strip_prefix("tree/").map(Into::into).unwrap_or(name)
    }
}

/// Writes the copy with its switches. Unchanged files keep their modification time, so that little is rebuilt.
pub fn write(root: &Path, sources: &Sources, edits: &[Edit]) -> Result<Copy> {
    let workspace = root.join("target/mutants");
    let tree = workspace.join("tree");
    let mut listed: BTreeSet<String> = files(root)?.into_iter().collect();
    for name in MANIFESTS.iter().filter(|name| listed.remove(**name)) {
        let text = read(&root.join(name))?;
        let moved = moved(&text).map_err(|e| format!("{name}: {e}"))?;
        place(&workspace.join(name), moved.as_bytes())?;
    }
    remove_others(&tree, &tree, &listed)?;
    for file in &listed {
        let to = tree.join(file);
        let bytes = match sources.get(file) {
            Some(text) => patched(file, text, edits).text.into_bytes(),
            None => std::fs::read(root.join(file)).map_err(|e| format!("{file}: {e}"))?,
        };
        place(&to, &bytes)?;
    }
    let build = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
    Ok(Copy { workspace, build })
}

/// Returns the manifest for a workspace whose packages are in the folder `tree`.
fn moved(manifest: &str) -> Result<String, toml::de::Error> {
    let table: toml::Table = toml::from_str(manifest)?;
    let workspace = table.get("workspace");
    let lists = ["members", "exclude"].into_iter().filter_map(|list| workspace?.get(list)?.as_array());
    let dependencies = workspace.and_then(|w| w.get("dependencies")?.as_table()).into_iter().flatten();
    let paths = dependencies.filter_map(|(_, dependency)| dependency.get("path"));
    let paths: BTreeSet<&str> = lists.flatten().chain(paths).filter_map(toml::Value::as_str).collect();
    let quoted = |path: &str| format!("\"{path}\"");
    let renamed = |text: String, path: &&str| text.replace(&quoted(path), &quoted(&format!("tree/{path}")));
    Ok(paths.iter().fold(manifest.into(), renamed))
}

/// Writes a file, unless it already has these contents.
fn place(to: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let parent = to.parent().unwrap_or(to);
    std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    std::fs::write(to, bytes).map_err(|e| format!("{}: {e}", to.display()))
}

fn remove_others(folder: &Path, tree: &Path, listed: &BTreeSet<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            remove_others(&path, tree, listed)?;
        } else if !listed.contains(&name) {
            std::fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    Ok(())
}

/// A file with its switches, and the place of each mutant in it.
#[derive(Default)]
struct Patched {
    text: String,
    /// Mutants, each with the byte range of its whole branch.
    places: Vec<(usize, std::ops::Range<usize>)>,
}

fn patched(file: &str, text: &str, edits: &[Edit]) -> Patched {
    let mut own: Vec<&Edit> = edits.iter().filter(|edit| edit.file == file).collect();
    own.sort_by_key(|edit| (edit.start, std::cmp::Reverse(edit.end)));
    let mut out = Patched::default();
    out.render(text, 0..text.len(), &own, path(file));
    // The switches are appended, so that no place moves.
    if file == "crates/kernels/src/lib.rs" {
        out.text += SWITCHES;
    }
    if file == "crates/veilset/src/lib.rs" {
        out.text += "\n/// The switches of mutants.\npub mod mutants {\n    pub use veilset_kernels::mutants::on;\n}\n";
    }
    out
}

/// Returns the path with which a file names the function that queries a switch.
fn path(file: &str) -> &'static str {
    if file.starts_with("crates/kernels/") {
        "crate::mutants::on"
    } else if ["crates/core/", "crates/veilset/"].iter().any(|crates| file.starts_with(crates)) {
        "veilset_kernels::mutants::on"
    } else {
        "veilset::mutants::on"
    }
}

impl Patched {
    /// Writes `text[range]` with `edits`, which are within the range and sorted, outer ones first.
    fn render(&mut self, text: &str, range: std::ops::Range<usize>, edits: &[&Edit], on: &str) {
        let mut at = range.start;
        let mut rest = edits;
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|e| (e.start, e.end) == (first.start, first.end)).count();
            let inside = rest.iter().take_while(|e| e.start < first.end.max(first.start + 1)).count();
            self.text += &text[at..first.start];
            let start = self.text.len();
            if !first.statement {
                self.text += "(";
            }
            for edit in &rest[..same] {
                self.text += &format!("if {on}({}) {{ {} }} else ", edit.switch, edit.after);
            }
            self.text += "{ ";
            self.render(text, first.start..first.end, &rest[same..inside.max(same)], on);
            self.text += " }";
            if !first.statement {
                self.text += ")";
            }
            let end = self.text.len();
            self.places.extend(rest[..same].iter().map(|edit| (edit.switch, start..end)));
            at = first.end;
            rest = &rest[inside.max(same)..];
        }
        self.text += &text[at..range.end];
    }
}

/// Returns the mutants that cause these errors: the ones in the smallest branch around each place. If no place of an error is
/// in a branch, the ones between its places, or else the nearest one after them, which the next iteration of a loop may miss.
pub fn culprits(sources: &Sources, edits: &[Edit], errors: &[CompileError]) -> BTreeSet<usize> {
    let mut patched_files = BTreeMap::new();
    let mut found = BTreeSet::new();
    for error in errors {
        let (mut own, mut between, mut behind) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (file, at) in &error.places {
            let Some(text) = sources.get(file) else { continue };
            let patched = patched_files.entry(file).or_insert_with(|| patched(file, text, edits));
            let around = patched.places.iter().filter(|(_, range)| range.start <= *at && *at < range.end);
            if let Some(size) = around.clone().map(|(_, range)| range.len()).min() {
                own.extend(around.filter(|(_, range)| range.len() == size).map(|(switch, _)| *switch));
            }
            let here = error.places.iter().filter(|(other, _)| other == file).map(|(_, at)| *at);
            let (Some(first), Some(last)) = (here.clone().min(), here.max()) else { continue };
            let inside = patched.places.iter().filter(|(_, range)| first <= range.start && range.end <= last);
            between.extend(inside.map(|(switch, _)| *switch));
            let after = patched.places.iter().filter(|(_, range)| last < range.start);
            behind.extend(after.min_by_key(|(_, range)| range.start).map(|(switch, _)| *switch));
        }
        found.extend([own, between, behind].into_iter().find(|set| !set.is_empty()).unwrap_or_default());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, switch: usize, after: &str, statement: bool) -> Edit {
        let (file, name) = ("crates/veilset/src/a.rs".into(), switch.to_string());
        Edit { file, start, end, switch, after: after.into(), statement, name }
    }

    #[test]
    fn places_nest_and_share() {
        let text = "f(a + b); g();";
        let all = [
            edit(2, 7, 1, "0", false),
            edit(2, 3, 2, "x", false),
            edit(2, 7, 3, "1", false),
            edit(10, 14, 4, "", true),
        ];
        assert!(check(&all).is_ok());
        let out = patched("crates/veilset/src/a.rs", text, &all);
        let in_core = all.iter().map(|e| Edit { file: "crates/core/src/a.rs".into(), ..e.clone() });
        assert_eq!(patched("crates/core/src/a.rs", text, &in_core.collect::<Vec<_>>()).text, out.text);
        let on = "veilset_kernels::mutants::on";
        assert_eq!(
            out.text,
            format!(
                "f((if {on}(1) {{ 0 }} else if {on}(3) {{ 1 }} else {{ (if {on}(2) {{ x }} else {{ a }}) + b }})); \
                 if {on}(4) {{  }} else {{ g(); }}"
            )
        );
        assert!(check(&[edit(0, 5, 1, "", false), edit(3, 7, 2, "", false)]).is_err());
    }

    #[test]
    fn a_test_is_of_the_crate_where_it_stands() {
        let file =
            |name: &str, test: &str| (format!("crates/{name}"), format!("#[test]\nfn {test}() {{}}\n"));
        let sources = Sources::from([
            file("kernels/src/hash/mod.rs", "a"),
            file("core/src/hash.rs", "b"),
            file("core/src/hashed_tests.rs", "c"),
            file("veilset/src/session/run_tests.rs", "d"),
            file("core/src/twice.rs", "e"),
            file("veilset/src/twice/e.rs", "e"),
        ]);
        let home = |test: &str| home(test, &sources);
        assert_eq!(home("hash::tests::a"), Ok("veilset-kernels".into()));
        assert_eq!(home("hash::tests::b"), Ok("veilset-core".into()));
        assert_eq!(home("hashed::tests::c"), Ok("veilset-core".into()));
        assert_eq!(home("session::run::tests::d"), Ok("veilset".into()));
        for lost in ["hash::tests::c", "session::tests::b", "run::tests::d", "", "hash"] {
            assert!(home(lost).unwrap_err().starts_with("no crate"), "{lost}");
        }
        assert!(home("twice::tests::e").unwrap_err().contains("several crates"));
    }

    #[test]
    fn what_is_built_on_a_crate_may_notice_what_breaks_in_it() {
        let all = ["veilset-kernels", "veilset-core", "veilset"];
        for (file, packages) in [
            ("crates/kernels/src/aes/mod.rs", &all[..]),
            ("crates/core/src/ot/base.rs", &all[1..]),
            ("crates/veilset/src/session/run.rs", &all[2..]),
            ("crates/app/src/book.rs", &["veilset-app"]),
        ] {
            assert_eq!(noticing(file), packages);
        }
    }

    #[test]
    fn the_modules_of_a_feature_are_found() {
        let text = "mod a;\n#[cfg(feature = \"fhe\")]\npub(crate) mod b;\n#[cfg(feature = \"fhe\")]\npub use b::B;\n";
        let file = |name: &str| (format!("crates/veilset/src/{name}"), text.to_string());
        let sources = Sources::from(["lib.rs", "x/mod.rs", "x/y.rs"].map(file));
        assert_eq!(of_fhe(&sources), ["b::", "x::b::", "x::y::b::"]);
        assert_eq!(module("crates/veilset/src/x/y/b.rs"), "x::y::b::");
    }

    #[test]
    fn the_packages_of_the_workspace_move_and_nothing_else_does() {
        let manifest = |dots: &str| {
            format!(
                "[workspace]\nmembers = [\"{dots}crates/a\", \"{dots}fuzz\"]\nexclude = [\"{dots}fuzz/b\"]\n\
                 [workspace.package]\ndescription = \"crates/a and fuzz\"\n[workspace.dependencies]\n\
                 a = {{ path = \"{dots}crates/a\", version = \"1\" }}\nblake3 = \"1\"\n[profile.dev]\ndebug = 0\n"
            )
        };
        assert_eq!(moved(&manifest("")), Ok(manifest("tree/")));
        // The lock file names no paths.
        assert_eq!(moved("[[package]]\nname = \"a\"\n"), Ok("[[package]]\nname = \"a\"\n".into()));
    }

    #[test]
    fn what_is_no_rust_is_named() {
        let text = "fn f(a: u8) { g(a + b); h(); }".to_string();
        let place = |part: &str| text.find(part).unwrap();
        let sources = Sources::from([("crates/veilset/src/a.rs".to_string(), text.clone())]);
        let good = edit(place("b);"), place("b);") + 1, 1, "0", false);
        assert_eq!(parse(&sources, std::slice::from_ref(&good)), Ok(()));
        // The edits are half of an expression, and a brace that is not closed.
        let half = edit(place("a +"), place("a +") + 3, 22, "b +", false);
        let open = edit(place("h();"), place("h();") + 4, 33, "if true {", true);
        let why = parse(&sources, &[good, half, open]).unwrap_err();
        assert!(why.starts_with("22: ") && why.contains("\n33: ") && !why.contains("1: crates"), "{why}");
    }
}
