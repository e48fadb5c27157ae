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
    // Others may create files in a folder like /tmp, but replace none.
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(Identity::load(&path).unwrap().warning(), None);
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(words(Identity::load(&path).unwrap_err()).contains("where every user can replace it"));
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o700)).unwrap();
    // Only root can change the owner of a folder.
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
    let public = "302a300506032b657003210019bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
    let spki: String = identity.key.cert[0].iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(spki, public);
}

/// Neither the public key nor a secret for another purpose helps to find a secret.
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
