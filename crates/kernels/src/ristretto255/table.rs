//! Multiples of one element.

use super::edwards::{Cached, D, Extended, digits, equal, size_and_sign};
use super::{Element, load, store};
use crate::Backend;
use crate::field::{Fe, Field, Kernel, MAX_LANES, VECTORS, invert_all, product, run_on};
use zeroize::Zeroizing;

/// y + x, y - x and 2 d x y of a point.
type Entry = [Fe; 3];

/// Multiples of one element, for many multiplications of it: 1 to 8 times 16^i times it, for each digit i of a
/// scalar. 60 KiB, made in the time of about fifty multiplications.
pub struct Table(Box<[[Entry; 8]; 64]>);

impl Table {
    /// The table of an element.
    pub fn new(element: &Element) -> Table {
        let mut points = Vec::with_capacity(64 * 8);
        let mut base: Extended<Fe> = load(core::slice::from_ref(element));
        for _ in 0..64 {
            let (first, mut multiple) = (base.cached(), base);
            for _ in 0..8 {
                points.push(multiple);
                multiple = multiple.plus(&first);
            }
            base = base.times_16();
        }
        let mut inverses: Vec<Fe> = points.iter().map(|p| p.z).collect();
        inverses.chunks_mut(VECTORS).for_each(invert_all);
        let mut table = Box::new([[[Fe::ZERO; 3]; 8]; 64]);
        for ((entry, p), z) in table.as_flattened_mut().iter_mut().zip(points).zip(inverses) {
            let (x, y) = (product(p.x, z), product(p.y, z));
            let t = product(product(x, y), D).narrow();
            *entry = [Fe::add(y, x), Fe::sub(y, x), Fe::add(t, t)].map(Fe::narrow);
        }
        Table(table)
    }

    /// The table of the generator of RFC 9496, section 4.
    pub fn generator() -> &'static Table {
        static TABLE: std::sync::OnceLock<Table> = std::sync::OnceLock::new();
        TABLE.get_or_init(|| Table::new(&Element::GENERATOR))
    }

    /// The multiples by these scalars.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn multiply(&self, scalars: &[[u8; 32]], out: &mut [Element]) {
        self.multiply_with(Backend::best(super::BACKENDS), scalars, out);
    }

    /// [`Table::multiply`] on the path asked for; returns the path that ran.
    ///
    /// # Panics
    ///
    /// As [`Table::multiply`].
    pub fn multiply_with(&self, backend: Backend, scalars: &[[u8; 32]], out: &mut [Element]) -> Backend {
        assert_eq!(scalars.len(), out.len(), "multiply: as many outputs as scalars");
        run_on(backend, Multiply(self, scalars, out))
    }
}

struct Multiply<'a>(&'a Table, &'a [[u8; 32]], &'a mut [Element]);

impl Kernel for Multiply<'_> {
    #[inline(always)]
    fn run<F: Field>(self) {
        for (scalars, out) in self.1.chunks(F::LANES).zip(self.2.chunks_mut(F::LANES)) {
            let mut all = Zeroizing::new([[0; 64]; MAX_LANES]);
            for (digits_of, scalar) in all.iter_mut().zip(scalars) {
                *digits_of = digits(scalar);
            }
            let mut sum = Extended::<F>::identity();
            for (window, entries) in self.0.0.iter().enumerate() {
                let (mut parts, mut signs) = ([[Fe::ZERO; MAX_LANES]; 3], [0; MAX_LANES]);
                for (lane, digits) in all.iter().take(F::LANES).enumerate() {
                    let (size, sign) = size_and_sign(digits[window]);
                    signs[lane] = sign;
                    let entry = look_up(entries, size);
                    for (parts, part) in parts.iter_mut().zip(entry) {
                        parts[lane] = part;
                    }
                }
                let [plus, minus, t] = parts;
                let entry = Cached::affine(F::load(&plus), F::load(&minus), F::load(&t));
                sum = sum.plus_affine(&entry.negate(F::mask(&signs)));
            }
            store(sum, out);
        }
    }
}

/// The entry of this number, or the identity for 0, reading all of them.
#[inline(always)]
fn look_up(entries: &[Entry; 8], number: u64) -> Entry {
    let first = equal(number, 0) & 1;
    let mut found = [[first, 0, 0, 0, 0], [first, 0, 0, 0, 0], [0; 5]];
    for (entry, j) in entries.iter().zip(1..) {
        let here = equal(number, j);
        for (found, limbs) in found.as_flattened_mut().iter_mut().zip(entry.iter().flat_map(|part| part.0)) {
            *found |= limbs & here;
        }
    }
    found.map(Fe)
}
