//! How messages name the settings of a run.
//!
//! A message of this library names a setting in backquotes, alone (`` `max_row` ``) or with a value (`` `modulus=128`
//! ``). Each front end spells it the way its users type it ([`spell`]): the program writes `--max-row` and `--modulus
//! 128`.
//!
//! Text that is not this library's own stays as it is: what a peer sent, what a parser or the operating system says, and
//! names from files. Whoever puts it into a message marks it ([`verbatim`]). The marks are two characters that stand for
//! nothing and that no text should have. They are for front ends only: [`Error`](crate::error::Error) has them in
//! [`marked`](crate::error::Error::marked), and is displayed without.

/// The settings that messages may name.
pub const SETTINGS: [&str; 55] = [
    "allow_small",
    "assume",
    "audit_log",
    "both",
    "capacity",
    "checked",
    "cipher",
    "connect_timeout",
    "delimiter",
    "duplicates",
    "empty_keys",
    "encoding",
    "escape",
    "filter",
    "for",
    "for_spreadsheets",
    "force",
    "format",
    "group",
    "id_column",
    "identity",
    "idle_timeout",
    "ids",
    "insecure_plaintext",
    "job",
    "key",
    "listen",
    "malicious_sender",
    "map",
    "max_peer_items",
    "max_row",
    "min_count",
    "modulus",
    "multiline_keys",
    "no_header",
    "no_quotes",
    "normalize",
    "output",
    "output_format",
    "pad_to",
    "parties",
    "peer",
    "prepared",
    "prepared_ledger",
    "protocol",
    "proxy",
    "receive_columns",
    "resume",
    "reveal_count_to_sender",
    "role",
    "scale",
    "send_columns",
    "shards",
    "union_sender",
    "values",
];

/// What stands before and after text that is not ours.
const MARKS: [char; 2] = ['\u{fdd0}', '\u{fdd1}'];

/// Text that is not this library's own, marked as such.
pub fn verbatim(text: &str) -> String {
    let [begin, end] = MARKS;
    format!("{begin}{}{end}", plain(text))
}

/// A message without marks.
pub fn plain(text: &str) -> String {
    text.replace(MARKS, "")
}

/// Applies `change` to all parts of a message that are this library's own, and removes the marks of all others.
pub fn change_own(text: &str, change: impl Fn(&str) -> String) -> String {
    let [begin, end] = MARKS;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((own, after)) = rest.split_once(begin) {
        // Marked text has no marks. Without an end, all that follows is not ours.
        let (foreign, after) = after.split_once(end).unwrap_or((after, ""));
        out.push_str(&change(own));
        out.push_str(foreign);
        rest = after;
    }
    plain(&(out + &change(rest)))
}

/// Replaces every setting in `text` with what `spelled` returns for its name and its value, if any. Marked text stays as
/// it is, and loses its marks.
///
/// ```
/// use veilset::spelling::{spell, verbatim};
///
/// let text = "`max_row` is 64. Use `modulus=128`, and see `veilset --help`";
/// let options = |setting: &str, value: Option<&str>| match value {
///     Some(value) => format!("--{} {value}", setting.replace('_', "-")),
///     None => format!("--{}", setting.replace('_', "-")),
/// };
/// assert_eq!(spell(text, options), "--max-row is 64. Use --modulus 128, and see `veilset --help`");
/// let parser = verbatim("unknown field `role`");
/// assert_eq!(spell(&format!("{parser}. Omit `role`"), options), "unknown field `role`. Omit --role");
/// ```
pub fn spell(text: &str, spelled: impl Fn(&str, Option<&str>) -> String) -> String {
    change_own(text, |own| {
        let mut out = String::with_capacity(own.len());
        let mut rest = own;
        while let Some((before, after)) = rest.split_once('`') {
            out.push_str(before);
            rest = match setting(after) {
                Some((name, value, after)) => {
                    out.push_str(&spelled(name, value));
                    after
                }
                None => {
                    out.push('`');
                    after
                }
            };
        }
        out + rest
    })
}

/// Parses the setting at the start of `text`: its name, its value, and what follows the closing backquote.
fn setting(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let (inside, after) = text.split_once('`')?;
    let (name, value) = match inside.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (inside, None),
    };
    SETTINGS.contains(&name).then_some((name, value, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_stays_as_it_is() {
        let spelled = |text: &str| spell(text, |name, _| format!("<{name}>"));
        let foreign = verbatim("missing field `role`, `key");
        assert_eq!(plain(&foreign), "missing field `role`, `key");
        assert_eq!(
            spelled(&format!("`key`: {foreign}. `role`")),
            "<key>: missing field `role`, `key. <role>"
        );
        // A backquote of theirs does not begin a setting of ours, and none of ours ends within theirs.
        assert_eq!(spelled(&format!("a {}key`", verbatim("`"))), "a `key`");
        assert_eq!(spelled(&format!("{}{}", verbatim("`key`"), verbatim("`key`"))), "`key``key`");
        // Marked twice, or with marks of its own.
        assert_eq!(spelled(&verbatim(&verbatim("`key`"))), "`key`");
        assert_eq!(spelled(&verbatim("\u{fdd1}`key`\u{fdd0}")), "`key`");
        // Not closed.
        assert_eq!(spelled("`key` \u{fdd0}`key`"), "<key> `key`");
        assert_eq!(spelled("\u{fdd1}`key`"), "<key>");
    }

    #[test]
    fn settings_are_spelled_and_nothing_else_is() {
        let spelled = |text: &str| spell(text, |name, value| format!("<{name}|{}>", value.unwrap_or("-")));
        for (text, expected) in [
            ("", ""),
            ("`key`", "<key|->"),
            ("a `key`, b `receive_columns=COL=NAME`.", "a <key|->, b <receive_columns|COL=NAME>."),
            // A command; an unknown word; a lone backquote in somebody's data before a setting.
            ("run `veilset prepare` with `key`", "run `veilset prepare` with <key|->"),
            ("`keys` `key=`", "`keys` <key|>"),
            ("the column \"a`b\" is not in `key`", "the column \"a`b\" is not in <key|->"),
            ("ends with `key", "ends with `key"),
        ] {
            assert_eq!(spelled(text), expected);
        }
    }
}
