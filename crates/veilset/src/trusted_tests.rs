use super::unix::Place;
use super::*;
use std::fs::{File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

/// The expected result for a file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Good,
    Warned(&'static str),
    Refused(&'static str),
}
use Kind::{Good, Refused, Warned};

/// A folder of ours, in which no other user can change anything.
struct World {
    _folder: tempfile::TempDir,
    at: PathBuf,
    user: u32,
    group: u32,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        let there = at.metadata().unwrap();
        let world = World { _folder: folder, at, user: there.uid(), group: there.gid() };
        std::fs::create_dir(world.at.join("folder")).unwrap();
        world.file("folder/file");
        world
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.at.join(name);
        std::fs::write(&path, "").unwrap();
        self.mode(name, 0o600);
        path
    }

    fn mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.at.join(name), Permissions::from_mode(mode)).unwrap();
    }

    /// The result of checking a file as this user.
    fn said_to(&self, user: u32, name: &str, own: bool) -> Result<Option<String>> {
        Place { what: "the policy", path: &self.at.join(name), own, user, opened: None, warning: None }
            .check()
    }

    fn is(&self, name: &str, kind: Kind) {
        let said = self.said_to(self.user, name, false);
        let text = format!("{said:?}");
        match kind {
            Good => assert_eq!(said, Ok(None), "{name}"),
            Warned(words) => {
                assert!(said.is_ok_and(|said| said.is_some_and(|said| said.contains(words))), "{text}")
            }
            Refused(words) => assert!(
                said.is_err_and(|e| matches!(&e, Error::Usage(_)) && e.to_string().contains(words)),
                "{text}"
            ),
        }
        if kind != Good {
            assert!(text.contains("the policy ") && text.contains(name), "{text}");
        }
    }
}

#[test]
fn modes_of_the_file_and_of_its_folder_decide() {
    let world = World::new();
    // Our own group has our number.
    let own = world.group == world.user;
    let of_group = |words| if own { Good } else { Warned(words) };
    let cases = [
        (0o600, 0o700, Good),
        (0o644, 0o755, Good),
        (0o664, 0o755, of_group("chmod g-w")),
        (0o644, 0o775, of_group("chmod g-w")),
        (0o644, 0o1775, Good),
        (0o666, 0o755, Refused("mode 0666")),
        (0o602, 0o700, Refused("chmod o-w")),
        (0o644, 0o777, Refused("every user can replace it (mode 0777)")),
        (0o644, 0o1777, Good),
        (0o666, 0o1777, Refused("mode 0666")),
    ];
    for (file, folder, kind) in cases {
        world.mode("folder/file", file);
        world.mode("folder", folder);
        world.is("folder/file", kind);
    }
    world.mode("folder", 0o700);
    world.is("folder/none", Good);
    world.is("none/file", Good);
}

#[test]
fn a_group_that_is_not_our_own_gives_a_warning() {
    let world = World::new();
    if world.user != 0 {
        return; // Only root can give files to any group; the test above uses the existing group.
    }
    let other = |name: &str, user| chown(world.at.join(name), Some(user), Some(4321)).unwrap();
    other("folder/file", 0);
    world.mode("folder/file", 0o660);
    world.is("folder/file", Warned("the members of a group (4321, mode 0660)"));
    world.mode("folder/file", 0o600);
    other("folder", 0);
    world.mode("folder", 0o770);
    world.is("folder/file", Warned("where the members of a group (4321) can replace it"));
    // Files and a folder of another user.
    world.mode("folder", 0o700);
    other("folder", 4321);
    world.is("folder/file", Warned("whose owner (4321) can replace it"));
    other("folder/file", 4321);
    world.mode("folder", 0o755);
    world.is("folder/file", Warned("whose owner (4321) can replace it"));
    other("folder", 0);
    world.is("folder/file", Warned("belongs to another user (4321)"));
    assert!(
        world
            .said_to(0, "folder/file", true)
            .unwrap_err()
            .to_string()
            .contains("belongs to another user (4321)")
    );
    world.mode("folder/file", 0o666);
    world.is("folder/file", Refused("every user"));
    world.mode("folder/file", 0o600);
    // For their owner, the files are their own.
    assert_eq!(world.said_to(4321, "folder/file", true), Ok(None));
}

#[test]
fn what_belongs_to_another_user_is_refused_or_gives_a_warning() {
    let world = World::new();
    let words = format!("{}", world.user);
    let [own, others] = [true, false].map(|own| world.said_to(world.user + 1, "folder/file", own));
    // Root may change any file.
    match world.user {
        0 => assert_eq!((own, others), (Ok(None), Ok(None))),
        _ => {
            assert!(own.unwrap_err().to_string().contains(&words));
            assert!(others.unwrap().unwrap().contains(&words));
        }
    }
}

#[test]
fn a_link_is_as_good_as_the_places_that_it_leads_through() {
    let world = World::new();
    for name in ["open", "private"] {
        std::fs::create_dir(world.at.join(name)).unwrap();
        world.mode(name, 0o700);
    }
    let path = world.file("private/file");
    symlink("private/file", world.at.join("good")).unwrap();
    symlink(&path, world.at.join("open/in_open")).unwrap();
    symlink("open/in_open", world.at.join("through_open")).unwrap();
    world.file("open/file");
    symlink("../open/file", world.at.join("private/to_open")).unwrap();
    symlink("open", world.at.join("folder_link")).unwrap();
    symlink("loop", world.at.join("loop")).unwrap();
    let all = [
        "good",
        "open/in_open",
        "through_open",
        "private/to_open",
        "folder_link/file",
        "private/../open/file",
    ];
    all.iter().for_each(|name| world.is(name, Good));
    world.is("loop", Good);
    world.mode("open", 0o777);
    for name in &all[1..] {
        world.is(name, Refused("every user can replace it"));
    }
    world.is("good", Good);
    // In a folder like /tmp, other users can make links.
    world.mode("open", 0o1777);
    all.iter().for_each(|name| world.is(name, Good));
    if world.user == 0 {
        std::os::unix::fs::lchown(world.at.join("open/in_open"), Some(4321), None).unwrap();
        world.is("open/in_open", Refused("which belongs to another user (4321)"));
        world.is("through_open", Refused("Name the file itself"));
    }
    world.mode("private/file", 0o606);
    world.is("good", Refused("can be changed by every user"));
}

/// The number of another user; `None` for root, which trusts only itself.
fn stranger(world: &World) -> Option<u32> {
    (world.user != 0).then_some(world.user + 1)
}

fn fifo(world: &World, name: &str) -> PathBuf {
    let path = world.at.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    world.mode(name, 0o600);
    path
}

#[test]
fn a_fifo_or_socket_is_looked_at_like_a_file() {
    let world = World::new();
    let pipe = fifo(&world, "folder/fifo");
    let socket = world.at.join("folder/socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    world.mode("folder/socket", 0o600);
    for (name, path) in [("folder/fifo", &pipe), ("folder/socket", &socket)] {
        world.is(name, Good);
        world.mode(name, 0o602);
        world.is(name, Refused("can be changed by every user (mode 0602)"));
        world.mode(name, 0o600);
        let other = if world.user == 0 {
            chown(path, Some(4321), None).unwrap();
            0
        } else {
            stranger(&world).unwrap()
        };
        let [own, others] = [true, false].map(|own| world.said_to(other, name, own));
        assert!(own.unwrap_err().to_string().contains("belongs to another user"));
        assert!(others.unwrap().unwrap().contains("belongs to another user"));
    }
    // All users may write to this device.
    world.is("/dev/null", Good);
}

/// An unnamed pipe, such as the one that the shell makes for `<(...)`.
#[test]
fn a_pipe_that_was_handed_to_us_is_good() {
    let (read, _write) = std::io::pipe().unwrap();
    let world = World::new();
    for name in [format!("/dev/fd/{}", read.as_raw_fd()), format!("/proc/self/fd/{}", read.as_raw_fd())] {
        world.is(&name, Good);
        let file = File::open(&name).unwrap();
        assert_eq!(check("the policy", Path::new(&name), Whose::Ours, &file), Ok(None));
        let opened = file.metadata().unwrap();
        // Even a pipe of another user, as with `| sudo`.
        let (path, user) = (Path::new(&name), opened.uid() + 1);
        let place = Place { what: "the policy", path, own: true, user, opened: Some(&opened), warning: None };
        assert_eq!(place.check(), Ok(None));
    }
}

/// Another user may put a file there, and remove it again, after its name was checked.
#[test]
fn what_was_opened_is_looked_at_even_if_its_name_is_gone() {
    let world = World::new();
    let path = world.file("folder/theirs");
    if world.user == 0 {
        chown(&path, Some(4321), None).unwrap();
    }
    let theirs = File::open(&path).unwrap();
    let user = stranger(&world).unwrap_or(0);
    let said = |opened: &File| {
        let opened = opened.metadata().unwrap();
        let path = world.at.join("folder/file");
        Place { what: "the policy", path: &path, own: true, user, opened: Some(&opened), warning: None }
            .check()
    };
    std::fs::remove_file(world.at.join("folder/file")).unwrap();
    assert!(said(&theirs).unwrap_err().to_string().contains("belongs to another user"));
    assert_eq!(world.said_to(user, "folder/file", true), Ok(None));
    if world.user == 0 {
        let ours = File::open(world.file("folder/file")).unwrap();
        assert_eq!(said(&ours), Ok(None));
        world.mode("folder/file", 0o602);
        std::fs::remove_file(world.at.join("folder/file")).unwrap();
        assert!(said(&ours).unwrap_err().to_string().contains("every user"));
    }
}
