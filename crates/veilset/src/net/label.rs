//! The optional label by which a proxy distinguishes the workers of one side.
//!
//! Many workers of one side can be reached at one address. A TCP proxy there reads the server name (SNI) in the first message
//! of a connection, which is not encrypted, and forwards the connection to the worker with that name. The name is
//! `sNNN.ROUTE.veilset`: the number of a lane, and a word that the two sides chose. It reveals nothing about data, keys or
//! people, unless the word does. It proves nothing either: only the keys authenticate. A listener that is given a label refuses
//! connections that ask for another name or for none, before it shows its key. Without a label, no name is sent.

use crate::error::{Error, Result, shown};
use std::fmt;
use std::str::FromStr;

/// Maximum number of characters of the word that the two sides can choose.
const LONGEST_ROUTE: usize = 40;

/// A label: `s007.trial-2.veilset`, for instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// Makes the label of a lane. `route` is the word that the two sides chose.
    ///
    /// # Errors
    /// [`Error::Usage`] unless the word has 1 to 40 lower-case letters, digits and hyphens, and neither begins nor ends with a
    /// hyphen.
    ///
    /// ```
    /// use veilset::net::Label;
    ///
    /// assert_eq!(Label::new(7, "trial-2").unwrap().as_str(), "s007.trial-2.veilset");
    /// ```
    pub fn new(lane: u16, route: &str) -> Result<Label> {
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = (1..=LONGEST_ROUTE).contains(&route.len());
        if fits && route.chars().all(letters) && !route.starts_with('-') && !route.ends_with('-') {
            return Ok(Label(format!("s{lane:03}.{route}.veilset")));
        }
        Err(Error::usage(format!(
            "\"{}\" cannot be the word of a route: use 1 to {LONGEST_ROUTE} lower-case letters (a to z), digits and \
             hyphens, no hyphen at the ends, and the same word on both sides",
            shown(route)
        )))
    }

    /// Returns the name as sent in the first message.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a connection that asks for this name is meant for a listener that serves `label`. A listener without a label
    /// refuses names that are labels, and accepts any others.
    pub(super) fn is_asked_for(label: Option<&Label>, name: Option<&str>) -> bool {
        match label {
            Some(label) => name == Some(label.as_str()),
            None => name.is_none_or(|name| name.parse::<Label>().is_err()),
        }
    }
}

impl FromStr for Label {
    type Err = Error;

    fn from_str(text: &str) -> Result<Label> {
        let parsed = text.strip_suffix(".veilset").and_then(|rest| {
            let (lane, route) = rest.split_once('.')?;
            let lane = lane.strip_prefix('s')?.parse().ok()?;
            Label::new(lane, route).ok()
        });
        // Each label has only one spelling.
        parsed.filter(|label| label.as_str() == text).ok_or_else(|| {
            Error::usage(format!(
                "\"{}\" is not a label. Write sNNN.ROUTE.veilset: the number of a lane, with three digits or more, and \
                 the word that the two sides chose (1 to {LONGEST_ROUTE} lower-case letters, digits and hyphens)",
                shown(text)
            ))
        })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "label_tests.rs"]
mod tests;
