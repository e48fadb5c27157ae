//! How messages name the settings of a run.
//!
//! A message of this library names a setting in backquotes, alone (`` `max_row` ``) or with a value (`` `modulus=128`
//! ``). Each front end spells it the way its users type it ([`spell`]): the program writes `--max-row` and `--modulus
//! 128`.

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

/// Replaces every setting in `text` with what `spelled` returns for its name and its value, if any.
///
/// ```
/// use veilset::spelling::spell;
///
/// let text = "`max_row` is 64. Use `modulus=128`, and see `veilset --help`";
/// let options = |setting: &str, value: Option<&str>| match value {
///     Some(value) => format!("--{} {value}", setting.replace('_', "-")),
///     None => format!("--{}", setting.replace('_', "-")),
/// };
/// assert_eq!(spell(text, options), "--max-row is 64. Use --modulus 128, and see `veilset --help`");
/// ```
pub fn spell(text: &str, spelled: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
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
    out.push_str(rest);
    out
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
