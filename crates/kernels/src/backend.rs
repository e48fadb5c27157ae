//! Detection of processor features, which is confined to this file.
//!
//! `RUSTFLAGS="--cfg veilset_without_avx512"` builds a program that takes no AVX-512 path, as on a processor without
//! AVX-512, so that whole runs can be measured on the other paths. It does not affect dependencies that detect processor
//! features themselves, such as the crates `aes` and `blake3` and the library aws-lc.

/// Runs a function on the requested path, in the module of `x86` that is listed for it, if the path is listed and this
/// processor can run it. Otherwise evaluates the last expression, by default a call of the function of the module `portable`.
/// Returns the path that ran, and what the function returned.
macro_rules! on_path {
    ($backend:ident, $function:ident $arguments:tt, $paths:tt) => {
        on_path!($backend, $function $arguments, $paths, portable::$function $arguments)
    };
    ($backend:ident, $function:ident $arguments:tt, { $($path:ident => $module:ident),+ }, $portable:expr) => {
        match $backend {
            $(
                #[cfg(target_arch = "x86_64")]
                Backend::$path if $backend.is_available() => {
                    // SAFETY: is_available has just confirmed that the processor supports this path.
                    ($backend, unsafe { x86::$module::$function $arguments })
                }
            )+
            _ => (Backend::Portable, $portable),
        }
    };
}
pub(crate) use on_path;

/// A code path of a kernel.
///
/// A kernel with several paths lists them in its `BACKENDS`, best first. The `…_with` functions take a path and return
/// the one that ran: the requested path if the kernel has it and the processor can run it, otherwise
/// [`Backend::Portable`]. All paths of a kernel give the same output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Plain Rust, or the crate `aes` or `blake3`: the specification, and the path on processors that can run no other one.
    Portable,
    /// AES rounds on one block: AES-NI and SSSE3.
    AesNi,
    /// AES rounds on two blocks at a time: VAES with AVX2.
    Vaes256,
    /// AES rounds on four blocks at a time: VAES with AVX-512.
    Vaes512,
    /// Carry-less multiplication of one pair of words: PCLMULQDQ.
    Clmul,
    /// Carry-less multiplication of two pairs of words: VPCLMULQDQ with AVX2.
    Clmul256,
    /// Carry-less multiplication of four pairs of words: VPCLMULQDQ with AVX-512.
    Clmul512,
    /// 256-bit integer vectors.
    Avx2,
    /// 512-bit integer vectors: AVX-512 and BMI2.
    Avx512,
    /// Fused multiply-adds of 256-bit vectors of doubles: AVX2, FMA and BMI2. In a thread that does not round to nearest, or
    /// that traps inexact results, the portable path runs instead.
    Fma,
    /// 52-bit integer multipliers of 512-bit vectors: AVX-512 IFMA and BMI2.
    Ifma512,
}

impl Backend {
    /// Returns whether the path uses AVX-512 instructions.
    pub fn needs_avx512(self) -> bool {
        match self {
            Backend::Vaes512 | Backend::Clmul512 | Backend::Avx512 | Backend::Ifma512 => true,
            Backend::Portable
            | Backend::AesNi
            | Backend::Vaes256
            | Backend::Clmul
            | Backend::Clmul256
            | Backend::Avx2
            | Backend::Fma => false,
        }
    }

    /// Returns whether this processor can run the path. A build with `--cfg veilset_without_avx512` denies every path
    /// that needs AVX-512.
    pub fn is_available(self) -> bool {
        if cfg!(veilset_without_avx512) && self.needs_avx512() {
            return false;
        }
        #[cfg(target_arch = "x86_64")]
        {
            match self {
                Backend::Portable => true,
                Backend::Clmul => is_x86_feature_detected!("pclmulqdq"),
                Backend::Clmul256 => {
                    is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("avx2")
                }
                Backend::Clmul512 => {
                    is_x86_feature_detected!("vpclmulqdq")
                        && is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                }
                Backend::Avx2 => is_x86_feature_detected!("avx2"),
                Backend::Avx512 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("bmi2"),
                Backend::Fma => {
                    is_x86_feature_detected!("avx2")
                        && is_x86_feature_detected!("fma")
                        && is_x86_feature_detected!("bmi2")
                }
                Backend::Ifma512 => {
                    is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512dq")
                        && is_x86_feature_detected!("avx512ifma")
                        && is_x86_feature_detected!("bmi2")
                }
                Backend::AesNi => is_x86_feature_detected!("aes") && is_x86_feature_detected!("ssse3"),
                Backend::Vaes256 => {
                    is_x86_feature_detected!("aes")
                        && is_x86_feature_detected!("vaes")
                        && is_x86_feature_detected!("avx2")
                }
                Backend::Vaes512 => {
                    is_x86_feature_detected!("aes")
                        && is_x86_feature_detected!("vaes")
                        && is_x86_feature_detected!("avx512f")
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            matches!(self, Backend::Portable)
        }
    }

    /// Returns the first path of `list` that this processor can run.
    pub(crate) fn best(list: &[Backend]) -> Backend {
        list.iter().copied().find(|b| b.is_available()).unwrap_or(Backend::Portable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{aes, band, curve25519, gf64, gf128, hash, polynomial, ristretto255, transpose};

    #[test]
    fn every_kernel_ends_with_the_portable_path() {
        let kernels = [
            aes::BACKENDS,
            band::BACKENDS,
            curve25519::BACKENDS,
            gf64::BACKENDS,
            gf128::BACKENDS,
            hash::BACKENDS,
            polynomial::BACKENDS,
            ristretto255::BACKENDS,
            transpose::BACKENDS,
        ];
        for list in kernels {
            assert_eq!(list.last(), Some(&Backend::Portable));
            assert!(Backend::best(list).is_available());
        }
        assert_eq!(Backend::best(&[]), Backend::Portable);
    }

    /// A path that a kernel lacks, or that the processor cannot run, is reported as the portable one.
    #[test]
    fn a_path_that_is_not_there_is_reported() {
        let cipher = aes::Aes128::new(&[1; 16]);
        for b in [
            Backend::Avx2,
            Backend::Avx512,
            Backend::Clmul,
            Backend::Clmul256,
            Backend::Clmul512,
            Backend::Fma,
            Backend::Ifma512,
            Backend::AesNi,
            Backend::Vaes256,
            Backend::Vaes512,
            Backend::Portable,
        ] {
            let ran = |list: &[Backend]| {
                if list.contains(&b) && b.is_available() { b } else { Backend::Portable }
            };
            let mut block = [[2; 16]; 1];
            assert_eq!(cipher.encrypt_with(b, &mut block), ran(aes::BACKENDS));
            assert_eq!(cipher.tcr_hash_with(b, 0, &mut block), ran(aes::BACKENDS));
            assert_eq!(cipher.ctr_with(b, 0, &mut block[0]), ran(aes::BACKENDS));
            assert_eq!(aes::encrypt_each_with(b, &[[1; 16]], &mut block), ran(aes::BACKENDS));
            let mut points = [[9; 32]];
            assert_eq!(curve25519::ladder_with(b, &[1; 32], &mut points), ran(curve25519::BACKENDS));
            assert_eq!(curve25519::elligator2_with(b, &[[1; 32]], &mut points), ran(curve25519::BACKENDS));
            let mut elements = [ristretto255::Element::GENERATOR];
            let ran_there = ristretto255::multiply_with(b, &mut elements, &[[1; 32]]);
            assert_eq!(ran_there, ran(ristretto255::BACKENDS));
            assert_eq!(gf64::add_multiple_with(b, &[1; 16], &[], &mut []), ran(gf64::BACKENDS));
            assert_eq!(gf64::sum_of_products_with(b, &[], &[]).0, ran(gf64::BACKENDS));
            assert_eq!(gf128::add_multiple_with(b, &[1; 16], &[], &mut []), ran(gf128::BACKENDS));
            assert_eq!(gf128::sum_of_products_with(b, &[], &[]).0, ran(gf128::BACKENDS));
            assert_eq!(hash::keyed_hash_with(b, &[1; 32], &[], &[], &mut []), ran(hash::BACKENDS));
            assert_eq!(band::select_with(b, &[], &[], &[], &mut []), ran(band::BACKENDS));
            assert_eq!(band::substitute_with(b, &[], &mut [[0; 16]; 127]), ran(band::BACKENDS));
            assert_eq!(transpose::transpose_128_with(b, &[], 0, &mut []), ran(transpose::BACKENDS));
            let field = polynomial::Field::Bits64;
            let shape = polynomial::Shape { instances: 1, points: 0, free: 1 };
            let (ran_there, _) = polynomial::interpolate_with(b, field, &shape, &[], &[], &[7], &mut [0; 8]);
            assert_eq!(ran_there, ran(polynomial::BACKENDS));
            let ran_there = polynomial::evaluate_with(b, field, 1, &[7; 8], &[1], &mut [0]);
            assert_eq!(ran_there, ran(polynomial::BACKENDS));
        }
    }
}
