//! AES-256-GCM, as files on disk are sealed with it.

use crate::error::{Error, Result};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce as LibraryNonce, UnboundKey};
use aws_lc_rs::error::Unspecified;

/// Length of a tag in bytes.
pub(crate) const TAG: usize = 16;

/// A nonce. No two pieces may be sealed with the same key and nonce.
pub(crate) type Nonce = [u8; NONCE_LEN];

/// A key.
pub(crate) struct Key(LessSafeKey);

/// What was read is not what was sealed.
#[derive(Debug)]
pub(crate) struct Altered;

impl Key {
    /// The key of these bytes.
    ///
    /// # Errors
    /// [`Error::Bug`], which the length of the bytes excludes.
    pub(crate) fn of(bytes: &[u8; 32]) -> Result<Key> {
        let key = UnboundKey::new(&AES_256_GCM, bytes);
        key.map(|key| Key(LessSafeKey::new(key))).map_err(unusable("no key can be made"))
    }

    /// Encrypts `piece` in place, and returns its tag. `with` is authenticated too.
    ///
    /// # Errors
    /// [`Error::Bug`] for a piece of more than 64 GiB.
    pub(crate) fn seal(&self, nonce: Nonce, with: &[u8], piece: &mut [u8]) -> Result<[u8; TAG]> {
        let nonce = LibraryNonce::assume_unique_for_key(nonce);
        let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(with), piece);
        let sealed = sealed.and_then(|tag| tag.as_ref().try_into().map_err(|_| Unspecified));
        sealed.map_err(unusable("nothing can be sealed"))
    }

    /// Decrypts `piece` in place. If it or anything else differs from what was sealed, its bytes mean nothing.
    pub(crate) fn open(
        &self,
        nonce: Nonce,
        with: &[u8],
        tag: &[u8; TAG],
        piece: &mut [u8],
    ) -> Result<(), Altered> {
        let nonce = LibraryNonce::assume_unique_for_key(nonce);
        let opened = self.0.open_in_place_separate_tag(nonce, Aad::from(with), tag, piece);
        opened.map(drop).map_err(|_| Altered)
    }
}

/// The error if the library refuses what it must do.
fn unusable(what: &'static str) -> impl Fn(Unspecified) -> Error {
    move |_| Error::bug(format!("AES-256-GCM: {what}"))
}
