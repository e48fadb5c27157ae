//! `veilset help`: pages of the guide, and the help of commands.

use crate::near::{did_you_mean, sentence};
use crate::{args, print};
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

/// Prints the page or the help of the command with this name; without one, what there is.
pub fn show(topic: Option<&str>) -> Result<()> {
    print(topic.map_or_else(|| Ok(contents()), about)?)
}

/// A page, by its name or a word of it, or the help of a command.
fn about(topic: &str) -> Result<String> {
    let page_if = |fits: &dyn Fn(&str) -> bool| {
        PAGES.iter().find(|(name, _)| fits(name)).map(|(_, page)| readable(page))
    };
    if let Some(page) = page_if(&|name| name == topic) {
        return Ok(page);
    }
    let mut all = args::command();
    all.build();
    if let Some(command) = all.find_subcommand_mut(topic) {
        return Ok(command.render_long_help().to_string());
    }
    match page_if(&|name| words(name).any(|word| word == topic)) {
        Some(page) => Ok(page),
        None => {
            let names = PAGES.iter().flat_map(|(name, _)| words(name).chain([*name]));
            let near = did_you_mean(topic, names.chain(all.get_subcommands().map(clap::Command::get_name)));
            let what = sentence(format!("\"{topic}\" is neither a page of the guide nor a command{near}"));
            Err(Error::usage(format!("{what} {} lists them", to_type("help"))))
        }
    }
}

/// The text of a page, by its name or a word of it; without one, the names and titles of all. For front ends that have no
/// commands.
pub fn page(topic: Option<&str>) -> Result<String> {
    let Some(topic) = topic else { return Ok(listed()) };
    let page = PAGES.iter().find(|(name, _)| *name == topic);
    let page = page.or_else(|| PAGES.iter().find(|(name, _)| words(name).any(|word| word == topic)));
    page.map(|(_, page)| readable(page)).ok_or_else(|| {
        let near = did_you_mean(topic, PAGES.iter().flat_map(|(name, _)| words(name).chain([*name])));
        let what = sentence(format!("\"{topic}\" is no page of the guide{near}"));
        Error::usage(format!("{what} {} lists them", to_type("help")))
    })
}

/// The words of a page's name by which it is found, such as `policy` and `audit`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('-').filter(move |word| *word != "and" && *word != name)
}

/// What [`show`] shows: the pages, then the commands, each with what it is.
pub fn topics() -> Vec<(String, Option<String>)> {
    let pages = PAGES.iter().map(|(name, page)| (name.to_string(), Some(title(page))));
    let all = args::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
    pages.chain(commands.map(|command| (command.get_name().to_string(), about(command)))).collect()
}

fn title(page: &str) -> String {
    page.lines().next().unwrap_or_default().trim_start_matches("# ").to_string()
}

/// The pages, with their titles.
fn contents() -> String {
    format!(
        "Pages of the guide (veilset help PAGE):\n{}\n\nCommands: veilset -h, and veilset help COMMAND",
        listed()
    )
}

fn listed() -> String {
    let pages: Vec<_> = PAGES.iter().map(|(name, page)| format!("  {name:20} {}", title(page))).collect();
    pages.join("\n")
}

/// A page without what only its test reads.
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
    fn a_topic_is_a_page_or_a_word_of_its_name_or_a_command() {
        let title = |topic: &str| title(&about(topic).unwrap());
        assert_eq!(title("policy-and-audit"), title("audit"));
        assert_eq!(title("policy"), title("audit"));
        // A command goes before a word.
        assert!(about("filter").unwrap().contains("Usage: veilset filter"));
        assert_eq!(title("filters"), title("prepare-and-filters"));
        let refused = |topic: &str| about(topic).unwrap_err().to_string();
        assert!(refused("polices").contains("; did you mean \"policy\""), "{}", refused("polices"));
        assert!(
            refused("zzz")
                .starts_with("\"zzz\" is neither a page of the guide nor a command. `veilset help`")
        );
        assert!(refused("and").contains("neither"));
    }

    #[test]
    fn a_front_end_without_commands_has_the_pages() {
        assert_eq!(page(Some("audit")).unwrap(), about("policy-and-audit").unwrap());
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
