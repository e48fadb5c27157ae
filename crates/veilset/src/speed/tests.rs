//! Tests of measuring, storing and checking speeds.

use super::*;
use crate::error::Error;

fn speeds() -> Speeds {
    Speeds::new(std::array::from_fn(|i| 1000 * (i as u64 + 1)), 2).unwrap()
}

#[test]
fn time_is_that_of_all_primitives() {
    let work = Work::of(Primitive::Curve25519, 3_000_000) + Work::of(Primitive::StoreRow, 1_000_000);
    let [curve, row] =
        [Primitive::Curve25519, Primitive::StoreRow].map(|p| speeds().picoseconds(p) as f64 / 1e6);
    // A row depends on the one before, so it does not get faster with more threads.
    assert!((speeds().seconds(&work) - (1.5 * curve + row)).abs() < 1e-9);
    assert_eq!(speeds().seconds(&Work::default()), 0.0);
}

#[test]
fn names_are_different_and_in_the_order_of_the_numbers() {
    let names: std::collections::HashSet<_> = Primitive::ALL.map(Primitive::name).into();
    assert_eq!(names.len(), COUNT);
    assert!(Primitive::ALL.into_iter().enumerate().all(|(i, primitive)| primitive as usize == i));
}

#[test]
fn absurd_speeds_are_refused() {
    for time in [0, MOST + 1, u64::MAX] {
        let mut all = [1000; COUNT];
        all[3] = time;
        let refused = Speeds::new(all, 1).unwrap_err();
        assert!(
            refused.contains(&time.to_string()) && refused.contains(Primitive::ALL[3].name()),
            "{refused}"
        );
    }
    assert!(Speeds::new([1; COUNT], 0).is_err());
    assert!(Speeds::new([MOST; COUNT], 1).is_ok());
}

#[test]
fn a_file_is_of_this_machine_or_of_no_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/speeds.json");
    assert_eq!(load(&path, 2), Ok(None));
    save(&path, &speeds()).unwrap();
    assert_eq!(load(&path, 2), Ok(Some(speeds())));
    let text = std::fs::read_to_string(&path).unwrap();
    let machine = serde_json::to_string(&this_machine()).unwrap();
    let other_build = match cfg!(debug_assertions) {
        true => env!("CARGO_PKG_VERSION"),
        false => concat!(env!("CARGO_PKG_VERSION"), " (not optimised)"),
    };
    let changes = [
        (machine.as_str(), "\"another\"", "another machine"),
        (env!("CARGO_PKG_VERSION"), "9.9.9", "another version or build"),
        // An optimised program does not trust measurements of an unoptimised one, nor vice versa.
        (file::VERSION, other_build, "another version or build"),
        ("\"tag\"", "\"tig\"", "damaged"),
        ("\"tag\": 12000", "\"tag\": 0", "damaged"),
        ("{", "", "damaged"),
    ];
    for (from, to, why) in changes {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        std::fs::write(&path, changed).unwrap();
        let said = load(&path, 2).unwrap_err();
        assert!(said.contains(why) && said.contains("veilset calibrate"), "{said}");
    }
    std::fs::write(&path, vec![b' '; 1 << 17]).unwrap();
    assert!(load(&path, 2).is_err());
}

#[test]
fn no_file_of_something_else_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours");
    for text in
        ["id,name\n1,x\n", "{}", "[]", "\u{0}", r#"{"version": "1", "machine": 5, "picoseconds": {}}"#]
    {
        std::fs::write(&path, text).unwrap();
        let refused = check_place(&path).unwrap_err();
        assert!(matches!(&refused, Error::Usage(said) if said.contains("no file of speeds")), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    // Speeds of another version and machine are of no use, so nothing is lost with them; nor with an empty file.
    for text in ["", r#"{"version": "9", "machine": {"age": 5}, "picoseconds": {"tug": 1}, "more": true}"#] {
        std::fs::write(&path, text).unwrap();
        check_place(&path).unwrap();
    }
    check_place(&folder.path().join("none")).unwrap();
}

/// All primitives are measured, and the measured times are used. The test does not depend on their values.
#[test]
fn this_machine_is_measured() {
    let mut told = Vec::new();
    let measured = measure(3, &mut |primitive| told.push(primitive)).unwrap();
    assert_eq!(measured.threads, 3);
    let built_in = Speeds::built_in(3);
    for primitive in Primitive::ALL {
        let known = [Primitive::Bfv, Primitive::Kilobyte].contains(&primitive);
        let [measured, built_in] = [measured, built_in].map(|s| s.picoseconds(primitive));
        assert!(known || told.contains(&primitive) && measured != built_in, "{primitive:?}: {measured}");
    }
}

/// Measurements of a busy machine: the known part took longer than the whole.
#[test]
fn a_difference_is_never_nothing() {
    let built_in = 24_000;
    for (seconds, known, n, one) in [
        // The normal case: a thousand take a millisecond.
        (5e-3, 4e-3, 1000, 1_000_000),
        (5e-3, 4e-3, 100_000, 10_000),
        // An eighth of the built-in time, however small the difference is.
        (4.2e-3, 4e-3, 100_000, 3000),
        (4e-3, 4e-3, 100_000, 3000),
        (1e-3, 4e-3, 100_000, 3000),
        (0.0, 4e-3, 0, 3000),
    ] {
        assert_eq!(measure::left(seconds, known, n, built_in), one, "{seconds} {known} {n}");
    }
    for primitive in Primitive::ALL {
        assert!(measure::left(1.0, 2.0, 1, Speeds::built_in(1).picoseconds(primitive)) > 0, "{primitive:?}");
    }
    // For a primitive that takes two nanoseconds, a calibration prints more than 0.00.
    assert!(measure::left(1.0, 2.0, 1, 2000) >= 250);
}

#[test]
fn times_are_of_one_in_picoseconds() {
    for (seconds, n, one) in
        [(3e-6, 2, 1_500_000), (1.0, 1 << 19, 1_907_349), (0.0, 5, 1), (-1e-9, 1, 1), (2e-12, 0, 2)]
    {
        assert_eq!(measure::picoseconds(seconds, n), one);
    }
}
