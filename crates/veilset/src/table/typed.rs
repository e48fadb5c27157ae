//! From the text of [`super::types`] back to values: the keys of other parties, and columns that are written as another type.

use super::types::{empty_is_null, fraction_digits, is_instant, is_text_or_none, is_uuid, texts};
use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder};
use arrow_array::types::*;
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray,
    StringViewArray, new_null_array,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use std::sync::Arc;

/// The field for a column whose values are written anew, and hence refer to no dictionary.
pub(super) fn anew(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) if is_text_or_none(values) => values.as_ref().clone(),
        other => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(true))
}

/// Whether every cell is the text of a value of this field, so that storing them as values loses nothing.
pub(super) fn fits<'a>(field: &Field, mut cells: impl Iterator<Item = &'a [u8]>) -> bool {
    let empty_is_null = empty_is_null(field);
    loop {
        let some: Vec<&[u8]> = cells.by_ref().take(1 << 12).collect();
        if some.is_empty() {
            return true;
        }
        let Some(values) = values(field, some.iter().map(|&cell| Some(cell))) else { return false };
        let same = |(text, cell): (Option<&[u8]>, &&[u8])| match text {
            Some(text) => text == *cell,
            None => empty_is_null && cell.is_empty(),
        };
        if !texts(field, &values).cells().zip(&some).all(same) {
            return false;
        }
    }
}

/// The values with these texts. `None` if a cell is not the text of a value of this field, or if they are too many bytes.
pub(super) fn values<'a>(
    field: &Field,
    cells: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
) -> Option<ArrayRef> {
    let none_if_empty = empty_is_null(field);
    let n = cells.len();
    let cells = cells.map(|cell| cell.filter(|cell| !(none_if_empty && cell.is_empty())));
    let data_type = field.data_type();
    macro_rules! numbers {
        ($type:ty, $parse:expr) => {{
            let values = parsed(cells, $parse)?;
            Arc::new(PrimitiveArray::<$type>::from_iter(values).with_data_type(data_type.clone()))
        }};
    }
    macro_rules! plain {
        ($type:ty) => {
            numbers!($type, |text| text.parse().ok())
        };
    }
    // Offsets of 32 bits.
    macro_rules! short {
        ($array:ty, $values:expr) => {{
            let values = $values;
            let bytes: usize = values.iter().flatten().map(|value| value.len()).sum();
            i32::try_from(bytes).ok()?;
            Arc::new(<$array>::from(values))
        }};
    }
    let text = |text: &'a str| Some(text);
    Some(match data_type {
        DataType::Utf8 => short!(StringArray, parsed(cells, text)?),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from(parsed(cells, text)?)),
        DataType::Utf8View => Arc::new(StringViewArray::from(parsed(cells, text)?)),
        DataType::Binary => short!(BinaryArray, cells.collect::<Vec<_>>()),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::from(cells.collect::<Vec<_>>())),
        DataType::BinaryView => Arc::new(BinaryViewArray::from(cells.collect::<Vec<_>>())),
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(n, *width);
            for cell in cells {
                match cell {
                    None => builder.append_null(),
                    Some(cell) if is_uuid(field) => builder.append_value(uuid(cell)?).ok()?,
                    Some(cell) => builder.append_value(cell).ok()?,
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Boolean => {
            let mut builder = BooleanBuilder::with_capacity(n);
            parsed(cells, |text| text.parse().ok())?
                .into_iter()
                .for_each(|value| builder.append_option(value));
            Arc::new(builder.finish())
        }
        DataType::Int8 => plain!(Int8Type),
        DataType::Int16 => plain!(Int16Type),
        DataType::Int32 => plain!(Int32Type),
        DataType::Int64 => plain!(Int64Type),
        DataType::UInt8 => plain!(UInt8Type),
        DataType::UInt16 => plain!(UInt16Type),
        DataType::UInt32 => plain!(UInt32Type),
        DataType::UInt64 => plain!(UInt64Type),
        DataType::Decimal128(..) => {
            numbers!(Decimal128Type, |text| without_point(data_type, text)?.parse().ok())
        }
        DataType::Decimal256(..) => {
            numbers!(Decimal256Type, |text| i256::from_string(&without_point(data_type, text)?))
        }
        DataType::Date32 => numbers!(Date32Type, |text| days(text)?.try_into().ok()),
        DataType::Time32(TimeUnit::Second) => {
            numbers!(Time32SecondType, |text| clock(text, 0)?.try_into().ok())
        }
        DataType::Time32(_) => numbers!(Time32MillisecondType, |text| clock(text, 3)?.try_into().ok()),
        DataType::Time64(TimeUnit::Microsecond) => {
            numbers!(Time64MicrosecondType, |text| clock(text, 6)?.try_into().ok())
        }
        DataType::Time64(_) => numbers!(Time64NanosecondType, |text| clock(text, 9)?.try_into().ok()),
        DataType::Timestamp(unit, zone) => {
            let parse = |text: &str| moment(text, fraction_digits(*unit), is_instant(zone));
            match unit {
                TimeUnit::Second => numbers!(TimestampSecondType, parse),
                TimeUnit::Millisecond => numbers!(TimestampMillisecondType, parse),
                TimeUnit::Microsecond => numbers!(TimestampMicrosecondType, parse),
                TimeUnit::Nanosecond => numbers!(TimestampNanosecondType, parse),
            }
        }
        // Keys have none of the other types.
        _ => cells.flatten().next().is_none().then(|| new_null_array(data_type, n))?,
    })
}

/// Parses all cells. `None` if one cannot be parsed.
fn parsed<'a, T>(
    cells: impl Iterator<Item = Option<&'a [u8]>>,
    parse: impl Fn(&'a str) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    cells
        .map(|cell| match cell {
            None => Some(None),
            Some(cell) => parse(std::str::from_utf8(cell).ok()?).map(Some),
        })
        .collect()
}

/// Units of 10^-digits seconds since 1970-01-01.
fn moment(text: &str, digits: u32, utc: bool) -> Option<i64> {
    let text = if utc { text.strip_suffix('Z')? } else { text };
    let (date, time) = text.split_once('T')?;
    let value = i128::from(days(date)?) * 86_400 * 10i128.pow(digits) + clock(time, digits)?;
    i64::try_from(value).ok()
}

/// The digits of a decimal whose point is where its type puts it.
fn without_point(data_type: &DataType, text: &str) -> Option<String> {
    let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) = *data_type else {
        return None;
    };
    let digits = match text.split_once('.') {
        None if scale == 0 => text.to_string(),
        Some((whole, fraction)) if fraction.len() == usize::from(scale.unsigned_abs()) => {
            format!("{whole}{fraction}")
        }
        _ => return None,
    };
    let number = digits.strip_prefix('-').unwrap_or(&digits);
    let significant = number.trim_start_matches('0').len();
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (plain && significant <= precision.into()).then_some(digits)
}

/// A number of digits only.
fn digits(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

/// Days since 1970-01-01, of a year, month and day.
fn days(text: &str) -> Option<i64> {
    let (rest, day) = text.rsplit_once('-')?;
    let (year, month) = rest.rsplit_once('-')?;
    let (month, day) = (digits(month)?, digits(day)?);
    let year = match year.split_at_checked(1) {
        Some(("-", year)) => -digits(year)?,
        Some(("+", year)) => digits(year)?,
        _ => digits(year)?,
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year.abs() > 1 << 40 {
        return None;
    }
    // The inverse of `types::date`. The 30th of February becomes the 1st or 2nd of March, which has another text.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + day - 719_468)
}

/// Units of 10^-places seconds since midnight.
fn clock(text: &str, places: u32) -> Option<i128> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let missing = places.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let fraction = if fraction.is_empty() { 0 } else { i128::from(digits(fraction)?) * 10i128.pow(missing) };
    let mut parts = clock.split(':').map(digits);
    let (Some(Some(h)), Some(Some(m)), Some(Some(s)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let good = (0..24).contains(&h) && (0..60).contains(&m) && (0..60).contains(&s);
    good.then(|| i128::from(h * 3600 + m * 60 + s) * 10i128.pow(places) + fraction)
}

/// The bytes of a UUID with hyphens.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let mut out = [0; 16];
    let mut nibbles = text.iter().filter(|&&b| b != b'-').map(|&b| char::from(b).to_digit(16));
    for byte in &mut out {
        *byte = (nibbles.next()?? << 4 | nibbles.next()??) as u8;
    }
    nibbles.next().is_none().then_some(out)
}
