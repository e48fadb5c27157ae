//! Secrets as types: zeroed on drop, redacted in `Debug`, never compared by accident.

use std::fmt;
use std::ops::Deref;
use zeroize::Zeroize;

/// A value that is zeroed when dropped and never printed.
///
/// It has no `PartialEq`: where two secrets must be compared, `subtle` does it in constant time.
/// Not protected: copies that the compiler spills to the stack, swap space, core dumps.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes the value over.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_value() {
        assert_eq!(format!("{:?}", Secret::new([7u8; 4])), "Secret(..)");
    }
}
