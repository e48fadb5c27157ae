//! The one place that looks at the processor.

/// A code path of a kernel.
///
/// Each kernel lists the paths it has in its `BACKENDS`, best first. The `…_with` functions take a
/// path and return the one that ran: the path asked for where the kernel has it and the processor
/// can run it, [`Backend::Portable`] otherwise. All paths of a kernel give the same output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Plain Rust: the specification, and the path on every other processor.
    Portable,
    /// The portable code compiled with the multiply instructions of BMI2.
    Bmi2,
    /// AES rounds on four blocks at a time: VAES with AVX-512.
    Vaes512,
    /// 256-bit integer vectors.
    Avx2,
}

impl Backend {
    /// Whether this processor can run the path.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            match self {
                Backend::Portable => true,
                Backend::Bmi2 => is_x86_feature_detected!("bmi2"),
                Backend::Avx2 => is_x86_feature_detected!("avx2"),
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

    /// The first path of `list` that this processor can run.
    pub(crate) fn best(list: &[Backend]) -> Backend {
        list.iter().copied().find(|b| b.is_available()).unwrap_or(Backend::Portable)
    }
}
