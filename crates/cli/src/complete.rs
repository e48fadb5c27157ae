//! Completion in shells: commands, options and their values, peers in the address book, and columns of the input.
//!
//! `veilset completions SHELL` prints a script that runs `veilset -- WORD...` at each Tab, with the words up to the cursor (in
//! bash, the line) and the variable [`VARIABLE`]. The answer is one candidate per line ([`shell`]). clap_complete's engine
//! finds the argument to which the last word belongs; the values on offer are in [`offers`].
//!
//! The user has not asked for a run: completion takes at most two seconds, prints nothing to standard error, and offers no
//! candidate on an error. Only regular files are read: of a table only its beginning, or the footer of Parquet. No cell below a
//! header is shown.

mod line;
mod offers;
mod shell;

pub use shell::{SCRIPTS, VARIABLE};

use crate::args;
use clap_complete::engine::CompletionCandidate;
use line::Typed;
use shell::Shell;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use veilset::operations;
use veilset::paths::open_regular;
use veilset_app::config;

/// The longest time for which a file system that hangs may block the shell.
const PATIENCE: Duration = Duration::from_secs(2);
/// The size of the largest address book, run file or list of parties that is read: 1 MiB.
const LARGEST: u64 = 1 << 20;

/// A value to offer, and its description.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    value: String,
    help: Option<String>,
}

/// The action for the last word of a line.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// Offer these values.
    Candidates(Vec<Candidate>),
    /// Leave the names of files to the shell, which knows them best.
    Files,
}

/// Answers the completion script that runs this process, if one does; such a process does nothing else. Returns whether there
/// was one.
pub fn answered() -> bool {
    let mut words = std::env::args_os().skip(1);
    let asks = std::env::var_os(VARIABLE).and_then(|name| Shell::named(name.to_str()?));
    // No command begins like this, so the variable alone changes no run.
    let Some(shell) = asks.filter(|_| words.next().is_some_and(|word| word == "--")) else { return false };
    let words = words.map(|word| word.to_string_lossy().into_owned()).collect();
    std::panic::set_hook(Box::new(|_| {}));
    let (tell, told) = channel();
    let started = thread::Builder::new().spawn(move || {
        let _ = tell.send(shell.answer(words, answer));
    });
    if started.is_ok()
        && let Ok(text) = told.recv_timeout(PATIENCE)
    {
        // The shell may be gone.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    true
}

/// Returns the answer for the last of these words, of which the first is the program.
fn answer(words: Vec<String>) -> Answer {
    let nothing = Answer::Candidates(Vec::new());
    let Some(words) = with_file(words) else { return nothing };
    let Some(last) = words.last() else { return nothing };
    let root = tree();
    let typed = Arc::new(Typed::before_last(&root, &words));
    let mut root = offers::of(root, &typed);
    let (at, dash) = (words.len() - 1, last.starts_with('-'));
    let words = words.into_iter().map(Into::into).collect();
    let Ok(found) = clap_complete::engine::complete(&mut root, words, at, None) else { return nothing };
    // A word that looks like an option is not a file name, but may contain one after its equals sign: `--output=`.
    let behind_option = |candidate: &CompletionCandidate| !candidate.get_value().is_empty();
    if found.iter().any(|candidate| offers::are_files(candidate) && (!dash || behind_option(candidate))) {
        return Answer::Files;
    }
    let found: Vec<_> = found.iter().filter(|candidate| !offers::are_files(candidate)).collect();
    // Options are offered after a hyphen, and where there is nothing else to offer.
    let with_options = dash || found.iter().all(|candidate| offers::is_option(candidate));
    let found = found.into_iter().filter(|candidate| with_options || !offers::is_option(candidate));
    Answer::Candidates(found.filter_map(Candidate::of).collect())
}

impl Candidate {
    /// Converts a candidate of the engine, if it can be shown and typed.
    fn of(found: &CompletionCandidate) -> Option<Candidate> {
        let value = found.get_value().to_str().filter(|value| !value.is_empty() && is_plain(value))?;
        let help = found.get_help().map(|help| help.to_string());
        let help = help.and_then(|help| Some(help.lines().next()?.to_string()));
        Some(Candidate { value: value.into(), help: help.filter(|help| !help.is_empty() && is_plain(help)) })
    }
}

/// Returns whether a text has neither control characters nor characters that change the direction of writing or end a line.
fn is_plain(text: &str) -> bool {
    let changes =
        |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| c.is_control() || changes(c))
}

/// Returns all commands. The words that `check` takes as arguments are subcommands here.
fn tree() -> clap::Command {
    let root = args::command();
    let checked = |command: &&clap::Command| {
        let name = command.get_name();
        name == "run" || operations::ALL.iter().any(|operation| operation.name == name)
    };
    let checked: Vec<_> = root.get_subcommands().filter(checked).cloned().collect();
    root.mut_subcommand("check", |check| {
        let about = check.get_about().cloned();
        clap::Command::new("check").about(about.unwrap_or_default()).subcommands(checked)
    })
}

/// Returns the words of a line, with the words of its run file inserted; `None` if the file cannot be used.
fn with_file(words: Vec<String>) -> Option<Vec<String>> {
    let at = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "run", _, ..] => 2,
        [_, "check", "run", _, ..] => 3,
        _ => return Some(words),
    };
    let (last, typed) = words.get(at..)?.split_last()?;
    let (file, typed) = match typed.split_first() {
        // The name of the file is still being typed.
        None if !last.starts_with('-') => return Some(words),
        Some((file, typed)) if !file.starts_with('-') => (path(file), typed),
        _ => (config::DEFAULT.into(), typed),
    };
    let typed: Vec<_> = typed.iter().map(Into::into).collect();
    let of_file = config::words(&file, &small_text(&file)?, &typed).ok()?;
    let of_file = of_file.into_iter().map(|word| word.to_string_lossy().into_owned());
    let typed = words[words.len() - 1 - typed.len()..].iter().cloned();
    Some(std::iter::once(words[0].clone()).chain(of_file).chain(typed).collect())
}

/// Returns the text of a regular file of at most [`LARGEST`] bytes.
fn small_text(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(path).ok()?.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= LARGEST).then_some(text)
}

/// Returns the path that a word means: shells expand the tilde only when they run the command.
fn path(word: &str) -> PathBuf {
    match (word.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => word.into(),
    }
}

#[cfg(test)]
#[path = "complete/tests.rs"]
mod tests;
