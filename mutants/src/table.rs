//! The table of mutants: named changes, each with the broken property and the tests that must notice.

use crate::patch::{Edit, Sources, home, module, noticing};
use crate::run::Case;
use crate::{Result, read};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    mutant: Vec<Mutant>,
}

/// A change that breaks a property. A single place is in the mutant itself, several are in `edit`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// The mutant's unique name, in small letters with hyphens.
    pub name: String,
    /// The property that is lost.
    pub property: String,
    /// The tests that must fail, by their full paths.
    pub tests: Vec<String>,
    /// The location of the tests: a package, or a package and `--test NAME`. Without it, the package whose unit tests have
    /// them.
    pub package: Option<String>,
    file: Option<String>,
    context: Option<String>,
    before: Option<String>,
    after: Option<String>,
    #[serde(default)]
    edit: Vec<Place>,
}

/// One place of a change, found by its text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    file: String,
    /// A text that occurs once in the file and contains `before` once; without it, `before` occurs once in the file.
    context: Option<String>,
    before: String,
    after: String,
}

/// A drawn mutant that no test notices, and the reason why it may stay.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    pub file: String,
    /// The function that encloses the change.
    pub function: String,
    /// The change, as the survivor was printed.
    pub change: String,
    /// The reason why the mutant may stay.
    #[allow(dead_code)] // documents the judgement; the file must have it
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Judgements {
    #[serde(default)]
    survivor: Vec<Judged>,
}

/// The file of judged survivors.
const JUDGED: &str = "judged.toml";
/// Files that are not part of the table. A test of the program reads the file of removed mutants.
const OTHERS: [&str; 3] = [JUDGED, "removed.toml", "Cargo.toml"];

/// Loads all mutants of the table, and refuses duplicate names.
fn load_all(root: &Path) -> Result<Vec<Mutant>> {
    let folder = root.join("mutants");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.retain(|path| !OTHERS.iter().any(|other| path.ends_with(other)));
    files.sort();
    let mut mutants: Vec<Mutant> = Vec::new();
    for file in files {
        let table: Table = toml::from_str(&read(&file)?).map_err(|e| format!("{}: {e}", file.display()))?;
        mutants.extend(table.mutant);
    }
    let mut names: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two mutants are called {}", pair[0])),
        None => Ok(mutants),
    }
}

/// Loads the mutants with these names, or all if no names are given.
pub fn load(root: &Path, names: &[String]) -> Result<Vec<Mutant>> {
    let mut mutants = load_all(root)?;
    let is = |mutant: &Mutant, name: &String| match name.strip_suffix('*') {
        Some(start) => mutant.name.starts_with(start),
        None if name.ends_with('-') => mutant.name.starts_with(name),
        None => mutant.name == *name,
    };
    if let Some(name) = names.iter().find(|name| !mutants.iter().any(|mutant| is(mutant, name))) {
        return Err(format!("there is no mutant {name}"));
    }
    mutants.retain(|mutant| names.is_empty() || names.iter().any(|name| is(mutant, name)));
    for Mutant { name, tests, .. } in &mutants {
        if tests.is_empty() || tests.iter().any(|test| test.contains("snapshot")) {
            return Err(format!("{name}: it must name a test that notices, other than the snapshot"));
        }
    }
    Ok(mutants)
}

/// Draws `n` of the mutants by a seed. Returns them in their order.
pub fn sample(mut mutants: Vec<Mutant>, n: usize, seed: &str) -> Vec<Mutant> {
    let by_seed = |name: &str| {
        let mut hasher = DefaultHasher::new();
        (seed, name).hash(&mut hasher);
        hasher.finish()
    };
    let mut order: Vec<u64> = mutants.iter().map(|mutant| by_seed(&mutant.name)).collect();
    order.sort_unstable();
    if let Some(&first_left_out) = order.get(n) {
        mutants.retain(|mutant| by_seed(&mutant.name) < first_left_out);
    }
    mutants
}

/// Loads the drawn mutants that were judged.
pub fn judged(root: &Path) -> Result<Vec<Judged>> {
    let path = root.join("mutants").join(JUDGED);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let judgements: Judgements = toml::from_str(&read(&path)?).map_err(|e| format!("{JUDGED}: {e}"))?;
    Ok(judgements.survivor)
}

impl Mutant {
    /// Whether it changes a file whose path contains one of these; without patterns, any.
    pub fn is_in(&self, patterns: &[String]) -> bool {
        let mut files = self.file.iter().chain(self.edit.iter().map(|place| &place.file));
        patterns.is_empty() || files.any(|file| patterns.iter().any(|pattern| file.contains(pattern)))
    }

    /// Returns whether it needs the feature `fhe`, whose modules are given.
    pub fn is_of(&self, fhe: &[String]) -> bool {
        let files = self.file.iter().chain(self.edit.iter().map(|place| &place.file));
        let modules = files.map(|file| module(file)).chain(self.tests.iter().cloned());
        modules.into_iter().any(|module| fhe.iter().any(|of| module.starts_with(of)))
    }

    /// Returns its tests, each in the package that has it.
    pub fn cases(&self, sources: &Sources) -> Result<Vec<Case>> {
        let case = |test: &String| match &self.package {
            Some(package) => Ok(Case::test(package, test)),
            None => home(test, sources).map(|package| Case::test(&package, test)),
        };
        self.tests.iter().map(case).collect::<Result<_>>().map_err(|why| format!("{}: {why}", self.name))
    }

    /// Returns all tests that may notice it.
    pub fn wide(&self) -> Vec<Case> {
        let files = self.file.iter().chain(self.edit.iter().map(|place| &place.file));
        let packages: BTreeSet<String> = match &self.package {
            Some(package) => [package.clone()].into(),
            None => files.flat_map(|file| noticing(file)).collect(),
        };
        packages.iter().map(|package| Case::module(package, "")).collect()
    }

    /// Returns its places in the sources, as mutant number `switch`.
    pub fn edits(&self, switch: usize, sources: &Sources) -> Result<Vec<Edit>> {
        let name = &self.name;
        let own = match (&self.file, &self.before, &self.after) {
            (Some(file), Some(before), Some(after)) => {
                let (file, before, after) = (file.clone(), before.clone(), after.clone());
                vec![Place { file, context: self.context.clone(), before, after }]
            }
            (None, None, None) => Vec::new(),
            _ => return Err(format!("{name}: file, before and after go together")),
        };
        let edits = own.iter().chain(&self.edit).map(|place| place.edit(name, switch, sources));
        let edits = edits.collect::<Result<Vec<_>>>()?;
        match edits.is_empty() {
            true => Err(format!("{name}: it changes nothing")),
            false => Ok(edits),
        }
    }
}

impl Place {
    fn edit(&self, name: &str, switch: usize, sources: &Sources) -> Result<Edit> {
        let Place { file, context, before, after } = self;
        let text = sources.get(file).ok_or_else(|| format!("{name}: there is no file {file}"))?;
        let once = |text: &str, part: &str, of: &str| {
            let mut places = text.match_indices(part);
            match (places.next(), places.next()) {
                (Some((at, _)), None) => Ok(at),
                (None, _) => Err(format!("{name}: {of} does not have: {part}")),
                _ => Err(format!("{name}: {of} has more than once: {part}")),
            }
        };
        let start = match context {
            None => once(text, before, file)?,
            Some(context) => once(text, context, file)? + once(context, before, "its context")?,
        };
        let statement = before.trim_end().ends_with([';', '}']);
        Ok(Edit {
            file: file.clone(),
            start,
            end: start + before.len(),
            switch,
            after: after.clone(),
            statement,
            name: name.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants() -> Vec<Mutant> {
        let mutant = |i| {
            let text = format!("name = \"{i}\"\nproperty = \"\"\ntests = [\"a::tests::b\"]\nfile = \"\"");
            toml::from_str(&text).unwrap()
        };
        (0..50).map(mutant).collect()
    }

    #[test]
    fn a_sample_follows_from_its_seed_and_every_mutant_has_its_day() {
        let names = |n, seed: &str| {
            let drawn = sample(mutants(), n, seed);
            drawn.into_iter().map(|mutant| mutant.name.parse::<u32>().unwrap()).collect::<Vec<_>>()
        };
        let one = names(7, "1");
        assert!(one.len() == 7 && one.is_sorted() && one == names(7, "1") && one != names(7, "2"));
        assert!(names(0, "1").is_empty() && names(50, "1").len() == 50 && names(51, "1").len() == 50);
        let seen: BTreeSet<u32> = (0..100).flat_map(|day| names(7, &day.to_string())).collect();
        assert_eq!(seen.len(), 50);
    }

    #[test]
    fn what_needs_fhe_is_known_by_its_file_or_its_test() {
        let fhe = ["a::".to_string()];
        let mut mutant = mutants().remove(0);
        assert!(mutant.is_of(&fhe) && !mutant.is_of(&[]));
        mutant.tests = vec!["b::a::tests::c".into()];
        assert!(!mutant.is_of(&fhe));
        mutant.file = Some("crates/veilset/src/a.rs".into());
        assert!(mutant.is_of(&fhe));
    }
}
