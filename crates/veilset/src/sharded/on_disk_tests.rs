use super::*;
use crate::operations::{INTERSECT, Role};
use crate::party::InputTable;
use std::fs::{File, write};
use std::time::Duration;

const TEXT: &str = "k,n\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\ng,7\n";

/// A job in shards on this table.
fn party() -> (tempfile::TempDir, PartySpec) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.csv");
    write(&file, TEXT).unwrap();
    let mut party = PartySpec::new(&INTERSECT, Role::Receiver, InputTable::new(file, ["k"]));
    party.spec.terms.shards = 4;
    (folder, party)
}

fn touched(file: &Path) {
    File::options().append(true).open(file).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

/// What can happen to a file while its rows stay as many.
fn changes() -> [&'static dyn Fn(&Path); 2] {
    [&touched, &|file| write(file, TEXT.replace("c,3", "c,333")).unwrap()]
}

#[test]
fn a_file_that_changes_while_it_is_read_is_refused() {
    for change in changes() {
        let (_folder, party) = party();
        let read = |_| {
            change(&party.source.inputs[0]);
            Ok(())
        };
        let refused = OnDisk::read(&party, &Watch { read: &read, ..Watch::NONE }).err().unwrap();
        assert!(refused.to_string().contains("while it was read"), "{refused}");
    }
}

fn again(disk: &OnDisk, party: &PartySpec, during: &dyn Fn()) -> Result<u32> {
    let mut rows = 0;
    disk.again(party, &mut |_, piece| {
        rows += piece.rows() as u32;
        during();
        Ok(())
    })?;
    Ok(rows)
}

#[test]
fn a_file_that_has_changed_is_not_read_again() {
    for change in changes() {
        for during in [false, true] {
            let (_folder, party) = party();
            let disk = OnDisk::read(&party, &Watch::NONE).unwrap();
            assert_eq!(again(&disk, &party, &|| ()), Ok(7));
            let change = || change(&party.source.inputs[0]);
            let ended = match during {
                true => again(&disk, &party, &change),
                false => {
                    change();
                    again(&disk, &party, &|| panic!("it was read"))
                }
            };
            let refused = ended.unwrap_err();
            assert!(refused.to_string().contains("has changed since"), "{during}: {refused}");
        }
    }
}

#[test]
fn other_bytes_are_noticed_even_if_nothing_tells_that_a_file_has_changed() {
    let (_folder, party) = party();
    let mut disk = OnDisk::read(&party, &Watch::NONE).unwrap();
    // A row less, one more, others in place of one, another cell that is no key, and a cell that moves.
    for (text, read) in [
        (TEXT.replace("d,4\n", ""), 0),
        (TEXT.replace("g,7\n", ""), 5),
        (TEXT.replace("f,6\ng,7\n", ""), 5),
        (format!("{TEXT}h,8\n"), 5),
        (format!("{TEXT}h,8\ni,9\nj,10\nk,11\n"), 5),
        (TEXT.replace("d,4\n", "d,4\nx,9\n"), 0),
        (TEXT.replace("c,3", "c,7"), 0),
        (TEXT.replace("f,6\ng,7", "f,7\ng,6"), 5),
        (TEXT.replace("a,1\n", "a,1b\n").replace("b,2", ",2"), 0),
    ] {
        write(&party.source.inputs[0], &text).unwrap();
        disk.files = Files::of(&party.source.inputs).unwrap();
        let rows = std::cell::Cell::new(0);
        let ended = disk.again(&party, &mut |_, piece| {
            rows.set(rows.get() + piece.rows());
            Ok(())
        });
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("other bytes were read") && error.contains("table.csv"), "{text}: {error}");
        assert_eq!(rows.get(), read, "{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_stamp_tells_files_apart_that_are_made_to_look_the_same() {
    let (folder, party) = party();
    let file = &party.source.inputs[0];
    touched(file);
    let then = Stamp::of(file).unwrap();
    assert!(then == Stamp::of(file).unwrap());
    // Another file of its length and time, in its place.
    let other = folder.path().join("other.csv");
    write(&other, TEXT.replace("c,3", "c,4")).unwrap();
    touched(&other);
    std::fs::rename(&other, file).unwrap();
    let replaced = Stamp::of(file).unwrap();
    assert!(replaced.2[1] != then.2[1] && replaced != then);
    // Written over, with the time set back.
    std::thread::sleep(Duration::from_millis(50));
    write(file, TEXT).unwrap();
    touched(file);
    let written = Stamp::of(file).unwrap();
    assert!((written.0, written.1, written.2[1]) == (replaced.0, replaced.1, replaced.2[1]));
    assert!(written != replaced);
}

#[test]
fn a_key_that_comes_again_in_a_later_piece_belongs_to_its_first_row() {
    let (_folder, mut party) = party();
    party.source.duplicates = Some(Duplicates::All);
    // Pieces of five rows.
    let keys = ["a", "b", "c", "a", "d", "e", "b", "b", "f", "a", "g", "b", "e"];
    write(&party.source.inputs[0], format!("k\n{}\n", keys.join("\n"))).unwrap();
    let disk = OnDisk::read(&party, &Watch::NONE).unwrap();
    assert_eq!((disk.rows, disk.stored.len()), (13, 7));
    assert_eq!(disk.repeated, [(0, 3), (1, 6), (1, 7), (0, 9), (1, 11), (5, 12)]);
    assert!((0..13).filter(|&row| disk.first.get(row)).eq([0, 1, 2, 4, 5, 8, 10]));
    assert_eq!(disk.with_repeated(&[1, 2, 5]), (vec![1, 2, 5, 6, 7, 11, 12], vec![0, 1, 2, 0, 0, 0, 2]));
}

#[test]
fn a_row_of_a_later_piece_that_is_too_long_is_refused_as_in_one_run() {
    let (_folder, mut party) = party();
    (party.spec.role, party.spec.sent_columns, party.spec.terms.max_row) =
        (Role::Sender, vec!["n".into()], 4);
    assert!(OnDisk::read(&party, &Watch::NONE).is_ok());
    write(&party.source.inputs[0], TEXT.replace("g,7", "g,77777")).unwrap();
    let refused = OnDisk::read(&party, &Watch::NONE).err().unwrap().to_string();
    assert!(refused.contains("`max_row`") && refused.contains("line 8"), "{refused}");
    party.spec.terms.shards = 0;
    assert_eq!(party.load(&Watch::NONE).err().unwrap().to_string(), refused);
}
