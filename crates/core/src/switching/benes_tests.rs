//! Compares networks with the permutations that they were routed for.

use super::*;
use crate::rng::Prng;

/// The outputs of a network, computed switch by switch.
fn outputs(network: &BenesNetwork, choices: &[bool]) -> Vec<u32> {
    let mut at: Vec<u32> = (0..network.size() as u32).collect();
    for (switch, &exchanges) in network.list().iter().zip(choices) {
        if exchanges {
            at.swap(switch.pair[0] as usize, switch.pair[1] as usize);
        }
    }
    (0..network.outputs()).map(|i| at[network.place(i)]).collect()
}

fn check(network: &BenesNetwork, from: &[u32]) {
    let choices = network.route(from).unwrap();
    assert_eq!(choices.len(), network.switches());
    assert_eq!(outputs(network, &choices), from[..network.outputs()], "{from:?}");
}

/// All permutations of these numbers.
fn permutations(n: u32) -> Vec<Vec<u32>> {
    match n {
        0 => vec![vec![]],
        n => permutations(n - 1)
            .into_iter()
            .flat_map(|shorter| {
                (0..n as usize).map(move |at| {
                    let mut longer = shorter.clone();
                    longer.insert(at, n - 1);
                    longer
                })
            })
            .collect(),
    }
}

#[test]
fn all_permutations_of_few() {
    for levels in 1..=3 {
        let all = permutations(1 << levels);
        for wanted in 0..=1 << levels {
            let network = BenesNetwork::new(levels, wanted).unwrap();
            all.iter().for_each(|from| check(&network, from));
        }
    }
}

#[test]
fn random_permutations_of_many() {
    let mut rng = Prng::from_seed(&[1; 32]);
    for levels in [4, 5, 7, 10] {
        let n = 1 << levels;
        for wanted in [0, 1, 2, 3, n / 2, n / 2 + 1, n * 3 / 4 + 1, n - 1, n] {
            let network = BenesNetwork::new(levels, wanted).unwrap();
            (0..5).for_each(|_| check(&network, &rng.permutation(n)));
        }
    }
}

/// Waksman's number where all outputs are wanted, and fewer otherwise.
#[test]
fn no_switch_is_there_for_nothing() {
    let switches = |levels, outputs| BenesNetwork::new(levels, outputs).unwrap().switches();
    for levels in 1..=12 {
        let n = 1 << levels;
        // N log2 N - N + 1.
        assert_eq!(switches(levels, n), n * levels as usize - n + 1);
        for outputs in [0, 1, 2, 3, n / 2, n * 3 / 4 + 1].into_iter().filter(|outputs| *outputs <= n) {
            assert_eq!(switches(levels, outputs), BenesNetwork::count(levels, outputs), "{levels} {outputs}");
        }
    }
    assert_eq!((switches(12, 4096), switches(12, 3085)), (45_057, 40_976));
}

/// Each switch of the whole network joins positions that no other one of its layer joins.
#[test]
fn a_layer_joins_each_position_once() {
    let network = BenesNetwork::new(5, 32).unwrap();
    let all: Vec<Switch> = network.all().collect();
    assert_eq!(all.len(), 9 * 16);
    for layer in all.chunks(16) {
        let mut positions: Vec<u32> = layer.iter().flat_map(|switch| switch.pair).collect();
        positions.sort_unstable();
        assert!(positions.into_iter().eq(0..32));
    }
}

#[test]
fn what_is_no_network_or_no_permutation_is_refused() {
    for (levels, outputs) in [(0, 0), (25, 1), (3, 9)] {
        assert!(matches!(BenesNetwork::new(levels, outputs), Err(Error::Bug(_))), "{levels} {outputs}");
    }
    let network = BenesNetwork::new(2, 4).unwrap();
    for from in [&[0, 1, 2][..], &[0, 1, 2, 2], &[0, 1, 2, 4], &[0, 1, 2, 3, 3]] {
        assert!(matches!(network.route(from), Err(Error::Bug(_))), "{from:?}");
    }
}
