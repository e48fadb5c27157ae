//! libFuzzer on the target that `VEILSET_FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;
use veilset_fuzz::{Target, limit_memory, target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("VEILSET_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("VEILSET_FUZZ_TARGET is {name:?}, which is no target"))
});

fn start() {
    if TARGET.decoder_panics {
        std::panic::set_hook(Box::new(|_| ()));
    } else {
        // What no input of the sizes here may make us allocate.
        limit_memory(256 << 20);
    }
}

libfuzzer_sys::fuzz_target!(init: start(), |data: &[u8]| (TARGET.run)(data));
