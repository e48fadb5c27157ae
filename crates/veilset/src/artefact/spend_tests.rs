//! Tests of spending a half.

use super::*;
use std::fs;
use std::sync::Mutex;

/// Spends a half; also returns the warnings.
fn spend_and_hear(half: Half) -> (Result<Offline>, String) {
    let mut heard = String::new();
    let spent = half.spend(&|| Ok(()), &mut |text| heard += text);
    (spent, heard)
}

/// The number of a ledger's lines after its first one.
fn entries(place: &Place) -> usize {
    fs::read_to_string(place.path("state/ledger")).unwrap().lines().count() - 1
}

#[test]
fn a_half_is_spent_once_whatever_copies_there_are() {
    let (place, set) = (Place::new(), items(0, 3));
    let basis = basis(&set);
    let (path, copy) = (place.prepare("half", &basis), place.path("copy"));
    fs::copy(&path, &copy).unwrap();
    let link = place.path("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let (_, early) = place.open(&copy, &basis).unwrap();
    spend(place.open(&link, &basis).unwrap().1).unwrap();
    assert!(!path.exists());
    assert!(place.refused(&path, &basis).contains("One that was used is gone"));
    // A half that was read earlier, and restored copies.
    assert!(spend(early).is_err_and(|e| e.to_string().contains("it was used before")));
    fs::copy(&copy, &path).unwrap();
    for name in [&path, &copy] {
        let e = place.refused(name, &basis);
        assert!(e.contains("it was used before") && e.contains("veilset prepare"), "{e}");
    }
    // A different half is not affected.
    spend(place.open(&place.prepare("next", &basis), &basis).unwrap().1).unwrap();
    assert_eq!(entries(&place), 2);
}

#[test]
fn of_many_that_spend_copies_at_once_one_succeeds() {
    let (place, set) = (Place::new(), items(0, 1));
    let basis = basis(&set);
    let path = place.prepare("half", &basis);
    let halves: Vec<Half> = (0..8)
        .map(|i| {
            let copy = place.path(&i.to_string());
            fs::copy(&path, &copy).unwrap();
            place.open(&copy, &basis).unwrap().1
        })
        .collect();
    let start = Barrier::new(halves.len());
    let spent = std::thread::scope(|s| {
        let spend = |half: Half| {
            let start = &start;
            s.spawn(move || {
                start.wait();
                spend(half).is_ok()
            })
        };
        let threads: Vec<_> = halves.into_iter().map(spend).collect();
        threads.into_iter().map(|t| usize::from(t.join().unwrap())).sum::<usize>()
    });
    assert_eq!(spent, 1);
}

#[test]
fn a_crash_between_the_ledger_and_the_file_burns_the_half() {
    let (place, set) = (Place::new(), items(0, 3));
    let basis = basis(&set);
    let path = place.prepare("half", &basis);
    let (_, half) = place.open(&path, &basis).unwrap();
    half.ledger.enter(&half.ticket, &path, &|| Ok(())).unwrap();
    drop(half);
    assert!(place.refused(&path, &basis).contains("it was used before"));
}

#[test]
fn without_a_sound_ledger_no_half_is_used() {
    let (place, set) = (Place::new(), items(0, 3));
    let basis = basis(&set);
    let path = place.prepare("half", &basis);
    let (_, half) = place.open(&path, &basis).unwrap();
    let ledger = place.path("state/ledger");
    let refused = |half: Result<Half>| match half.and_then(spend) {
        Err(Error::Output(e)) => e,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let open = || place.open(&path, &basis).map(|(_, half)| half);
    let first = fs::read_to_string(&ledger).unwrap();
    let id = "0123456789abcdef0123456789abcdef";
    let line = &format!("{id}{}\n", crate::places::check_of(id.as_bytes()));
    for bad in [
        "x",
        "\n",
        "0",
        &line[..40],
        &format!("{id}\n"),
        &line.to_uppercase(),
        &format!("{line}0"),
        &format!("\n{line}"),
    ] {
        fs::write(&ledger, format!("{first}{bad}")).unwrap();
        let e = refused(open());
        assert!(e.contains("is damaged") && e.contains("Delete all halves"), "{e}");
    }
    // A file of any other kind must stay untouched.
    for other in [
        "",
        "alice\nbob\n",
        line,
        &first[..20],
        &first[..57],
        &first.replacen("ledger 2", "ledger 3", 1),
        &first[1..],
    ] {
        fs::write(&ledger, other).unwrap();
        let mut output = Destination::create("prepared half", Some(&place.path("new")), false).unwrap();
        let rng = &mut Prng::from_os().unwrap();
        let made = prepare(&basis, &place.ledger(), &IDENTITY, &mut output, &|_| Ok(()), rng);
        for e in [refused(open()).to_string(), made.unwrap_err().to_string()] {
            assert!(e.contains("is not a ledger") && e.contains("Check `prepared_ledger`"), "{e}");
            assert!(!e.to_lowercase().contains("delete"), "{e}");
        }
        assert_eq!(fs::read_to_string(&ledger).unwrap(), other);
    }
    fs::remove_file(&ledger).unwrap();
    fs::create_dir(&ledger).unwrap();
    for e in [refused(open()), refused(Ok(half))] {
        assert!(e.contains("cannot be used") && e.contains("without `prepared`"), "{e}");
    }
    fs::remove_dir(&ledger).unwrap();
    fs::write(&ledger, format!("{first}{line}")).unwrap();
    spend(open().unwrap()).unwrap();
    assert_eq!(entries(&place), 2);
}

#[test]
fn a_half_is_used_with_its_own_ledger_only() {
    let (place, other, set) = (Place::new(), Place::new(), items(0, 3));
    let basis = basis(&set);
    let path = place.prepare("half", &basis);
    other.prepare("half", &basis);
    let ledger = place.path("state/ledger");
    let early = || place.open(&path, &basis).unwrap().1;
    let (first, second) = (early(), early());
    // The ledger is missing, and a run does not create one.
    fs::rename(&ledger, place.path("away")).unwrap();
    for refused in [place.open(&path, &basis).err(), spend(first).err()] {
        let Some(Error::Output(e)) = refused else { panic!() };
        assert!(e.contains("there is no ledger") && e.contains("`prepared_ledger=FILE`"), "{e}");
    }
    assert!(!ledger.exists());
    // A different ledger, which is intact.
    fs::copy(other.path("state/ledger"), &ledger).unwrap();
    for refused in [place.open(&path, &basis).err(), spend(second).err()] {
        let Some(Error::Input(e)) = refused else { panic!() };
        assert!(
            e.what.contains("made with a ledger other than")
                && crate::spelling::plain(&e.next).contains("`prepared_ledger`"),
            "{e:?}"
        );
    }
    assert_eq!(entries(&place), 0);
    fs::rename(place.path("away"), &ledger).unwrap();
    spend(early()).unwrap();
}

#[test]
fn a_file_that_took_the_name_of_a_half_stays() {
    let (place, set) = (Place::new(), items(0, 3));
    let basis = basis(&set);
    // Replaced, as `prepare --force` does; overwritten, as `cp` does; moved away; moved with a link left behind.
    for way in 0..4 {
        let path = place.prepare("half", &basis);
        let (_, half) = place.open(&path, &basis).unwrap();
        let away = place.path("away");
        match way {
            0 => fs::rename(place.prepare("next", &basis), &path).unwrap(),
            1 => fs::write(&path, fs::read(place.prepare("next", &basis)).unwrap()).unwrap(),
            2 => fs::rename(&path, &away).unwrap(),
            _ => {
                fs::rename(&path, &away).unwrap();
                std::os::unix::fs::symlink(&away, &path).unwrap();
            }
        }
        let (spent, heard) = spend_and_hear(half);
        assert_eq!(spent.unwrap().points.len(), 3 * 32);
        assert!(heard.contains("moved, deleted or replaced") && heard.contains("It is spent"), "{heard}");
        let _ = fs::remove_file(place.path("next"));
        if way < 2 {
            spend(place.open(&path, &basis).unwrap().1).unwrap();
            continue;
        }
        assert!(place.refused(&away, &basis).contains("it was used: nothing is left in it"));
        assert_eq!(path.symlink_metadata().is_ok(), way == 3);
        let _ = (fs::remove_file(&path), fs::remove_file(&away));
    }
}

#[test]
fn a_hard_link_to_a_half_is_worth_nothing_once_it_is_spent() {
    let place = Place::new();
    for n in [0, 3, 2 * CONTENTS / 32] {
        let set = items(0, n);
        let basis = basis(&set);
        let (path, link) = (place.prepare("half", &basis), place.path("link"));
        fs::hard_link(&path, &link).unwrap();
        let length = fs::metadata(&link).unwrap().len();
        spend(place.open(&path, &basis).unwrap().1).unwrap();
        assert!(!path.exists());
        let left = fs::read(&link).unwrap();
        // The head and the first frame, which has both keys.
        assert_eq!(left.len() as u64, length);
        assert!(left.iter().take(HEAD + CONTENTS + TAG).all(|b| *b == 0));
        assert!(place.refused(&link, &basis).contains("it was used: nothing is left in it"));
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn a_half_that_could_not_be_deleted_is_refused_before_the_peer_is_met() {
    use std::os::unix::fs::PermissionsExt;
    let (place, set) = (Place::new(), items(0, 3));
    let basis = basis(&set);
    let made = place.prepare("half", &basis);
    let refused = |path: &Path| {
        let Err(Error::Output(e)) = place.open(path, &basis) else { panic!() };
        assert!(e.contains("could not be deleted") && e.contains("Move it to a folder"), "{e}");
    };
    // A folder in which not even root can create a file: its path is so long that no name but the half's fits.
    if cfg!(target_os = "linux") {
        let mut deep = place.0.path().canonicalize().unwrap();
        while deep.as_os_str().len() < 4080 {
            deep.push("d".repeat((4080 - deep.as_os_str().len()).min(200)));
        }
        fs::create_dir_all(&deep).unwrap();
        let path = deep.join("h");
        fs::copy(&made, &path).unwrap();
        refused(&path);
    }
    // A folder that we may not write to, unless we are root.
    let closed = place.path("closed");
    fs::create_dir(&closed).unwrap();
    let path = closed.join("half");
    fs::copy(&made, &path).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(closed.join("new"), "").is_err() {
        refused(&path);
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(entries(&place), 0);
    spend(place.open(&path, &basis).unwrap().1).unwrap();
}

/// A ledger that another process has locked.
fn lock(place: &Place) -> fs::File {
    let file = fs::File::open(place.path("state/ledger")).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn who_waits_for_the_ledger_can_be_stopped_and_has_spent_nothing() {
    let (place, set) = (Place::new(), items(0, 3));
    let basis = basis(&set);
    let path = place.prepare("half", &basis);
    let open = || place.open(&path, &basis).unwrap().1;
    let asked = Mutex::new(0);
    let stop = |after: usize| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        if *asked > after { Err(Error::Cancelled) } else { Ok(()) }
    };
    let halves = [open(), open(), open()];
    let locked = lock(&place);
    let [a, b, c] = halves;
    assert_eq!(a.spend(&|| stop(3), &mut |_| ()).err(), Some(Error::Cancelled));
    assert_eq!(*asked.lock().unwrap(), 4);
    // Neither opening nor spending waits forever.
    for e in [spend(b).err(), place.open(&path, &basis).err()] {
        let Some(Error::Output(e)) = e else { panic!() };
        assert!(e.contains("locked by another process") && e.contains("No half was spent"), "{e}");
    }
    drop(locked);
    // `stop` is asked once more before the entry is made.
    assert_eq!(c.spend(&|| Err(Error::Cancelled), &mut |_| ()).err(), Some(Error::Cancelled));
    assert_eq!(entries(&place), 0);
    spend(open()).unwrap();
}

#[test]
fn a_ledger_that_is_moved_while_somebody_waits_for_it_is_not_the_ledger_any_more() {
    let (place, set) = (Place::new(), items(0, 3));
    let basis = basis(&set);
    let path = place.prepare("half", &basis);
    let (_, half) = place.open(&path, &basis).unwrap();
    let ledger = place.path("state/ledger");
    let locked = Mutex::new(Some(lock(&place)));
    // The holder of the lock moves the ledger while another process waits for it.
    let moved = || {
        if let Some(lock) = locked.lock().unwrap().take() {
            fs::rename(&ledger, place.path("moved")).unwrap();
            drop(lock);
        }
        Ok(())
    };
    let Some(Error::Output(e)) = half.spend(&moved, &mut |_| ()).err() else { panic!() };
    assert!(e.contains("there is no ledger"), "{e}");
    assert!(path.exists() && !ledger.exists());
    assert_eq!(fs::read_to_string(place.path("moved")).unwrap().lines().count(), 1);
}
