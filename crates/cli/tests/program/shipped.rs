//! The dependencies of the crates that are published.

use std::process::Command;

/// Returns the crates and features that cargo resolves for this command, except for tests.
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
fn what_is_handed_out_has_nothing_that_is_for_tests_and_developers() {
    for package in ["veilset-cli", "veilset-python", "veilset"] {
        let tree = tree(&["-p", package]);
        for unwanted in ["hazmat", "test-util", "veilset-testing", "veilset-dev"] {
            assert!(!tree.contains(unwanted), "{package}: {unwanted}");
        }
    }
    // The check would notice the feature.
    assert!(tree(&["-p", "veilset-dev"]).contains("hazmat"));
    // The package links neither the program nor dependencies that only the program needs.
    for unwanted in ["veilset-cli", "clap_complete", "clap_mangen", "indicatif"] {
        assert!(!tree(&["-p", "veilset-python"]).contains(unwanted), "{unwanted}");
    }
}

#[test]
fn what_is_built_without_a_choice_is_what_is_handed_out() {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let words = ["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"];
    let ran = Command::new(cargo)
        .args(words)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let members = metadata["workspace_default_members"].as_array().unwrap();
    let has = |name: &str| members.iter().any(|id| id.as_str().unwrap().contains(name));
    assert!(
        has("crates/cli") && has("crates/python") && !has("crates/dev") && !has("testing"),
        "{members:?}"
    );
}

#[test]
fn the_core_without_its_default_features_takes_no_aws_lc_no_files_and_no_tls() {
    let tree = tree(&["-p", "veilset-core", "--no-default-features"]);
    for unwanted in ["aws-lc", "arrow", "parquet", "rustls", "serde", "tempfile"] {
        assert!(!tree.contains(unwanted), "{unwanted}");
    }
}
