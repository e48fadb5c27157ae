//! The output of `-h` and `--help`: `-h` is one screen with the options that nine in ten runs need; `--help` has all options,
//! under headings.

use clap::Command;

/// A heading of `--help`: its options that `-h` shows, and the others.
struct Heading {
    title: &'static str,
    shown: &'static [&'static str],
    others: &'static [&'static str],
}

/// The options of operations, and of commands that share some of them. Each is under one heading.
const HEADINGS: [Heading; 6] = [
    Heading {
        title: "Data",
        shown: &["input", "key", "normalize", "values", "scale", "send_columns", "receive_columns"],
        others: &[
            "format",
            "delimiter",
            "no_header",
            "escape",
            "no_quotes",
            "multiline_keys",
            "encoding",
            "empty_keys",
            "duplicates",
            "pad_to",
            "max_row",
            "union_sender",
            "queries",
            "capacity",
        ],
    },
    Heading {
        title: "The other side",
        shown: &["role", "peer", "listen", "connect", "parties", "me", "allow_small"],
        others: &["proxy", "identity", "book", "connect_timeout", "idle_timeout", "insecure_plaintext"],
    },
    Heading {
        title: "Result",
        shown: &["output", "report", "force", "both", "ids", "map", "min_count"],
        others: &["output_format", "for_spreadsheets", "id_column", "quiet"],
    },
    Heading { title: "Rules", shown: &[], others: &["policy", "audit_log", "max_peer_items", "checked"] },
    Heading {
        title: "How it is computed",
        shown: &[],
        others: &[
            "protocol",
            "prefer",
            "assume",
            "group",
            "cipher",
            "malicious_sender",
            "reveal_count_to_sender",
            "modulus",
            "threads",
        ],
    },
    Heading {
        title: "In advance, and in parts",
        shown: &[],
        others: &["prepared", "prepared_ledger", "filter", "shards", "job", "resume"],
    },
];

/// The commands whose options are under [`HEADINGS`], by the id of an option that only they have.
const ARRANGED_BY: &str = "key";

/// Arranges the help of a command and of its subcommands. `shortened` names other commands, each with the options that only
/// `--help` shows.
pub fn arrange(command: Command, shortened: &[(&str, &[&str])]) -> Command {
    let arranged = command.get_arguments().any(|arg| arg.get_id() == ARRANGED_BY);
    let command = command.mut_subcommands(|below| arrange(below, shortened));
    if !arranged {
        let name = command.get_name().to_string();
        let hidden = shortened.iter().find(|(other, _)| *other == name).map_or(&[][..], |(_, hidden)| hidden);
        return command.mut_args(|arg| match hidden.contains(&arg.get_id().as_str()) {
            true => arg.hide_short_help(true),
            false => arg,
        });
    }
    // The headings are in the order of their first options.
    let place = |id: &str| {
        let all = HEADINGS.iter().flat_map(|heading| heading.shown.iter().chain(heading.others));
        all.zip(0..).find_map(|(other, place)| (*other == id).then_some(place))
    };
    command.mut_args(|arg| {
        let id = arg.get_id().to_string();
        let Some(heading) = HEADINGS.iter().find(|h| h.shown.contains(&&*id) || h.others.contains(&&*id))
        else {
            return arg;
        };
        let shown = heading.shown.contains(&&*id);
        let arg = if arg.is_positional() { arg } else { arg.help_heading(heading.title) };
        arg.hide_short_help(!shown).display_order(place(&id).unwrap_or(usize::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Typed;
    use std::collections::BTreeSet;

    /// Collects all commands, with their full names.
    fn commands(command: &Command, name: &str, all: &mut Vec<(String, Command)>) {
        all.push((name.to_string(), command.clone()));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            commands(below, format!("{name} {}", below.get_name()).trim(), all);
        }
    }

    fn all() -> Vec<(String, Command)> {
        let mut root = Typed::command().term_width(80);
        root.build();
        let mut all = Vec::new();
        commands(&root, "", &mut all);
        all
    }

    #[test]
    fn every_option_of_an_operation_has_one_heading() {
        let listed: Vec<&str> =
            HEADINGS.iter().flat_map(|heading| heading.shown.iter().chain(heading.others)).copied().collect();
        assert_eq!(listed.len(), listed.iter().collect::<BTreeSet<_>>().len());
        let mut there = BTreeSet::new();
        for (name, command) in all() {
            let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
            if ids.iter().any(|id| id == ARRANGED_BY) {
                for id in ids.into_iter().filter(|id| id != "help") {
                    assert!(
                        listed.contains(&id.as_str()) || name.starts_with("filter") && id == "filter",
                        "{name}: {id}"
                    );
                    there.insert(id);
                }
            }
        }
        let gone: Vec<_> = listed.iter().filter(|id| !there.contains(**id)).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }

    /// Amounts, and shares of amounts, have decimal places, which both sides must give.
    #[test]
    fn the_example_of_what_has_values_is_one_that_runs() {
        for operation in veilset::operations::ALL {
            let (_, command) = all().into_iter().find(|(name, _)| name == operation.name).unwrap();
            let text = command.term_width(80).render_long_help().to_string();
            let (_, example) = text.split_once("Example (each party runs its own)").unwrap();
            let agreed = usize::from(operation.uses.values || operation.uses.shares);
            let count = |words: &str| example.matches(words).count();
            assert_eq!((count("--values amount"), count("--scale 2")), (agreed, 2 * agreed), "{operation}");
            // Without it, the receiver would be warned.
            assert_eq!(count("--min-count 10"), 2 * usize::from(operation.uses.values), "{operation}");
        }
    }

    #[test]
    fn what_most_runs_need_is_in_the_short_help() {
        for (name, command) in all().into_iter().filter(|(name, _)| ["intersect", "union"].contains(&&**name))
        {
            let text = command.term_width(80).render_help().to_string();
            for option in
                ["--key", "--normalize", "--role", "--peer", "--listen", "--connect", "--output", "--report"]
            {
                assert!(text.contains(&format!("{option} ")), "veilset {name} -h lacks {option}:\n{text}");
            }
        }
    }
}
