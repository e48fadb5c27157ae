//! What of our keys may cost matches, as far as our own table tells.

use unicode_normalization::is_nfc;

/// The digits of a number that spreadsheets keep.
const KEPT: usize = 15;
/// What programs write where there is no value, in small letters.
const MISSING: [&str; 14] = [
    "null",
    "nil",
    "none",
    "nan",
    "na",
    "n/a",
    "#n/a",
    "<na>",
    "nat",
    "undefined",
    "#null!",
    "#ref!",
    "#value!",
    "#name?",
];

/// What a key may have, each a bit.
const SPACES: u8 = 1;
const CAPITALS: u8 = 1 << 1;
const DECOMPOSED: u8 = 1 << 2;
const ROUNDED: u8 = 1 << 3;
/// More digits than a spreadsheet keeps, and
const LONG: u8 = 1 << 4;
/// nothing but zeros for those.
const CUT: u8 = 1 << 5;
const NO_VALUE: u8 = 1 << 6;

/// How many keys, as they are compared, have something that the other side may write differently.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile([u64; 7]);

impl Profile {
    /// Counts a key in whose cells this was found.
    pub(super) fn count(&mut self, Seen(found): Seen) {
        self.0.iter_mut().enumerate().for_each(|(bit, times)| *times += u64::from(found >> bit & 1));
    }

    /// Counts what another one has counted.
    pub(crate) fn add(&mut self, other: &Profile) {
        self.0.iter_mut().zip(other.0).for_each(|(ours, theirs)| *ours += theirs);
    }

    fn of(&self, found: u8) -> u64 {
        self.0[found.trailing_zeros() as usize]
    }

    /// One line on what may cost matches, if there is anything.
    pub fn text(&self) -> Option<String> {
        // Long numbers that do not all end in zeros were not rounded.
        let cut = if self.of(LONG) == self.of(CUT) { self.of(CUT) } else { 0 };
        let found = [
            (self.of(SPACES), ["begins or ends with white space", "begin or end with white space"]),
            (self.of(CAPITALS), ["has capital letters", "have capital letters"]),
            (
                self.of(DECOMPOSED),
                ["has accents apart from their letters", "have accents apart from their letters"],
            ),
            (self.of(ROUNDED) + cut, ["looks rounded by a spreadsheet", "look rounded by a spreadsheet"]),
            (self.of(NO_VALUE), ["stands for no value, like NULL", "stand for no value, like NULL"]),
        ];
        let mut found: Vec<String> = found
            .into_iter()
            .filter(|(keys, _)| *keys > 0)
            .map(|(keys, [one, more])| if keys == 1 { format!("1 {one}") } else { format!("{keys} {more}") })
            .collect();
        // "12 keys have", and then "3 have".
        if let Some((number, has)) = found.first().and_then(|first| first.split_once(' ')) {
            found[0] = format!("{number} key{} {has}", if number == "1" { "" } else { "s" });
        }
        let folds = [SPACES, CAPITALS, DECOMPOSED].iter().any(|found| self.of(*found) > 0);
        let next = if folds { "; see `normalize`" } else { "" };
        let what = "if the other side writes them differently, they do not match";
        (!found.is_empty()).then(|| format!("{}: {what}{next}", found.join(", ")))
    }
}

/// What the cells of a key have.
#[derive(Default)]
pub(super) struct Seen(u8);

impl Seen {
    pub(super) fn look(&mut self, cell: &[u8]) {
        self.0 |= look(cell);
    }
}

/// What a cell has.
fn look(cell: &[u8]) -> u8 {
    let mut found = 0;
    let mut note = |what, there| found |= if there { what } else { 0 };
    match std::str::from_utf8(cell) {
        _ if cell.is_ascii() => {
            let blank = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_whitespace() || *b == 0x0b);
            note(SPACES, blank(cell.first()) || blank(cell.last()));
            note(CAPITALS, cell.iter().any(u8::is_ascii_uppercase));
            let digit = cell.first().is_some_and(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'));
            note(ROUNDED, digit && is_rounded(cell));
            let number = cell.len() > KEPT && cell.iter().all(u8::is_ascii_digit);
            note(LONG, number);
            note(CUT, number && cell[KEPT..].iter().all(|digit| *digit == b'0'));
            note(NO_VALUE, MISSING.iter().any(|none| none.as_bytes().eq_ignore_ascii_case(cell)));
        }
        Ok(text) => {
            note(SPACES, text.trim().len() < text.len());
            note(CAPITALS, text.chars().any(char::is_uppercase));
            note(DECOMPOSED, !is_nfc(text));
        }
        // Bytes that are no text.
        Err(_) => {}
    }
    found
}

/// Whether this is a number with an exponent as spreadsheets show large ones: `4.91512E+11`, `5E+15`, `4,91512E+11`.
fn is_rounded(cell: &[u8]) -> bool {
    let cell = cell.strip_prefix(b"-").or(cell.strip_prefix(b"+")).unwrap_or(cell);
    let Some(at) = cell.iter().position(|b| b.eq_ignore_ascii_case(&b'e')) else { return false };
    let (number, exponent) = (&cell[..at], &cell[at + 1..]);
    let digits = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let whole = match number {
        [digit, b'.' | b',', more @ ..] => digit.is_ascii_digit() && digits(more),
        [digit] => digit.is_ascii_digit(),
        _ => false,
    };
    whole && exponent.strip_prefix(b"+").is_some_and(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(profile: &mut Profile, key: &[&[u8]]) {
        let mut found = Seen::default();
        key.iter().for_each(|cell| found.look(cell));
        profile.count(found);
    }

    fn text(keys: &[&str]) -> String {
        let mut profile = Profile::default();
        keys.iter().for_each(|key| count(&mut profile, &[key.as_bytes()]));
        profile.text().unwrap_or_default()
    }

    #[test]
    fn what_may_cost_matches_is_counted() {
        // (keys, what is said of them)
        let cases: [(&[&str], &str); 16] = [
            (&["a ", "\tb", "c", " d "], "3 keys begin or end with white space"),
            (&["a\u{a0}"], "1 key begins or ends with white space"),
            (&["a\u{b}"], "1 key begins or ends with white space"),
            (&["Ann", "bOB", "c", "É"], "3 keys have capital letters"),
            (&["e\u{301}", "\u{e9}"], "1 key has accents apart from their letters"),
            (&["4.91512e+11", "4,9e+11", "5e+15", "-1.2e+9"], "4 keys look rounded by a spreadsheet"),
            (&["4111111111111110", "9000000000000000"], "2 keys look rounded by a spreadsheet"),
            (&["4111111111111110", "4111111111111111"], ""),
            (&["123456789012340"], ""),
            (&["null", "n/a", "nan", "none"], "4 keys stand for no value, like NULL"),
            (&["1e5", "e+5", "1.e+5", "12.5e+3", "1.5e-3", "1.5e+", "1.5", "e"], ""),
            (&["nullx", "anna", ""], ""),
            (&["ann@x.org", "7", "-", "ß"], ""),
            (&["NULL"], "1 key has capital letters, 1 stands for no value, like NULL"),
            (&[" A", "B "], "2 keys begin or end with white space, 2 have capital letters"),
            (&["1E+9"], "1 key has capital letters, 1 looks rounded by a spreadsheet"),
        ];
        for (keys, said) in cases {
            let all = text(keys);
            match said {
                "" => assert_eq!(all, "", "{keys:?}"),
                said => assert!(all.starts_with(&format!("{said}: ")), "{keys:?}: {all}"),
            }
        }
        // What `normalize` cannot mend does not name it.
        assert!(text(&["null"]).ends_with("do not match") && text(&["A"]).ends_with("; see `normalize`"));
    }

    #[test]
    fn a_key_counts_once_and_counts_add_up() {
        let mut all = Profile::default();
        count(&mut all, &[b"A", b"B", b"c"]);
        let mut more = Profile::default();
        count(&mut more, &[b"\xff ", b"D"]);
        all.add(&more);
        assert_eq!(all.of(CAPITALS), 2);
        assert_eq!(all.of(SPACES), 0);
    }
}
