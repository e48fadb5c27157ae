//! The inputs of a target: seeds that the library generates, and inputs that fuzzing found or people wrote, kept in
//! `corpus/TARGET.hex`, one per line.

use crate::{TARGETS, Target, seeds};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// An input of a target.
pub struct Input {
    /// The target's name.
    pub target: &'static str,
    /// The input's name; empty if fuzzing found it.
    pub name: String,
    /// The bytes that the target runs on.
    pub bytes: Vec<u8>,
}

/// Returns the target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Returns all inputs of a target: its seeds, then its kept inputs.
///
/// # Panics
/// If a file of kept inputs is damaged.
pub fn inputs(target: &Target) -> Vec<&'static Input> {
    static ALL: LazyLock<Vec<Input>> = LazyLock::new(|| {
        let mut all = seeds::all();
        all.extend(TARGETS.iter().flat_map(kept));
        all
    });
    ALL.iter().filter(|input| input.target == target.name).collect()
}

fn file(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name).with_extension("hex")
}

/// The kept lines of a target, some with a name before a colon.
fn lines(target: &Target) -> BTreeSet<String> {
    // A target may have only seeds.
    let text = std::fs::read_to_string(file(target)).unwrap_or_default();
    text.lines().map(Into::into).collect()
}

fn kept(target: &Target) -> Vec<Input> {
    let input = |line: &String| {
        let (name, hex) = line.split_once(": ").unwrap_or(("", line));
        let bytes = bytes(hex).unwrap_or_else(|| panic!("{}: {line} is no input", file(target).display()));
        Input { target: target.name, name: name.into(), bytes }
    };
    lines(target).iter().map(input).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).ok()).collect()
}

/// Keeps another input of a target, unless it is kept already.
pub fn keep(target: &Target, input: &[u8]) -> std::io::Result<()> {
    if inputs(target).iter().any(|known| known.bytes == input) {
        return Ok(());
    }
    let mut lines = lines(target);
    lines.insert(input.iter().map(|byte| format!("{byte:02x}")).collect());
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    std::fs::write(file(target), text)
}
