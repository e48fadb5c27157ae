//! What the crates that are handed out are built from.

use std::process::Command;

/// The crates and features that this command has cargo take, tests apart.
fn tree(words: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let words = ["tree", "--locked", "--offline", "-e", "normal,features"].iter().chain(words);
    let ran = Command::new(cargo).args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let tree = String::from_utf8(ran.stdout).unwrap();
    assert!(tree.contains("veilset-kernels"), "{tree}");
    tree
}

#[test]
fn the_program_and_the_package_have_nothing_that_is_for_tests() {
    for package in ["veilset-cli", "veilset-python", "veilset"] {
        let tree = tree(&["-p", package]);
        for unwanted in ["test-util", "veilset-testing"] {
            assert!(!tree.contains(unwanted), "{package}: {unwanted}");
        }
    }
    // The library has no seeded generator either. The program measures itself, with one.
    assert!(!tree(&["-p", "veilset"]).contains("hazmat"));
    assert!(tree(&["-p", "veilset-cli"]).contains("hazmat"));
}

#[test]
fn the_core_without_its_default_features_takes_no_aws_lc_no_files_and_no_tls() {
    let tree = tree(&["-p", "veilset-core", "--no-default-features"]);
    for unwanted in ["aws-lc", "arrow", "parquet", "rustls", "serde", "tempfile"] {
        assert!(!tree.contains(unwanted), "{unwanted}");
    }
}
