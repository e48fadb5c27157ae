//! A whole run of the receiver, in every operation, against a peer that says the input.
#![no_main]

use std::sync::LazyLock;
use veilset::operations::Role;
use veilset_fuzz::Data;

static DATA: LazyLock<Data> = LazyLock::new(Data::default);

libfuzzer_sys::fuzz_target!(|data: &[u8]| DATA.against(Role::Receiver, data));
