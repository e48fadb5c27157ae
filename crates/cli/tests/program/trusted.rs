//! Files that determine whom we trust, and that others can change.

use crate::common::{Ended, SENDER, World, csv, run};
use std::fs::{Permissions, create_dir, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

/// The kinds of files that determine whom we trust.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Policy,
    Book,
    RunFile,
    Parties,
    Check,
    Identity,
    Log,
}
use Kind::{Book, Check, Identity, Log, Parties, Policy, RunFile};

const ALL: [Kind; 7] = [Policy, Book, RunFile, Parties, Check, Identity, Log];

impl Kind {
    /// Returns the name that messages use.
    fn name(self) -> &'static str {
        match self {
            Policy => "the policy",
            Book => "the address book",
            RunFile => "the run file",
            Parties => "the list of parties",
            Check => "the check",
            Identity => "the identity",
            Log => "the audit log",
        }
    }

    fn write(self, world: &World, path: &Path) {
        let [r, s] = &world.fingerprints;
        let text = match self {
            Policy | Book | Check | Log => String::new(),
            RunFile => format!(
                "operation = \"count\"\ninput = \"{0}/f.csv\"\nkey = \"id\"\nrole = \"sender\"\npeer = \"{r}\"\n\
                 identity = \"{0}/s.pem\"\nlisten = \"127.0.0.1:0\"\nconnect-timeout = 1\n",
                world.path("").display()
            ),
            Parties => format!(
                "leader = \"north\"\n\n[[party]]\nname = \"north\"\nfingerprint = \"{r}\"\naddress = \"127.0.0.1:1\"\n\n\
                 [[party]]\nname = \"south\"\nfingerprint = \"{s}\"\n"
            ),
            Identity => world.read("s.pem"),
        };
        std::fs::write(path, text).unwrap();
        set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }

    /// Runs with this file and without a peer, so it ends with code 6 unless the file is refused.
    fn run(self, world: &World, path: &str) -> Ended {
        let file = world.path("f.csv");
        let nobody = ["--listen", "127.0.0.1:0", "--connect-timeout", "1"];
        let party =
            |more: &[&str]| run(&mut world.party(SENDER, "count", &file, &[&nobody[..], more].concat()));
        match self {
            Policy => party(&["--policy", path]),
            Book => party(&["--book", path]),
            Check => party(&["--checked", path]),
            Log => party(&["--audit-log", path]),
            RunFile => run(world.veilset().args(["run", path])),
            Parties => {
                run(world.veilset().args(["count", "f.csv", "--key", "id", "--identity", "r.pem"]).args([
                    "--parties",
                    path,
                    "--me",
                    "north",
                    "--listen",
                    "127.0.0.1:0",
                    "--connect-timeout",
                    "1",
                ]))
            }
            Identity => {
                let words =
                    ["count", "f.csv", "--key", "id", "--role", "sender", "--peer", &world.fingerprints[0]];
                run(world.veilset().args(words).args(nobody).args(["--identity", path]))
            }
        }
    }
}

#[test]
fn what_others_can_change_is_refused_and_what_a_group_can_change_gives_a_warning() {
    let world = World::new();
    world.write("f.csv", csv(0..3));
    let root = world.path("f.csv").metadata().unwrap().uid() == 0;
    create_dir(world.path("place")).unwrap();
    symlink("place/file", world.path("link")).unwrap();
    let path = world.path("place/file");
    for kind in ALL {
        let mode = |file: u32, folder: u32| {
            set_permissions(&path, Permissions::from_mode(file)).unwrap();
            set_permissions(world.path("place"), Permissions::from_mode(folder)).unwrap();
        };
        // An empty check file is invalid, which is noticed only after its permissions are checked.
        let accepted = |ended: Ended, warning: Option<&str>| {
            let code = if kind == Check { 2 } else { 6 };
            ended.bad(code, if kind == Check { &["cannot be used"] } else { &["within 1 second"] });
            assert_eq!(
                ended.err.contains(&format!("{} ", kind.name())),
                warning.is_some() || kind == Check,
                "{}",
                ended.err
            );
            assert!(
                warning.is_none_or(|words| ended.err.contains(words) && ended.err.contains("warning: ")),
                "{}",
                ended.err
            );
        };
        let refused = |ended: Ended, words: &str| match kind {
            // The log does not prevent a run.
            Log => ended.bad(6, &["warning: the audit log", words]),
            _ => ended.bad(2, &[kind.name(), words]),
        };
        kind.write(&world, &path);
        mode(0o600, 0o700);
        accepted(kind.run(&world, "place/file"), None);
        accepted(kind.run(&world, "link"), None);
        mode(0o600, 0o1777);
        accepted(kind.run(&world, "place/file"), None);
        mode(0o600, 0o777);
        for name in ["place/file", "link"] {
            refused(kind.run(&world, name), "where every user can replace it (mode 0777)");
        }
        if kind != Identity {
            mode(0o666, 0o700);
            for name in ["place/file", "link"] {
                refused(kind.run(&world, name), "can be changed by every user (mode 0666)");
            }
        } else {
            mode(0o620, 0o700);
            kind.run(&world, "place/file").bad(2, &["can be read by others (mode 0620)", "chmod 600"]);
        }
        mode(0o600, 0o700);
        if root {
            chown(&path, Some(54_321), None).unwrap();
            let ended = kind.run(&world, "place/file");
            match kind {
                // These are written by us alone.
                Book | Identity => refused(ended, "belongs to another user (54321)"),
                Check => {}
                _ => accepted(ended, Some("belongs to another user (54321)")),
            }
            chown(&path, Some(0), Some(54_321)).unwrap();
            if kind != Identity {
                mode(0o660, 0o700);
                if kind != Check {
                    accepted(kind.run(&world, "place/file"), Some("chmod g-w"));
                }
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}

/// The user did not name the run file: in a folder such as /tmp, another user may have put it there.
#[test]
fn a_run_file_of_another_user_that_nobody_named_is_refused() {
    let world = World::new();
    world.write("f.csv", csv(0..3));
    create_dir(world.path("place")).unwrap();
    set_permissions(world.path("place"), Permissions::from_mode(0o1777)).unwrap();
    let path = world.path("place/veilset.toml");
    RunFile.write(&world, &path);
    let unnamed =
        |more: &[&str]| run(world.veilset().current_dir(world.path("place")).args(["run"]).args(more));
    unnamed(&[]).bad(6, &["within 1 second"]);
    if path.metadata().unwrap().uid() == 0 {
        chown(&path, Some(54_321), None).unwrap();
        let why = "the run file veilset.toml belongs to another user (54321)";
        unnamed(&[]).bad(2, &[why]);
        unnamed(&["--force"]).bad(2, &[why]);
        let checked = run(world.veilset().current_dir(world.path("place")).args(["check", "run"]));
        checked.bad(2, &[why]);
        // A user who names the file has looked at it.
        unnamed(&["veilset.toml"]).bad(6, &["warning: ", why, "within 1 second"]);
        chown(&path, Some(0), None).unwrap();
    }
    set_permissions(&path, Permissions::from_mode(0o606)).unwrap();
    unnamed(&[]).bad(2, &["can be changed by every user (mode 0606)"]);
}

#[test]
fn whoever_could_replace_the_identity_is_told_of() {
    let world = World::new();
    world.write("f.csv", csv(0..3));
    if world.path("f.csv").metadata().unwrap().uid() != 0 {
        return; // Only root can give folders to others.
    }
    create_dir(world.path("place")).unwrap();
    let path = world.path("place/id.pem");
    Identity.write(&world, &path);
    chown(world.path("place"), Some(54_321), None).unwrap();
    let words = ["warning: the identity ", "whose owner (54321) can replace it"];
    Identity.run(&world, "place/id.pem").bad(6, &[&words[..], &["within 1 second"]].concat());
    let named = ["--identity", "place/id.pem"];
    let told = |ended: Ended| assert!(words.iter().all(|words| ended.err.contains(words)), "{}", ended.err);
    told(run(world.veilset().args(["identity", "show"]).args(named)));
    let half = ["--output", "half", "--prepared-ledger", "ledger"];
    told(run(world.veilset().args(["prepare", "f.csv", "--key", "id"]).args(named).args(half)));
    let peer = ["peer", "add", "south", &world.fingerprints[0], "--book", "book.toml"];
    told(run(world.veilset().args(peer).args(named)));
}

#[test]
fn an_address_book_that_others_can_change_is_not_changed() {
    let world = World::new();
    let book = world.write("book.toml", "");
    set_permissions(&book, Permissions::from_mode(0o666)).unwrap();
    let s = &world.fingerprints[1];
    for words in [&["add", "south", s][..], &["list"], &["remove", "south"]] {
        run(world.veilset().arg("peer").args(words).args(["--book", "book.toml"]))
            .bad(2, &["the address book book.toml can be changed by every user", "chmod o-w book.toml"]);
    }
    assert_eq!(world.read("book.toml"), "");
}
