//! The specification of the kernel: a 128 x 128 square of bits is transposed by exchanging quarters, in seven steps
//! with squares of half the size each.

#[inline]
pub(super) fn transpose_128(columns: &[u8], stride: usize, out: &mut [[u8; 16]]) {
    for (i, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let mut square = [0; 128];
        for (c, word) in square.iter_mut().enumerate() {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&columns[c * stride + 16 * i..][..16]);
            *word = u128::from_le_bytes(bytes);
        }
        transpose_square(&mut square);
        for (out, word) in out.iter_mut().zip(square) {
            *out = word.to_le_bytes();
        }
    }
}

/// Bit c of word j becomes bit j of word c.
fn transpose_square(square: &mut [u128; 128]) {
    let mut mask = u128::MAX;
    let mut half = 64;
    while half > 0 {
        // The low halves of every pair of fields of `half` bits.
        mask ^= mask << half;
        for pairs in square.chunks_exact_mut(2 * half) {
            let (top, bottom) = pairs.split_at_mut(half);
            for (a, b) in top.iter_mut().zip(bottom) {
                // Exchanges the upper right and the lower left quarter.
                let t = (*a >> half ^ *b) & mask;
                *a ^= t << half;
                *b ^= t;
            }
        }
        half /= 2;
    }
}
