//! JSON that we write.

use crate::error::{Error, Result};
use crate::places::with_check;
use serde::Serialize;
use serde::ser::Error as _;

/// Returns what serde_json made of a value of ours, named `what` in messages: all of them can be written as JSON.
pub(crate) fn made<T>(what: &str, made: serde_json::Result<T>) -> Result<T> {
    made.map_err(|e| Error::bug(format!("{what} is not JSON: {e}")))
}

/// An object as a line that ends with its check ([`with_check`]).
pub(crate) fn line(what: &str, object: &impl Serialize) -> Result<String> {
    let line = serde_json::to_string(object);
    let no_object = || serde_json::Error::custom("it is not an object");
    made(what, line.and_then(|line| with_check(&line).ok_or_else(no_object)))
}
