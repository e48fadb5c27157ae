//! What of our keys may cost matches, as far as our own table tells.

use crate::spelling::setting;
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
/// A number of more digits than a spreadsheet keeps.
const LONG: u8 = 1 << 4;
/// Such a number whose further digits are all zero.
const CUT: u8 = 1 << 5;
const NO_VALUE: u8 = 1 << 6;

/// In how many rows the key, as it is compared, has something that the other side may write differently.
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

    /// The counts, for those who add them up elsewhere.
    pub fn counts(&self) -> [u64; 7] {
        self.0
    }

    /// What has these counts, each the sum of those of pieces.
    pub fn of_counts(counts: [u64; 7]) -> Profile {
        Profile(counts)
    }

    fn of(&self, found: u8) -> u64 {
        self.0[found.trailing_zeros() as usize]
    }

    /// One line on what may cost matches, if there is anything.
    pub fn text(&self) -> Option<String> {
        // Long numbers that do not all end in zeros were not rounded.
        let cut = if self.of(LONG) == self.of(CUT) { self.of(CUT) } else { 0 };
        let found = [
            (self.of(SPACES), "begins or ends with white space"),
            (self.of(CAPITALS), "has capital letters"),
            (self.of(DECOMPOSED), "has accents stored apart from their letters"),
            (self.of(ROUNDED) + cut, "looks rounded by a spreadsheet"),
            (self.of(NO_VALUE), "stands for no value, like NULL,"),
        ];
        let rows = |rows: u64| if rows == 1 { "1 row".into() } else { format!("{rows} rows") };
        let found = found.into_iter().filter(|(times, _)| *times > 0);
        let found: Vec<String> = found.map(|(times, what)| format!("{what} in {}", rows(times))).collect();
        let folds = [SPACES, CAPITALS, DECOMPOSED].iter().any(|found| self.of(*found) > 0);
        let next = if folds { concat!("; see ", setting!(normalize)) } else { "" };
        let what = "if the other side writes it differently, it does not match";
        (!found.is_empty()).then(|| format!("the key {}: {what}{next}", found.join(", ")))
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
        crate::spelling::plain(&profile.text().unwrap_or_default())
    }

    #[test]
    fn what_may_cost_matches_is_counted() {
        // (keys, what is said of them)
        let cases: [(&[&str], &str); 16] = [
            (&["a ", "\tb", "c", " d "], "begins or ends with white space in 3 rows"),
            (&["a\u{a0}"], "begins or ends with white space in 1 row"),
            (&["a\u{b}"], "begins or ends with white space in 1 row"),
            (&["Ann", "bOB", "c", "É"], "has capital letters in 3 rows"),
            (&["e\u{301}", "\u{e9}"], "has accents stored apart from their letters in 1 row"),
            (&["4.91512e+11", "4,9e+11", "5e+15", "-1.2e+9"], "looks rounded by a spreadsheet in 4 rows"),
            (&["4111111111111110", "9000000000000000"], "looks rounded by a spreadsheet in 2 rows"),
            (&["4111111111111110", "4111111111111111"], ""),
            (&["123456789012340"], ""),
            (&["null", "n/a", "nan", "none"], "stands for no value, like NULL, in 4 rows"),
            (&["1e5", "e+5", "1.e+5", "12.5e+3", "1.5e-3", "1.5e+", "1.5", "e"], ""),
            (&["nullx", "anna", ""], ""),
            (&["ann@x.org", "7", "-", "ß"], ""),
            (&["NULL"], "has capital letters in 1 row, stands for no value, like NULL, in 1 row"),
            (&[" A", "B "], "begins or ends with white space in 2 rows, has capital letters in 2 rows"),
            (&["1E+9"], "has capital letters in 1 row, looks rounded by a spreadsheet in 1 row"),
        ];
        for (keys, said) in cases {
            let all = text(keys);
            match said {
                "" => assert_eq!(all, "", "{keys:?}"),
                said => assert!(all.starts_with(&format!("the key {said}: ")), "{keys:?}: {all}"),
            }
        }
        // What `normalize` cannot mend does not name it.
        assert!(text(&["null"]).ends_with("does not match") && text(&["A"]).ends_with("; see `normalize`"));
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
