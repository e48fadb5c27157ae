use super::*;
use crate::ahe::elgamal::lists::ElGamal;
use crate::ahe::paillier::Paillier;
use crate::item::ItemSet;
use crate::params::LAMBDA;
use crate::rng::Prng;
use crate::testing::{Views, overlapping, run_pair, split_frames};
use std::collections::HashSet;

const SESSION: SessionId = SessionId::of([5; 32]);

/// The sums of the cells of each item, decrypted.
fn sums(y: &ItemSet, x: &ItemSet, filter: Filter) -> (Vec<u32>, Views) {
    let (y, x) = (&HashedSet::new(y), &HashedSet::new(x));
    let ((owner, sums), views) = run_pair(
        &SESSION,
        |cx| send::<ElGamal>(cx, y, None, Agreed::fresh(filter)),
        |cx| receive::<ElGamal>(cx, x, None, Agreed::fresh(filter)),
    );
    assert!(sums.well_formed);
    let fresh = ElGamal::combine(&sums.key, None, None, &sums.list, &mut Prng::from_seed(&[1; 32]));
    let opened = ElGamal::open(&owner, &fresh).unwrap();
    (ElGamal::quotients(&owner, &opened, &opened, filter.positions).1.to_vec(), views)
}

/// For each item, the number of its positions that no item of the owner has, computed with sets of positions.
fn plain(y: &ItemSet, x: &ItemSet, filter: Filter, head: &[u8]) -> Vec<u32> {
    let seeds = Seeds::of_session(&SESSION, head[..32].try_into().unwrap());
    let domain = Domain::new(&seeds.positions, "positions of an item in a filter");
    let positions = |item: &[u8]| -> Vec<u64> {
        let stream: [u8; 8 * MOST] = domain.hash(&[ItemHash::of_item(item).as_bytes()]);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let scaled = |number: u64| ((u128::from(number) * u128::from(filter.cells)) >> 64) as u64;
        stream.chunks(8).take(filter.positions as usize).map(|bytes| scaled(number(bytes))).collect()
    };
    let full: HashSet<u64> = y.iter().flat_map(positions).collect();
    x.iter().map(|item| positions(item).iter().filter(|at| !full.contains(at)).count() as u32).collect()
}

#[test]
fn sums_count_the_empty_positions_of_items() {
    // The last has more than one frame of cells.
    for (n_y, n_x) in [(0, 1), (1, 1), (3, 0), (2, 30), (40, 5), (170, 300)] {
        let (y, x) = overlapping(n_y, n_x, 0.5);
        let filter = Filter::new(LAMBDA, n_y, n_x);
        let (sums, views) = sums(&y, &x, filter);
        let head = split_frames(&views.0[1])[0].1.clone();
        assert_eq!(sums, plain(&y, &x, filter, &head), "{n_y} {n_x}");
        let matches = x.iter().filter(|item| y.iter().any(|other| other == *item)).count();
        assert_eq!(sums.iter().filter(|sum| **sum == 0).count(), matches);
        let bytes: usize = split_frames(&views.0[1]).iter().skip(2).map(|(_, frame)| frame.len()).sum();
        assert_eq!(bytes, filter.cells as usize * ElGamal::CELL);
        assert!(n_y < 100 || views.frames(1).len() > 3);
    }
}

#[test]
fn seed_and_key_are_those_of_one_run() {
    let (y, x) = overlapping(5, 5, 0.5);
    let filter = Filter::new(LAMBDA, 5, 5);
    let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
    let runs: Vec<Vec<Vec<u8>>> = (0..2)
        .map(|run| {
            let rng = || Prng::from_seed(&[run + 7; 32]);
            let (_, views) = run_pair(
                &SESSION,
                |cx| send::<ElGamal>(cx.under(rng()), y, None, Agreed::fresh(filter)),
                |cx| receive::<ElGamal>(cx, x, None, Agreed::fresh(filter)),
            );
            split_frames(&views.0[1]).into_iter().take(2).map(|(_, frame)| frame).collect()
        })
        .collect();
    for (one, two) in runs[0].iter().zip(&runs[1]) {
        assert_ne!(one, two);
    }
    // The key is not the seed.
    assert_ne!(runs[0][0], runs[0][1]);
}

#[test]
fn positions_are_uniform_and_of_the_seed() {
    let filter = Filter { cells: 1000, positions: 60 };
    let mut counts = vec![0usize; 1000];
    let (mut seen, mut steps) = (HashSet::new(), 0);
    for seed in 0..10 {
        let positions = positions(&SessionId::of([seed; 32]), filter);
        for item in 0..200u32 {
            let mut at = [0; 60];
            positions(&ItemHash::of_item(&item.to_le_bytes()), &mut at);
            at.iter().for_each(|at| counts[*at as usize] += 1);
            // Adjacent positions of an item are not correlated.
            seen.extend([(at[0], at[1]), (at[1], at[2]), (at[58], at[59])]);
            steps += usize::from((at[0] + at[2] + 2002 - 2 * at[1]) % 1000 < 5);
        }
    }
    // 120 each; chi-squared with 999 degrees of freedom has a standard deviation of 45.
    let chi2: f64 = counts.iter().map(|&n| (n as f64 - 120.0).powi(2) / 120.0).sum();
    assert!((chi2 - 999.0).abs() < 300.0, "{chi2}");
    assert!(seen.len() > 5900, "{}", seen.len());
    // By chance, three in a row are almost equally spaced in 10 of 2000 cases.
    assert!(steps < 60, "{steps}");
    let edge = Filter { cells: 1 << 32, positions: 72 };
    let mut at = [0; 72];
    positions(&SESSION, edge)(&ItemHash::of_item(b"a"), &mut at);
    assert!(at.iter().any(|at| *at > 3 << 30) && at.iter().any(|at| *at < 1 << 30));
}

/// The other party continues after a malformed cell, and notices it if it uses the cell.
#[test]
fn only_malformed_cells_that_are_used_are_noticed() {
    let x = overlapping(0, 1, 0.0).1;
    let (filter, x) = (Filter::new(LAMBDA, 30, 1), &HashedSet::new(&x));
    let mut used = vec![0; filter.positions as usize];
    for (at, well_formed) in [(None, true), (Some(true), false), (Some(false), true)] {
        let (((), sums), _) = run_pair(
            &SESSION,
            |cx| {
                let owner = ElGamal::generate(cx.rng);
                let seed = [9; 32];
                cx.ch.tx.send(SEED, &[seed])?;
                cx.ch.tx.send_bytes(KEY, &ElGamal::public(&owner, &SESSION, cx.rng))?;
                let cells = filter.cells as usize;
                let seeds = Seeds::of_session(&SESSION, &seed);
                let mut bytes = ElGamal::encrypt(&owner, &seeds.first_parts, 0, &vec![true; cells], cx.rng);
                positions(&seeds.positions, filter)(&x.own()[0], &mut used);
                if let Some(in_use) = at {
                    let at = (0..cells).find(|at| used.contains(&(*at as u32)) == in_use).unwrap();
                    bytes[at * ElGamal::CELL..][..ElGamal::CELL].fill(0xff);
                }
                bytes.chunks(FRAME_BYTES).try_for_each(|frame| cx.ch.tx.send_bytes(CELLS, frame))
            },
            |cx| receive::<ElGamal>(cx, x, None, Agreed::fresh(filter)),
        );
        assert_eq!(sums.well_formed, well_formed);
    }
}

/// Answers that use such a cell would not be ciphertexts either, so its owner would see which items use it.
#[test]
fn a_cell_that_is_no_ciphertext_is_refused_whether_it_is_used_or_not() {
    type Short = Paillier<512>;
    let x = overlapping(0, 1, 0.0).1;
    let (filter, x) = (Filter::new(LAMBDA, 5, 1), &HashedSet::new(&x));
    let rng = &mut Prng::from_seed(&[3; 32]);
    let owner = Short::generate(rng);
    let (seed, n) = ([9; 32], filter.cells as usize);
    let seeds = Seeds::of_session(&SESSION, &seed);
    let key = Short::public(&owner, &seeds.positions, rng);
    let good = Short::encrypt(&owner, &seeds.first_parts, 0, &vec![true; n], rng);
    let mut used = vec![0; filter.positions as usize];
    positions(&seeds.positions, filter)(&x.own()[0], &mut used);
    let run = |cells: &[u8]| {
        let (ends, _) = run_pair(
            &SESSION,
            |cx| {
                cx.ch.tx.send(SEED, &[seed])?;
                cx.ch.tx.send_bytes(KEY, &key)?;
                // One frame.
                cx.ch.tx.send_bytes(CELLS, cells)
            },
            |cx| Ok(receive::<Short>(cx, x, None, Agreed::fresh(filter)).map(|sums| sums.well_formed)),
        );
        ends.1
    };
    assert_eq!(run(&good), Ok(true));
    // 0, N, a prime factor of N, and a number above N^2.
    let modulus = owner.public().n().to_vec();
    let prime = Short::save(&owner)[..32].to_vec();
    for number in [vec![], modulus, prime, vec![0xff; Short::CELL]] {
        for in_use in [true, false] {
            let at = (0..n).find(|at| used.contains(&(*at as u32)) == in_use).unwrap();
            let mut cells = good.clone();
            let cell = &mut cells[at * Short::CELL..][..Short::CELL];
            cell.fill(0);
            cell[..number.len()].copy_from_slice(&number);
            let error = run(&cells).unwrap_err();
            assert!(error.to_string().contains("a cell of its filter is"), "{error}");
        }
    }
}

#[test]
fn what_follows_from_a_seed_is_of_the_session() {
    let mut seen = HashSet::new();
    for session in [1, 2] {
        for at in 0..=32 {
            let seed = std::array::from_fn(|i| u8::from(i == at));
            let seeds = Seeds::of_session(&SessionId::of([session; 32]), &seed);
            assert_eq!(seeds.positions, seeds.first_parts);
            seen.extend([*seeds.positions.as_bytes(), seed]);
        }
    }
    assert_eq!(seen.len(), 3 * 33);
}

#[test]
fn filters_that_are_too_large_are_refused() {
    for filter in [Filter { cells: (1 << 32) + 1, positions: 40 }, Filter { cells: 8, positions: 73 }] {
        assert!(matches!(check(filter), Err(Error::Bug(_))));
    }
    assert_eq!(check(Filter { cells: 1 << 32, positions: 72 }), Ok(()));
}

/// A filter made in advance must have the digest that was named.
#[test]
fn a_filter_other_than_the_one_that_was_named_is_refused() {
    let (y, x) = overlapping(3, 3, 0.5);
    let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
    let filter = Filter::new(LAMBDA, 3, 3);
    let run = |contents: Option<Contents>| {
        let agreed = Agreed { owner: Some([4; 32]), contents, ..Agreed::fresh(filter) };
        let rng = Prng::from_seed(&[7; 32]);
        let (ends, views) = run_pair(
            &SESSION,
            |cx| send::<ElGamal>(cx.under(rng), y, None, agreed).map(drop),
            |cx| Ok(receive::<ElGamal>(cx, x, None, agreed).map(drop)),
        );
        (ends.1, split_frames(&views.0[1]).into_iter().map(|(_, frame)| frame).collect::<Vec<_>>())
    };
    let (end, frames) = run(None);
    assert_eq!(end, Ok(()));
    let mut right = Contents { purpose: [5; 32], digest: [0; 32] };
    let mut hasher = digest(&right, frames[0][..32].try_into().unwrap(), &frames[1]);
    frames[2..].iter().for_each(|cells| _ = hasher.update(cells));
    right.digest = *hasher.finalize().as_bytes();
    assert_eq!(run(Some(right)).0, Ok(()));
    for wrong in [Contents { purpose: [6; 32], ..right }, Contents { digest: [0; 32], ..right }] {
        let error = run(Some(wrong)).0.unwrap_err();
        assert!(error.to_string().contains("not the one that its hello named"), "{error}");
    }
    // Seed, key and cells all count.
    let of = |seed: &[u8; 32], key: &[u8]| *digest(&right, seed, key).finalize().as_bytes();
    assert_ne!(of(&[1; 32], &[1]), of(&[2; 32], &[1]));
    assert_ne!(of(&[1; 32], &[1]), of(&[1; 32], &[2]));
}
