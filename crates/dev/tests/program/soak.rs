//! `soak`: random runs of all parties, each compared with the plain computation.

use crate::common::Folder;
use veilset_testing::Draw;

/// Runs of the first tier, and of the whole one.
const RUNS: [u64; 2] = [500, 3000];
/// Most keys of a party in each: what a run of few takes is little more than its base OTs and its connection.
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
    // It says which run is wrong, and by which commands it can be repeated.
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains(&format!("{runs} runs in ")) && said.contains(&format!("seed {seed}")), "{said}");
}
