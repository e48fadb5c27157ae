//! The policy file.

use crate::book::Book;
use crate::near::{known_key, sentence_of};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use veilset::error::{Error, Result, Seat};
use veilset::governance::policy::{Policy, Rules};
use veilset::net::Fingerprint;
use veilset::places::Folder;
use veilset::spelling::POLICY;
use veilset::trusted::{self, Whose};

/// The name of the file in the configuration folder.
pub(crate) const FILE: &str = "policy.toml";

/// Loads the policy for the other parties, which are in the order of their seats. Without a policy file, everything is allowed
/// except small sets ([`veilset::params::SMALL_SET`]). Adds to `warnings` if others may change the file.
pub(crate) fn load(
    named: Option<&Path>,
    others: &[(Seat, Option<Fingerprint>)],
    book: &Book,
    warnings: &mut Vec<String>,
) -> Result<Policy> {
    let Some(path) = named.map(Path::to_path_buf).or_else(|| Folder::Configuration.file(FILE)) else {
        return Ok(Policy::none());
    };
    let unusable = |e: &dyn std::fmt::Display| {
        Error::usage(format!(
            "the policy {} cannot be used: {} Correct it, or name another with {POLICY}",
            path.display(),
            sentence_of(e)
        ))
    };
    let mut file = match File::open(&path) {
        Ok(file) => file,
        // Only a missing file allows everything; an unreadable file does not.
        Err(e) if e.kind() == ErrorKind::NotFound && named.is_none() => return Ok(Policy::none()),
        Err(e) => return Err(unusable(&e)),
    };
    warnings.extend(trusted::check("the policy", &path, Whose::Given, &file)?);
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|e| unusable(&e))?;
    let rules: Rules = toml::from_str(&text)
        .map_err(|e| unusable(&format!("{}{}", e.to_string().trim_end(), known_key(&e))))?;
    Policy::new(rules, &path.display().to_string(), others, &|name| book.fingerprint(name))
}
