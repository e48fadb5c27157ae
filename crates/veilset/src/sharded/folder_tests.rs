use super::*;
use crate::item::Items;
use crate::operations::intersect::Matching;
use crate::operations::union::rows::New;
use crate::testing::SEEDS;

const SESSION: SessionId = SessionId::of([5; 32]);

fn head() -> FolderHead {
    FolderHead {
        session: *SESSION.as_bytes(),
        key: [7; 32],
        shards: 4,
        choice: ("vole".into(), "ristretto255".into()),
        same: vec![("`max_row`".into(), "64".into())],
        set: [8; 32],
        theirs: (1000, true),
    }
}

fn results() -> [Learned; 4] {
    let items: Items = ["a", "", "bcd"].iter().collect();
    [
        Learned::Nothing,
        Learned::Matching(Matching { positions: vec![1, 5, 9], payloads: items.clone() }),
        Learned::New(New { items: items.clone(), payloads: Items::new() }),
        Learned::Union(items),
    ]
}

/// A job with the results of all shards but the last.
fn begun(path: &Path, identity: &Identity) {
    let rng = &mut Prng::from_seed(&SEEDS[0]);
    let folder = JobFolder::open(path, false, identity).unwrap();
    assert!(folder.head().is_none() && folder.kept().is_empty());
    folder.begin(&head(), identity, rng).unwrap();
    for (shard, learned) in (0..3).zip(&results()) {
        folder.attempt(shard).unwrap();
        folder.keep(&SESSION, shard, Ok(learned.clone()), identity, rng).unwrap();
        assert!(folder.take(&SESSION, shard, identity).unwrap() == *learned);
    }
}

#[test]
fn what_a_job_keeps_is_there_when_it_goes_on() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    begun(&path, &identity);
    let folder = JobFolder::open(&path, true, &identity).unwrap();
    assert!(
        serde_json::to_string(folder.head().unwrap()).unwrap() == serde_json::to_string(&head()).unwrap()
    );
    assert_eq!(folder.kept(), [true, true, true, false]);
    let rng = &mut Prng::from_seed(&SEEDS[1]);
    folder.keep(&SESSION, 3, Ok(results()[3].clone()), &identity, rng).unwrap();
    for (shard, learned) in (0..4).zip(results()) {
        assert!(folder.take(&SESSION, shard, &identity).unwrap() == learned);
    }
    assert_eq!(folder.leftover(4).delete().unwrap(), None);
    assert!(!path.exists());
}

/// The names of the files in a folder.
fn names(path: &Path) -> Vec<String> {
    entries(path).unwrap().iter().map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn nothing_is_deleted_but_what_the_job_made() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    begun(&path, &identity);
    let folder = JobFolder::open(&path, true, &identity).unwrap();
    let inner = path.join("mine");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("0000.shard"), "mine").unwrap();
    for name in ["o.csv", "0004.shard", "0000.shard.old", "x.veilset-job-1.part"] {
        std::fs::write(path.join(name), "mine").unwrap();
    }
    // Files that a killed job may leave.
    std::fs::write(path.join(".veilset-job-1.part"), "ours").unwrap();
    let mine = ["0000.shard.old", "0004.shard", "mine", "o.csv", "x.veilset-job-1.part"];
    let left = folder.leftover(4).delete().unwrap().unwrap();
    assert!(left.contains(&path.display().to_string()) && left.ends_with(&mine.join(", ")), "{left}");
    assert_eq!(names(&path), mine);
    assert_eq!(names(&inner), ["0000.shard"]);
    drop(folder);
    assert_eq!(names(&path), mine);
}

#[test]
fn what_is_left_is_named_in_a_line() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = JobFolder::open(root.path(), false, &identity).unwrap();
    (0..9).for_each(|i| std::fs::write(root.path().join(i.to_string()), "mine").unwrap());
    assert!(folder.leftover(4).delete().unwrap().unwrap().ends_with("it: 0, 1, 2, 3, 4 and 4 more"));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_stays_and_nothing_secret_is_behind_it() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let [there, link] = ["there", "link"].map(|name| root.path().join(name));
    std::fs::create_dir(&there).unwrap();
    std::os::unix::fs::symlink(&there, &link).unwrap();
    for link in [link.clone(), root.path().join("link/")] {
        begun(&link, &identity);
        let folder = JobFolder::open(&link, true, &identity).unwrap();
        assert!(folder.leftover(4).delete().unwrap().is_some_and(|left| left.contains("link")));
        assert!(link.is_dir() && names(&there).is_empty());
    }
    // A link to a file is not an incomplete file.
    std::fs::write(root.path().join("mine"), "mine").unwrap();
    std::os::unix::fs::symlink(root.path().join("mine"), there.join(".veilset-job-1.part")).unwrap();
    assert!(
        matches!(JobFolder::open(&there, false, &identity), Err(Error::Usage(m)) if m.contains("other files"))
    );
    assert_eq!(names(&there).len(), 1);
}

#[test]
fn a_job_that_was_killed_while_its_first_file_was_written_begins_anew() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    for left in [&[][..], &[ATTEMPTS], &[".veilset-job-aB3.part"], &[ATTEMPTS, ".veilset-job-aB3.part"]] {
        std::fs::create_dir(&path).unwrap();
        left.iter().for_each(|name| std::fs::write(path.join(name), "\n1\n").unwrap());
        begun(&path, &identity);
        assert_eq!(names(&path), ["0000.shard", "0001.shard", "0002.shard", ATTEMPTS, HEAD], "{left:?}");
        let folder = JobFolder::open(&path, true, &identity).unwrap();
        assert_eq!(*folder.attempts.0.lock().unwrap(), [0, 1, 2], "{left:?}");
        assert_eq!(folder.leftover(4).delete().unwrap(), None);
    }
    // While a job runs, its part is not taken away.
    let folder = JobFolder::open(&path, false, &identity).unwrap();
    std::fs::write(path.join(".veilset-job-aB3.part"), "").unwrap();
    assert!(
        matches!(JobFolder::open(&path, false, &identity), Err(Error::Usage(m)) if m.contains("another process"))
    );
    assert_eq!(names(&path), [".veilset-job-aB3.part", ATTEMPTS]);
    drop(folder);
}

#[cfg(unix)]
#[test]
fn only_its_owner_reads_it_and_nothing_is_in_the_clear() {
    use std::os::unix::fs::PermissionsExt;
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    begun(&path, &identity);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for file in path.read_dir().unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        let bytes = std::fs::read(&file).unwrap();
        assert!(
            !bytes
                .windows(4)
                .any(|window| window == b"\x01\x00\x00\x00" || window == b"vole" || window == [7; 4])
        );
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_was_there_before_is_closed_to_others_if_it_is_used() {
    use std::fs::{Permissions, create_dir, read, remove_file, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let (path, mine) = (root.path().join("job"), root.path().join("mine"));
    create_dir(&path).unwrap();
    set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
    write(&mine, "mine").unwrap();
    for list in [false, true] {
        let place = path.join(if list { ATTEMPTS } else { "other" });
        symlink(&mine, &place).unwrap();
        assert!(
            matches!(JobFolder::open(&path, false, &identity).err(), Some(Error::Usage(m)) if m.contains("other files"))
        );
        remove_file(place).unwrap();
        assert_eq!((mode(), read(&mine).unwrap()), (0o755, b"mine".to_vec()));
    }
    begun(&path, &identity);
    assert_eq!(mode(), 0o700);
}

#[test]
fn a_folder_is_of_one_job_and_of_one_run_at_a_time() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    let refused = |path: &Path, resume, word: &str| match JobFolder::open(path, resume, &identity).map(|_| ())
    {
        Err(Error::Usage(m)) => assert!(m.contains(word), "{m}"),
        other => panic!("{other:?}"),
    };
    refused(&path, true, "no job");
    let folder = JobFolder::open(&path, false, &identity).unwrap();
    refused(&path, false, "another process");
    drop(folder);
    assert!(!path.exists(), "a job that has not begun leaves its folder behind");
    begun(&path, &identity);
    refused(&path, false, "already");
    let folder = JobFolder::open(&path, true, &identity).unwrap();
    refused(&path, true, "another process");
    drop(folder);
    let mine = tempfile::tempdir().unwrap();
    std::fs::write(mine.path().join("mine.csv"), "a\n").unwrap();
    refused(mine.path(), false, "other files");
    assert!(matches!(JobFolder::open(&root.path().join("no/job"), false, &identity), Err(Error::Output(_))));
}

#[test]
fn what_was_changed_exchanged_or_is_of_another_identity_is_refused_and_what_is_missing_runs_again() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    begun(&path, &identity);
    let open = || JobFolder::open(&path, true, &identity).map(|folder| folder.kept().to_vec());
    let whole = |file: &Path| std::fs::read(file).unwrap();
    for name in ["job", "0001.shard"] {
        let file = path.join(name);
        let bytes = whole(&file);
        for at in [0, 20, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            std::fs::write(&file, changed).unwrap();
            let next = if name == "job" { "whole folder" } else { crate::spelling::RESUME.marked() };
            match open() {
                Err(Error::Input(e)) if !e.what.contains("damaged") || e.next.contains(next) => {}
                other => panic!("{name} {at}: {other:?}"),
            }
        }
        std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        assert!(matches!(open(), Err(Error::Input(_))), "{name}");
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(open(), Ok(vec![true, true, true, false]));
    }
    let [first, second] = ["0001.shard", "0002.shard"].map(|name| path.join(name));
    let bytes = whole(&first);
    std::fs::copy(&second, &first).unwrap();
    assert!(matches!(open(), Err(Error::Input(e)) if e.what.contains("another shard")));
    std::fs::write(&first, &bytes).unwrap();
    // The same shard of another job.
    let other = root.path().join("other");
    let rng = &mut Prng::from_seed(&SEEDS[1]);
    let folder = JobFolder::open(&other, false, &identity).unwrap();
    folder.keep(&SessionId::of([6; 32]), 1, Ok(results()[1].clone()), &identity, rng).unwrap();
    std::fs::copy(other.join("0001.shard"), &first).unwrap();
    assert!(matches!(open(), Err(Error::Input(e)) if e.what.contains("job")));
    std::fs::remove_file(&first).unwrap();
    assert_eq!(open(), Ok(vec![true, false, true, false]));
    let stranger = Identity::generate().unwrap();
    assert!(matches!(JobFolder::open(&path, true, &stranger), Err(Error::Input(_))));
}

#[test]
fn a_shard_is_begun_a_few_times_only_and_its_list_is_whole() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    begun(&path, &identity);
    for _ in 0..MOST_ATTEMPTS {
        JobFolder::open(&path, true, &identity).unwrap().attempt(3).unwrap();
    }
    let folder = JobFolder::open(&path, true, &identity).unwrap();
    assert!(matches!(folder.attempt(3), Err(Error::Refused(m)) if m.contains("begun 5 times")));
    // Other shards are counted separately.
    folder.attempt(2).unwrap();
    drop(folder);
    let list = path.join("attempts");
    let text = std::fs::read_to_string(&list).unwrap();
    // A line that was cut off does not run into the next.
    std::fs::write(&list, format!("{text}3")).unwrap();
    JobFolder::open(&path, true, &identity).unwrap().attempt(1).unwrap();
    assert!(std::fs::read_to_string(&list).unwrap().ends_with(&format!("3\n{}\n", line(1))));
    let begun = |bytes: &[u8]| {
        std::fs::write(&list, bytes).unwrap();
        let folder = JobFolder::open(&path, true, &identity)?;
        Ok(folder.attempts.0.lock().unwrap().clone())
    };
    assert_eq!(begun(format!("{text}000").as_bytes()), Ok(vec![0, 1, 2, 3, 3, 3, 3, 3, 2]));
    // No bit that changes on disk turns an attempt into one of another shard, or removes it.
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut bad = text.clone().into_bytes();
            bad[at] ^= 1 << bit;
            let found = begun(&bad);
            let harmless = text.as_bytes()[at] == b'\n'
                && found.as_ref().is_ok_and(|all| *all == [0, 1, 2, 3, 3, 3, 3, 3, 2]);
            assert!(harmless || matches!(found, Err(Error::Input(_))), "bit {bit} of byte {at}");
        }
    }
    std::fs::remove_file(&list).unwrap();
    assert!(matches!(JobFolder::open(&path, true, &identity), Err(Error::Output(_))));
}

#[test]
fn what_a_peer_did_wrong_is_kept_and_told_only_with_the_result() {
    let identity = Identity::generate().unwrap();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("job");
    begun(&path, &identity);
    let rng = &mut Prng::from_seed(&SEEDS[1]);
    let folder = JobFolder::open(&path, true, &identity).unwrap();
    let lie = Error::misbehaves_unseen("it lied");
    folder.keep(&SESSION, 3, Err(lie.clone()), &identity, rng).unwrap();
    assert!(folder.keep(&SESSION, 3, Err(Error::Cancelled), &identity, rng).is_err());
    drop(folder);
    let folder = JobFolder::open(&path, true, &identity).unwrap();
    assert_eq!(folder.kept(), [true; 4]);
    assert!(folder.take(&SESSION, 3, &identity) == Err(lie));
}
