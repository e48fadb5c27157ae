//! The specification of the kernel, based on the `aes` crate.
//!
//! The crate is constant-time: it uses the processor's AES instructions, or else a bitsliced implementation.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// Number of blocks processed together: 2 KiB, which fits in the first-level cache.
const CHUNK: usize = 128;

/// The cipher of the `aes` crate, which wipes its keys on drop.
pub(super) struct Cipher(aes::Aes128Enc);

impl Cipher {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Cipher(aes::Aes128Enc::new(&Array(*key)))
    }

    pub(super) fn encrypt(&self, blocks: &mut [[u8; 16]]) {
        self.0.encrypt_blocks(Array::cast_slice_from_core_mut(blocks));
    }

    pub(super) fn ctr(&self, first: u128, out: &mut [u8]) {
        let (blocks, rest) = out.as_chunks_mut::<16>();
        let mut counter = first;
        for blocks in blocks.chunks_mut(CHUNK) {
            for block in blocks.iter_mut() {
                *block = counter.to_le_bytes();
                counter = counter.wrapping_add(1);
            }
            self.encrypt(blocks);
        }
        if !rest.is_empty() {
            let mut last = [counter.to_le_bytes()];
            self.encrypt(&mut last);
            rest.copy_from_slice(&last[0][..rest.len()]);
        }
    }

    pub(super) fn tcr_hash(&self, first_tweak: u128, x: &mut [[u8; 16]]) {
        let mut tweak = first_tweak;
        for x in x.chunks_mut(CHUNK) {
            let mut inner = [[0; 16]; CHUNK];
            let inner = &mut inner[..x.len()];
            // 1. pi(x).
            self.encrypt(x);
            // 2. pi(pi(x) ^ t).
            for (inner, x) in inner.iter_mut().zip(x.iter()) {
                *inner = (u128::from_le_bytes(*x) ^ tweak).to_le_bytes();
                tweak = tweak.wrapping_add(1);
            }
            self.encrypt(inner);
            // 3. Their sum.
            for (x, inner) in x.iter_mut().zip(inner.iter()) {
                *x = (u128::from_le_bytes(*x) ^ u128::from_le_bytes(*inner)).to_le_bytes();
            }
        }
    }
}

/// Encrypts each block under its own key.
pub(super) fn encrypt_each(keys: &[[u8; 16]], blocks: &mut [[u8; 16]]) {
    for (key, block) in keys.iter().zip(blocks) {
        Cipher::new(key).encrypt(std::slice::from_mut(block));
    }
}
