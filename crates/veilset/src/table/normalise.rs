//! Normalisation of keys: what both parties do to their key columns before they are compared.
//!
//! - `trim`: removes white space at both ends: all characters with the Unicode property White_Space, including the
//!   no-break space.
//! - `nfc`: Unicode normalization form C, in which composed and decomposed letters are the same.
//! - `casefold`: full Unicode case folding (CaseFolding.txt, statuses C and F, not the Turkic ones): ß is ss.
//!
//! First trim, then `NFC(x)` or `toCasefold(x)`, or with both `NFC(toCasefold(NFD(x)))`. With `casefold` two keys are
//! equal if they are a default caseless match (D144 of the Unicode Standard); with both, if they are a canonical
//! caseless match (D145). The result depends on Unicode's tables, so the parties agree on their versions too.

use super::Encoding;
use crate::error::{Error, Result};
use crate::spelling::{ENCODING, NORMALIZE};
use caseless::Caseless;
use std::str::FromStr;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// What is done to a key column before it is compared. The default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Normalise {
    /// White space at both ends is removed.
    pub trim: bool,
    /// Upper and lower case are the same: full Unicode case folding.
    pub casefold: bool,
    /// Composed and decomposed letters are the same: Unicode normalization form C.
    pub nfc: bool,
}

impl Normalise {
    /// The name of the normalisation, on which the parties must agree: the encoding, the steps in a fixed order, and
    /// the versions of the Unicode tables in use. For example "utf8, trim, casefold, nfc (unicode 16.0.0 and
    /// 18.0.0)", or just "utf8".
    pub fn name(&self, encoding: Encoding) -> String {
        let (folding, nfc) = (caseless::UNICODE_VERSION, unicode_normalization::UNICODE_VERSION);
        let folding = format!("{}.{}.{}", folding.0, folding.1, folding.2);
        let nfc = format!("{}.{}.{}", nfc.0, nfc.1, nfc.2);
        let steps = [(self.trim, ", trim"), (self.casefold, ", casefold"), (self.nfc, ", nfc")];
        let steps: String = steps.iter().filter(|s| s.0).map(|s| s.1).collect();
        let tables = match (self.casefold, self.nfc) {
            (false, false) => String::new(),
            (true, false) => format!(" (unicode {folding})"),
            (false, true) => format!(" (unicode {nfc})"),
            (true, true) if folding == nfc => format!(" (unicode {nfc})"),
            (true, true) => format!(" (unicode {folding} and {nfc})"),
        };
        format!("{encoding}{steps}{tables}")
    }

    /// Refuses to normalise bytes, which may not be text.
    pub fn check(&self, encoding: Encoding) -> Result<()> {
        if encoding == Encoding::Bytes && *self != Normalise::default() {
            return Err(Error::usage(format!(
                "{NORMALIZE} is for text and cannot be used with {}. Omit one of them, on both sides",
                ENCODING.with("bytes")
            )));
        }
        Ok(())
    }

    /// A key column as it is compared; what is not UTF-8 stays as it is. `buffer` is overwritten if needed.
    pub fn apply<'a>(&self, cell: &'a [u8], buffer: &'a mut String) -> &'a [u8] {
        if *self == Normalise::default() {
            return cell;
        }
        let Ok(mut text) = std::str::from_utf8(cell) else { return cell };
        if self.trim {
            text = text.trim();
        }
        buffer.clear();
        match (self.casefold, self.nfc) {
            (true, _) if text.is_ascii() => {
                buffer.push_str(text);
                buffer.make_ascii_lowercase();
            }
            (true, true) => buffer.extend(text.nfd().default_case_fold().nfc()),
            (true, false) => buffer.extend(text.chars().default_case_fold()),
            (false, true) if !is_nfc(text) => buffer.extend(text.nfc()),
            (false, _) => return text.as_bytes(),
        }
        buffer.as_bytes()
    }
}

impl FromStr for Normalise {
    type Err = Error;

    /// A list like `trim,casefold,nfc`, in any order.
    fn from_str(list: &str) -> Result<Self> {
        let mut normalise = Normalise::default();
        for step in list.split(',') {
            match step.trim() {
                "trim" => normalise.trim = true,
                "casefold" => normalise.casefold = true,
                "nfc" => normalise.nfc = true,
                _ => {
                    return Err(Error::usage(format!(
                        "{NORMALIZE} does not know \"{step}\". Give it one or more of trim, casefold and nfc, \
                         separated by commas"
                    )));
                }
            }
        }
        Ok(normalise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use veilset_testing::Draw;

    fn normalised(steps: &str, text: &str) -> String {
        let steps: Normalise = steps.parse().unwrap();
        let mut buffer = String::from("leftover");
        String::from_utf8(steps.apply(text.as_bytes(), &mut buffer).to_vec()).unwrap()
    }

    #[test]
    fn known_examples() {
        // (steps, text, what it becomes)
        let cases = [
            ("trim", " \t\u{a0}\u{2003}a b\u{3000}\r\n\u{85}", "a b"),
            ("trim", "\u{200b}a\u{feff}", "\u{200b}a\u{feff}"),
            ("trim", " Å ", "Å"),
            ("casefold", " Straße ", " strasse "),
            ("casefold", "STRASSE", "strasse"),
            ("casefold", "ẞ", "ss"),
            ("casefold", "İ", "i\u{307}"),
            ("casefold", "I", "i"),
            ("casefold", "ı", "ı"),
            ("casefold", "ΣΟΦΟΣ", "σοφοσ"),
            ("casefold", "σοφος", "σοφοσ"),
            ("casefold", "ﬁ ﬃ", "fi ffi"),
            ("casefold", "\u{212a}", "k"),
            ("casefold", "Ꭰ", "Ꭰ"),
            ("casefold", "ꭰ", "Ꭰ"),
            ("nfc", "A\u{30a}", "Å"),
            ("nfc", "Å", "Å"),
            ("nfc", "\u{212b}", "Å"),
            ("nfc", "ﬁ", "ﬁ"),
            ("nfc", "a\u{323}\u{307}", "ạ\u{307}"),
            ("nfc", "a\u{307}\u{323}", "ạ\u{307}"),
            ("nfc", "\u{1112}\u{1161}\u{11ab}", "한"),
            ("casefold,nfc", "A\u{30a}", "å"),
            ("casefold,nfc", "\u{212b}", "å"),
            ("casefold,nfc", "ǰ", "ǰ"),
            ("casefold,nfc", "J\u{30c}", "ǰ"),
            // The iota below sorts behind the accent, but folds to a letter that does not.
            ("casefold,nfc", "\u{1f80}", "\u{1f00}\u{3b9}"),
            ("casefold,nfc", "\u{3b1}\u{345}\u{313}", "\u{1f00}\u{3b9}"),
            ("nfc,casefold,trim", "\u{a0}E\u{301}COLE ", "école"),
            ("trim", "\u{a0} ", ""),
        ];
        for (steps, text, expected) in cases {
            assert_eq!(normalised(steps, text), expected, "{steps} of {text:?}");
        }
    }

    #[test]
    fn every_character_is_normalised_once_and_for_all() {
        // The first tier draws 30 parts of 4096, and has those of most alphabets.
        let parts = 0..=u32::from(char::MAX) >> 12;
        let parts = Draw::new("characters").of_each(30, parts, |part| *part < 3);
        let characters = parts.into_iter().flat_map(|part| part << 12..(part + 1) << 12);
        for c in characters.filter_map(char::from_u32) {
            for steps in ["casefold", "nfc", "casefold,nfc", "trim,casefold,nfc"] {
                let text = format!("{c}");
                let once = normalised(steps, &text);
                assert_eq!(normalised(steps, &once), once, "{steps} of {c:?}");
                if steps != "casefold" && steps != "nfc" {
                    let decomposed: String = text.nfd().collect();
                    assert_eq!(normalised(steps, &decomposed), once, "{steps} of {c:?} decomposed");
                }
            }
            // An oracle of sorts: what the standard library maps to one small letter that maps back folds like that
            // letter. Letters are left out that are newer than the tables.
            let mut lower = c.to_lowercase();
            if let (Some(small), None) = (lower.next(), lower.next())
                && small != c
                && small.to_uppercase().eq([c])
                && c.nfc().eq([c])
                && !('\u{a7cb}'..='\u{a7df}').contains(&c)
                && c < '\u{16ea0}'
            {
                assert_eq!(
                    normalised("casefold", &c.to_string()),
                    normalised("casefold", &small.to_string()),
                    "{c:?}"
                );
            }
        }
    }

    #[test]
    fn the_name_says_it_all_in_a_fixed_order() {
        let name = |list: &str, encoding| list.parse::<Normalise>().unwrap().name(encoding);
        assert_eq!(Normalise::default().name(Encoding::Utf8), "utf8");
        assert_eq!(Normalise::default().name(Encoding::Bytes), "bytes");
        assert_eq!(name("trim", Encoding::Utf8), "utf8, trim");
        let all = name("nfc, trim,casefold,trim", Encoding::Utf8);
        assert_eq!(all, name("trim,casefold,nfc", Encoding::Utf8));
        assert!(all.starts_with("utf8, trim, casefold, nfc (unicode "), "{all}");
        assert!(all.len() <= 64, "{all}");
        assert_ne!(name("casefold", Encoding::Utf8), name("nfc", Encoding::Utf8));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for list in ["", "lower", "trim,", "NFC", "trim nfc"] {
            let error = list.parse::<Normalise>().unwrap_err();
            assert!(matches!(&error, Error::Usage(m) if m.contains("trim, casefold and nfc")), "{error}");
        }
        let trim: Normalise = "trim".parse().unwrap();
        assert!(
            matches!(trim.check(Encoding::Bytes), Err(Error::Usage(m)) if m.contains("`encoding=bytes`"))
        );
        trim.check(Encoding::Utf8).unwrap();
        Normalise::default().check(Encoding::Bytes).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn equal_after_normalising_is_caseless_match(a in ".{0,6}", b in ".{0,6}") {
            let upper: String = a.to_uppercase();
            for b in [&b, &upper, &a.nfd().collect::<String>(), &a.nfc().collect::<String>()] {
                let equal = normalised("casefold,nfc", &a) == normalised("casefold,nfc", b);
                prop_assert_eq!(equal, a.chars().canonical_caseless_match(b.chars()));
                let equal = normalised("casefold", &a) == normalised("casefold", b);
                prop_assert_eq!(equal, a.chars().default_caseless_match(b.chars()));
                let equal = normalised("nfc", &a) == normalised("nfc", b);
                prop_assert_eq!(equal, a.nfd().eq(b.nfd()));
            }
        }

        #[test]
        fn bytes_that_are_no_text_stay(cell in prop::collection::vec(any::<u8>(), 0..8)) {
            prop_assume!(std::str::from_utf8(&cell).is_err());
            let all = Normalise { trim: true, casefold: true, nfc: true };
            let mut buffer = String::new();
            prop_assert_eq!(all.apply(&cell, &mut buffer), &cell[..]);
        }
    }
}
