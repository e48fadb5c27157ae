//! Messages of a run to its user, in words that all front ends share.

use veilset::error::Error;
use veilset::net::Me;
use veilset::party::{Phase, TableFacts};
use veilset::spelling::{Named, spell};
use veilset::table::Profile;

/// Writes the settings in a text of the library as options: `--max-row`, `--modulus 128`.
pub fn as_options(text: &str) -> String {
    let option = |setting: &str| format!("--{}", setting.replace('_', "-"));
    spell(text, |named| match named {
        Named::Setting(setting, None) => option(setting),
        Named::Setting(setting, Some(value)) => format!("{} {value}", option(setting)),
        Named::Command(typed) => format!("`{typed}`"),
    })
}

/// Names the parties of the list that an error is about, unless its text names them.
pub fn about(me: &Me, error: &Error) -> Vec<String> {
    let (text, seats) = (error.to_string(), error.seats());
    // The text of a disagreement may contain the name by coincidence, not as the name of the party.
    let says = |name: &str| !matches!(error, Error::Disagreement(_)) && text.contains(name);
    let parties = me.others().filter(|party| seats.contains(&party.seat()) && !says(party.name()));
    parties.map(|party| format!("{} of {} is {}", party.seat(), me.roster().source(), party.name())).collect()
}

/// Describes the current phase in words.
pub fn of_phase(phase: Phase, input: &str) -> String {
    match phase {
        Phase::Sorting => format!("sorting the keys of {input}"),
        Phase::Preparing => format!("preparing the keys of {input}"),
        _ => format!("reading {input}"),
    }
}

/// Reports what was read; `repeated` describes the treatment of rows with a repeated key.
pub fn tell(facts: &TableFacts<'_>, repeated: &str, say: &dyn Fn(&str), warn: &dyn Fn(&str)) {
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let &TableFacts { name: file, rows, items, duplicates, skipped, found, notes, profile, .. } = facts;
    let columns = match found.to_string() {
        none if none.is_empty() => none,
        columns => columns + ", ",
    };
    let mut line = format!("{file}: {columns}{rows} row{}, {items} item{}", s(rows), s(items));
    if duplicates > 0 {
        line += &format!(", {duplicates} row{} with a repeated key {repeated}", s(duplicates));
    }
    if skipped > 0 {
        line += &format!(", {skipped} row{} with an empty key omitted", s(skipped));
    }
    say(&line);
    notes.iter().for_each(|note| warn(&note.text()));
    if let Some(may_cost) = profile.and_then(Profile::text) {
        say(&format!("{file}: {may_cost}"));
    }
}

/// Warns about columns that the result will lack.
pub fn tell_unread(facts: &TableFacts<'_>, warn: &dyn Fn(&str)) {
    for unread in facts.unread {
        let (file, name) = (facts.name, &unread.name);
        warn(&format!(
            "{file}, column \"{name}\": it will be missing from the result, because {}",
            unread.what
        ));
    }
}
