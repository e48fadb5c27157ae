//! The pages of the guide, for reading in a terminal.

use crate::near::{did_you_mean, sentence};
use veilset::error::{Error, Result};
use veilset::spelling::to_type;

/// The pages: the name, and the text in Markdown.
const PAGES: [(&str, &str); 11] = [
    ("first-run", include_str!("../../../docs/guide/first-run.md")),
    ("data", include_str!("../../../docs/guide/data.md")),
    ("operations", include_str!("../../../docs/guide/operations.md")),
    ("several-parties", include_str!("../../../docs/guide/several-parties.md")),
    ("policy-and-audit", include_str!("../../../docs/guide/policy-and-audit.md")),
    ("prepare-and-filters", include_str!("../../../docs/guide/prepare-and-filters.md")),
    ("large-runs", include_str!("../../../docs/guide/large-runs.md")),
    ("firewalls", include_str!("../../../docs/guide/firewalls.md")),
    ("refused", include_str!("../../../docs/guide/refused.md")),
    ("python", include_str!("../../../docs/guide/python.md")),
    ("rust", include_str!("../../../docs/guide/rust.md")),
];

/// Returns the text of the page with this name.
pub fn named(name: &str) -> Option<String> {
    page_if(|other| other == name)
}

/// Returns the text of the first page whose name contains this word.
pub fn with_word(word: &str) -> Option<String> {
    page_if(|name| words(name).any(|other| other == word))
}

fn page_if(fits: impl Fn(&str) -> bool) -> Option<String> {
    PAGES.iter().find(|(name, _)| fits(name)).map(|(_, page)| readable(page))
}

/// Returns the topics that find a page: its name, and the words of its name.
pub fn topics() -> impl Iterator<Item = &'static str> {
    PAGES.iter().flat_map(|(name, _)| words(name).chain([*name]))
}

/// Returns the name and the title of each page.
pub fn titles() -> impl Iterator<Item = (&'static str, String)> {
    PAGES.iter().map(|(name, page)| (*name, title(page)))
}

/// Returns the text of a page, by its name or a word of it; without a topic, the names and titles of all. For front ends that
/// have no commands.
///
/// # Errors
/// [`Error::Usage`] if there is no such page.
pub fn page(topic: Option<&str>) -> Result<String> {
    let Some(topic) = topic else { return Ok(listed()) };
    named(topic).or_else(|| with_word(topic)).ok_or_else(|| {
        let near = did_you_mean(topic, topics());
        let what = sentence(format!("\"{topic}\" is no page of the guide{near}"));
        Error::usage(format!("{what} {} lists them", to_type("help")))
    })
}

/// Returns the words of a page's name that find it, such as `policy` and `audit`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('-').filter(move |word| *word != "and" && *word != name)
}

fn title(page: &str) -> String {
    page.lines().next().unwrap_or_default().trim_start_matches("# ").to_string()
}

/// Lists the names and titles of all pages, in lines.
pub fn listed() -> String {
    titles().map(|(name, title)| format!("  {name:20} {title}")).collect::<Vec<_>>().join("\n")
}

/// Removes the parts of a page that only its test reads.
fn readable(page: &str) -> String {
    let (mut lines, mut hidden) = (Vec::new(), false);
    for line in page.lines() {
        hidden |= line.starts_with("<!--");
        if !hidden {
            let fence = line.trim_start().starts_with("```");
            lines.push(if fence { line.split(',').next().unwrap_or(line) } else { line });
        }
        hidden &= !line.ends_with("-->");
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_page_of_the_guide_is_there() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
        let files =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.collect();
        assert_eq!(files, PAGES.iter().map(|(name, _)| format!("{name}.md")).collect());
        PAGES.iter().for_each(|(name, page)| assert!(page.starts_with("# "), "{name}"));
    }

    #[test]
    fn a_front_end_without_commands_has_the_pages() {
        assert_eq!(page(Some("audit")).unwrap(), named("policy-and-audit").unwrap());
        assert_eq!(page(None).unwrap().lines().count(), PAGES.len());
        let refused = page(Some("intersect")).unwrap_err().to_string();
        assert!(refused.starts_with("\"intersect\" is no page of the guide"), "{refused}");
    }

    #[test]
    fn what_only_a_test_reads_is_not_shown() {
        let page = "# A\n<!-- sh a\nsecret\n-->\n```console,exit=2\n$ a, b\n```\n<!-- one -->\nb";
        assert_eq!(readable(page), "# A\n```console\n$ a, b\n```\nb");
    }
}
