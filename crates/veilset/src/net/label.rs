//! The label by which a proxy tells the workers of one side apart, if the two sides want one.
//!
//! Many workers of one side can be reached at one address: a TCP proxy there looks at the server name (SNI) in the
//! first message of a connection, which is not encrypted, and leads the connection to the worker of that name. The name
//! is `sNNN.ROUTE.veilset`: the number of a lane, and a word that the two sides chose. It says nothing about data, keys or
//! people, unless the word does. It proves nothing either: the keys decide who is who. A listener that is given a label
//! turns away whoever asks for another name or for none, before it shows its key. Without a label, no name is sent.

use crate::error::{Error, Result, shown};
use std::fmt;
use std::str::FromStr;

/// The number of characters of the longest word that the two sides can choose.
const LONGEST_ROUTE: usize = 40;

/// A label: `s007.trial-2.veilset`, for instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// The label of a lane. `route` is the word that the two sides chose.
    ///
    /// # Errors
    /// [`Error::Usage`] unless the word has 1 to 40 lower-case letters, digits and hyphens, and no hyphen at its ends.
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
        Err(Error::Usage(format!(
            "\"{}\" cannot be the word of a route: use 1 to {LONGEST_ROUTE} lower-case letters (a to z), digits and \
             hyphens, no hyphen at the ends, and the same word on both sides",
            shown(route)
        )))
    }

    /// The name that is asked for.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a connection that asks for this name is meant for a listener that serves `label`. One that serves none
    /// minds labels only, and no other names.
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
        // No label is written in two ways.
        parsed.filter(|label| label.as_str() == text).ok_or_else(|| {
            Error::Usage(format!(
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
mod tests {
    use super::*;

    #[test]
    fn labels_are_names_of_lanes() {
        let forty = "a".repeat(40);
        for (lane, route, name) in [
            (0, "x", "s000.x.veilset"),
            (7, "trial-2", "s007.trial-2.veilset"),
            (999, "9", "s999.9.veilset"),
            (1000, "a-b", "s1000.a-b.veilset"),
            (u16::MAX, &forty, &format!("s65535.{forty}.veilset")),
        ] {
            let label = Label::new(lane, route).unwrap();
            assert_eq!((label.as_str(), label.to_string()), (name, name.to_string()));
            assert_eq!(name.parse::<Label>().unwrap(), label);
            assert!(rustls::pki_types::DnsName::try_from(name).is_ok());
        }
    }

    #[test]
    fn what_is_no_word_of_a_route_is_refused() {
        let long = "a".repeat(41);
        for route in ["", "-", "-a", "a-", "A", "a b", "a.b", "a_b", "\u{e9}", "a\n", "\u{1b}[2J", &long] {
            let Err(Error::Usage(what)) = Label::new(0, route) else { panic!("{route:?}") };
            assert!(
                what.contains("1 to 40 lower-case letters") && !what.contains(['\n', '\u{1b}']),
                "{what}"
            );
            assert!(format!("s000.{route}.veilset").parse::<Label>().is_err(), "{route:?}");
        }
    }

    #[test]
    fn what_is_no_label_is_refused() {
        for text in [
            "",
            "veilset",
            "x.veilset",
            "000.x.veilset",
            "s.x.veilset",
            "s00.x.veilset",
            "s0007.x.veilset",
            "s+07.x.veilset",
            "s65536.x.veilset",
            "s000.veilset",
            "s000..veilset",
            "s000.x.y.veilset",
            "s000.x.veilset.",
            "S000.x.veilset",
            "s000.x.example.org",
        ] {
            let Err(Error::Usage(what)) = text.parse::<Label>() else { panic!("{text:?}") };
            assert!(what.contains("Write sNNN.ROUTE.veilset"), "{what}");
        }
    }

    #[test]
    fn a_listener_minds_its_label_and_one_without_minds_labels_only() {
        let label = Label::new(0, "x").unwrap();
        for (name, by_label, by_none) in [
            (Some("s000.x.veilset"), true, false),
            (Some("s001.x.veilset"), false, false),
            (Some("s000.y.veilset"), false, false),
            (Some("example.org"), false, true),
            (None, false, true),
        ] {
            assert_eq!(Label::is_asked_for(Some(&label), name), by_label, "{name:?}");
            assert_eq!(Label::is_asked_for(None, name), by_none, "{name:?}");
        }
    }
}
