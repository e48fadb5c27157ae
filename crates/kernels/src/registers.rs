//! Registers: all zeros, loaded from bytes, and stored to bytes.

macro_rules! register {
    ($name:ident, $features:literal, $register:ident, $bytes:literal, $zero:ident, $load:ident, $store:ident) => {
        pub(crate) mod $name {
            use std::arch::x86_64::*;

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn zero() -> $register {
                $zero()
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn load(bytes: &[u8; $bytes]) -> $register {
                // SAFETY: a register is read from an array of its size; the load requires no alignment.
                unsafe { $load(bytes.as_ptr().cast()) }
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn store(bytes: &mut [u8; $bytes], value: $register) {
                // SAFETY: a register is written to an array of its size; the store requires no alignment.
                unsafe { $store(bytes.as_mut_ptr().cast(), value) };
            }
        }
    };
}

register!(bits128, "sse2", __m128i, 16, _mm_setzero_si128, _mm_loadu_si128, _mm_storeu_si128);
register!(bits256, "avx2", __m256i, 32, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256);
register!(bits512, "avx512f", __m512i, 64, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512);
