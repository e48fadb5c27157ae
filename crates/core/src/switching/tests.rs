//! Compares both parties' values with the permutations.

use super::*;
use crate::context::Context;
use crate::hash::SessionId;
use crate::rng::Prng;
use crate::testing::{Views, every_bit_is_random, parts, run_pair};
use std::collections::HashSet;

const PURPOSE: &str = "test of switching";

fn shape(blocks: usize, levels: u32, outputs: usize, bytes: usize) -> Switching {
    Switching { network: BenesNetwork::new(levels, outputs).unwrap(), blocks, bytes }
}

/// A permutation of each block.
fn permutations(switching: &Switching, rng: &mut Prng) -> Vec<Secrets<u32>> {
    (0..switching.blocks).map(|_| rng.permutation(switching.network.size())).collect()
}

fn random(n: usize, rng: &mut Prng) -> Secrets<SwitchedValue> {
    let mut values = Secrets::<SwitchedValue>::zeros(n);
    rng.fill(values.as_flattened_mut());
    values
}

/// The outputs B and D, and the views.
fn run(
    switching: &Switching,
    inputs: &[SwitchedValue],
    choices: &[bool],
) -> ([Secrets<SwitchedValue>; 2], Views) {
    let ((b, d), views) = run_pair(
        &SessionId::of([3; 32]),
        |cx: &mut Context| {
            let mut ot = Sender::setup(cx, PURPOSE, 5, Security::SemiHonest)?;
            switching.masker(cx.ch, &mut ot, inputs)
        },
        |cx: &mut Context| {
            let mut ot = Receiver::setup(cx, PURPOSE, 5, Security::SemiHonest)?;
            switching.permuter(cx.ch, &mut ot, choices)
        },
    );
    ([b, d], views)
}

fn choices_for(switching: &Switching, all: &[Secrets<u32>]) -> Vec<bool> {
    all.iter().flat_map(|from| switching.network.route(from).unwrap().to_vec()).collect()
}

#[test]
fn sums_are_the_permuted_values() {
    let mut rng = Prng::from_seed(&[1; 32]);
    for (blocks, levels, outputs, bytes) in [
        (0, 2, 4, 8),
        (1, 1, 1, 1),
        (3, 2, 3, 8),
        (1, 5, 32, 16),
        (7, 6, 50, 9),
        (3, 10, 700, 8),
        (2, 3, 0, 8),
    ] {
        let switching = shape(blocks, levels, outputs, bytes);
        let size = switching.network.size();
        let inputs = random(blocks * size, &mut rng);
        let all = permutations(&switching, &mut rng);
        let ([b, d], _) = run(&switching, &inputs, &choices_for(&switching, &all));
        assert_eq!((b.len(), d.len()), (blocks * outputs, blocks * outputs));
        for (i, (b, d)) in b.iter().zip(d.iter()).enumerate() {
            let (block, output) = (i / outputs, i % outputs);
            let input = &inputs[block * size + all[block][output] as usize];
            let sum: Vec<u8> = b.iter().zip(d).map(|(b, d)| b ^ d).collect();
            assert_eq!(sum[..bytes], input[..bytes], "{blocks} {levels} {outputs} {bytes}: {i}");
        }
    }
}

/// For every permutation, the parties' values and messages look random, and messages have the same lengths.
#[test]
fn values_and_messages_are_random_for_every_permutation() {
    let mut rng = Prng::from_seed(&[2; 32]);
    let switching = shape(3, 8, 256, 16);
    let inputs = random(3 * 256, &mut rng);
    let straight: Vec<_> = (0..3).map(|_| Secrets::from((0..256).collect::<Vec<_>>())).collect();
    let mut lengths = HashSet::new();
    for all in [straight, permutations(&switching, &mut rng)] {
        let ([b, d], views) = run(&switching, &inputs, &choices_for(&switching, &all));
        [&b, &d].iter().for_each(|list| every_bit_is_random(list, 128));
        let sent = parts(&views.0[1], 0xe8, 16);
        assert_eq!(sent.len(), switching.switches());
        every_bit_is_random(&sent, 128);
        // Neither party's output is an input or a message.
        let known: HashSet<&[u8]> =
            inputs.iter().map(|v| &v[..]).chain(sent.iter().map(|v| &v[..])).collect();
        assert!(b.iter().chain(d.iter()).all(|value| !known.contains(&value[..])));
        lengths.insert([views.frames(0), views.frames(1)]);
    }
    assert_eq!(lengths.len(), 1);
}

/// Both masks of a switch change alike. So a party's values may be compared but never opened, as the module documentation
/// states.
#[test]
fn the_values_of_a_whole_block_add_up_to_zero() {
    let mut rng = Prng::from_seed(&[3; 32]);
    let switching = shape(2, 5, 32, 16);
    let inputs = random(64, &mut rng);
    let all = permutations(&switching, &mut rng);
    let ([_, d], _) = run(&switching, &inputs, &choices_for(&switching, &all));
    for block in d.chunks(32) {
        assert_eq!(block.iter().fold(0, |sum, d| sum ^ u128::from_le_bytes(*d)), 0);
        let distinct: HashSet<&SwitchedValue> = block.iter().collect();
        assert_eq!(distinct.len(), 32);
    }
}

#[test]
fn other_numbers_of_inputs_and_choices_are_refused() {
    let switching = shape(2, 2, 4, 8);
    let long = shape(2, 2, 4, 17);
    let none = shape(2, 2, 4, 0);
    let (result, _) = run_pair(
        &SessionId::of([3; 32]),
        |cx: &mut Context| {
            let mut ot = Sender::setup(cx, PURPOSE, 5, Security::SemiHonest)?;
            Ok([
                switching.masker(cx.ch, &mut ot, &[[0; 16]; 7]),
                long.masker(cx.ch, &mut ot, &[[0; 16]; 8]),
                none.masker(cx.ch, &mut ot, &[[0; 16]; 8]),
            ])
        },
        |cx: &mut Context| {
            let mut ot = Receiver::setup(cx, PURPOSE, 5, Security::SemiHonest)?;
            Ok([switching.permuter(cx.ch, &mut ot, &[true; 9])])
        },
    );
    assert!(result.0.iter().chain(&result.1).all(|r| matches!(r, Err(Error::Bug(_)))));
}

/// Mask counters continue from frame to frame: no two masks of a setup have the same number.
#[test]
fn masks_are_numbered_over_all_frames() {
    let switching = shape(FRAME + 3, 1, 2, 16);
    let inputs = random(2 * switching.blocks, &mut Prng::from_seed(&[1; 32]));
    let choices = vec![false; switching.blocks];
    let (_, views) = run(&switching, &inputs, &choices);
    // Runs the same OTs once more.
    let ((pads, ()), _) = run_pair(
        &SessionId::of([3; 32]),
        |cx: &mut Context| {
            let mut ot = Sender::setup(cx, PURPOSE, 5, Security::SemiHonest)?;
            let (mut zeros, mut ones) = (Vec::new(), Vec::new());
            for n in frames(switching.blocks, FRAME) {
                let pads = ot.pads(&mut cx.ch.rx, n)?;
                zeros.extend_from_slice(&pads.of(false));
                ones.extend_from_slice(&pads.of(true));
            }
            Ok([zeros, ones])
        },
        |cx: &mut Context| {
            let mut ot = Receiver::setup(cx, PURPOSE, 5, Security::SemiHonest)?;
            choices.chunks(FRAME).try_for_each(|choices| ot.pads(&mut cx.ch.tx, choices).map(drop))
        },
    );
    let [zeros, ones] = pads.each_ref().map(|pads| many_masks(0, pads));
    // m_1 + a_0 + b_1, with b_1 = a_1 + m_0.
    let sent = parts(&views.0[1], 0xe8, 16);
    for (i, pair) in inputs.as_chunks::<2>().0.iter().enumerate() {
        let sum = pair.iter().fold(zeros[i] ^ ones[i], |sum, a| sum ^ u128::from_le_bytes(*a));
        assert_eq!(sent[i], sum.to_le_bytes(), "{i}");
    }
}
