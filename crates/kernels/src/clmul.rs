//! The loops over slices that are the same in all fields of characteristic 2 with carry-less multiplication.

/// Defines `add_multiple` and `sum_of_products` of a path, in a module that has the field's functions on registers.
/// `spread` places `LANES` elements in a register, one in each lane; `broadcast` places the factor in each lane. `multiply`
/// adds the `$parts` parts of a product, and `reduce` combines them.
macro_rules! loops {
    (
        $features:literal, $register:ident, $element:ty, $parts:literal, $zero:ident, $load:ident, $store:ident,
        $xor:ident
    ) => {
        #[target_feature(enable = $features)]
        pub(in super::super) fn add_multiple(factor: &[u8; 16], x: &[$element], sums: &mut [[u8; 16]]) {
            let factor = broadcast(factor);
            let (x, last) = x.as_chunks::<LANES>();
            let (sums, last_sums) = sums.as_chunks_mut::<LANES>();
            for (x, sums) in x.iter().zip(sums) {
                let product = reduce(multiply([$zero(); $parts], spread(x), factor));
                store(sums, $xor(load(sums), product));
            }
            if !last.is_empty() {
                let mut product = [[0; 16]; LANES];
                store(&mut product, reduce(multiply([$zero(); $parts], spread(&padded(last)), factor)));
                for (sum, product) in last_sums.iter_mut().zip(product) {
                    *sum = (u128::from_le_bytes(*sum) ^ u128::from_le_bytes(product)).to_le_bytes();
                }
            }
        }

        #[target_feature(enable = $features)]
        pub(in super::super) fn sum_of_products(a: &[$element], b: &[[u8; 16]]) -> [u8; 16] {
            let mut parts = [$zero(); $parts];
            let (a, last_a) = a.as_chunks::<LANES>();
            let (b, last_b) = b.as_chunks::<LANES>();
            for (a, b) in a.iter().zip(b) {
                parts = multiply(parts, spread(a), load(b));
            }
            parts = multiply(parts, spread(&padded(last_a)), load(&padded(last_b)));
            let mut sums = [[0; 16]; LANES];
            store(&mut sums, reduce(parts));
            sums.iter().fold(0, |sum, lane| sum ^ u128::from_le_bytes(*lane)).to_le_bytes()
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn load(lanes: &[[u8; 16]; LANES]) -> $register {
            // SAFETY: a register is read from an array of its size; the load requires no alignment.
            unsafe { $load(lanes.as_ptr().cast()) }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn store(lanes: &mut [[u8; 16]; LANES], register: $register) {
            // SAFETY: a register is written to an array of its size; the store requires no alignment.
            unsafe { $store(lanes.as_mut_ptr().cast(), register) }
        }

        /// Pads fewer elements than fit into a register with zeros.
        #[inline]
        fn padded<const N: usize>(few: &[[u8; N]]) -> [[u8; N]; LANES] {
            let mut all = [[0; N]; LANES];
            all[..few.len()].copy_from_slice(few);
            all
        }
    };
}
pub(crate) use loops;
