//! Fingerprints, which identify the parties' public keys.

use crate::spelling::command;
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq;

/// The fingerprint of a party's public key: 40 letters and digits, suitable for reading out over the telephone or sending by
/// mail.
///
/// The first 38 letters are 190 bits of BLAKE3 over the key's SubjectPublicKeyInfo (RFC 7250). The last two are
/// check letters: all 40, read as a number in base 32, are a multiple of the prime 1021.
///
/// A wrong letter changes that number by d 32^k with 0 < |d| < 32. Two swapped letters change it by
/// (a - b)(32^j - 1) 32^k with 0 < j < 40. 1021 divides neither, so every single typo and every swap is
/// detected; any other error is detected with probability 1020/1021.
///
/// Finding another key with a given fingerprint takes about 2^190 work.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; HASHED]);

/// Number of letters that encode the hash, five bits each.
const HASHED: usize = 38;
/// Number of all letters: those of the hash and the check letters.
const LETTERS: usize = HASHED + 2;
const GROUP: usize = 5;
const CHECK_PRIME: u32 = 1021;
/// Crockford's alphabet, which omits i, l, o and u. On input, i and l are read as 1, and o as 0.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl Fingerprint {
    /// Computes the fingerprint of a public key from its SubjectPublicKeyInfo encoding.
    pub(crate) fn of_public_key(spki: &[u8]) -> Self {
        let hash = blake3::derive_key("veilset 2026-11 public key fingerprint", spki);
        let bit = |i: usize| (hash[i / 8] >> (7 - i % 8)) & 1;
        Fingerprint(std::array::from_fn(|letter| (0..5).fold(0, |value, i| value << 1 | bit(5 * letter + i))))
    }

    /// The bytes that represent the fingerprint in hashes.
    pub(crate) fn as_bytes(&self) -> &[u8; HASHED] {
        &self.0
    }

    /// The fingerprint that these bytes represent, if they are valid.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Fingerprint> {
        let bytes: &[u8; HASHED] = bytes.try_into().ok()?;
        bytes.iter().all(|&value| value < 32).then_some(Fingerprint(*bytes))
    }

    /// Compares in constant time.
    pub(super) fn is(&self, other: &Fingerprint) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// The two letters that complete `letters` to a multiple of the prime.
fn check(letters: &[u8]) -> [u8; 2] {
    let shift = |sum: u32, value: u32| (sum * 32 + value) % CHECK_PRIME;
    let sum = letters.iter().fold(0, |sum, &value| shift(sum, value.into()));
    let missing = (CHECK_PRIME - shift(shift(sum, 0), 0)) % CHECK_PRIME;
    [(missing / 32) as u8, (missing % 32) as u8]
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(LETTERS + LETTERS / GROUP);
        for (i, &value) in self.0.iter().chain(&check(&self.0)).enumerate() {
            if i > 0 && i % GROUP == 0 {
                text.push('-');
            }
            text.push(char::from(ALPHABET[usize::from(value)]));
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    /// Accepts a fingerprint with or without hyphens, in either case.
    fn from_str(s: &str) -> Result<Self, String> {
        const EXPECTED: &str = concat!(
            "A fingerprint is 40 letters and digits, with or without hyphens, as \
                                ",
            command!("identity show"),
            " prints it on its party's side"
        );
        let mut values = Vec::with_capacity(LETTERS);
        let mut len = 0usize;
        for letter in s.trim().chars().filter(|&c| c != '-') {
            let plain = match letter.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                c => c,
            };
            match ALPHABET.iter().position(|&a| char::from(a) == plain) {
                Some(value) => values.push(value as u8),
                None => return Err(format!("it cannot contain '{}'. {EXPECTED}", letter.escape_debug())),
            }
            len += 1;
            values.truncate(LETTERS);
        }
        let (Some((hashed, checked)), true) = (values.split_first_chunk::<HASHED>(), len == LETTERS) else {
            return Err(format!("it has {len} letters and digits. {EXPECTED}"));
        };
        if check(hashed) != checked {
            return Err(format!(
                "it has a typing error: the last two characters, a checksum, do not match the others. \
                 {EXPECTED}"
            ));
        }
        Ok(Fingerprint(*hashed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Fingerprint {
        Fingerprint::of_public_key(b"a key")
    }

    #[test]
    fn it_is_one_token_of_eight_groups() {
        let text = example().to_string();
        let groups: Vec<_> = text.split('-').collect();
        assert_eq!(groups.len(), 8, "{text}");
        assert!(groups.iter().all(|g| g.len() == 5), "{text}");
        assert!(text.bytes().all(|b| b == b'-' || ALPHABET.contains(&b)), "{text}");
        // The encoding must never change: people keep fingerprints in their mail.
        assert_eq!(text, "a5dwh-2s9e4-w3tmf-xa39z-z8ttd-ch6ws-jjk7s-2y6j3");
    }

    #[test]
    fn it_is_read_in_every_way_people_write_it() {
        let text = example().to_string();
        let variants = [
            text.clone(),
            text.replace('-', ""),
            text.to_uppercase(),
            text.replace('0', "o").replace('1', "l"),
            text.replace('0', "O").replace('1', "I"),
            format!(" {text}\n"),
            text.replace('-', "--"),
        ];
        for variant in variants {
            assert_eq!(variant.parse(), Ok(example()), "{variant}");
        }
    }

    #[test]
    fn every_single_typo_and_every_swap_is_caught() {
        let text: Vec<u8> = example().to_string().bytes().filter(|&b| b != b'-').collect();
        let parse = |t: &[u8]| String::from_utf8(t.to_vec()).unwrap().parse::<Fingerprint>();
        assert!(parse(&text).is_ok());
        for i in 0..LETTERS {
            for &other in ALPHABET {
                let mut typo = text.clone();
                typo[i] = other;
                assert_eq!(parse(&typo).is_ok(), other == text[i], "letter {i} as {}", char::from(other));
            }
            for j in 0..i {
                let mut swapped = text.clone();
                swapped.swap(i, j);
                assert_eq!(parse(&swapped).is_ok(), text[i] == text[j], "{i} and {j}");
            }
        }
    }

    #[test]
    fn no_letter_is_left_out_of_a_comparison() {
        assert!(example().is(&example()));
        for i in 0..HASHED {
            let mut other = example();
            other.0[i] ^= 1;
            assert!(!example().is(&other) && !other.is(&example()), "letter {i}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let text = example().to_string();
        let cases = [
            (String::new(), "it has 0 letters and digits"),
            ("abc".into(), "it has 3 letters and digits"),
            (format!("{text}0"), "it has 41 letters and digits"),
            ("0".repeat(100_000), "it has 100000 letters and digits"),
            (text.replacen('-', "u", 1), "it cannot contain 'u'"),
            (text.replacen('-', "\u{1b}", 1), "it cannot contain '\\u{1b}'"),
            (text.replacen('-', "é", 1), "it cannot contain 'é'"),
        ];
        for (bad, words) in cases {
            let e = bad.parse::<Fingerprint>().unwrap_err();
            assert!(e.contains(words) && e.contains("40 letters"), "{e}");
        }
    }
}
