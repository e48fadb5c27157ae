//! Our identity, and the peers in the address book.

use crate::errors::{as_python, exception};
use pyo3::prelude::*;
use std::path::PathBuf;
use veilset::error::Error;
use veilset::net::Identity;
use veilset_app::book::{self, Book, NewPeer, Peer};

/// Returns the path and the fingerprint of an identity, and a warning about its file; the default identity if no path is given.
#[pyfunction]
pub(crate) fn identity(py: Python<'_>, path: Option<PathBuf>) -> PyResult<(PathBuf, String, Option<String>)> {
    let load = || {
        let path = path.map_or_else(Identity::default_path, Ok)?;
        let identity = Identity::load(&path)?;
        Ok((path, identity.fingerprint().to_string(), identity.warning().map(as_python)))
    };
    load().map_err(|e: Error| exception(py, &e, &[]))
}

/// Creates an identity. Returns its path and its fingerprint.
#[pyfunction]
pub(crate) fn new_identity(py: Python<'_>, path: Option<PathBuf>) -> PyResult<(PathBuf, String)> {
    let make = || {
        let path = path.map_or_else(Identity::default_path, Ok)?;
        let identity = Identity::generate()?;
        identity.save(&path)?;
        Ok((path, identity.fingerprint().to_string()))
    };
    make().map_err(|e: Error| exception(py, &e, &[]))
}

/// A peer's name, fingerprint and address.
type Entry = (String, String, Option<String>);

/// Returns the peers in the address book, and warnings about its file.
#[pyfunction]
pub(crate) fn peers(py: Python<'_>, book: Option<PathBuf>) -> PyResult<(Vec<Entry>, Vec<String>)> {
    let mut warnings = Vec::new();
    let book = Book::load(book.as_deref(), &mut warnings).map_err(|e| exception(py, &e, &[]))?;
    let entry = |peer: Peer| (peer.name.unwrap_or_default(), peer.fingerprint.to_string(), peer.address);
    Ok((book.peers().map(entry).collect(), in_python(&warnings)))
}

fn in_python(warnings: &[String]) -> Vec<String> {
    warnings.iter().map(|warning| as_python(warning)).collect()
}

/// Adds a peer to the address book: its name, fingerprint and address. `identity` is our identity file, whose fingerprint is
/// refused. Returns warnings about files.
#[pyfunction]
pub(crate) fn add_peer(
    py: Python<'_>,
    peer: Entry,
    identity: Option<PathBuf>,
    book: Option<PathBuf>,
    force: bool,
) -> PyResult<Vec<String>> {
    let (name, fingerprint, address) = peer;
    let mut warnings = Vec::new();
    let peer = NewPeer { name, fingerprint, address, identity, book, force };
    book::add_peer(peer, &mut warnings).map_err(|e| exception(py, &e, &[]))?;
    Ok(in_python(&warnings))
}

/// Removes a peer from the address book. Returns warnings about its file.
#[pyfunction]
pub(crate) fn remove_peer(py: Python<'_>, name: &str, book: Option<PathBuf>) -> PyResult<Vec<String>> {
    let mut warnings = Vec::new();
    book::remove_peer(name, book.as_deref(), &mut warnings).map_err(|e| exception(py, &e, &[]))?;
    Ok(in_python(&warnings))
}
