//! The outcome of a check, kept in a file, so that the run can be compared with it.
//!
//! The reviewer of a run looks at its check: the parties, terms, protocol, columns and sizes. A run that must match the check
//! uses its protocol, and is refused if any of the rest differs. The file contains no data from the columns, and does not
//! record whether workers run the shards of a job.
//!
//! The file is a line of JSON that ends with a `check` of the text before it, as in the audit log. This detects changes on
//! disk, not forgery.

use crate::error::{Error, Result, Seat};
use crate::json;
use crate::net::Fingerprint;
use crate::places::{Line, without_check};
use crate::protocols::Choice;
use crate::session::Proposal;
use crate::session::report::rfc3339;
use crate::spelling::{CHECKED, command};
use crate::trusted::{self, Whose};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

/// The version of the file's format.
const FORM: u32 = 1;
/// Maximum length of a file in bytes, longer than any of ours: at most 31 others, terms that the hello bounds, and the names of
/// our columns.
const LONGEST: u64 = 1 << 20;
/// Terms in which a run differs from its check, or a resumed one from its start.
const OWN: [&str; 2] = ["purpose", "job"];

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    veilset_check: u32,
    time: String,
    our: Option<String>,
    ours: String,
    role: String,
    columns: Columns,
    parties: Vec<Other>,
    terms: BTreeMap<String, String>,
    /// A warning if other users could change the file.
    #[serde(skip)]
    warning: Option<String>,
}

/// The key and value columns of our table in a run. The peer learns how many there are, not their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// The key columns.
    pub key: Vec<String>,
    /// The column of the values, if there are any.
    pub values: Option<String>,
}

/// Another party.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    #[serde(with = "super::as_number", default = "super::as_number::peer")]
    party: Seat,
    peer: Option<String>,
    set: String,
}

impl Review {
    /// The review of a proposed run, given our fingerprint and our columns.
    pub fn of(our: Option<Fingerprint>, columns: Columns, proposal: &Proposal) -> Review {
        let name = |fingerprint: Option<Fingerprint>| fingerprint.map(|one| one.to_string());
        let parties = proposal.parties.iter().map(|party| Other {
            party: party.seat,
            peer: name(party.fingerprint),
            set: party.announced.words(),
        });
        let terms = proposal.terms().into_iter().filter(|term| !OWN.contains(&term.key));
        Review {
            veilset_check: FORM,
            time: rfc3339(SystemTime::now()),
            our: name(our),
            ours: proposal.ours.words(),
            role: proposal.hello.spec.role.name().into(),
            columns,
            parties: parties.collect(),
            terms: terms.map(|term| (term.key.to_string(), term.value)).collect(),
            warning: None,
        }
    }

    /// Returns the line that the file consists of.
    ///
    /// # Errors
    /// [`Error::Bug`].
    pub fn to_line(&self) -> Result<String> {
        json::line("a review", self)
    }

    /// Reads a file. If other users may change it, there is a [`Review::warning`].
    ///
    /// # Errors
    /// [`Error::Usage`] for a file that every user can change, that cannot be read, is damaged, or is not a check.
    pub fn load(path: &Path) -> Result<Review> {
        let unusable = |why: String| {
            Error::usage(format!(
                "the check {} cannot be used: {why}. To write one, run {} with the options of the run, including \
                 {CHECKED}",
                path.display(),
                command!("check")
            ))
        };
        let file = File::open(path).map_err(|e| unusable(e.to_string()))?;
        let warning = trusted::check("the check", path, Whose::Given, &file)?;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|e| unusable(e.to_string()))?;
        let review: Option<Review> = match without_check(&bytes) {
            Line::Right(object) => serde_json::from_slice(&object).ok(),
            Line::Unchecked | Line::Wrong => None,
        };
        match review {
            Some(review) if review.veilset_check == FORM => Ok(Review { warning, ..review }),
            _ => Err(unusable("it is damaged, or was not written by a check of this version".into())),
        }
    }

    /// Returns a warning if other users could change the file that the review was loaded from.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns the protocol and the group of the checked run.
    ///
    /// # Errors
    /// [`Error::Usage`] if this version does not know them.
    pub fn choice(&self) -> Result<Choice> {
        let term = |key| self.terms.get(key).map_or("", String::as_str);
        Choice::named(term("protocol"), term("group"))
            .map_err(|what| Error::usage(format!("the check has {what}")))
    }

    /// Refuses columns that differ from the checked ones; `name` is the file of the check.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits_columns(&self, name: &Path, columns: &Columns) -> Result<()> {
        let shown = |columns: &Columns| match &columns.values {
            None => columns.key.join(", "),
            Some(values) => format!("{} with the values {values}", columns.key.join(", ")),
        };
        match *columns == self.columns {
            true => Ok(()),
            false => Err(self.refuses(
                name,
                &format!("our key: {}, in the check {}", shown(columns), shown(&self.columns)),
            )),
        }
    }

    fn refuses(&self, name: &Path, what: &str) -> Error {
        Error::refused(format!(
            "this is not the run that was checked at {} ({CHECKED}, {}): {what}. Run it as it was checked, or check it again",
            self.time,
            name.display()
        ))
    }

    /// Refuses a run that differs from this check, whose file is called `name`; the columns are for
    /// [`Review::permits_columns`].
    ///
    /// # Errors
    /// [`Error::Refused`], which lists everything that differs.
    pub(super) fn permits(&self, name: &Path, our: Option<Fingerprint>, proposal: &Proposal) -> Result<()> {
        let now = Review::of(our, Columns::default(), proposal);
        let mut all: Vec<(String, String, String)> = Vec::new();
        let mut compare = |what: String, now: Option<&str>, then: Option<&str>| {
            if now != then {
                let shown = |value: Option<&str>| value.unwrap_or("none").to_string();
                all.push((what, shown(now), shown(then)));
            }
        };
        compare("our identity".into(), now.our.as_deref(), self.our.as_deref());
        compare("our role".into(), Some(&now.role), Some(&self.role));
        compare("the size of our set".into(), Some(&now.ours), Some(&self.ours));
        let seats =
            |review: &Review| review.parties.iter().map(|one| one.party.to_string()).collect::<Vec<_>>();
        compare("the parties".into(), Some(&seats(&now).join(", ")), Some(&seats(self).join(", ")));
        for (now, then) in now.parties.iter().zip(&self.parties) {
            compare(format!("{}'s identity", now.party), now.peer.as_deref(), then.peer.as_deref());
            compare(format!("the size of {}'s set", now.party), Some(&now.set), Some(&then.set));
        }
        let words: BTreeMap<_, _> = proposal.terms().into_iter().map(|term| (term.key, term.words)).collect();
        let keys: BTreeSet<&String> = now.terms.keys().chain(self.terms.keys()).collect();
        for key in keys {
            let what = words.get(key.as_str()).copied().unwrap_or(key);
            let of = |review: &'_ Review| review.terms.get(key).cloned();
            compare(what.into(), of(&now).as_deref(), of(self).as_deref());
        }
        if all.is_empty() {
            return Ok(());
        }
        let list: Vec<_> =
            all.iter().map(|(what, now, then)| format!("{what}: {now}, in the check {then}")).collect();
        Err(self.refuses(name, &list.join("; ")))
    }
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
