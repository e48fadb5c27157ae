//! The value column of a sum: decimal numbers as integers, and the bound that keeps sums from overflowing.

use super::{KeyedSet, Table};
use crate::error::{Error, Result};
use crate::operations::sum::Modulus;
use crate::operations::{share, sum};
use crate::spelling::{MODULUS, SCALE, setting};

/// The most useful fractional digits: 10^38 is the largest power of ten in an `i128`.
const MAX_SCALE: u32 = 38;

/// The values of a column, multiplied by 10^`scale`, one for each item of the set. Rows that repeat a key count if
/// the set was made with [`super::Duplicates::Add`]; otherwise their values are not even read.
///
/// A value is an optional sign, digits, and optionally a point and more digits, with spaces around it.
/// Columns of floating-point numbers are refused: their sums are not exact.
pub fn values(table: &Table, keyed: &KeyedSet, column: usize, scale: u32) -> Result<Vec<i128>> {
    if scale > MAX_SCALE {
        return Err(Error::usage(format!(
            "a scale of {scale} is too large; give {SCALE} a number up to {MAX_SCALE}, on both sides"
        )));
    }
    let fit = table.columns[column].check_values();
    fit.map_err(|unfit| table.error(unfit.what, unfit.next).at_column(table.label(column)))?;
    let value = |row: u32, cells: &[Option<&[u8]>]| {
        decimal(cells[0].unwrap_or_default(), scale).map_err(|bad| {
            let others = bad.digits.and_then(|digits| finer(table, keyed, column, digits));
            let next = others.unwrap_or(bad.next);
            table.error_at(row as usize, column, bad.what, next)
        })
    };
    let mut values = Vec::with_capacity(keyed.rows.len());
    table.each_row(keyed.rows.iter().map(|&row| row as usize), &[column], |i, cells| {
        values.push(value(keyed.rows[i], cells)?);
        Ok(())
    })?;
    let added = keyed.added();
    table.each_row(added.iter().map(|&(row, _)| row as usize), &[column], |i, cells| {
        let (row, position) = added[i];
        let sum: &mut i128 = &mut values[position as usize];
        *sum = sum.checked_add(value(row, cells)?).ok_or_else(|| {
            let what = "the values of this key add up to more than 128 bits";
            table.error_at(row as usize, column, what, RESCALE)
        })?;
        Ok(())
    })?;
    Ok(values)
}

/// What to do about a value with so many fractional digits, if another one has more, or `scale` has no room for them.
fn finer(table: &Table, keyed: &KeyedSet, column: usize, digits: usize) -> Option<String> {
    let (mut most, mut first) = (digits, None);
    let rows: Vec<usize> =
        keyed.rows.iter().chain(keyed.added().iter().map(|(row, _)| row)).map(|&row| row as usize).collect();
    let looked = table.each_row(rows.iter().copied(), &[column], |i, cells| {
        // What else is wrong with a value is said when it is its turn.
        if let Ok(Parts { fraction, .. }) = parts(cells[0].unwrap_or_default())
            && fraction.len() > most
        {
            (most, first) = (fraction.len(), Some(rows[i]));
        }
        Ok(())
    });
    looked.ok()?;
    let others = first.map(|row| {
        format!("Other values have up to {most}, the first of them on {}. ", table.whereabouts(row))
    });
    if most > MAX_SCALE as usize {
        let others = others.unwrap_or_default();
        return Some(format!("{others}Round the values: the largest {SCALE} is {MAX_SCALE}"));
    }
    others.map(|others| format!("{others}Use {} on both sides, or round the values", SCALE.with(most)))
}

/// Refuses values whose sum could leave the signed range of the modulus ([`sum::fits`]).
pub fn check_sum_bound(table: &Table, column: usize, values: &[i128], modulus: Modulus) -> Result<()> {
    if sum::fits(modulus, values.len(), values) {
        return Ok(());
    }
    let what = format!("the sum could overflow: {} values, modulo 2^{}", values.len(), modulus.bits());
    let next = match modulus.bits() < Modulus::Bits128.bits() {
        true => format!("Use {} on both sides. {RESCALE}", MODULUS.with(128)),
        false => RESCALE.into(),
    };
    Err(table.error(what, next).at_column(table.label(column)))
}

/// Refuses a value that cannot be shared ([`share::fits`]).
pub fn check_share_bound(table: &Table, column: usize, keyed: &KeyedSet, values: &[i128]) -> Result<()> {
    match values.iter().position(|value| !share::fits(*value)) {
        None => Ok(()),
        Some(i) => {
            let what = "the value does not fit 64 bits";
            Err(table.error_at(keyed.rows[i] as usize, column, what, RESCALE))
        }
    }
}

const RESCALE: &str =
    concat!("Use a smaller ", setting!(scale), " on both sides, or larger units in the column");
const PLAIN: &str = "Write it with digits and a decimal point only, like -1234.50";

/// What is wrong with a value, and the next step.
struct Bad {
    what: String,
    next: String,
    /// How many fractional digits it has, if they are too many: what helps depends on the other values, too.
    digits: Option<usize>,
}

impl Bad {
    fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Bad { what: what.into(), next: next.into(), digits: None }
    }
}

/// The digits of a decimal number.
struct Parts<'a> {
    negative: bool,
    whole: &'a [u8],
    /// Without zeros at the end, which do not count.
    fraction: &'a [u8],
}

/// Reads a decimal number.
fn parts(cell: &[u8]) -> Result<Parts<'_>, Bad> {
    let text = cell.trim_ascii();
    if text.is_empty() {
        return Err(Bad::new("the value is empty", "Fill it in, with 0 if there is none"));
    }
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let point = digits.iter().position(|&b| b == b'.').unwrap_or(digits.len());
    let (whole, fraction) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    let all_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return Err(Bad::new(not_a_number(digits), PLAIN));
    }
    let precise = fraction.iter().rposition(|&b| b != b'0').map_or(0, |last| last + 1);
    Ok(Parts { negative, whole, fraction: &fraction[..precise] })
}

/// A decimal number times 10^scale, where `scale <= MAX_SCALE`.
fn decimal(cell: &[u8], scale: u32) -> Result<i128, Bad> {
    let Parts { negative, whole, fraction } = parts(cell)?;
    let precise = fraction.len();
    if precise > scale as usize {
        let digits = if precise == 1 { "digit" } else { "digits" };
        let what = format!("the value has {precise} fractional {digits}, but the agreed scale is {scale}");
        let next = format!("Use {} on both sides, or round the value", SCALE.with(precise));
        return Err(Bad { what, next, digits: Some(precise) });
    }
    let zeros = std::iter::repeat_n(&b'0', scale as usize - precise);
    whole
        .iter()
        .chain(fraction)
        .chain(zeros)
        .try_fold(0i128, |n, &digit| {
            let digit = i128::from(digit - b'0');
            n.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
        })
        .ok_or_else(|| Bad::new(format!("the value does not fit in 128 bits at scale {scale}"), RESCALE))
}

/// Why a text is not a number, without showing it.
fn not_a_number(text: &[u8]) -> &'static str {
    if !text.iter().any(u8::is_ascii_digit) {
        "the value is not a number"
    } else if text.contains(&b',') {
        "the value is not a plain decimal number: it contains a comma"
    } else if text.starts_with(b"0x") || text.starts_with(b"0X") {
        "the value is not a plain decimal number: it is hexadecimal"
    } else if text.iter().all(|b| b"0123456789.+-eE".contains(b)) && text.iter().any(|b| b"eE".contains(b)) {
        "the value is not a plain decimal number: it has an exponent"
    } else {
        "the value is not a plain decimal number"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_integers() {
        let min = "-170141183460469231731687303715884105728";
        let cases = [
            ("12", 0, 12),
            ("12", 2, 1200),
            ("-3.50", 2, -350),
            ("-3.50", 1, -35),
            ("+7", 0, 7),
            (" 8 ", 1, 80),
            ("1.000", 0, 1),
            (".5", 1, 5),
            ("5.", 0, 5),
            ("-0", 3, 0),
            ("0", 38, 0),
            ("1", 38, 10i128.pow(38)),
            ("00000000000000000000000000000000000000000000001", 0, 1),
            (min, 0, i128::MIN),
            (&min[1..min.len() - 1], 0, i128::MAX / 10),
        ];
        for (text, scale, expected) in cases {
            assert_eq!(decimal(text.as_bytes(), scale).ok(), Some(expected), "{text} at scale {scale}");
        }
    }

    #[test]
    fn what_is_not_a_decimal_is_refused_with_the_next_step() {
        let cases = [
            ("", 0, "empty", "Fill it in"),
            ("   ", 0, "empty", "Fill it in"),
            ("NaN", 0, "not a number", "digits and a decimal point"),
            ("inf", 0, "not a number", "digits and a decimal point"),
            (".", 0, "not a number", "digits"),
            ("-", 0, "not a number", "digits"),
            ("1e5", 0, "exponent", "digits"),
            ("1,000", 0, "comma", "digits"),
            ("0x1F", 0, "hexadecimal", "digits"),
            ("1.2.3", 3, "not a plain decimal", "digits"),
            ("--1", 0, "not a plain decimal", "digits"),
            ("1 000", 0, "not a plain decimal", "digits"),
            ("\u{2212}5", 0, "not a plain decimal", "digits"),
            ("1.25", 1, "2 fractional digits, but the agreed scale is 1", "`scale=2` on both sides"),
            ("170141183460469231731687303715884105728", 0, "128 bits", "smaller `scale`"),
            ("2", 38, "128 bits", "smaller `scale`"),
        ];
        for (text, scale, what, next) in cases {
            let bad = decimal(text.as_bytes(), scale).unwrap_err();
            assert!(bad.what.contains(what), "{text}: {}", bad.what);
            assert!(crate::spelling::plain(&bad.next).contains(next), "{text}: {}", bad.next);
        }
    }
}
