//! Completion scripts of the shells, and answers in the format that each expects.
//!
//! A script passes the words up to the cursor, of which the last is not complete; the bash script passes the line up to the
//! cursor, and the part of it that a candidate replaces. An answer has one line per candidate, or a single line with a tab,
//! which asks for the names of files.

use super::line::{Unquoted, quoted, unquoted};
use super::{Answer, Candidate};

/// The environment variable that names the shell whose script runs the program.
pub const VARIABLE: &str = "VEILSET_COMPLETE";

/// The scripts that query the program, by shell. The scripts of other shells know only the definition of the arguments.
pub const SCRIPTS: [(clap_complete::Shell, &str); 4] = [
    (clap_complete::Shell::Bash, include_str!("veilset.bash")),
    (clap_complete::Shell::Elvish, include_str!("veilset.elv")),
    (clap_complete::Shell::Fish, include_str!("veilset.fish")),
    (clap_complete::Shell::Zsh, include_str!("veilset.zsh")),
];

/// A shell whose script queries the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    Zsh,
}

impl Shell {
    /// Returns the shell of this name.
    pub fn named(name: &str) -> Option<Shell> {
        match name {
            "bash" => Some(Shell::Bash),
            "elvish" => Some(Shell::Elvish),
            "fish" => Some(Shell::Fish),
            "zsh" => Some(Shell::Zsh),
            _ => None,
        }
    }

    /// Answers the words that the shell's script passes. `answer` takes words without quotes.
    pub fn answer(self, passed: Vec<String>, answer: impl Fn(Vec<String>) -> Answer) -> String {
        match self {
            Shell::Bash => bash(&passed, answer),
            Shell::Elvish => lines(&answer(passed), |value, _| Some(value.into())),
            // Fish passes the last word as typed, with its quotes.
            Shell::Fish => lines(&answer(last_unquoted(passed)), |value, help| match help {
                Some(help) => Some(format!("{value}\t{help}")),
                None => Some(value.into()),
            }),
            Shell::Zsh => lines(&answer(passed.iter().map(|word| one(word)).collect()), |value, help| {
                let value = value.replace('\\', r"\\").replace(':', r"\:");
                let help = help.map(|help| format!(":{}", help.replace('\\', r"\\")));
                Some(value + &help.unwrap_or_default())
            }),
        }
    }
}

/// Formats an answer; `line` formats a value and its description.
fn lines(answer: &Answer, line: impl Fn(&str, Option<&str>) -> Option<String>) -> String {
    let of = |candidate: &Candidate| Some(line(&candidate.value, candidate.help.as_deref())? + "\n");
    match answer {
        Answer::Files => "\t\n".into(),
        Answer::Candidates(all) => all.iter().filter_map(of).collect(),
    }
}

/// Answers Bash, which replaces only a part of the last word by a candidate: the part after a quote, `=` or `:`.
fn bash(passed: &[String], answer: impl Fn(Vec<String>) -> Answer) -> String {
    let [line, replaced] = passed else { return String::new() };
    let Unquoted { words, begin, .. } = unquoted(line);
    let kept = unquoted(line[begin..].strip_suffix(replaced.as_str()).unwrap_or_default());
    let before = kept.words.concat();
    lines(&answer(words), |value, _| Some(quoted(value.strip_prefix(&before)?, kept.open)))
}

/// Removes the quotes from one word, in which white space may occur.
fn one(word: &str) -> String {
    unquoted(word).words.join(" ")
}

fn last_unquoted(mut words: Vec<String>) -> Vec<String> {
    if let Some(last) = words.last_mut() {
        *last = one(last);
    }
    words
}
