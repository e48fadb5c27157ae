//! A whole run of the receiver, in every operation, against a peer that sends the input.
use crate::Data;
use std::sync::LazyLock;
use veilset::operations::Role;

static DATA: LazyLock<Data> = LazyLock::new(Data::default);

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    DATA.against(Role::Receiver, data);
}
