//! Secrets are marked as undefined for valgrind's memcheck, which tracks undefined bits through memory, registers and
//! arithmetic, and reports where a jump or an address depends on one.
//!
//! The tests run this executable again under valgrind, for one subject on one path, as the test `subject`.

use std::process::{Command, Output};

use super::{LEAKS, MOST, SUBJECTS, Subject, is_unknown_to_valgrind, random};
use std::arch::asm;
use veilset_kernels::Backend;

/// Names the subject and the path to the process under valgrind.
const VARIABLE: &str = "VEILSET_CONSTANT_TIME";

/// The exit status of valgrind if it has reported an error.
const REPORTED: i32 = 77;

// From memcheck.h.
const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;
const MAKE_MEM_DEFINED: u64 = 0x4d43_0002;
const GET_VBITS: u64 = 0x4d43_0008;

/// Sends a request to memcheck; returns 0 if it does not run (valgrind.h, `VALGRIND_DO_CLIENT_REQUEST_EXPR`).
fn request(kind: u64, address: u64, second: u64, third: u64) -> u64 {
    let question = [kind, address, second, third, 0, 0];
    let mut answer = 0;
    // SAFETY: on the processor this changes nothing but flags: rdi is rotated by 128 bits. valgrind recognises the
    // sequence and answers in rdx; it writes only to the memory passed to GET_VBITS.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") question.as_ptr(), inout("rdx") answer, options(nostack)
        );
    }
    answer
}

/// Marks bytes as secret, or as public again.
fn mark(bytes: &mut [[u8; 32]], kind: u64) {
    let bytes = bytes.as_flattened_mut();
    let answer = request(kind, bytes.as_mut_ptr() as u64, bytes.len() as u64, 0);
    assert_ne!(answer, 0, "this test is run by the others, under valgrind");
}

/// Makes the value public from here on. Without valgrind this does nothing.
pub(crate) fn declassify<T: Copy>(mut value: T) -> T {
    request(MAKE_MEM_DEFINED, (&raw mut value) as u64, size_of::<T>() as u64, 0);
    value
}

/// Returns the bits that depend on a secret as ones.
fn secret_bits(bytes: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let mut bits = vec![[0; 32]; bytes.len()];
    // The request writes `bits` completely, and nothing else.
    let answer = request(GET_VBITS, bytes.as_ptr() as u64, bits.as_mut_ptr() as u64, 32 * bits.len() as u64);
    assert_eq!(answer, 1, "all of it is addressable");
    bits
}

fn name(subject: &Subject, backend: Backend) -> String {
    format!("{} {backend:?}", subject.name)
}

/// Runs the subject and the path of [`VARIABLE`] on secrets, under valgrind.
#[test]
#[ignore = "run by the other tests, under valgrind"]
fn subject() {
    let wanted = std::env::var(VARIABLE).expect("this test is run by the others");
    let all = SUBJECTS.iter().chain(&LEAKS).flat_map(|s| s.backends.iter().map(move |b| (s, *b)));
    let (subject, backend) = all.into_iter().find(|(s, b)| name(s, *b) == wanted).unwrap();
    for (key_is_secret, data_is_secret) in [(true, true), (true, false), (false, true)] {
        if !subject.keyed && !data_is_secret {
            continue;
        }
        let (mut key, mut data) = ([[0; 32]], vec![[0; 32]; MOST]);
        random(1, &mut key);
        random(2, &mut data);
        let (mut expected, mut out) = (vec![[0; 32]; MOST], vec![[0; 32]; MOST]);
        (subject.run)(Backend::Portable, &key[0], &data, &mut expected);
        if key_is_secret {
            mark(&mut key, MAKE_MEM_UNDEFINED);
        }
        if data_is_secret {
            mark(&mut data, MAKE_MEM_UNDEFINED);
        }
        let ran = (subject.run)(backend, &key[0], &data, &mut out);
        assert_eq!(ran, backend, "the path that was forced is the one that ran");
        // The marks have arrived: memcheck tracked the secrets all the way.
        let bits = secret_bits(&out);
        mark(&mut out, MAKE_MEM_DEFINED);
        assert_eq!(out, expected);
        if SUBJECTS.iter().any(|s| s.name == subject.name) {
            let public = bits.as_flattened().iter().filter(|bits| **bits == 0).count();
            assert_eq!(public, 0, "bytes of the output that are no secret");
        }
    }
    println!("ran {wanted}");
}

/// Runs valgrind on a subject and a path, and returns its output.
fn valgrind(subject: &Subject, backend: Backend) -> (Output, String) {
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=memcheck", &format!("--error-exitcode={REPORTED}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "memcheck::subject", "--ignored", "--nocapture"])
        .env(VARIABLE, name(subject, backend))
        .output()
        .expect("these tests need valgrind: apt-get install valgrind, or dnf install valgrind");
    let both = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&both).into_owned();
    (output, said)
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    let mut checked = 0;
    for subject in &SUBJECTS {
        for &backend in subject.backends.iter().filter(|b| !is_unknown_to_valgrind(**b) && b.is_available()) {
            let (output, said) = valgrind(subject, backend);
            let name = name(subject, backend);
            assert!(output.status.success(), "{name}: {}\n{said}", output.status);
            assert!(said.contains(&format!("ran {name}")), "{name} did not run\n{said}");
            checked += 1;
        }
    }
    assert!(checked >= SUBJECTS.len());
}

#[test]
fn memcheck_notices_a_branch_and_a_look_up() {
    for (subject, report) in
        LEAKS.iter().zip(["Conditional jump or move depends on uninitialised", "Use of uninitialised value"])
    {
        let (output, said) = valgrind(subject, Backend::Portable);
        let ran = said.contains(&format!("ran {}", name(subject, Backend::Portable)));
        assert!(ran && output.status.code() == Some(REPORTED), "{}: {}\n{said}", subject.name, output.status);
        assert!(said.contains(report) && said.contains("leaking_"), "{said}");
    }
}
