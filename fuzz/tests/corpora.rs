//! Every target takes every input that is kept, and those that follow from the library: what the fuzzer starts from.

use std::sync::Once;
use veilset_fuzz::{TARGETS, inputs, limit_memory, target};

/// Those that run at a time may allocate so much together: less than a length in an input can claim.
const MEMORY: usize = 1 << 30;

/// Set by one of them: of two that set it at the same time, one would fail.
static LIMIT: Once = Once::new();

fn replay(name: &str) {
    LIMIT.call_once(|| limit_memory(MEMORY));
    let target = target(name).unwrap();
    let inputs = inputs(target);
    assert!(!inputs.is_empty(), "{name} has no inputs");
    for input in inputs {
        println!(
            "{name} {} {}",
            input.name,
            input.bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()
        );
        (target.run)(&input.bytes);
    }
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert!(TARGETS.iter().map(|target| target.name).eq(replayed));
        }
    };
}

targets!(
    frames,
    elements,
    compact_set,
    hello,
    run_receiver,
    run_sender,
    text,
    csv,
    parquet,
    arrow,
    json_lines,
    filter
);
