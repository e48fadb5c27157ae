//! Encoding of message elements on the wire.

/// An element of a message: a fixed number of bytes, of which only canonical encodings are accepted.
pub trait Wire: Sized {
    /// Length of the encoding in bytes, not 0.
    const SIZE: usize;
    /// Appends the encoding to `out`.
    fn put(&self, out: &mut Vec<u8>);
    /// Decodes exactly [`SIZE`](Self::SIZE) bytes. The error describes bytes that are not canonical.
    fn get(bytes: &[u8]) -> Result<Self, &'static str>;
}

impl<const N: usize> Wire for [u8; N] {
    const SIZE: usize = N;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn get(bytes: &[u8]) -> Result<Self, &'static str> {
        bytes.try_into().map_err(|_| "of the wrong size")
    }
}

impl Wire for u64 {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn get(bytes: &[u8]) -> Result<Self, &'static str> {
        bytes.try_into().map(u64::from_le_bytes).map_err(|_| "of the wrong size")
    }
}
