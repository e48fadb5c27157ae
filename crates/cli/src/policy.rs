//! The policy file.

use crate::book::Book;
use crate::near::{known_key, sentence_of};
use std::io::ErrorKind;
use std::path::Path;
use veilset::error::{Error, Result, Seat};
use veilset::governance::policy::{Policy, Rules};
use veilset::net::Fingerprint;
use veilset::places::Folder;

/// The name of the file in the configuration folder.
pub const FILE: &str = "policy.toml";

/// The policy for the other parties, which stand in the order of their seats. Without a policy file, everything is
/// allowed but small sets ([`veilset::governance::gate::SMALL`]).
pub fn load(named: Option<&Path>, others: &[(Seat, Option<Fingerprint>)], book: &Book) -> Result<Policy> {
    let Some(path) = named.map(Path::to_path_buf).or_else(|| Folder::Configuration.file(FILE)) else {
        return Ok(Policy::none());
    };
    let unusable = |e: &dyn std::fmt::Display| {
        Error::usage(format!(
            "the policy {} cannot be used: {} Correct it, or name another with --policy",
            path.display(),
            sentence_of(e)
        ))
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // Only a missing file allows everything; an unreadable file does not.
        Err(e) if e.kind() == ErrorKind::NotFound && named.is_none() => return Ok(Policy::none()),
        Err(e) => return Err(unusable(&e)),
    };
    let rules: Rules = toml::from_str(&text)
        .map_err(|e| unusable(&format!("{}{}", e.to_string().trim_end(), known_key(&e))))?;
    Policy::new(rules, &path.display().to_string(), others, &|name| book.fingerprint(name))
}
