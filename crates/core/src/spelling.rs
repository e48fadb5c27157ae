//! The names of a run's settings and of the program's commands in messages.
//!
//! A message names a setting by its constant, alone (`{MAX_ROW}`) or with a value (`MODULUS.with(128)`), and a command
//! by [`to_type`]. Both are enclosed by two marks, which are noncharacters that no text should contain. Each front end
//! spells marked names the way its users type them ([`spell`]): the program writes `--max-row` and `--modulus 128`.
//! Without a front end, backquotes replace the marks ([`plain`]).
//!
//! All other text is kept: text from a peer, from a parser or the operating system, and names from files. It needs no
//! escaping for this. Marks are removed from text that might contain forged ones ([`unmarked`]), or escaped where it is
//! the peer's ([`shown`](crate::error::shown)). [`marked`](crate::error::Error::marked) gives an
//! [`Error`](crate::error::Error) with the marks, and `Display` without.

use std::fmt::{self, Display, Formatter};

/// The marks before and after a name.
const MARKS: [char; 2] = ['\u{fdd0}', '\u{fdd1}'];

/// The prefix of a command.
const PROGRAM: &str = "veilset ";

/// A setting that messages may name. It is displayed with its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    name: &'static str,
    marked: &'static str,
}

impl Setting {
    /// Returns the setting's name: "max_row".
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the setting's name with the marks.
    pub const fn marked(self) -> &'static str {
        self.marked
    }

    /// Returns the setting with a value, with the marks around both.
    pub fn with(self, value: impl Display) -> String {
        mark(&format!("{}={value}", self.name))
    }
}

impl Display for Setting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.marked)
    }
}

/// Names a setting in a constant text: `setting!(max_row)` and `setting!(modulus, "128")` are literals. A test checks
/// that [`SETTINGS`] has it.
#[doc(hidden)]
#[macro_export]
macro_rules! setting {
    ($name:ident) => {
        concat!("\u{fdd0}", stringify!($name), "\u{fdd1}")
    };
    ($name:ident, $value:literal) => {
        concat!("\u{fdd0}", stringify!($name), "=", $value, "\u{fdd1}")
    };
}

/// Names a command of the program in a constant text: `command!("identity show")` is a literal.
#[doc(hidden)]
#[macro_export]
macro_rules! command {
    ($words:literal) => {
        concat!("\u{fdd0}veilset ", $words, "\u{fdd1}")
    };
}

pub use crate::{command, setting};

/// Defines the constants, and [`SETTINGS`].
macro_rules! settings {
    ($($constant:ident $name:ident,)*) => {
        $(
            #[doc = concat!("The setting `", stringify!($name), "`.")]
            pub const $constant: Setting =
                Setting { name: stringify!($name), marked: setting!($name) };
        )*

        /// All settings.
        pub const SETTINGS: &[Setting] = &[$($constant),*];
    };
}

settings! {
    ALLOW_SMALL allow_small,
    ASSUME assume,
    AUDIT_LOG audit_log,
    BOOK book,
    BOTH both,
    CAPACITY capacity,
    CHECKED checked,
    CIPHER cipher,
    CONNECT connect,
    CONNECT_TIMEOUT connect_timeout,
    DELIMITER delimiter,
    DUPLICATES duplicates,
    EMPTY_KEYS empty_keys,
    ENCODING encoding,
    ESCAPE escape,
    FILTER filter,
    FOR for,
    FOR_SPREADSHEETS for_spreadsheets,
    FORCE force,
    FORMAT format,
    GROUP group,
    HELP help,
    ID_COLUMN id_column,
    IDENTITY identity,
    IDLE_TIMEOUT idle_timeout,
    IDS ids,
    INSECURE_PLAINTEXT insecure_plaintext,
    JOB job,
    KEY key,
    LISTEN listen,
    MALICIOUS_SENDER malicious_sender,
    MAP map,
    MAX_PEER_ITEMS max_peer_items,
    MAX_ROW max_row,
    ME me,
    MIN_COUNT min_count,
    MODULUS modulus,
    MULTILINE_KEYS multiline_keys,
    NO_HEADER no_header,
    NO_QUOTES no_quotes,
    NORMALIZE normalize,
    OUTPUT output,
    OUTPUT_FORMAT output_format,
    PAD_TO pad_to,
    PARTIES parties,
    PEER peer,
    POLICY policy,
    PREPARED prepared,
    PREPARED_LEDGER prepared_ledger,
    PROTOCOL protocol,
    PROXY proxy,
    RECEIVE_COLUMNS receive_columns,
    REPORT report,
    RESUME resume,
    REVEAL_COUNT_TO_SENDER reveal_count_to_sender,
    ROLE role,
    SCALE scale,
    SEND_COLUMNS send_columns,
    SHARDS shards,
    SPEEDS speeds,
    THREADS threads,
    UNION_SENDER union_sender,
    VALUES values,
}

/// Returns a command of the program with the marks: `to_type("identity show")`.
pub fn to_type(words: impl Display) -> String {
    mark(&format!("{PROGRAM}{words}"))
}

/// Returns an option of the program, `max-row` for instance, as the setting of the same name, with the marks.
pub fn option(long: &str) -> String {
    mark(&long.replace('-', "_"))
}

fn mark(text: &str) -> String {
    let [begin, end] = MARKS;
    format!("{begin}{}{end}", unmarked(text))
}

/// Returns text from others without any marks.
pub fn unmarked(text: &str) -> String {
    text.replace(MARKS, "")
}

/// Returns a message with backquotes for the marks, as shown without a front end.
pub fn plain(text: &str) -> String {
    text.replace(MARKS, "`")
}

/// A name in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<'a> {
    /// A setting, with its value if given.
    Setting(&'a str, Option<&'a str>),
    /// A command of the program: "veilset identity show".
    Command(&'a str),
}

/// Replaces each name in `text` with the result of `spelled` for it.
///
/// ```
/// use veilset_core::spelling::{MAX_ROW, MODULUS, Named, spell, to_type};
///
/// let text = format!("{MAX_ROW} is 64. Use {}, and see {}", MODULUS.with(128), to_type("--help"));
/// let program = |named: Named<'_>| match named {
///     Named::Setting(name, None) => format!("--{}", name.replace('_', "-")),
///     Named::Setting(name, Some(value)) => format!("--{} {value}", name.replace('_', "-")),
///     Named::Command(typed) => format!("`{typed}`"),
/// };
/// assert_eq!(spell(&text, program), "--max-row is 64. Use --modulus 128, and see `veilset --help`");
/// // A parser's words.
/// assert_eq!(spell("unknown field `role`", program), "unknown field `role`");
/// ```
pub fn spell(text: &str, spelled: impl Fn(Named<'_>) -> String) -> String {
    let [begin, end] = MARKS;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(begin) {
        // Without an end mark, there is no name.
        let Some((marked, after)) = after.split_once(end) else { break };
        out.push_str(before);
        out.push_str(&spelled(named(marked)));
        rest = after;
    }
    out + &plain(rest)
}

/// Parses the text between marks.
fn named(marked: &str) -> Named<'_> {
    match marked.split_once('=') {
        _ if marked.starts_with(PROGRAM) => Named::Command(marked),
        Some((name, value)) => Named::Setting(name, Some(value)),
        None => Named::Setting(marked, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> String {
        spell(text, |named| match named {
            Named::Setting(name, value) => format!("<{name}|{}>", value.unwrap_or("-")),
            Named::Command(typed) => format!("<{typed}>"),
        })
    }

    #[test]
    fn text_of_others_stays_as_it_is() {
        for foreign in
            ["missing field `role`, `key", "`key=email`", "--max-row", "`veilset identity show`", "", "`"]
        {
            assert_eq!(spelled(foreign), foreign);
            assert_eq!(spelled(&format!("{KEY}: {foreign}{KEY}")), format!("<key|->: {foreign}<key|->"));
            assert_eq!(spelled(&KEY.with(foreign)), format!("<key|{foreign}>"));
        }
        // Text with marks of its own, which another party cannot send but a file can contain.
        let forged = format!("a {KEY} b");
        assert_eq!(spelled(&unmarked(&forged)), "a key b");
        assert_eq!(spelled(&crate::error::shown(&forged)), "a \\u{fdd0}key\\u{fdd1} b");
        assert_eq!(spelled(&PEER.with(&forged)), "<peer|a key b>");
        // A mark without an end, or without a beginning.
        assert_eq!(spelled(&format!("{KEY} \u{fdd0}key")), "<key|-> `key");
        assert_eq!(spelled("\u{fdd1}key"), "`key");
    }

    #[test]
    fn settings_are_spelled_and_nothing_else_is() {
        let value = RECEIVE_COLUMNS.with("COL=NAME");
        for (text, expected) in [
            (format!("a {KEY}, b {value}."), "a <key|->, b <receive_columns|COL=NAME>."),
            (format!("run {} with {FOR}", to_type("prepare")), "run <veilset prepare> with <for|->"),
            (option("max-row"), "<max_row|->"),
            (
                concat!(setting!(modulus, "128"), ", ", command!("--help")).into(),
                "<modulus|128>, <veilset --help>",
            ),
        ] {
            assert_eq!(spelled(&text), expected);
        }
        assert_eq!(
            plain(&format!("a {KEY}, b {value}, {}.", to_type("x"))),
            "a `key`, b `receive_columns=COL=NAME`, `veilset x`."
        );
        assert!(SETTINGS.iter().all(|setting| setting.to_string() == option(setting.name())));
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.name()));
    }
}
