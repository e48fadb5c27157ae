//! Licences and duplicates of all packages in the program, checked offline.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Permissive licences; one operand of an `OR` suffices, and all operands of an `AND` are needed.
const LICENCES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates with two versions in the program, and the reason for each.
const DUPLICATES: [(&str, &str); 1] =
    [("getrandom", "the hash maps of parquet (ahash 0.8) take 0.3, everything else is at 0.4")];

/// Returns whether an SPDX expression is satisfied by the licences above.
fn permitted(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    // Cut at the first operator outside parentheses: OR binds weaker than AND.
    for operator in [" OR ", " AND "] {
        let mut depth = 0;
        for (i, c) in expression.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 && expression[i..].starts_with(operator) {
                let (a, b) = (permitted(&expression[..i]), permitted(&expression[i + operator.len()..]));
                return if operator == " OR " { a || b } else { a && b };
            }
        }
    }
    let one = expression.trim();
    match one.strip_prefix('(').and_then(|e| e.strip_suffix(')')) {
        Some(inner) => permitted(inner),
        None => LICENCES.contains(&one),
    }
}

/// Returns the name, version and licence of every package along these edges from the program.
fn packages(edges: &str) -> BTreeSet<(String, String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package=veilset-cli", "--prefix=none", "--format={p}|{l}", "--locked", "--offline"])
        .args(["--edges", edges, "--target=x86_64-unknown-linux-gnu"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let package = |line: &str| {
        let (package, licence) = line.split_once('|').unwrap();
        let mut words = package.split(' ');
        let mut word = || words.next().unwrap().to_string();
        // Cargo marks a subtree that it has already printed.
        (word(), word(), licence.trim_end_matches(" (*)").to_string())
    };
    text.lines().filter(|line| !line.is_empty()).map(package).collect()
}

#[test]
fn every_licence_is_permissive() {
    let packages = packages("normal,build");
    assert!(packages.len() > 30, "{}", packages.len());
    for (name, version, licence) in packages {
        assert!(permitted(&licence), "{name} {version}: {licence}");
    }
}

#[test]
fn no_crate_is_there_in_two_versions_without_a_reason() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in packages("normal,no-proc-macro") {
        versions.entry(name).or_default().insert(version);
    }
    let double: Vec<_> = versions.iter().filter(|(_, v)| v.len() > 1).collect();
    for (name, versions) in &double {
        assert!(DUPLICATES.iter().any(|(n, _)| n == name), "{name}: {versions:?}");
    }
    assert_eq!(double.len(), DUPLICATES.len(), "a reason for a duplicate that is gone");
}

#[test]
fn licence_expressions_are_understood() {
    for (expression, ok) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("ISC AND (Apache-2.0 OR ISC)", true),
        ("(GPL-2.0 OR GPL-3.0) AND MIT", false),
        ("Unlicense/MIT", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("none", false),
    ] {
        assert_eq!(permitted(expression), ok, "{expression}");
    }
}

/// `.cargo/config.toml` leaves out the generator that would measure processor jitter in every process.
#[test]
fn the_program_measures_no_jitter() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_veilset")).unwrap();
    let names = |part: &[u8]| program.windows(part.len()).any(|window| window == part);
    // The program contains function names.
    assert!(names(b"RAND_bytes"));
    assert!(!names(b"jent_"));
}
