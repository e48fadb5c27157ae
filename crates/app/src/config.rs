//! `veilset run FILE`: a run as a file, to be reviewed and kept under version control.
//!
//! The file is translated into the words that a user would type, based on clap's definition of the operation's
//! options. So most new options of an operation work in the file at once, without a change here. Options that a program in
//! another language passes, for instance in Python, are translated in the same way ([`command`], [`worker`]).

use crate::columns::{self, Columns, Received};
use crate::near::{did_you_mean, sentence};
use crate::options::{Typed, Wanted, WorkerArgs};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use veilset::error::{Error, Result};
use veilset::operations;
use veilset::spelling::{self, to_type, unmarked};
use veilset::trusted::{self, Whose};

/// The default file name.
pub const DEFAULT: &str = "veilset.toml";
/// The only key that is not an argument of the operation.
const OPERATION: &str = "operation";
/// Words that stand for no file, by option, in addition to "-".
const WORDS: [(&str, &str); 1] = [("audit-log", "none")];

/// The outcome of reading a run file and the options typed after its name.
#[derive(Debug)]
pub enum FromFile {
    /// The run that the options describe.
    Run(Box<Wanted>),
    /// A request for help, with clap's text.
    Help(clap::Error),
}

/// Reads the words after `veilset run`: a file, by default [`DEFAULT`], and options that override those in it. Refuses a file
/// that others can change, or adds to `warnings` ([`trusted::check`]).
///
/// # Errors
/// [`Error::Usage`].
pub fn read(mut words: Vec<OsString>, warnings: &mut Vec<String>) -> Result<FromFile> {
    let is_file = words.first().is_some_and(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let path = PathBuf::from(if is_file { words.remove(0) } else { DEFAULT.into() });
    let unread = |e: io::Error| {
        let next = match e.kind() {
            io::ErrorKind::NotFound => {
                format!("Check its name, or write it: {} has an example", to_type("run --help"))
            }
            _ => "Check that it is a text file that you can read".into(),
        };
        Error::usage(format!("cannot read {}: {e}. {next}", path.display()))
    };
    let mut file = std::fs::File::open(&path).map_err(unread)?;
    // The user did not choose the default file: in a shared folder, another user may have put it there.
    let whose = if is_file { Whose::Given } else { Whose::Ours };
    warnings.extend(trusted::check("the run file", &path, whose, &file)?);
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unread)?;
    let mut found = File { path: &path, text: &text }.found(words)?;
    if let FromFile::Run(wanted) = &mut found
        && let Wanted::Operation(a) = &mut **wanted
    {
        a.common.run_file = Some(path);
    }
    Ok(found)
}

/// Returns the words for a run file with this text, without the keys that the options typed after its name override or
/// conflict with.
pub fn words(path: &Path, text: &str, typed: &[OsString]) -> Result<Vec<OsString>> {
    File { path, text }.words(typed).map(|(words, _)| words)
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Whether a flag is set.
    Flag(bool),
    /// A text, a number or a path.
    Text(OsString),
    /// A list, for an option that may be repeated. Column names in it are verbatim, without CSV quotes.
    List(Vec<String>),
}

/// Finds the command with this name, or with nested names such as `filter build`.
pub fn named<'a>(all: &'a clap::Command, names: &str) -> Option<&'a clap::Command> {
    names.split(' ').try_fold(all, |command, name| command.find_subcommand(name))
}

/// Parses an operation or command with these options, given by long name; `input` is the table's file. Hyphens may be written
/// as underscores, and a trailing underscore is ignored.
///
/// # Errors
/// [`Error::Usage`].
pub fn command(name: &str, options: &[(String, Value)]) -> Result<Wanted> {
    let all = Typed::command();
    let Some(command) = named(&all, name) else {
        return Err(Error::usage(format!("\"{name}\" is not an operation")));
    };
    let unknown =
        |key: &str| Error::usage(format!("{}: {}", spelling::option(key), unknown(&all, command, key)));
    let mut words: Vec<OsString> =
        std::iter::once("veilset").chain(name.split(' ')).map(Into::into).collect();
    words.extend(option_words(command, options, |key| Err(unknown(key)))?);
    Typed::parsed(words).map_err(|e| Error::usage(first_words(&e)))
}

/// Returns the options of a worker that has a piece of the table of an operation with these options. Options that a worker
/// lacks are ignored: those for the side that agrees, and unknown ones.
///
/// # Errors
/// [`Error::Usage`].
pub fn worker(operation: &str, options: &[(String, Value)]) -> Result<WorkerArgs> {
    let operation = operations::named(operation).map_err(Error::usage)?;
    let words = option_words(&WorkerArgs::command(operation), options, |_| Ok(()))?;
    WorkerArgs::parsed(operation, words).map_err(|e| Error::usage(first_words(&e)))
}

/// Returns the words for these options of a command, positional arguments first. Calls `unknown` for an option that the command
/// lacks.
fn option_words(
    command: &clap::Command,
    options: &[(String, Value)],
    unknown: impl Fn(&str) -> Result<()>,
) -> Result<Vec<OsString>> {
    let mut given = Vec::new();
    for (key, value) in options {
        let key = key.trim_end_matches('_').replace('_', "-");
        let Some(arg) = option(command, &key) else {
            unknown(&key)?;
            continue;
        };
        let values = arg_values(arg, value)
            .map_err(|what| Error::usage(format!("{}: {what}", spelling::option(&key))))?;
        given.push((arg, values));
    }
    // Positional arguments are inserted in front of the others, so the last one must come first.
    given.sort_by_key(|(arg, _)| std::cmp::Reverse(arg.get_index()));
    let mut words = Vec::new();
    given.into_iter().for_each(|(arg, values)| add(arg, values, 0, &mut words));
    Ok(words)
}

/// Returns the words for the value of an argument, or why it is wrong. A flag yields one word if it is set, and none otherwise.
fn arg_values(arg: &Arg, value: &Value) -> Result<Vec<OsString>, String> {
    let delimiter = arg.get_value_delimiter();
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, Value::Flag(set)) => Ok(vec![OsString::new(); usize::from(*set)]),
        (ArgAction::SetTrue, value) => Err(expected("true or false", value.kind())),
        (ArgAction::Append, Value::List(list)) => {
            let element = |text: &String| match (quoting(arg), delimiter) {
                (Some(quote), _) => Ok(quote(text).into()),
                // Clap would split the text at the delimiter.
                (None, Some(delimiter)) if text.contains(delimiter) => {
                    Err(format!("\"{text}\" contains \"{delimiter}\". Make it two elements of the list"))
                }
                _ => Ok(text.into()),
            };
            list.iter().map(element).collect()
        }
        (_, Value::Text(text)) => Ok(vec![text.into()]),
        (ArgAction::Append, value) => Err(expected("a string or a list of strings", value.kind())),
        (_, value) => Err(expected("a string or a number", value.kind())),
    }
}

/// Returns whether the argument takes paths.
pub fn is_path(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// Returns the function that quotes column names, if the argument takes them.
fn quoting(arg: &Arg) -> Option<fn(&str) -> String> {
    let parsed_as = arg.get_value_parser().type_id();
    match () {
        () if parsed_as == TypeId::of::<Columns>() => Some(columns::quoted),
        () if parsed_as == TypeId::of::<Received>() => Some(columns::quoted_received),
        () => None,
    }
}

/// Adds an argument with these values to the words. A positional one goes before the options, at `input_at`, so that no option
/// can take it as a value.
fn add(arg: &Arg, values: Vec<OsString>, input_at: usize, words: &mut Vec<OsString>) {
    match arg.get_long() {
        None => words.splice(input_at..input_at, values).for_each(drop),
        Some(long) if arg.get_action().takes_values() => words.extend(values.into_iter().map(|value| {
            let mut word = OsString::from(format!("--{long}="));
            word.push(value);
            word
        })),
        Some(long) => words.extend(values.into_iter().map(|_| format!("--{long}").into())),
    }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::Flag(_) => "true or false",
            Value::Text(_) => "a string or a number",
            Value::List(_) => "a list",
        }
    }
}

/// A run file and its text.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn found(&self, typed: Vec<OsString>) -> Result<FromFile> {
        let (words, lines) = self.words(&typed)?;
        let words = std::iter::once("veilset".into()).chain(words).chain(typed);
        match Typed::parsed(words) {
            Ok(wanted) => Ok(FromFile::Run(Box::new(wanted))),
            Err(e) if e.kind() == ErrorKind::DisplayHelp => Ok(FromFile::Help(e)),
            Err(e) => Err(self.refused(&e, &lines)),
        }
    }

    /// Returns the words for the file, and the line of each key that takes effect.
    fn words(&self, typed: &[OsString]) -> Result<(Vec<OsString>, BTreeMap<String, usize>)> {
        let table = DeTable::parse(self.text).map_err(|e| {
            let at = e.span().map(|span| format!(", line {}", self.line(span.start))).unwrap_or_default();
            Error::usage(format!(
                "{}{at}: this is not valid TOML: {}. {} has an example",
                self.path.display(),
                unmarked(e.message()),
                to_type("run --help")
            ))
        })?;
        let table = table.get_ref();
        let all = Typed::command();
        let operation = self.operation(table, &all)?;
        let typed: BTreeSet<&str> = typed.iter().filter_map(|word| long(word)).collect();
        let is_typed = |arg: &Arg| arg.get_long().is_some_and(|long| typed.contains(long));
        let excludes = |a: &Arg, b: &Arg| {
            operation.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id())
        };

        let mut words = vec![OsString::from(operation.get_name())];
        let mut lines = BTreeMap::new();
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), self.line(key.span().start));
            if name == OPERATION {
                continue;
            }
            let Some(arg) = option(operation, name) else {
                return Err(self.wrong(at, name, unknown(&all, operation, name)));
            };
            let values = self.values(arg, name, value)?;
            // Typed options take effect; conflicting keys of the file do not.
            let other = |other: &Arg| is_typed(other) && (excludes(arg, other) || excludes(other, arg));
            if is_typed(arg) || operation.get_arguments().any(other) {
                continue;
            }
            lines.insert(name.to_string(), at);
            add(arg, values, 1, &mut words);
        }
        Ok((words, lines))
    }

    /// Returns the operation that the file names, as one of the program's `commands`.
    fn operation<'c>(&self, table: &DeTable<'_>, commands: &'c Command) -> Result<&'c Command> {
        let operations: Vec<_> =
            operations::ALL.into_iter().filter_map(|o| commands.find_subcommand(o.name)).collect();
        let names: Vec<_> = operations.iter().map(|operation| operation.get_name()).collect();
        let all = names.join(", ");
        let Some((key, value)) = table.get_key_value(OPERATION) else {
            let example = format!(
                "Write for instance operation = \"{}\"; the operations are {all}",
                operations::ALL[0].name
            );
            return Err(Error::usage(format!(
                "{}: \"{OPERATION}\" is missing. {example}",
                self.path.display()
            )));
        };
        let at = self.line(key.span().start);
        let named = |name: &str| operations.into_iter().find(|operation| operation.get_name() == name);
        match value.get_ref().as_str().map(|name| named(name).ok_or(name)) {
            Some(Ok(operation)) => Ok(operation),
            Some(Err(name)) => {
                let near = did_you_mean(name, names);
                Err(self.wrong(
                    at,
                    OPERATION,
                    format!(
                        "{} Use one of {all}",
                        sentence(format!("\"{}\" is not an operation{near}", name.escape_debug()))
                    ),
                ))
            }
            None => Err(self.wrong(
                at,
                OPERATION,
                expected(&format!("a string, one of {all}"), kind(value.get_ref())),
            )),
        }
    }

    /// Returns the words for a value in the file.
    fn values(&self, arg: &Arg, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>> {
        let wrong = |what: String| self.wrong(self.line(value.span().start), key, what);
        let text = |value: &DeValue<'_>, place: &str| {
            scalar(value).ok_or_else(|| wrong(expected(place, kind(value))))
        };
        let placed = |text| Value::Text(self.placed(arg, text));
        let read = match (arg.get_action(), value.get_ref()) {
            (_, DeValue::Boolean(set)) => Value::Flag(*set),
            (ArgAction::Append, DeValue::Array(list)) => {
                let list = list.iter().map(|element| text(element.get_ref(), "strings in the list"));
                if is_path(arg) {
                    return list.map(|path| Ok(self.placed(arg, path?))).collect();
                }
                Value::List(list.collect::<Result<_>>()?)
            }
            (ArgAction::SetTrue, value) => return Err(wrong(expected("true or false", kind(value)))),
            (ArgAction::Append, value) => placed(text(value, "a string or a list of strings")?),
            (_, value) => placed(text(value, "a string or a number")?),
        };
        arg_values(arg, &read).map_err(wrong)
    }

    /// Resolves a path relative to the file's folder. Other values, `-` and [`WORDS`] stay unchanged.
    fn placed(&self, arg: &Arg, text: String) -> OsString {
        let is_word = WORDS.iter().any(|(option, word)| arg.get_long() == Some(option) && text == *word);
        if !is_path(arg) || text == "-" || is_word {
            return text.into();
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The prefix keeps an input from looking like an option.
        folder.unwrap_or(Path::new(".")).join(text).into()
    }

    /// Converts an error of clap, and names the file; for a wrong value of one of its keys, also the line and the key.
    fn refused(&self, e: &clap::Error, lines: &BTreeMap<String, usize>) -> Error {
        let what = first_words(e);
        let key = match e.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(arg)) => key_in(arg),
            _ => None,
        };
        if let (Some(key), ErrorKind::InvalidValue | ErrorKind::ValueValidation) = (&key, e.kind())
            && let Some(&at) = lines.get(key)
        {
            return self.wrong(at, key, format!("{what}\nCorrect it, or type --{key} after the file's name"));
        }
        Error::usage(format!(
            "{}, with what was typed after it: {what}\nCorrect the file, or type the options after its name. In the file, an \
             option's key is its name without the two hyphens in front, and <INPUT> is input = \"FILE\"",
            self.path.display()
        ))
    }

    fn wrong(&self, line: usize, key: &str, what: impl std::fmt::Display) -> Error {
        Error::usage(format!("{}, line {line}, \"{}\": {what}", self.path.display(), key.escape_debug()))
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|&b| b == b'\n').count()
    }
}

/// Explains an option that the operation does not have.
fn unknown(all: &clap::Command, operation: &clap::Command, key: &str) -> String {
    let name = operation.get_bin_name().unwrap_or(operation.get_name()).trim_start_matches("veilset ");
    let has = |other: &&clap::Command| {
        operations::ALL.iter().any(|o| o.name == other.get_name()) && option(other, key).is_some()
    };
    let others: Vec<_> = all.get_subcommands().filter(has).map(clap::Command::get_name).collect();
    let next = format!("{} lists its options", to_type(format_args!("{name} --help")));
    if !others.is_empty() {
        return format!(
            "{name} has no such option; it belongs to {}. Remove it; {next}",
            others.join(" and ")
        );
    }
    let keys = operation.get_arguments().filter_map(key_of).chain([OPERATION]);
    let what = sentence(format!("{name} has no such option{}", did_you_mean(key, keys)));
    format!("{what} Correct it or remove it; {next}")
}

/// Returns the first part of clap's message, with marks for the options that it names. A value that it quotes stays unchanged.
fn first_words(e: &clap::Error) -> String {
    let text = unmarked(&e.to_string());
    let text = text.trim_start_matches("error: ");
    let what = text.split("\n\nUsage:").next().unwrap_or(text);
    let what = what.split("\n\nFor more information").next().unwrap_or(what).trim_end();
    let value = match e.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => format!("'{value}'"),
        _ => String::new(),
    };
    match what.split_once(&value) {
        Some((before, after)) if !value.is_empty() => format!("{before}{value}{}", with_marks(e, after)),
        _ => with_marks(e, what),
    }
}

/// Marks the options that clap's error is about: "--role <ROLE>".
fn with_marks(e: &clap::Error, text: &str) -> String {
    let named = [ContextKind::InvalidArg, ContextKind::PriorArg, ContextKind::SuggestedArg];
    let shown: Vec<&str> = named
        .into_iter()
        .filter_map(|kind| e.get(kind))
        .flat_map(|named| match named {
            ContextValue::String(one) => std::slice::from_ref(one),
            ContextValue::Strings(all) => all,
            _ => &[],
        })
        .map(String::as_str)
        .collect();
    shown.into_iter().filter_map(long_in).fold(text.into(), |text, name| {
        let typed = format!("--{name}");
        text.split(&typed).collect::<Vec<_>>().join(&spelling::option(name))
    })
}

/// Returns the name of the option in "--role <ROLE>", as clap prints arguments.
fn long_in(shown: &str) -> Option<&str> {
    shown.strip_prefix("--")?.split([' ', '=', '[']).next()
}

/// Returns the name of a long option as typed.
fn long(word: &OsStr) -> Option<&str> {
    word.to_str()?.strip_prefix("--")?.split('=').next()
}

/// Returns the key for "--role <ROLE>" or "<INPUT>", as clap prints arguments.
fn key_in(shown: &str) -> Option<String> {
    let name = shown.trim_start_matches("--").split([' ', '=']).next()?;
    Some(name.trim_matches(['<', '>']).to_ascii_lowercase())
}

/// Returns the key of an argument in the file, if it may appear there.
fn key_of(arg: &Arg) -> Option<&str> {
    match arg.get_action() {
        ArgAction::Set | ArgAction::Append | ArgAction::SetTrue if arg.is_positional() => {
            Some(arg.get_id().as_str())
        }
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

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn expected(what: &str, came: &str) -> String {
    format!("this is {came}, but the option takes {what}. Correct it")
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
