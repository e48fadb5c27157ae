//! Four blocks to a register with VAES and AVX-512, the rounds of a hash fused.
//!
//! Eight registers, a group of 32 blocks, are in flight to cover the latency of the round instruction. The rest at
//! the end is processed as a whole group in a buffer, which is faster than one call of the `aes` crate for one block.
//!
//! The portable path uses VAES too. On a Zen 4 processor, in batches of 1024, this path is 1.5 to 2.5 times as fast
//! in counter mode and 2 to 3 times for the hash. Counters and tweaks are made in registers, and memory is passed
//! over once. For blocks the gain is between nothing and 2.5 times: the speed of the portable path depends on how the
//! compiler inlines it. Blocks under a key each take 2.5 ns here on an Intel Xeon, and 80 on the portable path.

use std::arch::x86_64::*;

use zeroize::optimization_barrier;

/// Registers in flight.
const WIDTH: usize = 8;
/// Blocks of one group.
const GROUP: usize = 4 * WIDTH;

/// Round keys of AES-128; wiped when dropped.
pub(super) struct RoundKeys([[u8; 16]; 11]);

impl RoundKeys {
    /// The key; it is the first round key.
    pub(super) fn key(&self) -> &[u8; 16] {
        &self.0[0]
    }
}

impl Drop for RoundKeys {
    fn drop(&mut self) {
        // `zeroize` writes byte by byte, which takes longer than to expand the key of one row.
        self.0 = [[0; 16]; 11];
        optimization_barrier(&self.0);
    }
}

/// The key schedule of FIPS 197, section 5.2.
#[target_feature(enable = "aes")]
pub(super) fn expand(key: &[u8; 16]) -> RoundKeys {
    let mut keys = RoundKeys([[0; 16]; 11]);
    keys.0[0] = *key;
    let mut last = load128(key);
    macro_rules! round {
        ($i:literal, $rcon:literal) => {
            // The last word of the key, rotated, substituted and with the round constant, in all words.
            let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<$rcon>(last));
            // Each word becomes the exclusive-or of itself and all words before it.
            last = _mm_xor_si128(last, _mm_slli_si128::<4>(last));
            last = _mm_xor_si128(last, _mm_slli_si128::<8>(last));
            last = _mm_xor_si128(last, word);
            store128(&mut keys.0[$i], last);
        };
    }
    round!(1, 0x01);
    round!(2, 0x02);
    round!(3, 0x04);
    round!(4, 0x08);
    round!(5, 0x10);
    round!(6, 0x20);
    round!(7, 0x40);
    round!(8, 0x80);
    round!(9, 0x1b);
    round!(10, 0x36);
    keys
}

#[target_feature(enable = "avx512f,vaes")]
pub(super) fn encrypt(keys: &RoundKeys, blocks: &mut [[u8; 16]]) {
    let keys = spread(keys);
    in_groups(blocks.as_flattened_mut(), |group| {
        let mut b = load(group);
        rounds(&keys, &mut b);
        store(group, &b);
    });
}

/// Encrypts the counters from `first` on.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn ctr(keys: &RoundKeys, first: u128, out: &mut [u8]) {
    let keys = spread(keys);
    let mut counter = first;
    in_groups(out, |group| {
        let mut b = counters(counter);
        rounds(&keys, &mut b);
        store(group, &b);
        counter = counter.wrapping_add(GROUP as u128);
    });
}

/// Hashes with the tweaks from `first_tweak` on.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn tcr_hash(keys: &RoundKeys, first_tweak: u128, x: &mut [[u8; 16]]) {
    let keys = spread(keys);
    let mut tweak = first_tweak;
    in_groups(x.as_flattened_mut(), |group| {
        let mut outer = load(group);
        rounds(&keys, &mut outer);
        let mut inner = counters(tweak);
        for (inner, outer) in inner.iter_mut().zip(&outer) {
            *inner = _mm512_xor_si512(*inner, *outer);
        }
        rounds(&keys, &mut inner);
        for (outer, inner) in outer.iter_mut().zip(&inner) {
            *outer = _mm512_xor_si512(*outer, *inner);
        }
        store(group, &outer);
        tweak = tweak.wrapping_add(GROUP as u128);
    });
}

/// Encrypts each block under the key of its own.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn encrypt_each(keys: &[[u8; 16]], blocks: &mut [[u8; 16]]) {
    let (key_groups, keys) = keys.as_flattened().as_chunks();
    let (groups, rest) = blocks.as_flattened_mut().as_chunks_mut();
    for (keys, group) in key_groups.iter().zip(groups) {
        each(keys, group);
    }
    if !rest.is_empty() {
        let mut last = [[0; 16 * GROUP]; 2];
        let [last_keys, last_blocks] = &mut last;
        last_keys[..keys.len()].copy_from_slice(keys);
        last_blocks[..rest.len()].copy_from_slice(rest);
        each(last_keys, last_blocks);
        rest.copy_from_slice(&last_blocks[..rest.len()]);
        last = [[0; 16 * GROUP]; 2];
        optimization_barrier(&last);
    }
}

/// AES-128 on a group of blocks under a key each. Each round key takes the place of the one before it.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn each(keys: &[u8; 16 * GROUP], group: &mut [u8; 16 * GROUP]) {
    const CONSTANTS: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
    let mut keys = load(keys);
    let mut b = load(group);
    for (b, key) in b.iter_mut().zip(&keys) {
        *b = _mm512_xor_si512(*b, *key);
    }
    for (i, constant) in CONSTANTS.into_iter().enumerate() {
        let constant = _mm512_set1_epi32(constant);
        for (b, key) in b.iter_mut().zip(&mut keys) {
            *key = next_round_key(*key, constant);
            *b = if i < 9 { _mm512_aesenc_epi128(*b, *key) } else { _mm512_aesenclast_epi128(*b, *key) };
        }
    }
    store(group, &b);
}

/// One step of the key schedule of FIPS 197, section 5.2, on four keys.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn next_round_key(key: __m512i, constant: __m512i) -> __m512i {
    // The last word, rotated, in all words. The last round then substitutes its bytes and adds the constant: it also
    // rotates the rows, in which all bytes are equal.
    let word = _mm512_ror_epi32::<8>(_mm512_shuffle_epi32::<0xff>(key));
    let word = _mm512_aesenclast_epi128(word, constant);
    // Each word becomes the exclusive-or of itself and all words before it.
    let key = _mm512_xor_si512(key, _mm512_maskz_shuffle_epi32::<0b10_01_00_00>(0xeeee, key));
    let key = _mm512_xor_si512(key, _mm512_maskz_shuffle_epi32::<0b01_00_00_00>(0xcccc, key));
    _mm512_xor_si512(key, word)
}

/// Calls `work` on each group of `bytes`, and on a copy of the rest padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn in_groups(bytes: &mut [u8], mut work: impl FnMut(&mut [u8; 16 * GROUP])) {
    let (groups, rest) = bytes.as_chunks_mut();
    groups.iter_mut().for_each(&mut work);
    if !rest.is_empty() {
        let mut last = [0; 16 * GROUP];
        last[..rest.len()].copy_from_slice(rest);
        work(&mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// AES-128 on all registers.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn rounds(keys: &[__m512i; 11], b: &mut [__m512i; WIDTH]) {
    for b in b.iter_mut() {
        *b = _mm512_xor_si512(*b, keys[0]);
    }
    for key in &keys[1..10] {
        for b in b.iter_mut() {
            *b = _mm512_aesenc_epi128(*b, *key);
        }
    }
    for b in b.iter_mut() {
        *b = _mm512_aesenclast_epi128(*b, keys[10]);
    }
}

/// The blocks `first`, `first + 1`, …, as little-endian numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn counters(first: u128) -> [__m512i; WIDTH] {
    #[allow(clippy::cast_possible_truncation)] // Meant: the two words of the number.
    let (low, high) = (first as i64, (first >> 64) as i64);
    let base = _mm512_broadcast_i32x4(_mm_set_epi64x(high, low));
    let four = _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4);
    let mut offset = _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
    let mut out = [base; WIDTH];
    for out in &mut out {
        let sum = _mm512_add_epi64(base, offset);
        // A low word that wrapped around has become smaller; the high word, one lane up, gets the carry.
        let carry = _mm512_cmplt_epu64_mask(sum, base) << 1;
        *out = _mm512_mask_add_epi64(sum, carry, sum, _mm512_set1_epi64(1));
        offset = _mm512_add_epi64(offset, four);
    }
    out
}

/// Every round key four times in a register.
#[inline]
#[target_feature(enable = "avx512f")]
fn spread(keys: &RoundKeys) -> [__m512i; 11] {
    let mut out = [_mm512_setzero_si512(); 11];
    for (out, key) in out.iter_mut().zip(&keys.0) {
        *out = _mm512_broadcast_i32x4(load128(key));
    }
    out
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(group: &[u8; 16 * GROUP]) -> [__m512i; WIDTH] {
    let mut out = [_mm512_setzero_si512(); WIDTH];
    for (out, bytes) in out.iter_mut().zip(group.as_chunks::<64>().0) {
        // SAFETY: 64 bytes are read from an array of 64; the load asks for no alignment.
        *out = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    }
    out
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(group: &mut [u8; 16 * GROUP], b: &[__m512i; WIDTH]) {
    for (bytes, b) in group.as_chunks_mut::<64>().0.iter_mut().zip(b) {
        // SAFETY: 64 bytes are written to an array of 64; the store asks for no alignment.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), *b) };
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load128(block: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are read from an array of 16; the load asks for no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn store128(block: &mut [u8; 16], value: __m128i) {
    // SAFETY: 16 bytes are written to an array of 16; the store asks for no alignment.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), value) }
}
