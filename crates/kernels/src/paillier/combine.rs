//! Computes (1 + k N) c^w s^N modulo N^2 for [`PublicKey::combine`]. Both powers share their squarings (Straus's
//! trick), so the randomness of a result takes a fifth of its cost.

use super::aws_lc::{Number, Scratch};
use super::table::{Masks, Row, digit, digits};
use super::{PublicKey, words};
use zeroize::Zeroizing;

/// Length of a window of the exponents in bits.
const BITS: usize = 5;

/// Scratch space for the calculation, reused for each result.
pub(super) struct Combiner<'a> {
    key: &'a PublicKey,
    scratch: Scratch,
    /// The exponent N of the randomness.
    n: words::Words,
    /// 1 in Montgomery's representation.
    one: Zeroizing<Vec<u8>>,
    /// Powers of the ciphertext and of the randomness.
    powers: [Row; 2],
    product: Number,
    factor: Number,
    chosen: Zeroizing<Vec<u8>>,
    masks: Masks,
}

impl Combiner<'_> {
    pub(super) fn new(key: &PublicKey) -> Combiner<'_> {
        let (mut scratch, width) = (Scratch::new(), key.width());
        let powers = [Row::new(1 << BITS, width), Row::new(1 << BITS, width)];
        let (one, product) = (key.square.one(&mut scratch, width), Number::zero());
        let (n, chosen) = (words::load(&key.n), Zeroizing::new(vec![0; width]));
        Combiner {
            key,
            scratch,
            n,
            one,
            powers,
            product,
            factor: Number::zero(),
            chosen,
            masks: Masks::default(),
        }
    }

    pub(super) fn combine(&mut self, [constant, weight, ciphertext, random]: [&[u8]; 4], out: &mut [u8]) {
        let (square, scratch) = (&self.key.square, &mut self.scratch);
        let weight = words::load(weight);
        // The number is below N^2 even with its EXCESS bytes, and s^N depends only on s modulo N, so s need not be
        // reduced.
        let mut random = words::load(random);
        words::zero_to_one(&mut random);
        let bases = [Zeroizing::new(ciphertext.to_vec()), words::bytes(&random)];
        for (powers, base) in self.powers.iter_mut().zip(&bases) {
            widen(&mut self.factor, base, &mut self.chosen);
            square.enter(&mut self.factor, scratch);
            powers.set_powers(square, &self.one, &mut self.factor, scratch);
        }
        self.product.set(&self.one);
        for place in (0..digits::<BITS>(self.key.bits())).rev() {
            if place != digits::<BITS>(self.key.bits()) - 1 {
                (0..BITS).for_each(|_| square.square(&mut self.product, scratch));
            }
            self.powers[0].choose(&[digit::<BITS>(&weight, place)], &mut self.masks, &mut self.chosen);
            self.factor.set(&self.chosen);
            square.multiply(&mut self.product, &self.factor, scratch);
            // The exponent is public here, but the base is not.
            let digit = digit::<BITS>(&self.n, place);
            if digit != 0 {
                self.powers[1].get(digit, &mut self.chosen);
                self.factor.set(&self.chosen);
                square.multiply(&mut self.product, &self.factor, scratch);
            }
        }
        // k N modulo N^2 is a multiple of N, so adding 1 does not carry.
        widen(&mut self.factor, constant, &mut self.chosen);
        square.multiply(&mut self.factor, &self.key.n_in_square, scratch);
        self.factor.get(&mut self.chosen);
        let mut factor = words::load(&self.chosen);
        words::increment(&mut factor);
        words::store(&factor, &mut self.chosen);
        self.factor.set(&self.chosen);
        // Also converts the product out of Montgomery's representation.
        square.multiply(&mut self.product, &self.factor, scratch);
        self.product.get(out);
    }
}

/// Sets a number to the bytes, with leading zeros up to the length of `room`.
fn widen(number: &mut Number, bytes: &[u8], room: &mut [u8]) {
    let (low, high) = room.split_at_mut(bytes.len());
    low.copy_from_slice(bytes);
    high.fill(0);
    number.set(room);
}
