//! A party's identity: an Ed25519 key pair in a file that only its owner can read.

use super::Fingerprint;
use crate::error::{Error, Result};
use crate::places::{Folder, private_parent};
use crate::rng::Prng;
use crate::secret::Secret;
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
/// Larger than any identity file.
const LARGEST_FILE: u64 = 1 << 16;

/// An Ed25519 key pair. Its file is PKCS#8 in PEM, as OpenSSL writes it, with mode 0600.
///
/// Our copies of the private key are zeroed on drop. We do not control those of the TLS library.
pub struct Identity {
    pkcs8: Secret<Vec<u8>>,
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    /// Who could replace its file.
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
                "cannot make the directory of {shown}: {e}. Choose another place with `output`"
            ))
            .because(&e)
        })?;
        let unmade = |e: &std::io::Error| match e.kind() {
            ErrorKind::AlreadyExists => Error::usage(format!(
                "{shown} already exists and is not overwritten, because peers know its fingerprint. Use it \
                 (`veilset identity show`), or choose another place with `output`"
            )),
            _ => Error::usage(format!("cannot make {shown}: {e}. Choose another place with `output`")),
        };
        let mut file = private_file(path).map_err(|e| unmade(&e).because(&e))?;
        let pem = to_pem(&self.pkcs8);
        file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| {
            // A partly written identity is useless.
            let _ = std::fs::remove_file(path);
            Error::output(format!(
                "cannot write {shown}: {e}. Free disk space, or choose another place with `output`"
            ))
            .because(&e)
        })
    }

    /// Reads the file. A file that others can read or change is rejected; of one that others may replace there is a
    /// [`Identity::warning`].
    pub fn load(path: impl AsRef<Path>) -> Result<Identity> {
        let path = path.as_ref();
        let shown = path.display();
        let unreadable = |e: &std::io::Error| match e.kind() {
            ErrorKind::NotFound => Error::usage(format!(
                "there is no identity at {shown}. Make one with `veilset identity new` and give its \
                 fingerprint to the other party, or name another file with `identity`"
            )),
            _ => Error::usage(format!("cannot read the identity {shown}: {e}. Name another with `identity`")),
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
                 one with `veilset identity new`, or name another file with `identity`"
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

    /// The default location: `veilset/identity.pem` in `$XDG_CONFIG_HOME`, or in `$HOME/.config` if that is not
    /// set.
    pub fn default_path() -> Result<PathBuf> {
        Folder::Configuration.file_or(FILE, "the identity", "`identity`")
    }

    /// A secret derived from this identity for one purpose. It changes with the identity, and reveals nothing
    /// about it.
    pub(crate) fn secret_for(&self, purpose: &'static str) -> Secret<[u8; 32]> {
        Secret::new(blake3::derive_key(purpose, &self.pkcs8))
    }

    /// What to tell the user of the file that it was loaded from: who could replace it, if anybody.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The name of this identity for the other party.
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
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    /// A directory for this test, removed afterwards.
    struct Scratch(PathBuf);
    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("veilset-identity-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).unwrap();
            Scratch(path)
        }
    }
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn words(e: Error) -> String {
        assert!(matches!(e, Error::Usage(_)), "{e:?}");
        e.to_string()
    }

    #[test]
    fn it_comes_back_from_its_file_and_two_differ() {
        let scratch = Scratch::new("round-trip");
        let path = scratch.0.join("a/b/identity.pem");
        let identity = Identity::generate().unwrap();
        identity.save(&path).unwrap();
        assert_eq!(Identity::load(&path).unwrap().fingerprint(), identity.fingerprint());
        assert_ne!(Identity::generate().unwrap().fingerprint(), identity.fingerprint());
        // Writing a loaded identity again gives the same file.
        let copy = scratch.0.join("copy.pem");
        Identity::load(&path).unwrap().save(&copy).unwrap();
        assert_eq!(std::fs::read(copy).unwrap(), std::fs::read(path).unwrap());
    }

    #[test]
    fn the_file_and_its_directories_are_private_from_the_start() {
        let scratch = Scratch::new("modes");
        let path = scratch.0.join("new/identity.pem");
        Identity::generate().unwrap().save(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    }

    #[test]
    fn an_existing_file_is_kept() {
        let scratch = Scratch::new("existing");
        let path = scratch.0.join("identity.pem");
        std::fs::write(&path, "precious").unwrap();
        let e = words(Identity::generate().unwrap().save(&path).unwrap_err());
        assert!(e.contains("is not overwritten") && e.contains("`output`"), "{e}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let scratch = Scratch::new("open");
        let path = scratch.0.join("identity.pem");
        Identity::generate().unwrap().save(&path).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let e = words(Identity::load(&path).unwrap_err());
            assert!(e.contains("chmod 600") && e.contains(&format!("{mode:04o}")), "{e}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        Identity::load(&path).unwrap();
    }

    #[test]
    fn whoever_could_replace_the_file_is_in_its_warning() {
        let scratch = Scratch::new("replaced");
        let path = scratch.0.join("place/identity.pem");
        Identity::generate().unwrap().save(&path).unwrap();
        let place = path.parent().unwrap();
        assert_eq!(Identity::load(&path).unwrap().warning(), None);
        // Others may make files in a folder like /tmp, and replace none.
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(Identity::load(&path).unwrap().warning(), None);
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(words(Identity::load(&path).unwrap_err()).contains("in which every user can replace it"));
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o700)).unwrap();
        // Only root gives folders to others.
        if std::os::unix::fs::chown(place, Some(54_321), None).is_ok() {
            let identity = Identity::load(&path).unwrap();
            assert!(identity.warning().unwrap().contains("whose owner (54321) can replace it"));
        }
    }

    #[test]
    fn a_missing_file_says_how_to_make_one() {
        let scratch = Scratch::new("missing");
        let e = words(Identity::load(scratch.0.join("identity.pem")).unwrap_err());
        assert!(e.contains("veilset identity new"), "{e}");
    }

    #[test]
    fn what_is_not_an_identity_is_refused() {
        let scratch = Scratch::new("garbage");
        let good = Zeroizing::new(to_pem(&Identity::generate().unwrap().pkcs8).to_string());
        let rsa_like = to_pem(&[0x30, 3, 2, 1, 0]).to_string();
        let cases: [Vec<u8>; 8] = [
            vec![],
            b"garbage".to_vec(),
            vec![0xff; 100],
            good.replace("PRIVATE KEY", "PUBLIC KEY").into_bytes(),
            good[..good.len() / 2].as_bytes().to_vec(),
            good.replacen("MC4", "MC5", 1).into_bytes(),
            rsa_like.into_bytes(),
            vec![b'-'; 1 << 20],
        ];
        for (i, bytes) in cases.iter().enumerate() {
            let path = scratch.0.join(i.to_string());
            private_file(&path).unwrap().write_all(bytes).unwrap();
            let e = words(Identity::load(&path).unwrap_err());
            assert!(e.contains("is not an identity") && e.contains("`identity`"), "{i}: {e}");
        }
        words(Identity::load(&scratch.0).unwrap_err());
    }

    #[test]
    fn a_key_made_by_openssl_is_an_identity() {
        // The example of RFC 8410 (section 10.3), in the format of openssl genpkey -algorithm ed25519.
        let pem = "-----BEGIN PRIVATE KEY-----\n\
                   MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
                   -----END PRIVATE KEY-----\n";
        let scratch = Scratch::new("openssl");
        let path = scratch.0.join("identity.pem");
        private_file(&path).unwrap().write_all(pem.as_bytes()).unwrap();
        let identity = Identity::load(&path).unwrap();
        assert_eq!(*to_pem(&identity.pkcs8), pem);
        // RFC 8410, section 10.1: its public key.
        let public =
            "302a300506032b657003210019bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
        let spki: String = identity.key.cert[0].iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(spki, public);
    }

    /// Knowing the public key, or a secret for another purpose, is of no help.
    #[test]
    fn a_secret_is_of_the_private_key_and_of_its_purpose() {
        let [one, two, three] = [(); 3].map(|()| Identity::generate().unwrap());
        let all = [&one, &two].map(|identity| ["a", "b"].map(|purpose| *identity.secret_for(purpose)));
        let different: std::collections::HashSet<_> = all.as_flattened().iter().collect();
        assert_eq!(different.len(), 4);
        assert!(different.iter().all(|secret| secret[..] != two.pkcs8[16..]));
        // The private key of one identity with the public key of another.
        let mixed = Identity { pkcs8: Secret::new(two.pkcs8.to_vec()), ..three };
        assert_eq!(*mixed.secret_for("a"), all[1][0]);
    }

    #[test]
    fn debug_shows_no_key() {
        let identity = Identity::generate().unwrap();
        assert_eq!(format!("{identity:?}"), format!("Identity({})", identity.fingerprint()));
    }
}
