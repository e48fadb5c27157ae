//! `soak`: random runs of all parties, each compared with the plain computation.

use crate::common::Folder;
use veilset_testing::Draw;

/// The number of runs in each tier of the tests: the first, and the whole one.
const RUNS: [u64; 2] = [500, 3000];
/// The largest number of keys per party in each tier: a run on few keys costs little more than its base OTs and its
/// connection.
const ITEMS: [u64; 2] = [20, 200];

#[test]
fn random_runs_have_the_results_of_the_plain_computation() {
    let mut draw = Draw::new("soak::random_runs_have_the_results_of_the_plain_computation");
    let tier = usize::from(draw.is_whole());
    let (runs, items, seed) = (RUNS[tier], ITEMS[tier], draw.word());
    let folder = Folder::new();
    let mut soak = folder.veilset_dev();
    soak.arg("soak");
    for (option, value) in [("--runs", runs), ("--seed", seed), ("--max-items", items)] {
        soak.args([option, &value.to_string()]);
    }
    let ended = soak.output().unwrap();
    // On failure, it prints the wrong run, and the commands that repeat it.
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains(&format!("{runs} runs in ")) && said.contains(&format!("seed {seed}")), "{said}");
}
