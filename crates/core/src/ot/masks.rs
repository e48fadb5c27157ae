//! Masks derived from pads, for values that are masked by addition instead of encrypted row by row
//! ([`super::transfer`]).
//!
//! A mask is an AES block under its pad, at a counter used by no other mask of the setup: the number j of the OT, times
//! 2^64. It is never the pad itself. With q pads that it did not choose, a receiver could test each guess of Delta
//! against all of them at once, and find Delta with 2^128 / q evaluations of the fixed-key hash ([`super::extension`]).
//! Masks at separate counters must be tested one by one.

use super::Pad;
use crate::secret::Secrets;
use rayon::prelude::*;
use veilset_kernels::aes::encrypt_each;

/// The number of masks that one task derives.
const CHUNK: usize = 1 << 9;

/// Derives masks as [`masks`] does, on all threads of the current pool.
pub(crate) fn many_masks(first: usize, pads: &[Pad]) -> Secrets<u128> {
    let mut all = Secrets::zeros(pads.len());
    let chunks = all.par_chunks_mut(CHUNK).zip(pads.par_chunks(CHUNK)).enumerate();
    chunks.for_each(|(i, (all, pads))| all.copy_from_slice(&masks(first + i * CHUNK, pads)));
    all
}

/// The masks of the OTs from number `first` on, each under its pad.
pub(crate) fn masks(first: usize, pads: &[Pad]) -> Secrets<u128> {
    let counter = |i: usize| (((first + i) as u128) << 64).to_le_bytes();
    let mut masks = Secrets::from((0..pads.len()).map(counter).collect::<Vec<Pad>>());
    encrypt_each(pads, &mut masks);
    Secrets::from(masks.iter().map(|mask| u128::from_le_bytes(*mask)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The masks of many pads, also from several tasks, equal those derived one by one.
    #[test]
    fn masks_of_many_are_those_of_each() {
        let pads: Vec<Pad> = (0..CHUNK as u32 * 2 + 3)
            .map(|i| std::array::from_fn(|at| (i >> (8 * (at % 4))) as u8))
            .collect();
        let all = many_masks(7, &pads);
        assert!((0..pads.len()).all(|i| all[i] == masks(7 + i, &pads[i..][..1])[0]));
    }

    /// Changing the pad or the number of the OT changes the mask.
    #[test]
    fn a_mask_is_of_its_pad_and_its_place() {
        let pads: [Pad; 3] = [[1; 16], [1; 16], [2; 16]];
        let all = [masks(0, &pads), masks(3, &pads)].map(|masks| masks.to_vec()).concat();
        let different: HashSet<&u128> = all.iter().collect();
        assert_eq!(different.len(), 6);
        assert!(pads.iter().all(|pad| !different.contains(&u128::from_le_bytes(*pad))));
        assert_eq!(masks(3, &pads[..1])[0], all[3]);
    }
}
