//! Values offered for arguments, beyond those that their definitions list.

use super::line::Typed;
use super::{path, small_text};
use crate::guide;
use clap::{Arg, Args, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::any::TypeId;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use veilset::assumption::Assumption;
use veilset::net::Listed;
use veilset::table::{column_names, input_files};
use veilset_app::book::{Book, Peer};
use veilset_app::columns::{self, Columns, Received};
use veilset_app::options::KeyArgs;
use veilset_app::{config, parties, plan};

/// The prefix of the id of a candidate that stands for the names of files.
const FILES: &str = "files of ";

/// The steps of `--normalize`.
pub const STEPS: [&str; 3] = ["trim", "casefold", "nfc"];

/// The options with a value with which the header of the input is read, for the names of its columns.
const OF_THE_TABLE: [(&str, &str); 3] =
    [("format", "--format"), ("delimiter", "--delimiter"), ("encoding", "--encoding")];

/// Attaches completers to the arguments of a command and of its subcommands.
pub fn of(command: Command, typed: &Arc<Typed>) -> Command {
    let name = command.get_name().to_string();
    let command = command.mut_subcommands(|below| of(below, typed));
    command.mut_args(|arg| match completer(&name, &arg, typed) {
        Some(completer) => arg.add(completer),
        None => arg,
    })
}

/// Returns whether the candidate stands for the names of files.
pub fn are_files(candidate: &CompletionCandidate) -> bool {
    candidate.get_id().is_some_and(|id| id.starts_with(FILES))
}

/// Returns whether the candidate is the name of an option.
pub fn is_option(candidate: &CompletionCandidate) -> bool {
    candidate.get_id().is_some_and(|id| id.starts_with("arg::"))
}

/// A value, and its description.
type Offer = (String, Option<String>);

/// A function that returns the values to offer for a word.
type Offers = Box<dyn Fn(&str) -> Vec<Offer> + Send + Sync>;

/// Returns the completer of an argument, if there are values to offer that its definition does not list.
fn completer(command: &str, arg: &Arg, typed: &Arc<Typed>) -> Option<ArgValueCompleter> {
    let (typed, id) = (typed.clone(), arg.get_id().to_string());
    let parsed_as = arg.get_value_parser().type_id();
    let offer: Offers = match (command, id.as_str()) {
        _ if config::is_path(arg) => return Some(files(id)),
        ("run", "words") => return Some(files(id)),
        _ if parsed_as == TypeId::of::<Columns>() => Box::new(move |word| list(&typed, &id, word)),
        // These are columns of another party's file.
        _ if parsed_as == TypeId::of::<Received>() => Box::new(|_| Vec::new()),
        (_, "values") => Box::new(move |_| plain(names(&typed))),
        (_, "peer") | ("remove", "name") => Box::new(move |_| peers(&typed).unwrap_or_default()),
        (_, "me") => Box::new(move |_| parties(&typed).unwrap_or_default()),
        (_, "normalize") => Box::new(|_| plain(STEPS.map(String::from).into())),
        (_, "assume") => Box::new(|_| plain(Assumption::ALL.map(|a| a.name().to_string()).into())),
        ("help", "topic") => Box::new(|_| guide::topics()),
        _ => return None,
    };
    Some(ArgValueCompleter::new(move |word: &OsStr| {
        let Some(word) = word.to_str() else { return Vec::new() };
        let offered = offer(word).into_iter().filter(|(value, _)| value.starts_with(word));
        let candidate = |(value, help): Offer| CompletionCandidate::new(value).help(help.map(Into::into));
        offered.map(candidate).collect()
    }))
}

/// Returns a completer whose only candidate stands for the names of files. Its id names the argument, because the engine keeps
/// only one of several candidates with the same id.
fn files(argument: String) -> ArgValueCompleter {
    let id = format!("{FILES}{argument}");
    ArgValueCompleter::new(move |_: &OsStr| vec![CompletionCandidate::new("").id(Some(id.clone()))])
}

fn plain(values: Vec<String>) -> Vec<Offer> {
    values.into_iter().map(|value| (value, None)).collect()
}

/// Completes the last name in a list of columns. Names that the option already has are not offered again.
fn list(typed: &Typed, id: &str, word: &str) -> Vec<Offer> {
    let (mut taken, last) = columns::unfinished(word);
    taken.extend(typed.all(id).filter_map(|value| value.parse().ok()).flat_map(|Columns(names)| names));
    let before = &word[..word.len() - last.len()];
    let in_quotes = last.starts_with('"');
    let offered = names(typed).into_iter().filter(|name| !taken.contains(name)).map(|name| match in_quotes {
        true => format!("{before}\"{}\"", name.replace('"', "\"\"")),
        false => format!("{before}{}", columns::quoted(&name)),
    });
    plain(offered.collect())
}

/// Returns the columns of the input that can be named, which excludes repeated names.
fn names(typed: &Typed) -> Vec<String> {
    let all = table(typed).unwrap_or_default();
    let once = |name: &&String| all.iter().filter(|other| other == name).count() == 1;
    all.iter().filter(once).cloned().collect()
}

/// Returns the columns of the first file of the input.
fn table(typed: &Typed) -> Option<Vec<String>> {
    let input = path(typed.first("input").filter(|input| *input != "-")?);
    let mut words: Vec<String> = vec![String::new(), "--key=x".into()];
    let values = |(id, option)| typed.all(id).map(move |value| format!("{option}={value}"));
    words.extend(OF_THE_TABLE.into_iter().flat_map(values));
    words.extend(typed.first("no_header").map(|_| "--no-header".into()));
    let words = words.into_iter().map(PathBuf::from).chain(["--".into(), input]);
    let matches = KeyArgs::augment_args(Command::new("")).try_get_matches_from(words).ok()?;
    let source = plan::keyed(KeyArgs::from_arg_matches(&matches).ok()?).ok()?;
    let files = input_files(&source.inputs).ok()?;
    column_names(files.first()?, &source.read).ok()
}

/// Returns the peers in the address book.
fn peers(typed: &Typed) -> Option<Vec<Offer>> {
    let book = typed.first("book").map(path).or_else(Book::default_path)?;
    let book = Book::parse(&small_text(&book)?, Some(book)).ok()?;
    let offer = |Peer { name, fingerprint, address }: Peer| {
        let at = address.map(|address| format!(" at {address}")).unwrap_or_default();
        Some((name?, Some(format!("{fingerprint}{at}"))))
    };
    Some(book.peers().filter_map(offer).collect())
}

/// Returns the parties of a list.
fn parties(typed: &Typed) -> Option<Vec<Offer>> {
    let listed: Listed = parties::parse(&small_text(&path(typed.first("parties")?))?).ok()?;
    Some(listed.party.into_iter().map(|party| (party.name, Some(party.fingerprint.to_string()))).collect())
}
