//! Systems that limit the number of threads.

use crate::common::{World, csv, run};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A user id that is not in use.
const USER: u32 = 54_321;

#[test]
fn threads_that_cannot_be_had_are_an_error_and_no_panic() {
    let world = World::new();
    // The limit applies to a user, and only root can become one without other processes.
    if world.path(".").metadata().unwrap().uid() != 0 {
        return;
    }
    // The folder must be readable by that user.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("veilset");
    std::fs::copy(env!("CARGO_BIN_EXE_veilset"), &program).unwrap();
    std::fs::write(folder.path().join("f.csv"), csv(0..3)).unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(USER), Some(USER)).unwrap();
    let of_user = |words: &[&str], threads: u32| {
        // Not every sh supports this limit.
        let mut command = Command::new("bash");
        command
            .args(["-c", "ulimit -u \"$0\" && exec \"$@\"", &threads.to_string()])
            .arg(&program)
            .args(words);
        command.current_dir(folder.path()).env("XDG_CONFIG_HOME", &home).env("XDG_STATE_HOME", &home);
        run(command.uid(USER).gid(USER))
    };
    of_user(&["identity", "new"], 9).good();
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
    // Among two parties in one process, one may see only that the other is gone.
    for (words, done, ends) in [
        (&["demo"][..], 0, &[2, 5, 6][..]),
        (&["demo", "--parties", "3"], 0, &[2, 5, 6]),
        (nobody_there, 6, &[2]),
    ] {
        let mut codes = Vec::new();
        for threads in 1..100 {
            let ended = of_user(words, threads);
            assert!(!ended.err.contains("panicked"), "{words:?}, {threads} threads: {}", ended.err);
            codes.extend(ended.code);
            match ended.code {
                Some(code) if code == done => break,
                Some(code) => assert!(ends.contains(&code), "{words:?}, {threads} threads: {}", ended.err),
                None => panic!("{words:?}, {threads} threads: {}", ended.err),
            }
            if ended.code == Some(2) {
                ended.bad(2, &["thread", "ulimit -u"]);
            }
        }
        assert!(codes.last() == Some(&done) && codes[0] == 2 && codes.len() > 2, "{words:?}: {codes:?}");
    }
}
