//! A party's identity: an Ed25519 key pair in a file that only its owner can read.

use super::Fingerprint;
use crate::error::{Error, Result};
use crate::places::{Folder, private_parent};
use crate::rng::Prng;
use crate::secret::Secret;
use crate::spelling::{IDENTITY, OUTPUT, command, setting};
use crate::trusted::{self, Whose};
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// The fixed bytes before the 32 secret ones in the PKCS#8 encoding of an Ed25519 key (RFC 8410, 7).
const PKCS8_PREFIX: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// The name of the file in the configuration folder.
const FILE: &str = "identity.pem";
/// Maximum length in bytes, larger than any identity file.
const LARGEST_FILE: u64 = 1 << 16;

/// An Ed25519 key pair. Its file is PKCS#8 in PEM, as OpenSSL writes it, with mode 0600.
///
/// Our copies of the private key are zeroed on drop. We do not control the copies of the TLS library.
pub struct Identity {
    pkcs8: Secret<Vec<u8>>,
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    /// A warning if other users could replace the file.
    warning: Option<String>,
}

impl Identity {
    /// Generates a key pair with the operating system's randomness.
    pub fn generate() -> Result<Identity> {
        Self::of_seed(&Zeroizing::new(Prng::from_os()?.bytes()))
    }

    /// The key pair with this private key.
    pub(crate) fn of_seed(seed: &[u8; 32]) -> Result<Identity> {
        let pkcs8 = Secret::new([&PKCS8_PREFIX[..], &seed[..]].concat());
        Self::from_pkcs8(pkcs8).map_err(|e| Error::bug(format!("a fresh key is not a key: {e}")))
    }

    fn from_pkcs8(pkcs8: Secret<Vec<u8>>) -> Result<Identity, String> {
        let signer = any_eddsa_type(&PrivatePkcs8KeyDer::from(&pkcs8[..])).map_err(|e| e.to_string())?;
        let spki = signer.public_key().ok_or("it has no public key")?.to_vec();
        let fingerprint = Fingerprint::of_public_key(&spki);
        // RFC 7250: the public key takes the place of a certificate.
        let key = Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki)], signer));
        Ok(Identity { pkcs8, key, fingerprint, warning: None })
    }

    /// Writes a new file that only its owner can read, and creates missing directories. Never overwrites an
    /// existing file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let shown = path.display();
        private_parent(path).map_err(|e| {
            Error::usage(format!(
                "cannot make the directory of {shown}: {e}. Choose another place with {OUTPUT}"
            ))
            .because(&e)
        })?;
        let unmade = |e: &std::io::Error| match e.kind() {
            ErrorKind::AlreadyExists => Error::usage(format!(
                "{shown} already exists and is not overwritten, because peers know its fingerprint. Use it \
                 ({}), or choose another place with {OUTPUT}",
                command!("identity show")
            )),
            _ => Error::usage(format!("cannot make {shown}: {e}. Choose another place with {OUTPUT}")),
        };
        let mut file = private_file(path).map_err(|e| unmade(&e).because(&e))?;
        let pem = to_pem(&self.pkcs8);
        file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| {
            // A partly written identity is useless.
            let _ = std::fs::remove_file(path);
            Error::output(format!(
                "cannot write {shown}: {e}. Free disk space, or choose another place with {OUTPUT}"
            ))
            .because(&e)
        })
    }

    /// Reads the file. A file that others can read or change, or that every user can replace, is rejected; if only some others
    /// can replace it, there is an [`Identity::warning`].
    pub fn load(path: impl AsRef<Path>) -> Result<Identity> {
        let path = path.as_ref();
        let shown = path.display();
        let unreadable = |e: &std::io::Error| match e.kind() {
            ErrorKind::NotFound => Error::usage(format!(
                "there is no identity at {shown}. Make one with {} and give its \
                 fingerprint to the other party, or name another file with {IDENTITY}",
                command!("identity new")
            )),
            _ => Error::usage(format!("cannot read the identity {shown}: {e}. Name another with {IDENTITY}")),
        };
        let unreadable = |e: std::io::Error| unreadable(&e).because(&e);
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if let Some(mode) = open_to_others(&metadata) {
            return Err(Error::usage(format!(
                "the identity {shown} can be read by others (mode {mode:04o}), who may then pose as you. Run \
                 `chmod 600 {shown}`, or make a new one if somebody may have copied it"
            )));
        }
        let warning = trusted::check("the identity", path, Whose::Ours, &file)?;
        let mut pem = Zeroizing::new(Vec::with_capacity(metadata.len().min(LARGEST_FILE) as usize));
        file.take(LARGEST_FILE).read_to_end(&mut pem).map_err(unreadable)?;
        let not_a_key = |e: String| {
            Error::usage(format!(
                "{shown} is not an identity ({e}): an Ed25519 private key, PKCS#8 in PEM, was expected. Make \
                 one with {}, or name another file with {IDENTITY}",
                command!("identity new")
            ))
        };
        let identity = Self::from_pem_bytes(&pem).map_err(not_a_key)?;
        Ok(Identity { warning, ..identity })
    }

    fn from_pem_bytes(pem: &[u8]) -> Result<Identity, String> {
        let mut key = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|e| e.to_string())?;
        let pkcs8 = Secret::new(key.secret_pkcs8_der().to_vec());
        key.zeroize();
        Self::from_pkcs8(pkcs8)
    }

    /// Returns the default location: `veilset/identity.pem` in `$XDG_CONFIG_HOME`, or in `$HOME/.config` if that is not set.
    pub fn default_path() -> Result<PathBuf> {
        Folder::Configuration.file_or(FILE, "the identity", setting!(identity))
    }

    /// Derives a secret from this identity for one purpose. It changes with the identity, and reveals nothing about it.
    pub(crate) fn secret_for(&self, purpose: &'static str) -> Secret<[u8; 32]> {
        Secret::new(blake3::derive_key(purpose, &self.pkcs8))
    }

    /// Returns a warning if other users could replace the file that the identity was loaded from.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns the fingerprint by which other parties identify this identity.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The key in the form that the TLS library needs.
    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

fn to_pem(der: &[u8]) -> Zeroizing<String> {
    const LINE: usize = 48; // bytes, 64 letters
    // No table lookup depends on the key's bits, and the string is never reallocated as it grows.
    let letter = |v: u8| {
        char::from(match v {
            0..26 => b'A' + v,
            26..52 => b'a' + (v - 26),
            52..62 => b'0' + (v - 52),
            62 => b'+',
            _ => b'/',
        })
    };
    let mut pem = Zeroizing::new(String::with_capacity(128 + 2 * der.len()));
    pem.push_str("-----BEGIN PRIVATE KEY-----\n");
    for line in der.chunks(LINE) {
        for three in line.chunks(3) {
            let at = |i: usize| three.get(i).copied().unwrap_or(0);
            let (a, b, c) = (at(0), at(1), at(2));
            let sextets = [a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63];
            for (i, v) in sextets.into_iter().enumerate() {
                pem.push(if i <= three.len() { letter(v) } else { '=' });
            }
        }
        pem.push('\n');
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}

/// Creates the file with its final mode, so that others can never read it, not even for an instant.
fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The file's mode, if group or others have any access to it.
#[cfg(unix)]
fn open_to_others(metadata: &std::fs::Metadata) -> Option<u32> {
    let mode = std::os::unix::fs::MetadataExt::mode(metadata) & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn open_to_others(_: &std::fs::Metadata) -> Option<u32> {
    None
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
