//! `veilset run FILE`: a run as a file, to be reviewed and kept under version control.
//!
//! The file is translated into the words that a user would type, based on clap's definition of the operation's
//! options. So a new option of an operation works in the file at once, without a change here.

use crate::args::{Arguments, Command};
use crate::columns::{self, Columns, Received};
use crate::near::did_you_mean;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, CommandFactory, Parser};
use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use veilset::error::{Error, Result};
use veilset::operations;

/// The default file name.
const DEFAULT: &str = "veilset.toml";
/// Keys that are not options.
const OPERATION: &str = "operation";
const INPUT: &str = "input";
/// Words that stand for no file, by option, in addition to "-".
const WORDS: [(&str, &str); 1] = [("audit-log", "none")];

/// Parses words as if they were typed after `veilset`. If they are invalid, or ask for help, the program exits
/// here.
pub fn parse(words: Vec<OsString>) -> Command {
    Arguments::parse_from(std::iter::once("veilset".into()).chain(words)).command
}

/// The command for the words after `veilset run`: a file, and options that override those in it.
pub fn read(mut words: Vec<OsString>) -> Result<Command> {
    let is_file = words.first().is_some_and(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let path = PathBuf::from(if is_file { words.remove(0) } else { DEFAULT.into() });
    let text = std::fs::read_to_string(&path).map_err(|e| {
        let next = match e.kind() {
            io::ErrorKind::NotFound => "Check its name, or write it: `veilset run --help` has an example",
            _ => "Check that it is a text file that you can read",
        };
        Error::Usage(format!("cannot read {}: {e}. {next}", path.display()))
    })?;
    File { path: &path, text: &text }.command(words)
}

/// A file and its text.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn command(&self, typed: Vec<OsString>) -> Result<Command> {
        let (words, lines) = self.words(&typed)?;
        let words = std::iter::once("veilset".into()).chain(words).chain(typed);
        match Arguments::try_parse_from(words) {
            Ok(arguments) => Ok(arguments.command),
            Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => e.exit(),
            Err(e) => Err(self.refused(&e, &lines)),
        }
    }

    /// The words for the file, and the line of each key that takes effect.
    fn words(&self, typed: &[OsString]) -> Result<(Vec<OsString>, BTreeMap<String, usize>)> {
        let table = DeTable::parse(self.text).map_err(|e| {
            let at = e.span().map(|span| format!(", line {}", self.line(span.start))).unwrap_or_default();
            Error::Usage(format!(
                "{}{at}: this is not valid TOML: {}. `veilset run --help` has an example",
                self.path.display(),
                e.message()
            ))
        })?;
        let table = table.get_ref();
        let mut all = Arguments::command();
        all.build();
        let name = self.operation(table)?;
        let Some(operation) = all.find_subcommand(name) else {
            return Err(Error::Bug(format!("{name} is not a command")));
        };
        let typed: BTreeSet<&str> = typed.iter().filter_map(|word| long(word)).collect();
        let is_typed = |arg: &Arg| arg.get_long().is_some_and(|long| typed.contains(long));
        let excludes = |a: &Arg, b: &Arg| {
            operation.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id())
        };

        let mut words = vec![OsString::from(name)];
        let mut lines = BTreeMap::new();
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), self.line(key.span().start));
            if name == OPERATION {
                continue;
            }
            let Some(arg) = option(operation, name) else {
                return Err(self.wrong(at, name, self.unknown(&all, operation, name)));
            };
            let values = self.values(arg, name, value)?;
            // Typed options take effect; conflicting keys of the file do not.
            let other = |other: &Arg| is_typed(other) && (excludes(arg, other) || excludes(other, arg));
            if is_typed(arg) || operation.get_arguments().any(other) {
                continue;
            }
            lines.insert(name.to_string(), at);
            match arg.get_long() {
                // The input comes first, so that no option can take it as a value.
                None => words.splice(1..1, values).for_each(drop),
                Some(long) if arg.get_action().takes_values() => {
                    words.extend(values.into_iter().map(|value| {
                        let mut word = OsString::from(format!("--{long}="));
                        word.push(value);
                        word
                    }))
                }
                Some(long) => words.extend(values.into_iter().map(|_| format!("--{long}").into())),
            }
        }
        Ok((words, lines))
    }

    fn operation<'t>(&self, table: &'t DeTable<'_>) -> Result<&'t str> {
        let names = operations::ALL.map(|o| o.name);
        let all = names.join(", ");
        let Some((key, value)) = table.get_key_value(OPERATION) else {
            let example =
                format!("Write for instance operation = \"{}\"; the operations are {all}", names[0]);
            return Err(Error::Usage(format!(
                "{}: \"{OPERATION}\" is missing. {example}",
                self.path.display()
            )));
        };
        let at = self.line(key.span().start);
        match value.get_ref().as_str() {
            Some(name) if names.contains(&name) => Ok(name),
            Some(name) => {
                let near = did_you_mean(name, names);
                Err(self.wrong(
                    at,
                    OPERATION,
                    format!("\"{}\" is not an operation{near}. Use one of {all}", name.escape_debug()),
                ))
            }
            None => {
                Err(self.wrong(at, OPERATION, expected(&format!("a string, one of {all}"), value.get_ref())))
            }
        }
    }

    /// The words for a value. A flag gives one word if it is set, and none otherwise.
    fn values(&self, arg: &Arg, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>> {
        let wrong = |what: String| self.wrong(self.line(value.span().start), key, what);
        let one = |value: &DeValue<'_>, kind: &str| match scalar(value) {
            Some(text) => Ok(self.placed(arg, text)),
            None => Err(wrong(expected(kind, value))),
        };
        // In a TOML list, a column's name is written verbatim, without CSV quotes.
        let parsed_as = arg.get_value_parser().type_id();
        let quote = match () {
            () if parsed_as == TypeId::of::<Columns>() => Some(columns::quoted as fn(&str) -> String),
            () if parsed_as == TypeId::of::<Received>() => Some(columns::quoted_received as _),
            () => None,
        };
        match (arg.get_action(), value.get_ref()) {
            (ArgAction::SetTrue, DeValue::Boolean(set)) => Ok(vec![OsString::new(); usize::from(*set)]),
            (ArgAction::SetTrue, value) => Err(wrong(expected("true or false", value))),
            (ArgAction::Append, DeValue::Array(list)) => {
                let delimiter = arg.get_value_delimiter();
                let element = |element: &Spanned<DeValue<'_>>| {
                    let element = element.get_ref();
                    match (scalar(element), quote, delimiter) {
                        (Some(text), Some(quote), _) => Ok(quote(&text).into()),
                        // Clap would split it there.
                        (Some(text), None, Some(delimiter)) if text.contains(delimiter) => Err(wrong(
                            format!("\"{text}\" contains \"{delimiter}\". Make it two elements of the list"),
                        )),
                        _ => one(element, "strings in the list"),
                    }
                };
                list.iter().map(element).collect()
            }
            (ArgAction::Append, value) => one(value, "a string or a list of strings").map(|word| vec![word]),
            (_, value) => one(value, "a string or a number").map(|word| vec![word]),
        }
    }

    /// Resolves a path relative to the file's folder.
    fn placed(&self, arg: &Arg, text: String) -> OsString {
        let is_word = WORDS.iter().any(|(option, word)| arg.get_long() == Some(option) && text == *word);
        if arg.get_value_parser().type_id() != TypeId::of::<PathBuf>() || text == "-" || is_word {
            return text.into();
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The prefix keeps an input from looking like an option.
        folder.unwrap_or(Path::new(".")).join(text).into()
    }

    fn unknown(&self, all: &clap::Command, operation: &clap::Command, key: &str) -> String {
        let name = operation.get_name();
        let has = |other: &&clap::Command| {
            operations::ALL.iter().any(|o| o.name == other.get_name()) && option(other, key).is_some()
        };
        let others: Vec<_> = all.get_subcommands().filter(has).map(clap::Command::get_name).collect();
        let next = format!("`veilset {name} --help` lists its options");
        if !others.is_empty() {
            return format!(
                "{name} has no such option; it belongs to {}. Remove it; {next}",
                others.join(" and ")
            );
        }
        let keys = operation.get_arguments().filter_map(key_of).chain([OPERATION]);
        format!("{name} has no such option{}. Correct it or remove it; {next}", did_you_mean(key, keys))
    }

    /// An error of clap, with the place in the file.
    fn refused(&self, e: &clap::Error, lines: &BTreeMap<String, usize>) -> Error {
        let text = e.to_string();
        let text = text.trim_start_matches("error: ");
        let what = text.split("\n\nUsage:").next().unwrap_or(text);
        let what = what.split("\n\nFor more information").next().unwrap_or(what).trim_end();
        let key = match e.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(arg)) => key_in(arg),
            _ => None,
        };
        if let (Some(key), ErrorKind::InvalidValue | ErrorKind::ValueValidation) = (&key, e.kind())
            && let Some(&at) = lines.get(key)
        {
            return self.wrong(at, key, format!("{what}\nCorrect it, or type --{key} after the file"));
        }
        Error::Usage(format!(
            "{}, with what was typed after it: {what}\nAdd what is missing to the file (<INPUT> is input = \"FILE\"; an \
             option's key is its name without the hyphens), or type it after the file's name",
            self.path.display()
        ))
    }

    fn wrong(&self, line: usize, key: &str, what: impl std::fmt::Display) -> Error {
        Error::Usage(format!("{}, line {line}, \"{}\": {what}", self.path.display(), key.escape_debug()))
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|&b| b == b'\n').count()
    }
}

/// The name of a long option as typed.
fn long(word: &OsStr) -> Option<&str> {
    word.to_str()?.strip_prefix("--")?.split('=').next()
}

/// The key for "--role <ROLE>" or "<INPUT>", as clap prints arguments.
fn key_in(shown: &str) -> Option<String> {
    let name = shown.trim_start_matches("--").split([' ', '=']).next()?;
    Some(name.trim_matches(['<', '>']).to_ascii_lowercase())
}

/// The key of an argument in the file, if it may appear there.
fn key_of(arg: &Arg) -> Option<&str> {
    match arg.get_action() {
        ArgAction::Set | ArgAction::Append | ArgAction::SetTrue if arg.is_positional() => Some(INPUT),
        ArgAction::Set | ArgAction::Append | ArgAction::SetTrue => arg.get_long(),
        _ => None,
    }
}

fn option<'a>(operation: &'a clap::Command, key: &str) -> Option<&'a Arg> {
    operation.get_arguments().find(|arg| key_of(arg) == Some(key))
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(n) => i128::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string()),
        DeValue::Float(f) => Some(f.as_str().to_string()),
        _ => None,
    }
}

fn expected(what: &str, value: &DeValue<'_>) -> String {
    let came = match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("this is {came}, but the option takes {what}. Correct it")
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
