//! The public part of a filter: any file is either accepted or refused, and its description is bounded.
use std::path::PathBuf;
use std::sync::LazyLock;
use veilset::artefact::filter::{is_public, open_public};

static FILE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    (folder, file)
});

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let path = &FILE.1;
    std::fs::write(path, data).unwrap();
    if let Ok(opened) = open_public(path, &|_| Ok(())) {
        assert!(is_public(path));
        // All of it was read: no length claims more than that.
        assert!(opened.head.cell_bytes().unwrap() < data.len() as u64);
        assert_eq!(opened.facts.filter().unwrap(), opened.head.filter());
    }
}
