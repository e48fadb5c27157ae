use super::*;
use crate::artefact::ANY_KIND;
use std::fs;
use std::sync::Barrier;

/// Kinds with one, two and three uses.
static KINDS: [Kind; 3] = [
    Kind { uses: Some(1), ..ANY_KIND },
    Kind { uses: Some(2), ..ANY_KIND },
    Kind { uses: Some(3), ..ANY_KIND },
];

/// A folder with a ledger, and the ledger's id.
fn ledger() -> (tempfile::TempDir, Ledger, Id) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("ledger"));
    let id = ledger.id_or_new(&mut Prng::from_os().unwrap(), &|| Ok(())).unwrap();
    (folder, ledger, id)
}

fn enter(ledger: &Ledger, ticket: &Ticket) -> Result<()> {
    ledger.enter(ticket, Path::new("the file"), &|| Ok(()))
}

/// The lines of a ledger after its first one.
fn entries(ledger: &Ledger) -> Vec<String> {
    fs::read_to_string(&ledger.0).unwrap().lines().skip(1).map(|line| line[..ID].to_string()).collect()
}

#[test]
fn each_use_is_entered_and_the_one_too_many_refused() {
    let (_folder, ledger, id) = ledger();
    let mut lines = 0;
    for (kind, file) in KINDS.iter().zip(1..) {
        let ticket = Ticket { kind, file: [file; 16], ledger: id };
        // Uses of another file do not count.
        let beside = Ticket { kind: &KINDS[2], file: [file + 100; 16], ledger: id };
        enter(&ledger, &beside).unwrap();
        lines += 1;
        for _ in 0..kind.uses.unwrap() {
            ledger.check(&ticket, Path::new("the file")).unwrap();
            enter(&ledger, &ticket).unwrap();
            lines += 1;
            assert_eq!(entries(&ledger).len(), lines);
            assert_eq!(entries(&ledger)[lines - 1], format!("{file:02x}").repeat(16));
        }
        for e in [ledger.check(&ticket, Path::new("the file")), enter(&ledger, &ticket)] {
            let Err(Error::Input(e)) = e else { panic!() };
            let words = match kind.uses.unwrap() {
                1 => "it was used before: a thing of a test is for one run".into(),
                uses => format!("it was used up before: it is for {uses} runs"),
            };
            assert!(e.file == "the file" && e.what.contains(&words), "{e:?}");
            assert!(e.next.contains(kind.made_by), "{e:?}");
        }
        assert_eq!(entries(&ledger).len(), lines);
        enter(&ledger, &beside).unwrap();
        lines += 1;
    }
}

/// Each thread locks a file that it opened itself, as separate processes do.
#[test]
fn of_many_that_use_a_file_at_once_as_many_succeed_as_it_has_uses() {
    let (_folder, ledger, id) = ledger();
    for (kind, file) in KINDS.iter().zip(1..) {
        let ticket = Ticket { kind, file: [file; 16], ledger: id };
        let start = Barrier::new(8);
        let used = std::thread::scope(|s| {
            let one = || {
                start.wait();
                enter(&ledger, &ticket).is_ok()
            };
            let threads: Vec<_> = (0..8).map(|_| s.spawn(one)).collect();
            threads.into_iter().map(|t| u32::from(t.join().unwrap())).sum::<u32>()
        });
        let line = format!("{file:02x}").repeat(16);
        let lines = entries(&ledger).into_iter().filter(|l| *l == line).count();
        assert_eq!((used, lines), (kind.uses.unwrap(), kind.uses.unwrap() as usize));
    }
}

#[test]
fn a_use_is_refused_where_the_ledger_is_lost_foreign_or_damaged() {
    let (_folder, ledger, id) = ledger();
    let ticket = Ticket { kind: &KINDS[2], file: [1; 16], ledger: id };
    enter(&ledger, &ticket).unwrap();
    let foreign = Ticket { ledger: [2; 16], ..ticket };
    assert!(
        matches!(enter(&ledger, &foreign), Err(Error::Input(e)) if e.what.contains("a ledger other than"))
    );
    let good = fs::read(&ledger.0).unwrap();
    fs::write(&ledger.0, [&good[..], b"x"].concat()).unwrap();
    assert!(matches!(enter(&ledger, &ticket), Err(Error::Output(e)) if e.contains("is damaged")));
    fs::remove_file(&ledger.0).unwrap();
    assert!(matches!(enter(&ledger, &ticket), Err(Error::Output(e)) if e.contains("there is no ledger")));
    // The restored ledger knows of the first use.
    fs::write(&ledger.0, &good).unwrap();
    let used = [(); 3].map(|()| enter(&ledger, &ticket).is_ok());
    assert_eq!((used, entries(&ledger).len()), ([true, true, false], 3));
}

#[test]
fn a_bit_that_the_disk_changes_makes_no_used_half_a_new_one() {
    let (_folder, ledger, id) = ledger();
    let ticket = Ticket { kind: &KINDS[0], file: [0x5a; 16], ledger: id };
    enter(&ledger, &ticket).unwrap();
    let good = fs::read(&ledger.0).unwrap();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            fs::write(&ledger.0, &bad).unwrap();
            assert!(enter(&ledger, &ticket).is_err(), "bit {bit} of byte {at}");
            assert_eq!(fs::read(&ledger.0).unwrap(), bad);
        }
    }
    // A ledger of the first version has no checks.
    fs::write(&ledger.0, format!("veilset ledger 1 {0}\n{0}\n", "5a".repeat(16))).unwrap();
    assert!(matches!(enter(&ledger, &ticket), Err(Error::Output(e)) if e.contains("earlier version")));
}

#[test]
fn a_ledger_is_private_and_made_once_however_many_prepare() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, start) = (tempfile::tempdir().unwrap(), Barrier::new(8));
    let ledger = Ledger::at(folder.path().join("a/b/ledger"));
    let id = || {
        start.wait();
        ledger.id_or_new(&mut Prng::from_os().unwrap(), &|| Ok(())).unwrap()
    };
    let ids: Vec<_> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..8).map(|_| s.spawn(id)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0] && *id != Id::default()));
    assert_eq!(fs::metadata(&ledger.0).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
}
