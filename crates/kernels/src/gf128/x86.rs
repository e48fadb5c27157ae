//! Carry-less multiplication of 64-bit halves, on one element (PCLMULQDQ), two (VPCLMULQDQ with AVX2) or four (with
//! AVX-512).
//!
//! With a = a0 + a1 x^64 and b = b0 + b1 x^64, a b = a0 b0 + (a0 b1 + a1 b0) x^64 + a1 b1 x^128. The three parts are
//! summed over all products before they are combined and reduced.

macro_rules! path {
    (
        $path:ident, $features:literal, $register:ident, $lanes:literal, $zero:ident, $load:ident, $store:ident,
        $xor:ident, $clmul:ident, $left:ident, $right:ident, $broadcast:expr
    ) => {
        pub(super) mod $path {
            use self::load as spread;
            use std::arch::x86_64::*;

            /// Number of elements in a register.
            const LANES: usize = $lanes;

            crate::clmul::loops!($features, $register, [u8; 16], 3, $zero, $load, $store, $xor);

            /// Adds the parts of the product: the coefficients of x^0, x^64 and x^128.
            #[inline]
            #[target_feature(enable = $features)]
            fn multiply(parts: [$register; 3], a: $register, b: $register) -> [$register; 3] {
                [
                    $xor(parts[0], $clmul::<0x00>(a, b)),
                    $xor(parts[1], $xor($clmul::<0x01>(a, b), $clmul::<0x10>(a, b))),
                    $xor(parts[2], $clmul::<0x11>(a, b)),
                ]
            }

            /// Returns the sum of the parts, reduced. The sum has 255 bits. The bits from x^192 on, and then the bits
            /// from x^128 on, are multiplied by x^7 + x^2 + x + 1 and added 128 places lower.
            #[inline]
            #[target_feature(enable = $features)]
            fn reduce([low, middle, high]: [$register; 3]) -> $register {
                let modulus = broadcast(&0x87u128.to_le_bytes());
                let low = $xor(low, $left::<8>(middle));
                let high = $xor(high, $right::<8>(middle));
                let folded = $clmul::<0x01>(high, modulus);
                let low = $xor(low, $left::<8>(folded));
                let high = $xor(high, $right::<8>(folded));
                $xor(low, $clmul::<0x00>(high, modulus))
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn broadcast(element: &[u8; 16]) -> $register {
                // SAFETY: 16 bytes are read from an array of 16; the load requires no alignment.
                let element = unsafe { _mm_loadu_si128(element.as_ptr().cast()) };
                $broadcast(element)
            }
        }
    };
}

path!(
    one,
    "pclmulqdq",
    __m128i,
    1,
    _mm_setzero_si128,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_xor_si128,
    _mm_clmulepi64_si128,
    _mm_bslli_si128,
    _mm_bsrli_si128,
    |element| element
);
path!(
    two,
    "avx2,vpclmulqdq",
    __m256i,
    2,
    _mm256_setzero_si256,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256,
    _mm256_clmulepi64_epi128,
    _mm256_bslli_epi128,
    _mm256_bsrli_epi128,
    _mm256_broadcastsi128_si256
);
path!(
    four,
    "avx512f,avx512bw,vpclmulqdq",
    __m512i,
    4,
    _mm512_setzero_si512,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_xor_si512,
    _mm512_clmulepi64_epi128,
    _mm512_bslli_epi128,
    _mm512_bsrli_epi128,
    _mm512_broadcast_i32x4
);
