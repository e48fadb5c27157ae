//! Sums of byte strings in GF(2).

/// Adds `b` to `a`, byte by byte, over the length of the shorter.
///
/// It is in this crate so that otherwise unoptimised programs do not spend their time in it.
pub fn xor(a: &mut [u8], b: &[u8]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

#[cfg(test)]
mod tests {
    use super::xor;

    #[test]
    fn bytes_are_added_as_far_as_both_go() {
        for (n, m) in [(0, 0), (0, 3), (3, 0), (1, 1), (7, 9), (64, 64), (200, 131)] {
            let [a, b]: [Vec<u8>; 2] =
                [(n, 91), (m, 37)].map(|(n, by)| (0..n).map(|i| (i * by) as u8).collect());
            let mut sum = a.clone();
            xor(&mut sum, &b);
            assert!((0..n as usize).all(|i| sum[i] == a[i] ^ b.get(i).unwrap_or(&0)), "{n} {m}");
        }
    }
}
