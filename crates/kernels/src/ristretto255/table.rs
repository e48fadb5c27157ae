//! Tables of multiples of one element.

use super::edwards::{Cached, D, Extended, LANES, digits, equal, size_and_sign};
use super::{Element, load, store};
use crate::Backend;
use crate::field::{Fe, Field, Kernel, VECTORS, invert_all, product, run_on};
use zeroize::Zeroizing;

/// y + x, y - x and 2 d x y of eight points, with limbs below 2^51 + 2^10.
type Window = [[Fe; 8]; 3];

/// Multiples of one element, for multiplying it many times: 1 to 8 times 16^i times the element, for each digit i of a
/// scalar. Takes 60 KiB, and the time of about fifty multiplications to compute.
pub struct Table(Box<[Window; 64]>);

impl Table {
    /// Computes the table of an element.
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
        let mut table = Box::new([[[Fe::ZERO; 8]; 3]; 64]);
        for (i, (p, z)) in points.into_iter().zip(inverses).enumerate() {
            let (x, y) = (product(p.x, z), product(p.y, z));
            let t = product(product(x, y), D).narrow();
            let window = &mut table[i / 8];
            for (part, value) in window.iter_mut().zip([Fe::add(y, x), Fe::sub(y, x), Fe::add(t, t)]) {
                part[i % 8] = value.narrow();
            }
        }
        Table(table)
    }

    /// Returns the table of the generator of RFC 9496, section 4.
    pub fn generator() -> &'static Table {
        static TABLE: std::sync::OnceLock<Table> = std::sync::OnceLock::new();
        TABLE.get_or_init(|| Table::new(&Element::GENERATOR))
    }

    /// Computes the multiples of the element by these scalars.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn multiply(&self, scalars: &[[u8; 32]], out: &mut [Element]) {
        self.multiply_with(Backend::best(super::BACKENDS), scalars, out);
    }

    /// [`Table::multiply`] on the requested path; returns the path that ran.
    ///
    /// # Panics
    ///
    /// Panics as [`Table::multiply`] does.
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
            let mut all = Zeroizing::new([[0; 64]; LANES]);
            for (digits_of, scalar) in all.iter_mut().zip(scalars) {
                digits(scalar, digits_of);
            }
            let mut sum = Extended::<F>::identity();
            for (i, [plus, minus, t]) in self.0.0.iter().enumerate() {
                let (mut sizes, mut signs) = ([0; LANES], [0; LANES]);
                for ((size, sign), digits) in sizes.iter_mut().zip(&mut signs).zip(all.iter()) {
                    (*size, *sign) = size_and_sign(digits[i]);
                }
                let mut masks = [F::mask(&[]); 8];
                for (mask, j) in masks.iter_mut().zip(1..) {
                    *mask = F::mask(&equal(sizes, j));
                }
                let plus = F::choose(&Fe::ONE, plus, &masks);
                let minus = F::choose(&Fe::ONE, minus, &masks);
                let t = F::choose(&Fe::ZERO, t, &masks);
                let entry = Cached::affine(plus, minus, t).negate(F::mask(&signs));
                sum = sum.plus_affine(&entry);
            }
            store(sum, out);
        }
    }
}
