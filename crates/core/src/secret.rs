//! Types for secrets: zeroized on drop, redacted in `Debug`, never compared by accident.

use std::fmt;
use std::ops::{Deref, DerefMut};
use zeroize::{Zeroize, optimization_barrier};

/// A value that is zeroized on drop and never printed.
///
/// It has no `PartialEq`, because secrets must be compared in constant time, with `subtle`. Not protected: copies that
/// the compiler spills to the stack, swap space, core dumps.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes ownership of the value.
    pub fn new(value: T) -> Self {
        Secret(value)
    }
}

impl<T: Zeroize> Deref for Secret<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A list of secrets that is zeroized on drop and never printed.
///
/// For secrets in bulk: it is zeroized at the speed of `fill`, while `zeroize` writes byte by byte.
pub struct Secrets<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> Secrets<T> {
    /// Returns a list of `n` zeros.
    pub fn zeros(n: usize) -> Self {
        Secrets(vec![T::default(); n])
    }

    /// Returns an empty list with room for `n` elements.
    pub fn with_capacity(n: usize) -> Self {
        Secrets(Vec::with_capacity(n))
    }

    /// Appends `more`. A list that is reallocated to grow leaves no copy behind.
    pub fn extend(&mut self, more: &[T]) {
        let len = self.0.len() + more.len();
        if len > self.0.capacity() {
            let mut larger = Vec::with_capacity(len.max(2 * self.0.len()));
            larger.extend_from_slice(&self.0);
            *self = Secrets(larger);
        }
        self.0.extend_from_slice(more);
    }

    /// Keeps the first `n` elements. The others are zeroized with the list.
    pub fn truncate(&mut self, n: usize) {
        self.0.truncate(n);
    }

    /// Frees unused capacity if it is more than half. The list is then reallocated, and leaves no copy behind.
    pub fn shrink(&mut self) {
        if self.0.capacity() > 2 * self.0.len() {
            *self = self.clone();
        }
    }

    fn wipe(&mut self) {
        wipe(&mut self.0);
    }
}

/// Fills a list's entire allocation with zeros.
pub(crate) fn wipe<T: Copy + Default>(list: &mut Vec<T>) {
    list.clear();
    list.resize(list.capacity(), T::default());
    optimization_barrier(list.as_slice());
}

impl<T: Copy + Default> From<Vec<T>> for Secrets<T> {
    fn from(list: Vec<T>) -> Self {
        Secrets(list)
    }
}

impl<T: Copy + Default> Clone for Secrets<T> {
    fn clone(&self) -> Self {
        Secrets(self.0.clone())
    }
}

impl<T: Copy + Default> Deref for Secrets<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for Secrets<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> Drop for Secrets<T> {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl<T: Copy + Default> fmt::Debug for Secrets<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::ZeroizeOnDrop;

    #[test]
    fn debug_does_not_show_the_value() {
        assert_eq!(format!("{:?}", Secret::new([7u8; 4])), "Secret(..)");
        assert_eq!(format!("{:?}", Secrets::from(vec![7u8; 4])), "Secrets(4)");
    }

    /// Records that it was wiped.
    struct Noted<'a>(&'a std::cell::Cell<bool>);

    impl Zeroize for Noted<'_> {
        fn zeroize(&mut self) {
            self.0.set(true);
        }
    }

    thread_local! {
        static MADE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// Counts how often its default is made: once for each list that is wiped.
    #[derive(Clone, Copy)]
    struct Counted(u8);

    impl Default for Counted {
        fn default() -> Self {
            MADE.set(MADE.get() + 1);
            Counted(0)
        }
    }

    #[test]
    fn what_is_dropped_or_outgrown_is_wiped() {
        let wiped = std::cell::Cell::new(false);
        let secret = Secret::new(Noted(&wiped));
        assert!(!wiped.get());
        drop(secret);
        assert!(wiped.get());

        let mut list = Secrets::with_capacity(2);
        list.extend(&[Counted(1); 2]);
        assert_eq!(MADE.get(), 0);
        list.extend(&[Counted(1); 3]);
        assert_eq!(MADE.get(), 1, "the list has moved");
        assert!(list.iter().all(|counted| counted.0 == 1));
        drop(list);
        assert_eq!(MADE.get(), 2);
    }

    #[test]
    fn wiping_zeroes_all_that_was_allocated() {
        let mut list = Secrets::from(vec![[7u8; 16]; 9]);
        list.truncate(2);
        list.wipe();
        assert!(list.len() >= 9 && list.iter().all(|s| *s == [0; 16]));
        // Secrets may have been written beyond the end.
        let mut list = Vec::with_capacity(100);
        list.extend([7u8; 60]);
        list.truncate(5);
        let mut list = Secrets::from(list);
        list.wipe();
        assert!(list.len() >= 100 && list.iter().all(|s| *s == 0));
    }

    #[test]
    fn lists_of_items_are_wiped() {
        fn on_drop<T: ZeroizeOnDrop>() {}
        on_drop::<crate::item::Items>();
        let mut bytes = b"item".to_vec();
        bytes.truncate(1);
        wipe(&mut bytes);
        assert!(bytes.len() >= 4 && bytes.iter().all(|byte| *byte == 0));
    }

    /// Other crates wipe our secrets only with a feature; a build without it would go unnoticed.
    #[test]
    fn what_other_crates_hold_is_wiped() {
        fn on_drop<T: ZeroizeOnDrop>() {}
        fn when_told<T: Zeroize>() {}
        on_drop::<chacha20::ChaCha20Rng>();
        on_drop::<sha2::Sha512>();
        when_told::<blake3::Hasher>();
        when_told::<curve25519_dalek::Scalar>();
    }

    #[test]
    fn a_list_with_room_stays_where_it_is() {
        let mut list = Secrets::with_capacity(10);
        list.extend(&[1u8; 4]);
        let place = list.as_ptr();
        list.extend(&[2; 6]);
        assert_eq!((list.as_ptr(), &*list), (place, &[1, 1, 1, 1, 2, 2, 2, 2, 2, 2][..]));
    }

    #[test]
    fn a_list_is_moved_to_free_more_than_half_of_its_room() {
        for (kept, room) in [(0, 0), (4, 4), (5, 10), (10, 10)] {
            let mut list = Secrets::from(vec![Counted(1); 10]);
            list.truncate(kept);
            let before = MADE.get();
            list.shrink();
            assert_eq!((list.len(), list.0.capacity()), (kept, room));
            // Moved elements are wiped at their old place.
            assert_eq!(MADE.get() - before, usize::from(room < 10));
            assert!(list.iter().all(|counted| counted.0 == 1));
        }
    }

    #[test]
    fn a_list_grows_like_a_vector() {
        let (mut list, mut plain) = (Secrets::zeros(0), Vec::new());
        for n in [0u8, 1, 2, 3, 50, 4] {
            list.extend(&vec![n; usize::from(n)]);
            plain.extend(vec![n; usize::from(n)]);
            assert_eq!(&*list, &*plain);
        }
    }
}
