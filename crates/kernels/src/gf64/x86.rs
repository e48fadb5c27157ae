//! Carry-less multiplication: one element by a pair in a register of 128 bits (PCLMULQDQ), two by two pairs
//! (VPCLMULQDQ, AVX2), or four by four (VPCLMULQDQ, AVX-512).
//!
//! The low and the high words of both products of a pair are combined, and reduced together with shifts.

macro_rules! path {
    (
        $path:ident, $features:literal, $register:ident, $lanes:literal, $zero:ident, $load:ident, $store:ident,
        $xor:ident, $clmul:ident, $left:ident, $right:ident, $low:ident, $high:ident, $broadcast:expr,
        $spread:expr
    ) => {
        pub(super) mod $path {
            use std::arch::x86_64::*;

            /// Number of pairs in a register.
            const LANES: usize = $lanes;

            crate::clmul::loops!($features, $register, [u8; 8], 2, $zero, $load, $store, $xor);

            /// Adds the products of an element and both elements of a pair.
            #[inline]
            #[target_feature(enable = $features)]
            fn multiply(products: [$register; 2], a: $register, b: $register) -> [$register; 2] {
                [$xor(products[0], $clmul::<0x00>(b, a)), $xor(products[1], $clmul::<0x01>(b, a))]
            }

            /// Reduces two sums of 127 bits to a pair. The high word h represents h (x^4 + x^3 + x + 1). Its terms of
            /// degree 64 and more come from the upper 4 bits of h, and are reduced with them.
            #[inline]
            #[target_feature(enable = $features)]
            fn reduce([first, second]: [$register; 2]) -> $register {
                let (low, high) = ($low(first, second), $high(first, second));
                let over = $xor($xor($right::<60>(high), $right::<61>(high)), $right::<63>(high));
                let high = $xor(high, over);
                let folded = $xor($xor($left::<1>(high), $left::<3>(high)), $left::<4>(high));
                $xor($xor(low, high), folded)
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn broadcast(pair: &[u8; 16]) -> $register {
                // SAFETY: 16 bytes are read from an array of 16; the load requires no alignment.
                $broadcast(unsafe { _mm_loadu_si128(pair.as_ptr().cast()) })
            }

            /// Places each element in the lower half of a lane.
            #[inline]
            #[target_feature(enable = $features)]
            fn spread(elements: &[[u8; 8]; LANES]) -> $register {
                $spread(elements)
            }
        }
    };
}

path!(
    narrow,
    "pclmulqdq",
    __m128i,
    1,
    _mm_setzero_si128,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_xor_si128,
    _mm_clmulepi64_si128,
    _mm_slli_epi64,
    _mm_srli_epi64,
    _mm_unpacklo_epi64,
    _mm_unpackhi_epi64,
    |pair| pair,
    |elements: &[[u8; 8]; 1]| _mm_set_epi64x(0, i64::from_le_bytes(elements[0]))
);
path!(
    middle,
    "avx2,vpclmulqdq",
    __m256i,
    2,
    _mm256_setzero_si256,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256,
    _mm256_clmulepi64_epi128,
    _mm256_slli_epi64,
    _mm256_srli_epi64,
    _mm256_unpacklo_epi64,
    _mm256_unpackhi_epi64,
    _mm256_broadcastsi128_si256,
    |elements: &[[u8; 8]; 2]| {
        // SAFETY: a register of 128 bits is read from an array of its size; the load requires no alignment.
        let elements = unsafe { _mm_loadu_si128(elements.as_ptr().cast()) };
        _mm256_permute4x64_epi64::<0b01_01_00_00>(_mm256_castsi128_si256(elements))
    }
);
path!(
    wide,
    "avx512f,avx512bw,vpclmulqdq",
    __m512i,
    4,
    _mm512_setzero_si512,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_xor_si512,
    _mm512_clmulepi64_epi128,
    _mm512_slli_epi64,
    _mm512_srli_epi64,
    _mm512_unpacklo_epi64,
    _mm512_unpackhi_epi64,
    _mm512_broadcast_i32x4,
    |elements: &[[u8; 8]; 4]| {
        // SAFETY: a register of 256 bits is read from an array of its size; the load requires no alignment.
        let elements = unsafe { _mm256_loadu_si256(elements.as_ptr().cast()) };
        _mm512_maskz_expand_epi64(0b0101_0101, _mm512_castsi256_si512(elements))
    }
);
