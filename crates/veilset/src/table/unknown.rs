//! Columns of Arrow files whose types the decoder does not know, like integers of 128 bits. They need not hinder the others.

use super::{Unread, shorten};
use crate::error::{Error, Result};
use crate::guarded::guarded;
use arrow_ipc::{Field as Written, Schema as WrittenSchema, Type};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// The key, in the metadata of a field, under which the name of a type stands that is not read.
pub const UNREAD: &str = "veilset.unread";

/// What to do about such a column.
const NEXT: &str = "Convert it to a plain type or to text, or remove it from the file";

/// The columns of a file.
pub(super) struct Known {
    /// All of them. In the place of one whose type is unknown stands one that takes as many buffers, so that the decoder can pass
    /// over it.
    pub(super) schema: SchemaRef,
    /// The types that are unknown, by the number of the column, and whether the decoder can pass over them.
    types: Vec<(usize, String, bool)>,
}

impl Known {
    /// The type of this column, if it is unknown.
    pub(super) fn unknown(&self, at: usize) -> Option<&str> {
        self.types.iter().find(|(unknown, ..)| *unknown == at).map(|(_, name, _)| name.as_str())
    }

    /// The columns that are not read.
    ///
    /// # Errors
    /// [`Error::Input`] for one that the decoder cannot pass over, to read the others.
    pub(super) fn unread(&self, file: &str) -> Result<Vec<Unread>> {
        let of = |(at, name, passed): &(usize, String, bool)| {
            let column = self.schema.field(*at).name();
            let what = format!("the column has a type that veilset does not read ({name})");
            match passed {
                true => Ok(Unread { name: column.clone(), what, next: NEXT }),
                false => {
                    let what = format!("{what}, so the other columns cannot be read either");
                    Err(Error::input(file, what, NEXT).at_column(shorten(column)))
                }
            }
        };
        self.types.iter().map(of).collect()
    }
}

/// The column of a field that is marked as not read, with the name of its type.
pub(super) fn marked(field: &Field) -> Option<Unread> {
    let name = field.metadata().get(UNREAD)?;
    let what = format!("the column has a type that veilset does not read ({})", shorten(name));
    Some(Unread { name: field.name().clone(), what, next: NEXT })
}

/// The columns that a file has.
pub(super) fn fields(written: WrittenSchema<'_>) -> Result<Known, ArrowError> {
    let no_fields = || ArrowError::ParseError("no fields".into());
    let (mut fields, mut types) = (Vec::new(), Vec::new());
    for (at, field) in written.fields().ok_or_else(no_fields)?.iter().enumerate() {
        fields.push(match known(field) {
            Some(known) => known,
            None => {
                let place = in_place_of(field);
                types.push((at, name_of(field), place.is_some()));
                place.unwrap_or_else(|| named(field, DataType::Null))
            }
        });
    }
    Ok(Known { schema: Arc::new(Schema::new(fields)), types })
}

/// The field as the decoder sees it. It panics at a type that it does not know.
fn known(field: Written<'_>) -> Option<Field> {
    guarded(|| Field::from(field))
}

fn named(field: Written<'_>, data_type: DataType) -> Field {
    Field::new(field.name().unwrap_or_default(), data_type, true)
}

/// A field that has the same buffers, if that is known.
fn in_place_of(field: Written<'_>) -> Option<Field> {
    if let Some(known) = known(field) {
        return Some(known);
    }
    if field.dictionary().is_some() {
        return None;
    }
    let only = || match field.children() {
        Some(children) if children.len() == 1 => Some(Arc::new(in_place_of(children.get(0))?)),
        _ => None,
    };
    let data_type = match field.type_type() {
        // Values of a fixed width.
        Type::Int
        | Type::FloatingPoint
        | Type::Decimal
        | Type::Date
        | Type::Time
        | Type::Timestamp
        | Type::Interval
        | Type::Duration => DataType::FixedSizeBinary(1),
        Type::List => DataType::List(only()?),
        Type::LargeList => DataType::LargeList(only()?),
        Type::ListView => DataType::ListView(only()?),
        Type::LargeListView => DataType::LargeListView(only()?),
        Type::FixedSizeList => DataType::FixedSizeList(only()?, 1),
        Type::Struct_ => {
            let fields = field.children().into_iter().flatten().map(in_place_of);
            DataType::Struct(fields.collect::<Option<Vec<Field>>>()?.into())
        }
        _ => return None,
    };
    Some(named(field, data_type))
}

/// What messages call a type that the decoder does not know.
fn name_of(field: Written<'_>) -> String {
    if field.dictionary().is_some() {
        return "a dictionary of an unknown type".into();
    }
    match field.type_type() {
        Type::Int => field.type_as_int().map(|int| format!("integer of {} bits", int.bitWidth())),
        Type::Decimal => {
            field.type_as_decimal().map(|decimal| format!("decimal of {} bits", decimal.bitWidth()))
        }
        other => match other.variant_name() {
            Some(name)
                if field.children().is_some_and(|children| children.iter().any(|c| known(c).is_none())) =>
            {
                Some(format!("{} with an unknown type in it", name.trim_end_matches('_')))
            }
            Some(name) => Some(format!("{}, of an unknown kind", name.trim_end_matches('_'))),
            None => Some(format!("type {} of the format", other.0)),
        },
    }
    .unwrap_or_else(|| "an unknown type".into())
}
