//! The types of columns, and the one text of each value.
//!
//! Keys are compared as bytes, so a number must have the same bytes wherever it was stored. A cell of a Parquet
//! column becomes the text below, as the same value looks in a CSV file. When a Parquet file is written, the text
//! becomes the value again.
//!
//! | type | text |
//! |---|---|
//! | string | as it is |
//! | integer | shortest decimal: `-7`, `0`, `42` |
//! | boolean | `true`, `false` |
//! | decimal | with exactly as many fractional digits as the column's scale: `1.50`, `-0.05` |
//! | date | `2024-01-31`; years beyond 0000 to 9999 with a sign, `+12024-01-31` |
//! | time of day | `12:30:00`, then a fraction without zeros at its end if there is one |
//! | timestamp | date, `T`, time, and `Z` if it is an instant (adjusted to UTC); no key without it |
//! | UUID | lower case with hyphens |
//! | float | the shortest text that reads back as the same number: `0.1`, `1e300`, `NaN`; never a key |
//! | binary | as it is, with [`Encoding::Bytes`] only |
//!
//! An extension type of Arrow gives its storage another meaning: a month is stored as a number. Only those in [`KNOWN`] mean what
//! they store; columns of others may stay in a result, and are no key, no value and not sent.

use super::{Column, Encoding, shorten};
use crate::spelling::setting;
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray,
    RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use std::io::Write;
use std::sync::Arc;

/// The extension types whose values have the text of what they store: a UUID, and JSON.
const KNOWN: [&str; 2] = ["arrow.uuid", "arrow.json"];

/// Why something is refused, and the next step.
#[derive(Debug, Clone)]
pub(super) struct Unfit {
    pub(super) what: String,
    pub(super) next: &'static str,
}

fn unfit<T>(what: impl Into<String>, next: &'static str) -> Result<T, Unfit> {
    Err(Unfit { what: what.into(), next })
}

/// Refuses a column of this type if its cells have no text.
pub(super) fn check_text(field: &Field, encoding: Encoding) -> Result<(), Unfit> {
    const FLATTEN: &str = "Flatten it into plain columns, or remove it from the file";
    const BINARY: &str = concat!(
        "Convert it to text, remove it from the file, or use ",
        setting!(encoding, "bytes"),
        " on both sides"
    );
    match field.data_type() {
        DataType::Struct(_) | DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) => {
            unfit("the column is nested (its cells are lists, structs or maps)", FLATTEN)
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
            if encoding == Encoding::Utf8 && !is_uuid(field) =>
        {
            unfit("the column is binary, not text", BINARY)
        }
        DataType::FixedSizeBinary(n) if *n < 1 || (is_uuid(field) && *n != 16) => {
            unfit("the column's values have an impossible width", FLATTEN)
        }
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(_, 0..)
        | DataType::Decimal256(_, 0..)
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Ok(()),
        DataType::Dictionary(_, values) if is_text_or_none(values) => Ok(()),
        other => unfit(format!("the column has a type that veilset does not read ({other})"), FLATTEN),
    }
}

impl Column {
    /// A column of this type. If its cells have no text, it may stay in a result, and nothing else.
    pub(super) fn new(raw: impl Into<Vec<u8>>, field: FieldRef, encoding: Encoding) -> Column {
        let unfit = check_text(&field, encoding).err();
        Column { raw: raw.into(), field, unfit, no_key: None }
    }

    /// A column of text, or of bytes with [`Encoding::Bytes`].
    pub(super) fn of_text(raw: &[u8], encoding: Encoding) -> Column {
        Column::new(raw, text_field(&String::from_utf8_lossy(raw), encoding), encoding)
    }

    /// Refuses columns of values that have another meaning than what is stored.
    fn check_meaning(&self) -> Result<(), Unfit> {
        match self.field.extension_type_name() {
            Some(name) if !KNOWN.contains(&name) => unfit(
                format!(
                    "the column has the extension type {}, and veilset knows only how its values are stored",
                    shorten(name)
                ),
                "Convert the column to text or to another plain type, the same way on both sides",
            ),
            _ => Ok(()),
        }
    }

    /// Refuses columns that cannot be sent.
    pub(super) fn check_sent(&self) -> Result<(), Unfit> {
        self.check_meaning().and_then(|()| self.check_text())
    }

    /// Refuses columns whose cells have no text.
    pub(super) fn check_text(&self) -> Result<(), Unfit> {
        self.unfit.clone().map_or(Ok(()), Err)
    }

    /// Refuses columns in which equal values may have different texts, or different values the same.
    pub(super) fn check_key(&self) -> Result<(), Unfit> {
        match self.field.data_type() {
            data_type if data_type.is_floating() => unfit(
                "floating-point numbers cannot be a key: what looks equal may differ in the last digit",
                "Convert the column to integers, decimals or text, the same way on both sides",
            ),
            DataType::Timestamp(_, zone) if !is_instant(zone) => unfit(
                "timestamps without a time zone cannot be a key: they are different instants in different places",
                "Convert the column to UTC timestamps or to text, the same way on both sides",
            ),
            _ => self.check_sent(),
        }
    }

    /// Refuses columns that cannot be summed exactly.
    pub(super) fn check_values(&self) -> Result<(), Unfit> {
        match self.field.data_type().is_floating() {
            true => unfit(
                "the values are floating-point numbers, whose sum is not exact",
                "Convert the column to integers or decimals",
            ),
            false => self.check_sent(),
        }
    }

    /// Whether its values are texts.
    pub(super) fn is_text(&self) -> bool {
        match self.field.data_type() {
            DataType::Dictionary(_, values) => is_text(values),
            other => is_text(other),
        }
    }
}

/// The field of a column of text, or of bytes with [`Encoding::Bytes`].
pub(super) fn text_field(name: &str, encoding: Encoding) -> FieldRef {
    let data_type = match encoding {
        Encoding::Utf8 => DataType::Utf8,
        Encoding::Bytes => DataType::Binary,
    };
    Arc::new(Field::new(name, data_type, true))
}

/// Whether an empty cell and no value are the same in a column of this type.
pub(super) fn empty_is_null(field: &Field) -> bool {
    match field.data_type() {
        DataType::FixedSizeBinary(_) => is_uuid(field),
        DataType::Dictionary(_, values) => **values == DataType::Null,
        other => !is_text(other) && !is_binary(other),
    }
}

/// The first row, by columns, and the column of a value that has no text: it is out of the range of its type, or not UTF-8.
pub(super) fn first_without_text<'c>(
    batch: &RecordBatch,
    columns: &'c [Column],
) -> Option<(usize, &'c Column)> {
    let first = |(array, column): (&ArrayRef, &'c Column)| {
        let row = match array.data_type() {
            DataType::Decimal128(..)
            | DataType::Decimal256(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
                if column.unfit.is_none() =>
            {
                let texts = texts(&column.field, array);
                (0..array.len()).find(|&row| array.is_valid(row) && texts.cell(row).is_none())
            }
            // The decoder of Parquet does not check every column that a file calls a string.
            DataType::Utf8View => {
                let mut texts = array.as_string_view().iter();
                texts.position(|text| text.is_some_and(|text| std::str::from_utf8(text.as_bytes()).is_err()))
            }
            _ => None,
        };
        row.map(|row| (row, column))
    };
    batch.columns().iter().zip(columns).find_map(first)
}

/// Whether values of this type are strings.
pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether the values of a dictionary of this type are strings, or there are none: pandas has such a column of categories if all
/// are missing.
pub(super) fn is_text_or_none(data_type: &DataType) -> bool {
    is_text(data_type) || *data_type == DataType::Null
}

/// Whether timestamps with this zone are instants. An empty zone is none.
pub(super) fn is_instant(zone: &Option<Arc<str>>) -> bool {
    zone.as_ref().is_some_and(|zone| !zone.is_empty())
}

/// Whether values of this type are bytes of any length.
fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

pub(super) fn is_uuid(field: &Field) -> bool {
    field.extension_type_name() == Some("arrow.uuid")
}

/// Appends the text of a value that is not null. False if it has none: it is out of range.
type Render<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> bool + 'a>;

/// The texts of the values of an array.
pub(super) enum Texts {
    /// Strings and bytes are their own.
    Strings(StringArray),
    LargeStrings(LargeStringArray),
    Bytes(BinaryArray),
    LargeBytes(LargeBinaryArray),
    Views(BinaryViewArray),
    /// Those of the values of a dictionary, and which one each row has. The values may be more than the rows, so they stay as
    /// they are.
    Chosen(Box<Texts>, Vec<Option<usize>>),
}

impl Texts {
    /// The text in a row, which exists, if it has one.
    pub(super) fn cell(&self, row: usize) -> Option<&[u8]> {
        match self {
            Texts::Strings(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            Texts::LargeStrings(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            Texts::Bytes(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::LargeBytes(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Views(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Chosen(values, chosen) => values.cell(chosen[row]?),
        }
    }

    /// The texts of all rows.
    pub(super) fn cells(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        let rows = match self {
            Texts::Strings(array) => array.len(),
            Texts::LargeStrings(array) => array.len(),
            Texts::Bytes(array) => array.len(),
            Texts::LargeBytes(array) => array.len(),
            Texts::Views(array) => array.len(),
            Texts::Chosen(_, chosen) => chosen.len(),
        };
        (0..rows).map(|row| self.cell(row))
    }
}

/// The text of each value of an array. There is none where there is no value, or where it is none of its type
/// ([`first_without_text`]), or where the type has no text.
pub(super) fn texts(field: &Field, array: &dyn Array) -> Texts {
    match array.data_type() {
        DataType::Utf8 => Texts::Strings(array.as_string().clone()),
        DataType::LargeUtf8 => Texts::LargeStrings(array.as_string().clone()),
        DataType::Binary => Texts::Bytes(array.as_binary().clone()),
        DataType::LargeBinary => Texts::LargeBytes(array.as_binary().clone()),
        DataType::Utf8View => Texts::Views(array.as_string_view().clone().to_binary_view()),
        DataType::BinaryView => Texts::Views(array.as_binary_view().clone()),
        DataType::Dictionary(_, of) if is_text(of) => {
            let array = array.as_any_dictionary();
            // Without values, there are only nulls.
            let keys = if array.values().is_empty() { vec![0; array.len()] } else { array.normalized_keys() };
            let chosen =
                (0..).zip(keys).map(|(row, key)| array.keys().is_valid(row).then_some(key)).collect();
            Texts::Chosen(Box::new(texts(field, array.values())), chosen)
        }
        _ => {
            let Some(render) = render(field, array) else {
                return Texts::Views(BinaryViewArray::new_null(array.len()));
            };
            let (mut texts, mut text) = (BinaryViewBuilder::with_capacity(array.len()), Vec::new());
            let nulls = array.logical_nulls();
            for row in 0..array.len() {
                text.clear();
                let there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) && render(row, &mut text);
                texts.append_option(there.then_some(&text));
            }
            Texts::Views(texts.finish())
        }
    }
}

/// How the values of an array become text. `None` for strings, and for types that have no text.
fn render<'a>(field: &Field, array: &'a dyn Array) -> Option<Render<'a>> {
    fn values<'a, T: ArrowPrimitiveType>(
        array: &'a dyn Array,
        write: impl Fn(T::Native, &mut Vec<u8>) -> bool + 'a,
    ) -> Option<Render<'a>> {
        let array = array.as_primitive_opt::<T>()?;
        Some(Box::new(move |i, out| write(array.value(i), out)))
    }
    macro_rules! plain {
        ($type:ty, $format:literal) => {
            values::<$type>(array, |v, out| write!(out, $format, v).is_ok())
        };
    }
    match array.data_type() {
        DataType::Null => Some(Box::new(|_, _| true)),
        DataType::Boolean => {
            let array = array.as_boolean_opt()?;
            Some(Box::new(move |i, out| {
                out.extend_from_slice(if array.value(i) { b"true" } else { b"false" });
                true
            }))
        }
        DataType::Int8 => plain!(Int8Type, "{}"),
        DataType::Int16 => plain!(Int16Type, "{}"),
        DataType::Int32 => plain!(Int32Type, "{}"),
        DataType::Int64 => plain!(Int64Type, "{}"),
        DataType::UInt8 => plain!(UInt8Type, "{}"),
        DataType::UInt16 => plain!(UInt16Type, "{}"),
        DataType::UInt32 => plain!(UInt32Type, "{}"),
        DataType::UInt64 => plain!(UInt64Type, "{}"),
        // The shortest digits, with an exponent where the number would be long.
        DataType::Float16 => values::<Float16Type>(array, |v, out| write!(out, "{:?}", v.to_f32()).is_ok()),
        DataType::Float32 => plain!(Float32Type, "{:?}"),
        DataType::Float64 => plain!(Float64Type, "{:?}"),
        &DataType::Decimal128(precision, scale) => values::<Decimal128Type>(array, move |v, out| {
            decimal(&v.to_string(), precision, scale.unsigned_abs().into(), out)
        }),
        &DataType::Decimal256(precision, scale) => values::<Decimal256Type>(array, move |v, out| {
            decimal(&v.to_string(), precision, scale.unsigned_abs().into(), out)
        }),
        DataType::Date32 => values::<Date32Type>(array, |v, out| date(v.into(), out)),
        DataType::Time32(TimeUnit::Second) => {
            values::<Time32SecondType>(array, |v, out| time(v.into(), 0, out))
        }
        DataType::Time32(_) => values::<Time32MillisecondType>(array, |v, out| time(v.into(), 3, out)),
        DataType::Time64(TimeUnit::Microsecond) => {
            values::<Time64MicrosecondType>(array, |v, out| time(v, 6, out))
        }
        DataType::Time64(_) => values::<Time64NanosecondType>(array, |v, out| time(v, 9, out)),
        DataType::Timestamp(unit, zone) => {
            let (digits, utc) = (fraction_digits(*unit), is_instant(zone));
            let write = move |v: i64, out: &mut Vec<u8>| instant(v, digits, utc, out);
            match unit {
                TimeUnit::Second => values::<TimestampSecondType>(array, write),
                TimeUnit::Millisecond => values::<TimestampMillisecondType>(array, write),
                TimeUnit::Microsecond => values::<TimestampMicrosecondType>(array, write),
                TimeUnit::Nanosecond => values::<TimestampNanosecondType>(array, write),
            }
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary_opt()?;
            let uuid = is_uuid(field);
            Some(Box::new(move |i, out| {
                for (k, &byte) in array.value(i).iter().enumerate() {
                    if !uuid {
                        out.push(byte);
                        continue;
                    }
                    if [4, 6, 8, 10].contains(&k) {
                        out.push(b'-');
                    }
                    out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
                }
                true
            }))
        }
        _ => None,
    }
}

/// The decimal places of a unit of time.
pub(super) fn fraction_digits(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// An integer with a point before its last `scale` digits.
fn decimal(integer: &str, precision: u8, scale: usize, out: &mut Vec<u8>) -> bool {
    let (sign, digits) = match integer.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", integer),
    };
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    let point = if scale > 0 { "." } else { "" };
    digits.len() <= precision.into() && write!(out, "{sign}{whole}{point}{fraction}").is_ok()
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn date(days: i64, out: &mut Vec<u8>) -> bool {
    // Years start in March here, so that the leap day is the last; 719468 days lie before 1970 in year 0.
    let (era, day) = ((days + 719_468).div_euclid(146_097), (days + 719_468).rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    match year {
        0..=9999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{year:+05}-{month:02}-{day:02}"),
    }
    .is_ok()
}

/// Units of 10^-digits seconds since midnight.
fn time(value: i64, digits: u32, out: &mut Vec<u8>) -> bool {
    let unit = 10i64.pow(digits);
    if !(0..86_400 * unit).contains(&value) {
        return false;
    }
    let (seconds, fraction) = (value / unit, value % unit);
    let clock = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 {
        return clock.is_ok();
    }
    let fraction = format!("{fraction:0width$}", width = digits as usize);
    write!(out, ".{}", fraction.trim_end_matches('0')).is_ok()
}

/// Units of 10^-digits seconds since 1970-01-01.
fn instant(value: i64, digits: u32, utc: bool, out: &mut Vec<u8>) -> bool {
    let day = 86_400 * 10i64.pow(digits);
    date(value.div_euclid(day), out)
        && write!(out, "T").is_ok()
        && time(value.rem_euclid(day), digits, out)
        && (!utc || write!(out, "Z").is_ok())
}
