use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_on_commit_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.csv");
    let mut output = Destination::create("result", Some(&path), false).unwrap();
    output.writer().write_all(b"id\n1\n").unwrap();
    assert!(!path.exists());
    output.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"id\n1\n");
    assert_eq!(names(dir.path()), ["out.csv"]);
}

#[test]
fn an_output_that_is_dropped_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = Destination::create("result", Some(&dir.path().join("out.csv")), false).unwrap();
    output.writer().write_all(&[b'x'; 3 * BUFFER + 1]).unwrap();
    assert!(names(dir.path()).iter().all(|name| name.starts_with(".veilset-")));
    drop(output);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn what_is_buffered_goes_nowhere_if_the_result_is_given_up() {
    for complete in [false, true] {
        let written = crate::testing::Shared::default();
        let sink = Sink { to: To::Stream(Box::new(written.clone())), step: None };
        let sink = BufWriter::with_capacity(BUFFER, sink);
        let mut output = Destination { sink, what: "result", path: "-".into(), force: false };
        output.writer().write_all(b"a row").unwrap();
        if complete {
            output.commit().unwrap();
        } else {
            drop(output);
        }
        assert_eq!(written.bytes(), if complete { &b"a row"[..] } else { b"" });
    }
}

#[test]
fn an_existing_file_is_refused_without_force_and_replaced_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.csv");
    fs::write(&path, "old").unwrap();
    let message = Destination::create("result", Some(&path), false).unwrap_err().to_string();
    assert!(message.contains("out.csv exists") && message.contains("`force`"), "{message}");
    let mut output = Destination::create("result", Some(&path), true).unwrap();
    output.writer().write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    output.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(dir.path()), ["out.csv"]);
}

#[test]
fn a_file_that_appears_meanwhile_is_not_overwritten_and_the_result_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.csv");
    let mut output = Destination::create("result", Some(&path), false).unwrap();
    output.writer().write_all(b"result").unwrap();
    fs::write(&path, "theirs").unwrap();
    let message = output.commit().unwrap_err().to_string();
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    let kept = names(dir.path()).into_iter().find(|n| n.starts_with(".veilset-")).unwrap();
    assert_eq!(fs::read(dir.path().join(&kept)).unwrap(), b"result");
    assert!(message.contains(&kept) && message.contains("out.csv"), "{message}");
}

#[test]
fn what_cannot_be_written_is_known_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    // (path, force, what the message says)
    let mut cases = vec![
        (dir.path().join("nowhere/out.csv"), false, "check that the directory exists"),
        (file.join("out.csv"), false, "check that the directory exists"),
        (dir.path().into(), true, "is a directory"),
        (dir.path().join(".."), true, "does not name a file"),
    ];
    if cfg!(unix) {
        let link = dir.path().join("link");
        #[cfg(unix)]
        std::os::unix::fs::symlink(&file, &link).unwrap();
        cases.push((link, true, "not a regular file"));
        cases.push(("/dev/null".into(), true, "not a regular file"));
    }
    let before = names(dir.path());
    for (path, force, expected) in cases {
        let error = Destination::create("result", Some(&path), force).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::Output(_)), "{message}");
        // For the name alone, or only when a file is made.
        let checked = Destination::check(Some(&path), force);
        assert!(checked.as_ref().is_err_and(|e| *e == error) != message.contains("check that"), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
    assert_eq!(names(dir.path()), before);
}

#[test]
fn without_a_path_the_result_goes_to_standard_output() {
    for path in [None, Some(Path::new("-"))] {
        let mut output = Destination::create("result", path, false).unwrap();
        output.writer().write_all(b"").unwrap();
        output.commit().unwrap();
    }
    // Nothing of this is printed.
    Destination::create("result", None, false).unwrap().writer().write_all(b"discarded").unwrap();
}

#[cfg(unix)]
#[test]
fn a_result_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.csv");
    Destination::create("result", Some(&path), false).unwrap().commit().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_error_of_the_watch_ends_the_writing_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let make = |steps: usize| {
        let left = std::sync::atomic::AtomicUsize::new(steps);
        let output = Destination::create("result", Some(&dir.path().join("out.csv")), false).unwrap();
        output.watched(move || {
            let before = left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            if before > 0 { Ok(()) } else { Err(Error::Cancelled) }
        })
    };
    // Within what is written in one go.
    let mut output = make(2);
    let e = output.writer().write_all(&[b'x'; 4 * BUFFER]).unwrap_err();
    assert_eq!(output.unwritable(&e), Error::Cancelled);
    drop(output);
    // When everything is written and the file has no name yet.
    let mut output = make(1);
    output.writer().write_all(b"all of it").unwrap();
    assert_eq!(output.commit(), Err(Error::Cancelled));
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_broken_pipe_is_an_output_error() {
    let e = unwritable("result", &io::ErrorKind::BrokenPipe.into());
    assert!(matches!(&e, Error::Output(m) if m.contains("stopped early")), "{e}");
}
