//! A system that gives the program few threads.

use crate::common::{World, after, csv, run};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A user that nobody is.
const USER: u32 = 54_321;

#[test]
fn threads_that_cannot_be_had_are_an_error_and_no_panic() {
    let world = World::new();
    // The limit is of a user, and only root can be one who has no other processes.
    if world.path(".").metadata().unwrap().uid() != 0 {
        return;
    }
    // Where that user can read it.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("veilset");
    std::fs::copy(env!("CARGO_BIN_EXE_veilset"), &program).unwrap();
    std::fs::write(folder.path().join("f.csv"), csv(0..3)).unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(USER), Some(USER)).unwrap();
    let of_user = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).current_dir(folder.path());
        command.env("XDG_CONFIG_HOME", &home).env("XDG_STATE_HOME", &home);
        command
    };
    let with = |threads: u32, words: &[&str]| {
        let mut limited = after(&format!("ulimit -u {threads}"), &of_user(words));
        run(limited.uid(USER).gid(USER))
    };
    let identity = run(of_user(&["identity", "new"]).uid(USER).gid(USER)).good();
    assert!(!identity.is_empty() && Path::new(&home).join("veilset/identity.pem").exists());
    let peer = &world.fingerprints[0];
    let nobody_there: &[&str] = &[
        "count",
        "f.csv",
        "--key",
        "id",
        "--role",
        "receiver",
        "--peer",
        peer,
        "--listen",
        "127.0.0.1:0",
        "--connect-timeout",
        "1",
        "--threads",
        "2",
        "--allow-small",
    ];
    for (words, done) in [(&["demo"][..], 0), (&["demo", "--parties", "3"], 0), (nobody_there, 6)] {
        let mut ends = Vec::new();
        for threads in (1..).step_by(1).take(60) {
            let ended = with(threads, words);
            assert!(!ended.err.contains("panicked"), "{words:?}, {threads} threads: {}", ended.err);
            ends.push(ended.code);
            match ended.code {
                Some(code) if code == done => break,
                _ => ended.bad(2, &["thread"]),
            }
        }
        assert_eq!(ends.last(), Some(&Some(done)), "{words:?}: {ends:?}");
        assert!(ends.len() > 2, "{words:?}: {ends:?}");
    }
}
