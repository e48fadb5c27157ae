//! From the text of [`super::types`] back to values: the columns of a Parquet file to be written.

use super::Encoding;
use super::types::{Kind, fraction_digits, is_instant, is_uuid, render};
use arrow_array::builder::{
    BinaryBuilder, BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, LargeBinaryBuilder,
    LargeStringBuilder, StringBuilder, StringViewBuilder,
};
use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, new_null_array};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use std::sync::Arc;

/// The cells of a column that is being written.
pub(super) struct Buffer {
    data_type: DataType,
    values: Values,
}

enum Values {
    /// Of a type in which nothing is written.
    Nulls(usize),
    Text(StringViewBuilder),
    Text32(StringBuilder),
    Text64(LargeStringBuilder),
    Binary(BinaryViewBuilder),
    Binary32(BinaryBuilder),
    Binary64(LargeBinaryBuilder),
    Fixed(FixedSizeBinaryBuilder, bool),
    Booleans(BooleanBuilder),
    /// All other types that are stored as integers.
    Integers(Vec<Option<i128>>),
    Wide(Vec<Option<i256>>),
    Floats(Vec<Option<f64>>),
}

/// The field of a column of this kind, for cells that are written one by one.
pub(super) fn field(name: &str, kind: &Kind, encoding: Encoding) -> FieldRef {
    match kind {
        Kind::Typed(field) | Kind::Opaque(field, _) => {
            // What is written anew refers to no dictionary.
            let data_type = match field.data_type() {
                DataType::Dictionary(_, values) => values.as_ref().clone(),
                other => other.clone(),
            };
            Arc::new(field.as_ref().clone().with_name(name).with_data_type(data_type).with_nullable(true))
        }
        Kind::Plain if encoding == Encoding::Bytes => Arc::new(Field::new(name, DataType::Binary, true)),
        Kind::Plain => Arc::new(Field::new(name, DataType::Utf8, true)),
    }
}

/// Whether every cell is the text of a value of this kind, so that storing them as values loses nothing.
pub(super) fn fits<'a>(field: &FieldRef, mut cells: impl Iterator<Item = &'a [u8]>) -> bool {
    let kind = Kind::Typed(field.clone());
    loop {
        let mut buffer = Buffer::new(field);
        let some: Vec<_> = cells.by_ref().take(1 << 12).collect();
        let cell = |&cell: &&'a [u8]| Some(cell).filter(|c| !(c.is_empty() && kind.empty_is_null()));
        if some.is_empty() {
            return true;
        }
        if !some.iter().all(|c| buffer.push(cell(c))) {
            return false;
        }
        let array = buffer.finish();
        let Some(render) = render(&kind, &array) else { return false };
        let mut text = Vec::new();
        for (i, c) in some.iter().enumerate() {
            text.clear();
            if cell(c).is_some_and(|c| !render(i, &mut text) || text != c) {
                return false;
            }
        }
    }
}

impl Buffer {
    pub(super) fn new(field: &FieldRef) -> Buffer {
        let data_type = field.data_type().clone();
        let values = match &data_type {
            DataType::Null => Values::Nulls(0),
            DataType::Utf8View => Values::Text(StringViewBuilder::new()),
            DataType::Utf8 => Values::Text32(StringBuilder::new()),
            DataType::LargeUtf8 => Values::Text64(LargeStringBuilder::new()),
            DataType::BinaryView => Values::Binary(BinaryViewBuilder::new()),
            DataType::Binary => Values::Binary32(BinaryBuilder::new()),
            DataType::LargeBinary => Values::Binary64(LargeBinaryBuilder::new()),
            DataType::FixedSizeBinary(n) => Values::Fixed(FixedSizeBinaryBuilder::new(*n), is_uuid(field)),
            DataType::Boolean => Values::Booleans(BooleanBuilder::new()),
            DataType::Decimal256(..) => Values::Wide(Vec::new()),
            t if t.is_floating() => Values::Floats(Vec::new()),
            t if is_integer(t) => Values::Integers(Vec::new()),
            _ => Values::Nulls(0),
        };
        Buffer { data_type, values }
    }

    /// Appends a cell, or null. False if it is not a value of the column's type.
    #[must_use]
    pub(super) fn push(&mut self, cell: Option<&[u8]>) -> bool {
        let Some(cell) = cell else {
            match &mut self.values {
                Values::Nulls(n) => *n += 1,
                Values::Text(b) => b.append_null(),
                Values::Text32(b) => b.append_null(),
                Values::Text64(b) => b.append_null(),
                Values::Binary(b) => b.append_null(),
                Values::Binary32(b) => b.append_null(),
                Values::Binary64(b) => b.append_null(),
                Values::Fixed(b, _) => b.append_null(),
                Values::Booleans(b) => b.append_null(),
                Values::Integers(v) => v.push(None),
                Values::Wide(v) => v.push(None),
                Values::Floats(v) => v.push(None),
            }
            return true;
        };
        let text = || std::str::from_utf8(cell).ok();
        match &mut self.values {
            Values::Nulls(_) => None,
            Values::Text(b) => text().map(|t| b.append_value(t)),
            Values::Text32(b) => text().map(|t| b.append_value(t)),
            Values::Text64(b) => text().map(|t| b.append_value(t)),
            Values::Binary(b) => {
                b.append_value(cell);
                Some(())
            }
            Values::Binary32(b) => {
                b.append_value(cell);
                Some(())
            }
            Values::Binary64(b) => {
                b.append_value(cell);
                Some(())
            }
            Values::Fixed(b, true) => uuid(cell).and_then(|bytes| b.append_value(bytes).ok()),
            Values::Fixed(b, false) => b.append_value(cell).ok(),
            Values::Booleans(b) => text().and_then(|t| t.parse().ok()).map(|v| b.append_value(v)),
            Values::Integers(v) => text().and_then(|t| integer(&self.data_type, t)).map(|n| v.push(Some(n))),
            Values::Wide(v) => text()
                .and_then(|t| i256::from_string(&without_point(&self.data_type, t)?))
                .map(|n| v.push(Some(n))),
            Values::Floats(v) => text().and_then(|t| float(&self.data_type, t)).map(|n| v.push(Some(n))),
        }
        .is_some()
    }

    /// The cells as an array.
    pub(super) fn finish(self) -> ArrayRef {
        macro_rules! integers {
            ($values:expr, $type:ty) => {
                PrimitiveArray::<$type>::from_iter($values.into_iter().map(|v| {
                    // They fit, because they were parsed as this type.
                    v.map(|v| v as <$type as ArrowPrimitiveType>::Native)
                }))
            };
        }
        match self.values {
            Values::Nulls(n) => new_null_array(&self.data_type, n),
            Values::Text(mut b) => Arc::new(b.finish()),
            Values::Text32(mut b) => Arc::new(b.finish()),
            Values::Text64(mut b) => Arc::new(b.finish()),
            Values::Binary(mut b) => Arc::new(b.finish()),
            Values::Binary32(mut b) => Arc::new(b.finish()),
            Values::Binary64(mut b) => Arc::new(b.finish()),
            Values::Fixed(mut b, _) => Arc::new(b.finish()),
            Values::Booleans(mut b) => Arc::new(b.finish()),
            Values::Wide(v) => {
                Arc::new(PrimitiveArray::<Decimal256Type>::from_iter(v).with_data_type(self.data_type))
            }
            Values::Floats(v) => match self.data_type {
                DataType::Float16 => Arc::new(PrimitiveArray::<Float16Type>::from_iter(
                    v.into_iter().map(|v| v.map(<Float16Type as ArrowPrimitiveType>::Native::from_f64)),
                )),
                DataType::Float32 => Arc::new(PrimitiveArray::<Float32Type>::from_iter(
                    v.into_iter().map(|v| v.map(|v| v as f32)),
                )),
                _ => Arc::new(PrimitiveArray::<Float64Type>::from_iter(v)),
            },
            Values::Integers(v) => match &self.data_type {
                DataType::Int8 => Arc::new(integers!(v, Int8Type)),
                DataType::Int16 => Arc::new(integers!(v, Int16Type)),
                DataType::Int32 => Arc::new(integers!(v, Int32Type)),
                DataType::UInt8 => Arc::new(integers!(v, UInt8Type)),
                DataType::UInt16 => Arc::new(integers!(v, UInt16Type)),
                DataType::UInt32 => Arc::new(integers!(v, UInt32Type)),
                DataType::UInt64 => Arc::new(integers!(v, UInt64Type)),
                DataType::Date32 => Arc::new(integers!(v, Date32Type)),
                DataType::Time32(TimeUnit::Second) => Arc::new(integers!(v, Time32SecondType)),
                DataType::Time32(_) => Arc::new(integers!(v, Time32MillisecondType)),
                DataType::Time64(TimeUnit::Microsecond) => Arc::new(integers!(v, Time64MicrosecondType)),
                DataType::Time64(_) => Arc::new(integers!(v, Time64NanosecondType)),
                DataType::Timestamp(unit, _) => match unit {
                    TimeUnit::Second => {
                        Arc::new(integers!(v, TimestampSecondType).with_data_type(self.data_type))
                    }
                    TimeUnit::Millisecond => {
                        Arc::new(integers!(v, TimestampMillisecondType).with_data_type(self.data_type))
                    }
                    TimeUnit::Microsecond => {
                        Arc::new(integers!(v, TimestampMicrosecondType).with_data_type(self.data_type))
                    }
                    TimeUnit::Nanosecond => {
                        Arc::new(integers!(v, TimestampNanosecondType).with_data_type(self.data_type))
                    }
                },
                DataType::Decimal128(..) => {
                    Arc::new(integers!(v, Decimal128Type).with_data_type(self.data_type))
                }
                _ => Arc::new(integers!(v, Int64Type)),
            },
        }
    }
}

/// Whether values of this type are stored as integers that fit 128 bits.
fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(..)
                | DataType::Decimal128(..)
        )
}

/// A value in the units of its type, if it is in range.
fn integer(data_type: &DataType, text: &str) -> Option<i128> {
    fn number<T: std::str::FromStr + Into<i128>>(text: &str) -> Option<i128> {
        text.parse::<T>().ok().map(T::into)
    }
    match data_type {
        DataType::Int8 => number::<i8>(text),
        DataType::Int16 => number::<i16>(text),
        DataType::Int32 => number::<i32>(text),
        DataType::Int64 => number::<i64>(text),
        DataType::UInt8 => number::<u8>(text),
        DataType::UInt16 => number::<u16>(text),
        DataType::UInt32 => number::<u32>(text),
        DataType::UInt64 => number::<u64>(text),
        DataType::Decimal128(..) => number::<i128>(&without_point(data_type, text)?),
        DataType::Date32 => i32::try_from(days(text)?).ok().map(i128::from),
        DataType::Time32(unit) | DataType::Time64(unit) => clock(text, fraction_digits(*unit)),
        DataType::Timestamp(unit, zone) => {
            let digits = fraction_digits(*unit);
            let text = if is_instant(zone) { text.strip_suffix('Z')? } else { text };
            let (date, time) = text.split_once('T')?;
            let value = i128::from(days(date)?) * 86_400 * 10i128.pow(digits) + clock(time, digits)?;
            i64::try_from(value).ok().map(i128::from)
        }
        _ => None,
    }
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

fn float(data_type: &DataType, text: &str) -> Option<f64> {
    match data_type {
        DataType::Float64 => text.parse().ok(),
        _ => text.parse::<f32>().ok().map(f64::from),
    }
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
